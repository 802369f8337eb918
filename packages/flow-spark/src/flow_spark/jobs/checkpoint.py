"""Whose a checkpoint is: two flows that share one would each take the other's place in a stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from flow_spark.errors import CheckpointConflictError
from flow_spark.items.arrow import ArrowSchema, pa
from flow_spark.jobs.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["claim"]

_FOLDER: Final = "flow"
"""Beside Spark's own folders in the checkpoint; Spark leaves it alone."""

_LINES: Final[ArrowSchema] = pa.schema([("value", pa.string())])


def claim(df: DataFrame, checkpoint: str, name: str | None) -> None:
    """Take a checkpoint over for a stream, or find that it is its own.

    Args:
        df: the stream.
        checkpoint: where it is, on any file system that Spark reaches.
        name: of the flow; None stands for any.

    Raises:
        CheckpointConflictError: if it belongs to a flow of another name, or of other columns.
    """
    from pyspark.errors import AnalysisException

    session = df.sparkSession
    path = f"{checkpoint.rstrip('/')}/{_FOLDER}"
    own = {"name": name, "columns": df.schema.simpleString()}
    try:
        lines = session.read.text(path).collect()
    except AnalysisException:  # the path does not exist: it is new, or Spark's alone
        lines = []
    if not lines:
        line = pa.record_batch([[json.dumps(own)]], schema=_LINES)
        mark = frame_of(session, pa.Table.from_batches([line], schema=_LINES))
        mark.coalesce(1).write.mode("overwrite").text(path)
        return
    known = json.loads(lines[0][0])
    differences = [
        f"its {what} is {known.get(what)!r}, not {own[what]!r}"
        for what in own
        if known.get(what) != own[what]
    ]
    if differences:
        raise CheckpointConflictError(
            f"the checkpoint {checkpoint!r} belongs to another flow: {'; '.join(differences)}. "
            "Give each flow a checkpoint of its own. If this is the same flow with new columns, "
            f"begin anew with an empty one, or delete {path!r} to go on from where it is"
        )
