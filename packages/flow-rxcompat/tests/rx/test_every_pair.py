"""From each to each other and back: items, order, the identical error, the end, and a cancel."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import reactivex
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as ops
from reactivex.subject import Subject

import flow_core as flow
from flow_core import Flow
from flow_rxcompat.agera import TestLoop, repositories, reservoirs
from flow_rxcompat.converters import (
    from_repository,
    from_reservoir,
    from_signals,
    to_agera,
    to_repository,
    to_reservoir,
    to_signals,
)
from flow_rxcompat.rx import from_rx, to_rx
from flow_rxcompat.signals import UPDATE, Dispatcher
from flow_testing import TestPublisher, TestSubscriber

ERROR = LookupError("why")


def through_rx(items: Flow[Any]) -> Flow[Any]:
    return from_rx(to_rx(items))


def through_a_repository(items: Flow[Any]) -> Flow[Any]:
    made = to_repository(items, -1)
    return from_repository(made, strategy="buffer", capacity=1000, current=False)


def through_a_reservoir(items: Flow[Any]) -> Flow[Any]:
    return from_reservoir(to_reservoir(items, prefetch=3))


WAYS = (through_rx, through_a_repository, through_a_reservoir)
two_ways = pytest.mark.parametrize(
    ("there", "further"),
    [
        pytest.param(there, further, id=f"{there.__name__}, then {further.__name__}")
        for there, further in product(WAYS, WAYS)
    ],
)
Way = Callable[[Flow[Any]], Flow[Any]]


@pytest.mark.checklist("A22")
@two_ways
@given(items=st.lists(st.integers(1, 4)), fails=st.booleans())
@settings(deadline=None)  # the first call looks for plugins
def test_items_order_error_and_end_stay(
    there: Way, further: Way, items: list[int], fails: bool
) -> None:
    subscriber = TestSubscriber[int]()
    with TestLoop() as loop:
        source: Flow[int] = flow.from_iterable(items)
        if fails:
            source = from_rx(reactivex.concat(reactivex.of(*items), reactivex.throw(ERROR)))
        further(there(source)).subscribe(subscriber)
        loop.drain()
    if fails:
        subscriber.assert_failure(ERROR, *items)
    else:
        subscriber.assert_result(*items)


@pytest.mark.checklist("A22")
@two_ways
def test_a_cancel_stays(there: Way, further: Way) -> None:
    upstream, subscriber = TestPublisher[int](), TestSubscriber[int]()
    with TestLoop() as loop:
        further(there(Flow(upstream))).subscribe(subscriber)
        upstream.next(1)
        loop.drain()
        subscriber.assert_items(1)
        subscriber.cancel()
        loop.drain()
        assert upstream.cancelled


@pytest.mark.checklist("A22")
@pytest.mark.parametrize("way", WAYS)
def test_from_their_side_they_stay_too(way: Way) -> None:
    def both(observable: Observable[int]) -> list[object]:
        heard: list[object] = []
        with TestLoop() as loop:
            to_rx(way(from_rx(observable))).subscribe(
                heard.append, heard.append, lambda: heard.append("end")
            )
            loop.drain()
        return heard

    assert both(reactivex.of(1, 2)) == [1, 2, "end"]
    *items, error = both(reactivex.concat(reactivex.of(1), reactivex.throw(ERROR)))
    assert (items, error is ERROR) == ([1], True)
    subject = Subject[int]()
    with TestLoop() as loop:
        handle = to_rx(way(from_rx(subject))).subscribe(print)
        loop.drain()
        assert len(subject.observers) == 1
        handle.dispose()
        loop.drain()
        assert subject.observers == []


@pytest.mark.checklist("A22")
@pytest.mark.parametrize("fails", [False, True])
def test_signals_are_as_many_there_and_back(fails: bool) -> None:
    dispatcher, subscriber = Dispatcher(), TestSubscriber[object]()
    theirs = to_rx(to_signals(to_rx(from_signals(dispatcher))))
    from_rx(theirs).subscribe(subscriber)
    dispatcher.update()
    dispatcher.update()
    if fails:
        dispatcher.error(ERROR)
        subscriber.assert_failure(ERROR, UPDATE, UPDATE)
    else:
        dispatcher.complete()
        subscriber.assert_result(UPDATE, UPDATE)
    assert not dispatcher.has_updatables


@pytest.mark.checklist("A22")
def test_whatever_from_knows_becomes_agera_and_signals() -> None:
    with TestLoop() as loop:
        repository = to_repository(reactivex.of(1, 2), 0)  # type: ignore[arg-type]
        reservoir = to_reservoir(reactivex.of(1, 2))  # type: ignore[arg-type]
        observable, updates = to_agera(reactivex.of(1, 2)), list[int]()  # type: ignore[arg-type]
        signals = to_signals(repositories.mutable_repository(7))  # type: ignore[arg-type]
        heard = TestSubscriber[object]()
        for each in (repository, reservoir, observable):
            each.add_updatable(lambda: updates.append(1))
        signals.subscribe(heard)
        loop.drain()
        assert (repository.get(), repository.terminated) == (2, True)
        assert [reservoir.get().get(), reservoir.get().get()] == [1, 2]
        assert observable.terminated
        assert len(updates) == 3
        heard.assert_items(UPDATE)
        with pytest.raises(TypeError):
            to_repository(7, 0)  # type: ignore[arg-type]


@pytest.mark.checklist("A22")
def test_from_makes_a_flow_of_anything_of_either() -> None:
    with TestLoop() as loop:
        numbers, queue = repositories.mutable_repository(1), reservoirs.reservoir_of(int)
        queue.accept(1)
        values = (
            numbers,
            queue,
            to_repository(flow.just(1), 0),
            to_reservoir(flow.just(1)),
            reactivex.of(1),
            reactivex.of(1).pipe(ops.replay()).auto_connect(),
            flow.just(1),
        )
        for value in values:
            got = TestSubscriber[object]()
            made: Flow[object] = flow.from_(value)
            made.subscribe(got)
            loop.drain()
            assert got.items[-1] == 1
        for signals in (to_agera(flow.just(1)), to_signals(flow.just(1))):
            told = TestSubscriber[object]()
            flow.from_(signals).subscribe(told)
            loop.drain()
            told.assert_result(UPDATE)
