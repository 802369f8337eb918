"""Whose a checkpoint is: two flows that share one would each take the other's place in a stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from flow_spark.errors import CheckpointConflictError
from flow_spark.items.arrow import ArrowSchema, pa
from flow_spark.jobs.frames import frame_of
from flow_spark.jobs.reads import reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["claim"]

_FOLDER: Final = "flow"
"""Beside Spark's own folders in the checkpoint; Spark leaves it alone."""

_Mark = dict[str, str | list[str] | None]

_SUBJECTS: Final = {
    "name": "its name is",
    "columns": "its columns are",
    "stages": "its stages are",
    "reads": "it reads",
}
"""What a mark says, and how a conflict is told."""

_LINES: Final[ArrowSchema] = pa.schema([("value", pa.string())])


def claim(df: DataFrame, checkpoint: str, name: str | None, stages: tuple[str, ...]) -> None:
    """Take a checkpoint over for a stream, or find that it is its own.

    A flow with a name is known by it. Without one, it is known by the names of its stages and by
    what it reads, which stay the same in each run of a program, and when a function is edited.

    Args:
        df: the stream.
        checkpoint: where it is, on any file system that Spark reaches.
        name: of the flow, if it has one.
        stages: the names of what is done with its rows.

    Raises:
        CheckpointConflictError: if it belongs to another flow, or to one of other columns.
    """
    from pyspark.errors import AnalysisException

    session = df.sparkSession
    path = f"{checkpoint.rstrip('/')}/{_FOLDER}"
    own: _Mark = {"name": name, "columns": df.schema.simpleString()}
    if name is None:
        own |= {"stages": list(stages), "reads": reads(df)}
    try:
        lines = session.read.text(path).collect()
    except AnalysisException:  # the path does not exist: it is new, or Spark's alone
        lines = []
    known: _Mark = json.loads(lines[0][0]) if lines else own
    if known["name"] is None and name is not None and "stages" in known:
        # It gets its name now, if it is the same flow.
        compared = {**own, "name": None, "stages": list(stages), "reads": reads(df)}
    else:
        compared = own
    differences = [
        f"{_SUBJECTS[what]} {_said(known[what])}, not {_said(compared[what])}"
        for what in compared
        # The first marks had a name and columns only.
        if what in known and known[what] != compared[what]
    ]
    if differences:
        raise CheckpointConflictError(
            f"the checkpoint {checkpoint!r} belongs to another flow: {'; '.join(differences)}. "
            "Give each flow a checkpoint of its own. If this is the same flow, changed: begin anew "
            f"with an empty checkpoint, or delete {path!r} to go on from where it is. A flow that "
            "has the same name= in each run may change its stages and what it reads"
        )
    if not lines or known != own:
        line = pa.record_batch([[json.dumps(own)]], schema=_LINES)
        mark = frame_of(session, pa.Table.from_batches([line], schema=_LINES))
        mark.coalesce(1).write.mode("overwrite").text(path)


def _said(value: str | list[str] | None) -> str:
    if isinstance(value, list):
        return repr(" | ".join(value)) if value else "none"
    return repr(value)
