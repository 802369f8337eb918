"""The virtual machine, and what the rest of this package uses of JPype, with types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, TypeVar

import jpype

__all__ = [
    "Java",
    "detach",
    "detaching",
    "implements",
    "is_java",
    "is_java_error",
    "java_class",
    "override",
    "start",
]

Java = Any  # an object or a class of Java's
_jpype: Any = jpype  # Any: it has no types to check against
C = TypeVar("C")
M = TypeVar("M", bound=Callable[..., object])


def start(classpath: Sequence[str]) -> None:
    """Start the virtual machine of this process; there is one at most.

    Args:
        classpath: folders and jars.
    """
    _jpype.startJVM(
        # Many of them run at a time, for a short while, with little to remember.
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        classpath=[*classpath],
        convertStrings=False,
    )


@functools.cache
def java_class(name: str) -> Java:
    """The class of this name; nested ones after a ``$``."""
    return _jpype.JClass(name)


def implements(interface: str) -> Callable[[type[C]], type[C]]:
    """Decorate a class of Python's that implements `interface`, with `override` on its methods."""
    decorate: Callable[[type[C]], type[C]] = _jpype.JImplements(interface, deferred=True)
    return decorate


def override(method: M) -> M:
    """Decorate a method of an interface of Java's."""
    decorated: M = _jpype.JOverride(method)
    return decorated


def is_java(value: object) -> bool:
    """Whether `value` is an object of Java's."""
    return isinstance(value, _jpype.JObject)


def is_java_error(error: BaseException) -> TypeGuard[Java]:
    """Whether `error` is one of Java's."""
    return isinstance(error, _jpype.JException)


def detach() -> None:
    """Tell the virtual machine that the current thread, one of Python's, needs it no more."""
    thread = java_class("java.lang.Thread")
    if thread.isAttached():
        thread.detach()


def detaching(work: Callable[[], object]) -> Callable[[], None]:
    """`work` for a thread of Python's; at its end the virtual machine lets the thread go."""

    def run() -> None:
        try:
            work()
        finally:
            detach()

    return run
