"""The items of `merge`, `merge_with` and `merge_all`."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_cli import pipelines
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_core.structure import AbsorbingSource, source_of
from flow_ops import merge, merge_all, merge_sequential, merge_with, observe_on
from flow_testing import (
    ENDINGS,
    Payloads,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_released,
    assert_result,
    check_bad_source,
)

SOURCES = {
    "none": ([], []),
    "one": ([flow.range(3)], [0, 1, 2]),
    "scalars": ([flow.just(1), flow.empty(), flow.just(2)], [1, 2]),
    "of all kinds": (
        [
            flow.range(3),
            flow.just("a"),
            flow.empty(),
            flow.range(2).hide(),
            flow.from_callable(lambda: "b"),
            flow.range(4).filter(lambda n: n > 2),
            flow.defer(lambda: flow.range(1)),
        ],
        [0, 1, 2, "a", 0, 1, "b", 3, 0],
    ),
}


@pytest.mark.parametrize("options", [{}, {"concurrency": 1}, {"delay_error": True}])
@pytest.mark.parametrize("which", SOURCES)
def test_synchronous_sources_follow_one_another(which, options):
    sources, expected = SOURCES[which]
    assert_result(lambda: merge(*sources, **options), expected)
    assert_result(lambda: merge(sources, **options), expected)
    assert_result(lambda: flow.from_iterable(sources).pipe(merge_all(**options)), expected)
    if sources:
        assert_result(lambda: sources[0].pipe(merge_with(*sources[1:], **options)), expected)


def test_items_come_as_they_come():
    sources = [TestPublisher() for _ in range(3)]
    seen = TestSubscriber()
    merge(*map(flow.Flow, sources)).subscribe(seen)
    sources[1].next("b1")
    sources[0].next("a1")
    sources[2].next("c1").complete()
    sources[1].next("b2").complete()
    sources[0].complete()
    seen.assert_result("b1", "a1", "c1", "b2")


def test_publishers_that_are_not_flows_are_merged_too():
    sources = [TestPublisher(), TestPublisher()]
    seen = TestSubscriber()
    merge(*sources).subscribe(seen)
    sources[1].next(2).complete()
    sources[0].next(1).complete()
    seen.assert_result(2, 1)


@pytest.mark.parametrize("count", [10, 1000])
def test_many_sources_run_at_once(count):
    sources = [TestPublisher() for _ in range(count)]
    seen = TestSubscriber()
    merge(map(flow.Flow, sources), concurrency=count).subscribe(seen)
    for source in reversed(sources):
        source.assert_subscribed().assert_requests(128)
    for turn in range(2):
        for number, source in enumerate(sources):
            source.next((turn, number))
    for source in sources:
        seen.assert_not_terminated()
        source.complete()
    seen.assert_result(*((turn, number) for turn in range(2) for number in range(count)))


def test_others_follow_as_sources_end_and_are_asked_for_then():
    sources = [TestPublisher() for _ in range(4)]
    asked = []

    def each():
        for source in sources:
            asked.append(source)
            yield flow.Flow(source)

    seen = TestSubscriber()
    merge(each(), concurrency=2).subscribe(seen)
    assert len(asked) == 2
    sources[1].complete()
    assert len(asked) == 3
    sources[0].complete()
    sources[2].complete()
    seen.assert_not_terminated()
    sources[3].next(3).complete()
    seen.assert_result(3)


def test_a_list_of_sources_is_iterated_again_for_each_subscriber():
    sources = [flow.range(2), flow.just(7)]
    made = merge(sources)
    for _ in range(2):
        assert list(made) == [0, 1, 7]


@pytest.mark.parametrize("name", ["merge", "merge_sequential"])
@pytest.mark.parametrize("args", ["[{first}, {second}]", "[[{first}, {second}]]"])
def test_a_pipeline_may_write_its_sources_one_by_one_or_as_a_list(tmp_path, name, args):
    given = args.format(
        first='{ source = { use = "range", start = 2 } }',
        second='{ source = { use = "just", args = ["a"] } }',
    )
    path = tmp_path / "job.toml"
    path.write_text(f'[source]\nuse = "{name}"\nargs = {given}\n')
    assert list(pipelines.load(path).flow()) == [0, 1, "a"]


@pytest.mark.usefixtures("dropped")
def test_an_iterable_of_sources_that_fails_fails_the_flow():
    def sources():
        yield flow.just(1)
        raise KeyError("no more")

    assert_result(lambda: merge(sources(), delay_error=True), [1], KeyError)
    assert_result(lambda: merge([flow.just(1), 3], delay_error=True), [1], TypeError)


def test_demand_is_exact_and_waiting_items_are_in_order():
    sources = [TestPublisher(), TestPublisher()]
    seen = TestSubscriber(1)
    merge(*map(flow.Flow, sources), prefetch=2).subscribe(seen)
    sources[0].next(1, 2)
    sources[1].next(11, 12)
    seen.assert_items(1)
    told = seen.subscription.statistics()
    assert told.operator == "merge(2 flows, prefetch=2)"
    assert (told.buffered, told.requested, len(told.inners)) == (3, 0, 1)
    seen.request(2)
    seen.assert_items(1, 2, 11)
    sources[0].assert_requests(2, 2)
    seen.request(1)
    sources[1].assert_requests(2, 2)


def test_a_source_that_sends_too_much_fails(dropped):
    good, bad = TestPublisher(), TestPublisher(Violation.OVERFLOW)
    seen = TestSubscriber(0)
    merge(flow.Flow(good), flow.Flow(bad), prefetch=2).subscribe(seen)
    bad.next(1, 2, 3, 4)
    seen.assert_failure(MissingBackpressureError)
    seen.assert_error_message("a source of merge(2 flows")
    good.assert_cancelled()
    bad.assert_cancelled()
    assert sorted(dropped.items) == [1, 2, 3]


def test_the_first_error_cancels_the_others():
    failure = ValueError("no")
    sources = [TestPublisher(), TestPublisher()]
    seen = TestSubscriber()
    merge(*map(flow.Flow, sources)).subscribe(seen)
    sources[0].next(1)
    sources[1].error(failure)
    seen.assert_failure(failure, 1)
    sources[0].assert_cancelled()


def test_delayed_errors_are_a_group():
    failures = [ValueError("one"), KeyError("two")]
    seen = TestSubscriber()
    merge(
        flow.error(failures[0]), flow.range(2), flow.error(failures[1]), delay_error=True
    ).subscribe(seen)
    seen.assert_failure(ExceptionGroup, 0, 1)
    assert list(seen.error.exceptions) == failures


def test_a_cancel_reaches_all():
    sources = [TestPublisher() for _ in range(3)]
    seen = TestSubscriber()
    merge(*map(flow.Flow, sources)).subscribe(seen)
    seen.cancel()
    for source in sources:
        source.assert_cancelled()
    seen.assert_not_terminated()


def test_threads_that_send_at_once_lose_nothing():
    with ThreadPoolExecutor(4) as pool:
        made = merge([flow.range(2_000).pipe(observe_on(pool)) for _ in range(4)], prefetch=16)
        for prefetch in (1, 64):
            assert Counter(made.iterate(prefetch=prefetch)) == Counter(
                dict.fromkeys(range(2000), 4)
            )


@pytest.mark.slow
def test_a_hundred_thousand_sources_need_no_stack():
    seen = TestSubscriber()
    one = flow.just(1)
    merge((one for _ in range(100_000)), concurrency=4).count().subscribe(seen)
    seen.assert_result(100_000)


@pytest.mark.slow
@pytest.mark.checklist("X08")
@pytest.mark.parametrize(
    "combine", [merge, merge_sequential, lambda made, other: made.pipe(merge_with(other))]
)
def test_ten_thousand_merges_within_merges_need_no_stack(combine):
    made = flow.just(0)
    for n in range(10_000):
        made = combine(made, flow.just(n))
    seen = TestSubscriber()
    made.subscribe(seen)
    seen.assert_result(0, *range(10_000))


@pytest.mark.parametrize(
    ("inner", "outer", "running"),
    [
        ({}, {}, [1, 1, 1, 1]),
        ({"concurrency": 2}, {"concurrency": 3}, [1, 1, 1, 1]),
        ({}, {"concurrency": 2}, [1, 1, 1, 0]),
        ({"concurrency": 1}, {}, [1, 0, 1, 1]),
    ],
)
def test_a_merge_within_a_merge_runs_as_many_as_each_by_itself(inner, outer, running):
    sources = [TestPublisher() for _ in range(4)]
    one, two, three, four = map(flow.Flow, sources)
    seen = TestSubscriber()
    merge(merge(one, two, **inner), three, four, **outer).subscribe(seen)
    assert [source.subscribed for source in sources] == running
    for source in sources:
        source.complete()
    seen.assert_result()


def test_merges_that_differ_stay_as_they_are():
    failures = [ValueError("one"), KeyError("two")]
    seen = TestSubscriber()
    inner = merge(flow.error(failures[0]), flow.just(1))
    merge(inner, flow.error(failures[1]), flow.just(2), delay_error=True).subscribe(seen)
    seen.assert_failure(ExceptionGroup, 2)
    assert list(seen.error.exceptions) == failures


@pytest.mark.usefixtures("dropped")
def test_it_keeps_the_rules_whatever_a_source_does():
    check_bad_source(lambda source: merge(source, flow.empty(), prefetch=4), bounded=True)
    check_bad_source(lambda source: source.pipe(merge_with(flow.empty(), prefetch=4)), bounded=True)


@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
@pytest.mark.parametrize("others", [0, 1])
def test_it_lets_go_of_everything(others, ending):
    def make(payloads: Payloads) -> flow.Flow[Any]:
        return merge(payloads.pushed(), *[flow.range(2).hide()] * others, prefetch=2)

    assert_released(make, only=lambda name: name == ending)


@pytest.mark.parametrize("make", [merge, merge_with])
def test_a_source_that_is_not_a_flow_is_refused_at_once(make):
    with pytest.raises(TypeError, match=f"{make.__name__}.. takes flows"):
        make(flow.just(1), 3)


def test_one_thing_that_is_neither_a_flow_nor_an_iterable_is_refused():
    with pytest.raises(TypeError, match="one iterable of flows"):
        merge(3)


@pytest.mark.parametrize("make", [merge, merge_with, lambda *_, **more: merge_all(**more)])
@pytest.mark.parametrize("options", [{"concurrency": 0}, {"prefetch": 0}])
def test_wrong_numbers_are_refused_at_once(make, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        make(flow.just(1), **options)


class Elsewhere(AbsorbingSource[int]):
    """A source whose items are in another place, which merges them itself."""

    def __init__(self, *items: int) -> None:
        self.items = items

    def subscribe(self, subscriber):
        flow.from_iterable(self.items).subscribe(subscriber)

    def united(self, flows):
        sources = [source_of(each) for each in flows if isinstance(each, flow.Flow)]
        if len(sources) < len(flows) or not all(isinstance(each, Elsewhere) for each in sources):
            return None
        return flow.Flow(Elsewhere(*[item for each in sources for item in each.items]))

    def __repr__(self) -> str:
        return f"elsewhere{self.items}"


def test_flows_of_one_place_are_merged_there() -> None:
    one, two = flow.Flow(Elsewhere(1, 2)), flow.Flow(Elsewhere(3))

    assert repr(source_of(merge(one, two))) == "elsewhere(1, 2, 3)"
    assert repr(source_of(one.pipe(merge_with(two)))) == "elsewhere(1, 2, 3)"
    assert sorted(merge(one, two)) == [1, 2, 3]


def test_flows_of_one_place_are_merged_here_if_they_have_to_be() -> None:
    one, two = flow.Flow(Elsewhere(1, 2)), flow.Flow(Elsewhere(3))

    for merged in (
        merge(one, flow.just(3)),
        merge(one, two, concurrency=1),
        merge(one, two, delay_error=True),
        merge([one, two]),
        merge_sequential(one, two),
    ):
        assert not isinstance(source_of(merged), Elsewhere)
        assert sorted(merged) == [1, 2, 3]


def test_a_foreign_source_that_gives_none_fails_the_flow_and_is_cancelled() -> None:
    source, other = TestPublisher[Any](Violation.NONE_ITEM), TestPublisher[Any]()
    subscriber = TestSubscriber[Any]()
    merge(flow.from_publisher(source), flow.from_publisher(other)).subscribe(subscriber)
    source.next(1, None)
    subscriber.assert_failure(NoneItemError, 1)
    assert str(subscriber.error).startswith("from_publisher(TestPublisher(")
    assert "gave None, which is not an item" in str(subscriber.error)
    source.assert_cancelled()
    other.assert_cancelled()
