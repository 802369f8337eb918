"""An engine that says when it is opened and closed, and does something to the first source."""

import contextlib
import sys
from collections.abc import Generator, Mapping
from typing import Any, TypeVar

from flow_core import Flow, structure
from flow_core.engine import Engine, EngineOptions

T = TypeVar("T")


class AcmeEngine(Engine):
    """Gives ten times what a source gives."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options

    @property
    def name(self) -> str:
        """What ``--on`` takes."""
        return "acme"

    @property
    def facts(self) -> Mapping[str, str]:
        """Which master was asked for."""
        return {"master": self._options.master or "none"}

    def place(self, flow: Flow[T], /) -> Flow[T]:
        """The same flow over ten times its first source's items."""

        def move(source: Flow[Any]) -> Flow[Any]:
            return source.map(lambda item: item * 10)

        return structure.moved(flow, move)


@contextlib.contextmanager
def open_engine(options: EngineOptions) -> Generator[Engine, None, None]:
    """What the record names."""
    sys.stderr.write(f"opened {options.master} for {options.name}\n")
    try:
        yield AcmeEngine(options)
    finally:
        sys.stderr.write("closed\n")
