"""What is imported when it is first used: higher modules of this package, and slow ones of Python.

`flow_core` says how to get the higher ones when it is imported, as it is before any of its modules.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from flow_core.plugins import PluginHost

__all__ = ["fill_in", "hints", "later", "plugin_host"]

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


def later(name: str, namespace: dict[str, Any]) -> ModuleType:  # Any: as `globals` returns it
    """Return a module that is imported, and takes its own place, when a name in it is asked for.

    Args:
        name: that of the module, which is a variable.
        namespace: the variables.
    """
    return _Later(name, namespace)


@final
class _Later(ModuleType):
    """Runs `later`."""

    def __init__(self, name: str, namespace: dict[str, Any]) -> None:
        super().__init__(name)
        self._namespace = namespace

    def __getattr__(self, name: str) -> object:
        module = self._namespace[self.__name__] = import_module(self.__name__)
        return getattr(module, name)
