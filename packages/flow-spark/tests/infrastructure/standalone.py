"""Spark's own cluster manager: a master and workers, on the loopback address."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from .processes import Server, ancestors, processes_of_group, wait_until
from .runtime import FAST, Runtime

__all__ = ["EXECUTORS", "KILLS", "StandaloneCluster"]

PATIENCE_S = 60.0
NOTICED_S = 120.0
"""The time that the master may take to notice that a worker is gone, on a busy machine."""

EXECUTORS = {
    "spark.cores.max": 2,
    "spark.executor.cores": 1,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": FAST,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""The demand of a session on a cluster: two executors, each with a core and little memory."""


_HOSTS = ("127.0.0.1", "localhost")
"""Two names, so that Spark takes the workers for two machines."""


class StandaloneCluster:
    """A master and two workers with a core each, or more of them.

    Args:
        runtime: what to run.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._number = 0
        self.workers: list[Server] = []
        self.master = Server(
            "master",
            [
                runtime.program("spark-class"),
                "org.apache.spark.deploy.master.Master",
                *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
            ],
            runtime.folder,
            runtime.variables(),
        )
        try:
            self.url = self.master.wait_for(r"Starting Spark master at (spark://\S+)")[1]
            self._add(2)
        except BaseException:
            self.stop()
            raise

    def repair(self, workers: int = 2) -> None:
        """Replace the workers that were killed, so that `workers` of them run."""
        running = [worker for worker in self.workers if worker.runs()]
        for worker in self.workers.copy():
            if worker not in running[:workers]:
                worker.stop()
                self.workers.remove(worker)
        self._add(workers - len(self.workers))

    def executors(self) -> dict[int, Server]:
        """The process ids of the executors, and the workers that they belong to."""
        return {
            pid: worker
            for worker in self.workers
            for pid, command in processes_of_group(worker.group).items()
            if "CoarseGrainedExecutorBackend" in command
        }

    def kill_executor(self, of: int | None = None) -> None:
        """kill -9 of an executor.

        Args:
            of: the process of a task; its executor is killed. None kills any.
        """
        pid, _ = self._victim(of)
        os.kill(pid, signal.SIGKILL)

    def kill_worker(self, of: int | None = None) -> None:
        """kill -9 of a worker alone, until the master has noticed and Spark runs its tasks again.

        Its executor is to end by itself, and may live on for a while.
        """
        _, worker = self._victim(of)
        lost = self._lost_executors()
        worker.kill()
        assert wait_until(lambda: self._lost_executors() > lost, NOTICED_S), "nobody has noticed"

    def _lost_executors(self) -> int:
        """The number of workers that the master has given up so far."""
        return self.master.text().count("Telling app of lost executor")

    def kill_machine(self, of: int | None = None) -> None:
        """kill -9 of a worker and its executor, as when their machine is lost."""
        pid, worker = self._victim(of)
        worker.kill()
        os.kill(pid, signal.SIGKILL)

    def _victim(self, of: int | None) -> tuple[int, Server]:
        assert wait_until(self.executors, PATIENCE_S), "no executor runs"
        executors = self.executors()
        if of is None:
            return next(iter(executors.items()))
        return next((pid, executors[pid]) for pid in ancestors(of) if pid in executors)

    def stop(self) -> None:
        """End everything. Idempotent."""
        try:
            for worker in self.workers:
                worker.stop()
        finally:
            self.master.stop()

    def _add(self, count: int) -> None:
        added: list[Server] = []
        for _ in range(count):
            self._number += 1
            host = _HOSTS[self._number % len(_HOSTS)]
            name = f"worker-{self._number}"
            folder = Path(self._runtime.folder, name)
            folder.mkdir()
            worker = Server(
                name,
                [
                    self._runtime.program("spark-class"),
                    "org.apache.spark.deploy.worker.Worker",
                    *("--host", host, "--port", "0", "--webui-port", "0"),
                    *("--cores", "1", "--memory", "1g", "--work-dir", str(folder), self.url),
                ],
                self._runtime.folder,
                self._runtime.variables(),
            )
            self.workers.append(worker)
            added.append(worker)
        for worker in added:
            worker.wait_for("Successfully registered with master")


KILLS: dict[str, Callable[[StandaloneCluster, int | None], object]] = {
    "an executor": StandaloneCluster.kill_executor,
    "a worker": StandaloneCluster.kill_worker,
    "a machine": StandaloneCluster.kill_machine,
}
"""Kills of parts of a cluster while a task runs there; each takes its process, or None for any."""
