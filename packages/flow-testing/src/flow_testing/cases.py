"""Every stage with examples of its use, and with the results that plain Python computes.

The table makes tests general: a test that is parametrised over `STAGE_CASES` covers every stage, on
every engine that can run stages. If a stage has no case, the core's tests fail. Operators with a
thread, a clock or several flows have an `OperatorCase` each, in a table of their package.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, dropwhile, groupby, pairwise, takewhile
from typing import Any, Final, final

from flow_core.clocks import Clock
from flow_core.flow import Flow
from flow_core.notifications import Notification, OnComplete, OnNext
from flow_core.stages import SingleSink

__all__ = ["STAGE_CASES", "OperatorCase", "StageCase", "Surroundings"]

# Any: a case is applied to items of any type that the case before it emits.
_Apply = Callable[[Flow[Any]], Flow[Any]]
_Model = Callable[[list[Any]], list[Any]]


@final
@dataclass(frozen=True)
class StageCase:
    """One way to use a stage, with the expected result.

    Args:
        name: the name of the stage, and what is special in this case; useful as a test's id.
        apply: puts the stage behind a flow of ints.
        model: returns the expected result for a list of ints.
        nested: whether the results are tuples or lists of ints.
    """

    name: str
    apply: _Apply = field(repr=False)
    model: _Model = field(repr=False)
    nested: bool = False

    def then(self, after: StageCase) -> StageCase:
        """Return this case followed by `after`; in between, tuples and lists become ints again."""
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


@final
@dataclass(frozen=True)
class Surroundings:
    """The executor, the clock and the loop for the cases of operators.

    Args:
        executor: runs tasks.
        clock: the clock for operators that wait.
        period_s: the length of their periods, in seconds.
        loop: runs coroutines; None for the loop of the subscriber.
    """

    executor: Any  # Any: anything that an operator accepts as an executor
    clock: Clock
    period_s: float = 1
    loop: AbstractEventLoop | None = None


@final
@dataclass(frozen=True)
class OperatorCase:
    """One way to use an operator, or a source of other flows; with a thread or a clock.

    Args:
        name: the name under which the operator is registered; after a comma, how it is used. Useful
            as a test's id.
        apply: puts the operator behind a flow of ints, or makes that flow one of its flows.
        kinds: words that describe the operator. "endless": it takes all items of a source without
            back-pressure, and keeps few. "selective": it may drop items or reorder them. "closing":
            it ends before its source does. "timed": it emits no items before its clock advances.
            "delayed": it does not end before its clock advances. "executor", "processes", "loop":
            it runs on an executor, on an executor of processes, or in an event loop. "uncounted":
            the rules cannot know how many items it emits.
        holds: how many items of the upstream may wait in the operator.
        facts: what the rules need to know: attributes of `OperatorVerification`, such as
            ``max_items``.
    """

    name: str
    apply: Callable[[Flow[Any], Surroundings], Flow[Any]] = field(repr=False)
    kinds: frozenset[str] = frozenset()
    holds: int = 300
    facts: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)

    @property
    def registered(self) -> str:
        """Return the name of the operator's record."""
        return self.name.partition(",")[0]

    def __str__(self) -> str:
        return self.name


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


def _extend(items: list[int], others: list[int]) -> None:
    items.extend(others)


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
    """Return those items that are more than 2 above the last item that was kept."""
    kept: list[int] = []
    for item in items:
        if not kept or abs(item - kept[-1]) > 2:
            kept.append(item)
    return kept


def _windows(items: list[Any], count: int, skip: int) -> list[list[Any]]:
    return [items[i : i + count] for i in range(0, len(items), skip)]


def _cut(
    items: list[Any],
    ends: Callable[[Any], object],
    *,
    before: bool = False,
    drop: bool = False,
    empty: bool = False,
) -> list[list[Any]]:
    """Return lists, cut where `ends` is true for an item: after it, before it, or without it."""
    lists: list[list[Any]] = [[]]
    for item in items:
        if not ends(item):
            lists[-1].append(item)
        elif before:
            lists.append([item])
        else:
            lists[-1] += [] if drop else [item]
            lists.append([])
    return [made for i, made in enumerate(lists) if made or (empty and i < len(lists) - 1)]


def _runs(items: list[Any], key: Callable[[Any], Any]) -> list[list[Any]]:
    return [list(run) for _, run in groupby(items, key)]


def _keyed(items: list[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}  # Any: as the items
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _handled(n: int, sink: SingleSink[int]) -> None:
    """Emit ten times each odd number, and end at the first number above 6."""
    if n % 2:
        sink.next(10 * n)
    if n > 6:
        sink.complete()


def _handled_list(items: list[int]) -> list[int]:
    until = [*takewhile(lambda n: n <= 6, items), *[n for n in items if n > 6][:1]]
    return [10 * n for n in until if n % 2]


def _ignore(*_: object) -> None:
    pass


def _value(signal: Notification[int]) -> int:
    """Return the item of a signal; 1000 stands for completion."""
    return signal.item if isinstance(signal, OnNext) else 1000


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
    StageCase(
        "map_optional",
        lambda f: f.map_optional(lambda n: n + 1 if n % 3 else None),
        lambda s: [n + 1 for n in s if n % 3],
    ),
    StageCase(
        "starmap",
        lambda f: f.map(lambda n: (n, 3)).starmap(lambda a, b: a * b),
        lambda s: [3 * n for n in s],
    ),
    StageCase(
        "map_indexed",
        lambda f: f.map_indexed(lambda n, i: n * i),
        lambda s: [n * i for i, n in enumerate(s)],
    ),
    StageCase("cast", lambda f: f.cast(int), lambda s: s),
    StageCase(
        "of_type",
        lambda f: f.map(lambda n: str(n) if n % 2 else n).of_type(int),
        lambda s: [n for n in s if not n % 2],
    ),
    StageCase("handle", lambda f: f.handle(_handled), _handled_list),
    StageCase(
        "filter_indexed",
        lambda f: f.filter_indexed(lambda _, i: i % 3 == 1),
        lambda s: s[1::3],
    ),
    StageCase("ignore_elements", lambda f: f.ignore_elements(), lambda _: []),
    StageCase("take_last", lambda f: f.take_last(3), lambda s: s[-3:]),
    StageCase("take_last 0", lambda f: f.take_last(0), lambda _: []),
    StageCase("skip_last", lambda f: f.skip_last(3), lambda s: s[:-3]),
    StageCase("skip_last 0", lambda f: f.skip_last(0), lambda s: s),
    StageCase(
        "take_until",
        lambda f: f.take_until(lambda n: n > 2),
        lambda s: [*takewhile(lambda n: n <= 2, s), *[n for n in s if n > 2][:1]],
    ),
    StageCase("slice", lambda f: f[1:8:3], lambda s: s[1:8:3]),
    StageCase("slice from the end", lambda f: f[-4:-1], lambda s: s[-4:-1]),
    StageCase("slice from the end up to an index", lambda f: f[-6:5:2], lambda s: s[-6:5:2]),
    StageCase("element_at", lambda f: f.end_with(7, 7, 7)[2], lambda s: [*s, 7, 7, 7][2:3]),
    StageCase(
        "element_at_or_default",
        lambda f: f.element_at_or_default(4, 7),
        lambda s: s[4:5] or [7],
    ),
    StageCase("first_or_error", lambda f: f.end_with(7).first_or_error(), lambda s: [*s, 7][:1]),
    StageCase("first_or_default", lambda f: f.first_or_default(7), lambda s: s[:1] or [7]),
    StageCase("last_or_error", lambda f: f.start_with(7).last_or_error(), lambda s: [7, *s][-1:]),
    StageCase("last_or_default", lambda f: f.last_or_default(7), lambda s: s[-1:] or [7]),
    StageCase(
        "single_or_error",
        lambda f: f.count().single_or_error(),
        lambda s: [len(s)],
    ),
    StageCase(
        "single_or_default", lambda f: f.take(1).single_or_default(7), lambda s: s[:1] or [7]
    ),
    StageCase("to_set", lambda f: f.to_set().map(sorted), lambda s: [sorted(set(s))], nested=True),
    StageCase(
        "to_dict",
        lambda f: f.to_dict(lambda n: n % 3).map(lambda d: list(d.values())),
        lambda s: [list({n % 3: n for n in s}.values())],
        nested=True,
    ),
    StageCase(
        "to_dict with values",
        lambda f: f.to_dict(lambda n: n % 3, lambda n: -n).map(lambda d: list(d.values())),
        lambda s: [list({n % 3: -n for n in s}.values())],
        nested=True,
    ),
    StageCase(
        "to_multidict",
        lambda f: f.to_multidict(lambda n: n % 3).flat_map_iterable(lambda d: d.values()),
        lambda s: list(_keyed(s, lambda n: n % 3).values()),
        nested=True,
    ),
    StageCase(
        "to_multidict with values",
        lambda f: f.to_multidict(lambda n: n % 3, lambda n: -n).flat_map_iterable(
            lambda d: d.values()
        ),
        lambda s: [[-n for n in kept] for kept in _keyed(s, lambda n: n % 3).values()],
        nested=True,
    ),
    StageCase(
        "reduce_by_key",
        lambda f: f.reduce_by_key(lambda n: n % 3, _add),
        lambda s: [(k, sum(kept)) for k, kept in _keyed(s, lambda n: n % 3).items()],
        nested=True,
    ),
    StageCase(
        "reduce_by_key with values",
        lambda f: f.reduce_by_key(lambda n: n % 3, _add, lambda n: -n),
        lambda s: [(k, -sum(kept)) for k, kept in _keyed(s, lambda n: n % 3).items()],
        nested=True,
    ),
    StageCase(
        "count_by_key",
        lambda f: f.count_by_key(lambda n: n % 3),
        lambda s: [(k, len(kept)) for k, kept in _keyed(s, lambda n: n % 3).items()],
        nested=True,
    ),
    StageCase(
        "collect with a combiner",
        lambda f: f.collect(_new_list, _append, _extend).map(sorted),
        lambda s: [sorted(s)],
        nested=True,
    ),
    StageCase("sum", lambda f: f.sum(), lambda s: [sum(s)]),
    StageCase("sum from a start", lambda f: f.sum(100), lambda s: [sum(s, 100)]),
    StageCase(
        "average",
        lambda f: f.end_with(6).average().map(round),
        lambda s: [round(sum([*s, 6]) / (len(s) + 1))],
    ),
    StageCase("min", lambda f: f.min(), lambda s: [min(s)] if s else []),
    StageCase(
        "min by a key",
        lambda f: f.min(lambda n: n % 3),
        lambda s: [min(s, key=lambda n: n % 3)] if s else [],
    ),
    StageCase("max", lambda f: f.max(), lambda s: [max(s)] if s else []),
    StageCase(
        "max by a key",
        lambda f: f.max(lambda n: n % 3),
        lambda s: [max(s, key=lambda n: n % 3)] if s else [],
    ),
    StageCase("sort", lambda f: f.sort(), sorted),
    StageCase(
        "sort by a key, reversed",
        lambda f: f.sort(lambda n: n % 3, reverse=True),
        lambda s: sorted(s, key=lambda n: n % 3, reverse=True),
    ),
    StageCase(
        "all", lambda f: f.all(lambda n: n < 5).map(int), lambda s: [int(all(n < 5 for n in s))]
    ),
    StageCase(
        "some", lambda f: f.some(lambda n: n > 5).map(int), lambda s: [int(any(n > 5 for n in s))]
    ),
    StageCase("is_empty", lambda f: f.is_empty().map(int), lambda s: [int(not s)]),
    StageCase("contains", lambda f: f.contains(3).map(int), lambda s: [int(3 in s)]),
    StageCase("start_with", lambda f: f.start_with(8, 9), lambda s: [8, 9, *s]),
    StageCase("start_with nothing", lambda f: f.start_with(), lambda s: s),
    StageCase("end_with", lambda f: f.end_with(8, 9), lambda s: [*s, 8, 9]),
    StageCase("default_if_empty", lambda f: f.default_if_empty(7), lambda s: s or [7]),
    StageCase(
        "zip_with_iterable",
        lambda f: f.zip_with_iterable(range(4)),
        lambda s: list(zip(s, range(4), strict=False)),
        nested=True,
    ),
    StageCase(
        "zip_with_iterable of more",
        lambda f: f.zip_with_iterable(range(1000), _add),
        lambda s: [n + i for i, n in enumerate(s)],
    ),
    StageCase("zip_with_iterable of nothing", lambda f: f.zip_with_iterable(()), lambda _: []),
    StageCase(
        "buffer_until",
        lambda f: f.buffer_until(_even),
        lambda s: _cut(s, _even),
        nested=True,
    ),
    StageCase(
        "buffer_until, cut before",
        lambda f: f.buffer_until(_even, cut_before=True),
        lambda s: _cut(s, _even, before=True),
        nested=True,
    ),
    StageCase(
        "buffer_while",
        lambda f: f.buffer_while(lambda n: n % 3),
        lambda s: _cut(s, lambda n: not n % 3, drop=True),
        nested=True,
    ),
    StageCase(
        "sliding",
        lambda f: f.sliding(3),
        lambda s: [list(s[i : i + 3]) for i in range(len(s) - 2)],
        nested=True,
    ),
    StageCase(
        "sliding by 2",
        lambda f: f.sliding(3, 2),
        lambda s: [list(s[i : i + 3]) for i in range(0, len(s) - 2, 2)],
        nested=True,
    ),
    StageCase(
        "sliding past some",
        lambda f: f.sliding(2, 3),
        lambda s: [list(s[i : i + 2]) for i in range(0, len(s) - 1, 3)],
        nested=True,
    ),
    StageCase(
        "buffer_split",
        lambda f: f.buffer_split(_even),
        lambda s: _cut(s, _even, drop=True, empty=True),
        nested=True,
    ),
    StageCase(
        "buffer_until_changed",
        lambda f: f.buffer_until_changed(),
        lambda s: _runs(s, lambda n: n),
        nested=True,
    ),
    StageCase(
        "buffer_until_changed by a key",
        lambda f: f.buffer_until_changed(lambda n: n // 3),
        lambda s: _runs(s, lambda n: n // 3),
        nested=True,
    ),
    StageCase("on_error_return", lambda f: f.on_error_return(7), lambda s: s),
    StageCase(
        "on_error_return after an error",
        lambda f: f.map(lambda n: 12 // (n - 5)).on_error_return(7),
        lambda s: [12 // (n - 5) for n in takewhile(lambda n: n != 5, s)] + [7] * (5 in s),
    ),
    StageCase(
        "on_error_complete",
        lambda f: f.map(lambda n: 12 // (n - 5)).on_error_complete(),
        lambda s: [12 // (n - 5) for n in takewhile(lambda n: n != 5, s)],
    ),
    StageCase(
        "on_error_map",
        lambda f: (
            f.map(lambda n: 12 // (n - 5))
            .on_error_map(lambda error: LookupError(str(error)))
            .on_error_complete(LookupError)
        ),
        lambda s: [12 // (n - 5) for n in takewhile(lambda n: n != 5, s)],
    ),
    StageCase("materialize", lambda f: f.materialize().map(_value), lambda s: [*s, 1000]),
    StageCase(
        "dematerialize",
        lambda f: f.map(lambda n: OnNext(n) if n < 6 else OnComplete()).dematerialize(),
        lambda s: list(takewhile(lambda n: n < 6, s)),
    ),
    StageCase("do_after_next", lambda f: f.do_after_next(_ignore), lambda s: s),
    StageCase("do_on_subscribe", lambda f: f.do_on_subscribe(_ignore), lambda s: s),
    StageCase("do_on_complete", lambda f: f.do_on_complete(_ignore), lambda s: s),
    StageCase("do_on_error", lambda f: f.do_on_error(_ignore), lambda s: s),
    StageCase("do_on_terminate", lambda f: f.do_on_terminate(_ignore), lambda s: s),
    StageCase("do_after_terminate", lambda f: f.do_after_terminate(_ignore), lambda s: s),
    StageCase("do_on_cancel", lambda f: f.do_on_cancel(_ignore), lambda s: s),
    StageCase("finally_action", lambda f: f.finally_action(_ignore), lambda s: s),
    StageCase(
        "do_action",
        lambda f: f.do_action(_ignore, _ignore, _ignore, on_subscribe=_ignore, on_close=_ignore),
        lambda s: s,
    ),
    StageCase("log", lambda f: f.log(level=logging.DEBUG), lambda s: s),
    StageCase("checkpoint", lambda f: f.checkpoint("here"), lambda s: s),
    StageCase("name", lambda f: f.name("numbers"), lambda s: s),
    StageCase("tag", lambda f: f.tag("unit", "piece"), lambda s: s),
)
"""The cases: at least one of every stage. Their names are unique."""
