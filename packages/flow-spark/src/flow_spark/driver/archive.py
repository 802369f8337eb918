"""The archive of classes that the JVM of a local session maps; `flow_spark.fast_start` makes it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from flow_spark.driver.java import Java

__all__ = ["archives", "options_for", "place"]


def options_for(java: Java) -> str:
    """Return options for a JVM of `java` with which it uses the archive, if there is one.

    A JVM ignores an archive that does not fit.

    Args:
        java: the Java whose JVM uses it.
    """
    for archive in archives(java):
        # A JVM crashes on an archive that was cut off, so the size is part of the name.
        if archive.stem.endswith(f"-{archive.stat().st_size}") and " " not in str(archive):
            return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable -Xlog:all=off"
    return ""


def archives(java: Java) -> list[Path]:
    """Return the archives that JVMs of `java` have made.

    Args:
        java: the Java whose JVM made them.
    """
    folder, key = place(java)
    return sorted(folder.glob(f"classes-{key}-*.jsa"))


def place(java: Java) -> tuple[Path, str]:
    """Return the folder of archives, and the part of their names for `java` and the PySpark here.

    Args:
        java: the Java whose JVM uses them.
    """
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    facts = [str(java.home), str(jars), pyspark.__version__]
    files = (java.home / "release", java.home / "lib" / "modules", jars)
    facts += [str(file.stat().st_mtime_ns) for file in files if file.exists()]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "flow-spark", key
