"""Leaving `concat_map`: what is cancelled, closed, dropped and let go."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import flow_core as flow
from flow_ops import concat_map, observe_on
from flow_testing import TestPublisher, TestSubscriber, Violation, race, recorded_drops

WAIT_S = 20


def noting(closed, items):
    """A generator that notes in which thread it is closed."""
    try:
        yield from items
    finally:
        closed.append(threading.get_ident())


@pytest.mark.checklist("P25")
def test_cancel_reaches_the_upstream_and_the_inner_flow():
    outer, inner = TestPublisher(), TestPublisher()
    seen = TestSubscriber()
    flow.Flow(outer).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen)
    outer.next(1)
    seen.cancel()
    seen.cancel()
    outer.assert_cancelled()
    inner.assert_cancelled()
    assert (outer.cancels, inner.cancels) == (1, 1)
    seen.assert_not_terminated()


def test_an_inner_flow_that_ends_is_not_cancelled():
    outer, inner = TestPublisher(), TestPublisher()
    seen = TestSubscriber()
    flow.Flow(outer).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen)
    outer.next(1)
    inner.complete()
    outer.complete()
    seen.assert_result()
    outer.assert_not_cancelled()
    inner.assert_not_cancelled()


def test_an_inner_flow_that_is_late_is_cancelled():
    """It brings its subscription when the flow has been cancelled."""

    class Late:
        def subscribe(self, subscriber):
            self.subscriber = subscriber

    late, inner = Late(), TestPublisher()
    seen = TestSubscriber()
    flow.just(1, 2).pipe(concat_map(lambda _: flow.Flow(late))).subscribe(seen)
    seen.cancel()
    inner.subscribe(late.subscriber)
    inner.assert_cancelled()
    inner.assert_requests()


def test_a_second_subscription_of_an_inner_flow_is_cancelled():
    inner = TestPublisher()
    flow.just(1, 2).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen := TestSubscriber())
    assert inner.subscribe_again().cancelled
    inner.assert_not_cancelled().next("a")
    seen.assert_items("a")


def test_waiting_items_are_dropped(dropped):
    outer, inner = TestPublisher(Violation.IGNORED_CANCEL), TestPublisher(Violation.IGNORED_CANCEL)
    seen = TestSubscriber()
    flow.Flow(outer).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen)
    outer.next(1, 2, 3)
    seen.cancel()
    assert dropped.items == [2, 3]
    inner.next("late")
    outer.next(4)
    assert dropped.items == [2, 3, "late", 4]
    seen.assert_items()


def test_delayed_errors_that_no_subscriber_gets_are_dropped(dropped):
    failure = ValueError("no")
    made = flow.range(9).pipe(
        concat_map(lambda n: flow.just(n) if n else flow.error(failure), delay_error=True)
    )
    seen = TestSubscriber(1)
    made.subscribe(seen)
    seen.cancel()
    assert dropped.errors == [failure]
    items = iter(made)
    assert next(items) == 1
    items.close()
    assert dropped.errors == [failure, failure]


@pytest.mark.checklist("X09")
@pytest.mark.parametrize("stage", [False, True])
@pytest.mark.parametrize("where", ["inside", "outside", "iterated"])
def test_generators_are_closed(stage, where):
    outer_closed, inner_closed = [], []

    def inner(_):
        made = flow.from_iterable(noting(inner_closed, range(9)))
        return made.map(lambda n: n) if stage else made

    outer = flow.from_iterable(noting(outer_closed, range(9)))
    made = (outer.map(lambda n: n) if stage else outer).pipe(concat_map(inner))
    if where == "iterated":
        items = iter(made)
        assert next(items) == 0
        items.close()
    elif where == "inside":
        made.subscribe(TestSubscriber(on_item=lambda self, _: self.cancel()))
    else:
        made.subscribe(seen := TestSubscriber(1))
        assert inner_closed == []
        seen.cancel()
    assert outer_closed == inner_closed == [threading.get_ident()]


@pytest.mark.checklist("X09")
def test_generators_are_closed_by_the_thread_that_runs_them():
    closed = []
    ready, go = threading.Event(), threading.Event()

    def on_item(_, item):
        if item == 1:
            ready.set()
            assert go.wait(WAIT_S)

    with ThreadPoolExecutor(1) as pool:
        worker = pool.submit(threading.get_ident).result()
        seen = TestSubscriber(0, on_item=on_item)
        flow.range(3).pipe(
            concat_map(lambda _: flow.from_iterable(noting(closed, range(9))))
        ).subscribe(seen)
        running = pool.submit(seen.request, 9)
        assert ready.wait(WAIT_S)
        seen.cancel()
        assert closed == []
        go.set()
        running.result(WAIT_S)
    assert closed == [worker]
    seen.assert_items(0, 1)


@pytest.mark.checklist("X09")
def test_a_generator_that_raises_when_it_is_closed_does_not_disturb(dropped):
    failure = ValueError("finally")

    def bad():
        try:
            yield 1
            yield 2
        finally:
            raise failure

    seen = TestSubscriber(1)
    flow.range(3).pipe(concat_map(lambda _: flow.from_iterable(bad()))).subscribe(seen)
    seen.cancel()
    seen.assert_items(1).assert_not_terminated()
    assert dropped.errors == [failure]


@pytest.mark.parametrize("where", ["outer", "inner", "empty inner"])
def test_an_endless_loop_without_items_is_left(where):
    """Nothing reaches the subscriber, but the loops look whether they are wanted."""
    started = threading.Event()

    def endless():
        while True:
            started.set()
            yield 1

    drops_all = flow.from_iterable(endless()).filter(lambda _: False)
    made = {
        "outer": lambda: drops_all.pipe(concat_map(flow.just)),
        "inner": lambda: flow.range(3).pipe(concat_map(lambda _: drops_all)),
        "empty inner": lambda: flow.from_iterable(endless()).pipe(
            concat_map(lambda _: flow.empty())
        ),
    }[where]()
    seen = TestSubscriber(0)
    made.subscribe(seen)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(seen.request, 1)
        assert started.wait(WAIT_S)
        seen.cancel()
        running.result(WAIT_S)
    seen.assert_items().assert_not_terminated()


class Heavy:
    """Something whose life can be watched."""


class Holder(TestSubscriber):
    __slots__ = ()


@pytest.mark.checklist("P25")
@pytest.mark.parametrize("end", ["cancelled", "completed", "failed", "bad request"])
@pytest.mark.parametrize("inner", ["inline", "subscribed"])
@pytest.mark.parametrize("outer", ["pulled", "pushed"])
def test_the_subscriber_is_let_go(outer, inner, end):
    """By refcount alone: nothing waits for the garbage collector."""
    publisher, last = TestPublisher(), TestPublisher()
    source = flow.Flow(publisher) if outer == "pushed" else flow.just(1, 2)

    def mapper(n):
        if n == 2 and end == "failed":
            return flow.error(failure)
        return flow.just(n) if inner == "inline" or n == 2 else flow.Flow(last)

    failure = ValueError("no")
    gc.disable()
    try:
        seen = TestSubscriber(1 if end in ("cancelled", "bad request") else 9)
        watched = weakref.ref(seen)
        source.pipe(concat_map(mapper)).subscribe(seen)
        subscription = seen.subscription
        if outer == "pushed":
            publisher.next(1, 2)
        if inner == "subscribed":
            last.next("a")
        if end == "cancelled":
            seen.cancel()
        elif end == "bad request":
            seen.request(0)
        else:
            if inner == "subscribed":
                last.complete()
            if outer == "pushed":
                publisher.complete()
        assert seen.terminated or end == "cancelled"
        failure.__traceback__ = None
        if seen.error is not None:
            seen.error.__traceback__ = None
        del seen
        assert watched() is None
        subscription.cancel()
        subscription.request(1)
    finally:
        gc.enable()


def test_items_are_let_go():
    gc.disable()
    try:
        alive = []

        def on_item(_, item):
            alive.append(sum(ref() is not None for ref in refs))

        refs = []

        def make(_):
            heavy = Heavy()
            refs.append(weakref.ref(heavy))
            return flow.just(heavy)

        seen = TestSubscriber(on_item=on_item)
        seen.items = type("Nothing", (list,), {"append": lambda *_: None})()
        seen.signals = type("Nothing", (list,), {"append": lambda *_: None})()
        flow.range(5).pipe(concat_map(make)).subscribe(seen)
        assert alive == [1, 1, 1, 1, 1]
        assert [ref() for ref in refs] == [None] * 5
    finally:
        gc.enable()


# -- races


@pytest.mark.parametrize("inner", ["inline", "subscribed", "threaded"])
@pytest.mark.parametrize("outer", ["pulled", "pushed", "threaded"])
def test_cancel_races_with_everything(outer, inner):
    with ThreadPoolExecutor(2) as pool:

        def mapper(n):
            made = flow.range(n)
            if inner == "threaded":
                return made.pipe(observe_on(pool))
            return made.hide() if inner == "subscribed" else made.map(lambda m: m)

        for _ in range(30):
            source = flow.range(20).map(lambda n: n)
            if outer == "pushed":
                source = source.hide()
            elif outer == "threaded":
                source = source.pipe(observe_on(pool, prefetch=4))
            seen = TestSubscriber(0)
            expected = [m for n in range(20) for m in range(n)]
            with recorded_drops() as drops:
                source.pipe(concat_map(mapper, prefetch=3)).subscribe(seen)
                race(partial(seen.request, 100), seen.cancel)
                drops.assert_no_errors()
            items = list(seen.items)
            assert items == expected[: len(items)]
            seen.assert_rules_kept()


@pytest.mark.slow
def test_the_end_of_an_inner_flow_races_with_a_request():
    for _ in range(200):
        first, second = TestPublisher(), TestPublisher()
        inner = {1: first, 2: second}
        seen = TestSubscriber(1)
        flow.just(1, 2).pipe(concat_map(lambda n, i=inner: flow.Flow(i[n]))).subscribe(seen)
        first.next("a")
        race(partial(seen.request, 3), first.complete)
        assert sum(second.requests) == 3
        second.next("b", "c", "d").complete()
        seen.assert_result("a", "b", "c", "d")


def test_a_bad_request_races_with_an_inner_flow():
    for _ in range(200):
        inner = TestPublisher(Violation.IGNORED_CANCEL)
        seen = TestSubscriber()
        flow.just(1, 2).pipe(concat_map(lambda _, inner=inner: flow.Flow(inner))).subscribe(seen)
        with recorded_drops():
            race(partial(seen.request, -1), partial(inner.next, *range(20)))
        seen.await_terminal()
        seen.assert_failure(ValueError, *range(len(seen.items)))


def test_items_of_the_upstream_race_with_the_end_of_an_inner_flow():
    def send(outer):
        outer.next(*range(1, 20)).complete()

    for _ in range(100):
        outer, inner = TestPublisher(), TestPublisher()
        mapper = {0: flow.Flow(inner)}
        seen = TestSubscriber()
        flow.Flow(outer).pipe(concat_map(lambda n, m=mapper: m.get(n) or flow.just(n))).subscribe(
            seen
        )
        outer.next(0)
        race(partial(send, outer), inner.complete)
        seen.await_terminal().assert_result(*range(1, 20))
