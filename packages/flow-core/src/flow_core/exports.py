"""The exports of a package, each loaded when it is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

from flow_core.errors import no_such_name

__all__ = ["exported"]


def exported(
    owner: str, places: Mapping[str, Iterable[str]], modules: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package that imports nothing by itself.

    Args:
        owner: the name of the package.
        places: the exported names, under the modules that have them. The name of a module within
            the package begins with a dot.
        modules: modules of the package that are attributes of it even before they are imported.
    """
    where = {name: module for module, names in places.items() for name in names}
    where |= {name: f".{name}" for name in modules}

    def get(name: str) -> object:
        if name not in where:
            no_such_name(owner, name)
        found: object = import_module(where[name], owner)
        if where[name] != f".{name}":
            found = getattr(found, name)
        setattr(sys.modules[owner], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[owner]), *where})

    return get, names
