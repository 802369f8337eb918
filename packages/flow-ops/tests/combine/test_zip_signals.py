"""Errors, demand and cancel of `zip`."""

from __future__ import annotations

from threading import Event

import pytest

import flow_core as flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_ops import observe_on, zip_with
from flow_ops import zip as zip_flows
from flow_testing import (
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_result,
    recorded_drops,
)


def zipped(*, request=flow.UNBOUNDED, **more):
    """A subscription to two flows that the test plays."""
    left, right = TestPublisher(), TestPublisher()
    subscriber = TestSubscriber(request)
    zip_flows(flow.Flow(left), flow.Flow(right), **more).subscribe(subscriber)
    return left, right, subscriber


def hidden(source, hide):
    return source.hide() if hide else source


BOTH = pytest.mark.parametrize("hide", [False, True], ids=["iterated", "subscribed"])


# -- errors


@BOTH
@pytest.mark.usefixtures("dropped")
def test_an_error_of_a_flow_fails_it(hide):
    error = LookupError("left")

    def failing():
        return flow.range(2).map(lambda n: _raise(error) if n else n)

    # What has been hidden fails at once, before its items have found their partners.
    more = {"delay_error": hide}
    assert_result(
        lambda: zip_flows(hidden(failing(), hide), flow.range(9), **more), [(0, 0)], error
    )
    assert_result(
        lambda: zip_flows(flow.range(9), hidden(failing(), hide), **more), [(0, 0)], error
    )


def _raise(error):
    raise error


@BOTH
@pytest.mark.usefixtures("dropped")
def test_none_in_a_flow_is_an_error(hide):
    def made():
        source = hidden(flow.from_iterable([1, None]), hide)
        return zip_flows(source, flow.range(9), delay_error=hide)

    assert_result(made, [(1, 0)], NoneItemError)


def test_an_error_overtakes_waiting_items():
    left, right, subscriber = zipped(request=1)
    left.next(1, 2)
    right.next(1, 2)
    error = ValueError("right")
    with recorded_drops() as drops:
        right.error(error)
    subscriber.assert_failure(error, (1, 1))
    left.assert_cancelled()
    right.assert_not_cancelled()
    assert sorted(drops.items) == [2, 2]


def test_a_delayed_error_comes_after_the_items_of_its_flow():
    left, right, subscriber = zipped(delay_error=True)
    error = ValueError("left")
    left.next(1, 2)
    left.error(error)
    subscriber.assert_not_terminated()
    right.next("a")
    subscriber.assert_not_terminated()
    right.next("b")
    subscriber.assert_failure(error, (1, "a"), (2, "b"))
    right.assert_cancelled()


def test_delayed_errors_come_together():
    left, right, subscriber = zipped(delay_error=True, request=0)
    left.next(1)
    left.error(ValueError("left"))
    with recorded_drops() as drops:
        right.error(KeyError("right"))
    subscriber.assert_failure(ExceptionGroup)
    assert {type(error) for error in subscriber.error.exceptions} == {ValueError, KeyError}
    assert drops.items == [1]


def test_an_error_after_the_end_is_dropped():
    left, right, subscriber = zipped()
    left.complete()
    subscriber.assert_result()
    right.assert_cancelled()


def test_a_flow_that_sends_too_much_fails_it():
    left, right = TestPublisher(violations=Violation.OVERFLOW), TestPublisher()
    subscriber = TestSubscriber()
    zip_flows(flow.Flow(left), flow.Flow(right), prefetch=2).subscribe(subscriber)
    with recorded_drops() as drops:
        left.next(1, 2, 3, 4)
    subscriber.assert_failure(MissingBackpressureError)
    left.assert_cancelled()
    right.assert_cancelled()
    assert sorted(drops.items) == [1, 2, 3, 4]


def test_arguments_are_checked_when_it_is_assembled():
    for wrong in (None, [1], 3):
        with pytest.raises(TypeError, match="takes flows"):
            zip_flows(flow.range(3), wrong)
        with pytest.raises(TypeError, match="takes flows"):
            zip_with(wrong)
    with pytest.raises(TypeError):
        zip_flows(flow.range(3), prefetch="3")
    for make in (lambda: zip_flows(prefetch=0), lambda: zip_with(flow.range(3), prefetch=0)):
        with pytest.raises(ValueError, match="prefetch"):
            make()


# -- demand


@pytest.mark.parametrize("prefetch", [1, 4, 128])
def test_it_requests_the_prefetch_and_then_three_quarters_of_it(prefetch):
    left, right, _ = zipped(prefetch=prefetch)
    limit = max(1, prefetch - prefetch // 4)
    left.assert_requests(prefetch)
    for n in range(limit):
        left.next(n)
        right.next(n)
    left.assert_requests(prefetch, limit)
    right.assert_requests(prefetch, limit)


@BOTH
def test_without_demand_nothing_is_taken(hide):
    taken = []
    source = flow.range(5).do_on_next(taken.append)
    made = zip_flows(hidden(source, hide), flow.range(5), prefetch=1).starmap(lambda a, b: a + b)
    subscriber = TestSubscriber(0)
    made.subscribe(subscriber)
    assert len(taken) <= 1  # what pushes is asked for the prefetch
    subscriber.request(2)
    subscriber.assert_items(0, 2)
    assert len(taken) <= 3
    subscriber.request(9)
    subscriber.assert_result(0, 2, 4, 6, 8)


def test_rows_wait_for_demand():
    left, right, subscriber = zipped(request=0)
    left.next(1, 2, 3)
    right.next("a", "b", "c")
    subscriber.assert_no_items()
    subscriber.request(2)
    subscriber.assert_items((1, "a"), (2, "b"))
    left.complete()
    right.complete()
    subscriber.assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_result((1, "a"), (2, "b"), (3, "c"))


def test_it_completes_without_demand_when_nothing_waits():
    left, right, subscriber = zipped(request=1)
    left.next(1)
    right.next(1, 2)
    with recorded_drops() as drops:
        left.complete()
    subscriber.assert_result((1, 1))
    right.assert_cancelled()
    assert drops.items == [2]


def test_a_flow_that_has_ended_ends_it_after_its_last_row():
    left, right, subscriber = zipped()
    left.next(1, 2)
    left.complete()
    right.next("a")
    subscriber.assert_not_terminated()
    right.next("b")
    subscriber.assert_result((1, "a"), (2, "b"))
    right.assert_cancelled()


def test_an_empty_flow_ends_it_before_the_others_are_subscribed():
    other = TestPublisher()
    subscriber = TestSubscriber(0)
    zip_flows(flow.empty().hide(), flow.Flow(other)).subscribe(subscriber)
    subscriber.assert_result()
    other.assert_not_subscribed()


def test_an_empty_constant_ends_it_without_demand():
    subscriber = TestSubscriber(0)
    zip_flows(flow.range(3), flow.empty()).subscribe(subscriber)
    subscriber.assert_result()


def test_a_synchronous_flow_beside_one_that_waits():
    right = TestPublisher()
    subscriber = TestSubscriber()
    zip_flows(flow.range(2), flow.Flow(right)).subscribe(subscriber)
    right.next("a")
    subscriber.assert_items((0, "a"))
    right.next("b")
    subscriber.assert_result((0, "a"), (1, "b"))
    right.assert_cancelled()


def test_flows_on_other_threads(pool):
    made = zip_flows(
        flow.range(500).pipe(observe_on(pool)),
        flow.range(500).map(str),
    ).starmap(lambda a, b: (a, b))
    subscriber = TestSubscriber()
    made.subscribe(subscriber)
    subscriber.await_terminal().assert_result(*[(n, str(n)) for n in range(500)])


def test_a_conditional_downstream_gets_the_next_row_at_once():
    seen = []
    zip_flows(flow.range(10).hide(), flow.range(10)).starmap(lambda a, _: a).filter(
        lambda n: n % 3 == 0
    ).subscribe(seen.append, prefetch=2)
    assert seen == [0, 3, 6, 9]


# -- cancel


def test_cancel_reaches_all_and_drops_waiting_items():
    left, right, subscriber = zipped(request=1)
    left.next(1, 2, 3)
    with recorded_drops() as drops:
        subscriber.cancel()
    left.assert_cancelled()
    right.assert_cancelled()
    assert sorted(drops.items) == [1, 2, 3]
    subscriber.assert_silent_after_cancel()


@BOTH
@pytest.mark.checklist("X09")
def test_generators_are_closed_at_the_end_and_on_cancel(hide):
    closed = []

    def generated(name, count):
        try:
            yield from range(count)
        finally:
            closed.append(name)

    def sources():
        return (
            hidden(flow.from_iterable(generated("left", 9)), hide),
            flow.from_iterable(generated("right", 3)),
        )

    assert len(list(zip_flows(*sources()))) == 3
    assert sorted(closed) == ["left", "right"]
    closed.clear()
    subscriber = TestSubscriber(1)
    zip_flows(*sources()).subscribe(subscriber)
    assert hide or not closed  # what is hidden has been asked for the prefetch
    subscriber.cancel()
    assert sorted(closed) == ["left", "right"]
    closed.clear()
    for _ in zip_flows(*sources()):
        break
    assert sorted(closed) == ["left", "right"]


def test_a_cancel_without_demand_opens_nothing():
    begun = []

    def generated():
        begun.append(True)
        yield 1

    subscriber = TestSubscriber(0)
    zip_flows(flow.from_iterable(generated()), flow.range(3)).subscribe(subscriber)
    subscriber.cancel()
    assert not begun


@pytest.mark.usefixtures("dropped")
def test_a_finally_that_raises_does_not_keep_the_others_open():
    closed = []

    def generated(name):
        try:
            yield from range(9)
        finally:
            closed.append(name)
            raise ValueError(name)

    made = zip_flows(flow.from_iterable(generated("a")), flow.from_iterable(generated("b")))
    subscriber = TestSubscriber(1)
    made.subscribe(subscriber)
    with recorded_drops() as drops:
        subscriber.cancel()
    assert sorted(closed) == ["a", "b"]
    assert len(drops.errors) == 2


@pytest.mark.checklist("X06")
def test_a_loop_that_drops_everything_can_be_cancelled_from_another_thread(pool):
    running = Event()

    def dropped(n):
        running.set()
        return False

    subscriber = TestSubscriber(0)
    made = zip_flows(flow.range(10**12).filter(dropped), flow.range(9).hide())
    future = pool.submit(made.subscribe, subscriber)
    assert running.wait(20)
    subscriber.cancel()
    future.result(20)
    subscriber.assert_no_items().assert_not_terminated()


def test_effects_of_a_flow_that_is_left_are_seen():
    over = []
    source = flow.range(9).finally_action(lambda: over.append(True))
    assert list(zip_flows(flow.empty(), source)) == []
    assert list(zip_flows(flow.just(1), source)) == [(1, 0)]
    assert over == [True]


@BOTH
def test_iterable_sources_are_opened_again_for_each_subscriber(hide):
    made = zip_flows(hidden(flow.range(3), hide), flow.range(3))
    assert list(made) == list(made) == [(n, n) for n in range(3)]


def test_an_iterable_that_cannot_be_opened_fails_it():
    class Broken:
        def __iter__(self):
            raise LookupError("no items")

    subscriber = TestSubscriber(0)
    zip_flows(flow.range(3), flow.from_iterable(Broken())).subscribe(subscriber)
    subscriber.assert_failure(LookupError)
    with pytest.raises(LookupError):
        list(zip_flows(flow.range(3), flow.from_iterable(Broken())))
