"""Generators that only one thread at a time may enter, even where Python does not ensure that.

A loop is entered by the thread that brings items, and closed by the thread that cancels. A thread
that comes while the loop runs has to get a `ValueError`, as from any generator. CPython without the
GIL raises that error only from 3.15 on; in earlier versions, both threads would run in the same
frame, and the process might crash.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from types import FrameType, GeneratorType, TracebackType
from typing import Final, TypeVar, cast, final

from typing_extensions import override

from flow_core.serial import BUSY, HAS_GIL, Exclusive

__all__ = ["ALL_EXCLUSIVE", "ExclusiveGenerator", "exclusive"]

Y = TypeVar("Y")
S = TypeVar("S")
A = TypeVar("A")
R = TypeVar("R")

ALL_EXCLUSIVE: Final = HAS_GIL or sys.version_info >= (3, 15)
"""True if Python itself lets only one thread at a time into any generator."""


@final
class ExclusiveGenerator(Exclusive, Generator[Y, S, None]):
    """A generator behind a permit, with those attributes of a `GeneratorType` that the engine uses.

    Args:
        generator: the generator; no other code may enter it.
    """

    __slots__ = ("_generator",)

    def __init__(self, generator: GeneratorType[Y, S, None]) -> None:
        super().__init__()
        self._generator = generator

    def _alone(self, work: Callable[[A], R], argument: A) -> R:
        result = self.alone(work, argument)
        if result is BUSY:
            raise ValueError("generator already executing")
        return result

    def __next__(self) -> Y:
        return self._alone(next, self._generator)

    @override
    def send(self, value: S, /) -> Y:
        return self._alone(self._generator.send, value)

    @override
    def throw(
        self,
        typ: type[BaseException] | BaseException,
        val: object = None,
        tb: TracebackType | None = None,
        /,
    ) -> Y:
        return self._alone(lambda generator: generator.throw(typ), self._generator)

    @override
    def close(self) -> None:
        self._alone(lambda generator: generator.close(), self._generator)

    @property
    def gi_running(self) -> bool:
        """True if a thread runs the generator."""
        return self._busy

    @property
    def gi_suspended(self) -> bool:
        """True if the generator waits at a ``yield``."""
        return not self._busy and self._generator.gi_suspended

    @property
    def gi_frame(self) -> FrameType | None:
        """The frame of the generator; None if it has ended.

        The frame of a running one must not be read.
        """
        try:
            return self._alone(lambda generator: generator.gi_frame, self._generator)
        except ValueError:
            return sys._getframe()


def exclusive(generator: GeneratorType[Y, S, None]) -> GeneratorType[Y, S, None]:
    """Return `generator`, or a wrapper that lets in one thread at a time, if Python does not.

    Args:
        generator: the generator; only the result may be used to enter it.
    """
    if ALL_EXCLUSIVE:
        return generator
    return cast("GeneratorType[Y, S, None]", ExclusiveGenerator(generator))
