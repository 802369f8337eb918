"""The queue where `reactivex` puts work, so that a subscription can be disposed of first."""

from __future__ import annotations

from collections.abc import Callable

from reactivex.abc import SchedulerBase
from reactivex.scheduler import CurrentThreadScheduler

__all__ = ["run_trampolined"]


def run_trampolined(action: Callable[[], object]) -> None:
    """Run `action` now; work that is scheduled on this thread meanwhile runs when it has returned.

    A source that pushes as soon as it is subscribed to schedules that work. So the action has its
    disposable before the first item comes (C05).
    """
    trampoline = CurrentThreadScheduler.singleton()
    if not trampoline.schedule_required():
        action()
        return

    def run(_: SchedulerBase, __: object) -> None:
        action()

    trampoline.schedule(run)
