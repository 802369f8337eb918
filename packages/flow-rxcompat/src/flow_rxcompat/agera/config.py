"""`RepositoryConfig`: what becomes of a flow that runs."""

from __future__ import annotations

import enum

__all__ = ["RepositoryConfig"]


class RepositoryConfig(enum.IntFlag):
    """What a compiled repository does with its flow when it is deactivated, or updated meanwhile.

    CANCEL_FLOW is a part of both others: a flow that is reset or interrupted is cancelled.
    """

    CONTINUE_FLOW = 0
    """It goes on; after an update, it runs once more when it has ended."""
    CANCEL_FLOW = 1
    """It ends after the directive that runs; after an update, it runs again then."""
    RESET_TO_INITIAL_VALUE = 3
    """And the value is the initial one again, at once. It has no such effect on an update."""
    SEND_INTERRUPT = 5
    """And, between ``go_to`` and ``go_lazy``, `interrupted` says so to the directive that runs."""
