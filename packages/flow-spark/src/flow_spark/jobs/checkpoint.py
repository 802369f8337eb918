"""The contents of a checkpoint: its owner, and the offsets of a micro-batch."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Final, final

from flow_spark.errors import CheckpointConflictError, SparkJobError
from flow_spark.items.arrow import ArrowSchema, pa
from flow_spark.jobs.frames import frame_of
from flow_spark.jobs.reads import reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Fingerprints", "claim"]

_FOLDER: Final = "flow"
"""The folder beside Spark's own ones in the checkpoint; Spark ignores it."""

_Mark = dict[str, str | list[str] | None]

_SUBJECTS: Final = {
    "name": "its name is",
    "columns": "its columns are",
    "stages": "its stages are",
    "reads": "it reads",
}
"""The parts of the mark of a checkpoint's owner, each with the text for a conflict."""

_LINES: Final[ArrowSchema] = pa.schema([("value", pa.string())])


def claim(df: DataFrame, checkpoint: str, name: str | None, stages: tuple[str, ...]) -> None:
    """Take a checkpoint over for a stream, or check that the stream owns it.

    A flow with a name is identified by the name. Without a name, it is identified by the names of
    its stages and by its sources, which stay the same in each run of a program, and when a function
    is edited.

    Args:
        df: the stream.
        checkpoint: the path of the checkpoint, on any file system that Spark reaches.
        name: the name of the flow, if it has one.
        stages: the names of the stages for its rows.

    Raises:
        CheckpointConflictError: if the checkpoint belongs to another flow, or to a flow with other
            columns.
    """
    session = df.sparkSession
    path = f"{checkpoint.rstrip('/')}/{_FOLDER}"
    own: _Mark = {"name": name, "columns": df.schema.simpleString()}
    if name is None:
        own |= {"stages": list(stages), "reads": reads(df)}
    lines = _lines(session, path)  # none if it is new, or Spark's alone
    known: _Mark = json.loads(lines[0]) if lines else own
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
            "Give each flow its own checkpoint. If this is the same flow, changed: begin again "
            f"with an empty checkpoint, or delete {path!r} to continue there. A flow that "
            "has the same name= in each run may change its stages and what it reads"
        )
    if not lines or known != own:
        line = pa.record_batch([[json.dumps(own)]], schema=_LINES)
        mark = frame_of(session, pa.Table.from_batches([line], schema=_LINES))
        mark.coalesce(1).write.mode("overwrite").text(path)


@final
class Fingerprints:
    """Digests of micro-batches, to distinguish their rows from other rows under the same number.

    They are made of what Spark has written before it runs the micro-batch: its beginning and end in
    each source, and for a source of files, the files.

    Args:
        df: the stream.
        checkpoint: the path of the checkpoint, on any file system that Spark reaches.
    """

    __slots__ = ("_known", "_path", "_session")

    def __init__(self, df: DataFrame, checkpoint: str) -> None:
        self._session: Final = df.sparkSession
        self._path: Final = checkpoint.rstrip("/")
        self._known: tuple[int, list[str]] = (-1, [])
        """The micro-batch of the last call, and the offsets at its end."""

    def of(self, batch_id: int) -> str:
        """Return a digest, which is the same if Spark runs the micro-batch again.

        Raises:
            SparkJobError: if the checkpoint does not have the offsets of the micro-batch.
        """
        before, begin = self._known
        if before != batch_id - 1:
            begin = _offsets(self._session, self._path, batch_id - 1)
        end = _offsets(self._session, self._path, batch_id)
        if not end:  # all would look alike
            raise SparkJobError(
                f"the checkpoint {self._path!r} does not say what micro-batch {batch_id} holds: "
                f"{self._path}/offsets/{batch_id} is missing, or Spark writes it in another form"
            )
        self._known = (batch_id, end)
        told = [begin, end]
        for source, last in enumerate(map(_log_offset, end)):
            first = _log_offset(begin[source]) if source < len(begin) else None
            for entry in range(0 if first is None else first + 1, 0 if last is None else last + 1):
                log = f"{self._path}/sources/{source}/{entry}"
                told.append(_files(self._session, log, entry))
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _offsets(session: SparkSession, path: str, batch_id: int) -> list[str]:
    """Return the offset of each source at the end of a micro-batch, as Spark has written it."""
    _version, _settings, *offsets = _lines(session, f"{path}/offsets/{batch_id}") or ("", "")
    return offsets


def _log_offset(offset: str) -> int | None:
    """Return the number of an entry in the log of a source of files; None for other offsets."""
    match = re.fullmatch(r'\{"logOffset":(\d+)\}', offset.strip())
    return None if match is None else int(match[1])


def _files(session: SparkSession, path: str, entry: int) -> list[str]:
    """Return the files of one entry of the log of a source.

    Each tenth entry has the files before it, too.
    """
    only = f"get_json_object(value, '$.batchId') = {entry}"
    return sorted(_lines(session, path, only) or _lines(session, f"{path}.compact", only))


def _lines(session: SparkSession, path: str, where: str = "true") -> list[str]:
    """Return the lines that Spark finds at a path; none if there is nothing."""
    from pyspark.errors import AnalysisException

    try:
        rows = session.read.text(re.sub(r"[][{}*?\\]", r"\\\g<0>", path)).where(where).collect()
    except AnalysisException:
        return []
    return [row[0] for row in rows]


def _said(value: str | list[str] | None) -> str:
    if isinstance(value, list):
        return repr(" | ".join(value)) if value else "none"
    return repr(value)
