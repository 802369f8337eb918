"""Signals as items: `Flow.materialize` makes them, and `Flow.dematerialize` takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, final

__all__ = ["Notification", "OnComplete", "OnError", "OnNext"]

T_co = TypeVar("T_co", covariant=True)


@final
@dataclass(frozen=True, slots=True)
class OnNext(Generic[T_co]):
    """The flow has sent an item.

    Args:
        item: the item.
    """

    item: T_co


@final
@dataclass(frozen=True, slots=True)
class OnError:
    """The flow has failed.

    Args:
        error: the error.
    """

    error: BaseException


@final
@dataclass(frozen=True, slots=True)
class OnComplete:
    """The flow has completed."""


Notification: TypeAlias = OnNext[T_co] | OnError | OnComplete
"""One signal of a flow as an object."""
