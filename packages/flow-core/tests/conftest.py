"""A check for every test of the core: no error may be dropped unnoticed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Self

import pytest

from flow_testing import Drops


@pytest.fixture(autouse=True)
def no_error_is_dropped_unseen(drops: Drops) -> None:
    """An error that reaches the hooks fails the test that does not take it out of `drops`."""


EACH: Final = "line" if sys.version_info[:2] == (3, 12) else "opcode"
"""Python 3.12 traces bytecodes unreliably, and crashes at times."""


class Interruption:
    """Does something before one bytecode of some modules, in the thread that it traces.

    So does a finaliser, which the cyclic collector runs at any point, and a signal handler.

    Args:
        files: of the modules.
        number: of the bytecode, of those that the thread comes to; 1 is the first.
        do: what to do.
    """

    def __init__(self, files: set[str], number: int, do: Callable[[], object]) -> None:
        self.files = files
        self.left = number
        self.do = do
        self.happened = False

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in self.files:
            return None
        frame.f_trace_opcodes = EACH == "opcode"
        if event == EACH:
            self.left -= 1
            if self.left == 0:
                self.happened = True
                self.do()
        return self.trace

    def __enter__(self) -> Self:
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)


@pytest.fixture
def interruption() -> type[Interruption]:
    return Interruption
