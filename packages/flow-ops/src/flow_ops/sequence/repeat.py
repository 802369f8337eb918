"""`repeat`, `repeat_until` and `repeat_when`: the same flow again, when it has completed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import ClassVar, TypeVar, final

from typing_extensions import override

from flow_core.assembly import labelled
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, IterableSource, Publisher
from flow_core.stages import describe
from flow_ops.arbiters import SwitchArbiter
from flow_ops.coordination import coordinated
from flow_ops.sequence._companion import Companioned
from flow_ops.sequence.concat import follow_one_another

__all__ = ["repeat", "repeat_until", "repeat_when"]

T = TypeVar("T")


def repeat(times: int | None = None) -> Operator[T, Flow[T]]:
    """Run the flow `times` times, one run after the other.

    >>> import flow_core as flow
    >>> list(flow.range(2).repeat(3))
    [0, 1, 0, 1, 0, 1]
    >>> list(flow.range(2).repeat().take(5))
    [0, 1, 0, 1, 0]

    Demand: exact; the next run gets the demand that the previous one has not used. The flow is
    subscribed again at once, even without demand.
    Thread, iteration, fusion: as with `concat`, which it is built on.
    Errors: an error ends the flow.

    Args:
        times: the number of runs; with 0, the flow is empty; with None, it is repeated for ever. (A
            flow without items then never ends, and never returns from its thread.)

    Raises:
        TypeError: if `times` is neither an int nor None.
        ValueError: if `times` is less than 0.
    """
    if times is not None:
        check_times(times, "repeat")
    detail = "" if times is None else str(times)
    label = labelled("repeat", detail)
    return Operator("repeat", lambda flow: follow_one_another(label, _Again(flow, times)), detail)


def repeat_until(stop: Callable[[], object]) -> Operator[T, Flow[T]]:
    """Run the flow again and again, until `stop()` returns true after it has completed.

    >>> import flow_core as flow
    >>> left = [1, 2]
    >>> list(flow.just("a").repeat_until(lambda: not left or not left.pop()))
    ['a', 'a', 'a']

    Demand: exact; the next run gets the demand that the previous one has not used. The flow is
    subscribed again at once, even without demand.
    Thread: the upstream's; `stop` is called where a run has ended. Fusion: none.
    Errors: an error ends the flow, and so does an error raised by `stop`.

    Args:
        stop: called each time the flow has completed.

    Raises:
        TypeError: if `stop` cannot be called.
    """
    if not callable(stop):
        raise TypeError(f"repeat_until() takes a function, not {stop!r}")
    return coordinated(
        "repeat_until",
        describe(stop),
        lambda flow, downstream, label: RepeatUntil(flow, stop, downstream, label),
    )


def repeat_when(handler: Callable[[Flow[int]], Publisher[object]]) -> Operator[T, Flow[T]]:
    """Run the flow again for each item of another flow.

    >>> import flow_core as flow
    >>> list(flow.just("a", "b").repeat_when(lambda runs: runs.take(3)))
    ['a', 'b', 'a', 'b', 'a', 'b']

    For each subscriber, `handler` gets a flow with an item for each run that has completed: the
    number of items of that run. `handler` returns the other flow, each item of which starts the
    next run. When the other flow ends, this flow ends, too, at once, even during a run: with
    ``take(3)`` the third item is the last, and no run follows it.

    Demand: exact; the next run gets the demand that the previous one has not used. One item is
    requested of the other flow for each run.
    Thread: the upstream's; a run begins where the other flow sends its item. Fusion: none.
    Errors: an error ends the flow; so does an error of the other flow, or an error raised by
    `handler`.

    Args:
        handler: called once per subscriber, when it subscribes; its result need not use its
            argument. Of the argument's items that are not requested, only the last one is kept.

    Raises:
        TypeError: if `handler` cannot be called.
    """
    if not callable(handler):
        raise TypeError(f"repeat_when() takes a function from a Flow to a Flow, not {handler!r}")
    return coordinated(
        "repeat_when",
        describe(handler),
        lambda flow, downstream, label: RepeatWhen(flow, handler, downstream, label),
    )


def check_times(times: int, operator: str) -> None:
    """Check that `times` is a number of runs.

    Raises:
        TypeError: if `times` is not an int.
        ValueError: if `times` is less than 0.
    """
    if not isinstance(times, int) or isinstance(times, bool):
        raise TypeError(f"{operator}(times) takes an int or None, not {times!r}")
    if times < 0:
        raise ValueError(f"{operator}(times) takes at least 0, not {times}")


@final
class _Again(IterableSource[Flow[T]]):
    """The same flow, a number of times."""

    __slots__ = ("_flow", "_times")

    none_free: ClassVar[bool] = True

    def __init__(self, flow: Flow[T], times: int | None) -> None:
        self._flow = flow
        self._times = times

    @override
    def iterate(self) -> Iterator[Flow[T]]:
        if self._times is None:
            return itertools.repeat(self._flow)
        return itertools.repeat(self._flow, self._times)

    def __repr__(self) -> str:
        return "a flow, for ever" if self._times is None else f"a flow, {self._times} times"


@final
class RepeatUntil(SwitchArbiter[T]):
    """Runs `repeat_until`."""

    __slots__ = ("_source", "_stop")

    def __init__(
        self,
        source: Flow[T],
        stop: Callable[[], object],
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._stop = stop

    @override
    def open(self) -> None:
        self.switch_to(self._source)

    @override
    def ended(self, error: BaseException | None) -> None:
        if error is None:
            self.outside(self._decide)
        else:
            self.fail(error)

    def _decide(self, _: object) -> None:
        if self._stop():
            self.post(self.end, None)
        else:
            self.switch_to(self._source)


@final
class RepeatWhen(Companioned[T, int]):
    """Runs `repeat_when`."""

    __slots__ = ("_counted",)

    def __init__(
        self,
        source: Flow[T],
        handler: Callable[[Flow[int]], Publisher[object]],
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(source, handler, downstream, label)
        self._counted = 0

    @override
    def received(self, item: T) -> bool:
        self._counted += 1
        return self.emit(item)

    @override
    def ended(self, error: BaseException | None) -> None:
        if error is None:
            counted, self._counted = self._counted, 0
            self.ask(counted)
        else:
            self.fail(error)
