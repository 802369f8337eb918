"""The pictures of operators and sources, by name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, final

from flow_core.errors import FlowError
from flow_testing.pictures.drawing import Picture, draw
from flow_testing.pictures.played import Scene

__all__ = ["NoPictureError", "picture", "scenes", "without"]

_OWN: Final = frozenset({"flow", "subscribers", "requests", "until"})
"""The keys that do not name an input."""


@final
class NoPictureError(FlowError, LookupError):
    """An operator or a source has no picture; the message says why."""


def picture(name: str) -> Picture:
    """Return the marble diagram of an operator or a source.

    >>> print(picture("take").words)
    a: 1 at 1 s, 2 at 3 s, cancelled at 3 s.
    a.take(2): 1 at 1 s, 2 at 3 s, completes at 3 s.

    Args:
        name: its name in the registry.

    Raises:
        NoPictureError: if it has none.
        NotInstalledError: if the package that executes the operator is not installed.
    """
    found = scenes().get(name)
    if found is None:
        why = without().get(name, "There is none in `flow_testing.pictures`.")
        raise NoPictureError(f"{name} has no picture. {why}")
    return draw(found, title=name)


@cache
def scenes() -> Mapping[str, Scene]:
    """Return what the picture of each operator and source shows, by name."""
    return MappingProxyType({name: _scene(line) for name, line in _file()["scenes"].items()})


@cache
def without() -> Mapping[str, str]:
    """Return the reason why an operator or a source has no picture, by name."""
    reasons = _file()["without"].items()
    return MappingProxyType({name: reason for reason, names in reasons for name in names})


@cache
def _file() -> Mapping[str, Any]:  # Any: what TOML can hold
    return tomllib.loads(files("flow_testing.pictures").joinpath("scenes.toml").read_text("utf-8"))


def _scene(line: Mapping[str, Any]) -> Scene:
    requests = line.get("requests")
    return Scene(
        line["flow"],
        {key: value for key, value in line.items() if key not in _OWN},
        subscribers=tuple(map(float, line.get("subscribers", (0,)))),
        requests=requests and {float(time): n for time, n in requests.items()},
        until=line.get("until"),
    )
