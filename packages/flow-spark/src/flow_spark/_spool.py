"""Items of this process on their way to Spark, as files that the cluster reads."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import uuid
from abc import abstractmethod
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from flow_spark.driver.reach import is_loopback
from flow_spark.errors import SparkJobError, SpoolError
from flow_spark.items.arrow import ArrowBatch, ArrowSchema, pa
from flow_spark.items.schema import ItemSchema
from flow_spark.jobs.frames import frame_of, is_connect
from flow_spark.jobs.run import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Spool",
    "local_folder",
    "parquet_writer",
    "private_folder",
    "remove_folder",
    "shares_disk",
    "spooled",
]

IN_MEMORY_BYTES: Final = 32 * 2**20
"""The most bytes that are sent to Spark at once; more go through files."""

WORTH_A_FILE_BYTES: Final = 2**20
"""The most bytes that are sent at once where this process can write files that the cluster reads:
files are soon faster."""

_ROW_GROUP_BYTES: Final = 4 * 2**20
"""The size, in bytes, of the parts of a file that a task reads as a whole: a few large ones would
be shared unevenly."""

_NAME_ONE: Final = (
    "Name one: spool='/shared/folder' (which this process and all executors see under this path), "
    "or spool='hdfs://…', 's3a://…' or the like, where Spark writes them"
)


def shares_disk(session: SparkSession) -> bool:
    """Return whether the executors of `session` are certain to see the files of this process."""
    if is_connect(session):
        return False
    return str(session.conf.get("spark.master", "")).startswith("local")


def _sees_files(session: SparkSession) -> bool:
    """Ask a Spark Connect server on this machine whether it reads the files of this process.

    A server on the loopback address may be a container, or another machine behind a forwarded port.
    """
    near = is_loopback(str(session.client.host))
    if not (near and str(session.conf.get("spark.master", "")).startswith("local")):
        return False
    from pyspark.errors import PySparkException

    folder, text = private_folder(), uuid.uuid4().hex
    try:
        (folder / "seen").write_text(text)
        rows = session.read.text((folder / "seen").as_uri())
        return [row[0] for row in run(session, "spool", rows.collect)] == [text]
    except (PySparkException, SparkJobError):
        return False
    finally:
        remove_folder(folder)


def local_folder(spool: str | os.PathLike[str]) -> Path | None:
    """Return `spool` as a folder of this machine's file systems.

    The result is None if only Spark can write there.
    """
    text = os.fspath(spool)
    parts = urlsplit(text)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    # One letter is a drive of Windows.
    return Path(text) if len(parts.scheme) < 2 else None


def private_folder(inside: Path | None = None) -> Path:
    """Make a folder that only this user can look into; it is removed when the process ends."""
    if inside is not None:
        inside.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="flow-spark-", dir=inside))  # its mode is 0700
    with _lock:
        _left_behind.add(folder)
    return folder


_lock: Final = threading.Lock()
_left_behind: Final[set[Path]] = set()


def remove_folder(folder: Path) -> None:
    """Remove a folder of `private_folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    with _lock:
        _left_behind.discard(folder)


@atexit.register
def _clean_up() -> None:
    for folder in list(_left_behind):
        remove_folder(folder)


def parquet_writer(file: Path, schema: ArrowSchema) -> Any:  # Any: its module has no types
    """Return a writer of a new file that only this user can read; making one costs little."""
    from pyarrow import parquet as untyped

    file.touch(mode=0o600, exist_ok=False)
    return cast("Any", untyped).ParquetWriter(
        str(file), schema, compression="none", use_dictionary=False, write_statistics=False
    )


class _Store(Protocol):
    """A place for batches that do not fit into memory."""

    @abstractmethod
    def write(self, batches: list[ArrowBatch]) -> None:
        """Add some batches."""

    @abstractmethod
    def frame(self) -> DataFrame:
        """Return all batches, as a DataFrame."""

    @abstractmethod
    def remove(self) -> None:
        """Remove all batches."""


@final
class _LocalStore:
    """One Parquet file, so that Spark finds the rows in their order."""

    __slots__ = ("_columns", "_folder", "_session", "_writer")

    def __init__(self, session: SparkSession, columns: ItemSchema, inside: Path | None) -> None:
        self._session: Final = session
        self._columns: Final = columns
        self._folder: Final = private_folder(inside)
        self._writer: Final = parquet_writer(self._folder / "items.parquet", columns.arrow)

    def write(self, batches: list[ArrowBatch]) -> None:
        table = pa.Table.from_batches(batches, schema=self._columns.arrow)
        self._writer.write_table(table)

    def frame(self) -> DataFrame:
        self._writer.close()
        reader = self._session.read.schema(self._columns.spark())
        return reader.parquet(self._folder.absolute().as_uri())

    def remove(self) -> None:
        self._writer.close()
        remove_folder(self._folder)


@final
class _SparkStore:
    """Files that Spark itself writes, on a file system that this process does not reach.

    They are in a folder that only this user can look into, where the file system has such folders.
    A client of Spark Connect can neither make such a folder nor remove it: the files that are left
    then have no rows.
    """

    __slots__ = ("_columns", "_session", "_url")

    def __init__(self, session: SparkSession, columns: ItemSchema, inside: str) -> None:
        self._session: Final = session
        self._columns: Final = columns
        self._url: Final = f"{inside.rstrip('/')}/flow-spark-{uuid.uuid4().hex}"
        if not is_connect(session):
            jvm = cast("Any", session.sparkContext)._jvm  # Any: a proxy of py4j
            files, folder = self._on_its_file_system()
            files.mkdirs(folder, jvm.org.apache.hadoop.fs.permission.FsPermission("700"))

    def write(self, batches: list[ArrowBatch]) -> None:
        table = pa.Table.from_batches(batches, schema=self._columns.arrow)
        part = frame_of(self._session, table, self._columns.spark())
        writer = part.write.mode("append")
        run(self._session, "spool", lambda: writer.parquet(self._url))

    def frame(self) -> DataFrame:
        return self._session.read.schema(self._columns.spark()).parquet(self._url)

    def remove(self) -> None:
        if is_connect(self._session):
            empty = _no_rows(self._session, self._columns)
            empty.write.mode("overwrite").parquet(self._url)
            return
        files, folder = self._on_its_file_system()
        files.delete(folder, True)

    def _on_its_file_system(self) -> tuple[Any, Any]:  # Any: proxies of py4j
        session = cast("Any", self._session)
        folder = session.sparkContext._jvm.org.apache.hadoop.fs.Path(self._url)
        return folder.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()), folder


@final
class Spool:
    """Takes batches, and gives them to Spark as one DataFrame: from memory, or through files.

    Args:
        session: the session of the DataFrame.
        columns: the columns of the batches.
        inside: a folder, or a URL such as ``hdfs://…``, for the files, which the cluster can read.
            None: a temporary folder, if the executors are certain to see the files of this machine;
            otherwise only what fits into memory is accepted.
        way_out: advice to the user, in the `SpoolError` that is raised if files are needed and
            there is no place for them.
    """

    __slots__ = (
        "_columns",
        "_filed",
        "_inside",
        "_limit",
        "_session",
        "_store",
        "_waiting",
        "_way_out",
        "_weight",
    )

    def __init__(
        self,
        session: SparkSession,
        columns: ItemSchema,
        inside: str | os.PathLike[str] | None = None,
        *,
        way_out: str = _NAME_ONE,
    ) -> None:
        self._session: Final = session
        self._columns: Final = columns
        self._inside: Final = inside
        self._way_out: Final = way_out
        self._waiting: list[ArrowBatch] = []
        self._weight = 0
        # A client of Spark Connect has to ask before it writes a file.
        least = IN_MEMORY_BYTES if is_connect(session) else WORTH_A_FILE_BYTES
        self._limit = min(IN_MEMORY_BYTES, least)
        self._filed: bool | None = None
        """True if the batches go to files that this process writes; None while there are so few
        that this is not decided."""
        self._store: _Store | None = None

    def write(self, batch: ArrowBatch) -> None:
        """Add a batch.

        Raises:
            SpoolError: if the batches do not fit into memory, and no place for files is known.
            OSError: if the disk is full, or cannot be written to.
        """
        self._waiting.append(batch)
        self._weight += batch.nbytes
        if self._filed is None and self._weight >= self._limit:
            self._filed = self._has_place()
            # Parts of one size from the first one on, which Spark's tasks share.
            self._limit = _ROW_GROUP_BYTES if self._filed else IN_MEMORY_BYTES
        if self._weight >= self._limit:
            self._flush()

    def frame(self) -> DataFrame:
        """Return all batches as a DataFrame; none may be added afterwards."""
        store = self._store
        if store is None and not self._waiting:
            # A client of Connect cannot send a table without rows.
            return _no_rows(self._session, self._columns)
        if store is None and not self._filed:
            table = pa.Table.from_batches(self._waiting, schema=self._columns.arrow)
            self._waiting = []
            return frame_of(self._session, table, self._columns.spark())
        return self._flush().frame()

    def remove(self) -> None:
        """Remove the files; the DataFrame cannot be read any more."""
        self._waiting = []
        if self._store is not None:
            self._store.remove()

    def _flush(self) -> _Store:
        store = self._store = self._store or self._made()
        waiting, self._waiting, self._weight = self._waiting, [], 0
        if waiting:
            store.write(waiting)
        return store

    def _has_place(self) -> bool:
        """Return whether this process can write files that the cluster reads."""
        if self._inside is not None:
            return local_folder(self._inside) is not None
        return shares_disk(self._session) or (
            is_connect(self._session) and _sees_files(self._session)
        )

    def _made(self) -> _Store:
        inside = self._inside
        if inside is not None:
            folder = local_folder(inside)
            if folder is None:
                return _SparkStore(self._session, self._columns, os.fspath(inside))
            return _LocalStore(self._session, self._columns, folder)
        if self._filed:
            return _LocalStore(self._session, self._columns, _folder_of(self._session))
        raise SpoolError(
            f"this flow has more than {IN_MEMORY_BYTES >> 20} MiB of items, and there is no place "
            f"known where this process can put them and the cluster can read them. {self._way_out}"
        )


def spooled(spool: Spool, batches: Iterable[ArrowBatch]) -> DataFrame:
    """Return a DataFrame of `batches`; after an error, remove the files and cancel the flow."""
    try:
        for batch in batches:
            spool.write(batch)
        return spool.frame()
    except BaseException:
        if isinstance(batches, Generator):
            batches.close()
        spool.remove()
        raise


def _no_rows(session: SparkSession, columns: ItemSchema) -> DataFrame:
    made: DataFrame = cast("Any", session).createDataFrame([], columns.spark())  # Any: as in frames
    return made


def _folder_of(session: SparkSession) -> Path | None:
    """Return the folder for the session's own temporary files.

    They are removed when the session is stopped.
    """
    given = str(session.conf.get("spark.local.dir", "") or "").split(",")[0]
    folder = Path(given)
    return folder if given and folder.is_dir() and not is_connect(session) else None
