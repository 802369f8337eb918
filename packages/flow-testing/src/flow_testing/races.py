"""Starts threads at the same time, for tests of races."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread

from flow_testing.subscriber import TIMEOUT_S

__all__ = ["race"]


def race(*actions: Callable[[], object], timeout_s: float = TIMEOUT_S) -> None:
    """Run each of `actions` in a separate thread, all at once, and wait for them.

    Args:
        actions: the functions to run.
        timeout_s: how long to wait for the threads, in seconds.

    Raises:
        AssertionError: if one of the functions does not return in time.
        BaseExceptionGroup: if functions raise errors; contains them.
    """
    barrier = Barrier(len(actions))
    errors: list[BaseException] = []

    def run(action: Callable[[], object]) -> None:
        try:
            barrier.wait(timeout_s)
            action()
        except BaseException as error:  # all of them are reported below
            errors.append(error)

    threads = [Thread(target=run, args=(action,), daemon=True) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout_s)
    stuck = sum(thread.is_alive() for thread in threads)
    if stuck:
        raise AssertionError(f"{stuck} of {len(threads)} threads did not end within {timeout_s} s")
    if errors:
        raise BaseExceptionGroup("raised in a race", errors)
