"""`RepositoryConfig`: what happens to a running flow."""

from __future__ import annotations

import enum

__all__ = ["RepositoryConfig"]


class RepositoryConfig(enum.IntFlag):
    """The way to treat a running flow when its repository is deactivated, or gets an update.

    CANCEL_FLOW is a part of both others: a flow that is reset or interrupted is cancelled.
    """

    CONTINUE_FLOW = 0
    """The flow continues; after an update, it runs once more when it has ended."""
    CANCEL_FLOW = 1
    """The flow ends after the running directive; after an update, it runs again then."""
    RESET_TO_INITIAL_VALUE = 3
    """The flow ends as with `CANCEL_FLOW`, and the value is the initial one again, except after an
    update."""
    SEND_INTERRUPT = 5
    """The flow ends as with `CANCEL_FLOW`, and between ``go_to`` and ``go_lazy``, `interrupted`
    tells the running directive so."""
