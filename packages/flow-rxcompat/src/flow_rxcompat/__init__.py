"""Flow beside Agera and ReactiveX: what they do, what went wrong there, and bridges both ways."""

from __future__ import annotations
