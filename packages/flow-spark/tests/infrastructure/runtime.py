"""Programs of the Spark that is installed here, as tests run them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from flow_spark import NoJavaError
from flow_spark.driver.java import find_java, usable_home

__all__ = ["FAST", "Runtime"]

FAST = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"


class Runtime:
    """Java and Spark, in a private folder.

    Skips the test that needs it where there is no Java.

    Args:
        folder: for what the programs write.
    """

    def __init__(self, folder: Path) -> None:
        from pyspark.find_spark_home import _find_spark_home

        if not Path("/proc/self/stat").exists():
            pytest.skip("needs /proc to see to the processes of a cluster")
        try:
            self.java = find_java()
        except NoJavaError as error:
            pytest.skip(f"no Java for a cluster: {error}")
        self.folder = folder
        self.spark_home = Path(_find_spark_home())
        self.java_home = usable_home(self.java, folder)
        (folder / "conf").mkdir()

    def program(self, name: str) -> str:
        """The path of one of Spark's scripts."""
        return str(self.spark_home / "bin" / name)

    def variables(self) -> dict[str, str]:
        """The environment of a server on the loopback address, with separate settings."""
        temporary = self.folder / "temporary"
        temporary.mkdir(exist_ok=True)
        return {
            "JAVA_HOME": str(self.java_home),
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_DAEMON_JAVA_OPTS": f"{FAST} -Djava.io.tmpdir={temporary}",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_HOME": str(self.spark_home),
            "SPARK_LAUNCHER_OPTS": FAST,
            "SPARK_LOCAL_DIRS": str(temporary),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(temporary),
        }
