"""The time before the first item: on_start, and the stages that are made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow, Fusion, NoneItemError, Stage, Template
from flow_testing import TestPublisher, TestSubscriber, assert_result

each_source = pytest.mark.parametrize(
    "source", [lambda: flow.range(3), lambda: flow.range(3).hide()], ids=["iterated", "hidden"]
)
Source = Callable[[], Flow[int]]


def test_items_come_before_those_of_the_upstream() -> None:
    assert_result(lambda: flow.range(2).start_with(7, 8), [7, 8, 0, 1])
    assert_result(lambda: flow.range(2).start_with(), [0, 1])
    assert_result(lambda: flow.empty().start_with(7), [7])
    assert_result(lambda: flow.range(2).start_with(7).start_with(8), [8, 7, 0, 1])
    assert_result(lambda: flow.range(2).start_with(7).map(str), ["7", "0", "1"])
    assert_result(lambda: flow.range(2).map(str).start_with(7), [7, "0", "1"])
    assert_result(lambda: flow.range(2).start_with(7, 8).filter(lambda n: n % 2), [7, 1])
    assert_result(lambda: flow.range(5).start_with(7, 8, 9).take(2), [7, 8])
    assert_result(lambda: flow.range(5).take(1).start_with(7, 8).take(9), [7, 8, 0])
    assert_result(
        lambda: flow.range(2).start_with(1, 2).flat_map_iterable(range).start_with(9),
        [9, 0, 0, 1, 0],
    )
    error = KeyError(1)
    assert_result(lambda: flow.error(error).start_with(7, 8), [7, 8], error)
    with pytest.raises(NoneItemError):
        flow.range(2).start_with(1, None)


def test_items_come_before_the_error_of_a_source_that_cannot_even_begin() -> None:
    error = KeyError(1)

    def fail() -> Any:
        raise error

    class Failing:
        def __iter__(self) -> Iterator[int]:
            raise error

    for make in (
        lambda: flow.defer(fail),
        lambda: flow.from_callable(fail),
        lambda: flow.from_iterable(Failing()),
    ):
        for made, expected in (
            (make().start_with(7, 8), [7, 8, error]),
            (make().map(str).start_with(7).start_with(8), [8, 7, error]),
            (make().start_with(7).take(1), [7]),
            (make().zip_with_iterable([]), []),
        ):
            subscribed: list[Any] = []
            made.subscribe(subscribed.append, subscribed.append)
            iterated: list[Any] = []
            try:
                for item in made:
                    iterated += [item]
            except KeyError as raised:
                iterated += [raised]
            assert subscribed == iterated == expected
            subscriber = TestSubscriber[Any](1)
            made.subscribe(subscriber)
            subscriber.assert_items(*[item for item in expected[:1] if item is not error])


def test_absorbing_stages_before_and_after() -> None:
    assert_result(lambda: flow.range(3).to_list().start_with([7]), [[7], [0, 1, 2]])
    assert_result(lambda: flow.range(3).start_with(7).to_list(), [[7, 0, 1, 2]])
    assert_result(lambda: flow.range(3).count().start_with(7).sum(), [10])
    assert_result(lambda: flow.range(3).start_with(7).take_last(2), [1, 2])
    assert_result(lambda: flow.range(3).ignore_elements().start_with(7), [7])
    assert_result(lambda: flow.range(3).start_with(7, 8).first_or_error(), [7])
    assert_result(lambda: flow.range(3).start_with(7, 8).is_empty(), [False])
    assert_result(lambda: flow.empty().start_with(7).is_empty(), [False])
    assert_result(lambda: flow.range(3).start_with(7).contains(7).start_with(True), [True, True])


@each_source
def test_nothing_is_emitted_without_demand_and_then_what_is_asked_for(source: Source) -> None:
    for made, expected in (
        (source().start_with(7, 8), [7, 8, 0, 1, 2]),
        (source().start_with(7, 8).map(str), ["7", "8", "0", "1", "2"]),
        (source().start_with(8).start_with(7), [7, 8, 0, 1, 2]),
        (source().start_with(3).flat_map_iterable(range), [0, 1, 2, 0, 0, 1]),
        (source().start_with(7).end_with(9), [7, 0, 1, 2, 9]),
        (source().to_list().start_with([7]), [[7], [0, 1, 2]]),
    ):
        subscriber = TestSubscriber[Any](0)
        made.subscribe(subscriber)
        for count in range(len(expected)):
            subscriber.assert_items(*expected[:count])
            assert not subscriber.terminated
            subscriber.request(1)
        subscriber.request(1)
        subscriber.assert_result(*expected)


def test_a_flow_completes_with_its_last_item_where_the_end_is_certain() -> None:
    subscriber = TestSubscriber[int](2)
    flow.from_iterable([]).start_with(7, 8).subscribe(subscriber)
    subscriber.assert_result(7, 8)
    subscriber = TestSubscriber[int](3)
    flow.range(1).start_with(7, 8).subscribe(subscriber)
    subscriber.assert_result(7, 8, 0)
    subscriber = TestSubscriber[int](1)
    flow.range(5).start_with(7, 8).take(1).subscribe(subscriber)
    subscriber.assert_result(7)
    pairs = TestSubscriber[Any](2)
    flow.range(5).zip_with_iterable("ab").subscribe(pairs)
    pairs.assert_result((0, "a"), (1, "b"))
    subscriber = TestSubscriber[int](0)
    flow.range(5).zip_with_iterable([], lambda a, b: a).subscribe(subscriber)
    subscriber.assert_result()


def test_the_source_is_asked_when_the_start_was_emitted_and_there_is_demand() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for n in range(3):
            taken.append(n)
            yield n

    subscriber = TestSubscriber[int](2)
    flow.from_iterable(items()).start_with(7, 8).subscribe(subscriber)
    subscriber.assert_items(7, 8)
    assert taken == []
    subscriber.request(1)
    assert taken == [0]
    pulled = iter(flow.from_iterable(items()).start_with(7))
    taken.clear()
    assert next(pulled) == 7
    assert taken == []


@pytest.mark.parametrize("demand", [0, 1, 2, UNBOUNDED])
@pytest.mark.parametrize(
    "behind",
    [
        lambda f: f,
        lambda f: f.end_with(1, 2),
        lambda f: f.to_list(),
        lambda f: f.map(str).default_if_empty("none"),
    ],
)
def test_a_publisher_is_not_asked_when_a_stage_stops_at_the_start(
    behind: Callable[[Flow[Any]], Flow[Any]], demand: int
) -> None:
    publisher = TestPublisher[int]()
    expected = list(behind(flow.empty().zip_with_iterable([])))
    subscriber = TestSubscriber[Any](demand)
    behind(Flow(publisher).zip_with_iterable([])).subscribe(subscriber)
    subscriber.assert_items(*expected[:demand])
    publisher.assert_not_requested()
    publisher.assert_cancelled()
    subscriber.request(5)
    subscriber.assert_result(*expected)
    publisher.assert_not_requested()


def test_a_publisher_is_cancelled_when_a_stage_stops_though_a_rest_waits_for_demand() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int](2)
    Flow(publisher).take_while(lambda n: n < 1).end_with(7, 8).subscribe(subscriber)
    publisher.next(0, 1)
    subscriber.assert_items(0, 7)
    publisher.assert_cancelled()
    subscriber.request(1)
    subscriber.assert_result(0, 7, 8)


def test_a_flow_that_fails_or_ends_at_once_still_gives_the_start_first() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int](0)
    Flow(publisher).start_with(7, 8).subscribe(subscriber)
    publisher.complete()
    subscriber.assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_items(7)
    subscriber.request(1)
    subscriber.assert_result(7, 8)
    error = KeyError(1)
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int](1)
    Flow(publisher).start_with(7).subscribe(subscriber)
    publisher.error(error)
    subscriber.assert_failure(error, 7)


@each_source
def test_the_start_runs_once_per_subscriber_downstream_first_and_after_on_subscribe(
    source: Source,
) -> None:
    log: list[str] = []
    made = source().do_on_subscribe(lambda: log.append("above"))
    made = made.start_with(7).do_on_subscribe(lambda: log.append("below"))
    subscriber = TestSubscriber[int](0)
    made.subscribe(subscriber)
    assert log == ["below"] or log == ["below", "above"]
    subscriber.request(UNBOUNDED)
    assert log == ["below", "above"]
    subscriber.assert_result(7, 0, 1, 2)
    assert list(made) == [7, 0, 1, 2]
    assert log == ["below", "above"] * 2


def test_the_start_runs_without_demand() -> None:
    log: list[str] = []
    for source in (flow.range(3), flow.range(3).hide(), Flow(TestPublisher[int]())):
        log.clear()
        subscriber = TestSubscriber[int](0)
        source.do_on_subscribe(lambda: log.append("subscribed")).subscribe(subscriber)
        assert log == ["subscribed"]
        subscriber.cancel()


@each_source
@pytest.mark.parametrize("fusion", [Fusion.NONE, Fusion.SYNC])
def test_items_at_the_start_reach_no_stage_of_a_flow_that_was_cancelled_before(
    source: Source, fusion: Fusion
) -> None:
    log: list[object] = []
    made = source().start_with(7).do_on_next(log.append).finally_action(lambda: log.append("over"))
    subscriber = TestSubscriber[int](0, fusion=fusion)
    made.subscribe(subscriber)
    subscriber.cancel()
    assert log == ["over"]


@each_source
def test_an_error_at_the_start_fails_the_flow_with_a_note(source: Source) -> None:
    error = KeyError(1)

    def fail() -> None:
        raise error

    made = source().do_on_subscribe(fail).start_with(7)
    assert_result(lambda: made, [7], error)
    assert any(note.startswith("in stage 1 of 2: do_on_subscribe(") for note in error.__notes__)
    assert_result(lambda: source().start_with(7).do_on_subscribe(fail), [], error)
    assert_result(lambda: source().do_on_subscribe(fail).start_with(7).on_error_return(9), [7, 9])


def test_zipping_ends_with_the_shorter_and_asks_for_nothing_in_vain() -> None:
    assert_result(lambda: flow.range(3).zip_with_iterable("ab"), [(0, "a"), (1, "b")])
    assert_result(lambda: flow.range(2).zip_with_iterable("abc"), [(0, "a"), (1, "b")])
    assert_result(lambda: flow.range(2).zip_with_iterable("ab", lambda n, s: s * n), ["", "b"])
    assert_result(lambda: flow.range(3).zip_with_iterable([]), [])
    assert_result(lambda: flow.empty().zip_with_iterable("ab"), [])
    assert_result(
        lambda: flow.range(3).zip_with_iterable("ab", lambda n, s: None), [], NoneItemError
    )
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[Any]()
    Flow(publisher).zip_with_iterable("ab").subscribe(subscriber)
    publisher.next(0, 1)
    subscriber.assert_result((0, "a"), (1, "b"))
    publisher.assert_cancelled()


def test_an_error_of_the_other_iterable_follows_the_pairs_before_it() -> None:
    error = KeyError(1)

    class Failing:
        def __iter__(self) -> Iterator[str]:
            yield "a"
            raise error

    assert_result(lambda: flow.range(3).zip_with_iterable(Failing()), [(0, "a")], error)


# -- stages of one's own


def test_a_start_may_emit_from_nested_loops_and_stop_in_them() -> None:
    grid = Template(
        "grid",
        params=("limit",),
        state="n = 0",
        on_start="""
        for a in range(3):
            for b in range(3):
                n += 1
                x = (a, b)
                if a != b:
                    EMIT
                if n == limit:
                    STOP
        """,
    )
    pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    for source in (flow.range(2), flow.range(2).hide()):
        assert_result(lambda source=source: source.pipe(Stage(grid, 99)), [*pairs, 0, 1])
        assert_result(lambda source=source: source.pipe(Stage(grid, 5)), pairs[:3])
        assert_result(
            lambda source=source: source.pipe(Stage(grid, 5)).end_with(9), [*pairs[:3], 9]
        )
        assert_result(lambda source=source: source.pipe(Stage(grid, 99)).take(7), [*pairs, 0])
        assert_result(lambda source=source: source.pipe(Stage(grid, 99)).take(2), pairs[:2])
        assert_result(
            lambda source=source: (
                source.pipe(Stage(grid, 9)).flat_map_iterable(lambda p: p).skip(1).take(3)
            ),
            [1, 0, 2],
        )
        assert_result(lambda source=source: source.pipe(Stage(grid, 1)).count(), [0])


def test_a_stop_at_the_start_ends_what_is_above_and_runs_the_ends_below() -> None:
    stop = Template("stop", on_start="STOP", on_end="x = 'own end'\nEMIT")
    log: list[str] = []
    made = flow.range(3).end_with("above").do_on_complete(lambda: log.append("above"))
    made = made.pipe(Stage(stop)).do_on_complete(lambda: log.append("below")).end_with("below")
    assert_result(lambda: made, ["own end", "below"])
    assert "above" not in log
    subscriber = TestSubscriber[Any](fusion=Fusion.SYNC)
    made.subscribe(subscriber)
    subscriber.assert_result("own end", "below")
