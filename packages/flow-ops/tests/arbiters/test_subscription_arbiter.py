"""`SubscriptionArbiter`: the account of a downstream whose upstreams follow one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flow_core.demand import UNBOUNDED
from flow_core.errors import ProtocolViolationError
from flow_ops import SubscriptionArbiter


class Link:
    """A subscription that writes down what it is asked for; `then` runs within the request."""

    def __init__(self, then: Callable[[int], object] | None = None) -> None:
        self.requests: list[int] = []
        self.cancels = 0
        self.then = then

    def request(self, n: int, /) -> None:
        self.requests.append(n)
        if self.then is not None:
            self.then(n)

    def cancel(self) -> None:
        self.cancels += 1


@pytest.mark.checklist("P06")
def test_demand_adds_up_until_there_is_a_subscription() -> None:
    arbiter, link = SubscriptionArbiter(), Link()
    arbiter.request(3)
    arbiter.request(4)
    arbiter.set(link)
    arbiter.request(2)
    assert (link.requests, arbiter.outstanding) == ([7, 2], 9)


@pytest.mark.checklist("P17", "P18")
def test_the_next_one_gets_a_request_for_the_outstanding_demand() -> None:
    arbiter, first, second, third = SubscriptionArbiter(), Link(), Link(), Link()
    arbiter.set(first)
    assert first.requests == []
    arbiter.request(20)
    arbiter.produced(15)
    arbiter.set(second)
    arbiter.produced(5)
    arbiter.set(third)
    assert (first.requests, second.requests, third.requests) == ([20], [5], [])


@pytest.mark.checklist("P16", "P21")
def test_unbounded_it_keeps_no_account() -> None:
    arbiter, first, second = SubscriptionArbiter(), Link(), Link()
    arbiter.set(first)
    arbiter.request(UNBOUNDED)
    assert arbiter.unbounded
    arbiter.produced(5)
    arbiter.request(1)
    arbiter.set(second)
    assert (first.requests, second.requests) == ([UNBOUNDED], [UNBOUNDED])


@pytest.mark.checklist("P11")
def test_demand_is_capped() -> None:
    arbiter, link = SubscriptionArbiter(), Link()
    arbiter.request(UNBOUNDED - 1)
    assert not arbiter.unbounded
    arbiter.request(UNBOUNDED - 1)
    arbiter.set(link)
    assert link.requests == [UNBOUNDED]


@pytest.mark.checklist("P15")
def test_more_production_than_demand_is_reported_and_leaves_none(dropped: Any) -> None:
    arbiter, link = SubscriptionArbiter(), Link()
    arbiter.request(1)
    arbiter.produced(2)
    (error,) = dropped.errors
    assert isinstance(error, ProtocolViolationError)
    arbiter.set(link)
    assert link.requests == []


@pytest.mark.checklist("P14")
@pytest.mark.parametrize("n", [0, -1])
def test_production_of_nothing_is_a_mistake(n: int) -> None:
    with pytest.raises(ValueError, match="produced"):
        SubscriptionArbiter().produced(n)


@pytest.mark.checklist("P24")
def test_cancel_reaches_the_current_subscription_and_every_later_one() -> None:
    arbiter, first, second = SubscriptionArbiter(), Link(), Link()
    arbiter.set(first)
    arbiter.cancel()
    arbiter.cancel()
    arbiter.request(5)
    assert (first.cancels, first.requests, arbiter.cancelled) == (1, [], True)
    arbiter.set(second)
    arbiter.set(None)
    assert (second.cancels, second.requests) == (1, [])


@pytest.mark.checklist("P24")
@pytest.mark.parametrize("cancels", [True, False])
def test_a_replaced_subscription_is_cancelled_if_cancel_on_replace_is_set(cancels: bool) -> None:
    arbiter, first, second = SubscriptionArbiter(cancel_on_replace=cancels), Link(), Link()
    arbiter.set(first)
    arbiter.set(second)
    assert (first.cancels, second.cancels) == (int(cancels), 0)
    arbiter.set(None)
    assert second.cancels == int(cancels)
    arbiter.cancel()
    assert (first.cancels, second.cancels) == (int(cancels), int(cancels))


@pytest.mark.checklist("P24")
def test_a_cancel_within_a_request_gets_through_at_once() -> None:
    """No lock is held, and nothing waits for the request to return."""
    arbiter = SubscriptionArbiter()
    seen: list[int] = []

    def then(_: int) -> None:
        arbiter.cancel()
        seen.append(link.cancels)

    link = Link(then)
    arbiter.set(link)
    arbiter.request(1)
    assert seen == [1]


@pytest.mark.checklist("P13")
def test_it_can_be_used_again_after_a_subscription_has_raised() -> None:
    def fails(_: int) -> None:
        raise RuntimeError("out of order")

    arbiter, second = SubscriptionArbiter(), Link()
    arbiter.set(Link(fails))
    with pytest.raises(RuntimeError):
        arbiter.request(2)
    arbiter.set(second)
    arbiter.request(1)
    assert second.requests == [2, 1]


@pytest.mark.checklist("P09")
@pytest.mark.parametrize("n", [0, -1])
def test_a_bad_request_cancels_and_is_reported_once(n: int) -> None:
    errors: list[ValueError] = []
    arbiter, link = SubscriptionArbiter(on_bad_request=errors.append), Link()
    arbiter.set(link)
    arbiter.request(n)
    arbiter.request(n)
    (error,) = errors
    assert "3.9" in str(error)
    assert (link.cancels, link.requests, arbiter.cancelled) == (1, [], True)


@pytest.mark.checklist("P09")
def test_a_bad_request_without_a_handler_goes_to_the_hook(dropped: Any) -> None:
    SubscriptionArbiter().request(0)
    (error,) = dropped.errors
    assert isinstance(error, ValueError)


def test_amounts_are_ints() -> None:
    wrong: Any = True
    with pytest.raises(TypeError):
        SubscriptionArbiter().request(wrong)
