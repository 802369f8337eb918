"""Spark's daemon of Python workers, with everything loaded that a task of a flow needs.

Spark starts the daemon once in an executor, by ``spark.python.daemon.module``. The daemon forks a
worker for each task that finds no free worker. A worker whose task was cancelled, or has not read
its input to the end, is lost, and without this daemon, a new worker would take a third of a second
for the imports that are done here.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
from typing import Final

__all__: list[str] = []

_MODULES: Final = (
    "encodings.idna",
    "importlib.metadata",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pyarrow",
    "flow_spark.jobs.task",
)


def main() -> None:
    """Load what tasks need, and serve Spark."""
    from pyspark.daemon import manager

    for module in _MODULES:
        with contextlib.suppress(ImportError):  # the error of the worker that needs it is better
            importlib.import_module(module)
    gc.freeze()  # a worker collects after each task, and need not look at what all share
    manager()


if __name__ == "__main__":
    main()
