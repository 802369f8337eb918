"""Imports at the first use: of modules that depend on many others, and of slow ones of Python.

Before `flow_core` imports any of its modules, it sets the functions that import the dependent ones.
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
"""Returns the module `flow_core.hints`, which knows all names of the library."""

plugin_host: Callable[[], PluginHost]
"""See `flow_core.plugins.plugin_host`."""


def fill_in(to_hints: Callable[[], ModuleType], to_plugins: Callable[[], PluginHost]) -> None:
    """Set how the two functions above import their modules.

    Args:
        to_hints: imports the module `hints`, and returns it.
        to_plugins: imports the plugins' module, and returns its host.
    """
    global hints, plugin_host
    hints, plugin_host = to_hints, to_plugins


# Any: the type that `globals` returns.
def later(name: str, namespace: dict[str, Any]) -> ModuleType:
    """Return a stand-in for a module, which imports the module when one of its names is used.

    Args:
        name: the name of the module, and of the variable; the module then replaces the stand-in in
            the variable.
        namespace: the global variables of the importing module.
    """
    return _Later(name, namespace)


@final
class _Later(ModuleType):
    """The stand-in that `later` returns."""

    def __init__(self, name: str, namespace: dict[str, Any]) -> None:
        super().__init__(name)
        self._namespace = namespace

    def __getattr__(self, name: str) -> object:
        module = self._namespace[self.__name__] = import_module(self.__name__)
        return getattr(module, name)
