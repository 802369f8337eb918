"""Send functions and items to Python workers and back, or say exactly what cannot be sent.

Classes and functions of modules that a worker cannot import (``__main__``, a script, a test) are
pickled by value. What comes back refers to them by id, so that the driver gets instances of its
own classes.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import io
import os
import pickle
import site
import sys
import sysconfig
import threading
import traceback
import types
from collections.abc import Callable, Iterator, MutableMapping
from typing import Final, final

from pyspark import cloudpickle
from pyspark.cloudpickle import cloudpickle as _by_value

from flow_core.stages import Program, Stage

from flow_spark.errors import NotPicklableError, RemoteError, RemoteTracebackError

__all__ = [
    "ClassReference",
    "ItemSender",
    "class_reference",
    "dump_error",
    "dump_items",
    "dumps",
    "find_class",
    "load_error",
]

_PROTOCOL: Final = 5
_DEPTH: Final = 12

_lock: Final = threading.Lock()

ClassReference = str | tuple[str, str]
"""cloudpickle's id of a class that travelled by value, or a module and a qualified name."""

# cloudpickle gives every class that it pickles by value an id, so that it comes back as the class
# that it was; it has no public way to ask for it.
_track: Final[Callable[[type], str]] = _by_value._get_or_create_tracker_id
_tracks: Final[MutableMapping[type, str]] = _by_value._DYNAMIC_CLASS_TRACKER_BY_CLASS
_tracked_classes: Final[MutableMapping[str, type]] = _by_value._DYNAMIC_CLASS_TRACKER_BY_ID


def dumps(obj: object, what: str) -> bytes:
    """Pickle `obj` for a Python worker.

    Args:
        obj: a description with functions in it.
        what: its name in the error message, such as "the stages of this flow".

    Raises:
        NotPicklableError: if that is impossible; the text names what is in the way.
    """
    with _lock:  # which modules go by value is global in cloudpickle
        buffer = io.BytesIO()
        pickler = _ProgramPickler(buffer, protocol=_PROTOCOL)
        try:
            pickler.dump(obj)
        except Exception as error:
            culprit = _find_culprit(obj, what)
            raise NotPicklableError(f"{culprit}.\n{_WAYS_OUT}") from error
        finally:
            pickler.forget()
    return buffer.getvalue()


def dump_items(items: list[object]) -> bytes:
    """Pickle items of the flow for the driver, in a worker.

    Raises:
        NotPicklableError: if an item cannot be pickled.
    """
    try:
        # The plain pickler is much faster, and enough for everything but instances of classes
        # that came by value.
        return pickle.dumps(items, _PROTOCOL)
    except Exception:
        buffer = io.BytesIO()
        try:
            _ItemPickler(buffer, protocol=_PROTOCOL).dump(items)
        except Exception as error:
            raise _bad_item(items) from error
        return buffer.getvalue()


def dump_error(error: BaseException) -> bytes:
    """Pickle an exception with its traceback as text and with its chain, in a worker."""
    text = "".join(traceback.format_exception(error))
    chain: list[tuple[bytes, str, str]] = []
    for link in _chain(error):
        buffer = io.BytesIO()
        try:
            _ItemPickler(buffer, protocol=_PROTOCOL).dump(link)
            data = buffer.getvalue()
        except Exception:
            data = b""
        chain.append((data, f"{type(link).__module__}.{type(link).__qualname__}", _text(link)))
    return pickle.dumps((text, chain), _PROTOCOL)


def load_error(payload: bytes, partition: int, task: int) -> BaseException:
    """The exception that `dump_error` pickled; its first cause holds the remote traceback."""
    text: str
    chain: list[tuple[bytes, str, str]]
    text, chain = pickle.loads(payload)
    links = [_load_link(data, name, message, text) for data, name, message in chain]
    for link, cause in zip(links, links[1:], strict=False):
        link.__cause__ = cause
    links[-1].__cause__ = RemoteTracebackError(partition, task, text)
    return links[0]


def find_class(reference: ClassReference) -> type:
    """The driver's own class for one that a worker refers to."""
    if isinstance(reference, str):
        tracked: object = _tracked_classes.get(reference)
        if isinstance(tracked, type):
            return tracked
        raise pickle.UnpicklingError("an item's class does not exist in the driver any more")
    module, name = reference
    found: object = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    if not isinstance(found, type):
        raise pickle.UnpicklingError(f"{module}.{name} is not a class")
    return found


@functools.lru_cache(maxsize=256)
def class_reference(cls: type) -> ClassReference | None:
    """What `find_class` needs to find `cls` in the driver; None for what only tasks know."""
    tracked: object = _tracks.get(cls)
    if isinstance(tracked, str):
        return tracked
    found: object = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return (cls.__module__, cls.__qualname__) if found is cls else None


_WAYS_OUT: Final = (
    "What runs on Spark is pickled and sent to other processes. Locks, files, sockets, sessions "
    "and the like cannot be: create them inside the function, pass plain values instead, or keep "
    "this step on the driver, behind a boundary such as observe_on."
)


@final
class _ProgramPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """Pickles functions and classes by value where the worker could not import them."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        self._registered: list[types.ModuleType] = []

    def reducer_override(self, obj: object) -> object:
        if isinstance(obj, (type, types.FunctionType)):
            module = sys.modules.get(obj.__module__ or "")
            if module is not None and not _importable(module):
                if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
                    cloudpickle.register_pickle_by_value(module)
                    self._registered.append(module)
        return super().reducer_override(obj)

    def forget(self) -> None:
        """Undo what `reducer_override` has told cloudpickle."""
        for module in self._registered:
            cloudpickle.unregister_pickle_by_value(module)


@final
class ItemSender:
    """Pickles items for tasks, in the driver; collects the classes that tasks have to be given."""

    __slots__ = ("classes",)

    def __init__(self) -> None:
        self.classes: dict[type, str] = {}

    def reference(self, cls: type) -> ClassReference | None:
        """As `class_reference`, for the other direction."""
        module = sys.modules.get(cls.__module__)
        if module is not None and _importable(module):
            return class_reference(cls)
        known = self.classes.get(cls)
        if known is None:
            known = self.classes[cls] = _track(cls)
        return known

    def dump(self, items: list[object]) -> bytes:
        """Pickle `items`.

        Raises:
            NotPicklableError: if an item cannot be pickled.
        """
        buffer = io.BytesIO()
        try:
            _SentPickler(buffer, self).dump(items)
        except Exception as error:
            raise _bad_item(items) from error
        return buffer.getvalue()


@final
class _SentPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    def __init__(self, file: io.BytesIO, sender: ItemSender) -> None:
        super().__init__(file, protocol=_PROTOCOL)
        self._sender = sender

    def reducer_override(self, obj: object) -> object:
        if isinstance(obj, type):
            reference = self._sender.reference(obj)
            if isinstance(reference, str):
                return find_class, (reference,)
            return super().reducer_override(obj)
        if isinstance(obj, types.FunctionType):
            return super().reducer_override(obj)
        return NotImplemented


@final
class _ItemPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """Pickles items; classes that came by value are referred to by name."""

    def reducer_override(self, obj: object) -> object:
        if isinstance(obj, type):
            reference = class_reference(obj)
            if isinstance(reference, str):
                return find_class, (reference,)
            return super().reducer_override(obj)
        if isinstance(obj, types.FunctionType):
            return super().reducer_override(obj)
        return NotImplemented


@functools.lru_cache(maxsize=1024)
def _installed(file: str) -> bool:
    """Whether a module's file belongs to the interpreter's own folders, or to a .pth beside them."""
    return os.path.realpath(file).startswith(_installed_roots())


@functools.lru_cache(maxsize=1)
def _installed_roots() -> tuple[str, ...]:
    folders = {*sysconfig.get_paths().values(), *site.getsitepackages()}
    if site.ENABLE_USER_SITE:
        folders.add(site.getusersitepackages())
    roots = {os.path.realpath(folder) for folder in folders}
    for folder in tuple(roots):
        roots.update(_linked(folder))
    return tuple(root + os.sep for root in roots)


def _linked(folder: str) -> Iterator[str]:
    """The folders that .pth files in `folder` add, as for packages installed in editable form."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".pth")]
    except OSError:
        return
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as lines:
                entries = [line.strip() for line in lines]
        except (OSError, UnicodeDecodeError):
            continue
        for entry in entries:
            if entry and not entry.startswith(("#", "import ", "import\t")):
                yield os.path.realpath(os.path.join(folder, entry))


def _importable(module: types.ModuleType) -> bool:
    if module.__name__ == "__main__":
        return False
    if module.__name__.partition(".")[0].startswith("flow_"):
        return True
    file = getattr(module, "__file__", None)
    return not isinstance(file, str) or _installed(file)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _load_link(data: bytes, name: str, message: str, text: str) -> BaseException:
    try:
        loaded: object = pickle.loads(data)
    except Exception:
        loaded = None
    return loaded if isinstance(loaded, BaseException) else RemoteError(name, message, text)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its text cannot be made)"


def _bad_item(items: list[object]) -> NotPicklableError:
    for index, item in enumerate(items):
        if not _can(item, _ItemPickler):
            return NotPicklableError(
                f"{_find_culprit(item, f'item {index} of a batch, {_show(item)},')}. What leaves "
                "Spark is pickled too: map items to plain values, tuples or dataclasses first."
            )
    return NotPicklableError("these items cannot be pickled together, though each one can")


def _can(obj: object, pickler: type[_ItemPickler | _ProgramPickler]) -> bool:
    one = pickler(io.BytesIO(), protocol=_PROTOCOL)
    try:
        one.dump(obj)
    except Exception:
        return False
    finally:
        if isinstance(one, _ProgramPickler):
            one.forget()
    return True


def _find_culprit(obj: object, what: str) -> str:
    """Sentences that follow the trail from `obj` down to what cannot be pickled."""
    seen = {id(obj)}
    trail: list[str] = []
    holder: object = obj
    while len(trail) < _DEPTH:
        for how, part in _parts(holder):
            if id(part) not in seen and not _can(part, _ProgramPickler):
                break
        else:
            break
        seen.add(id(part))
        if not isinstance(holder, Program) and not type(holder).__module__.startswith("flow_spark"):
            trail.append(f"{_describe(holder)} {how} {_show(part)}")
        holder = part
    if not trail:
        return f"{what} cannot be sent to Spark: {_show(holder)} cannot be pickled"
    return f"{what} cannot be sent to Spark:\n  " + "\n  ".join(trail)


def _parts(holder: object) -> Iterator[tuple[str, object]]:
    """What pickling `holder` would pickle too, each with how it is held."""
    if isinstance(holder, Program):
        for stage in holder.stages:
            yield "runs", stage
    elif isinstance(holder, Stage):
        for name, value in zip(holder.template.params, holder.args, strict=True):
            yield f"has as {name!r}", value
    elif isinstance(holder, types.FunctionType):
        for name, cell in zip(holder.__code__.co_freevars, holder.__closure__ or (), strict=True):
            try:
                yield f"captures the variable {name!r},", cell.cell_contents
            except ValueError:  # an empty cell
                continue
        for name in _global_names(holder.__code__):
            if name in holder.__globals__:
                yield f"uses the global {name!r},", holder.__globals__[name]
        for value in holder.__defaults__ or ():
            yield "has the default", value
        for name, value in (holder.__kwdefaults__ or {}).items():
            yield f"has the default {name!r},", value
    elif isinstance(holder, types.MethodType):
        yield "is a method of", holder.__self__
        yield "is", holder.__func__
    elif isinstance(holder, functools.partial):
        yield "calls", holder.func
        for value in holder.args:
            yield "binds", value
        for name, value in holder.keywords.items():
            yield f"binds {name!r},", value
    elif isinstance(holder, dict):
        for key, value in holder.items():
            yield f"holds under {key!r}", value
    elif isinstance(holder, (list, tuple, set, frozenset)):
        for value in holder:
            yield "holds", value
    elif not isinstance(holder, (type, types.ModuleType)):
        names = [field.name for field in dataclasses.fields(holder)] if _is_record(holder) else []
        for cls in type(holder).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            names.extend([slots] if isinstance(slots, str) else slots)
        names.extend(getattr(holder, "__dict__", {}))
        for name in dict.fromkeys(names):
            if hasattr(holder, name):
                yield f"has in {name!r}", getattr(holder, name)


def _is_record(obj: object) -> bool:
    return dataclasses.is_dataclass(obj) and not isinstance(obj, type)


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _describe(obj: object) -> str:
    if isinstance(obj, Stage):
        where = f", assembled at {obj.assembled_at}," if obj.assembled_at else ""
        return f"the stage {obj!r}{where}"
    if isinstance(obj, types.FunctionType):
        file = os.path.basename(obj.__code__.co_filename)
        name = "the lambda" if obj.__name__ == "<lambda>" else f"the function {obj.__name__!r}"
        return f"{name} ({file}:{obj.__code__.co_firstlineno})"
    return f"the {type(obj).__qualname__}"


def _show(obj: object) -> str:
    if isinstance(obj, types.FunctionType):
        return _describe(obj)
    kind = f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")
    return f"a {kind}"
