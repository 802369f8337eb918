"""`rebatch_requests`, and what `take` does for the demand."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.errors import MissingBackpressureError
from flow_ops import rebatch_requests
from flow_testing import (
    BAD_SOURCES,
    BadSource,
    PublisherProbe,
    TestPublisher,
    Violation,
    assert_released,
    assert_result,
    check_bad_source,
    observe,
)


@pytest.mark.parametrize("prefetch", [1, 2, 3, 128])
def test_items_are_the_same(prefetch: int) -> None:
    assert_result(lambda: flow.range(9).pipe(rebatch_requests(prefetch)), list(range(9)))


def test_an_error_comes_after_the_items(dropped: Any) -> None:
    assert_result(
        lambda: flow.range(3).map(lambda n: 6 // (2 - n)).pipe(rebatch_requests(2)),
        [3, 6],
        ZeroDivisionError,
    )


@pytest.mark.checklist("O04")
@pytest.mark.parametrize(
    ("prefetch", "requests"), [(1, [1] * 9), (4, [4, 3, 3]), (8, [8, 6]), (5, [5, 4, 4])]
)
@pytest.mark.parametrize("each", [1, 2, 8])
def test_requests_are_three_quarters_of_the_prefetch_whatever_is_asked_for(
    prefetch: int, requests: list[int], each: int
) -> None:
    probe = PublisherProbe(flow.range(100).hide())
    subscriber = observe(probe.flow.pipe(rebatch_requests(prefetch)), 0)
    while len(subscriber.items) < 8:
        subscriber.request(each)
    assert probe.requests[: len(requests)] == requests
    assert probe.requested <= 8 + prefetch


def test_requests_of_the_downstream_do_not_reach_the_upstream() -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(rebatch_requests(4)), 1)
    source.next(1, 2, 3)
    source.assert_requests(4)
    subscriber.assert_items(1).request(2)
    source.assert_requests(4, 3)
    subscriber.request(flow.UNBOUNDED)
    source.assert_requests(4, 3)


def test_a_source_that_overflows_is_cancelled(dropped: Any) -> None:
    source = TestPublisher[int](Violation.OVERFLOW)
    subscriber = observe(Flow(source).pipe(rebatch_requests(2)), 0)
    source.next(1, 2, 3)
    source.assert_cancelled()
    subscriber.request(5)
    subscriber.assert_failure(MissingBackpressureError, 1, 2)
    assert dropped.items == [3]


@pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)
def test_it_keeps_the_rules_behind_a_bad_source(bad: BadSource, dropped: Any) -> None:
    check_bad_source(
        lambda source: source.pipe(rebatch_requests(4)),
        bounded=True,
        only=lambda name: name == bad.name,
    )


def test_it_lets_go_of_everything() -> None:
    assert_released(lambda payloads: payloads.pushed().pipe(rebatch_requests(2)))
    assert_released(lambda payloads: flow.from_iterable(payloads).pipe(rebatch_requests(2)))


@pytest.mark.parametrize("prefetch", [0, -1])
def test_a_batch_is_one_item_at_least(prefetch: int) -> None:
    with pytest.raises(ValueError):
        rebatch_requests(prefetch)


# -- `take` is what others call limit_request


@pytest.mark.parametrize("requests", [[2, 2, 100], [flow.UNBOUNDED]])
def test_take_never_requests_more_than_it_gives(requests: list[int]) -> None:
    probe = PublisherProbe(flow.range(100).hide())
    subscriber = observe(probe.flow.take(5), 0)
    for n in requests:
        subscriber.request(n)
    subscriber.assert_result(*range(5))
    assert probe.requested == 5
