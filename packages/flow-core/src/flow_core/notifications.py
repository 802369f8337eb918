"""Signals as items: `Flow.materialize` gives them and `Flow.dematerialize` takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, final

__all__ = ["Notification", "OnComplete", "OnError", "OnNext"]

T_co = TypeVar("T_co", covariant=True)


@final
@dataclass(frozen=True, slots=True)
class OnNext(Generic[T_co]):
    """An item came.

    Args:
        item: the item.
    """

    item: T_co


@final
@dataclass(frozen=True, slots=True)
class OnError:
    """The flow failed.

    Args:
        error: the error.
    """

    error: BaseException


@final
@dataclass(frozen=True, slots=True)
class OnComplete:
    """The flow completed."""


Notification: TypeAlias = OnNext[T_co] | OnError | OnComplete
"""One signal of a flow as an object."""
