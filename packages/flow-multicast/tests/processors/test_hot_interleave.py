"""Processors whose subscribers do not wait for each other, under every schedule in the bound."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from flow_core.errors import MissingBackpressureError
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    ReplayProcessor,
)
from flow_testing import ConditionalTestSubscriber, TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Exhaustive, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave

MAKERS: dict[str, Callable[[], Any]] = {
    "behavior": BehaviorProcessor,
    "direct": DirectProcessor,
    "replay": ReplayProcessor,
    "replay, 2": lambda: ReplayProcessor(2),
}
each = pytest.mark.parametrize("make", list(MAKERS.values()), ids=list(MAKERS))


def exhaust(body: Body) -> Report:
    return explore_all(body, modules=["flow_core.serial", "flow_multicast.processors", __name__])


def stepping(request: int = 10) -> TestSubscriber[int]:
    return TestSubscriber[int](request, on_item=lambda *_: step())


def joined(processor: Any, request: int = 10) -> TestSubscriber[int]:
    subscriber = stepping(request)
    processor.subscribe(subscriber)
    return subscriber


@each
def test_a_subscriber_that_comes_while_items_come_gets_the_rest_in_order(
    make: Callable[[], Any],
) -> None:
    seen: set[Hashable] = set()

    def body() -> Scenario:
        processor = make()
        late = stepping()

        def send() -> None:
            processor.on_next(1)
            processor.on_next(2)

        def check() -> None:
            late.assert_rules_kept().assert_not_terminated()
            items = tuple(late.items)
            seen.add(items)
            if isinstance(processor, ReplayProcessor):
                assert items == (1, 2)
            assert items in {(), (2,), (1, 2)}
            processor.on_next(3)
            assert late.items == [*items, 3]

        return Scenario(send, lambda: processor.subscribe(late), check=check)

    exhaust(body)
    assert (1, 2) in seen


@pytest.mark.parametrize("make", [*MAKERS.values(), AsyncProcessor], ids=[*MAKERS, "async"])
@pytest.mark.parametrize("error", [None, ValueError("the end")], ids=["complete", "error"])
def test_a_subscriber_that_comes_while_it_ends_gets_one_terminal(
    make: Callable[[], Any], error: ValueError | None
) -> None:
    def body() -> Scenario:
        processor = make()
        processor.on_next(1)
        late = stepping()

        def end() -> None:
            if error is None:
                processor.on_complete()
            else:
                processor.on_error(error)

        def check() -> None:
            late.assert_rules_kept()
            assert late.error is error
            assert late.completed == (error is None)
            assert not processor.has_subscribers

        return Scenario(end, lambda: processor.subscribe(late), check=check)

    exhaust(body)


@pytest.mark.parametrize("size", [None, 2], ids=["all", "2"])
def test_a_subscriber_that_requests_while_items_come_loses_nothing(size: int | None) -> None:
    def body() -> Scenario:
        processor = ReplayProcessor[int](size)
        subscriber = joined(processor, 1)

        def send() -> None:
            processor.on_next(1)
            processor.on_next(2)
            processor.on_complete()

        def check() -> None:
            subscriber.assert_result(1, 2)

        return Scenario(send, lambda: subscriber.request(1), check=check)

    exhaust(body)


def test_a_subscriber_that_requests_while_the_item_comes_gets_it_or_fails() -> None:
    seen: set[Hashable] = set()

    def body() -> Scenario:
        processor = DirectProcessor[int]()
        subscriber, other = joined(processor, 0), joined(processor)

        def check() -> None:
            subscriber.assert_rules_kept()
            other.assert_items(1)
            if subscriber.error is None:
                subscriber.assert_items(1)
            else:
                subscriber.assert_failure(MissingBackpressureError)
            seen.add(subscriber.error is None)

        return Scenario(lambda: processor.on_next(1), lambda: subscriber.request(1), check=check)

    exhaust(body)
    assert seen == {True, False}


def test_a_subscriber_that_missed_an_item_fails_though_the_end_comes_as_it_requests() -> None:
    seen: set[Hashable] = set()

    def body() -> Scenario:
        processor = DirectProcessor[int]()
        slow = joined(processor, 0)

        def send() -> None:
            processor.on_next(1)
            processor.on_complete()

        def check() -> None:
            seen.add(slow.completed)
            if slow.completed:
                slow.assert_result(1)
            else:
                slow.assert_failure(MissingBackpressureError)

        return Scenario(send, lambda: slow.request(1), check=check)

    exhaust(body)
    assert seen == {True, False}


def test_a_request_while_values_change_gets_the_newest_and_none_twice() -> None:
    def body() -> Scenario:
        processor = BehaviorProcessor[int](0)
        subscriber = joined(processor, 0)

        def send() -> None:
            processor.on_next(1)
            processor.on_next(2)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.items == sorted(set(subscriber.items))
            assert tuple(subscriber.items) in {(0, 1), (0, 2), (1, 2), (2,)}
            subscriber.request(1)
            assert subscriber.items[-1] == 2

        return Scenario(send, lambda: subscriber.request(2), check=check)

    exhaust(body)


@each
def test_a_subscriber_that_cancels_while_items_come_gets_nothing_more(
    make: Callable[[], Any],
) -> None:
    def body() -> Scenario:
        processor = make()
        leaving, staying = joined(processor), joined(processor)

        def check() -> None:
            staying.assert_items(1)
            leaving.assert_rules_kept().assert_not_terminated()
            assert processor.statistics().subscribers == 1
            processor.on_next(2)
            assert leaving.items in ([], [1])

        return Scenario(lambda: processor.on_next(1), leaving.cancel, check=check)

    exhaust(body)


@each
def test_a_bad_request_waits_for_a_running_on_next(make: Callable[[], Any]) -> None:
    def body() -> Scenario:
        processor = make()
        wrong, right = joined(processor), joined(processor)

        def check() -> None:
            wrong.assert_failure(ValueError, *wrong.items)
            right.assert_items(1)
            assert processor.statistics().subscribers == 1

        return Scenario(
            lambda: processor.on_next(1), lambda: wrong.subscription.request(0), check=check
        )

    exhaust(body)


@each
@pytest.mark.parametrize("leave", ["cancel", "bad request"])
def test_a_subscriber_that_leaves_as_an_unrequested_item_comes_does_not_get_it(
    make: Callable[[], Any], leave: str
) -> None:
    def body() -> Scenario:
        processor = make()
        leaving = joined(processor, 1)
        processor.on_next(1)

        def go() -> None:
            if leave == "cancel":
                leaving.cancel()
            else:
                leaving.subscription.request(0)

        return Scenario(lambda: processor.on_next(2), go, check=leaving.assert_rules_kept)

    exhaust(body)


def test_a_bad_request_while_the_lines_are_rebuilt_fails_the_right_subscriber() -> None:
    def body() -> Scenario:
        processor = DirectProcessor[int]()
        wrong, others = joined(processor, 2), [joined(processor) for _ in range(6)]
        processor.on_next(1)
        for other in others:
            other.cancel()  # enough to rebuild the lines of the others for the next item

        def check() -> None:
            processor.on_next(3)
            wrong.assert_failure(ValueError, *wrong.items)

        return Scenario(
            lambda: processor.on_next(2), lambda: wrong.subscription.request(0), check=check
        )

    explore_all(body, strategy=Exhaustive(3), modules=["flow_multicast.processors"])


@each
def test_two_bad_requests_while_an_item_comes(make: Callable[[], Any]) -> None:
    def body() -> Scenario:
        processor = make()
        first, second = joined(processor), joined(processor)

        def check() -> None:
            for wrong in (first, second):
                wrong.assert_failure(ValueError, *wrong.items)
            assert not processor.has_subscribers

        def refuse() -> None:
            first.subscription.request(0)
            second.subscription.request(-1)

        return Scenario(lambda: processor.on_next(1), refuse, check=check)

    exhaust(body)


@each
def test_a_bad_request_and_the_end_are_one_terminal(make: Callable[[], Any]) -> None:
    def body() -> Scenario:
        processor = make()
        wrong = joined(processor)

        def check() -> None:
            wrong.assert_rules_kept()
            assert wrong.terminated
            assert not processor.has_subscribers

        return Scenario(processor.on_complete, lambda: wrong.subscription.request(0), check=check)

    exhaust(body)


@each
def test_a_subscriber_that_cancels_while_it_ends_is_released(make: Callable[[], Any]) -> None:
    def body() -> Scenario:
        processor = make()
        leaving, staying = joined(processor), joined(processor)

        def check() -> None:
            leaving.assert_rules_kept()
            staying.assert_result()
            assert not processor.has_subscribers

        return Scenario(processor.on_complete, leaving.cancel, check=check)

    exhaust(body)


def test_an_item_that_one_has_filtered_out_is_not_counted_against_it() -> None:
    def body() -> Scenario:
        processor = ReplayProcessor[int](2)
        odd = ConditionalTestSubscriber[int](lambda n: n % 2, 1)
        processor.subscribe(odd)

        def send() -> None:
            for n in (1, 2, 3):
                processor.on_next(n)
            processor.on_complete()

        return Scenario(send, lambda: odd.request(1), check=lambda: odd.assert_result(1, 3))

    exhaust(body)


def test_an_item_that_is_forgotten_while_it_is_read_is_got_or_fails() -> None:
    seen: set[Hashable] = set()

    def body() -> Scenario:
        processor = ReplayProcessor[int](1)
        subscriber = joined(processor, 0)
        processor.on_next(1)
        processor.on_next(2)

        def check() -> None:
            subscriber.assert_rules_kept()
            items = tuple(subscriber.items)
            if subscriber.error is None:
                assert items == (1, 2, 3)
            else:
                subscriber.assert_failure(MissingBackpressureError, *items)
                assert items == (1, 2, 3)[: len(items)]
            seen.add((items, subscriber.error is None))

        return Scenario(lambda: processor.on_next(3), lambda: subscriber.request(5), check=check)

    exhaust(body)
    assert ((1, 2, 3), True) in seen
    assert ((), False) in seen


def test_the_upstream_continues_for_a_requesting_subscriber_while_another_leaves() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        processor = ReplayProcessor[int](1)
        staying, leaving = joined(processor, 0), joined(processor, 0)
        source.subscribe(processor)
        source.next(1)
        source.assert_requests(1)

        def check() -> None:
            staying.assert_items(1)
            leaving.assert_rules_kept().assert_not_terminated()
            source.assert_requests(1, 1)
            source.next(2)
            staying.assert_items(1, 2)

        return Scenario(lambda: staying.request(2), leaving.cancel, check=check)

    exhaust(body)


def test_the_upstream_is_not_asked_for_more_than_there_is_room_for() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        processor = ReplayProcessor[int](2)
        first, second = joined(processor, 0), joined(processor, 0)
        source.subscribe(processor)
        source.next(1, 2)

        def check() -> None:
            first.assert_items(1, 2)
            second.assert_items(1, 2)
            source.assert_requests(2, 2)

        return Scenario(lambda: first.request(2), lambda: second.request(2), check=check)

    exhaust(body)


def test_a_subscriber_that_joins_while_items_come_is_not_overrun() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        processor = ReplayProcessor[int](1)
        joined(processor)
        late = stepping(0)
        source.subscribe(processor)
        sent: list[int] = []

        def check() -> None:
            first = sent[-1]
            while source.outstanding:
                send()
            late.request(20)
            late.assert_rules_kept().assert_not_terminated()
            assert late.items == sent[-len(late.items) :]
            assert first in late.items

        def send() -> None:
            sent.append(len(sent))
            source.next(sent[-1])

        return Scenario(send, lambda: processor.subscribe(late), check=check)

    exhaust(body)


@pytest.mark.parametrize("request_at_once", [False, True])
def test_a_newcomer_gets_the_last_items_before_or_after_one_that_comes(
    request_at_once: bool,
) -> None:
    seen: set[Hashable] = set()

    def body() -> Scenario:
        processor = ReplayProcessor[int](2)
        for n in range(4):
            processor.on_next(n)
        late = stepping(10 if request_at_once else 0)

        def check() -> None:
            late.request(10)
            late.assert_rules_kept().assert_not_terminated()
            seen.add(tuple(late.items))
            processor.on_next(5)
            assert late.items[-2:] == [4, 5]
            assert processor.buffered <= 3

        return Scenario(
            lambda: processor.on_next(4), lambda: processor.subscribe(late), check=check
        )

    exhaust(body)
    assert seen == {(2, 3, 4), (3, 4)}


@pytest.mark.parametrize("conditional", [False, True])
def test_the_only_one_leaves_and_another_comes_while_an_item_is_sent(conditional: bool) -> None:
    make = ConditionalTestSubscriber[int] if conditional else TestSubscriber[int]

    def body() -> Scenario:
        processor = DirectProcessor[int]()
        leaving, coming = make(), make()
        processor.subscribe(leaving)
        processor.on_next(0)

        def swap() -> None:
            leaving.cancel()
            processor.subscribe(coming)

        def check() -> None:
            processor.on_next(2)
            assert leaving.items in ([0], [0, 1])
            assert coming.items in ([2], [1, 2])
            assert processor.statistics().subscribers == 1

        return Scenario(lambda: processor.on_next(1), swap, check=check)

    exhaust(body)


def test_two_threads_that_cancel_one_leave_the_next_alone() -> None:
    def body() -> Scenario:
        processor = DirectProcessor[int]()
        leaving, coming = joined(processor), stepping()
        processor.on_next(0)

        def come() -> None:
            leaving.cancel()
            processor.subscribe(coming)
            processor.on_next(1)

        def check() -> None:
            processor.on_next(2)
            coming.assert_items(1, 2)
            assert leaving.items in ([0], [0, 1])  # one of them still cancels (§2.8)

        return Scenario(leaving.cancel, come, check=check)

    exhaust(body)
