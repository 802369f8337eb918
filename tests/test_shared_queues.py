"""Queue fusion where two packages meet: a processor's queue and a boundary that polls it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import current_thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Fusion, MissingBackpressureError
from flow_multicast import MulticastProcessor, UnicastProcessor
from flow_ops import observe_on
from flow_testing import TestPublisher, TestSubscriber, Violation, race

WAIT_S = 20


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> list[deque[Any]]:
    """The queues that the boundary and the processor make."""
    made: list[deque[Any]] = []

    def spy(*args: Any) -> deque[Any]:
        made.append(deque(*args))
        return made[-1]

    for module in ("flow_ops.threads.observe_on", "flow_multicast.processors.unicast"):
        monkeypatch.setattr(import_module(module), "deque", spy)
    return made


@pytest.mark.checklist("F30", "F57", "F58")
@pytest.mark.parametrize("ended", [False, True])
def test_a_unicast_and_a_boundary_have_one_queue_between_them(
    pool: ThreadPoolExecutor, queues: list[deque[Any]], ended: bool
) -> None:
    processor = UnicastProcessor[int](8)
    subscriber = TestSubscriber[int]()
    if ended:
        for n in range(8):
            processor.on_next(n)
        processor.on_complete()
    processor.flow.pipe(observe_on(pool)).subscribe(subscriber)
    assert processor.statistics().fusion is (Fusion.SYNC if ended else Fusion.ASYNC)
    if not ended:
        for n in range(8):
            processor.on_next(n)
        processor.on_complete()
    subscriber.await_terminal(WAIT_S).assert_result(*range(8))
    assert len(queues) == 1


@pytest.mark.checklist("F01", "F36", "F58")
def test_hidden_from_each_other_they_have_a_queue_each(
    pool: ThreadPoolExecutor, queues: list[deque[Any]]
) -> None:
    processor = UnicastProcessor[int](8)
    subscriber = TestSubscriber[int]()
    processor.flow.hide().pipe(observe_on(pool)).subscribe(subscriber)
    flow.range(100).hide().subscribe(processor)
    subscriber.await_terminal(WAIT_S).assert_result(*range(100))
    assert len(queues) == 2


@pytest.mark.checklist("F48", "F57")
def test_the_whole_way_from_a_processor_to_a_multicast_over_two_boundaries_is_one_queue(
    pool: ThreadPoolExecutor, queues: list[deque[Any]]
) -> None:
    processor = UnicastProcessor[int](16)
    many = MulticastProcessor[int](16)
    first, second = TestSubscriber[int](), TestSubscriber[int](0)
    many.subscribe(first)
    many.subscribe(second)
    processor.flow.pipe(observe_on(pool)).pipe(observe_on(pool)).subscribe(many)
    flow.range(500).hide().subscribe(processor)
    second.request(flow.UNBOUNDED)
    first.await_terminal(WAIT_S).assert_result(*range(500))
    second.await_terminal(WAIT_S).assert_result(*range(500))
    assert len(queues) == 1


@pytest.mark.checklist("F45")
@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ANY])
def test_the_processor_requests_of_its_upstream_what_the_boundary_has_taken(mode: Fusion) -> None:
    tasks: list[Any] = []
    processor = UnicastProcessor[int](4)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    made: Flow[int] = processor.flow if mode else processor.flow.hide()
    made.pipe(observe_on(tasks.append)).subscribe(subscriber := TestSubscriber[int](3))
    publisher.next(0, 1, 2, 3)
    while tasks:
        tasks.pop(0)()
    publisher.assert_requests(4, 3)
    subscriber.assert_items(0, 1, 2)


def test_an_upstream_that_ignores_demand_fails_the_flow_behind_the_boundary(
    pool: ThreadPoolExecutor,
) -> None:
    processor = UnicastProcessor[int](2)
    publisher = TestPublisher[int](Violation.OVERFLOW)
    publisher.subscribe(processor)
    publisher.next(1, 2, 3)
    processor.flow.pipe(observe_on(pool)).subscribe(subscriber := TestSubscriber[int]())
    subscriber.await_terminal(WAIT_S).assert_failure(MissingBackpressureError, 1, 2)


@pytest.mark.checklist("F26", "F33")
def test_cancelling_while_the_processor_is_fed_leaves_nothing_in_it(
    pool: ThreadPoolExecutor,
) -> None:
    for _ in range(100):
        processor = UnicastProcessor[int](4)
        subscriber = TestSubscriber[int]()
        processor.flow.pipe(observe_on(pool)).subscribe(subscriber)

        def feed(processor: UnicastProcessor[int] = processor) -> None:
            for n in range(4):
                processor.offer(n)
            processor.on_complete()

        race(feed, subscriber.cancel)
        pool.submit(int).result(WAIT_S)
        assert subscriber.items == list(range(len(subscriber.items)))
        subscriber.assert_rules_kept()
        assert processor.is_empty()


@pytest.mark.checklist("F37", "F39", "F58")
def test_stages_without_user_code_between_a_processor_and_a_boundary_need_no_queue(
    pool: ThreadPoolExecutor, queues: list[deque[Any]]
) -> None:
    processor = UnicastProcessor[int](8)
    subscriber = TestSubscriber[tuple[int, int]]()
    processor.flow.skip(1).pairwise().pipe(observe_on(pool)).subscribe(subscriber)
    flow.range(100).hide().subscribe(processor)
    subscriber.await_terminal(WAIT_S).assert_result(*((n, n + 1) for n in range(1, 99)))
    assert processor.statistics().fusion is Fusion.ASYNC
    assert len(queues) == 1


@pytest.mark.checklist("F39", "F41")
def test_user_code_after_a_boundary_stays_there_when_a_multicast_follows(
    pool: ThreadPoolExecutor,
) -> None:
    """The thread that requests of a multicast may be the one that polls for it."""
    threads: set[str] = set()
    many = MulticastProcessor[int](8)
    many.subscribe(subscriber := TestSubscriber[int](0))
    flow.range(20).pipe(observe_on(pool)).do_on_next(
        lambda _: threads.add(current_thread().name)
    ).subscribe(many)
    for _ in range(21):
        subscriber.request(1)
    subscriber.await_terminal(WAIT_S).assert_result(*range(20))
    assert current_thread().name not in threads
