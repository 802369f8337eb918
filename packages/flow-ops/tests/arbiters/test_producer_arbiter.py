"""`ProducerArbiter`: the account of what was requested and produced, step by step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flow_core.demand import UNBOUNDED
from flow_core.errors import ProtocolViolationError
from flow_ops import ProducerArbiter


class Producer:
    """Writes down what is requested; `then` runs within the next request."""

    def __init__(self, then: Callable[[], object] | None = None) -> None:
        self.requests: list[int] = []
        self.then = then

    def request(self, n: int, /) -> None:
        self.requests.append(n)
        then, self.then = self.then, None
        if then is not None:
            then()


def in_request(arbiter: ProducerArbiter, action: Callable[[], object]) -> Producer:
    """Run `action` while the arbiter is at work, so that it is missed and made up for."""
    producer = Producer(action)
    arbiter.request(1)
    arbiter.set(producer)
    return producer


@pytest.mark.checklist("P05", "P23")
def test_it_has_the_methods_of_the_article_and_keeps_its_loop_to_itself() -> None:
    public = {name for name in dir(ProducerArbiter) if not name.startswith("_")}
    assert public == {"outstanding", "produced", "request", "set"}


@pytest.mark.checklist("P06")
def test_demand_adds_up_until_there_is_a_producer() -> None:
    arbiter, producer = ProducerArbiter(), Producer()
    arbiter.request(3)
    arbiter.request(4)
    arbiter.set(producer)
    assert producer.requests == [7]


@pytest.mark.checklist("P08")
def test_a_missed_none_clears_the_producer_and_no_miss_does_not() -> None:
    arbiter = ProducerArbiter()
    cleared = in_request(arbiter, lambda: arbiter.set(None))
    arbiter.request(5)
    assert cleared.requests == [1]

    arbiter = ProducerArbiter()
    kept = in_request(arbiter, lambda: arbiter.produced(1))
    arbiter.request(5)
    assert kept.requests == [1, 5]


@pytest.mark.checklist("P22")
def test_none_clears_the_producer() -> None:
    arbiter, first, second = ProducerArbiter(), Producer(), Producer()
    arbiter.set(first)
    arbiter.set(None)
    arbiter.request(2)
    arbiter.set(second)
    assert (first.requests, second.requests) == ([], [2])


@pytest.mark.checklist("P09")
def test_a_request_of_zero_is_ignored_as_in_rxjava_1() -> None:
    arbiter, producer = ProducerArbiter(), Producer()
    arbiter.set(producer)
    arbiter.request(0)
    assert (producer.requests, arbiter.outstanding) == ([], 0)
    with pytest.raises(ValueError, match=r"3\.9"):
        arbiter.request(-1)


@pytest.mark.checklist("P09")
@pytest.mark.parametrize("n", [0, -1])
def test_strict_it_refuses_a_request_of_zero_too(n: int) -> None:
    arbiter, producer = ProducerArbiter(strict=True), Producer()
    arbiter.set(producer)
    with pytest.raises(ValueError, match=r"3\.9"):
        arbiter.request(n)
    assert producer.requests == []


@pytest.mark.parametrize("n", [True, 1.0, "1"])
def test_amounts_are_ints(n: Any) -> None:
    with pytest.raises(TypeError):
        ProducerArbiter().request(n)
    with pytest.raises(TypeError):
        ProducerArbiter().produced(n)


@pytest.mark.checklist("P10")
def test_missed_demand_without_bound_is_not_used_up_by_missed_production() -> None:
    arbiter, second = ProducerArbiter(), Producer()

    def missed() -> None:
        arbiter.request(UNBOUNDED)
        arbiter.produced(1)

    first = in_request(arbiter, missed)
    arbiter.set(second)
    assert (first.requests, second.requests) == ([1, UNBOUNDED], [UNBOUNDED])


@pytest.mark.checklist("P11")
def test_missed_demand_is_capped() -> None:
    arbiter = ProducerArbiter()

    def missed() -> None:
        arbiter.request(UNBOUNDED)
        arbiter.request(UNBOUNDED)

    assert in_request(arbiter, missed).requests == [1, UNBOUNDED]
    assert arbiter.outstanding == UNBOUNDED


@pytest.mark.checklist("P12")
def test_the_current_producer_gets_requests_for_new_demand() -> None:
    arbiter, producer = ProducerArbiter(), Producer()
    arbiter.set(producer)
    arbiter.request(2)
    arbiter.request(3)
    assert (producer.requests, arbiter.outstanding) == ([2, 3], 5)


@pytest.mark.checklist("P12")
def test_demand_is_capped() -> None:
    arbiter, producer = ProducerArbiter(), Producer()
    arbiter.request(UNBOUNDED - 1)
    arbiter.request(UNBOUNDED - 1)
    arbiter.set(producer)
    assert producer.requests == [UNBOUNDED]


@pytest.mark.checklist("P13")
@pytest.mark.parametrize("how", ["request", "set", "missed"])
def test_it_can_be_used_again_after_a_producer_has_raised(how: str) -> None:
    def fails() -> None:
        raise RuntimeError("out of order")

    arbiter, broken, second = ProducerArbiter(), Producer(fails), Producer()
    with pytest.raises(RuntimeError):
        if how == "request":
            arbiter.set(broken)
            arbiter.request(2)
        elif how == "set":
            arbiter.request(2)
            arbiter.set(broken)
        else:
            arbiter.request(2)
            arbiter.set(Producer(lambda: arbiter.set(broken)))
    arbiter.set(second)
    arbiter.request(1)
    assert second.requests == [2, 1]


@pytest.mark.checklist("P14")
@pytest.mark.parametrize("n", [0, -1])
def test_production_of_nothing_is_a_mistake(n: int) -> None:
    arbiter = ProducerArbiter()
    arbiter.request(5)
    with pytest.raises(ValueError, match="produced"):
        arbiter.produced(n)
    assert arbiter.outstanding == 5


@pytest.mark.checklist("P15")
def test_more_production_than_demand_is_a_mistake() -> None:
    arbiter = ProducerArbiter()
    arbiter.request(1)
    with pytest.raises(ProtocolViolationError, match="2 items were produced and only 1 requested"):
        arbiter.produced(2)
    arbiter.produced(1)
    assert arbiter.outstanding == 0


@pytest.mark.checklist("P15")
def test_missed_production_beyond_demand_is_a_mistake_too() -> None:
    arbiter = ProducerArbiter()
    with pytest.raises(ProtocolViolationError):
        in_request(arbiter, lambda: arbiter.produced(2))
    arbiter.request(1)
    assert arbiter.outstanding == 2


@pytest.mark.checklist("P16", "P21")
def test_demand_without_bound_is_never_used_up() -> None:
    arbiter, producer = ProducerArbiter(), Producer()
    arbiter.request(UNBOUNDED)
    arbiter.produced(1)
    arbiter.set(producer)
    assert producer.requests == [UNBOUNDED]


@pytest.mark.checklist("P21")
def test_becoming_unbounded_ends_the_account() -> None:
    arbiter, producer = ProducerArbiter(), Producer()
    arbiter.request(1)
    arbiter.request(UNBOUNDED)
    arbiter.produced(UNBOUNDED)
    arbiter.produced(5)
    arbiter.set(producer)
    assert producer.requests == [UNBOUNDED]


@pytest.mark.checklist("P17")
def test_the_next_producer_is_asked_for_all_that_is_outstanding() -> None:
    arbiter, first, second = ProducerArbiter(), Producer(), Producer()
    arbiter.set(first)
    arbiter.request(20)
    arbiter.produced(10)
    arbiter.set(second)
    assert (first.requests, second.requests) == ([20], [10])


@pytest.mark.checklist("P17")
def test_a_missed_producer_that_is_replaced_is_never_asked() -> None:
    arbiter, early, late = ProducerArbiter(), Producer(), Producer()

    def missed() -> None:
        arbiter.set(early)
        arbiter.set(late)

    in_request(arbiter, missed)
    assert (early.requests, late.requests) == ([], [1])


@pytest.mark.checklist("P18")
def test_a_producer_is_not_asked_for_nothing() -> None:
    arbiter, producer, other = ProducerArbiter(), Producer(), Producer()
    arbiter.set(producer)
    assert producer.requests == []
    arbiter.request(1)
    arbiter.produced(1)
    arbiter.set(other)
    assert other.requests == []

    arbiter, other = ProducerArbiter(), Producer()

    def missed() -> None:
        arbiter.produced(1)
        arbiter.set(other)

    in_request(arbiter, missed)
    assert other.requests == []


@pytest.mark.checklist("P20", "P22")
def test_all_that_was_missed_is_made_up_for_at_once() -> None:
    """The eight steps of the loop: sum up, subtract, replace, and ask for what is left."""
    arbiter, second = ProducerArbiter(), Producer()

    def missed() -> None:
        arbiter.request(4)
        arbiter.request(5)
        arbiter.produced(3)
        arbiter.set(second)

    first = in_request(arbiter, missed)
    assert (first.requests, second.requests, arbiter.outstanding) == ([1], [7], 7)


@pytest.mark.checklist("P20", "P22")
def test_missed_demand_alone_goes_to_the_current_producer() -> None:
    arbiter = ProducerArbiter()

    def missed() -> None:
        arbiter.request(4)
        arbiter.produced(2)

    producer = in_request(arbiter, missed)
    assert (producer.requests, arbiter.outstanding) == ([1, 4], 3)


@pytest.mark.checklist("P20")
def test_missed_demand_after_a_missed_none_waits_for_the_next_producer() -> None:
    arbiter, second = ProducerArbiter(), Producer()

    def missed() -> None:
        arbiter.set(None)
        arbiter.request(4)

    first = in_request(arbiter, missed)
    assert first.requests == [1]
    arbiter.set(second)
    assert second.requests == [5]


@pytest.mark.checklist("P20")
def test_it_does_not_recurse() -> None:
    arbiter = ProducerArbiter()
    left = [10 * sys.getrecursionlimit()]

    class Replacing:
        def request(self, n: int, /) -> None:
            if left[0]:
                left[0] -= 1
                arbiter.produced(1)
                arbiter.request(1)
                arbiter.set(self)

    arbiter.request(1)
    arbiter.set(Replacing())
    assert (left, arbiter.outstanding) == ([0], 1)


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("request"), st.integers(1, 9)),
        st.tuples(st.just("produced"), st.integers(1, 9)),
        st.tuples(st.just("set"), st.booleans()),
    ),
    max_size=30,
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(_STEPS)
@pytest.mark.checklist("P04")
def test_each_producer_gets_what_was_left_and_then_what_is_new(steps: list[Any]) -> None:
    arbiter, outstanding = ProducerArbiter(), 0
    current: Producer | None = None
    for step, value in steps:
        if step == "request":
            arbiter.request(value)
            outstanding += value
            if current is not None:
                assert current.requests[-1] == value
        elif step == "produced":
            produced = min(value, outstanding)
            if produced:
                arbiter.produced(produced)
            outstanding -= produced
        else:
            current = Producer() if value else None
            arbiter.set(current)
            if current is not None:
                assert current.requests == ([outstanding] if outstanding else [])
        assert arbiter.outstanding == outstanding
