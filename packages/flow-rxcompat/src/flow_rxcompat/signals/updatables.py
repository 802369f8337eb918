"""Who is told, and what a signal is."""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import Final

from flow_core import hooks
from flow_rxcompat.signals.handles import Removable

__all__ = ["UPDATE", "Signal", "Updatable"]


class Signal(enum.Enum):
    """The type of `UPDATE`: that something has changed is all it says."""

    UPDATE = "update"


UPDATE: Final = Signal.UPDATE


class Updatable:
    """Is told of changes, of a failure and of the end. Only `update` has to be there."""

    __slots__ = ()

    def on_register(self, remover: Removable, /) -> None:
        """Comes first, before anything is registered: `remover` ends the registration any time."""

    @abstractmethod
    def update(self) -> object:
        """Something has changed."""

    def error(self, error: BaseException, /) -> None:
        """It has failed; nothing follows. Without an implementation, the hook gets the error."""
        hooks.drop_error(error)

    def complete(self) -> None:
        """It has ended; nothing follows."""
