"""In an event loop, virtual time jumps whenever the loop is idle."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import pytest

import flow_core as flow
from flow_core import FlowError
from flow_testing import VirtualClock, subscriber


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_hours_pass_in_no_time_for_a_coroutine_and_for_the_clock(clock: VirtualClock) -> None:
    async def slept() -> list[float]:
        seen = [clock.now()]
        await asyncio.sleep(3600)
        seen.append(clock.now())
        clock.schedule(0.5, lambda: seen.append(clock.now()))
        await asyncio.sleep(1)
        return [*seen, clock.now()]

    began = time.monotonic()
    assert asyncio.run(clock.run_async(slept())) == [0.0, 3600.0, 3600.5, 3601.0]
    assert time.monotonic() - began < 60


def test_the_items_of_a_flow_are_its_result(clock: VirtualClock) -> None:
    async def day(n: int) -> int:
        await asyncio.sleep(86_400)
        return n

    async def days() -> object:
        for n in range(3):
            yield await day(n)

    assert asyncio.run(clock.run_async(flow.from_(days()))) == [0, 1, 2]
    assert clock.now() == 3 * 86_400.0


def test_the_error_of_the_flow_is_raised(clock: VirtualClock) -> None:
    error = ValueError()
    with pytest.raises(ValueError) as raised:
        asyncio.run(clock.run_async(flow.error(error)))
    assert raised.value is error


def test_a_task_of_the_clock_that_raises_ends_the_test(clock: VirtualClock) -> None:
    clock.schedule(1, [].pop)
    with pytest.raises(IndexError):
        asyncio.run(clock.run_async(asyncio.sleep(2)))


def test_a_timeout_of_asyncio_is_virtual(clock: VirtualClock) -> None:
    async def late() -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.sleep(3600)
        return f"{clock.now()}"

    assert asyncio.run(clock.run_async(late())) == "60.0"


def test_time_does_not_jump_while_something_is_to_be_done(clock: VirtualClock) -> None:
    async def busy() -> float:
        asyncio.get_running_loop().call_later(1, lambda: None)
        for _ in range(1000):
            await asyncio.sleep(0)
        return clock.now()

    assert asyncio.run(clock.run_async(busy())) == 0.0


def test_other_threads_are_waited_for_when_nothing_is_due(clock: VirtualClock) -> None:
    async def asked() -> str:
        loop = asyncio.get_running_loop()
        told = loop.create_future()
        thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(told.set_result, "told"))
        loop.call_later(1, thread.start)
        return await told

    assert asyncio.run(clock.run_async(asked())) == "told"
    assert clock.now() == 1.0


def test_the_time_of_the_loop_continues_from_there(clock: VirtualClock) -> None:
    async def both() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await clock.run_async(asyncio.sleep(3600))
        once = loop.time()
        await clock.run_async(asyncio.sleep(3600))
        await asyncio.sleep(0.001)  # in real time
        return once - before, loop.time() - once

    first, second = asyncio.run(both())
    assert 3600 <= first < 3660
    assert 3600 <= second < 3660


def test_a_flow_without_an_end_is_given_up(clock: VirtualClock) -> None:
    async def for_ever() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(
        AssertionError, match=r"jumped 10 times.*for_ever.* has not ended at 10\.0 s"
    ):
        asyncio.run(clock.run_async(for_ever(), max_jumps=10))


def test_a_flow_that_waits_for_nothing_is_given_up(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriber, "TIMEOUT_S", 0.05)
    with pytest.raises(AssertionError, match="nothing is due"):
        asyncio.run(clock.run_async(flow.never()))


def test_cancelling_run_async_cancels_the_running_coroutine(clock: VirtualClock) -> None:
    async def main() -> bool:
        held = asyncio.get_running_loop().create_future()
        outer = asyncio.ensure_future(clock.run_async(held))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        outer.cancel()
        await asyncio.wait([outer])
        return held.cancelled()

    assert asyncio.run(main())


def test_the_clock_is_in_force_meanwhile(clock: VirtualClock) -> None:
    from flow_core.clocks import home_clock

    async def which() -> object:
        return home_clock(None, None)

    assert asyncio.run(clock.run_async(which())) is clock
    assert home_clock(None, None) is not clock


def test_a_loop_that_hides_what_is_ready_is_refused(clock: VirtualClock) -> None:
    uvloop = pytest.importorskip("uvloop")
    with (
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        pytest.raises(FlowError, match="own event loops only"),
    ):
        runner.run(clock.run_async(flow.never()))
