"""The virtual machine, and a typed version of the part of JPype that this package uses."""

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

Java = Any  # a Java object or class
_jpype: Any = jpype  # Any: it has no types to check against
C = TypeVar("C")
M = TypeVar("M", bound=Callable[..., object])


def start(classpath: Sequence[str]) -> None:
    """Start the virtual machine of this process, which has one at most.

    Args:
        classpath: folders and jars.
    """
    _jpype.startJVM(
        # Many virtual machines run at a time, each for a short while and with little memory.
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        classpath=[*classpath],
        convertStrings=False,
    )


@functools.cache
def java_class(name: str) -> Java:
    """Return the Java class of this name; the name of a nested class follows a ``$``."""
    return _jpype.JClass(name)


def implements(interface: str) -> Callable[[type[C]], type[C]]:
    """Decorate a Python class that implements `interface`, with `override` on its methods."""
    decorate: Callable[[type[C]], type[C]] = _jpype.JImplements(interface, deferred=True)
    return decorate


def override(method: M) -> M:
    """Decorate a method that implements one of a Java interface."""
    decorated: M = _jpype.JOverride(method)
    return decorated


def is_java(value: object) -> bool:
    """Return whether `value` is a Java object."""
    return isinstance(value, _jpype.JObject)


def is_java_error(error: BaseException) -> TypeGuard[Java]:
    """Return whether `error` is a Java exception."""
    return isinstance(error, _jpype.JException)


def detach() -> None:
    """Detach the current Python thread from the virtual machine, which it no longer needs."""
    thread = java_class("java.lang.Thread")
    if thread.isAttached():
        thread.detach()


def detaching(work: Callable[[], object]) -> Callable[[], None]:
    """Wrap `work` for a Python thread, so that it detaches from the virtual machine at its end."""

    def run() -> None:
        try:
            work()
        finally:
            detach()

    return run
