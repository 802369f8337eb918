"""Agreements of neighbours: SYNC fusion, the conditional protocol, scalar and callable sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from threading import Thread, get_ident
from typing import Any

import pytest

import flow_core as flow
from flow_core import (
    EMPTY,
    CallableSource,
    Flow,
    Fusion,
    IterableSource,
    ProtocolViolationError,
    QueueSubscription,
    ScalarSource,
)
from flow_core.protocols import CoreSubscriber, Subscriber, Subscription
from flow_core.structure import source_of, stages_of
from flow_testing import (
    STAGE_CASES,
    TIMEOUT_S,
    StageCase,
    TestPublisher,
    TestSubscriber,
    assert_result,
)

MODES = [Fusion(mode) for mode in range(8)]

each_case = pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)


class Asking(CoreSubscriber[Any]):
    """Asks for a mode in on_subscribe, and leaves the rest to the test."""

    def __init__(self, mode: Fusion) -> None:
        self.mode = mode
        self.granted = Fusion.NONE
        self.queue: QueueSubscription[Any]
        self.signals: list[str] = []

    def on_subscribe(self, subscription: Subscription, /) -> None:
        assert isinstance(subscription, QueueSubscription)
        self.queue = subscription
        self.granted = subscription.request_fusion(self.mode)

    def on_next(self, item: Any, /) -> None:
        self.signals.append("on_next")

    def on_error(self, error: BaseException, /) -> None:
        self.signals.append("on_error")

    def on_complete(self) -> None:
        self.signals.append("on_complete")


def asked(made: Flow[Any], mode: Fusion = Fusion.SYNC) -> Asking:
    subscriber = Asking(mode)
    made.subscribe(subscriber)
    return subscriber


def polled(queue: QueueSubscription[Any]) -> list[Any]:
    items = []
    while (item := queue.poll()) is not EMPTY:
        items.append(item)
    return items


SOURCES: dict[str, Callable[[], Flow[Any]]] = {
    "range": lambda: flow.range(5),
    "items": lambda: flow.from_iterable([1, 2]),
    "generator": lambda: flow.from_iterable(n for n in range(5)),
    "just one": lambda: flow.just(1),
    "just": lambda: flow.just(1, 2),
    "empty": flow.empty,
    "call": lambda: flow.from_callable(lambda: 1),
    "deferred": lambda: flow.defer(lambda: flow.range(5)),
    "flow of a flow": lambda: Flow(flow.range(5)).map(str),
}


# -- the vocabulary


@pytest.mark.checklist("F21")
def test_the_modes_are_flags() -> None:
    assert [mode.value for mode in (Fusion.NONE, Fusion.SYNC, Fusion.ASYNC)] == [0, 1, 2]
    assert Fusion.SYNC | Fusion.ASYNC is Fusion.ANY
    assert Fusion.ANY.value == 3
    assert Fusion.THREAD_BOUNDARY.value == 4


@pytest.mark.checklist("F22", "F60")
def test_a_source_is_polled_like_a_queue() -> None:
    subscriber = asked(flow.range(3))
    queue = subscriber.queue
    assert subscriber.granted is Fusion.SYNC
    assert [queue.poll(), queue.is_empty(), queue.poll(), queue.poll()] == [0, False, 1, 2]
    assert queue.is_empty()
    assert queue.poll() is EMPTY
    assert queue.poll() is EMPTY
    assert subscriber.signals == []


@pytest.mark.checklist("F23", "F29", "F51")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SOURCES)
def test_the_fusion_that_a_source_grants_lies_within_the_requested_fusion(
    name: str, mode: Fusion
) -> None:
    subscriber = asked(SOURCES[name](), mode)
    refused = name == "flow of a flow" and mode & Fusion.THREAD_BOUNDARY  # It calls str.
    expected = Fusion.SYNC if mode & Fusion.SYNC and not refused else Fusion.NONE
    assert subscriber.granted is expected


@pytest.mark.checklist("F23")
@pytest.mark.parametrize("mode", MODES)
@each_case
def test_the_fusion_that_stages_grant_lies_within_the_requested_fusion(
    case: StageCase, mode: Fusion
) -> None:
    for made in (case.apply(flow.range(5)), case.apply(Flow(flow.range(5)))):
        subscriber = asked(made, mode)
        user_code = any(stage.template.calls_user_code for stage in stages_of(made))
        refused = user_code and mode & Fusion.THREAD_BOUNDARY
        expected = Fusion.SYNC if mode & Fusion.SYNC and not refused else Fusion.NONE
        assert subscriber.granted is expected


@pytest.mark.checklist("F39", "F41")
@pytest.mark.parametrize(
    ("stages", "moves"),
    [
        (lambda f: f, True),
        (lambda f: f.take(3), True),
        (lambda f: f.skip(3), True),
        (lambda f: f.pairwise(), True),
        (lambda f: f.buffer_with_count(2), True),
        (lambda f: f.count(), True),
        (lambda f: f.to_list(), True),
        (lambda f: f.distinct(), True),
        (lambda f: f.map(str), False),
        (lambda f: f.filter(bool), False),
        (lambda f: f.do_on_next(str), False),
        (lambda f: f.distinct(str), False),
        (lambda f: f.take(3).map(str).take(3), False),
        (lambda f: f.flat_map_iterable(range), False),
        (lambda f: f.collect(list, list.append), False),
    ],
)
def test_functions_of_the_user_stay_in_their_thread(
    stages: Callable[[Flow[int]], Flow[Any]], moves: bool
) -> None:
    mode = Fusion.SYNC | Fusion.THREAD_BOUNDARY
    for made in (stages(flow.range(9)), stages(Flow(flow.range(9)))):
        assert (asked(made, mode).granted is Fusion.SYNC) == moves
        assert asked(made, Fusion.SYNC).granted is Fusion.SYNC


def test_a_fused_flow_may_be_polled_by_another_thread() -> None:
    subscriber = asked(flow.range(5).skip(1), Fusion.SYNC | Fusion.THREAD_BOUNDARY)
    items: list[Any] = []
    thread = Thread(target=lambda: items.extend(polled(subscriber.queue)))
    thread.start()
    thread.join(TIMEOUT_S)
    assert items == [1, 2, 3, 4]


@pytest.mark.checklist("F24", "F47")
@pytest.mark.parametrize("make", [lambda: flow.range(5), lambda: flow.range(5).map(str)])
def test_fusion_is_asked_for_once_and_before_any_request(make: Callable[[], Flow[Any]]) -> None:
    subscriber = asked(make())
    with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
        subscriber.queue.request_fusion(Fusion.SYNC)
    subscriber = asked(make(), Fusion.NONE)
    subscriber.queue.request(1)
    with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
        subscriber.queue.request_fusion(Fusion.SYNC)


@pytest.mark.checklist("F25", "F46")
def test_an_error_is_raised_by_poll_and_signals_nothing() -> None:
    error = ValueError()

    def items() -> Iterator[int]:
        yield 1
        raise error

    for made in (flow.from_iterable(items()), Flow(flow.from_iterable(items())).map(str)):
        subscriber = asked(made)
        assert subscriber.queue.poll() in (1, "1")
        with pytest.raises(ValueError) as raised:
            subscriber.queue.poll()
        assert raised.value is error
        assert subscriber.queue.poll() is EMPTY
        assert subscriber.signals == []


@pytest.mark.checklist("F38", "X04")
def test_a_mapper_that_gives_none_fails_the_poll() -> None:
    for source in (flow.range(3), Flow(flow.range(3))):
        with pytest.raises(flow.NoneItemError, match="map"):
            asked(source.map(lambda _: None)).queue.poll()


@pytest.mark.checklist("F40")
def test_a_polled_filter_skips_and_never_requests() -> None:
    requests: list[int] = []

    class Queue(QueueSubscription[int]):
        def __init__(self) -> None:
            self.items = iter(range(10))

        def request(self, n: int, /) -> None:
            requests.append(n)

        def cancel(self) -> None:
            pass

        def request_fusion(self, mode: Fusion, /) -> Fusion:
            return mode & Fusion.SYNC

        def poll(self) -> Any:
            return next(self.items, EMPTY)

        def is_empty(self) -> bool:
            return False

        def clear(self) -> None:
            pass

    class Source:
        def subscribe(self, subscriber: Subscriber[int], /) -> None:
            subscriber.on_subscribe(Queue())

    subscriber = asked(Flow(Source()).filter(lambda n: n % 4 == 3))
    assert polled(subscriber.queue) == [3, 7]
    assert requests == []


@pytest.mark.checklist("F42")
def test_is_empty_may_be_false_before_a_poll_that_gives_nothing() -> None:
    subscriber = asked(flow.range(3).filter(lambda _: False))
    assert not subscriber.queue.is_empty()
    assert subscriber.queue.poll() is EMPTY


@pytest.mark.checklist("F42")
@each_case
def test_a_queue_that_reports_that_it_is_empty_is_empty(case: StageCase) -> None:
    for made in (case.apply(flow.range(9)), case.apply(Flow(flow.range(9)))):
        subscriber = TestSubscriber[Any](fusion=Fusion.SYNC)
        made.subscribe(subscriber)
        subscriber.assert_result(*case.model(list(range(9))))


def test_clear_drops_what_could_still_be_polled() -> None:
    for made in (flow.range(9), flow.range(9).map(str), Flow(flow.range(9)).map(str)):
        queue = asked(made).queue
        queue.poll()
        queue.clear()
        assert queue.poll() is EMPTY


def test_looking_ahead_at_an_item_does_not_lose_it() -> None:
    queue = asked(flow.range(5).skip(2)).queue
    assert not queue.is_empty()
    assert not queue.is_empty()
    assert polled(queue) == [2, 3, 4]
    assert queue.is_empty()


def test_the_state_of_a_stage_is_made_once_for_a_fused_subscriber() -> None:
    made = 0

    def supplier() -> list[int]:
        nonlocal made
        made += 1
        return []

    for source in (flow.range(3), Flow(flow.range(3))):
        made = 0
        subscriber = asked(source.collect(supplier, list.append))
        assert polled(subscriber.queue) == [[0, 1, 2]]
        assert made == 1


# -- no fusion


@pytest.mark.checklist("F01", "F36")
@each_case
def test_hide_shows_no_queue(case: StageCase) -> None:
    class Looking(TestSubscriber[Any]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            assert not isinstance(subscription, QueueSubscription)
            super().on_subscribe(subscription)

    subscriber = Looking()
    case.apply(flow.range(9)).hide().subscribe(subscriber)
    subscriber.assert_result(*case.model(list(range(9))))


@pytest.mark.checklist("F35")
@each_case
def test_no_stage_forwards_the_subscription_of_a_fusable_source(case: StageCase) -> None:
    """Or its subscriber would poll items that passed no stage."""
    upstream: list[object] = []

    class Source:
        def subscribe(self, subscriber: Subscriber[int], /) -> None:
            class Spy(CoreSubscriber[int]):
                on_next = subscriber.on_next
                on_error = subscriber.on_error
                on_complete = subscriber.on_complete

                def on_subscribe(self, subscription: Subscription, /) -> None:
                    upstream.append(subscription)
                    subscriber.on_subscribe(subscription)

            flow.range(9).subscribe(Spy())

    made = case.apply(Flow(Source()))
    if not stages_of(made):
        return
    subscriber = asked(made)
    assert upstream
    assert subscriber.queue is not upstream[0]
    assert polled(subscriber.queue) == case.model(list(range(9)))


@pytest.mark.checklist("F53")
def test_flat_map_iterable_is_fused_over_a_synchronous_source_only() -> None:
    assert asked(flow.range(3).flat_map_iterable(range)).granted is Fusion.SYNC
    assert asked(Flow(flow.range(3)).flat_map_iterable(range)).granted is Fusion.SYNC
    assert asked(Flow(TestPublisher[int]()).flat_map_iterable(range)).granted is Fusion.NONE
    assert asked(flow.range(3).hide().flat_map_iterable(range)).granted is Fusion.NONE


@pytest.mark.checklist("F59")
def test_after_a_refusal_the_flow_is_plain_and_still_conditional() -> None:
    subscriber = asked(Flow(flow.range(9)).filter(lambda n: n > 6), Fusion.ASYNC)
    assert subscriber.granted is Fusion.NONE
    subscriber.queue.request(5)
    assert subscriber.signals == ["on_next", "on_next", "on_complete"]


@pytest.mark.checklist("F26")
def test_an_asynchronous_queue_is_polled_when_it_wakes_its_subscriber() -> None:
    class Queue(QueueSubscription[int]):
        def __init__(self) -> None:
            self.items: list[int] = []
            self.requested = 0

        def request(self, n: int, /) -> None:
            self.requested = n

        def cancel(self) -> None:
            pass

        def request_fusion(self, mode: Fusion, /) -> Fusion:
            return mode & Fusion.ASYNC

        def poll(self) -> Any:
            return self.items.pop(0) if self.items else EMPTY

        def is_empty(self) -> bool:
            return not self.items

        def clear(self) -> None:
            self.items.clear()

    queue = Queue()
    subscriber = TestSubscriber[int](5, fusion=Fusion.ANY)
    subscriber.on_subscribe(queue)
    assert subscriber.fused is Fusion.ASYNC
    assert queue.requested == 5
    queue.items += [1, 2]
    subscriber.on_next(EMPTY)  # type: ignore[arg-type]  # a wake-up
    queue.items += [3]
    subscriber.on_next(EMPTY)  # type: ignore[arg-type]
    subscriber.on_complete()
    subscriber.assert_result(1, 2, 3)


# -- items that compare in their own way


@pytest.mark.checklist("X13")
def test_items_are_never_compared_where_the_operator_does_not_say_so() -> None:
    class Item:
        def __eq__(self, other: object) -> bool:
            raise AssertionError(f"compared with {other!r}")

        def __hash__(self) -> int:
            raise AssertionError("hashed")

        def __bool__(self) -> bool:
            raise AssertionError("asked for its truth")

        def __len__(self) -> int:
            raise AssertionError("asked for its length")

    items = [Item(), Item(), Item()]
    pairs = [
        lambda f: f.map(lambda item: item),
        lambda f: f.filter(lambda item: True),
        lambda f: f.flat_map_iterable(lambda item: [item]),
        lambda f: f.take(9).skip(0),
        lambda f: f.scan(lambda _, item: item),
        lambda f: f.take_while(lambda item: True).skip_while(lambda item: False),
        lambda f: f.do_on_next(lambda item: None),
        lambda f: f.pairwise().map(lambda pair: pair[0]).take(9),
        lambda f: f.to_list().flat_map_iterable(lambda items: items),
        lambda f: f.reduce(lambda _, item: item),
        lambda f: f.buffer_with_count(2).flat_map_iterable(lambda items: items),
        lambda f: f.distinct(id),
        lambda f: f.distinct_until_changed(id),
    ]
    for stages in pairs:
        for source in (
            flow.from_iterable(items),
            flow.from_iterable(items).hide(),
            Flow(flow.from_iterable(items)),
        ):
            made = stages(source)
            found: list[Any] = list(made)
            assert found
            for mode in (Fusion.NONE, Fusion.SYNC):
                subscriber = TestSubscriber[Any](fusion=mode)
                made.subscribe(subscriber)
                assert list(map(id, subscriber.items)) == list(map(id, found))
                assert subscriber.completed
    assert flow.just(items[0]).first() is items[0]
    assert flow.just(items[0]).to_future().result(TIMEOUT_S) is items[0]


# -- sources of one item


@pytest.mark.checklist("F04", "F55")
def test_the_kinds_of_sources() -> None:
    assert isinstance(source_of(flow.just(1)), ScalarSource)
    assert isinstance(source_of(flow.empty()), ScalarSource)
    assert isinstance(source_of(flow.from_callable(int)), CallableSource)
    assert not isinstance(source_of(flow.from_callable(int)), ScalarSource)
    assert issubclass(ScalarSource, CallableSource)
    assert issubclass(CallableSource, IterableSource)


@pytest.mark.checklist("F02", "F03", "F06", "F51")
def test_a_call_is_made_once_per_subscriber_and_never_while_assembling() -> None:
    calls = 0

    def call() -> int:
        nonlocal calls
        calls += 1
        return calls

    made = flow.from_callable(call).flat_map_iterable(lambda n: [n, n]).map(str)
    counted = flow.from_callable(call).count()
    assert calls == 0
    assert list(made) == ["1", "1"]
    assert list(made) == ["2", "2"]
    assert list(counted) == [1]
    assert calls == 3


@pytest.mark.checklist("F05")
def test_the_count_of_a_constant_is_a_constant() -> None:
    for constant, expected in ((flow.just(7), 1), (flow.empty(), 0)):
        counted = constant.count()
        assert isinstance(source_of(counted), ScalarSource)
        assert source_of(counted).call() == expected
        assert_result(constant.count, [expected])
    assert_result(lambda: flow.just(7).map(str).count(), [1])


@pytest.mark.checklist("F10", "X05")
def test_a_publisher_that_is_callable_is_not_called_as_a_source() -> None:
    class Both:
        def __call__(self) -> int:
            raise AssertionError("called")

        def subscribe(self, subscriber: Subscriber[int], /) -> None:
            flow.range(3).subscribe(subscriber)

    assert list(Flow(Both())) == [0, 1, 2]
    assert list(flow.from_publisher(Both()).map(str)) == ["0", "1", "2"]


@pytest.mark.checklist("F54")
def test_a_foreign_publisher_takes_part_in_fusion_by_the_protocols() -> None:
    class Numbers(IterableSource[int]):
        def iterate(self) -> Iterator[int]:
            return count()

    assert list(Flow(Numbers()).map(str).take(3)) == ["0", "1", "2"]
    assert asked(Flow(Numbers()).take(3)).granted is Fusion.SYNC
    assert_result(lambda: Flow(Numbers()).take(3), [0, 1, 2])


def test_user_code_runs_in_the_thread_that_requests() -> None:
    threads: list[int] = []
    subscriber = TestSubscriber[int](0)
    flow.range(3).do_on_next(lambda _: threads.append(get_ident())).subscribe(subscriber)
    thread = Thread(target=lambda: subscriber.request(2))
    thread.start()
    thread.join(TIMEOUT_S)
    assert threads == [thread.ident, thread.ident]
    assert subscriber.threads == {thread.ident}
