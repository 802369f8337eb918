"""What lower modules ask of higher ones, which they cannot import.

`flow_core` says how when it is imported, as it is before any of its modules.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flow_core.plugins import PluginHost

__all__ = ["fill_in", "hints", "plugin_host"]

hints: Callable[[], ModuleType]
"""Gives `flow_core.hints`, which knows all names of the library."""

plugin_host: Callable[[], PluginHost]
"""See `flow_core.plugins.plugin_host`."""


def fill_in(to_hints: Callable[[], ModuleType], to_plugins: Callable[[], PluginHost]) -> None:
    """Say how what is above is had.

    Args:
        to_hints: imports `hints`, and gives it.
        to_plugins: imports the host of the plugins, and gives it.
    """
    global hints, plugin_host
    hints, plugin_host = to_hints, to_plugins
