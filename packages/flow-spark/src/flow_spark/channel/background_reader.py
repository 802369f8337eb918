"""The background reader of a job: frees slots for other jobs; reports a job without a slot."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Final, final

from flow_spark.channel.receiver import BatchReceiver

__all__ = ["BackgroundReader"]

PATIENCE_S: Final = 0.1
"""The time, in seconds, that a consumer is away before the reader checks whether other jobs wait;
also the interval of further checks."""

LEFT_S: Final = 1.0
"""The time, in seconds, that a consumer may be away when other jobs wait and there is no room for
items: then tasks leave."""

GIVEN_UP_S: Final = 30.0
"""The time, in seconds, that the consumer may be away if tasks cannot leave, or if there is room
for items and the tasks do not end."""

STARVED_S: Final = 5.0
"""The time, in seconds, that a job may be without a task before the reader looks for the reason;
also the interval of further looks."""


@final
class BackgroundReader:
    """Ends the tasks of a flow that is not read, if other jobs wait for their slots.

    A task holds its slot until all its items are read. So if a consumer waited for another job, and
    that job waited for a slot, they would wait for ever. In this case, this reader takes in the
    items of the tasks, and the tasks end. If there is no room for the items, or the tasks do not
    end, the tasks leave, and begin again later. While no other job waits, nothing is taken in, and
    tasks wait for demand as always.

    The reader also reports if no task of the job gets a slot.

    Args:
        receiver: reads the items of tasks.
        wanted: returns whether other jobs wait for slots; it may take a moment.
        give_up: ends the job, because its consumer does not come back and there is no room left.
        leave: makes the tasks leave until items are requested; returns whether they leave.
        starved: called if no task has come for some time; returns whether to call it again.
    """

    __slots__ = ("_give_up", "_leave", "_receiver", "_starved", "_wanted")

    def __init__(
        self,
        receiver: BatchReceiver,
        wanted: Callable[[], bool],
        give_up: Callable[[], None],
        *,
        leave: Callable[[], bool] = bool,
        starved: Callable[[], bool] = bool,
    ) -> None:
        self._receiver: Final = receiver
        self._wanted: Final = wanted
        self._give_up: Final = give_up
        self._leave: Final = leave
        self._starved: Final = starved

    def run(self) -> None:
        """Look after the receiver until its job has ended; in a separate thread."""
        receiver = self._receiver
        look_at: float | None = time.monotonic() + STARVED_S
        try:
            while not receiver.wait_until_over(PATIENCE_S):
                if look_at is not None and time.monotonic() > look_at:
                    look_at = time.monotonic() + STARVED_S if self._is_starved() else None
                if receiver.silence_s() < PATIENCE_S or not self._is_wanted():
                    continue
                if not receiver.is_full():
                    self._take_in()
                elif receiver.silence_s() < LEFT_S or self._have_left():
                    pass
                elif receiver.silence_s() >= GIVEN_UP_S:
                    self._give_up()
        except BaseException as error:  # an error in a thread has no caller to propagate to
            receiver.fail(error)

    def _take_in(self) -> None:
        receiver = self._receiver
        while receiver.take_in(PATIENCE_S) and self._is_wanted():
            if receiver.silence_s() >= GIVEN_UP_S and receiver.has_tasks():
                self._have_left()

    def _have_left(self) -> bool:
        """Let the tasks leave, if they can; return whether no task of the job holds a slot then."""
        with contextlib.suppress(Exception):
            return self._leave()
        return False

    def _is_starved(self) -> bool:
        """Return whether no task has come yet, so that this has to be called again."""
        if self._receiver.was_reached():
            return False
        with contextlib.suppress(Exception):
            return self._starved()
        return True

    def _is_wanted(self) -> bool:
        with contextlib.suppress(Exception):  # the job itself reports what is wrong with Spark
            return self._wanted()
        return False
