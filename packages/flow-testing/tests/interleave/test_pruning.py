"""Schedules that are left out have no further outcome: random programs, with and without."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from threading import Lock

import pytest

from flow_testing.interleave import Body, Exhaustive, Report, Scenario, search

pytestmark = [pytest.mark.interleave, pytest.mark.essential]


class Memory:
    def __init__(self) -> None:
        self.x = 0
        self.y = 0
        self.queue: deque[int] = deque()
        self.lock = Lock()

    def change_x(self, n: int) -> int:
        self.x = self.x * 2 + n
        return self.x

    def change_y(self, n: int) -> int:
        self.y = self.y * 3 + n
        return self.y

    def read_both(self, n: int) -> int:
        return self.x * 100 + self.y

    def copy_to_y(self, n: int) -> int:
        self.y = self.x
        return n

    def append(self, n: int) -> int:
        self.queue.append(n)
        return len(self.queue)

    def pop(self, n: int) -> int:
        return self.queue.popleft() if self.queue and self.x else -1

    def locked(self, n: int) -> int:
        with self.lock:
            return self.change_x(n)

    def try_locked(self, n: int) -> int:
        if not self.lock.acquire(blocking=False):
            return -2
        try:
            return self.change_y(n)
        finally:
            self.lock.release()


OPERATIONS: list[Callable[[Memory, int], int]] = [
    Memory.change_x,
    Memory.change_y,
    Memory.read_both,
    Memory.copy_to_y,
    Memory.append,
    Memory.pop,
    Memory.locked,
    Memory.try_locked,
]


def program(seed: int, threads: int) -> Body:
    chosen = random.Random(seed)
    programs = [
        [chosen.choice(OPERATIONS) for _ in range(chosen.randint(1, 3))] for _ in range(threads)
    ]

    def body() -> Scenario:
        memory = Memory()
        results: list[tuple[int, ...]] = [()] * threads

        def run(thread: int) -> None:
            seen = ()
            for n, operation in enumerate(programs[thread]):
                try:
                    seen += (operation(memory, 2 * n + thread),)
                except IndexError:
                    seen += (-3,)
            results[thread] = seen

        return Scenario(
            *(lambda thread=thread: run(thread) for thread in range(threads)),
            outcome=lambda: (memory.x, memory.y, tuple(memory.queue), *results),
        )

    return body


def outcomes(body: Body, preemptions: int, *, prune: bool) -> Report:
    report = search(
        body, strategy=Exhaustive(preemptions, prune=prune), modules=[__name__], timeout_s=60
    )
    assert report.failure is None
    assert report.exhausted
    return report


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("threads", "preemptions"), [(2, 2), (3, 1)])
def test_pruning_leaves_out_no_outcome(seed: int, threads: int, preemptions: int) -> None:
    body = program(seed, threads)

    pruned = outcomes(body, preemptions, prune=True)
    full = outcomes(body, preemptions, prune=False)

    assert set(pruned.outcomes) == set(full.outcomes)
    assert pruned.schedules <= full.schedules + 20  # it begins again when it learns of a conflict


def test_a_program_of_threads_that_share_nothing_has_one_schedule_per_order() -> None:
    class Own:
        def __init__(self) -> None:
            self.n = 0

        def count(self) -> None:
            self.n += 1

    def body() -> Scenario:
        own = Own()
        return Scenario(own.count, lambda: None)

    pruned = outcomes(body, 2, prune=True)
    full = outcomes(body, 2, prune=False)

    assert pruned.schedules == 2
    assert full.schedules > 2
