"""Bring this library's own packages to executors on other machines."""

from __future__ import annotations

import importlib
import zipfile
from pathlib import Path
from typing import Final

__all__ = ["packed"]

_PACKAGES: Final = ("flow_core", "flow_spark", "typing_extensions")
"""Ours, and what they import of others that PySpark does not need itself."""


def packed(folder: Path) -> Path:
    """A zip of the packages that tasks import, for ``SparkContext.addPyFile``.

    Args:
        folder: where to make it.
    """
    archive = folder / "flow_packages.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packing:
        for name in _PACKAGES:
            file = importlib.import_module(name).__file__
            if file is None:
                continue
            root = Path(file).parent
            if Path(file).stem != "__init__":
                packing.write(file, Path(file).name)
                continue
            for source in sorted(root.rglob("*.py")):
                packing.write(source, Path(name) / source.relative_to(root))
    return archive
