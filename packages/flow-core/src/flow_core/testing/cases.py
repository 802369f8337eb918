"""Every stage with examples and what they must give, as plain Python does it.

The table is what makes tests general: a test that is parametrised over `STAGE_CASES` covers every
stage, on every engine that can run stages; a stage that is missing here fails the core's tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, dropwhile, pairwise, takewhile
from typing import Any, Final, final

from flow_core.flow import Flow

__all__ = ["STAGE_CASES", "StageCase"]

# Any: a case is applied to items of any type that the case before it gives.
_Apply = Callable[[Flow[Any]], Flow[Any]]
_Model = Callable[[list[Any]], list[Any]]


@final
@dataclass(frozen=True)
class StageCase:
    """One way to use a stage.

    Args:
        name: says which stage and what is special; of use as a test's id.
        apply: puts the stage behind a flow of ints.
        model: what it must make of a list of ints.
        nested: whether it makes tuples or lists of ints.
    """

    name: str
    apply: _Apply = field(repr=False)
    model: _Model = field(repr=False)
    nested: bool = False

    def then(self, after: StageCase) -> StageCase:
        """This case and then `after`, with tuples and lists made ints again in between."""
        if self.nested:
            return StageCase(
                f"{self.name} | {after.name}",
                lambda flow: after.apply(self.apply(flow).map(_total)),
                lambda items: after.model([_total(item) for item in self.model(items)]),
                after.nested,
            )
        return StageCase(
            f"{self.name} | {after.name}",
            lambda flow: after.apply(self.apply(flow)),
            lambda items: after.model(self.model(items)),
            after.nested,
        )


def _total(item: int | tuple[int, ...] | list[int]) -> int:
    return item if isinstance(item, int) else sum(item)


def _even(n: int) -> bool:
    return n % 2 == 0


def _add(a: int, b: int) -> int:
    return a + b


def _near(a: int, b: int) -> bool:
    return abs(a - b) <= 2


def _new_list() -> list[int]:
    return []


def _append(items: list[int], item: int) -> None:
    items.append(item)


def _generated(n: int) -> Iterator[int]:
    for i in range(n % 4):
        yield n + i


def _distinct(items: list[Any], key: Callable[[Any], Any]) -> list[Any]:
    seen = [key(item) for item in items]
    return [item for i, item in enumerate(items) if seen[i] not in seen[:i]]


def _changes(items: list[Any], key: Callable[[Any], Any]) -> list[Any]:
    keys = [key(item) for item in items]
    return [item for i, item in enumerate(items) if i == 0 or keys[i - 1] != keys[i]]


def _growing(items: list[int]) -> list[int]:
    """Those that are more than 2 above the last one that was kept."""
    kept: list[int] = []
    for item in items:
        if not kept or abs(item - kept[-1]) > 2:
            kept.append(item)
    return kept


def _windows(items: list[Any], count: int, skip: int) -> list[list[Any]]:
    return [items[i : i + count] for i in range(0, len(items), skip)]


STAGE_CASES: Final[tuple[StageCase, ...]] = (
    StageCase("map", lambda f: f.map(lambda n: n + 1), lambda s: [n + 1 for n in s]),
    StageCase("filter", lambda f: f.filter(_even), lambda s: [n for n in s if _even(n)]),
    StageCase("filter none", lambda f: f.filter(lambda _: 0), lambda _: []),
    StageCase("filter all", lambda f: f.filter(lambda _: "yes"), lambda s: s),
    StageCase(
        "flat_map_iterable",
        lambda f: f.flat_map_iterable(lambda n: [n] * (n % 4)),
        lambda s: [n for n in s for _ in range(n % 4)],
    ),
    StageCase(
        "flat_map_iterable generators",
        lambda f: f.flat_map_iterable(_generated),
        lambda s: [n + i for n in s for i in range(n % 4)],
    ),
    StageCase(
        "flat_map_iterable nothing", lambda f: f.flat_map_iterable(lambda _: ()), lambda _: []
    ),
    StageCase("take", lambda f: f.take(3), lambda s: s[:3]),
    StageCase("take 0", lambda f: f.take(0), lambda _: []),
    StageCase("take 1", lambda f: f.take(1), lambda s: s[:1]),
    StageCase("take more than there are", lambda f: f.take(1000), lambda s: s[:1000]),
    StageCase("skip", lambda f: f.skip(3), lambda s: s[3:]),
    StageCase("skip 0", lambda f: f.skip(0), lambda s: s),
    StageCase("skip more than there are", lambda f: f.skip(1000), lambda s: s[1000:]),
    StageCase(
        "take_while",
        lambda f: f.take_while(lambda n: n < 4),
        lambda s: list(takewhile(lambda n: n < 4, s)),
    ),
    StageCase(
        "skip_while",
        lambda f: f.skip_while(lambda n: n < 4),
        lambda s: list(dropwhile(lambda n: n < 4, s)),
    ),
    StageCase("scan", lambda f: f.scan(_add), lambda s: list(accumulate(s))),
    StageCase(
        "scan with a seed",
        lambda f: f.scan(_add, 100),
        lambda s: list(accumulate(s, initial=100))[1:],
    ),
    StageCase("reduce", lambda f: f.reduce(_add), lambda s: [sum(s)] if s else []),
    StageCase(
        "reduce with a seed", lambda f: f.reduce(_add, 100), lambda s: [reduce(_add, s, 100)]
    ),
    StageCase("collect", lambda f: f.collect(_new_list, _append), lambda s: [s], nested=True),
    StageCase("to_list", lambda f: f.to_list(), lambda s: [s], nested=True),
    StageCase("count", lambda f: f.count(), lambda s: [len(s)]),
    StageCase("distinct", lambda f: f.distinct(), lambda s: _distinct(s, lambda n: n)),
    StageCase(
        "distinct by a key",
        lambda f: f.distinct(lambda n: n % 3),
        lambda s: _distinct(s, lambda n: n % 3),
    ),
    StageCase(
        "distinct_until_changed",
        lambda f: f.distinct_until_changed(),
        lambda s: _changes(s, lambda n: n),
    ),
    StageCase(
        "distinct_until_changed by a key",
        lambda f: f.distinct_until_changed(lambda n: n // 2),
        lambda s: _changes(s, lambda n: n // 2),
    ),
    StageCase(
        "distinct_until_changed, nearly the same",
        lambda f: f.distinct_until_changed(same=_near),
        _growing,
    ),
    StageCase("do_on_next", lambda f: f.do_on_next(lambda _: None), lambda s: s),
    StageCase(
        "pairwise",
        lambda f: f.pairwise(),
        lambda s: list(pairwise(s)),
        nested=True,
    ),
    StageCase(
        "buffer_with_count",
        lambda f: f.buffer_with_count(3),
        lambda s: _windows(s, 3, 3),
        nested=True,
    ),
    StageCase(
        "buffer_with_count of one",
        lambda f: f.buffer_with_count(1),
        lambda s: _windows(s, 1, 1),
        nested=True,
    ),
    StageCase(
        "buffer_with_count overlapping",
        lambda f: f.buffer_with_count(3, 1),
        lambda s: _windows(s, 3, 1),
        nested=True,
    ),
    StageCase(
        "buffer_with_count with gaps",
        lambda f: f.buffer_with_count(2, 3),
        lambda s: _windows(s, 2, 3),
        nested=True,
    ),
)
"""Every stage at least once. The names are unique."""
