"""The modules that a Python worker can import as this process does."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

__all__ = ["SHIPPED", "importable", "own_paths"]

SHIPPED: Final = (
    "flow_core",
    "flow_multicast",
    "flow_ops",
    "flow_spark",
    "flow_testing",
    "typing_extensions",
)
"""The packages that a session sends to executors on other machines, if they are installed here."""


def importable(module: ModuleType) -> bool:
    """Return whether a worker has `module`: it is shipped or installed, and not a script or test.

    Packages that are installed here are assumed to be installed on the executors, too.
    """
    if module.__name__ == "__main__":
        return False
    if module.__name__.partition(".")[0] in SHIPPED:
        return True
    file = getattr(module, "__file__", None)
    return not isinstance(file, str) or _installed(file)


def own_paths() -> list[str]:
    """Return what this process has added to ``sys.path``; workers on this machine get it, too."""
    roots = _roots()
    paths = (os.path.realpath(entry or os.curdir) for entry in sys.path)
    return [path for path in paths if Path(path).exists() and not f"{path}/".startswith(roots)]


@functools.lru_cache(maxsize=1024)
def _installed(file: str) -> bool:
    return os.path.realpath(file).startswith((*_roots(), *_linked_roots()))


@functools.lru_cache(maxsize=1)
def _roots() -> tuple[str, ...]:
    """Return the interpreter's own folders; not all of its prefix, where programs may be, too."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(site.getsitepackages())
    folders.add(str(Path(sys.base_prefix) / "lib"))
    if site.ENABLE_USER_SITE:
        folders.add(site.getusersitepackages())
    return tuple(os.path.realpath(folder) + "/" for folder in folders)


@functools.lru_cache(maxsize=1)
def _linked_roots() -> tuple[str, ...]:
    """Return the folders that .pth files add, as for packages in editable form."""
    return tuple(folder for root in _roots() for folder in _linked(Path(root)))


def _linked(folder: Path) -> Iterator[str]:
    for file in folder.glob("*.pth"):
        try:
            entries = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for entry in map(str.strip, entries):
            if entry and not entry.startswith(("#", "import ", "import\t")):
                yield os.path.realpath(folder / entry) + "/"
