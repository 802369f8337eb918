"""The cases that `guard.py`, `compare.py` and `pythons.py` time: the report's, in small sizes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Timed:
    """A function of a script that times one case in several ways, and records the table."""

    script: str
    function: str
    arguments: tuple[int, ...]

    def load(self) -> Callable[[], object]:
        """Import the script, which other cases do not need, and return the function to call."""
        return partial(
            getattr(importlib.import_module(self.script), self.function), *self.arguments
        )


def _of(script: str) -> Callable[..., Timed]:
    return lambda function, *arguments: Timed(script, function, arguments)


_sync, _inner = _of("bench_sync"), _of("bench_inner")
_ops, _multicast = _of("bench_ops"), _of("bench_multicast")
_short = _of("bench_short")

CASES: dict[str, Timed] = {
    "chain-1": _sync("chain", 1, 20_000),
    "chain-3": _sync("chain", 3, 30_000),
    "chain-20": _sync("chain", 20, 40_000),
    "reduce": _sync("reduced", 10_000),
    "take-skip": _sync("cut", 10_000),
    "async-for": _sync("awaited", 3_000),
    "one-element-alone": _sync("one_alone", 500),
    "one-element": _sync("one", 500),
    "one-element-assembled": _sync("one_assembled", 500),
    "first": _sync("firsts", 1_000),
    "short-letters": _short("letters", 400),
    "short-ngrams": _short("ngrams", 400),
    "short-sessions": _short("sessions", 200),
    "short-documents": _short("documents", 200),
    "map-just": _inner("justs", 4_000),
    "cross-100": _inner("cross", 100),
    "inner-words": _inner("letters", 300),
    "observe-on": _ops("hops", 10_000),
    "merge": _ops("merging", 10_000),
    "zip": _ops("zipping", 5_000),
    "concat": _ops("chaining", 10_000),
    "group-by": _ops("grouping", 10_000),
    "multicast-1": _multicast("many", 1, 5_000),
    "multicast-16": _multicast("many", 16, 5_000),
    "replay": _multicast("replaying", 20_000),
}
"""The functions, by the keys of the tables."""


def chosen(names: Sequence[str]) -> list[str]:
    """Return the named cases, or all of them if none is named.

    Raises:
        ValueError: if there is no case of a name; the message lists the names.
    """
    if unknown := [name for name in names if name not in CASES]:
        raise ValueError(f"no case is called {', '.join(unknown)}; there are {', '.join(CASES)}")
    return list(dict.fromkeys(names)) or list(CASES)
