"""Checks that a flow which has ended releases everything: its subscriber, items and operators."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, total_ordering
from typing import Any, Final, NamedTuple, final

from flow_core.flow import Flow
from flow_core.protocols import Fusion, Publisher, QueueSubscription, Subscriber, Subscription
from flow_core.serial import HAS_GIL
from flow_testing.drops import recorded_drops
from flow_testing.publisher import TestPublisher
from flow_testing.subscriber import TIMEOUT_S, TestSubscriber

__all__ = ["ENDINGS", "Ending", "Payload", "PayloadError", "Payloads", "assert_released"]


class PayloadError(Exception):
    """The error with which `Payloads` can fail."""


@final
@total_ordering
class Payload:
    """An item that can be watched, unlike a builtin int; in arithmetic, it is the int `n`."""

    __slots__ = ("__weakref__", "n")

    def __init__(self, n: int) -> None:
        self.n = n

    def __index__(self) -> int:
        return self.n

    def __hash__(self) -> int:
        return hash(self.n)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (int, Payload)) and self.n == int(other)

    def __lt__(self, other: int | Payload) -> bool:
        return self.n < int(other)

    def __add__(self, other: int | Payload) -> int:
        return self.n + int(other)

    __radd__ = __add__

    def __sub__(self, other: int | Payload) -> int:
        return self.n - int(other)

    def __rsub__(self, other: int) -> int:
        return other - self.n

    def __mul__(self, other: int | Payload) -> int:
        return self.n * int(other)

    __rmul__ = __mul__

    def __mod__(self, other: int) -> int:
        return self.n % other

    def __floordiv__(self, other: int) -> int:
        return self.n // other

    def __repr__(self) -> str:
        return f"Payload({self.n})"


class _Watched(NamedTuple):
    what: str
    alive: weakref.ref[Any]  # Any: objects of every kind are watched


@final
class Payloads:
    """An iterable of watched items, with watched iterators and a watched error.

    `assert_released` passes it to the function that makes the flow.

    Args:
        count: how many items there are.
        fails: whether an error follows the items.
    """

    __slots__ = ("_count", "_fails", "chains", "errors", "items")

    def __init__(self, count: int, fails: bool) -> None:
        self._count = count
        self._fails = fails
        self.items: list[_Watched] = []
        self.chains: list[_Watched] = []
        self.errors: list[_Watched] = []

    def __iter__(self) -> Iterator[Payload]:
        items = self._generate()
        # An object that lives as long as its upstream keeps this alive.
        self.chains.append(_Watched("the iterator of its items", weakref.ref(items)))
        return items

    def item(self, n: int = 0) -> Payload:
        """Return a single watched item that stands for the number `n`."""
        item = Payload(n)
        self.items.append(_Watched(repr(item), weakref.ref(item)))
        return item

    def error(self) -> PayloadError:
        """Return a watched error."""
        error = PayloadError()
        self.errors.append(_Watched("its error", weakref.ref(error)))
        return error

    @property
    def fails(self) -> bool:
        """Return whether the items end with an error."""
        return self._fails

    def pushed(self) -> Flow[Payload]:
        """Return a flow of a publisher that sends the items on request, and does not fuse."""
        return Flow(_Pushing(self))

    def _generate(self) -> Generator[Payload]:
        for n in range(self._count):
            yield self.item(n)
        if self._fails:
            raise self.error()


@final
class _Pushing(Publisher[Payload]):
    """A publisher that sends the items of `Payloads` on request."""

    __slots__ = ("_payloads",)

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def subscribe(self, subscriber: Subscriber[Payload], /) -> None:
        items = iter(self._payloads)
        publisher = TestPublisher[Payload](on_request=partial(_answer, items))
        self._payloads.chains.append(_Watched("its upstream's publisher", weakref.ref(publisher)))
        publisher.subscribe(subscriber)


def _answer(items: Iterator[Payload], publisher: TestPublisher[Payload], _: int) -> None:
    while publisher.outstanding and not publisher.terminated and not publisher.cancelled:
        try:
            item = next(items)
        except StopIteration:
            publisher.complete()
            return
        except PayloadError as error:
            publisher.error(error)
            return
        publisher.next(item)


_AnySubscriber = TestSubscriber[Any]  # Any: the checks do not look at the items


@final
@dataclass(frozen=True)
class Ending:
    """One way in which a flow ends.

    Args:
        name: the name in messages, also useful as a test's id.
        make: makes the subscriber.
        end: ends the flow, if subscribing alone does not end it.
        fails: whether the source fails.
    """

    name: str
    make: Callable[[], _AnySubscriber] = field(repr=False)
    end: Callable[[_AnySubscriber], object] = field(default=lambda _: None, repr=False)
    fails: bool = False


def _cancel(subscriber: _AnySubscriber) -> None:
    subscriber.cancel()


def _cancel_inside(subscriber: _AnySubscriber, _: object) -> None:
    subscriber.cancel()


def _await_end(subscriber: _AnySubscriber) -> None:
    subscriber.await_terminal(TIMEOUT_S)


def _request_and_cancel(subscriber: _AnySubscriber) -> None:
    subscriber.request(2)
    subscriber.cancel()


def _cancel_and_clear(subscriber: _AnySubscriber) -> None:
    _cancel(subscriber)
    queue: Any = subscriber.subscription  # Any: of the operator's items
    if isinstance(queue, QueueSubscription):
        queue.clear()  # like a subscriber that polls


ENDINGS: Final[tuple[Ending, ...]] = (
    Ending("completed", TestSubscriber, _await_end),
    Ending("completed, one by one", lambda: TestSubscriber(1, on_item=_one_more), _await_end),
    Ending("completed, fused", lambda: TestSubscriber(fusion=Fusion.ANY), _await_end),
    Ending("failed", TestSubscriber, _await_end, fails=True),
    Ending("failed, fused", lambda: TestSubscriber(fusion=Fusion.ANY), _await_end, fails=True),
    Ending("cancelled at once", lambda: TestSubscriber(0), _cancel),
    Ending("cancelled between items", lambda: TestSubscriber(0), _request_and_cancel),
    Ending("cancelled in on_next", lambda: TestSubscriber(on_item=_cancel_inside)),
    Ending(
        "cancelled, fused",
        lambda: TestSubscriber(1, fusion=Fusion.ANY),
        _cancel_and_clear,
    ),
    Ending("a wrong request", lambda: TestSubscriber(1), lambda subscriber: subscriber.request(0)),
)
"""The ways in which flows end."""


def _one_more(subscriber: _AnySubscriber, _: object) -> None:
    subscriber.request(1)


def assert_released(
    make: Callable[[Payloads], Flow[Any]],  # Any: the checks do not look at the items
    *,
    count: int = 6,
    keeps_error: bool = False,
    settle: Callable[[], object] = lambda: None,
    only: Callable[[str], object] = lambda _: True,
) -> None:
    """Check that a flow which has ended releases everything at once, without the cyclic collector.

    Without the GIL, an object that another thread drops may wait for the thread that created it: in
    that case, the check runs the collector.

    For each of `ENDINGS`, the flow is run to its end. Then the references that the test itself
    holds are dropped, one by one:

    1. the subscriber is gone while the flow and the subscription are still held (§3.13);
    2. the items and the error are gone while the subscription is still held;
    3. without the subscription, nothing of the chain is left.

    >>> assert_released(lambda payloads: payloads.pushed().distinct())

    Args:
        make: makes the flow of the `Payloads` that it gets: they are an iterable for a source, and
            ``payloads.pushed()`` is a flow for an operator behind a publisher.
        count: how many items there are.
        keeps_error: whether the error may live as long as the subscription: a processor keeps it
            for later subscribers.
        settle: called before each check; returns when other threads have dropped their references,
            too.
        only: the name of a single ending to try, to narrow a failure down.

    Raises:
        AssertionError: if something is still alive; the message names it, and what refers to it.
    """
    for ending in ENDINGS:
        if only(ending.name):
            try:
                with recorded_drops() as drops, _without_gc():
                    payloads = Payloads(count, ending.fails)
                    subscription = _end(make(payloads), ending, settle)
                    drops.take_items()  # a hook may keep dropped items
                    drops.take_errors()
                    settle()
                    errors = [] if keeps_error else payloads.errors
                    _assert_gone([*payloads.items, *errors], "while its subscription is held")
                    del subscription
                    settle()
                    _assert_gone(
                        [*payloads.chains, *payloads.errors], "though its subscription was released"
                    )
            except AssertionError as failure:
                failure.add_note(f"the flow was {ending.name}")
                raise


@contextmanager
def _without_gc() -> Generator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _end(flow: Flow[Any], ending: Ending, settle: Callable[[], object]) -> Subscription:
    """Run the flow to its end, and check that the subscriber is released.

    Return the subscription.
    """
    subscriber = ending.make()
    alive = _Watched("its subscriber", weakref.ref(subscriber))
    flow.subscribe(subscriber)
    ending.end(subscriber)
    _forget_frames(subscriber.error)
    subscription = subscriber.subscription
    del subscriber
    settle()
    _assert_gone([alive], "while the flow and its subscription are held")
    return subscription


def _forget_frames(error: BaseException | None) -> None:
    """Clear the frames in an error's traceback, which keep what they have used alive (X14)."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _assert_gone(watched: list[_Watched], when: str) -> None:
    if not HAS_GIL:  # an object that another thread has dropped waits for its creator, or for this
        gc.collect()
    left = [(what, alive()) for what, alive in watched if alive() is not None]
    if left:
        what, thing = left[0]
        others = f" and {len(left) - 1} more" if len(left) > 1 else ""
        del left
        raise AssertionError(f"{what}{others} lives on {when}; referred to by {_referrers(thing)}")


def _referrers(thing: object) -> str:
    found = [
        referrer
        for referrer in gc.get_referrers(thing)
        if getattr(referrer, "f_code", None) not in _OWN
    ]
    return ", ".join(_described(referrer) for referrer in found) or "nothing that can be found"


def _described(referrer: object) -> str:
    code = getattr(referrer, "f_code", None)
    if code is not None:
        return f"the frame of {code.co_name}()"
    return f"{type(referrer).__name__} {str(referrer)[:80]}"


_OWN: Final = (_assert_gone.__code__, _referrers.__code__, _end.__code__, assert_released.__code__)
