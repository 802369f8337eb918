"""What the oracle finds, and what it does not."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_core import CoreSubscriber
from flow_ops import concat_map
from flow_oracle import pipelines
from flow_oracle.compare import Oracle
from flow_oracle.language import text
from flow_oracle.pipelines import OPERATORS
from flow_oracle.reducing import reduced
from flow_oracle.sampling import sample
from flow_oracle.strategies import cases


def different(there, examples, *only, number=0):
    """The cases that differ, of so many random ones."""
    oracle = Oracle(pipelines.run, there)
    found = []

    def check(case):
        if oracle.compare(case).difference:
            found.append(case)

    sample(cases(frozenset(only), 3), examples, number, check)
    return found


def test_random_pipelines_come_to_the_same(there):
    assert [text(case) for case in different(there, 400)] == []


class Leaky(CoreSubscriber):
    """Asks for one item more than it is asked for, and does not pass cancel on."""

    def __init__(self, downstream):
        self.downstream = downstream

    def on_subscribe(self, subscription):
        self.subscription = subscription
        self.downstream.on_subscribe(self)

    def request(self, n):
        self.subscription.request(n + 1)

    def cancel(self):
        pass

    def on_next(self, item):
        self.downstream.on_next(item)

    def on_error(self, error):
        self.downstream.on_error(error)

    def on_complete(self):
        self.downstream.on_complete()


class Lifted:
    def __init__(self, source, make):
        self.source = source
        self.make = make

    def subscribe(self, subscriber):
        self.source.subscribe(self.make(subscriber))


class Uncancelled(Leaky):
    def request(self, n):
        self.subscription.request(n)


class Greedy(Leaky):
    def cancel(self):
        self.subscription.cancel()


class Silent(Greedy):
    """Loses an error."""

    def request(self, n):
        self.subscription.request(n)

    def on_error(self, error):
        self.downstream.on_complete()


def lifted(make):
    return lambda self, up, given: flow.Flow(Lifted(up, make))


@pytest.mark.parametrize(
    ("operator", "planted"),
    [
        ("skip", lambda self, up, given, n: up.skip(n + 1)),
        ("take", lambda self, up, given, n: up.take(n + 1)),
        ("take_last", lambda self, up, given, n: up.take_last(n).take(3)),
        ("distinct_until_changed", lambda self, up, given, f: up.distinct()),
        ("retry", lambda self, up, given, times: up),
        ("default_if_empty", lambda self, up, given, d: up.end_with(d)),
        ("count", lambda self, up, given: up.skip(1).count()),
        ("hide", lifted(Uncancelled)),
        ("hide", lifted(Greedy)),
        ("hide", lifted(Silent)),
    ],
)
def test_a_planted_defect_is_found(operator, planted, there, monkeypatch):
    monkeypatch.setitem(OPERATORS, operator, planted)
    assert different(there, 400, operator)


def test_demand_that_is_not_what_it_should_be_is_found(there, monkeypatch):
    monkeypatch.setitem(
        OPERATORS, "map", lambda self, up, given, f: up.pipe(concat_map(flow.just)).map(mapped(f))
    )
    mapped = pipelines.mapper
    assert different(there, 400, "map")


def test_a_case_that_differs_is_reduced_to_what_matters(there, monkeypatch):
    monkeypatch.setitem(OPERATORS, "skip", lambda self, up, given, n: up.skip(n + 1))
    oracle = Oracle(pipelines.run, there)
    case = (
        "foreign",
        (
            "pipe",
            ("just", 1, 2, 3),
            ("map", ("add", 3)),
            ("skip", 1),
            ("concat_with", ("pipe", ("range", 0, 5))),
        ),
        ("demand", 2**63 - 1, 1, 0, 3, 4, 2**63 - 1),
    )
    made = reduced(case, lambda part: bool(oracle.compare(part).difference))
    assert names_of(made) == ["skip"]
    assert len(made[2]) == 5


def names_of(case):
    return [operator[0] for operator in case[1][2:]]


@pytest.mark.parametrize(
    ("ours", "difference"),
    [
        (["subscribed", "request 1", "next 1", "complete"], ""),
        (["subscribed", "request 1", "next 2", "complete"], "items"),
        (["subscribed", "request 1", "next 1"], "the end"),
        (["subscribed", "request 1", "next 1", "error user1"], "the end"),
        (["subscribed", "request 1", "next 1", "complete", "complete"], "a second end"),
        (["subscribed", "request 1", "complete", "next 1"], "an item after the end"),
        (["subscribed", "request 1", "next 1", "next 1"], "more than was requested"),
        (
            ["0 subscribe", "subscribed", "request 1", "0 request 1", "next 1", "complete"],
            "source 0 is left running",
        ),
    ],
)
def test_traces_are_compared(ours, difference):
    theirs = ["subscribed", "request 1", "next 1", "complete"]
    oracle = Oracle(lambda case: ours, lambda case: theirs)
    case = ("core", ("pipe", ("zip", ("list",), 1)), ("demand", 1, 0, 0, "cancel"))
    assert oracle.compare(case).difference == difference
