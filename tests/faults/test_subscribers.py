"""A subscriber that raises gets nothing more, its upstream ends, and its error is known once.

It is raised to the caller, as the thread that subscribes, requests or sends, or it reaches
the hook for dropped errors; never both, and never none.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.homes import library_loop
from flow_core.protocols import EMPTY, CoreSubscriber, Fusion, QueueSubscription, Subscription
from flow_testing import TestPublisher, VirtualClock
from flow_testing.tck.registry import SOURCES

WAIT_S = 20
CALLBACKS = ("on_subscribe", "on_next", "on_error", "on_complete")
ITEMS = (1, 2, 3, 4)
PASSES_ON = {"hide", "do_on_request", "lift", "context_capture", "context_write"}
"""Add nothing to what their source does: one that continues after an error is let through."""


class FaultError(Exception):
    """The error that a subscriber raises here."""


class SourceError(Exception):
    """The error of a source."""


class Plain:
    """A subscriber of a stranger: what it raises is kept from the flow by the strict guard."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.error = FaultError(where)
        self.signals: list[str] = []
        self.raised = False
        self.over = threading.Event()
        self.subscription: Any = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        subscription.request(100)
        self.signal("on_subscribe")

    def on_next(self, _: Any, /) -> None:
        self.signal("on_next")

    def on_error(self, _: BaseException, /) -> None:
        self.signal("on_error")

    def on_complete(self) -> None:
        self.signal("on_complete")

    def signal(self, name: str) -> None:
        self.signals.append(name)
        if name == self.where and not self.raised:
            self.raised = True
            self.over.set()
            raise self.error
        if name in {"on_error", "on_complete"}:
            self.over.set()

    def poll(self) -> None:
        """Take the items, if they wait to be polled."""

    @property
    def after(self) -> list[str]:
        """The signals that came after it had raised."""
        return self.signals[self.signals.index(self.where) + 1 :] if self.raised else []


class OfTheLibrary(Plain, CoreSubscriber[Any]):
    """As the library's own: no guard is before it."""


class Fused(OfTheLibrary):
    """Polls the queue of its upstream."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.mode = Fusion.NONE

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if isinstance(subscription, QueueSubscription):
            self.mode = subscription.request_fusion(Fusion.ANY)
        if self.mode is not Fusion.SYNC:
            subscription.request(100)
        self.signal("on_subscribe")

    def on_next(self, item: Any, /) -> None:
        if self.mode is Fusion.ASYNC:
            self._take()
        else:
            super().on_next(item)

    def poll(self) -> None:
        if self.mode is Fusion.SYNC and not self.raised and self._take():
            self.on_complete()

    def _take(self) -> bool:
        try:
            while self.subscription.poll() is not EMPTY:
                self.signal("on_next")
        except FaultError:
            self.subscription.cancel()
            raise
        except BaseException as error:
            self.subscription.cancel()
            self.on_error(error)
            return False
        return True


SUBSCRIBERS: tuple[type[Plain], ...] = (Plain, OfTheLibrary, Fused)


class Pulled:
    """An upstream that is an iterator, and knows whether it was closed."""

    def __init__(self, fails: bool, hidden: bool) -> None:
        self.closed = True
        made = flow.from_iterable(self._items(fails))
        self.flow = made.hide() if hidden else made

    def _items(self, fails: bool) -> Iterator[int]:
        self.closed = False
        try:
            yield from ITEMS
            if fails:
                raise SourceError
        finally:
            self.closed = True

    def send(self, attempt: Callable[[Callable[[], object]], None]) -> None:
        """It is asked for its items."""


class Pushed:
    """An upstream that sends, until it is cancelled or what it calls raises."""

    def __init__(self, fails: bool) -> None:
        self._source = TestPublisher[int]()
        self._fails = fails
        self.flow = Flow(self._source)
        self.raised = False

    def send(self, attempt: Callable[[Callable[[], object]], None]) -> None:
        source = self._source
        if not source.subscribed:
            return
        signals: list[Callable[[], object]] = [lambda n=n: source.next(n) for n in ITEMS]
        end = (lambda: source.error(SourceError())) if self._fails else source.complete
        for signal in (*signals, end):
            if not source.cancels and not (signal is not end and not source.outstanding):
                attempt(signal)

    @property
    def closed(self) -> bool:
        return bool(self._source.cancels) or self._source.terminated or not self._source.subscribed


UPSTREAMS: dict[str, Callable[[bool], Any]] = {
    "an iterator": lambda fails: Pulled(fails, hidden=False),
    "an iterator behind a boundary": lambda fails: Pulled(fails, hidden=True),
    "a publisher": Pushed,
}


def check(
    subscriber: Plain, raised: list[BaseException], drops: Any, ends: bool = True
) -> list[str]:
    """Return the faults that were found."""
    found: list[str] = []
    known = [error for error in (*raised, *drops.errors) if error is subscriber.error]
    if len(known) != subscriber.raised:
        found.append(f"its error is known {len(known)} times")
    others = [error for error in (*raised, *drops.errors) if error is not subscriber.error]
    if subscriber.raised and others:
        found.append(f"there are other errors: {others!r}")
    if subscriber.after:
        found.append(f"it got {subscriber.after}")
    if not ends:
        found.append("the upstream goes on")
    return found


def test_a_subscriber_that_raises_gets_nothing_more(tried: Any, drops: Any) -> None:
    failed: dict[str, list[str]] = {}
    left: dict[str, weakref.ref[Plain]] = {}
    gc.collect(0)
    gc.freeze()  # to look at nothing else
    try:
        for make, where, upstream in itertools.product(SUBSCRIBERS, CALLBACKS, UPSTREAMS):
            if upstream == "a publisher" and tried.name in PASSES_ON and make is not Plain:
                continue  # it is for the publisher, which gets the error, to stop
            name = f"{make.__name__}.{where}, {upstream}"
            source = UPSTREAMS[upstream](where == "on_error")
            seen, left[name] = _run(tried, make(where), source, drops)
            if seen:
                failed[name] = seen
        gc.collect()
    finally:
        gc.unfreeze()
    assert failed == {}
    assert [name for name, case in left.items() if case() is not None] == []


def _run(
    tried: Any, subscriber: Plain, source: Any, drops: Any
) -> tuple[list[str], weakref.ref[Plain]]:
    clock = VirtualClock()
    raised: list[BaseException] = []

    def attempt(action: Callable[[], object]) -> None:
        if subscriber.raised and raised:
            return  # a source that got the error does not continue
        try:
            action()
        except Exception as error:
            raised.append(error)

    attempt(lambda: tried.make(source.flow, lambda task: task(), clock).subscribe(subscriber))
    attempt(subscriber.poll)
    source.send(attempt)
    for _ in ITEMS:
        attempt(lambda: clock.advance_by(1))
    seen = check(subscriber, raised, drops, source.closed)
    for error in (*raised, *drops.errors):
        error.__traceback__ = None
    drops.errors.clear()
    drops.items.clear()
    return seen, weakref.ref(subscriber)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@pytest.mark.usefixtures("nothing_left")
def test_a_subscriber_of_a_source_that_raises_gets_nothing_more(source: Any, drops: Any) -> None:
    failed: dict[str, list[str]] = {}
    for make, where in itertools.product(SUBSCRIBERS, CALLBACKS):
        count = source.facts.get("max_items", 4)
        made: Any = None
        if where == "on_error":
            made = None if source.fail is None else source.fail(SourceError())
        elif source.create is not None:
            made = source.create(count)
        if made is None or (where == "on_next" and count == 0):
            continue  # it has no items, or cannot fail
        seen = _run_source(made, make(where), drops)
        if seen:
            failed[f"{make.__name__}.{where}"] = seen
    assert failed == {}


async def _others_ended() -> None:
    """The tasks of this loop have ended, in which sources of coroutines run."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)


def _run_source(made: Any, subscriber: Plain, drops: Any) -> list[str]:
    raised: list[BaseException] = []
    for action in (lambda: made.subscribe(subscriber), subscriber.poll):
        if not raised:
            try:
                action()
            except FaultError as error:
                raised.append(error)
    assert subscriber.over.wait(WAIT_S)
    asyncio.run_coroutine_threadsafe(_others_ended(), library_loop()).result(WAIT_S)
    seen = check(subscriber, raised, drops)
    for error in (*raised, *drops.errors):
        error.__traceback__ = None
    drops.errors.clear()
    return seen
