"""Spark's daemon of Python workers, with all loaded that a task of a flow needs.

Spark starts it once in an executor, by ``spark.python.daemon.module``, and it forks a worker for
each task that finds none free. A worker whose task was cancelled, or has not read its input to the
end, is lost, and a new one would take a third of a second to import what is imported here.
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
        with contextlib.suppress(ImportError):  # the worker that needs it says so better
            importlib.import_module(module)
    gc.freeze()  # a worker collects after each task: what all share is not looked at then
    manager()


if __name__ == "__main__":
    main()
