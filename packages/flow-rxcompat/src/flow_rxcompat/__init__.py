"""Flow beside Agera and ReactiveX: their semantics, their faults, and bridges both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flow_core.errors import no_such_name

if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then

    def __getattr__(name: str) -> object:
        no_such_name(__name__, name)
