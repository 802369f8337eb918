"""The items of `concat_map`, in every form in which a flow can run."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

import flow_core as flow
from flow_core.protocols import CoreSubscriber
from flow_ops import concat_map, observe_on
from flow_testing import TestSubscriber, assert_result


@pytest.fixture(scope="module")
def worker():
    with ThreadPoolExecutor(1) as pool:
        yield pool


INNER = {
    "scalar": (flow.just, lambda n: [n]),
    "empty": (lambda _: flow.empty(), lambda _: []),
    "callable": (lambda n: flow.from_callable(lambda: n), lambda n: [n]),
    "callable without an item": (lambda _: flow.from_callable(lambda: None), lambda _: []),
    "some without an item": (
        lambda n: flow.just(n) if n % 3 == 1 else flow.empty(),
        lambda n: [n] if n % 3 == 1 else [],
    ),
    "range": (flow.range, lambda n: list(range(n))),
    "several": (lambda n: flow.just(n, n, n), lambda n: [n] * 3),
    "list": (lambda n: flow.from_iterable([n] * n), lambda n: [n] * n),
    "generator": (lambda n: flow.from_iterable(iter([n] * n)), lambda n: [n] * n),
    "with stages": (
        lambda n: flow.range(n).map(lambda m: m * n).filter(lambda m: m % 2 == 0),
        lambda n: [m * n for m in range(n) if m * n % 2 == 0],
    ),
    "scalar with a stage": (lambda n: flow.just(n).map(str), lambda n: [str(n)]),
    "expanding": (
        lambda n: flow.just(n).flat_map_iterable(range),
        lambda n: list(range(n)),
    ),
    "deferred": (lambda n: flow.defer(lambda: flow.range(n)), lambda n: list(range(n))),
    "deferred scalar": (lambda n: flow.defer(lambda: flow.just(n)), lambda n: [n]),
    "deferred with a stage": (
        lambda n: flow.defer(lambda: flow.range(n)).map(str),
        lambda n: [str(m) for m in range(n)],
    ),
    "hidden": (lambda n: flow.range(n).hide(), lambda n: list(range(n))),
    "nested": (
        lambda n: flow.range(n).pipe(concat_map(lambda m: flow.just(m, n))),
        lambda n: [k for m in range(n) for k in (m, n)],
    ),
    "nested, mapped directly": (
        lambda n: flow.just(n).pipe(concat_map(flow.range)),
        lambda n: list(range(n)),
    ),
    "of every kind": (
        lambda n: [
            flow.just(n),
            flow.range(n),
            flow.range(n).hide(),
            flow.empty(),
            flow.from_callable(lambda: n),
        ][n % 5],
        lambda n: [[n], list(range(n)), list(range(n)), [], [n]][n % 5],
    ),
}


@pytest.mark.checklist("F02", "F52")
@pytest.mark.parametrize("kind", INNER)
def test_inner_flows_of_every_kind_follow_one_another(kind):
    mapper, model = INNER[kind]
    assert_result(
        lambda: flow.range(6).pipe(concat_map(mapper)), [m for n in range(6) for m in model(n)]
    )


OUTER = {
    "range": lambda: flow.range(1, 5),
    "list": lambda: flow.from_iterable([1, 2, 3, 4]),
    "stages": lambda: flow.range(20).map(lambda n: n + 1).filter(lambda n: n < 5),
    "take": lambda: flow.range(1, 100).take(4),
    "expanding": lambda: flow.just(1, 3).flat_map_iterable(lambda n: (n, n + 1)),
    "scalar with a stage": lambda: flow.just(4).flat_map_iterable(lambda n: range(1, n + 1)),
    "deferred": lambda: flow.defer(lambda: flow.range(1, 5)),
    "deferred with a stage": lambda: flow.defer(lambda: flow.range(4)).map(lambda n: n + 1),
    "concatenated": lambda: flow.just(1, 3).pipe(concat_map(lambda n: flow.just(n, n + 1))),
}


@pytest.mark.parametrize("prefetch", [1, 2, 128])
@pytest.mark.parametrize("kind", OUTER)
def test_upstreams_of_every_kind_are_mapped(kind, prefetch):
    assert_result(
        lambda: OUTER[kind]().pipe(concat_map(flow.range, prefetch=prefetch)),
        [m for n in range(1, 5) for m in range(n)],
    )


@pytest.mark.checklist("F35")
def test_maps_what_the_upstream_maps():
    """A subscription that was forwarded through the map would give 0..9."""
    assert_result(
        lambda: flow.range(0, 10).map(lambda n: n + 1).pipe(concat_map(flow.just)),
        list(range(1, 11)),
    )


def test_stages_follow():
    assert_result(
        lambda: (
            flow.range(4).pipe(concat_map(flow.range)).map(lambda n: n + 1).filter(bool).pairwise()
        ),
        [(1, 1), (1, 2), (2, 1), (1, 2), (2, 3)],
    )


@pytest.mark.parametrize("where", ["outer", "inner", "both", "downstream"])
def test_threads_may_be_crossed_anywhere(where, worker):
    with ThreadPoolExecutor(1) as other:

        def inner(n):
            made = flow.range(n)
            return made.pipe(observe_on(other)) if where in ("inner", "both") else made

        def make():
            source = flow.range(5).map(lambda n: n)
            if where in ("outer", "both"):
                source = source.pipe(observe_on(worker))
            made = source.pipe(concat_map(inner, prefetch=2))
            return made.pipe(observe_on(worker)) if where == "downstream" else made

        assert_result(make, [m for n in range(5) for m in range(n)])


def test_an_infinite_inner_flow_is_taken_from():
    def count():
        n = 0
        while True:
            yield n
            n += 1

    assert_result(
        lambda: flow.range(3).pipe(concat_map(lambda _: flow.from_iterable(count()))).take(5),
        [0, 1, 2, 3, 4],
    )


def test_an_infinite_upstream_is_taken_from():
    def endless():
        while True:
            yield 1

    assert_result(
        lambda: flow.from_iterable(endless()).pipe(concat_map(flow.just)).take(3), [1, 1, 1]
    )


@pytest.mark.checklist("X13")
def test_items_are_not_compared():
    class Strange:
        def __eq__(self, other):
            raise AssertionError("compared")

        __hash__ = None

    one, two = Strange(), Strange()
    for source in (flow.just(one, two), flow.just(one, two).hide()):
        seen = list(source.pipe(concat_map(lambda item: flow.just(item, item))))
        assert [item is one for item in seen] == [True, True, False, False]


# -- a source of no or one item


@pytest.mark.checklist("F03", "F06", "F07", "F10")
def test_nothing_is_called_while_assembling():
    calls = []

    def mapper(n):
        calls.append(n)
        return flow.just(n)

    made = [
        flow.just(1).pipe(concat_map(mapper)),
        flow.from_callable(lambda: calls.append("source") or 2).pipe(concat_map(mapper)),
        flow.range(2).pipe(concat_map(mapper)),
    ]
    assert calls == []
    assert [list(each) for each in made] == [[1], [2], [0, 1]]
    assert calls == [1, "source", 2, 0, 1]


@pytest.mark.checklist("F06", "F07")
@pytest.mark.parametrize("kind", INNER)
def test_the_mapped_flow_takes_the_place_of_a_constant(kind):
    mapper, model = INNER[kind]
    assert_result(lambda: flow.just(4).pipe(concat_map(mapper)), model(4))
    assert_result(lambda: flow.from_callable(lambda: 4).pipe(concat_map(mapper)), model(4))


@pytest.mark.checklist("F07")
def test_no_item_means_no_call_of_the_mapper():
    def mapper(_):
        raise AssertionError("called")

    assert_result(lambda: flow.empty().pipe(concat_map(mapper)), [])
    assert_result(lambda: flow.from_callable(lambda: None).pipe(concat_map(mapper)), [])


@pytest.mark.checklist("F07")
def test_a_mapped_constant_waits_for_demand():
    seen = TestSubscriber(0)
    flow.just(1).pipe(concat_map(flow.just)).subscribe(seen)
    seen.assert_items().assert_not_terminated()
    seen.request(1)
    seen.assert_result(1)


@pytest.mark.checklist("F06")
def test_a_constant_is_mapped_for_each_subscriber():
    calls = []
    made = flow.just(1).pipe(concat_map(lambda n: calls.append(n) or flow.just(len(calls))))
    assert [list(made), list(made)] == [[1], [2]]


@pytest.mark.checklist("F07", "F09")
def test_a_failing_source_or_mapper_is_an_error_after_on_subscribe():
    failure = ValueError("no")

    def fails(*_):
        raise failure

    made = [
        flow.from_callable(fails).pipe(concat_map(flow.just)),
        flow.just(1).pipe(concat_map(fails)),
        flow.just(1).pipe(concat_map(lambda _: flow.from_callable(fails))),
        flow.just(1).pipe(concat_map(lambda _: flow.error(failure))),
        flow.just(1).pipe(concat_map(lambda _: flow.defer(fails))),
    ]
    for each in made:
        assert_result(lambda each=each: each, [], failure)


# -- stack and size


@pytest.mark.many
@pytest.mark.checklist("P27", "X08")
@pytest.mark.parametrize(
    ("mapper", "count"),
    [
        (lambda _: flow.empty(), 100_000),
        (flow.just, 100_000),
        (lambda n: flow.from_callable(lambda: n), 20_000),
        (lambda n: flow.range(n, n + 1), 20_000),
        (lambda n: flow.just(n).map(abs), 5_000),
        (lambda n: flow.defer(lambda: flow.just(n)), 5_000),
    ],
    ids=["empty", "just", "callable", "range", "stage", "deferred"],
)
@pytest.mark.parametrize("how", ["pulled", "pushed"])
def test_many_inner_flows_end_in_constant_stack(mapper, count, how):
    made = flow.range(count)
    if how == "pushed":
        made = made.hide()
    seen = []
    made.pipe(concat_map(mapper)).subscribe(seen.append)
    assert seen in ([], list(range(count)))


@pytest.mark.checklist("P27", "X08")
@pytest.mark.parametrize("inner", [flow.just, lambda _: flow.empty()], ids=["just", "empty"])
def test_many_inner_flows_that_are_subscribed_to_end_in_constant_stack(inner):
    seen = TestSubscriber(0)
    flow.range(5_000).pipe(concat_map(lambda n: inner(n).hide())).subscribe(seen)
    seen.request(6_000)
    assert seen.assert_rules_kept().completed


@pytest.mark.checklist("X08")
def test_a_flow_that_continues_with_itself_runs_in_constant_stack():
    def countdown(n):
        return flow.just(n).pipe(concat_map(lambda m: countdown(m - 1) if m else flow.just("end")))

    assert countdown(10_000).single() == "end"


@pytest.mark.slow
def test_a_million_items_one_by_one():
    class OneByOne(CoreSubscriber):
        count = 0
        completed = False

        def on_subscribe(self, subscription):
            self.request = subscription.request
            self.request(1)

        def on_next(self, item):
            self.count += 1
            self.request(1)

        def on_complete(self):
            self.completed = True

        def on_error(self, error):
            raise AssertionError from error

    seen = OneByOne()
    flow.range(1000).pipe(concat_map(lambda _: flow.range(1000))).subscribe(seen)
    assert seen.completed
    assert seen.count == 1_000_000


# -- what is asked of it


@pytest.mark.parametrize("wrong", [None, 3, flow.just(1)])
def test_a_mapper_that_is_not_a_function_is_refused(wrong):
    with pytest.raises(TypeError, match="concat_map"):
        concat_map(wrong)


@pytest.mark.parametrize(("prefetch", "error"), [(0, ValueError), ("1", TypeError)])
def test_a_wrong_prefetch_is_refused(prefetch, error):
    with pytest.raises(error, match="prefetch"):
        concat_map(flow.just, prefetch=prefetch)


def test_a_foreign_publisher_may_be_an_inner_flow(source):
    class Foreign:
        def subscribe(self, subscriber):
            flow.just(1, 2).subscribe(subscriber)

    assert_result(lambda: flow.range(2).pipe(concat_map(lambda _: Foreign())), [1, 2, 1, 2])


def test_says_what_it_is():
    made = flow.range(3).pipe(concat_map(flow.just, prefetch=2, delay_error=True))
    assert repr(made) == "range(0, 3) | concat_map(just, prefetch=2, delay_error=True)"


def test_async_for_does_not_block():
    async def main():
        made = flow.range(3).pipe(concat_map(lambda n: flow.range(n).hide()))
        return [item async for item in made]

    assert asyncio.run(main()) == [0, 0, 1]


def test_a_synchronous_flow_is_iterated_within_a_running_event_loop():
    """No subscription is waited for there: it would block the loop."""

    async def main():
        made = [
            flow.range(3),
            flow.just(3).pipe(concat_map(flow.range)),
            flow.defer(lambda: flow.range(3)),
        ]
        return [list(each.pipe(concat_map(flow.range))) for each in made]

    assert asyncio.run(main()) == [[0, 0, 1]] * 3


def test_iteration_waits_for_an_asynchronous_inner_flow(worker):
    made = flow.range(4).pipe(concat_map(lambda n: flow.range(n).pipe(observe_on(worker))))
    assert list(made) == [0, 0, 1, 0, 1, 2]
