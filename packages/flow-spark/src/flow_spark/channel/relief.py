"""Takes in what tasks send while nobody asks for it, and others wait for their slots."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final, final

from flow_spark.channel.receiver import BatchReceiver

__all__ = ["Relief"]

PATIENCE_S: Final = 0.1
"""How long a consumer is away before somebody looks whether others wait; and how often then."""

GIVEN_UP_S: Final = 30.0
"""How long a consumer may be away when there is no room left, and others wait."""


@final
class Relief:
    """Ends the tasks of a flow that nobody reads, if others wait for their slots.

    A task holds its slot until all that it sends is read. So a consumer that waits for another job,
    which waits for a slot, would wait for ever. While nobody waits, nothing is taken in, and tasks
    wait for demand as ever.

    Args:
        receiver: reads what tasks send.
        wanted: whether others wait for slots; it may take a moment.
        give_up: ends the job whose consumer does not come back, though there is no room left.
    """

    __slots__ = ("_give_up", "_receiver", "_wanted")

    def __init__(
        self,
        receiver: BatchReceiver,
        wanted: Callable[[], bool],
        give_up: Callable[[], None],
    ) -> None:
        self._receiver: Final = receiver
        self._wanted: Final = wanted
        self._give_up: Final = give_up

    def run(self) -> None:
        """Look after the receiver until its job is over; in a thread of its own."""
        receiver = self._receiver
        try:
            while not receiver.wait_until_over(PATIENCE_S):
                if receiver.silence_s() < PATIENCE_S or not self._is_wanted():
                    continue
                if not receiver.is_full():
                    self._take_in()
                elif receiver.silence_s() >= GIVEN_UP_S:
                    self._give_up()
                    return
        except BaseException as error:  # a thread has nobody to propagate to
            receiver.fail(error)

    def _take_in(self) -> None:
        while self._receiver.take_in(PATIENCE_S) and self._is_wanted():
            pass

    def _is_wanted(self) -> bool:
        with contextlib.suppress(Exception):  # what is wrong with Spark, the job itself tells
            return self._wanted()
        return False
