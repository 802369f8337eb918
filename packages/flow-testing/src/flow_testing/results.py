"""Checks the result of a flow in every form in which the flow can run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from threading import RLock
from typing import Any, Final, TypeVar, final

from flow_core.demand import UNBOUNDED, bad_request
from flow_core.errors import is_fatal, throw_if_fatal
from flow_core.flow import Flow
from flow_core.homes import running_loop
from flow_core.protocols import Fusion, IterableSource, Publisher, Subscriber
from flow_core.structure import moved, source_of, stages_of
from flow_testing.drops import recorded_drops
from flow_testing.races import race
from flow_testing.subscriber import TIMEOUT_S, ConditionalTestSubscriber, TestSubscriber

__all__ = ["DOWNSTREAMS", "UPSTREAMS", "Downstream", "Expected", "Upstream", "assert_result"]

T = TypeVar("T")

# Any: the forms do not look at the items.
_AnyFlow = Flow[Any]
_Make = Callable[[], Flow[Any]]
_AnyTestSubscriber = TestSubscriber[Any]


@final
@dataclass(frozen=True)
class Expected:
    """The outcome that a flow is expected to have."""

    items: list[Any]
    """All items, in order."""
    error: BaseException | type[BaseException] | None
    """The error after the items, or its type; None for on_complete."""
    timeout_s: float
    """The time to wait for the end, in seconds."""

    def check(self, subscriber: _AnyTestSubscriber) -> None:
        """Check that the subscriber gets all items and the terminal in time, and nothing else."""
        subscriber.await_terminal(self.timeout_s)
        if self.error is None:
            subscriber.assert_result(*self.items)
        else:
            subscriber.assert_failure(self.error, *self.items)

    def check_raised(self, items: list[Any], error: BaseException | None) -> None:
        """Check that an iteration yielded `items`, then raised `error` (unless it is None)."""
        if error is None:
            matches = self.error is None
        elif isinstance(self.error, type):
            matches = isinstance(error, self.error)
        else:
            matches = error is self.error
        if items != self.items or not matches:
            raise AssertionError(
                f"expected {self.items!r} and {self.error!r}, got {items!r} and {error!r}"
            ) from error

    def check_prefix(self, items: list[Any], count: int) -> None:
        """Check that `items` are the first `count` of the expected items."""
        if items != self.items[:count]:
            raise AssertionError(f"expected {self.items[:count]!r}, got {items!r}")


@final
@dataclass(frozen=True)
class Upstream:
    """One way to change the first source of a flow.

    Args:
        name: the name in messages.
        prepare: returns the flow to run instead; None if the source cannot be changed like this.
    """

    name: str
    prepare: Callable[[_AnyFlow], _AnyFlow | None] = field(repr=False)


@final
@dataclass(frozen=True)
class Downstream:
    """One way to consume a flow.

    Args:
        name: the name in messages.
        consume: consumes the flow, which it may make several times, and compares the result.
        cancels: whether it leaves early; an error may then reach no subscriber.
    """

    name: str
    consume: Callable[[_Make, Expected], None] = field(repr=False)
    cancels: bool = False


def assert_result(
    make: Callable[[], Flow[T]],
    expected: Sequence[T],
    error: BaseException | type[BaseException] | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
    only: Callable[[str], object] = lambda _: True,
) -> None:
    """Check that a flow sends the same in every form in which it can run.

    Each of `UPSTREAMS` (the first source as it is, hidden, pushing to a conditional subscriber,
    answering requests within ``on_next``) is combined with each of `DOWNSTREAMS` (iterated;
    requested at once, one by one, exactly, late, by two threads; hidden, conditional, fused,
    cancelled, asynchronous).

    >>> import flow_core as flow
    >>> assert_result(lambda: flow.range(5).filter(lambda n: n % 2 == 0), [0, 2, 4])

    Args:
        make: makes a new flow, over a new source; called for every run.
        expected: all items that the flow has to send.
        error: the error after the items: the object itself, or its class; None if the flow
            completes.
        timeout_s: how long to wait if the flow is asynchronous, in seconds.
        only: the name of a single form to run, to narrow a failure down.

    Raises:
        AssertionError: if a form differs or a rule is broken; a note on the error names the form.
    """
    outcome = Expected(list(expected), error, timeout_s)
    for upstream in UPSTREAMS:
        for downstream in DOWNSTREAMS:
            name = f"{upstream.name}, {downstream.name}"
            if not only(name):
                continue
            prepare = partial(_prepared, upstream, make)
            if upstream.prepare(make()) is None:
                continue
            try:
                with recorded_drops() as drops:
                    downstream.consume(prepare, outcome)
                    if not downstream.cancels:
                        drops.assert_no_errors()
            except BaseException as failure:
                failure.add_note(f"in the form {name!r} of {make()!r}")
                raise


def _prepared(upstream: Upstream, make: _Make) -> _AnyFlow:
    flow = make()
    return upstream.prepare(flow) or flow


# -- upstreams


def _moved(move: Callable[[_AnyFlow], _AnyFlow]) -> Callable[[_AnyFlow], _AnyFlow]:
    return lambda flow: moved(flow, move)


def _reentrant(flow: _AnyFlow) -> _AnyFlow | None:
    if not stages_of(flow) or not isinstance(source_of(flow), IterableSource):
        return None  # The next publisher need not tolerate this, or the source would have to block.
    return moved(flow, lambda source: Flow(_Reentrant(source)))


@final
class _Reentrant(Publisher[Any]):  # Any: the forms do not look at the items
    """A publisher that sends the items of a flow within ``request``, even within ``on_next``."""

    __slots__ = ("_source",)

    def __init__(self, source: _AnyFlow) -> None:
        self._source = source

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_ReentrantSubscription(iter(self._source), subscriber))


@final
class _ReentrantSubscription:
    __slots__ = ("_asked", "_items", "_lock", "_sent", "_subscriber")

    def __init__(self, items: Iterator[Any], subscriber: Subscriber[Any]) -> None:
        self._items = items
        self._subscriber: Subscriber[Any] | None = subscriber
        self._asked = self._sent = 0
        self._lock = RLock()  # re-entrant in a thread, serial between threads (§1.3)

    def request(self, n: int, /) -> None:
        with self._lock:
            self._send(n)

    def _send(self, n: int) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        bad = bad_request(n)
        if bad is not None:
            self._subscriber = None
            subscriber.on_error(bad)
            return
        self._asked += n
        while self._subscriber is not None and self._sent < self._asked:
            self._sent += 1
            try:
                item = next(self._items)
            except StopIteration:
                self._subscriber = None
                subscriber.on_complete()
            except BaseException as error:
                self._subscriber = None
                if is_fatal(error):
                    raise
                subscriber.on_error(error)
            else:
                subscriber.on_next(item)

    def cancel(self) -> None:
        self._subscriber = None


UPSTREAMS: Final[tuple[Upstream, ...]] = (
    Upstream("source as it is", lambda flow: flow),
    Upstream("source hidden", _moved(lambda source: source.hide())),
    # A flow as the source of another: a publisher that fuses, and that calls try_on_next.
    Upstream("source pushing", _moved(Flow)),
    Upstream("source re-entrant", _reentrant),
)
"""The ways to change the first source of the flow."""


# -- downstreams


def _iterated(make: _Make, expected: Expected) -> None:
    items: list[Any] = []
    error: BaseException | None = None
    try:
        items.extend(make())
    except BaseException as raised:
        if is_fatal(raised):
            raise
        error = raised
    expected.check_raised(items, error)


def _iterated_partly(make: _Make, expected: Expected) -> None:
    for count in _parts(expected):
        items: list[Any] = []
        for item in make():
            items.append(item)
            if len(items) == count:
                break
        expected.check_prefix(items, count)


def _unbounded(make: _Make, expected: Expected) -> None:
    subscriber: _AnyTestSubscriber = TestSubscriber()
    make().subscribe(subscriber)
    expected.check(subscriber)


def _hidden(make: _Make, expected: Expected) -> None:
    _unbounded(lambda: make().hide(), expected)
    _one_by_one(lambda: make().hide(), expected)


def _stepwise(subscriber: _AnyTestSubscriber, expected: Expected) -> None:
    """Request one item after the other, and check that no more items come than requested."""
    for count in range(1, len(expected.items) + 1):
        subscriber.request(1)
        subscriber.await_items(count, expected.timeout_s)
        subscriber.assert_items(*expected.items[:count])
    if not subscriber.terminated:
        subscriber.request(1)  # The end need not be known before it is requested.
    expected.check(subscriber)


def _one_by_one(make: _Make, expected: Expected) -> None:
    subscriber: _AnyTestSubscriber = TestSubscriber(0)
    make().subscribe(subscriber)
    subscriber.assert_items()
    _stepwise(subscriber, expected)


def _one_by_one_inside(make: _Make, expected: Expected) -> None:
    subscriber: _AnyTestSubscriber = TestSubscriber(1, on_item=lambda self, _: self.request(1))
    make().subscribe(subscriber)
    expected.check(subscriber)


def _exactly(make: _Make, expected: Expected) -> None:
    subscriber: _AnyTestSubscriber = TestSubscriber(len(expected.items))
    make().subscribe(subscriber)
    subscriber.await_items(len(expected.items), expected.timeout_s)
    subscriber.assert_items(*expected.items)
    if not subscriber.terminated:
        subscriber.request(1)
    expected.check(subscriber)


def _in_steps(make: _Make, expected: Expected) -> None:
    subscriber: _AnyTestSubscriber = TestSubscriber(2)
    make().subscribe(subscriber)
    for count in range(2, len(expected.items), 3):
        subscriber.await_items(count, expected.timeout_s)
        subscriber.assert_items(*expected.items[:count])
        subscriber.request(3)
    subscriber.request(UNBOUNDED)
    expected.check(subscriber)


def _late(make: _Make, expected: Expected) -> None:
    subscriber: _AnyTestSubscriber = TestSubscriber(0)
    make().subscribe(subscriber)
    subscriber.assert_items()
    subscriber.request(UNBOUNDED)
    expected.check(subscriber)


def _callbacks(make: _Make, expected: Expected) -> None:
    for prefetch in (None, 1, 3):
        items: list[Any] = []
        errors: list[BaseException | None] = []
        handle = make().subscribe(
            items.append, errors.append, partial(errors.append, None), prefetch=prefetch
        )
        raised: BaseException | None = None
        ended = True
        try:
            ended = handle.wait(expected.timeout_s)
        except BaseException as error:
            throw_if_fatal(error)
            raised = error
        if not ended or len(errors) != 1:
            raise AssertionError(f"expected one terminal, got {errors!r} after {items!r}")
        if raised is not errors[0] or handle.error is not raised:
            raise AssertionError(f"on_error got {errors[0]!r}, but wait() raised {raised!r}")
        expected.check_raised(items, errors[0])


def _conditional(make: _Make, expected: Expected) -> None:
    subscriber: ConditionalTestSubscriber[Any] = ConditionalTestSubscriber()
    make().subscribe(subscriber)
    expected.check(subscriber)


def _conditional_every_other(make: _Make, expected: Expected) -> None:
    """Consume every other item: a rejected item costs no demand."""
    for step in (False, True):
        answers = cycle((False, True))
        subscriber: ConditionalTestSubscriber[Any] = ConditionalTestSubscriber(
            partial(_answer, answers), 0
        )
        make().subscribe(subscriber)
        taken = Expected(expected.items[1::2], expected.error, expected.timeout_s)
        if step:
            _stepwise(subscriber, taken)
        else:
            subscriber.request(UNBOUNDED)
            taken.check(subscriber)
        if subscriber.rejected != expected.items[::2]:
            raise AssertionError(f"expected to turn down every other one, {subscriber.rejected!r}")


def _fused(mode: Fusion) -> Callable[[_Make, Expected], None]:
    def run(make: _Make, expected: Expected) -> None:
        subscriber: _AnyTestSubscriber = TestSubscriber(fusion=mode)
        make().subscribe(subscriber)
        expected.check(subscriber)
        subscriber = TestSubscriber(0, fusion=mode)
        make().subscribe(subscriber)
        _stepwise(subscriber, expected)

    return run


def _fused_partly(make: _Make, expected: Expected) -> None:
    for count in _parts(expected):
        subscriber: _AnyTestSubscriber = TestSubscriber(count, fusion=Fusion.SYNC)
        make().subscribe(subscriber)
        subscriber.await_items(count, expected.timeout_s)
        subscriber.cancel()
        expected.check_prefix(subscriber.items, count)
        subscriber.assert_rules_kept()


def _cancelled_inside(make: _Make, expected: Expected) -> None:
    for count in _parts(expected):
        for request in (UNBOUNDED, count):
            subscriber: _AnyTestSubscriber = TestSubscriber(
                request, on_item=partial(_cancel_after, count)
            )
            make().subscribe(subscriber)
            subscriber.await_items(count, expected.timeout_s)
            expected.check_prefix(subscriber.items, count)
            subscriber.assert_rules_kept()


def _cancelled_outside(make: _Make, expected: Expected) -> None:
    for count in (0, *_parts(expected)):
        subscriber: _AnyTestSubscriber = TestSubscriber(count)
        make().subscribe(subscriber)
        subscriber.await_items(count, expected.timeout_s)
        subscriber.cancel()
        subscriber.cancel()
        subscriber.request(UNBOUNDED)
        expected.check_prefix(subscriber.items, count)
        subscriber.assert_rules_kept()


def _cancelled_at_once(make: _Make, _: Expected) -> None:
    subscriber: _AnyTestSubscriber = TestSubscriber()
    subscriber.cancel()
    make().subscribe(subscriber)
    subscriber.assert_items()


def _requested_by_two(make: _Make, expected: Expected) -> None:
    subscriber: _AnyTestSubscriber = TestSubscriber(0)
    make().subscribe(subscriber)
    for _ in range(2):
        race(lambda: subscriber.request(1), lambda: subscriber.request(1))
    subscriber.await_items(min(4, len(expected.items)), expected.timeout_s)
    expected.check_prefix(subscriber.items, 4)
    subscriber.request(UNBOUNDED)
    expected.check(subscriber)


def _cancelled_in_a_race(make: _Make, expected: Expected) -> None:
    subscriber: _AnyTestSubscriber = TestSubscriber(0)
    make().subscribe(subscriber)
    race(lambda: subscriber.request(UNBOUNDED), subscriber.cancel)
    expected.check_prefix(subscriber.items, len(subscriber.items))
    subscriber.assert_rules_kept()


def _asynchronous(make: _Make, expected: Expected) -> None:
    items: list[Any] = []

    async def consume() -> BaseException | None:
        try:
            async for item in make():
                items.append(item)  # noqa: PERF401 - what came before an error counts, too
        except BaseException as error:
            if is_fatal(error):
                raise
            return error
        return None

    def run() -> None:
        loop = asyncio.new_event_loop()
        try:
            error = loop.run_until_complete(asyncio.wait_for(consume(), expected.timeout_s))
        finally:
            loop.close()
        expected.check_raised(items, error)

    if running_loop() is None:
        run()
        return
    with ThreadPoolExecutor(1) as pool:  # a thread has one loop at most
        pool.submit(run).result()


def _answer(answers: Iterator[bool], _: object) -> bool:
    return next(answers)


def _cancel_after(count: int, subscriber: _AnyTestSubscriber, _: object) -> None:
    if len(subscriber.items) == count:
        subscriber.cancel()


def _parts(expected: Expected) -> tuple[int, ...]:
    """Return after how many items to leave, one number per run."""
    whole = len(expected.items)
    return tuple(sorted({1, whole // 2, whole} - {0})) if whole else ()


DOWNSTREAMS: Final[tuple[Downstream, ...]] = (
    Downstream("iterated", _iterated),
    Downstream("iterated partly", _iterated_partly, cancels=True),
    Downstream("async for", _asynchronous),
    Downstream("requested at once", _unbounded),
    Downstream("requested one by one", _one_by_one),
    Downstream("requested one by one in on_next", _one_by_one_inside),
    Downstream("requested exactly", _exactly),
    Downstream("requested in steps", _in_steps),
    Downstream("requested late", _late),
    Downstream("requested by two threads", _requested_by_two),
    Downstream("functions as subscriber", _callbacks),
    Downstream("hidden", _hidden),
    Downstream("conditional", _conditional),
    Downstream("conditional, every other item", _conditional_every_other),
    Downstream("fused", _fused(Fusion.SYNC)),
    Downstream("fused in any mode", _fused(Fusion.ANY)),
    Downstream("fused across threads", _fused(Fusion.SYNC | Fusion.THREAD_BOUNDARY)),
    Downstream("fused, cancelled", _fused_partly, cancels=True),
    Downstream("cancelled in on_subscribe", _cancelled_at_once, cancels=True),
    Downstream("cancelled in on_next", _cancelled_inside, cancels=True),
    Downstream("cancelled between items", _cancelled_outside, cancels=True),
    Downstream("cancelled in a race", _cancelled_in_a_race, cancels=True),
)
"""The ways to consume the flow."""
