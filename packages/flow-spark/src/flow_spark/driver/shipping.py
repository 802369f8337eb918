"""This library's own packages for executors on other machines."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

from flow_spark.pickling.modules import SHIPPED

__all__ = ["packed"]


def packed(folder: Path) -> Path:
    """Return a zip of the packages that tasks import, for ``SparkContext.addPyFile``.

    The zip has all packages of `SHIPPED` that are installed here, whether a flow uses them or not:
    that is known only when the flow runs, and they are small.

    Args:
        folder: the folder for the zip.
    """
    archive = folder / "flow_packages.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packing:
        for name in SHIPPED:
            found = importlib.util.find_spec(name)
            if found is None or found.origin is None:
                continue
            file = Path(found.origin)
            if file.stem != "__init__":
                packing.write(file, file.name)
                continue
            for source in sorted(file.parent.rglob("*.py")):
                packing.write(source, Path(name) / source.relative_to(file.parent))
    return archive
