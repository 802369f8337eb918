"""A Spark Connect server, from the jar that comes with PySpark."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import pytest

from .processes import Server
from .runtime import FAST, Runtime

__all__ = ["ConnectServer"]


class ConnectServer:
    """A server whose jobs run on some master.

    Skips the test that needs it where the client's packages are missing.

    Args:
        runtime: what to run.
        master: ``local[2]``, or the URL of a cluster.
        conf: further settings of the server.

    Attributes:
        url: where clients find it.
    """

    def __init__(
        self, runtime: Runtime, master: str, conf: Mapping[str, str | int] | None = None
    ) -> None:
        if missing := [name for name in ("grpc", "grpc_status") if find_spec(name) is None]:
            pytest.skip(f"a client of Spark Connect needs: {', '.join(missing)}")
        settings: dict[str, str | int] = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": f"{FAST} -Djava.io.tmpdir={runtime.folder}",
            "spark.python.task.killTimeout": "1s",
            "spark.sql.warehouse.dir": (runtime.folder / "warehouse").as_uri(),
            "spark.ui.port": "0",  # its status is read there: a client of Connect cannot ask for it
            **(conf or {}),
        }
        command = [runtime.program("spark-submit"), "--master", master]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        # Spark's launcher takes this server for a daemon, and gives it a daemon's memory.
        variables = {**runtime.variables(), "SPARK_DAEMON_MEMORY": "1g"}
        self.server = Server("connect", [*command, "spark-internal"], runtime.folder, variables)
        started = self.server.wait_for(r"Spark Connect server started at: \S*?:(\d+)")
        self.url = f"sc://{settings['spark.connect.grpc.binding.address']}:{started[1]}"
        port = self.server.wait_for(r"Successfully started service 'SparkUI' on port (\d+)")[1]
        applications = f"http://127.0.0.1:{port}/api/v1/applications"
        self._executors = f"{applications}/{_answer(applications)[0]['id']}/executors"

    def running_tasks(self) -> int:
        """The number of tasks that run on its executors now."""
        return sum(executor["activeTasks"] for executor in _answer(self._executors))

    def stop(self) -> None:
        """End it. Idempotent."""
        self.server.stop()


def _answer(url: str) -> Any:  # Any: JSON
    with urllib.request.urlopen(url, timeout=10) as response:
        return json.load(response)
