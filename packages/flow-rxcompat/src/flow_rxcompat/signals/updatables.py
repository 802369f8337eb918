"""Updatables and signals."""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import Final

from flow_core import hooks
from flow_rxcompat.signals.handles import Removable

__all__ = ["UPDATE", "Signal", "Updatable"]


class Signal(enum.Enum):
    """The type of `UPDATE`: it only says that something has changed."""

    UPDATE = "update"


UPDATE: Final = Signal.UPDATE


class Updatable:
    """Learns of changes, of a failure and of the end. Only `update` is required."""

    __slots__ = ()

    def on_register(self, remover: Removable, /) -> None:
        """Called before the registration. `remover` can end the registration at any time."""

    @abstractmethod
    def update(self) -> object:
        """Handle a change."""

    def error(self, error: BaseException, /) -> None:
        """Handle the failure; nothing follows.

        Without an implementation, the dropped-errors hook gets the error.
        """
        hooks.drop_error(error)

    def complete(self) -> None:
        """Handle the end; nothing follows."""
