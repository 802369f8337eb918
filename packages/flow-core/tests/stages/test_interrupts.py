"""Ctrl-C comes while a flow runs in the main thread: what is to be closed is closed."""

from __future__ import annotations

import dis
import itertools
import signal
from collections import deque
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.stages import Form, Program, generated_source
from flow_core.stages._sink import SingleSink
from flow_core.structure import stages_of
from flow_testing import STAGE_CASES, StageCase

TRIALS = 50


def jumps_out(code: CodeType) -> Iterator[dis.Instruction]:
    """The jumps of a condition back to a place within a `try`, from a place that is in no `try`."""
    table = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]  # not in typeshed

    def handler(offset: int) -> int | None:
        innermost = None
        for entry in table:
            if entry.start <= offset < entry.end:
                innermost = entry.target
        return innermost

    instructions = [each for each in dis.get_instructions(code) if each.opname != "NOT_TAKEN"]
    for before, instruction in itertools.pairwise(instructions):
        if (
            instruction.opname == "JUMP_BACKWARD"
            and before.opname.startswith("POP_JUMP_IF")
            and handler(instruction.offset) != handler(instruction.argval)
        ):
            yield instruction
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from jumps_out(constant)


@pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("form", Form)
def test_no_loop_jumps_back_past_the_try_that_closes(case: StageCase, form: Form) -> None:
    """Ctrl-C may raise at such a jump, see `_Writer.end_loops`."""
    made = case.apply(flow.range(9).filter(bool)).filter(bool).finally_action(int)
    source = generated_source(form, Program(stages_of(made)))
    assert list(jumps_out(compile(source, "<flow>", "exec"))) == []


Begin = Callable[[], object]
"""To be called when the flow runs: Ctrl-C comes some time after that."""


def endless(begin: Begin) -> Flow[int]:
    def numbers() -> Iterator[int]:
        begin()
        yield from itertools.count()

    return flow.from_iterable(numbers())


def generated(begin: Begin, closed: Callable[[], object]) -> Flow[int]:
    def step(number: int, sink: SingleSink[int]) -> int:
        if number == 0:
            begin()
        sink.next(number)
        return number + 1

    return flow.generate(int, step, on_end=lambda _: closed())


FLOWS: dict[str, Callable[[Begin, Callable[[], object]], Flow[Any]]] = {
    "filter": lambda begin, closed: endless(begin).finally_action(closed).filter(lambda _: False),
    "flat_map_iterable": lambda begin, closed: (
        endless(begin).finally_action(closed).flat_map_iterable(lambda _: ())
    ),
    "skip_while": lambda begin, closed: (
        endless(begin).finally_action(closed).skip_while(lambda _: True)
    ),
    "generate": lambda begin, closed: generated(begin, closed).filter(lambda _: False),
}
RUNS: dict[str, Callable[[Flow[Any]], object]] = {
    "iterated": lambda made: deque(made, 0),
    "subscribed": lambda made: made.subscribe(lambda _: None),
    "for_each": lambda made: made.for_each(lambda _: None),
}


@pytest.fixture
def interrupts() -> Iterator[Begin]:
    """Have Ctrl-C come after some CPU time."""

    def interrupt(*_: object) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGVTALRM, interrupt)
    # Again later: CPython forgets a signal once in a while.
    yield lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.5)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", FLOWS)
def test_an_interrupt_closes_what_runs(name: str, run: str, interrupts: Begin) -> None:
    ended: list[None] = []
    for _ in range(TRIALS):
        made = FLOWS[name](interrupts, lambda: ended.append(None))
        with pytest.raises(KeyboardInterrupt):
            RUNS[run](made)
    assert len(ended) == TRIALS
