"""Binders."""

from __future__ import annotations

from flow_rxcompat.agera._static import NULL
from flow_rxcompat.agera.protocols import Binder

__all__ = ["null_binder"]


def null_binder() -> Binder[object, object]:
    """Return a binder that does nothing."""
    return NULL
