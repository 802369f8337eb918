"""The groups of `group_by`: the items of each key, in order."""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core.errors import MissingBackpressureError, NoneItemError, ProtocolViolationError
from flow_core.protocols import EMPTY, Fusion
from flow_ops import GroupedFlow, concat_map, flat_map, group_by, observe_on
from flow_testing import TestPublisher, TestSubscriber, Violation, assert_result


def tagged(group: GroupedFlow[Any, Any]) -> flow.Flow[tuple[Any, Any]]:
    return group.map(lambda value: (group.key, value))


@pytest.mark.checklist("F52", "F56")
@pytest.mark.parametrize("prefetch", [1, 2, 128])
@pytest.mark.parametrize("delay_error", [False, True])
def test_every_item_comes_to_the_group_of_its_key(prefetch: int, delay_error: bool) -> None:
    assert_result(
        lambda: (
            flow.range(9)
            .pipe(group_by(lambda n: n % 3, prefetch=prefetch, delay_error=delay_error))
            .pipe(flat_map(tagged))
        ),
        [(n % 3, n) for n in range(9)],
    )


@pytest.mark.checklist("F52")
def test_hidden_groups_give_the_same() -> None:
    assert_result(
        lambda: (
            flow.range(9)
            .pipe(group_by(lambda n: n % 3, prefetch=2))
            .hide()
            .pipe(flat_map(lambda group: tagged(group).hide()))
        ),
        [(n % 3, n) for n in range(9)],
    )


@pytest.mark.checklist("F52", "F56")
def test_fused_groups_are_polled_by_concat_map() -> None:
    assert_result(
        lambda: (
            flow.range(9)
            .pipe(group_by(lambda n: n % 3, prefetch=16))
            .pipe(flat_map(lambda group: group.pipe(concat_map(lambda n: flow.just(n, -n)))))
        ),
        [m for n in range(9) for m in (n, -n)],
    )


def test_the_flow_of_groups_takes_operators_like_any_flow() -> None:
    assert_result(
        lambda: flow.range(9).pipe(group_by(lambda n: n % 3)).map(lambda group: group.key),
        [0, 1, 2],
    )


def test_values_and_any_hashable_key() -> None:
    keys: list[Hashable] = [None, "a", (1, 2)]
    assert_result(
        lambda: (
            flow.range(3)
            .pipe(group_by(lambda n: keys[n], value=lambda n: n * 10))
            .pipe(flat_map(tagged))
        ),
        [(None, 0), ("a", 10), ((1, 2), 20)],
    )


@given(
    st.lists(st.integers(0, 300)),
    st.integers(1, 8),
    st.integers(1, 200),
    st.booleans(),
    st.booleans(),
)
@settings(deadline=None)
def test_groups_are_a_dict_of_lists(
    items: list[int], keys: int, prefetch: int, hidden: bool, delay_error: bool
) -> None:
    model: dict[int, list[int]] = {}
    for item in items:
        model.setdefault(item % keys, []).append(item)
    grouped = flow.from_iterable(items).pipe(
        group_by(lambda n: n % keys, prefetch=prefetch, delay_error=delay_error)
    )
    lists = grouped.pipe(
        flat_map(
            lambda group: (
                (group.hide() if hidden else group)
                .to_list()
                .map(lambda values: (group.key, values))
            )
        )
    )
    assert dict(lists) == model


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=30), st.integers(1, 9))
@settings(deadline=None)
def test_after_a_group_is_cancelled_its_key_begins_a_new_group(
    sizes: list[tuple[int, int]], prefetch: int
) -> None:
    """Each group takes as many items as its first one says."""
    model: list[list[tuple[int, int]]] = []
    open_: dict[int, list[tuple[int, int]]] = {}
    for item in sizes:
        if item[0] not in open_:
            open_[item[0]] = []
            model.append(open_[item[0]])
        group = open_[item[0]]
        group.append(item)
        if len(group) == group[0][1]:
            del open_[item[0]]
    seen: list[list[tuple[int, int]]] = []

    def limited(group: GroupedFlow[int, tuple[int, int]]) -> flow.Flow[int]:
        own: list[tuple[int, int]] = []
        seen.append(own)
        return group.do_action(own.append).take_until(lambda _: len(own) == own[0][1]).count()

    flow.from_iterable(sizes).pipe(group_by(lambda item: item[0], prefetch=prefetch)).pipe(
        flat_map(limited)
    ).to_list().single()
    assert seen == model


@pytest.mark.checklist("F52")
@pytest.mark.parametrize("prefetch", [1, 2, 7, 128])
def test_groups_on_other_threads_hang_never(prefetch: int) -> None:
    items = range(1000)
    with ThreadPoolExecutor(2) as pool:
        counts = (
            flow.from_iterable(items)
            .pipe(group_by(lambda n: n % 7, prefetch=prefetch))
            .pipe(
                flat_map(
                    lambda group: (
                        group.pipe(observe_on(pool, prefetch=4))
                        .to_list()
                        .map(lambda values: (group.key, values))
                    )
                )
            )
        )
        lists = dict(counts)
    assert lists == {key: [n for n in items if n % 7 == key] for key in range(7)}


# -- demand


def test_waiting_items_are_bounded_and_consumed_items_are_requested_again() -> None:
    source = TestPublisher[int]()
    groups = TestSubscriber[GroupedFlow[int, int]](2)
    flow.Flow(source).pipe(group_by(lambda n: n % 2, prefetch=4)).subscribe(groups)
    source.assert_requests(4)
    source.next(0, 1, 2, 3)
    even, odd = groups.items
    source.assert_requests(4)
    one, two = TestSubscriber[int](1), TestSubscriber[int](1)
    even.subscribe(one)
    source.assert_requests(4, 1)  # nothing was to come any more: 75 % is not waited for
    odd.subscribe(two)
    source.assert_requests(4, 1)
    one.request(1)
    two.request(1)
    source.assert_requests(4, 1, 3)
    one.assert_items(0, 2)
    two.assert_items(1, 3)


def test_a_group_that_pauses_does_not_stop_the_others_before_the_prefetch_is_used_up() -> None:
    source = TestPublisher[int](on_request=lambda publisher, n: None)
    groups = TestSubscriber[GroupedFlow[int, int]]()
    flow.Flow(source).pipe(group_by(lambda n: n % 2, prefetch=4)).subscribe(groups)
    source.next(1, 3, 5)  # never consumed
    source.next(0)
    seen = TestSubscriber[int]()
    groups.items[1].subscribe(seen)
    for n in range(2, 40, 2):
        source.next(n)
    seen.assert_items(*range(0, 40, 2))


def test_groups_wait_for_demand_with_their_items() -> None:
    source = TestPublisher[int]()
    groups = TestSubscriber[GroupedFlow[int, int]](0)
    flow.Flow(source).pipe(group_by(lambda n: n, prefetch=3)).subscribe(groups)
    source.next(1, 2, 3).complete()
    groups.assert_no_items().assert_not_terminated()
    groups.request(2)
    assert [group.key for group in groups.items] == [1, 2]
    groups.assert_not_terminated()
    groups.request(1)
    assert [list(group) for group in groups.items] == [[1], [2], [3]]
    assert groups.terminated


def test_an_upstream_that_ignores_demand_fails_the_flow() -> None:
    source = TestPublisher[int](Violation.OVERFLOW)
    groups = TestSubscriber[GroupedFlow[int, int]]()
    flow.Flow(source).pipe(group_by(lambda n: n, prefetch=1, delay_error=True)).subscribe(groups)
    source.next(1, 2)
    assert len(groups.items) == 1
    groups.assert_failure(MissingBackpressureError, *groups.items)
    source.assert_cancelled()


def test_one_group_too_many_fails_the_flow_and_names_the_way_out() -> None:
    failing = flow.range(5).pipe(group_by(lambda n: n, max_groups=3)).pipe(flat_map(tagged))
    with pytest.raises(MissingBackpressureError, match="raise max_groups") as caught:
        list(failing)
    assert "group_by(" in caught.value.__notes__[0]


def test_cancelled_groups_make_room() -> None:
    one_each = flow.range(500).pipe(group_by(lambda n: n, max_groups=1, prefetch=1))
    assert list(one_each.pipe(flat_map(lambda group: group.take(1)))) == list(range(500))


def test_twice_as_many_keys_as_are_run_at_a_time_fail_by_default() -> None:
    with pytest.raises(MissingBackpressureError):
        list(flow.range(1000).pipe(group_by(lambda n: n % 129)).pipe(flat_map(tagged)))


# -- one subscriber


@pytest.mark.checklist("M02")
def test_a_second_subscriber_gets_an_error() -> None:
    groups = list(flow.just(1).pipe(group_by(str)))
    assert list(groups[0]) == [1]
    with pytest.raises(ProtocolViolationError, match=r"the group '1' of group_by\("):
        list(groups[0])


@pytest.mark.checklist("M02")
def test_a_group_keeps_items_for_a_late_subscriber_while_others_continue() -> None:
    source = TestPublisher[int]()
    groups = TestSubscriber[GroupedFlow[int, int]]()
    flow.Flow(source).pipe(group_by(lambda n: n % 2)).subscribe(groups)
    source.next(1)
    seen = TestSubscriber[int]()
    source.next(2)
    groups.items[1].subscribe(seen)
    source.next(3, 4, 5)
    seen.assert_items(2, 4)
    late = TestSubscriber[int]()
    groups.items[0].subscribe(late)
    late.assert_items(1, 3, 5)
    source.complete()
    late.assert_result(1, 3, 5)
    seen.assert_result(2, 4)


@pytest.mark.checklist("F52")
def test_a_group_is_polled() -> None:
    (group,) = flow.just(1, 2).pipe(group_by(lambda _: "all"))
    seen = TestSubscriber[int](0, fusion=Fusion.ANY | Fusion.THREAD_BOUNDARY)
    group.subscribe(seen)
    seen.assert_fusion(Fusion.ASYNC)
    queue: Any = seen.subscription
    seen.request(5)
    assert seen.items == [1, 2]
    assert queue.poll() is EMPTY


# -- errors


def test_an_error_ends_the_groups_and_overtakes_waiting_items(dropped: Any) -> None:
    source = TestPublisher[int]()
    groups = TestSubscriber[GroupedFlow[int, int]](1)
    flow.Flow(source).pipe(group_by(lambda n: n % 2)).subscribe(groups)
    source.next(0, 2)
    seen = TestSubscriber[int](1)
    groups.items[0].subscribe(seen)
    source.next(1)
    error = ValueError("upstream")
    source.error(error)
    seen.assert_failure(error, 0)
    groups.assert_failure(error, *groups.items)
    assert len(groups.items) == 1
    assert sorted(dropped.items) == [1, 2]


def test_a_delayed_error_comes_after_waiting_items() -> None:
    source = TestPublisher[int]()
    groups = TestSubscriber[GroupedFlow[int, int]](1)
    flow.Flow(source).pipe(group_by(lambda n: n % 2, delay_error=True)).subscribe(groups)
    source.next(0, 2, 1)
    seen = TestSubscriber[int](1)
    groups.items[0].subscribe(seen)
    error = ValueError("upstream")
    source.error(error)
    seen.assert_not_terminated()
    seen.request(1)
    seen.assert_failure(error, 0, 2)
    groups.request(1)
    groups.assert_failure(error, *groups.items)
    late = TestSubscriber[int]()
    groups.items[1].subscribe(late)
    late.assert_failure(error, 1)


@pytest.mark.parametrize("where", ["key", "value"])
def test_an_error_that_a_function_raises_fails_the_flow_and_its_groups(
    where: str, dropped: Any
) -> None:
    error = ValueError("mine")

    def function(n: int) -> int:
        if n == 2:
            raise error
        return 0

    source = TestPublisher[int]()
    groups = TestSubscriber[GroupedFlow[int, int]]()
    operator = group_by(function) if where == "key" else group_by(lambda _: 0, value=function)
    flow.Flow(source).pipe(operator).subscribe(groups)
    source.next(1)
    seen = TestSubscriber[int]()
    groups.items[0].subscribe(seen)
    source.next(2)
    assert groups.terminated
    assert seen.terminated
    groups.assert_failure(error, *groups.items)
    seen.assert_failure(error, *seen.items)
    source.assert_cancelled()
    assert any("group_by(" in note for note in error.__notes__)
    assert dropped.errors == []


def test_none_is_not_a_value() -> None:
    with pytest.raises(NoneItemError):
        list(flow.just(1).pipe(group_by(str, value=lambda _: None)))


def test_an_unhashable_key_fails_the_flow() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        list(flow.just(1).pipe(group_by(lambda n: [n])))


def test_arguments_are_checked_at_once() -> None:
    with pytest.raises(TypeError, match="group_by"):
        group_by(3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="value"):
        group_by(str, value=3)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="max_groups"):
        group_by(str, max_groups=0)
    with pytest.raises(ValueError, match="prefetch"):
        group_by(str, prefetch=0)


# -- cancel


def begun(
    prefetch: int = 8, **more: Any
) -> tuple[TestPublisher[int], TestSubscriber[GroupedFlow[int, int]]]:
    source = TestPublisher[int]()
    groups = TestSubscriber[GroupedFlow[int, int]]()
    flow.Flow(source).pipe(group_by(lambda n: n % 2, prefetch=prefetch, **more)).subscribe(groups)
    return source, groups


def test_groups_with_a_subscriber_run_on_when_their_flow_is_cancelled(dropped: Any) -> None:
    source, groups = begun()
    source.next(0, 1)
    seen = TestSubscriber[int]()
    groups.items[0].subscribe(seen)
    groups.cancel()
    source.assert_not_cancelled()
    source.next(2, 3)
    seen.assert_items(0, 2)
    assert dropped.items == [1, 3]
    late = TestSubscriber[int]()
    groups.items[1].subscribe(late)
    late.assert_failure(ProtocolViolationError)
    seen.cancel()
    source.assert_cancelled()


def test_dropped_items_are_requested_again() -> None:
    source, groups = begun(prefetch=1)
    source.next(0)
    seen = TestSubscriber[int]()
    groups.items[0].subscribe(seen)
    groups.cancel()
    for n in range(1, 10):
        source.next(n)
    source.complete()
    seen.assert_result(0, 2, 4, 6, 8)


def test_without_groups_a_cancel_cancels_the_upstream() -> None:
    source, groups = begun()
    groups.cancel()
    source.assert_cancelled()
    source, groups = begun()
    source.next(1)
    groups.cancel()
    source.assert_cancelled()


def test_the_last_group_that_is_cancelled_cancels_the_upstream_only_without_the_flow() -> None:
    source, groups = begun()
    source.next(0)
    seen = TestSubscriber[int]()
    groups.items[0].subscribe(seen)
    seen.cancel()
    source.assert_not_cancelled()
    source.next(2)
    assert [group.key for group in groups.items] == [0, 0]
    groups.cancel()
    source.assert_cancelled()


def test_items_that_wait_in_a_cancelled_group_are_dropped_and_requested_again(dropped: Any) -> None:
    source, groups = begun(prefetch=2)
    source.next(0, 2)
    source.assert_requests(2)
    seen = TestSubscriber[int](0)
    groups.items[0].subscribe(seen)
    seen.cancel()
    source.assert_requests(2, 1)
    assert dropped.items == [0, 2]


def test_a_bad_request_for_items_ends_that_group_alone() -> None:
    source, groups = begun(prefetch=1)
    source.next(0)
    seen = TestSubscriber[int](0)
    groups.items[0].subscribe(seen)
    seen.subscription.request(0)
    seen.assert_failure(ValueError)
    source.next(2)
    assert len(groups.items) == 2
    assert list(groups.items[1].take(1)) == [2]


def test_a_bad_request_for_groups_lets_running_groups_run() -> None:
    source, groups = begun()
    source.next(0)
    seen = TestSubscriber[int]()
    groups.items[0].subscribe(seen)
    groups.subscription.request(-1)
    groups.assert_failure(ValueError, *groups.items)
    source.next(2)
    source.complete()
    seen.assert_result(0, 2)


def test_a_subscriber_of_a_group_that_raises_ends_that_group_alone(dropped: Any) -> None:
    source, groups = begun(prefetch=2)
    error = ValueError("subscriber")

    def fail(*_: object) -> None:
        raise error

    source.next(0)
    groups.items[0].subscribe(TestSubscriber[int](on_item=fail))
    source.next(1, 2)
    assert [group.key for group in groups.items] == [0, 1, 0]
    assert dropped.errors == [error]


def test_take_of_groups_lets_them_run() -> None:
    first = flow.range(10).pipe(group_by(lambda n: n % 3)).take(1).pipe(flat_map(tagged))
    assert list(first) == [(0, 0), (0, 3), (0, 6), (0, 9)]


def test_a_group_cancels_itself_within_an_item() -> None:
    pairs = flow.range(12).pipe(group_by(lambda n: n % 2, prefetch=1))
    lists = pairs.pipe(flat_map(lambda group: group.take(3).to_list()))
    assert sorted(lists) == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]


@pytest.mark.slow
def test_many_groups_after_one_another() -> None:
    grouped = flow.range(20_000).pipe(group_by(lambda n: n, max_groups=2))
    assert grouped.pipe(flat_map(lambda group: group.take(1))).count().single() == 20_000


@pytest.mark.parametrize(
    "way", [flat_map, concat_map, lambda mapper: flat_map(lambda group: mapper(group).hide())]
)
def test_a_group_is_a_flow_and_what_is_made_of_it_is_a_plain_one(way: Any) -> None:
    kinds: list[type[Any]] = []

    def looked_at(group: GroupedFlow[int, int]) -> flow.Flow[int]:
        kinds.extend(map(type, (group, group.map(abs), group.hide(), group.pipe(observe_on(run)))))
        return group

    def run(task: Any) -> None:
        task()

    assert sorted(flow.range(4).pipe(group_by(lambda n: n // 2)).pipe(way(looked_at))) == [
        0,
        1,
        2,
        3,
    ]
    assert kinds == 2 * [GroupedFlow, flow.Flow, flow.Flow, flow.Flow]
