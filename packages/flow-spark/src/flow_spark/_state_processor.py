"""The processor in the tasks of a stream with states, for Spark's ``transformWithState``."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from typing_extensions import override

from flow_spark.jobs.task import packed
from flow_spark.pickling.artifacts import find_modules_of_session
from flow_spark.pickling.chunks import chunks
from flow_spark.pickling.pickles import TaskSender, dumps

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

    from flow_spark.streams.scan_by_key import KeyStates

__all__ = ["StateProcessor"]

_Kept = dict[Any, tuple[Any, int]]  # Any: keys and states of any type


@final
class StateProcessor(StatefulProcessor):
    """Keeps the states of a bucket, the few keys with the same hash, in one value.

    Args:
        states: the functions and the seed, pickled with what they need.
    """

    def __init__(self, states: bytes) -> None:
        self._pickled: Final = states
        self._states: KeyStates | None = None
        self._needs: object = None
        self._handle: StatefulProcessorHandle | None = None
        self._value: Any = None  # a ValueState, whose tuples have no types

    def __reduce__(self) -> tuple[type[StateProcessor], tuple[bytes]]:
        """Pickle this object by its argument."""
        return StateProcessor, (self._pickled,)

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        # A process of Spark's calls this, too, to ask for the names of values; it has no modules.
        self._handle = handle
        self._value = handle.getValueState("states", "payload binary")

    @override
    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,
    ) -> Iterator[Row]:
        states = self._loaded()
        pairs: list[tuple[Any, Any]] = []
        checksum = zlib.crc32(repr(key).encode())
        for row in rows:
            checksum = zlib.crc32(row.payload, checksum)
            pairs += pickle.loads(row.payload)
        kept = self._kept()
        now_ms = timerValues.getCurrentProcessingTimeInMs() if states.timeout_ms else 0
        # A retry that reads them in another order would resume with other states.
        yield from _rows(states.take(kept, pairs, now_ms), checksum)
        self._keep(kept)
        handle = self._handle
        if states.timeout_ms and handle is not None and next(handle.listTimers(), None) is None:
            handle.registerTimer(now_ms + states.timeout_ms)

    @override
    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: TimerValues,
        expiredTimerInfo: ExpiredTimerInfo,
    ) -> Iterator[Row]:
        """Remove the keys that have had no items for too long."""
        states = self._loaded()
        kept = self._kept()
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        yield from _rows(states.expire(kept, now_ms))
        self._keep(kept)
        if kept and self._handle is not None:
            self._handle.registerTimer(min(ends for _, ends in kept.values()))

    @override
    def close(self) -> None:
        pass

    def _loaded(self) -> KeyStates:
        if self._states is None:
            find_modules_of_session()
            # Both are kept: classes that came by value are freed as soon as there is no reference
            # to them.
            loaded: tuple[KeyStates, object] = pickle.loads(self._pickled)
            self._states, self._needs = loaded
        return self._states

    def _kept(self) -> _Kept:
        found = self._value.get()
        kept: _Kept = {} if found is None else pickle.loads(bytes(found[0]))
        return kept

    def _keep(self, kept: _Kept) -> None:
        if kept:
            self._value.update((_dump_kept(kept),))
        else:
            self._value.clear()


def _dump_kept(kept: _Kept) -> bytes:
    """Pickle by value if needed: a state outlives this process, and the ids of classes in it."""
    try:
        return pickle.dumps(kept, 5)
    except Exception:
        return dumps(kept, "a state of scan_by_key()")


def _rows(items: Iterator[tuple[Any, Any]], *checksums: int) -> Iterator[Row]:
    """Yield chunks of `items`.

    The first chunk has the checksums of what was read for these items.
    """
    for chunk in chunks(items, TaskSender()):
        read = packed(checksums)
        yield Row(kind=int(chunk.kind), payload=bytes(chunk.payload), checksums=read)
        checksums = ()
