"""A folder between a flow and a streaming query: with segments of items, and the positions of both.

Files, all of them private, each either complete or absent:

* ``meta.json``: the id of the spool, and the columns.
* ``NUMBER-FIRST-ROWS.arrow``: a segment, with the number of its first item.
* ``committed.json``: the position up to which the query has finished; earlier segments are removed.
* ``planned.json``: the position up to which the query has planned: there is room for as many
  segments again.
* ``outcome.json``: the end of the flow.
* ``reserve``: room for ``outcome.json`` on a disk that is full.
* ``writer.lock``, ``reader.lock``: while one of these locks is held, its holder is alive; the
  system releases the lock when the process ends. A process that opens the spool takes both for a
  moment, so that no process removes what another process writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sys
import time
import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast, final

import pyarrow

from flow_spark.errors import SpoolError
from flow_spark.items.arrow import ArrowBatch, ArrowSchema

if sys.platform != "win32":  # where `stream_source` says that it cannot run
    import fcntl

__all__ = ["Lock", "Outcome", "Segment", "Segments", "SpoolPosition", "read_segment"]

_pyarrow: Final = cast("Any", pyarrow)  # Any: the module has no types
_META: Final = "meta.json"
_COMMITTED: Final = "committed.json"
_PLANNED: Final = "planned.json"
_OUTCOME: Final = "outcome.json"
_RESERVE: Final = "reserve"
_RESERVED_BYTES: Final = 4096
_SHORT: Final = 600
"""The length of a text that fits into the reserve in any encoding, in characters."""
_PATIENCE_S: Final = 5.0
"""The time, in seconds, to wait for another process that is making the same spool."""
_SUFFIX: Final = ".arrow"
_PRIVATE: Final = 0o600
_OWN_FIRST: Final = re.compile(r".*\.lock|[0-9a-f]{16}\.part")
"""Files that may be there before ``meta.json`` is, if a process was killed while it wrote
``meta.json``."""


@final
@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """Some items in a row, in one file.

    Attributes:
        number: the number of the segment, from 0.
        first: how many items come before the segment.
        rows: how many items the segment holds.
    """

    number: int
    first: int
    rows: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.number:012}-{self.first:016}-{self.rows}{_SUFFIX}"


@final
@dataclass(frozen=True, slots=True)
class SpoolPosition:
    """A position between two segments.

    Attributes:
        segment: the number of the next segment.
        items: how many items come before the position.
    """

    segment: int = 0
    items: int = 0


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of the flow.

    Attributes:
        error: the error, as text; None if the flow completed.
    """

    error: str | None


@final
class Lock:
    """A file lock that ends with the process that holds it."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._descriptor = -1

    def acquire(self, patience_s: float) -> bool:
        """Take the lock.

        Return False if another process holds it for all of `patience_s` seconds.
        """
        if self._descriptor >= 0:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > deadline:
                    os.close(descriptor)
                    return False
                time.sleep(0.01)
            else:
                self._descriptor = descriptor
                return True

    def release(self) -> None:
        """Release the lock. Calling this twice is harmless."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def held_by_anyone(self) -> bool:
        """Return whether some process holds the lock now."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False


@final
class Segments:
    """The folder. The flow and the query each open it, in their own processes.

    Args:
        folder: the path of the folder.
    """

    __slots__ = ("_id", "folder")

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._id: str | None = None

    @staticmethod
    def made(folder: Path, columns: ArrowSchema) -> Segments:
        """Make a folder, or open one that was made before and has the same columns.

        Raises:
            SpoolError: if the folder has other columns, or is not a spool.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        spool = Segments(folder)
        schema = bytes(memoryview(columns.serialize())).hex()
        meta = spool._opened(schema)
        if meta["columns"] != schema:
            known = _pyarrow.ipc.read_schema(_pyarrow.py_buffer(bytes.fromhex(meta["columns"])))
            raise SpoolError(
                f"the spool {folder} holds the columns ({_said(known)}), and this flow has "
                f"({_said(columns)}): give it its own spool and checkpoint"
            )
        return spool

    def _opened(self, schema: str) -> dict[str, Any]:  # Any: as in JSON
        """Return the description of the spool; write one if there is none.

        Remove what a killed process left.
        """
        self._check_empty()
        opening, reader = self.writer, self.reader
        deadline = time.monotonic() + _PATIENCE_S
        while not opening.acquire(0.0):
            meta = self._read(_META)
            if meta is not None:
                return meta  # the process that has the lock does the rest
            if time.monotonic() > deadline:
                raise SpoolError(
                    f"another process has begun a spool in {self.folder} and is stuck; end "
                    "it, or name another folder"
                )
            time.sleep(0.01)
        try:
            meta = self._read(_META) or self._described(schema)
            if reader.acquire(0.0):
                for left in self.folder.glob("*.part"):
                    left.unlink(missing_ok=True)
            self._reserve()
            return meta
        finally:
            reader.release()
            opening.release()

    def _check_empty(self) -> None:
        """Refuse a folder that does not belong to a spool."""
        foreign = any(not _OWN_FIRST.fullmatch(path.name) for path in self.folder.iterdir())
        if foreign and self._read(_META) is None:  # checked last: another process may be making it
            raise SpoolError(f"{self.folder} holds files that no flow has spooled; take another")

    def _described(self, schema: str) -> dict[str, Any]:  # Any: as in JSON
        """Make a spool of an empty folder."""
        self.folder.chmod(0o700)
        meta = {"id": uuid.uuid4().hex, "columns": schema}
        self._replace(_META, meta)
        return meta

    @property
    def id(self) -> str:
        """The id that distinguishes this spool from another one at the same place.

        Raises:
            SpoolError: if there is no spool.
        """
        if self._id is None:
            meta = self._read(_META)
            if meta is None:
                raise SpoolError(
                    f"there is no spool at {self.folder} on this machine. The driver and all "
                    "executors have to see it there: put it on a file system that they share"
                )
            self._id = str(meta["id"])
        return self._id

    @property
    def writer(self) -> Lock:
        """Return the lock of the process that puts items in."""
        return Lock(self.folder / "writer.lock")

    @property
    def reader(self) -> Lock:
        """Return the lock of the query that takes them."""
        return Lock(self.folder / "reader.lock")

    def begin(self) -> SpoolPosition:
        """Return the position up to which a query has finished."""
        given = self._read(_COMMITTED)
        return SpoolPosition() if given is None else SpoolPosition(given["segment"], given["items"])

    def end(self) -> SpoolPosition:
        """Return the position of the next segment, which also counts the items so far."""
        last = max(self._listed(), default=None)
        begin = self.begin()
        if last is None or last.number < begin.segment:
            return begin
        return SpoolPosition(last.number + 1, last.first + last.rows)

    def planned(self) -> int:
        """Return the number of the first segment that is in no micro-batch yet."""
        given = self._read(_PLANNED)
        return max(self.begin().segment, 0 if given is None else given["segment"])

    def plan(self, segment: int) -> None:
        """Note that a micro-batch ends before this segment."""
        if segment != self.planned():
            self._replace(_PLANNED, {"segment": segment}, durable=False)

    def append(
        self, batches: list[ArrowBatch], columns: ArrowSchema, at: SpoolPosition
    ) -> SpoolPosition:
        """Add a segment; once this has returned, the segment survives a crash.

        Args:
            batches: the items.
            columns: the schema of the items.
            at: the result of `end`.

        Returns:
            The position after the new segment.
        """
        rows = sum(batch.num_rows for batch in batches)
        segment = Segment(at.segment, at.items, rows)
        with self._new(segment.name) as file, _pyarrow.ipc.new_file(file, columns) as writer:
            for batch in batches:
                writer.write_batch(batch)
            writer.close()
            file.flush()
            os.fsync(file.fileno())
        return SpoolPosition(at.segment + 1, at.items + rows)

    def between(self, start: int, end: int) -> list[Segment]:
        """Return the segments from `start` to before `end`.

        Raises:
            SpoolError: if one of them is missing.
        """
        found = [segment for segment in sorted(self._listed()) if start <= segment.number < end]
        if [segment.number for segment in found] != list(range(start, end)):
            raise SpoolError(
                f"the checkpoint asks for the segments {start} to {end - 1} of the spool "
                f"{self.folder}, which lacks some of them: it belongs to another checkpoint, "
                "or files were removed. Begin again with an empty spool and an empty checkpoint"
            )
        return found

    def commit(self, segment: int) -> None:
        """Remove the segments before `segment`, which are not needed any more.

        Calling this twice is harmless.
        """
        begin = self.begin()
        done = [part for part in sorted(self._listed()) if part.number < segment]
        if segment > begin.segment and done:
            items = done[-1].first + done[-1].rows
            self._replace(_COMMITTED, {"segment": segment, "items": items})
        for part in done:
            (self.folder / part.name).unlink(missing_ok=True)

    def outcome(self) -> Outcome | None:
        """Return how the flow has ended; None if it is running."""
        given = self._read(_OUTCOME)
        return None if given is None else Outcome(given["error"])

    def conclude(self, outcome: Outcome) -> None:
        """Note that the flow has ended.

        This works even on a full disk: otherwise the query would not notice the end.
        """
        try:
            self._replace(_OUTCOME, {"error": outcome.error})
        except OSError:
            (self.folder / _RESERVE).unlink(missing_ok=True)
            told = None if outcome.error is None else outcome.error[:_SHORT]
            self._replace(_OUTCOME, {"error": told})

    def reopen(self) -> None:
        """Note that the flow is tried again."""
        (self.folder / _OUTCOME).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # still full
            self._reserve()

    def _reserve(self) -> None:
        if not (self.folder / _RESERVE).exists():
            with self._new(_RESERVE) as file:
                file.write(bytes(_RESERVED_BYTES))

    def _listed(self) -> Iterator[Segment]:
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self.folder):  # noqa: PTH208 - names are all that is needed
                if name.endswith(_SUFFIX):
                    number, first, rows = name.removesuffix(_SUFFIX).split("-")
                    yield Segment(int(number), int(first), int(rows))

    def _read(self, name: str) -> dict[str, Any] | None:  # Any: as in JSON
        try:
            found: dict[str, Any] = json.loads((self.folder / name).read_text("utf-8"))
        except FileNotFoundError:
            return None
        return found

    def _replace(self, name: str, content: object, *, durable: bool = True) -> None:
        with self._new(name, durable=durable) as file:
            file.write(json.dumps(content).encode())
            if durable:
                file.flush()
                os.fsync(file.fileno())

    @contextlib.contextmanager
    def _new(self, name: str, *, durable: bool = True) -> Generator[Any]:  # Any: see _created
        """Open a new file, which gets its name only when it is complete.

        On a full disk, nothing is left of it.
        """
        part = self.folder / f"{secrets.token_hex(8)}.part"
        try:
            with _created(part) as file:
                yield file
            self._rename(part, name, durable=durable)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _rename(self, part: Path, name: str, *, durable: bool = True) -> None:
        part.replace(self.folder / name)
        if not durable:
            return
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_segment(file: str) -> Iterator[Any]:  # Any: batches of pyarrow
    """Yield the batches of a segment."""
    with _pyarrow.memory_map(file) as source, _pyarrow.ipc.open_file(source) as reader:
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)


def _created(path: Path) -> Any:  # Any: typeshed's name for the result of fdopen is long
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb")


def _said(columns: ArrowSchema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in columns)
