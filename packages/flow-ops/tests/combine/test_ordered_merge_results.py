"""The items of `ordered_merge`, and the threads on which they come."""

from __future__ import annotations

import threading
from heapq import merge as heapq_merge

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core.errors import FlowError, MissingBackpressureError, RejectedExecutionError
from flow_ops import observe_on, ordered_merge
from flow_testing import (
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_result,
    recorded_drops,
)


def inline(task):
    task()


EXECUTOR = pytest.mark.parametrize("executor", [None, inline], ids=["direct", "inline"])


def played(*, request=flow.UNBOUNDED, **more):
    """A subscription to two flows that the test plays."""
    left, right = TestPublisher(), TestPublisher()
    subscriber = TestSubscriber(request)
    ordered_merge(flow.Flow(left), flow.Flow(right), **more).subscribe(subscriber)
    return left, right, subscriber


# -- results


@EXECUTOR
@pytest.mark.checklist("O35")
def test_sorted_flows_become_one(executor):
    assert_result(
        lambda: ordered_merge(
            flow.range(0, 9, 3), flow.range(1, 9, 3).hide(), flow.just(2, 5, 8), executor=executor
        ),
        list(range(9)),
    )


@EXECUTOR
@pytest.mark.parametrize("prefetch", [1, 2, 3, 128])
def test_every_prefetch_gives_all_items(prefetch, executor):
    assert_result(
        lambda: ordered_merge(
            flow.range(0, 40, 2).hide(),
            flow.range(1, 40, 2).hide(),
            prefetch=prefetch,
            executor=executor,
        ),
        list(range(40)),
    )


@EXECUTOR
def test_few_flows_and_empty_ones(executor):
    assert_result(lambda: ordered_merge(executor=executor), [])
    assert_result(lambda: ordered_merge(flow.range(3), executor=executor), [0, 1, 2])
    assert_result(lambda: ordered_merge(flow.empty(), flow.range(2), executor=executor), [0, 1])
    assert_result(lambda: ordered_merge(flow.empty(), flow.empty(), executor=executor), [])


def test_among_equal_items_those_of_the_earlier_flow_come_first():
    sources = [flow.just((1, name), (1, name), (2, name)) for name in "abc"]
    expected = [(1, "a"), (1, "a"), (1, "b"), (1, "b"), (1, "c"), (1, "c")]
    expected += [(2, "a"), (2, "b"), (2, "c")]
    assert_result(lambda: ordered_merge(*sources, key=lambda item: item[0]), expected)


def test_a_flow_that_is_not_sorted_loses_nothing():
    assert_result(lambda: ordered_merge(flow.just(3, 1, 5), flow.just(2, 4)), [2, 3, 1, 4, 5])


@pytest.mark.checklist("X13")
def test_only_less_than_is_asked():
    class Odd:
        def __init__(self, n):
            self.n = n

        def __lt__(self, other):
            return self.n < other.n

        def __eq__(self, other):
            raise AssertionError("compared by ==")

        __hash__ = None

    made = ordered_merge(*[flow.just(*map(Odd, (1, 1, 2))) for _ in range(5)])
    assert [item.n for item in made] == [1] * 10 + [2] * 5


def test_the_key_is_called_once_for_each_item():
    seen = []

    def key(n):
        seen.append(n)
        return -n

    made = ordered_merge(flow.just(5, 3, 1), flow.just(4, 2, 0), flow.just(9), key=key)
    assert list(made) == [9, 5, 4, 3, 2, 1, 0]
    assert sorted(seen) == [0, 1, 2, 3, 4, 5, 9]


def test_an_item_comes_when_it_is_known_to_be_the_least():
    left, right, subscriber = played()
    left.next(1, 5)
    subscriber.assert_no_items()
    right.next(2)
    subscriber.assert_items(1, 2)
    right.complete()
    subscriber.assert_items(1, 2, 5)
    left.complete()
    subscriber.assert_result(1, 2, 5)


def test_many_flows_cost_little_each():
    """Each item costs the same, but for the comparisons, however many flows there are."""
    compared = 0

    class Key:
        def __init__(self, n):
            self.n = n

        def __lt__(self, other):
            nonlocal compared
            compared += 1
            return self.n < other.n

    count = 512
    publishers = [TestPublisher() for _ in range(count)]
    subscriber = TestSubscriber()
    ordered_merge(*map(flow.Flow, publishers), key=Key).subscribe(subscriber)
    for n, publisher in enumerate(publishers):
        publisher.next(n, n + count)
    for publisher in publishers:
        publisher.complete()
    subscriber.assert_result(*range(2 * count))
    assert compared < 2 * count * 2 * 2 * 10  # 10 is the binary logarithm


@EXECUTOR
def test_many_items_take_no_deep_stack(executor):
    subscriber = TestSubscriber(1, on_item=lambda subscriber, _: subscriber.request(1))
    ordered_merge(
        flow.range(0, 20_000, 2).hide(), flow.range(1, 20_000, 2), executor=executor
    ).subscribe(subscriber)
    assert subscriber.items == [*range(20_000)]


lists = st.lists(st.lists(st.integers(-9, 9), max_size=15).map(sorted), max_size=6)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(lists, st.data())
def test_it_agrees_with_heapq(items, data):
    sources = [
        flow.from_iterable(each).hide() if data.draw(st.booleans()) else flow.from_iterable(each)
        for each in items
    ]
    expected = [*heapq_merge(*items)]
    executor = data.draw(st.sampled_from([None, inline]))
    subscriber = TestSubscriber(0)
    ordered_merge(*sources, prefetch=data.draw(st.integers(1, 5)), executor=executor).subscribe(
        subscriber
    )
    while len(subscriber.items) < len(expected):
        before = len(subscriber.items)
        n = data.draw(st.integers(1, 4))
        subscriber.request(n)
        assert len(subscriber.items) == min(before + n, len(expected))
    subscriber.assert_result(*expected)


# -- demand


@EXECUTOR
def test_items_wait_for_demand(executor):
    left, right, subscriber = played(request=0, executor=executor, prefetch=4)
    left.assert_requests(4)
    left.next(1, 3)
    right.next(2, 4)
    subscriber.assert_no_items()
    subscriber.request(3)
    subscriber.assert_items(1, 2, 3)
    left.assert_requests(4)
    left.next(5, 6)
    left.complete()
    right.complete()
    subscriber.request(9)
    subscriber.assert_result(1, 2, 3, 4, 5, 6)


@EXECUTOR
def test_it_completes_without_demand(executor):
    left, right, subscriber = played(request=0, executor=executor)
    left.complete()
    subscriber.assert_not_terminated()
    right.complete()
    subscriber.assert_result()


def test_without_demand_no_iterator_is_asked():
    taken = []
    subscriber = TestSubscriber(0)
    ordered_merge(flow.range(5), flow.from_iterable(_watched(taken))).subscribe(subscriber)
    assert taken == []
    subscriber.request(1)
    subscriber.assert_items(0)
    assert taken == [0]


def _watched(taken):
    for n in range(5):
        taken.append(n)
        yield n


@EXECUTOR
def test_a_conditional_downstream_gets_the_next_item_at_once(executor):
    seen = []
    ordered_merge(flow.range(0, 10, 2), flow.range(1, 10, 2).hide(), executor=executor).filter(
        lambda n: n % 3 == 0
    ).subscribe(seen.append, prefetch=2)
    assert seen == [0, 3, 6, 9]


# -- errors


@EXECUTOR
def test_an_error_overtakes_waiting_items(executor):
    left, right, subscriber = played(request=1, executor=executor)
    left.next(1, 3)
    right.next(2)
    error = ValueError("left")
    with recorded_drops() as drops:
        left.error(error)
    subscriber.assert_failure(error, 1)
    right.assert_cancelled()
    assert sorted(drops.items) == [2, 3]


@EXECUTOR
def test_delayed_errors_come_together_at_the_end(executor):
    left, right, subscriber = played(delay_error=True, executor=executor)
    left.next(1, 3)
    left.error(ValueError("left"))
    subscriber.assert_not_terminated()
    right.next(2, 4)
    subscriber.assert_items(1, 2, 3, 4)
    right.error(KeyError("right"))
    subscriber.assert_failure(ExceptionGroup, 1, 2, 3, 4)
    assert {type(error) for error in subscriber.error.exceptions} == {ValueError, KeyError}


@EXECUTOR
@pytest.mark.parametrize("delay_error", [False, True])
def test_an_error_that_a_polled_source_raises_fails_the_flow(executor, delay_error):
    error = LookupError("polled")

    def items():
        yield 1
        raise error

    assert_result(
        lambda: ordered_merge(
            flow.from_iterable(items()),
            flow.just(0, 2),
            executor=executor,
            delay_error=delay_error,
        ),
        [0, 1, 2] if delay_error else [0, 1],
        error,
        only=lambda name: name == "source as it is, requested at once",
    )


def test_an_error_of_the_key_or_a_comparison_says_where_it_arose():
    with pytest.raises(ZeroDivisionError) as caught:
        list(ordered_merge(flow.just(1), flow.just(2), key=lambda n: 1 // (n - 2)))
    assert any("in ordered_merge(2 flows, <lambda" in note for note in caught.value.__notes__)
    with pytest.raises(TypeError) as caught:
        list(ordered_merge(flow.just(1), flow.just("a")))
    assert any("in ordered_merge(2 flows)" in note for note in caught.value.__notes__)


def test_a_flow_that_sends_too_much_fails_it():
    left, right = TestPublisher(violations=Violation.OVERFLOW), TestPublisher()
    subscriber = TestSubscriber(0)
    ordered_merge(flow.Flow(left), flow.Flow(right), prefetch=2).subscribe(subscriber)
    with recorded_drops() as drops:
        left.next(1, 2, 3)
    subscriber.assert_failure(MissingBackpressureError)
    right.assert_cancelled()
    assert sorted(drops.items) == [1, 2, 3]


def test_arguments_are_checked_when_it_is_assembled():
    with pytest.raises(TypeError, match="takes flows"):
        ordered_merge(flow.range(3), [1, 2])
    with pytest.raises(TypeError, match="'key'"):
        ordered_merge(flow.range(3), key=3)
    with pytest.raises(TypeError, match="executor"):
        ordered_merge(flow.range(3), executor=3)
    with pytest.raises(ValueError, match="prefetch"):
        ordered_merge(flow.range(3), prefetch=0)


# -- cancel


@EXECUTOR
def test_cancel_reaches_all_and_drops_waiting_items(executor):
    left, right, subscriber = played(request=1, executor=executor)
    left.next(1, 3)
    right.next(2)
    with recorded_drops() as drops:
        subscriber.cancel()
    left.assert_cancelled()
    right.assert_cancelled()
    assert sorted(drops.items) == [2, 3]
    subscriber.assert_silent_after_cancel()


def test_cancel_in_on_next_stops_at_once():
    subscriber = TestSubscriber(on_item=lambda subscriber, _: subscriber.cancel())
    with recorded_drops() as drops:
        ordered_merge(flow.range(3), flow.range(3).hide()).subscribe(subscriber)
    subscriber.assert_items(0)
    assert drops.items == [0]  # of the second flow, which sends no more


# -- on an executor


@pytest.mark.checklist("O01", "O02", "O20")
def test_everything_downstream_is_on_the_executor(place, record):
    recorder = record(here=place.is_here)
    made = ordered_merge(
        flow.range(0, 500, 2), flow.range(1, 500, 2).hide(), executor=place.executor
    )
    made.subscribe(recorder)
    recorder.wait()
    assert recorder.items == [*range(500)]
    place.settle()


@pytest.mark.checklist("O10", "O20")
def test_errors_are_on_the_executor(elsewhere, record, source):
    recorder = record(here=elsewhere.is_here)
    error = ValueError("upstream")
    ordered_merge(source.flow, flow.never(), executor=elsewhere.executor).subscribe(recorder)
    source.fail(error)
    recorder.wait()
    assert recorder.error is error
    elsewhere.settle()


@pytest.mark.checklist("O12")
@pytest.mark.parametrize("amount", [0, -1])
def test_a_wrong_request_is_answered_on_the_executor(elsewhere, record, source, amount):
    for in_on_subscribe in (False, True) if amount else (False,):  # the recorder's 0 is none
        recorder = record(request=amount if in_on_subscribe else 1, here=elsewhere.is_here)
        ordered_merge(source.flow, flow.never(), executor=elsewhere.executor).subscribe(recorder)
        if not in_on_subscribe:
            recorder.subscription.request(amount)
        recorder.wait()
        assert "3.9" in str(recorder.error)
        assert source.cancels or in_on_subscribe
        elsewhere.settle()


@pytest.mark.checklist("O14")
def test_never_two_drains_at_once(place, record, paced):
    left, right = paced(2_000), paced(2_000)
    recorder = record(here=place.is_here)
    ordered_merge(left.flow, right.flow, executor=place.executor).subscribe(recorder)
    threads = [threading.Thread(target=each.run) for each in (left, right)]
    for thread in threads:
        thread.start()
    recorder.wait()
    for thread in threads:
        thread.join()
    assert recorder.items == sorted([*range(2_000)] * 2)
    place.settle()


@pytest.mark.checklist("O22", "O26")
def test_a_cancel_takes_back_a_task_that_has_not_begun(pool, blocker, record, source):
    recorder = record()
    ordered_merge(source.flow, executor=pool).subscribe(recorder)
    source.send(1, 2)
    with recorded_drops() as drops:
        recorder.subscription.cancel()
    assert sorted(drops.items) == [1, 2]
    assert source.cancels == 1
    blocker.release()
    assert recorder.items == []
    assert recorder.ends == []


@pytest.mark.checklist("O22", "O26")
def test_a_running_drain_stops_before_the_next_item(pool, record, source):
    running, go = threading.Event(), threading.Event()

    def block(_):
        running.set()
        assert go.wait(20)

    recorder = record(on_item=block)
    ordered_merge(source.flow, executor=pool).subscribe(recorder)
    source.send(1, 2, 3)
    assert running.wait(20)
    with recorded_drops() as drops:
        recorder.subscription.cancel()
        assert source.cancels == 1
        go.set()
        pool.submit(int).result(20)
    assert recorder.items == [1]
    assert sorted(drops.items) == [2, 3]


@pytest.mark.checklist("O29")
def test_no_task_is_kept_when_idle(counting, record, source):
    recorder = record()
    ordered_merge(source.flow, executor=counting).subscribe(recorder)
    source.send(1)
    recorder.wait_items(1)
    counting.pool.submit(int).result(20)
    assert recorder.subscription._handle is None


@pytest.mark.checklist("O30", "O31")
def test_a_refused_task_ends_the_flow_once(steps, record, source):
    recorder = record()
    ordered_merge(source.flow, flow.never(), executor=steps).subscribe(recorder)
    steps.refuses = RuntimeError("shut down")
    with recorded_drops() as drops:
        source.send(1)
        source.send(2)
        source.complete()
    assert isinstance(recorder.error, RejectedExecutionError)
    assert recorder.error.__cause__ is steps.refuses
    assert source.cancels == 1
    assert sorted(drops.items) == [1, 2]
    assert steps.submitted == 0


@pytest.mark.checklist("O30")
def test_a_task_that_is_dropped_later_ends_the_flow_once(pool, blocker, record, source):
    recorder = record()
    ordered_merge(source.flow, flow.never(), executor=pool).subscribe(recorder)
    with recorded_drops() as drops:
        source.send(1)
        pool.shutdown(wait=False, cancel_futures=True)
        recorder.wait()
    assert isinstance(recorder.error, RejectedExecutionError)
    assert source.cancels == 1
    assert drops.items == [1]


@pytest.mark.checklist("O32")
@pytest.mark.usefixtures("dropped")
def test_a_downstream_that_raises_cancels_all(steps, record, source):
    error = ValueError("downstream")

    def fail(_):
        raise error

    recorder = record(on_item=fail)
    ordered_merge(source.flow, executor=steps).subscribe(recorder)
    with recorded_drops() as drops:
        source.send(1, 2)
        steps.run()
        source.send(3)
        steps.run()
    assert drops.errors == [error]
    assert sorted(drops.items) == [2, 3]
    assert source.cancels == 1
    assert recorder.items == [1]


@pytest.mark.checklist("O14")
def test_one_task_serves_many_signals(steps, record, source):
    recorder = record()
    ordered_merge(source.flow, executor=steps).subscribe(recorder)
    source.send(1, 2, 3)
    assert steps.submitted == 1
    steps.run()
    assert recorder.items == [1, 2, 3]


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.checklist("X10")
def test_a_fatal_error_goes_to_the_thread_that_runs_the_task(steps, record, source, fatal):
    def key(_):
        raise fatal

    recorder = record()
    ordered_merge(source.flow, executor=steps, key=key).subscribe(recorder)
    source.send(1)
    with pytest.raises(fatal):
        steps.run()
    (told,) = recorder.ends
    assert isinstance(told, FlowError)
    assert isinstance(told.__cause__, fatal)
    assert source.cancels == 1
    assert recorder.subscription._permit, "the permit is lost"


def test_a_fatal_error_out_of_an_inline_task(record, source):
    def key(_):
        raise KeyboardInterrupt

    recorder = record()
    ordered_merge(source.flow, executor=inline, key=key).subscribe(recorder)
    with pytest.raises(KeyboardInterrupt):
        source.send(1)
    assert source.cancels == 1
    assert recorder.subscription._permit, "the permit is lost"


def test_sources_on_other_threads(pool):
    left = flow.range(0, 600, 2).pipe(observe_on(pool))
    right = flow.range(1, 600, 2).hide()
    assert list(ordered_merge(left, right)) == [*range(600)]
