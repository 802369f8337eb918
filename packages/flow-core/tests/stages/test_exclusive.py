"""Loops that one thread at a time may enter, on Pythons whose generators do not see to it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from threading import Event, Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.stages import _exclusive as exclusive
from flow_core.stages._exclusive import ExclusiveGenerator
from flow_testing import STAGE_CASES, TIMEOUT_S, StageCase, assert_result

each_case = pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on CPython 3.13 without the GIL."""
    monkeypatch.setattr(exclusive, "ALL_EXCLUSIVE", False)


class Busy:
    """A generator that a thread is in until the ``with`` block ends."""

    def __init__(self) -> None:
        self._entered, self._go = Event(), Event()
        self.sent: list[object] = []
        running: Any = self._run()
        self.generator: Any = ExclusiveGenerator(running)
        self._thread = Thread(target=self.generator.send, args=(1,))

    def _run(self) -> Generator[int, int, None]:
        try:
            while True:
                self.sent.append((yield 7))
                self._entered.set()
                assert self._go.wait(TIMEOUT_S)
        except KeyError:
            yield 8

    def __enter__(self) -> Any:
        assert next(self.generator) == 7
        self._thread.start()
        assert self._entered.wait(TIMEOUT_S)
        return self.generator

    def __exit__(self, *_: object) -> None:
        self._go.set()
        self._thread.join(TIMEOUT_S)


ENTRANCES: dict[str, Callable[[Any], object]] = {
    "next": next,
    "send": lambda generator: generator.send(2),
    "throw": lambda generator: generator.throw(KeyError()),
    "close": lambda generator: generator.close(),
}


@pytest.mark.checklist("X02")
@pytest.mark.parametrize("enter", ENTRANCES.values(), ids=ENTRANCES)
def test_a_second_thread_is_refused_as_by_any_generator(enter: Callable[[Any], object]) -> None:
    busy = Busy()
    with busy as generator:
        with pytest.raises(ValueError, match="already executing"):
            enter(generator)
        assert generator.gi_running
        assert not generator.gi_suspended
        assert generator.gi_frame is not None
    assert busy.sent == [1]
    assert generator.gi_suspended


def test_it_tells_its_state_as_a_generator_does() -> None:
    generator: Any = Busy().generator
    assert not generator.gi_suspended
    assert generator.gi_frame is not None
    assert next(generator) == 7
    assert generator.throw(KeyError()) == 8
    assert (generator.gi_running, generator.gi_suspended) == (False, True)
    generator.close()
    assert (generator.gi_frame, generator.gi_suspended) == (None, False)


@pytest.mark.many
@pytest.mark.usefixtures("guarded")
@each_case
def test_every_stage_gives_the_same_behind_a_permit(case: StageCase) -> None:
    items = [1, 1, 2, 3, 3, 3, 1, 7, 7]
    expected = case.model(items)
    assert_result(lambda: case.apply(flow.from_iterable(items)), expected)


@pytest.mark.usefixtures("guarded")
def test_an_upstream_that_answers_within_on_next_continues_behind_a_permit() -> None:
    assert_result(lambda: flow.range(9).map(str).filter(bool).take(7), list("0123456"))


def test_a_loop_is_the_generator_itself_where_generators_exclude(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator: Any = (n for n in range(3))
    monkeypatch.setattr(exclusive, "ALL_EXCLUSIVE", True)
    assert exclusive.exclusive(generator) is generator
    monkeypatch.setattr(exclusive, "ALL_EXCLUSIVE", False)
    assert exclusive.exclusive(generator) is not generator


def test_a_flow_over_a_generator_is_closed_behind_a_permit(guarded: None) -> None:
    closed: list[str] = []

    def items() -> Generator[int, None, None]:
        try:
            yield from range(9)
        finally:
            closed.append("closed")

    source: Flow[int] = flow.from_iterable(items())
    assert source.map(str).hide().take(2).to_list().first() == ["0", "1"]
    assert closed == ["closed"]
