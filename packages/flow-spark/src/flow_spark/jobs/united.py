"""Rows of several origins, read by one job."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from typing_extensions import override

from flow_core.stages import Program, Stage
from flow_spark.items.arrow import ArrowBatch, pa
from flow_spark.items.rows import RowReader
from flow_spark.jobs.frames import frame_of
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.job import PushedJob, lowered_all
from flow_spark.jobs.lowering import Split, has_an_end, treats_items_alone
from flow_spark.jobs.one_place import in_one_place
from flow_spark.jobs.origin import Job, Opened, Origin
from flow_spark.jobs.task import (
    CHUNK_SCHEMA,
    ChunkReader,
    LastReader,
    Reader,
    RemoteProgram,
    last_row,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["UnitedOrigin", "in_their_order"]

_AnyProgram = Program[Any, Any]  # Any: only its stages know the types


@final
@dataclass(frozen=True, slots=True)
class StagedReader(Reader):
    """Converts batches to items, and runs stages that treat each item by itself.

    Attributes:
        reader: converts the batches to items.
        program: the stages; they keep no state from batch to batch.
    """

    reader: Reader
    program: _AnyProgram

    @override
    def __call__(self, batch: ArrowBatch, /) -> Iterable[Any]:
        return self.program.iterate(iter(self.reader(batch)))

    @override
    def item(self, batch: ArrowBatch, index: int, /) -> object:
        """Return the item; the stages do not run again."""
        raise StopIteration

    @override
    def checksums(self, batch: ArrowBatch, /) -> Iterable[int]:
        return self.reader.checksums(batch)


def in_their_order(
    opened: Opened, stages: tuple[Stage[Any, Any], ...], session: SparkSession
) -> Opened:
    """Return the results of stages for the rows of the only partition.

    This holds also if there are no rows, and so no task.

    Args:
        opened: the rows.
        stages: the stages, one of which may emit items at the end.
        session: the session of the rows.
    """
    program = _AnyProgram(stages)
    last = frame_of(session, pa.Table.from_batches([last_row()], schema=CHUNK_SCHEMA))
    rows = lowered_all(opened, program, None, tells=True).union(last).coalesce(1)
    return Opened(rows, LastReader(program, (program, *opened.readers)))


@final
class UnitedOrigin(Origin):
    """The results of several origins, each with its own stages, in no order.

    Catalyst unites rows of DataFrames that are read alike. Other origins stay as they are, and the
    stages after each origin run in one ``mapInArrow``: only their results are united.

    Args:
        branches: the origins, each with the stages after it.
    """

    __slots__ = ("_branches",)

    def __init__(self, branches: tuple[tuple[Origin, Split], ...]) -> None:
        self._branches: Final = branches

    @property
    @override
    def session(self) -> SparkSession:
        return self._branches[0][0].session

    @override
    def repeats(self) -> bool:
        return all(origin.repeats() for origin, _ in self._branches)

    @property
    @override
    def ordered(self) -> bool:
        return False

    @property
    @override
    def as_(self) -> object:
        """The common type of the items of all branches; None if they differ."""
        kinds = [origin.as_ for origin, _ in self._branches]
        return kinds[0] if all(kind == kinds[0] for kind in kinds) else None

    @property
    @override
    def item_type(self) -> object:
        """The common type of the results of all branches; None if they differ."""
        kinds = [origin.item_type for origin, _ in self._branches]
        same = all(kind == kinds[0] for kind in kinds)
        return kinds[0] if same and not any(self._stages()) else None

    @property
    @override
    def ways_out(self) -> str:
        return "sort() puts what there is in order"

    @property
    @override
    def lazy(self) -> bool:
        return all(origin.lazy for origin, _ in self._branches)

    @contextmanager
    @override
    def opened(self, stop: Stop, *, resumed: bool = False) -> Generator[Opened | None, None, None]:
        with ExitStack() as stack:
            found: list[Opened] = []
            for origin, parts in self._branches:
                opened = stack.enter_context(origin.opened(stop, resumed=resumed))
                if opened is None:
                    yield None
                    return
                found += _behind(opened, parts, origin)
            yield _together(found)

    @override
    def kept(self) -> Opened:
        return _together(
            [
                each
                for origin, parts in self._branches
                for each in _behind(origin.kept(), parts, origin)
            ]
        )

    @override
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        kinds = [origin.as_ for origin, _ in self._branches]
        alike = all(kind == kinds[0] for kind in kinds) and not any(self._stages())
        # The driver converts rows that no stage has read to items, but with one reader only.
        return PushedJob(self, program if program or alike else _AnyProgram(()), name)

    def _stages(self) -> Iterable[Stage[Any, Any]]:  # Any: as in Split
        return itertools.chain.from_iterable(parts.remote for _, parts in self._branches)

    def __repr__(self) -> str:
        def told(origin: Origin, parts: Split) -> str:
            return " | ".join([repr(origin), *(stage.name for stage in parts.remote)])

        return f"union({', '.join(told(*branch) for branch in self._branches)})"


def _behind(opened: Opened, parts: Split, origin: Origin) -> list[Opened]:
    """Return the results of the stages of a branch for its rows."""
    rows, session = [Opened(opened.df, opened.reader), *opened.others], origin.session
    if origin.ordered and has_an_end(parts.remote + parts.local):
        return [in_their_order(opened, parts.remote + parts.local, session)]
    if parts.local:
        return [in_one_place(opened, parts, session)]
    if not parts.remote:
        return rows
    program = _AnyProgram(parts.remote)
    if all(treats_items_alone(stage.template) for stage in parts.remote):
        return [Opened(each.df, StagedReader(each.reader, program)) for each in rows]
    df = lowered_all(opened, program, None)
    return [Opened(df, ChunkReader((program, *opened.readers)))]


def _together(found: list[Opened]) -> Opened:
    first, *others = found
    if all(_alike(first.reader, other.reader) for other in others):
        df = functools.reduce(lambda left, right: left.union(right), (each.df for each in found))
        return Opened(df, first.reader)
    return Opened(first.df, first.reader, tuple(others))


def _alike(left: Reader, right: Reader) -> bool:
    return isinstance(left, RowReader) and isinstance(right, RowReader) and left.is_like(right)
