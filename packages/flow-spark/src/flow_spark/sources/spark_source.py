"""A source whose items are on a cluster."""

from __future__ import annotations

from typing import Any, Final, TypeVar, final

from typing_extensions import TypeIs, override

from flow_core.errors import FlowError
from flow_core.flow import Flow
from flow_core.protocols import Publisher, Subscriber
from flow_core.stages import Program, Stage
from flow_core.structure import AbsorbingSource, Place, source_of, stages_of
from flow_spark.errors import SessionConflictError, UnsupportedTypeError
from flow_spark.jobs.frames import plan_of
from flow_spark.jobs.iterated import iterated
from flow_spark.jobs.job import lowered_all
from flow_spark.jobs.lowering import Split, effect_in, refuse_behind, split
from flow_spark.jobs.origin import FrameOrigin, FrameRows, Origin
from flow_spark.jobs.publisher import JobSource
from flow_spark.jobs.shuffling import ShuffledOrigin
from flow_spark.jobs.stream_origin import StreamOrigin
from flow_spark.jobs.united import UnitedOrigin
from flow_spark.platforms import check_platform

__all__ = ["SparkSource", "is_on_spark", "united"]

T = TypeVar("T")


@final
class SparkSource(AbsorbingSource[T]):
    """Items on a cluster, with the stages behind them compiled into one ``mapInArrow``.

    Args:
        origin: the rows.
    """

    __slots__ = ("origin",)

    def __init__(self, origin: Origin) -> None:
        check_platform()
        self.origin: Final = origin

    @override
    def absorb(
        self, stages: tuple[Stage[Any, Any], ...]
    ) -> tuple[Publisher[Any], tuple[Stage[Any, Any], ...]]:  # Any: as in AbsorbingSource
        origin, parts = self.lowered(stages, stays=False)
        runs, local = iterated(origin, parts)
        return JobSource[Any](runs, Program(parts.remote)), local

    @override
    def check(self, stages: tuple[Stage[Any, Any], ...], behind: str | None = None) -> None:
        """Refuse stages that depend on an order if there is none."""
        if self.origin.ordered:
            return
        if behind is None:
            self.split(stages)
        else:
            refuse_behind(stages, behind, self.origin.ways_out)

    @override
    def united(
        self, flows: tuple[Publisher[Any], ...]
    ) -> Flow[Any] | None:  # Any: as in AbsorbingSource
        """Return the result of `union`, if it applies."""
        found = [flow for flow in flows if isinstance(flow, Flow)]
        if len(found) < len(flows) or not all(is_on_spark(source_of(flow)) for flow in found):
            return None
        try:
            return united(tuple(found))
        except FlowError:
            return None

    @override
    def places(self, stages: tuple[Stage[Any, Any], ...]) -> tuple[Place, ...]:
        steps = self._steps(stages, stays=False)
        return tuple(
            Place(f"{_runner(origin, parts)} over {origin!r}{_why_all(origin)}", remote)
            for origin, parts in steps
            if (remote := _combine(origin) + parts.remote)
        )

    @override
    def plan(self, stages: tuple[Stage[Any, Any], ...]) -> str | None:
        """Return Spark's physical plan."""
        origin, parts = self.lowered(stages, stays=False)
        if not origin.lazy:
            return "Spark plans it when the items are there: they are sent when it runs"
        opened = origin.kept()
        if _is_direct(origin, parts):
            return plan_of(opened.df).strip()
        return plan_of(lowered_all(opened, Program[Any, Any](parts.remote), None)).strip()

    def lowered(self, stages: tuple[Stage[Any, Any], ...], *, stays: bool) -> tuple[Origin, Split]:
        """Return the rows, with the shuffles that join the items of a key, and what runs where.

        Args:
            stages: the stages that follow.
            stays: whether the result stays on the cluster. If not, it is shuffled only where
                partitions send nothing before their end anyway: otherwise this process would wait
                for all of them.

        Raises:
            NotPicklableError: if the stages before a shuffle cannot be sent to the cluster.
            OrderedOperatorError: if a stage depends on an order, and there is none.
        """
        steps = self._steps(stages, stays=stays)
        origin, _ = steps[0]
        if isinstance(origin, FrameRows):
            origin.warn_of_wide_rows()
        return steps[-1]

    def _steps(
        self, stages: tuple[Stage[Any, Any], ...], *, stays: bool
    ) -> list[tuple[Origin, Split]]:
        """Yield the same as `lowered`, with everything before each shuffle."""
        origin, parts = self.origin, self.split(stages)
        if isinstance(origin, FrameRows):
            origin = origin.narrowed(parts.remote)
        steps = [(origin, parts)]
        endless = isinstance(origin, StreamOrigin)
        while parts.by is not None and not endless and (stays or parts.waits):
            combine, rest = parts.local[: parts.combine], parts.local[parts.combine :]
            origin = ShuffledOrigin(origin, Program(parts.remote), Program(combine), parts.by)
            parts = split(rest, ordered=False, ways_out=origin.ways_out)
            steps.append((origin, parts))
        return steps

    def split(self, stages: tuple[Stage[Any, Any], ...]) -> Split:
        """Return which of `stages` run where the rows are.

        Raises:
            OrderedOperatorError: if one of them depends on an order, and there is none.
        """
        return split(stages, ordered=self.origin.ordered, ways_out=self.origin.ways_out)

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        JobSource[T](self.origin, Program(())).subscribe(subscriber)

    def __repr__(self) -> str:
        return repr(self.origin)


def _is_direct(origin: Origin, parts: Split) -> bool:
    """Return whether Spark computes the results of the stages by itself."""
    program = Program[Any, Any](parts.remote)
    return isinstance(origin, FrameOrigin) and origin.direct(program) is not None


def _combine(origin: Origin) -> tuple[Stage[Any, Any], ...]:
    """Return the stages that combine what a shuffle brings together."""
    return origin.combine.stages if isinstance(origin, ShuffledOrigin) else ()


def _why_all(origin: Origin) -> str:
    """Return why columns and rows are read that stages may not need, for `flow explain`."""
    if not isinstance(origin, FrameRows):
        return ""
    reasons = {"columns": origin.part.why_all_columns, "rows": origin.part.why_all_rows}
    return "".join(
        f"; it reads all {what}, since {why}" for what, why in reasons.items() if why is not None
    )


def _runner(origin: Origin, parts: Split) -> str:
    return "Spark itself" if _is_direct(origin, parts) else "one mapInArrow"


def is_on_spark(source: object) -> TypeIs[SparkSource[Any]]:  # Any: items of any type
    """Return whether the items of `source` are on a cluster."""
    return isinstance(source, SparkSource)


def united(flows: tuple[Flow[T], ...]) -> Flow[T]:
    """Unite flows: the code of `flow_spark.union`."""
    if not flows:
        raise TypeError("union() takes at least one flow")
    branches = tuple(map(_branch, flows))
    if any(origin.session is not branches[0][0].session for origin, _ in branches):
        raise SessionConflictError("union() takes flows of one session, and these are of several")
    return Flow(SparkSource[T](UnitedOrigin(branches)))


def _branch(flow: Flow[Any]) -> tuple[Origin, Split]:
    source = source_of(flow) if isinstance(flow, Flow) else None
    if not is_on_spark(source):
        raise TypeError(
            f"union() takes flows on Spark, not {flow!r}: move it there by .on_spark(session)"
            ", or use merge of flow-ops, which unites flows in this process"
        )
    if isinstance(source.origin, StreamOrigin):
        raise UnsupportedTypeError(
            "union() takes flows that end, and a stream does not: unite the DataFrames, "
            "from_stream(df.union(other))"
        )
    origin, parts = source.lowered(stages_of(flow), stays=True)
    effect = effect_in(parts)
    if effect is not None:
        raise UnsupportedTypeError(
            f"{effect!r} is meant for this process, and what is united stays on Spark: put it "
            "behind union()"
        )
    return origin, parts
