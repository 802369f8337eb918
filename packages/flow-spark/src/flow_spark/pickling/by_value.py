"""The used part of the cloudpickle inside PySpark, with types; cloudpickle itself has none."""

from __future__ import annotations

import pickle
from collections.abc import Callable, MutableMapping
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from pyspark.cloudpickle import cloudpickle

__all__ = [
    "ByValuePickler",
    "by_value",
    "class_id",
    "class_ids",
    "classes_by_id",
    "is_sent_by_reference",
    "no_longer_by_value",
    "registered_by_value",
]

_untyped: Final[Any] = cloudpickle  # Any: the module has no types

if TYPE_CHECKING:

    class ByValuePickler(pickle.Pickler):
        """Pickles functions and classes of some modules by value, and the rest by reference."""

        def reducer_override(self, obj: Any) -> Any:  # Any: as in pickle.Pickler
            """Return how `obj` is pickled; NotImplemented for the usual way."""

else:
    ByValuePickler = cloudpickle.Pickler

by_value: Final[Callable[[ModuleType], None]] = _untyped.register_pickle_by_value
no_longer_by_value: Final[Callable[[ModuleType], None]] = _untyped.unregister_pickle_by_value
registered_by_value: Final[Callable[[], set[str]]] = _untyped.list_registry_pickle_by_value

# True for a function that a worker finds in its module, which it imports.
is_sent_by_reference: Final[Callable[[FunctionType], bool]] = _untyped._should_pickle_by_reference

# cloudpickle gives every class that it pickles by value an id, so that it comes back as the same
# class; it has no public way to ask for it.
class_id: Final[Callable[[type], str]] = _untyped._get_or_create_tracker_id
class_ids: Final[MutableMapping[type, str]] = _untyped._DYNAMIC_CLASS_TRACKER_BY_CLASS
classes_by_id: Final[MutableMapping[str, type]] = _untyped._DYNAMIC_CLASS_TRACKER_BY_ID
