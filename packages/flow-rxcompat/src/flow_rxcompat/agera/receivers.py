"""Receivers."""

from __future__ import annotations

from flow_rxcompat.agera._static import NULL
from flow_rxcompat.agera.protocols import Receiver

__all__ = ["null_receiver"]


def null_receiver() -> Receiver[object]:
    """Return a receiver that does nothing."""
    return NULL
