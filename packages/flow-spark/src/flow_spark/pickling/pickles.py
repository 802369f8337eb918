"""The pickling of functions and items for Python workers, and of items for the driver.

Classes and functions of modules that a worker cannot import (``__main__``, a script, a test) are
pickled by value; so is such a module itself, where an object refers to it. Results name these
classes by an id: the driver makes instances of the classes that it has, not of copies.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import pickle
import sys
import threading
import types
import typing
from typing import Any, Final, final

from flow_spark.errors import NotPicklableError
from flow_spark.pickling.by_value import (
    ByValuePickler,
    by_value,
    class_id,
    class_ids,
    classes_by_id,
    no_longer_by_value,
    registered_by_value,
)
from flow_spark.pickling.culprit import culprit
from flow_spark.pickling.modules import importable

__all__ = ["ClassReference", "ItemSender", "TaskSender", "class_of_one_run", "dumps", "find_class"]

_PROTOCOL: Final = 5

_WAYS_OUT: Final = (
    "What runs on Spark is pickled and sent to other processes. Locks, files, sockets, sessions "
    "and the like cannot be: create them inside the function, pass plain values instead, or keep "
    "this step in this process, behind a boundary such as observe_on."
)

_OF_IMPORT: Final = frozenset({"__builtins__", "__cached__", "__loader__", "__spec__"})
"""The names that the import system adds to a module."""

ClassReference = str | tuple[str, str]
"""cloudpickle's id of a class that travelled by value, or a module and a qualified name."""

_registry: Final = threading.Lock()
"""Guards cloudpickle's set of modules that are pickled by value, which is global."""


def dumps(obj: object, what: str) -> bytes:
    """Pickle `obj` for a Python worker.

    Args:
        obj: a description with functions in it.
        what: the name of the object in the error message, such as "the stages of this flow".

    Raises:
        NotPicklableError: if `obj` cannot be pickled; the text names the obstacle.
    """
    try:
        return _dump_program(obj)
    except Exception as error:
        text = culprit(obj, what, _dump_program)
        raise NotPicklableError(f"{text}.\n{_WAYS_OUT}") from error


def loads_here(pickled: bytes) -> Any:  # Any: the type of what was pickled
    """Unpickle the result of `dumps` in this process instead of a Python worker."""
    if isinstance(pickled, _WithBroadcasts):
        return _Here(io.BytesIO(pickled), pickled.broadcasts).load()
    return pickle.loads(pickled)


@final
class _WithBroadcasts(bytes):
    """A pickle that refers to broadcast variables of Spark.

    With a task, Spark sends the broadcast variables that are pickled while it pickles the task, in
    the same thread. The bytes here were pickled earlier, perhaps in another thread; so pickling
    this object pickles the variables again.
    """

    broadcasts: tuple[Any, ...]  # Any: PySpark's Broadcast

    def __reduce__(self) -> tuple[Any, ...]:  # Any: as in pickle
        return _without, (bytes(self), self.broadcasts)


def _without(pickled: bytes, _: object) -> bytes:
    """Return `pickled`, which was sent to a worker together with its broadcast variables."""
    return pickled


@final
class _Here(pickle.Unpickler):
    """Finds broadcast variables in this process, where they are; a worker gets them sent."""

    def __init__(self, file: io.BytesIO, broadcasts: tuple[Any, ...]) -> None:
        super().__init__(file)
        self._found: Final = {one._jbroadcast.id(): one for one in broadcasts}

    def find_class(self, module: str, name: str, /) -> Any:  # Any: as in pickle.Unpickler
        if name == "_from_id" and module.startswith("pyspark"):
            return self._found.__getitem__
        return super().find_class(module, name)


def find_class(reference: ClassReference) -> type:
    """Return the class that the other side has referred to."""
    if isinstance(reference, str):
        tracked = classes_by_id.get(reference)
        if tracked is None:
            raise pickle.UnpicklingError("an item's class does not exist here (any more)")
        return tracked
    module, name = reference
    found = _at(importlib.import_module(module), name)
    if not isinstance(found, type):
        raise pickle.UnpicklingError(f"{module}.{name} is not a class")
    return found


@final
class TaskSender:
    """Pickles items in a task, for the driver."""

    __slots__ = ()

    def reference(self, cls: type, /) -> ClassReference | None:
        """Return the reference by which `find_class` finds `cls` in the driver.

        The result is None if only tasks know `cls`.
        """
        return _reference_from_task(cls)

    def dump(self, items: list[Any], /) -> bytes:  # Any: items of any type
        """Pickle `items` of any type.

        Raises:
            NotPicklableError: if one of the items cannot be pickled.
        """
        try:
            # The plain pickler is much faster, and enough for everything but instances of classes
            # that came by value.
            return pickle.dumps(items, _PROTOCOL)
        except Exception:
            return _dump_items(items, self)


@final
class ItemSender:
    """Pickles items in the driver, for tasks; collects the classes that the tasks need."""

    __slots__ = ("classes",)

    def __init__(self) -> None:
        self.classes: dict[type, str] = {}

    def reference(self, cls: type, /) -> ClassReference | None:
        """Return the reference by which `find_class` finds `cls` in a task that has `classes`."""
        module = sys.modules.get(cls.__module__)
        if module is not None and importable(module):
            return _named(cls)
        known = self.classes.get(cls)
        if known is None:
            known = self.classes[cls] = class_id(cls)
        return known

    def dump(self, items: list[Any], /) -> bytes:  # Any: items of any type
        """Pickle `items` of any type.

        Raises:
            NotPicklableError: if one of the items cannot be pickled.
        """
        return _dump_items(items, self)


def class_of_one_run(obj: object) -> type | None:
    """Return a class in `obj` that a process of another run of the program would not find.

    A task calls this.

    Such classes were sent by value, and keep their id only in one run of the program.

    Args:
        obj: an object that cannot be pickled plainly here.
    """
    sender = _Noting()
    with contextlib.suppress(Exception):
        _ItemPickler(io.BytesIO(), sender).dump(obj)
    return sender.found


@final
class _Noting:
    """Notes the first class that is sent by its id, or that has no name to be found by."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: type | None = None

    def reference(self, cls: type, /) -> ClassReference | None:
        reference = _reference_from_task(cls)
        if self.found is None and not isinstance(reference, tuple):
            self.found = cls
        return reference


def _dump_program(obj: object) -> bytes:
    with _registry:
        buffer = io.BytesIO()
        pickler = _ProgramPickler(buffer)
        try:
            pickler.dump(obj)
        finally:
            pickler.forget()
    if not pickler.broadcasts:
        return buffer.getvalue()
    pickled = _WithBroadcasts(buffer.getvalue())
    pickled.broadcasts = tuple(pickler.broadcasts)
    return pickled


@final
class _ProgramPickler(ByValuePickler):
    """Pickles functions and classes by value where the worker could not import them."""

    def __init__(
        self, file: io.BytesIO, sendable: dict[types.ModuleType, bool] | None = None
    ) -> None:
        super().__init__(file, protocol=_PROTOCOL)
        self._registered: list[types.ModuleType] = []
        self.broadcasts: list[Any] = []  # Any: PySpark's Broadcast
        self._sendable: Final = {} if sendable is None else sendable

    def reducer_override(self, obj: Any) -> Any:  # Any: as in pickle.Pickler
        if isinstance(obj, (type, types.FunctionType)):
            module = sys.modules.get(obj.__module__ or "")
            known = registered_by_value()
            if module is not None and not importable(module) and module.__name__ not in known:
                by_value(module)
                self._registered.append(module)
        elif isinstance(obj, types.ModuleType) and not importable(obj) and self._can_send(obj):
            # Filled even if it is there already: modules refer to each other, and to themselves.
            return types.ModuleType, (obj.__name__,), _contents(obj), None, None, _fill
        elif type(obj).__name__ == "Broadcast" and type(obj).__module__.startswith("pyspark"):
            self.broadcasts.append(obj)
        elif isinstance(obj, _BY_NAME) and not _is_found(obj):
            return _in_parts(obj)
        _refuse_session(obj)
        return super().reducer_override(obj)

    def _can_send(self, module: types.ModuleType) -> bool:
        """Return whether everything in a module can be pickled.

        Otherwise the module is sent by its name.
        """
        known = self._sendable.get(module)
        if known is None:
            self._sendable[module] = True  # for modules that refer to it
            trial = _ProgramPickler(io.BytesIO(), self._sendable)
            try:
                trial.dump(_contents(module))
            except Exception:
                known = False
            else:
                known = True
            finally:
                trial.forget()
            self._sendable[module] = known
        return known

    def forget(self) -> None:
        """Undo what `reducer_override` has set in cloudpickle."""
        for module in self._registered:
            no_longer_by_value(module)


_Cached: Final = type(functools.lru_cache(len))
_Alias: Final[Any] = getattr(typing, "TypeAliasType", None)  # Any: it came with Python 3.12
_BY_NAME: Final = (_Cached, typing.NewType, *filter(None, [_Alias]))
"""Objects that cloudpickle leaves to pickle, which sends only a module and a name."""


def _is_found(obj: Any) -> bool:  # Any: one of those
    """Return whether a worker finds `obj` by its name."""
    module = sys.modules.get(obj.__module__ or "")
    name: str = getattr(obj, "__qualname__", obj.__name__)
    try:
        return module is not None and importable(module) and _at(module, name) is obj
    except AttributeError:
        return False


def _in_parts(obj: Any) -> tuple[Any, ...]:  # Any: as in pickle
    """Return how `obj` is made again in a worker, where a cache starts empty."""
    if isinstance(obj, _Cached):
        return _cached, (obj.__wrapped__, obj.cache_parameters())
    if isinstance(obj, typing.NewType):
        return typing.NewType, (obj.__name__, obj.__supertype__), {"__module__": obj.__module__}
    return _alias, (obj.__name__, obj.__value__, obj.__type_params__)


def _cached(function: Any, parameters: dict[str, Any]) -> Any:  # Any: of any type
    return functools.lru_cache(**parameters)(function)


def _alias(name: str, value: Any, parameters: tuple[Any, ...]) -> object:  # Any: types
    made: object = _Alias(name, value, type_params=parameters)
    return made


def _at(module: types.ModuleType, name: str) -> object:
    return functools.reduce(getattr, name.split("."), module)


def _contents(module: types.ModuleType) -> dict[str, Any]:  # Any: globals of any type
    return {name: value for name, value in vars(module).items() if name not in _OF_IMPORT}


def _fill(module: types.ModuleType, contents: dict[str, Any]) -> None:
    """Fill a module that came to a worker by value with its contents."""
    vars(module).update(contents)


def _dump_items(items: list[Any], sender: TaskSender | ItemSender) -> bytes:
    buffer = io.BytesIO()
    try:
        _ItemPickler(buffer, sender).dump(items)
    except Exception as error:
        raise _bad_item(items, sender) from error
    return buffer.getvalue()


@final
class _ItemPickler(ByValuePickler):
    """Pickles items; classes that a plain pickle could not name are referred to by id."""

    def __init__(self, file: io.BytesIO, sender: TaskSender | ItemSender | _Noting) -> None:
        super().__init__(file, protocol=_PROTOCOL)
        self._sender: Final = sender

    def reducer_override(self, obj: Any) -> Any:  # Any: as in pickle.Pickler
        if isinstance(obj, type):
            reference = self._sender.reference(obj)
            if isinstance(reference, str):
                return find_class, (reference,)
            return super().reducer_override(obj)
        if isinstance(obj, types.FunctionType):
            return super().reducer_override(obj)
        _refuse_session(obj)
        return NotImplemented


def _refuse_session(obj: object) -> None:
    """Refuse a session, and so all objects that refer to one: DataFrames, readers, flows.

    A session of Spark Connect can be pickled, but fails where it is unpickled.
    """
    kind = type(obj)
    if kind.__name__ == "SparkSession" and kind.__module__.startswith("pyspark."):
        raise pickle.PicklingError("a session of Spark is of use in the process that opened it")


@functools.lru_cache(maxsize=256)
def _reference_from_task(cls: type) -> ClassReference | None:
    return class_ids.get(cls) or _named(cls)


def _named(cls: type) -> ClassReference | None:
    """Return the module and name of `cls`, if it can be found by them; otherwise None."""
    found: object = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return (cls.__module__, cls.__qualname__) if found is cls else None


def _bad_item(items: list[Any], sender: TaskSender | ItemSender) -> NotPicklableError:
    def dump(obj: object) -> bytes:
        buffer = io.BytesIO()
        _ItemPickler(buffer, sender).dump(obj)
        return buffer.getvalue()

    for index, item in enumerate(items):
        try:
            dump(item)
        except Exception:
            what = f"item {index} of a batch, a {type(item).__qualname__},"
            return NotPicklableError(
                f"{culprit(item, what, dump)}.\nItems that go to Spark or come from there are "
                "pickled: map them to plain values, tuples or dataclasses before."
            )
    return NotPicklableError("these items cannot be pickled together, though each one can")
