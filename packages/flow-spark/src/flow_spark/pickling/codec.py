"""The encoding of batches of items between a task and the driver.

Items that Spark itself has made stay Arrow batches. Items that functions have made are pickled,
which is twice as fast as making Arrow columns of them and keeps any type; instances of plain
dataclasses and NamedTuples travel as tuples of their fields, which is several times faster again.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import operator
import pickle
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, cast, final

from flow_spark.channel.receiver import Batch
from flow_spark.channel.wire import Kind
from flow_spark.items.arrow import ArrowSchema, pa
from flow_spark.items.rows import RowReader
from flow_spark.pickling.pickles import ClassReference, find_class

__all__ = ["Decoder", "Sender", "decode", "encode"]

# Any: items of any type.
_Rows = list[tuple[Any, ...]]


class Sender(Protocol):
    """Names classes for the other side, and pickles everything else."""

    @abstractmethod
    def reference(self, cls: type, /) -> ClassReference | None:
        """Return the reference by which `find_class` finds `cls` on the other side.

        The result is None if there is no such reference.
        """

    @abstractmethod
    def dump(self, items: list[Any], /) -> bytes:
        """Pickle a list."""


def encode(items: list[Any], sender: Sender) -> tuple[Kind, bytes]:
    """Pickle a batch of items.

    Raises:
        NotPicklableError: if an item cannot be pickled.
    """
    classes = set(map(type, items))
    if len(classes) == 1:
        cls = classes.pop()
        plan = _plan(cls)
        if plan is not None:
            reference = sender.reference(cls)
            rows = None if reference is None else plan.take_apart(items)
            if rows is not None:
                return Kind.RECORDS, sender.dump([reference, plan.names, rows])
    return Kind.PICKLE, sender.dump(items)


def decode(kind: Kind, payload: bytes | bytearray) -> Iterable[Any]:
    """Return the items of a batch that `encode` made."""
    loaded: list[Any] = pickle.loads(payload)
    return _put_together(*loaded) if kind is Kind.RECORDS else loaded


@final
class Decoder:
    """Turns batches into items, in the driver.

    Args:
        as_: the type of items made from Arrow rows; see `RowReader`.
    """

    __slots__ = ("_as", "_known")

    def __init__(self, as_: object = None) -> None:
        self._as: Final = as_
        self._known: tuple[bytes, ArrowSchema, RowReader] | None = None

    def __call__(self, batch: Batch) -> Iterable[Any]:
        """Return the items of `batch`."""
        if batch.kind is not Kind.ARROW:
            return decode(batch.kind, batch.payload)
        known = self._known
        if known is None or known[0] != batch.schema:
            schema = pa.ipc.read_schema(pa.py_buffer(batch.schema))
            known = self._known = (batch.schema, schema, RowReader(schema, self._as))
        return known[2](pa.ipc.read_record_batch(pa.py_buffer(batch.payload), known[1]))


@final
@dataclasses.dataclass(frozen=True, slots=True)
class _Plan:
    """The way to take instances of a class apart and to rebuild them, without pickling them."""

    names: tuple[str, ...]
    """The names of the fields; empty for a NamedTuple."""
    getter: Callable[[Any], Any]
    in_dict: bool

    def take_apart(self, items: list[Any]) -> _Rows | None:
        if not self.names:
            return list(map(tuple, items))
        if self.in_dict and set(map(len, map(vars, items))) != {len(self.names)}:
            return None  # attributes beyond the fields
        try:
            rows = list(map(self.getter, items))
        except AttributeError:  # a field that was never set
            return None
        return rows if len(self.names) > 1 else [(value,) for value in rows]


@functools.lru_cache(maxsize=256)
def _plan(cls: type) -> _Plan | None:
    if cls.__bases__ == (tuple,) and cls.__dict__.get("__slots__") == ():
        named = isinstance(getattr(cls, "_fields", None), tuple)
        return _Plan((), tuple, False) if named else None
    if not dataclasses.is_dataclass(cls) or not _pickles_plainly(cls):
        return None
    names = tuple(field.name for field in dataclasses.fields(cls))
    # A class with slots that came by value still has a __dict__.
    in_dict = cls.__dictoffset__ != 0
    if not names or (not in_dict and set(_slots(cls)) != set(names)):
        return None
    return _Plan(names, operator.attrgetter(*names), in_dict)


def _pickles_plainly(cls: type) -> bool:
    """Return whether pickling an instance of `cls` would just copy its fields."""
    for name in ("__reduce__", "__reduce_ex__", "__new__"):
        if getattr(cls, name) is not getattr(object, name):
            return False
    if hasattr(cls, "__getnewargs__") or hasattr(cls, "__getnewargs_ex__"):
        return False
    # Frozen dataclasses with slots get these two from the standard library; they copy the fields.
    getstate = getattr(cls, "__getstate__", None)
    if getstate is not object.__getstate__ and getstate.__module__ != "dataclasses":
        return False
    setstate = getattr(cls, "__setstate__", None)
    return setstate is None or setstate.__module__ == "dataclasses"


def _slots(cls: type) -> list[str]:
    names: list[str] = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        names.extend([slots] if isinstance(slots, str) else slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _put_together(reference: ClassReference, names: tuple[str, ...], rows: _Rows) -> Iterable[Any]:
    cls = find_class(reference)
    if not names:
        make: Callable[[type, tuple[Any, ...]], Any] = cast("Any", tuple).__new__
        return map(functools.partial(make, cls), rows)
    items: list[Any] = list(map(object.__new__, itertools.repeat(cls, len(rows))))
    # Like unpickling, without __init__ and for frozen classes too; in columns, so that no Python
    # code runs per item.
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        collections.deque(map(object.__setattr__, items, itertools.repeat(name), column), maxlen=0)
    return items
