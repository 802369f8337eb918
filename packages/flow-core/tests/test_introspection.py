"""A running flow can be looked at, link by link, from any thread."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Iterator
from threading import Event, Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, CoreSubscriber, Emitter, Flow, Fusion, Subscription, hooks
from flow_core.introspection import Scannable, Statistics, links, report, snapshot
from flow_core.operators import lift, serialize
from flow_core.structure import source_of
from flow_testing import TIMEOUT_S, TestPublisher, TestSubscriber, observe, race


def look(handle: object) -> Statistics:
    return next(links(handle))


def operators(handle: object) -> list[str]:
    return [each.operator for each in links(handle)]


def watched(handle: TestSubscriber[Any]) -> list[Statistics]:
    return list(links(handle.subscription))


# -- the links and their numbers


def test_an_iterator_with_stages_is_one_link() -> None:
    subscriber = observe(flow.range(10).map(abs).filter(bool), request=5)
    (only,) = watched(subscriber)
    assert only == Statistics(
        operator="range_iterator | map(abs) | filter(bool)", requested=0, buffered=0
    )
    subscriber.cancel()


@pytest.mark.parametrize("request_", [0, 3])
def test_items_that_an_iterator_has_delivered_are_not_outstanding(request_: int) -> None:
    subscriber = observe(flow.range(10), request=request_)
    assert look(subscriber.subscription).requested == 0
    subscriber.cancel()


def test_outstanding_demand_is_what_was_requested_and_not_yet_sent() -> None:
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).map(str), request=5)
    publisher.next(1).next(2)
    assert look(subscriber.subscription).requested == 3
    subscriber.request(4)
    assert look(subscriber.subscription).requested == 7
    publisher.next(3)
    assert look(subscriber.subscription).requested == 6
    subscriber.request(UNBOUNDED)
    assert look(subscriber.subscription).requested == UNBOUNDED
    subscriber.cancel()


def test_an_item_that_is_delivered_right_now_is_still_outstanding() -> None:
    seen: list[int | None] = []
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[str](
        2, on_item=lambda it, _: seen.append(look(it.subscription).requested)
    )
    Flow(publisher).map(str).subscribe(subscriber)
    publisher.next(1).next(2)
    assert seen == [2, 1]
    assert look(subscriber.subscription).requested == 0
    subscriber.cancel()


def test_items_that_wait_in_an_inbox_are_counted() -> None:
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).flat_map_iterable(lambda n: [n, n]), request=3)
    for n in range(5):
        publisher.next(n)
    found = look(subscriber.subscription)
    assert (found.requested, found.buffered, found.capacity) == (0, 3, 128)
    subscriber.request(1)
    assert look(subscriber.subscription).buffered == 3
    subscriber.request(1)
    assert look(subscriber.subscription).buffered == 2
    subscriber.cancel()
    assert look(subscriber.subscription).buffered == 0


def test_demand_requested_before_the_end_of_a_reduction_stays_outstanding() -> None:
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).count(), request=2)
    publisher.next(1).next(2)
    assert look(subscriber.subscription).requested == 2
    publisher.complete()
    subscriber.assert_result(2)


def test_a_loop_that_holds_a_part_of_the_demand_says_that_it_is_not_known() -> None:
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).flat_map_iterable(lambda n: [n]), request=3)
    publisher.next(1)
    assert look(subscriber.subscription).requested is None
    subscriber.cancel()
    seen: list[int | None] = []
    observe(
        flow.range(2), request=2, on_item=lambda it, _: seen.append(look(it.subscription).requested)
    )
    assert seen == [None, None]


def test_a_subscriber_of_functions_counts_down_its_prefetch() -> None:
    publisher = TestPublisher[int]()
    handle = Flow(publisher).subscribe(prefetch=8)
    for n in range(5):
        publisher.next(n)
    found = look(handle)
    assert (found.operator, found.requested, found.capacity) == ("subscriber", 3, 8)
    publisher.next(5)
    assert look(handle).requested == 8
    assert not look(handle).terminated
    publisher.complete()
    assert look(handle) == Statistics(
        operator="subscriber", requested=0, capacity=8, terminated=True
    )


def test_a_chain_is_walked_from_the_handle_to_the_source() -> None:
    handle = (
        flow.never().map(str).hide().take(3).do_on_request(print).filter(bool).subscribe(prefetch=4)
    )
    assert operators(handle) == [
        "subscriber",
        "filter(bool)",
        "do_on_request(print)",
        "take(count=3)",
        "hide()",
        "map(str)",
        "never",
    ]
    assert [each.requested for each in links(handle)] == [4, 4, None, 4, None, 3, None]
    handle.dispose()


def test_names_and_tags_belong_to_their_loop() -> None:
    made = flow.never().name("readings").tag("site", "north").hide().name("all").tag("of", "us")
    handle = made.tag("a", "b").subscribe()
    found = [(each.name, each.tags) for each in links(handle)]
    assert found == [
        (None, ()),
        ("all", (("of", "us"), ("a", "b"))),
        (None, ()),
        ("readings", (("site", "north"),)),
        (None, ()),
    ]
    handle.dispose()


# -- how it stands


def test_a_completed_flow_is_terminated_and_was_not_cancelled() -> None:
    publisher = TestPublisher[int]()
    for made in (flow.range(3), flow.range(3).map(str), Flow(publisher).map(str)):
        subscriber = observe(made)
        if source_of(made) is publisher:
            publisher.complete()
        found = look(subscriber.subscription)
        assert (found.terminated, found.cancelled) == (True, False), made


def test_a_cancelled_flow_is_both() -> None:
    emitters: list[Emitter[int]] = []
    flows: list[Flow[Any]] = [
        flow.range(3).map(str),
        flow.never().map(str),
        flow.never().pipe(serialize()),
        flow.create(emitters.append),
    ]
    for made in flows:
        subscriber = observe(made, request=1)
        subscriber.cancel()
        found = look(subscriber.subscription)
        assert (found.terminated, found.cancelled) == (True, True), made


def test_an_error_that_waits_for_demand_is_shown() -> None:
    error = LookupError("waits")
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).flat_map_iterable(lambda n: [n, n]), request=1)
    publisher.next(1).error(error)
    found = look(subscriber.subscription)
    assert found.error is error
    assert not found.terminated
    subscriber.request(2)
    subscriber.assert_failure(error, 1, 1)
    assert look(subscriber.subscription).error is None


def test_granted_fusion_is_shown_and_polled_items_have_no_demand() -> None:
    polled = TestSubscriber[str](0, fusion=Fusion.SYNC)
    flow.range(3).map(str).subscribe(polled)
    found = look(polled.subscription)
    assert (found.fusion, found.requested) == (Fusion.SYNC, None)
    behind = TestSubscriber[str](0, fusion=Fusion.SYNC)
    flow.range(3).hide().map(str).subscribe(behind)
    assert look(behind.subscription).fusion is Fusion.NONE

    emitters: list[Emitter[int]] = []
    shared = TestSubscriber[str](2, fusion=Fusion.ASYNC)
    flow.create(emitters.append).map(str).subscribe(shared)
    assert [each.fusion for each in watched(shared)] == [Fusion.ASYNC, Fusion.ASYNC]
    shared.cancel()


# -- sources and subscribers


@pytest.mark.parametrize(
    ("overflow", "requested", "buffered"),
    [("buffer", 0, 2), ("latest", 0, 1), ("drop", 0, 0)],
)
def test_an_emitter_tells_what_waits(overflow: Any, requested: int, buffered: int) -> None:
    emitters: list[Emitter[int]] = []
    made: Flow[int] = flow.create(emitters.append, overflow=overflow)
    subscriber = observe(made, request=3)
    emitters[0].next(1)
    assert look(subscriber.subscription).requested == 2
    for n in range(4):
        emitters[0].next(n)
    found = look(subscriber.subscription)
    assert (found.requested, found.buffered) == (requested, buffered)
    assert found.operator.startswith("create(")
    subscriber.cancel()


def test_a_blocking_iteration_is_seen_by_a_hook_and_tells_what_waits() -> None:
    handles: list[Any] = []

    def keep(subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        handles.append(subscriber)
        return subscriber

    def send(emitter: Emitter[int]) -> None:
        for n in (1, 2, 3):
            emitter.next(n)

    iterator = flow.create(send).map(str).iterate(prefetch=4)
    with hooks.on_subscribe.scoped("test", keep):
        assert next(iterator) == "1"
    found = look(handles[0])
    assert (found.operator, found.buffered, found.requested, found.capacity) == ("for", 2, 1, 4)
    assert operators(handles[0])[:2] == ["for", "map(str)"]
    closing: Any = iterator
    closing.close()
    assert look(handles[0]).cancelled


def test_items_that_a_blocking_iteration_has_taken_are_not_outstanding() -> None:
    handles: list[Any] = []

    def keep(subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        handles.append(subscriber)
        return subscriber

    def send(emitter: Emitter[int]) -> None:
        for n in range(5):
            emitter.next(n)

    told: list[tuple[int | None, int | None]] = []
    with hooks.on_subscribe.scoped("test", keep):
        for item in flow.create(send).iterate(prefetch=8):
            found = look(handles[0])
            told.append((found.buffered, found.requested))
            if item == 4:
                break
    assert told == [(4, 3), (3, 3), (2, 3), (1, 3), (0, 3)]


def test_an_asynchronous_iteration_and_its_source_tell_of_themselves() -> None:
    handles: list[Any] = []

    def keep(subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        handles.append(subscriber)
        return subscriber

    async def numbers() -> AsyncIterator[int]:
        for n in range(3):
            yield n
        await asyncio.Event().wait()

    async def main() -> list[Statistics]:
        with hooks.on_subscribe.scoped("test", keep):
            iterator = aiter(flow.from_async_iterable(numbers()).map(str))
            first = await anext(iterator)
        assert first == "0"
        await asyncio.sleep(0)
        found = list(links(handles[0]))
        closing: Any = iterator
        await closing.aclose()
        return found

    found = asyncio.run(main())
    assert [each.operator for each in found] == [
        "async for",
        "map(str)",
        "from_async_iterable(numbers)",
    ]
    assert found[0].buffered == 2
    assert [each.requested for each in found] == [125, 125, 125]


def test_a_future_of_a_flow_is_a_link_too() -> None:
    handles: list[Any] = []

    def keep(subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        handles.append(subscriber)
        return subscriber

    publisher = TestPublisher[int]()
    with hooks.on_subscribe.scoped("test", keep):
        future = Flow(publisher).to_future()
    publisher.next(1)
    found = look(handles[0])
    assert (found.operator, found.requested, found.buffered) == ("to_future", 1, 1)
    publisher.complete()
    assert future.result(TIMEOUT_S) == 1
    assert look(handles[0]).terminated


def test_a_failed_source_is_an_ended_link() -> None:
    subscriber = observe(flow.error(ValueError("x")))
    found = look(subscriber.subscription)
    assert (found.terminated, found.upstream) == (True, None)


def test_a_serialized_flow_tells_what_waits() -> None:
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).pipe(serialize(prefetch=8)), request=2)
    for n in range(5):
        publisher.next(n)
    found = look(subscriber.subscription)
    assert (found.requested, found.buffered, found.capacity) == (0, 3, 8)
    subscriber.cancel()


# -- what comes from elsewhere


class Foreign:
    """A subscription that shows nothing of itself."""

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


def test_a_foreign_subscription_is_only_named() -> None:
    class Source:
        def subscribe(self, subscriber: Any, /) -> None:
            subscriber.on_subscribe(Foreign())

    handle = Flow[int](Source()).map(str).subscribe()
    assert operators(handle) == ["subscriber", "map(str)", "Foreign"]
    assert list(links(handle))[-1] == Statistics(operator="Foreign")
    assert not isinstance(Foreign(), Scannable)


def test_a_foreign_subscriber_may_be_written_with_lift_and_tell_of_itself() -> None:
    class Counting(CoreSubscriber[int]):
        def __init__(self, downstream: CoreSubscriber[int]) -> None:
            self.downstream = downstream
            self.upstream: Subscription | None = None
            self.count = 0

        def on_subscribe(self, subscription: Subscription, /) -> None:
            self.upstream = subscription
            self.downstream.on_subscribe(self)

        def on_next(self, item: int, /) -> None:
            self.count += 1
            self.downstream.on_next(item)

        def on_error(self, error: BaseException, /) -> None:
            self.downstream.on_error(error)

        def on_complete(self) -> None:
            self.downstream.on_complete()

        def request(self, n: int, /) -> None:
            assert self.upstream is not None
            self.upstream.request(n)

        def cancel(self) -> None:
            assert self.upstream is not None
            self.upstream.cancel()

        def statistics(self) -> Statistics:
            return Statistics(operator=f"counted {self.count}", upstream=self.upstream)

    publisher = TestPublisher[int]()
    handle = Flow(publisher).map(abs).pipe(lift("counting", Counting)).subscribe()
    publisher.next(1).next(2)
    assert operators(handle)[:3] == ["subscriber", "counted 2", "map(abs)"]
    handle.dispose()


def test_links_that_form_a_ring_are_walked_once() -> None:
    class Ring:
        def statistics(self) -> Statistics:
            return Statistics(operator="ring", upstream=self)

    assert operators(Ring()) == ["ring"]


# -- the report


def test_a_report_is_a_table_of_all_links() -> None:
    publisher = TestPublisher[int]()
    handle = (
        Flow(publisher).name("numbers").hide().flat_map_iterable(lambda n: [n] * 9).tag("k", "v")
    ).subscribe(prefetch=4)
    text = report(handle).splitlines()
    assert text[0].split() == ["operator", "requested", "buffered", "state", "name"]
    assert text[1].split()[:4] == ["subscriber", "4", "0/4", "running"]
    assert "| name(name='numbers') | hide() |" in text[1], "what was subscribed to"
    assert text[2].endswith("k=v")
    assert text[4].endswith("running  numbers")
    handle.dispose()
    assert "ended" in report(handle)


def test_a_report_shows_fusion_errors_inner_flows_and_long_chains_shortly() -> None:
    class Inner:
        def statistics(self) -> Statistics:
            return Statistics(operator="inner", requested=UNBOUNDED)

    class Outer:
        def statistics(self) -> Statistics:
            return Statistics(
                operator="x" * 99,
                fusion=Fusion.ASYNC,
                error=ValueError("y"),
                inners=(Inner(),),
                cancelled=True,
            )

    text = report(Outer()).splitlines()
    assert "x" * 59 + "…" in text[1]
    assert text[1].endswith("cancelled, ASYNC, failing with ValueError")
    assert text[2].split() == ["inner", "unbounded", "0", "running"]
    assert text[2].startswith("  inner")


# -- from other threads, and without a trace


def test_a_running_flow_is_read_by_another_thread() -> None:
    inside, go_on = Event(), Event()

    def wait(n: int) -> None:
        if n == 3:
            inside.set()
            assert go_on.wait(TIMEOUT_S)

    publisher = TestPublisher[int]()
    made = Flow(publisher).do_on_next(wait).flat_map_iterable(lambda n: [n])
    subscriber = observe(made, request=UNBOUNDED)

    def produce() -> None:
        for n in range(4):
            publisher.next(n)

    thread = Thread(target=produce)
    thread.start()
    assert inside.wait(TIMEOUT_S)
    found = look(subscriber.subscription)
    assert (found.requested, found.terminated) == (UNBOUNDED, False)
    go_on.set()
    thread.join(TIMEOUT_S)
    subscriber.assert_items(0, 1, 2, 3).cancel()


def test_reading_all_the_time_disturbs_nothing() -> None:
    done = Event()
    subscriber = TestSubscriber[list[int]](0)
    made = flow.range(3_000).hide().map(abs).buffer_with_count(3).name("threes")
    made.subscribe(subscriber)
    seen: list[Statistics] = []

    def run() -> None:
        try:
            while not subscriber.terminated:
                subscriber.request(7)
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            seen.extend(links(subscriber.subscription))

    race(run, read)
    assert subscriber.items == [[n, n + 1, n + 2] for n in range(0, 3_000, 3)]
    subscriber.assert_rules_kept()
    assert all(0 <= each.buffered <= 128 for each in seen)


def test_a_record_refers_to_what_is_upstream_only() -> None:
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).map(str))
    record = look(subscriber.subscription)
    gone = weakref.ref(subscriber)
    assert record.upstream is not None
    subscriber.cancel()
    del subscriber
    assert gone() is None


class Changing(list[int]):
    """Is changed by another thread while it is copied, the first time."""

    def __iter__(self) -> Iterator[int]:
        if not self:
            self.append(7)
            raise RuntimeError("deque mutated during iteration")
        return super().__iter__()


def test_a_snapshot_is_taken_again_if_a_thread_has_been_at_the_deque() -> None:
    assert snapshot(Changing()) == (7,)
