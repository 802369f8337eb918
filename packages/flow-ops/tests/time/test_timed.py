"""The timer that operators with a clock have in common."""

from __future__ import annotations

from typing import Any

from flow_ops.time._timed import Timed
from flow_testing import TestSubscriber, VirtualClock


class Waking(Timed[int]):
    """Writes down when it was woken."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(TestSubscriber(), "waking, assembled at nowhere", clock)
        self.woken: list[float] = []

    def open(self) -> None:
        """There is no source."""

    def wake(self) -> None:
        self.woken.append(self.clock.now())

    def run(self, *calls: Any) -> None:
        """Call all of these with the permit."""
        self.post(lambda _: [call() for call in calls], None)


def started(clock: VirtualClock) -> Waking:
    waking = Waking(clock)
    waking.start()
    return waking


def test_putting_it_off_costs_no_timer(clock):
    waking = started(clock)
    waking.run(lambda: waking.wake_in(2))
    clock.advance_by(1)
    waking.run(lambda: waking.wake_in(2))
    assert clock.pending == 1
    clock.run()
    assert waking.woken == [3.0]


def test_an_earlier_time_takes_another_timer(clock):
    waking = started(clock)
    waking.run(lambda: waking.wake_in(5), lambda: waking.wake_in(2))
    assert clock.pending == 1
    clock.run()
    assert waking.woken == [2.0]


def test_it_may_be_stopped_and_begun_again(clock):
    waking = started(clock)
    waking.run(lambda: waking.wake_in(2), waking.stop_timer)
    assert clock.pending == 0
    waking.run(lambda: waking.wake_in(3))
    clock.run()
    assert waking.woken == [3.0]


def test_a_timer_that_has_run_already_is_not_taken_for_its_successor(clock):
    waking = started(clock)
    waking.run(lambda: waking.wake_in(1))
    # The timer runs, but finds the permit taken; then it is stopped, and another one begins.
    waking.run(lambda: clock.advance_by(1), waking.stop_timer, lambda: waking.wake_in(1))
    assert clock.pending == 1
    assert waking.woken == []
    clock.run()
    assert waking.woken == [2.0]


def test_nothing_wakes_it_when_it_has_ended(clock):
    waking = started(clock)
    waking.run(lambda: waking.wake_in(1))
    waking.cancel()
    assert clock.pending == 0
    waking.run(lambda: waking.wake_in(1))
    clock.run()
    assert waking.woken == []
