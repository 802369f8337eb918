"""`async for` pulls what can be pulled, and gives the loop back by time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, hooks
from flow_core.subscribers import _awaiting as awaiting
from flow_testing import Drops

MADE: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "pulled": lambda items: items,
    "queued": lambda items: items.hide(),
}
WAYS = pytest.mark.parametrize("way", MADE)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the consumer, which the tests move."""
    now = [0.0]
    monkeypatch.setattr(awaiting, "monotonic", lambda: now[0])
    return now


async def between_turns(made: Flow[int], clock: list[float], item_s: float) -> list[int]:
    """The number of items between the turns of another task, each of which takes `item_s`."""
    counts = [0]
    ended = False

    async def other() -> None:
        while not ended:
            counts.append(0)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async for _ in made:
        counts[-1] += 1
        clock[0] += item_s
    ended = True
    await task
    return counts


@pytest.mark.slow
@WAYS
def test_others_have_their_turn_after_some_time_however_slow_or_fast_the_items_are(
    way: str, clock: list[float]
) -> None:
    for item_s in (1e-6, 1e-4, 1e-3, 1e-2):
        made = MADE[way](flow.range(20_000))
        counts = asyncio.run(between_turns(made, clock, item_s))
        assert sum(counts) == 20_000
        # Until the time is over, and the rest of a batch, which is short where items take long.
        assert max(counts) * item_s <= 0.005 + max(0.002, 2 * item_s)


@WAYS
def test_a_consumer_that_becomes_slow_takes_fewer_at_a_time(way: str, clock: list[float]) -> None:
    async def main() -> list[int]:
        counts = [0]

        async def other() -> None:
            while True:
                counts.append(0)
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        async for n in MADE[way](flow.range(3000)):
            counts[-1] += 1
            clock[0] += 1e-7 if n < 2000 else 0.01
        task.cancel()
        return counts

    counts = asyncio.run(main())
    assert counts[-100:-1] == [1] * 99


def test_an_iterator_is_asked_for_an_item_when_the_consumer_wants_it() -> None:
    asked: list[int] = []

    async def main() -> None:
        made = flow.range(9).do_on_next(asked.append)
        async with made.aiterate() as items:
            async for item in items:
                assert asked == list(range(item + 1))
                if item == 3:
                    break
        assert asked == [0, 1, 2, 3]

    asyncio.run(main())


def test_an_iterator_that_has_ended_is_not_asked_again() -> None:
    class Lines(Iterator[int]):
        """As a terminal, which may have more after an end."""

        def __init__(self) -> None:
            self.ends = 0
            self.left = 5

        def __next__(self) -> int:
            if self.left:
                self.left -= 1
                return self.left
            self.ends += 1
            raise StopIteration

    async def main() -> None:
        for count in range(9):
            lines = Lines()
            lines.left = count
            assert [n async for n in flow.from_iterable(lines)] == list(range(count))[::-1]
            assert lines.ends == 1

    asyncio.run(main())


def test_a_flow_that_is_made_when_it_runs_is_pulled_too() -> None:
    asked: list[int] = []

    async def main() -> None:
        made = flow.defer(lambda: flow.range(9).do_on_next(asked.append)).map(str)
        async for item in made:
            assert len(asked) == int(item) + 1

    asyncio.run(main())
    assert asked == list(range(9))


def test_a_pulled_source_is_closed_when_the_iteration_is_left_or_fails() -> None:
    log: list[str] = []

    def items() -> Iterator[int]:
        try:
            yield from range(9)
        finally:
            log.append("closed")

    async def main() -> None:
        async with flow.from_iterable(items()).map(str).aiterate() as left:
            assert await anext(left) == "0"
        assert log == ["closed"]
        with pytest.raises(ZeroDivisionError):
            await flow.from_iterable(items()).map(lambda n: 1 // n).run_async()
        assert log == ["closed", "closed"]

    asyncio.run(main())


@WAYS
def test_a_task_that_is_cancelled_while_others_have_their_turn_leaves_the_flow(
    way: str, clock: list[float], drops: Drops
) -> None:
    log: list[Any] = []

    async def consume() -> None:
        async for _ in MADE[way](flow.range(10**9)).finally_action(lambda: log.append("left")):
            clock[0] += 1

    async def main() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log == ["left"]


def test_a_task_that_is_cancelled_while_others_have_their_turn_has_taken_no_item(
    clock: list[float],
) -> None:
    asked: list[int] = []
    seen: list[int] = []

    async def consume() -> None:
        async for n in flow.range(10**9).do_on_next(asked.append):
            seen.append(n)
            clock[0] += 1

    async def main() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen
    assert asked == seen


def test_a_subscriber_that_a_hook_puts_in_place_is_used() -> None:
    seen: list[object] = []

    def see(subscriber: Any) -> Any:
        seen.append(subscriber)
        return subscriber

    async def main() -> None:
        with hooks.on_subscribe.scoped("test", see):
            assert [n async for n in flow.range(3)] == [0, 1, 2]

    asyncio.run(main())
    assert len(seen) == 1
