"""Imports at the first use: of higher modules of this package, and of slow ones of Python.

`flow_core` sets how to import the higher ones when it is imported, before any of its modules is.
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
"""Returns `flow_core.hints`, which knows all names of the library."""

plugin_host: Callable[[], PluginHost]
"""See `flow_core.plugins.plugin_host`."""


def fill_in(to_hints: Callable[[], ModuleType], to_plugins: Callable[[], PluginHost]) -> None:
    """Set how the functions above import their modules.

    Args:
        to_hints: imports `hints`, and returns it.
        to_plugins: imports the host of the plugins, and returns it.
    """
    global hints, plugin_host
    hints, plugin_host = to_hints, to_plugins


# Any: the type that `globals` returns.
def later(name: str, namespace: dict[str, Any]) -> ModuleType:
    """Return a module that imports itself, and replaces the variable, when a name in it is used.

    Args:
        name: the name of the module, and of the variable.
        namespace: the variables.
    """
    return _Later(name, namespace)


@final
class _Later(ModuleType):
    """The module that `later` returns."""

    def __init__(self, name: str, namespace: dict[str, Any]) -> None:
        super().__init__(name)
        self._namespace = namespace

    def __getattr__(self, name: str) -> object:
        module = self._namespace[self.__name__] = import_module(self.__name__)
        return getattr(module, name)
