"""Where the methods of `Flow` find the operators of other packages."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from flow_core.errors import NotInstalledError

__all__ = ["KNOWN", "factory_of"]

KNOWN: Final[dict[str, Callable[..., Any]]] = {}  # Any, here and below: the operator
"""The factories that have been called, by their targets."""


def factory_of(target: str) -> Callable[..., Any]:
    """The factory of an operator; imports its module.

    Args:
        target: ``package.module:function``, of an official package.

    Raises:
        NotInstalledError: if the package is not installed, or too old to have it.
    """
    found = KNOWN.get(target)
    if found is not None:
        return found
    path, _, name = target.partition(":")
    module = path.partition(".")[0]
    package = module.replace("_", "-")
    try:
        made: Callable[..., Any] = getattr(import_module(path), name)
    except ModuleNotFoundError as error:
        if error.name == module:
            raise NotInstalledError(
                f"{name}() comes with the package {package}, which is not installed: "
                f"pip install {package}",
                name=module,
            ) from None
        if error.name is None or not f"{path}.".startswith(f"{error.name}."):
            raise  # the package itself lacks something
        raise _too_old(name, package, module) from None
    except AttributeError as error:
        if error.name != name:
            raise
        raise _too_old(name, package, module) from None
    KNOWN[target] = made
    return made


def _too_old(name: str, package: str, module: str) -> NotInstalledError:
    return NotInstalledError(
        f"{name}() is not in the version of {package} that is installed: "
        f"pip install --upgrade {package} flow-core",
        name=module,
    )
