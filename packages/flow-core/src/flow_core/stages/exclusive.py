"""Generators that one thread at a time may enter, also where Python does not see to that.

A loop is entered by the thread that brings items, and closed by the one that cancels. Who comes
while it runs has to get a `ValueError`, as from any generator. CPython without the GIL gives one
from 3.15 on; before, both threads would run in the same frame, and the process may crash.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from types import FrameType, GeneratorType, TracebackType
from typing import Final, TypeVar, cast, final

from flow_core.serial import HAS_GIL

__all__ = ["ALL_EXCLUSIVE", "ExclusiveGenerator", "exclusive"]

Y = TypeVar("Y")
S = TypeVar("S")
R = TypeVar("R")

ALL_EXCLUSIVE: Final = HAS_GIL or sys.version_info >= (3, 15)
"""Whether all generators are."""


@final
class ExclusiveGenerator(Generator[Y, S, None]):
    """A generator behind a permit, with what the engine asks of a `GeneratorType`.

    The permit is taken and given back as in `SerialDrain`, atomically and with no place between
    where Ctrl-C could come.

    Args:
        generator: entered by nobody else.
    """

    __slots__ = ("_generator", "_permit")

    def __init__(self, generator: GeneratorType[Y, S, None]) -> None:
        self._generator = generator
        self._permit = {0: True}

    def _alone(self, function: Callable[..., R], *args: object) -> R:
        permit = self._permit
        try:
            del permit[0]
        except KeyError:
            raise ValueError("generator already executing") from None
        try:
            return function(*args)
        finally:
            permit[0] = True

    def __next__(self) -> Y:
        return self._alone(self._generator.__next__)

    def send(self, value: S, /) -> Y:
        """See `Generator.send`."""
        return self._alone(self._generator.send, value)

    def throw(
        self,
        typ: type[BaseException] | BaseException,
        val: object = None,
        tb: TracebackType | None = None,
        /,
    ) -> Y:
        """See `Generator.throw`."""
        return self._alone(self._generator.throw, typ)

    def close(self) -> None:
        """See `Generator.close`."""
        self._alone(self._generator.close)

    @property
    def gi_running(self) -> bool:
        """Whether a thread is in it."""
        return 0 not in self._permit

    @property
    def gi_suspended(self) -> bool:
        """Whether it waits at a ``yield``."""
        return 0 in self._permit and self._generator.gi_suspended

    @property
    def gi_frame(self) -> FrameType | None:
        """Its frame, or None if it has ended. That of one that runs is nobody's to see."""
        try:
            return self._alone(lambda: self._generator.gi_frame)
        except ValueError:
            return sys._getframe()


def exclusive(generator: GeneratorType[Y, S, None]) -> GeneratorType[Y, S, None]:
    """The generator, or one in its place that lets in one thread at a time, if it does not.

    Args:
        generator: entered by nobody before or beside what is returned.
    """
    if ALL_EXCLUSIVE:
        return generator
    return cast("GeneratorType[Y, S, None]", ExclusiveGenerator(generator))
