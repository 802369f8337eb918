"""`group_by_until`: when groups end, and what becomes of their flows that end them."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import MissingBackpressureError
from flow_ops import GroupedFlow, flat_map, group_by_until
from flow_testing import TestPublisher, TestSubscriber, VirtualClock, assert_result

Groups = flow.Flow[GroupedFlow[int, int]]


def lists(groups: Groups) -> flow.Flow[tuple[int, list[int]]]:
    return groups.flat_map(lambda group: group.to_list().map(lambda some: (group.key, some)))


class Ends:
    """The flows that end groups, which the test plays, by key."""

    def __init__(self) -> None:
        self.sources: dict[int, list[TestPublisher[int]]] = {}

    def __call__(self, group: GroupedFlow[int, int]) -> flow.Flow[int]:
        source = TestPublisher[int]()
        self.sources.setdefault(group.key, []).append(source)
        return flow.Flow(source)


@pytest.mark.parametrize("prefetch", [1, 2, 128])
@pytest.mark.parametrize("delay_error", [False, True])
def test_each_group_ends_when_its_flow_gives_an_item_and_another_begins(
    prefetch: int, delay_error: bool
) -> None:
    operator: flow.Operator[int, Groups] = group_by_until(
        lambda n: n % 2,
        lambda group: group.skip(1),
        prefetch=prefetch,
        delay_error=delay_error,
    )
    assert_result(
        lambda: lists(flow.range(10).pipe(operator)),
        [(0, [0, 2]), (1, [1, 3]), (0, [4, 6]), (1, [5, 7]), (0, [8]), (1, [9])],
    )


@pytest.mark.parametrize("how", ["item", "completion"])
def test_the_flow_that_ends_a_group_is_asked_for_one_item_and_left(how: str) -> None:
    source, ends = TestPublisher[int](), Ends()
    subscriber = TestSubscriber[tuple[int, list[int]]]()
    lists(flow.Flow(source).group_by_until(lambda n: n % 2, ends)).subscribe(subscriber)
    source.next(2, 4)
    ends.sources[0][0].assert_requests(1)
    if how == "item":
        ends.sources[0][0].next(9)
        ends.sources[0][0].assert_cancelled()
    else:
        ends.sources[0][0].complete()
    subscriber.assert_items((0, [2, 4]))
    source.next(6)
    assert len(ends.sources[0]) == 2
    source.complete()
    subscriber.assert_result((0, [2, 4]), (0, [6]))
    ends.sources[0][1].assert_cancelled()


def test_a_session_of_each_key() -> None:
    with VirtualClock() as clock:
        subscriber = TestSubscriber[tuple[int, list[int]]]()
        times = flow.just(1, 2, 3, 10, 11, 12)
        items = times.flat_map(lambda n: flow.timer(n).map(lambda _: n))
        lists(items.group_by_until(lambda n: n % 2, lambda group: group.debounce(5))).subscribe(
            subscriber
        )
        clock.run()
    subscriber.assert_result((0, [2]), (1, [1, 3]), (0, [10, 12]), (1, [11]))


def test_the_error_of_a_flow_that_ends_a_group_fails_all() -> None:
    source, ends, error = TestPublisher[int](), Ends(), OSError("gone")
    groups: list[TestSubscriber[int]] = []

    def subscribe(_: object, group: flow.Flow[int]) -> None:
        groups.append(TestSubscriber[int]())
        group.subscribe(groups[-1])

    subscriber = TestSubscriber[Any](on_item=subscribe)
    flow.Flow(source).group_by_until(lambda n: n % 2, ends).subscribe(subscriber)
    source.next(1, 2)
    ends.sources[1][0].error(error)
    subscriber.assert_failure(error, *subscriber.items)
    for group in groups:
        group.assert_failure(error, *group.items)
    source.assert_cancelled()
    ends.sources[0][0].assert_cancelled()


@pytest.mark.parametrize("fails", ["raises", "gives no flow"])
def test_an_error_that_until_raises_fails_the_flow(fails: str) -> None:
    def until(group: GroupedFlow[int, int]) -> Any:
        return 1 // 0 if fails == "raises" else 3

    error = ZeroDivisionError if fails == "raises" else TypeError
    with pytest.raises(error) as caught:
        list(lists(flow.range(3).group_by_until(lambda n: n, until)))
    assert any("group_by_until" in note for note in caught.value.__notes__)


def test_cancelling_a_group_cancels_the_flow_that_would_end_it() -> None:
    source, ends = TestPublisher[int](), Ends()
    subscriber = TestSubscriber[int]()
    taken = (
        flow.Flow(source)
        .group_by_until(lambda n: n % 2, ends)
        .pipe(flat_map(lambda group: group.take(1)))
    )
    taken.subscribe(subscriber)
    source.next(1)
    ends.sources[1][0].assert_cancelled()
    source.next(3)
    assert len(ends.sources[1]) == 2
    subscriber.assert_items(1, 3).cancel()
    source.assert_cancelled()
    ends.sources[1][1].assert_cancelled()


def test_groups_that_have_ended_make_room_for_others(dropped: Any) -> None:
    items = flow.range(1000)
    ended = items.group_by_until(lambda n: n, lambda group: group, max_groups=2)
    assert len(list(ended.flat_map(lambda group: group.to_list()))) == 1000
    with pytest.raises(MissingBackpressureError, match="raise max_groups"):
        list(lists(items.group_by_until(lambda n: n, lambda _: flow.never(), max_groups=2)))
    del dropped


def test_a_group_without_a_subscriber_keeps_its_items_when_it_has_ended() -> None:
    source, ends = TestPublisher[int](), Ends()
    subscriber = TestSubscriber[Any]()
    flow.Flow(source).group_by_until(lambda n: n % 2, ends).subscribe(subscriber)
    source.next(1, 3)
    ends.sources[1][0].complete()
    late = TestSubscriber[int]()
    subscriber.items[0].subscribe(late)
    late.assert_result(1, 3)
    subscriber.cancel()
    source.assert_cancelled()


def test_the_flow_of_values_is_what_until_looks_at() -> None:
    pairs = flow.range(4).group_by_until(
        lambda n: n % 2,
        lambda group: group.filter(lambda text: text == "<2>"),
        value=lambda n: f"<{n}>",
    )
    assert list(pairs.flat_map(lambda group: group.to_list())) == [["<0>", "<2>"], ["<1>", "<3>"]]


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: group_by_until(3, flow.just), TypeError, "group_by_until"),  # type: ignore[call-overload]
        (lambda: group_by_until(len, 3), TypeError, "from a group to a flow"),  # type: ignore[call-overload]
        (lambda: group_by_until(len, flow.just, prefetch=0), ValueError, "prefetch"),
    ],
)
def test_arguments_are_checked(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()
