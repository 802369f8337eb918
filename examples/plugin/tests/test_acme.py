"""Tests acme-flow as its users use it; only flow-core is installed beside it."""

from acme_flow.ledger import BOOK
from acme_flow.namespace import Acme  # importing it registers it
from acme_flow.operators import append, countdown, every, smoothed

import flow_core as flow
from flow_core.plugins import plugin_host
from flow_testing import VirtualClock, assert_marbles, assert_result, cold
from flow_testing.facts import assert_facts


def test_operators_and_functions_are_for_pipe() -> None:
    assert_result(lambda: flow.range(1, 9).pipe(every(2), smoothed), [4.0, 6.0])


def test_methods_are_found_under_the_name_of_the_package() -> None:
    numbers = flow.range(1, 9)
    assert list(numbers.acme.every(2).acme.smooth()) == [4.0, 6.0]  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]
    assert list(numbers.pipe(Acme).smooth(2).take(2)) == [1.5, 2.5]
    assert "acme" in dir(numbers)


def test_the_record_of_every_is_true() -> None:
    assert_facts(plugin_host().operators["every"].spec, lambda made: made.pipe(every(2)))


def test_append_gives_the_other_flow_behind_the_first() -> None:
    assert list(flow.range(2).pipe(append(flow.just(7)))) == [0, 1, 7]


def test_a_pipeline_names_both() -> None:
    host = plugin_host()
    assert list(countdown(4).pipe(host.operator("every")(2))) == [3, 1]
    assert list(countdown(4).pipe(host.operator("acme.smooth")(2))) == [3.5, 2.5, 1.5]
    assert {"acme"} <= set(host.namespaces)


def test_a_ledger_is_a_flow_of_its_amounts() -> None:
    amounts: flow.Flow[object] = flow.from_(BOOK)  # a type checker sees a dict's keys
    assert list(amounts) == [3, 4]


def test_an_operator_in_virtual_time() -> None:
    clock = VirtualClock()
    source = cold("-a-b-c-d-|", clock=clock)
    assert_marbles(source.flow.pipe(every(2)), "---b---d-|", clock=clock)
