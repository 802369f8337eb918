"""A required signal may come late: the verifications wait for it, and not for a while only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from flow_core import Flow
from flow_core.errors import none_given
from flow_core.protocols import CoreSubscriber, Subscription
from flow_testing.tck import OperatorVerification

pytestmark = pytest.mark.tck


class Late(OperatorVerification[int]):
    """Of an operator that does everything but signal `on_subscribe` on the third turn after."""

    quiet_s = 0.001  # something signals by itself
    turns = 0

    def __init__(self) -> None:
        self.put_off: list[Callable[[], object]] = []

    def apply(self, upstream: Flow[int]) -> Flow[int]:
        class Source:
            def subscribe(_, subscriber: Any, /) -> None:  # noqa: N805 - self is the verification
                upstream.subscribe(PutOff(subscriber, self.put_off))

        return Flow(Source())

    def settle(self) -> None:
        self.turns += 1
        if self.turns % 3 == 0:
            acts, self.put_off[:] = self.put_off.copy(), []
            for act in acts:
                with contextlib.suppress(LookupError):  # which a thread of its own would report
                    act()


class PutOff(CoreSubscriber[int]):
    def __init__(self, downstream: CoreSubscriber[int], later: list[Callable[[], object]]) -> None:
        self.downstream = downstream
        self.later = later
        self.upstream: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self.upstream is not None:
            self.later.append(subscription.cancel)
            return
        self.upstream = subscription
        self.downstream.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.later.append(lambda: self.upstream and self.upstream.request(n))

    def cancel(self) -> None:
        self.later.append(self._cancel)

    def _cancel(self) -> None:
        if self.upstream is not None:
            self.upstream.cancel()

    def on_next(self, item: int, /) -> None:
        if item is None:
            self.later.append(lambda: self.on_error(none_given("on_next")))
            return
        try:
            self.downstream.on_next(item)
        except LookupError:
            self._cancel()

    def on_error(self, error: BaseException, /) -> None:
        self.downstream.on_error(error)

    def on_complete(self) -> None:
        self.downstream.on_complete()


@pytest.mark.parametrize(
    "rule",
    [
        "spec205_a_second_upstream_is_cancelled",
        "spec206_a_cancel_reaches_the_upstream",
        "spec213_none_of_the_upstream_is_no_item",
        "spec213_a_subscriber_that_raises_counts_as_cancelled",
        "a_generator_is_closed_on_cancel",
    ],
)
def test_a_required_signal_is_waited_for_until_it_comes(rule: str) -> None:
    getattr(Late(), f"test_{rule}")()


@pytest.mark.parametrize(("quiet_s", "turns"), [(0, 1), (0.001, 2)], ids=["at once", "later"])
def test_a_signal_that_does_not_come_fails_with_a_text(quiet_s: float, turns: int) -> None:
    """At once where nothing comes by itself; otherwise when the time has passed."""
    late = Late()
    late.quiet_s, late.timeout_s = quiet_s, 0.01
    with pytest.raises(AssertionError, match="it has not come"):
        late.eventually(lambda: False, lambda: "it has not come")
    assert late.turns >= turns
    assert (late.turns == 1) == (quiet_s == 0)
