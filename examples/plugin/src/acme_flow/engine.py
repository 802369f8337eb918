"""An engine that reports when it opens and closes, and changes the first source."""

import contextlib
import sys
from collections.abc import Generator, Mapping
from typing import Any, TypeVar

from flow_core import Flow, structure
from flow_core.engine import Engine, EngineOptions

T = TypeVar("T")


class AcmeEngine(Engine):
    """Multiplies the items of a source by ten."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options

    @property
    def name(self) -> str:
        """The engine's name, for ``--on``."""
        return "acme"

    @property
    def facts(self) -> Mapping[str, str]:
        """The requested master."""
        return {"master": self._options.master or "none"}

    def place(self, flow: Flow[T], /) -> Flow[T]:
        """Return the same flow, with the items of its first source multiplied by ten."""

        def move(source: Flow[Any]) -> Flow[Any]:
            return source.map(lambda item: item * 10)

        return structure.moved(flow, move)


@contextlib.contextmanager
def open_engine(options: EngineOptions) -> Generator[Engine, None, None]:
    """Open the engine; the record names this function."""
    sys.stderr.write(f"opened {options.master} for {options.name}\n")
    try:
        yield AcmeEngine(options)
    finally:
        sys.stderr.write("closed\n")
