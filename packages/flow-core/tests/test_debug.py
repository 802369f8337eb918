"""In debug mode, errors say every line of the assembly; otherwise nothing is paid for it."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Fusion, hooks
from flow_core.assembly import assembly_trace
from flow_testing import TestPublisher, TestSubscriber, observe, race


class FailureError(Exception):
    """The exception with which the flows of this module fail."""


def failing(_: object) -> int:
    raise FailureError("failed")


def trace(error: BaseException) -> list[str]:
    """The lines of the note about the assembly."""
    all_notes: list[str] = getattr(error, "__notes__", [])
    notes = [note for note in all_notes if "was assembled from" in note]
    assert len(notes) == 1, notes
    return notes[0].splitlines()


def steps(error: BaseException) -> list[str]:
    """The entries that the note lists, without the places."""
    return [line.strip().partition(", at ")[0] for line in trace(error)[1:]]


def here(offset: int) -> str:
    """A line of the calling test, `offset` lines before the call."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno - offset}"


def pulled(make: Callable[[], Flow[Any]]) -> FailureError:
    with pytest.raises(FailureError) as raised:
        list(make())
    return raised.value


def pushed(make: Callable[[], Flow[Any]]) -> FailureError:
    subscriber = observe(make())
    assert isinstance(subscriber.error, FailureError)
    return subscriber.error


def fused(make: Callable[[], Flow[Any]]) -> FailureError:
    subscriber = TestSubscriber[Any](fusion=Fusion.SYNC)
    make().subscribe(subscriber)
    assert subscriber.fused is Fusion.SYNC
    assert isinstance(subscriber.error, FailureError)
    return subscriber.error


FORMS = {"pulled": pulled, "pushed": pushed, "fused": fused}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


# -- what an error says


@each_form
def test_an_error_names_the_source_and_every_stage_with_the_line_that_added_it(
    form: Callable[[Callable[[], Flow[Any]]], FailureError],
) -> None:
    with hooks.debug():
        made = flow.range(3)
        made = made.map(abs)
        made = made.map(failing)
        made = made.filter(bool)
        first = here(4)
        error = form(lambda: made)
    assert steps(error) == ["range(0, 3)", "map(abs)", "map(failing)", "filter(bool)"]
    file, line = first.rsplit(":", 1)
    places = [line_.partition(", at ")[2] for line_ in trace(error)[1:]]
    assert places == [f"{file}:{int(line) + index}" for index in range(4)]


@each_form
def test_the_note_comes_beside_that_of_the_stage_that_failed_and_only_once(
    form: Callable[[Callable[[], Flow[Any]]], FailureError],
) -> None:
    with hooks.debug():
        error = form(lambda: flow.range(3).map(failing).map(abs))
    notes: list[str] = error.__notes__
    assert len(notes) == 2
    assert sum("map(failing)" in note for note in notes) == 2


def test_boundaries_are_listed_with_what_is_before_and_behind_them() -> None:
    def make() -> Flow[Any]:
        return flow.range(3).map(failing).hide().map(abs)

    with hooks.debug():
        for error in (pulled(make), pushed(make)):
            # The run before the boundary notes what it is made of; the next one adds the rest.
            notes = [note for note in error.__notes__ if "was assembled from" in note]
            listed = [re.findall(r"^  (\w+)", note, re.MULTILINE) for note in notes]
            assert listed == [["range", "map"], ["range", "map", "hide", "map"]]


def test_an_error_of_the_source_is_noted_too() -> None:
    error = FailureError("source")
    with hooks.debug():
        source: Flow[int] = flow.error(error)
        observe(source.filter(bool)).assert_failure(error)
    assert steps(error) == [f"error({error!r})", "filter(bool)"]


def test_a_flow_without_a_stage_is_noted_in_pull_and_in_push() -> None:
    def make() -> Flow[int]:
        return flow.from_callable(lambda: failing(1))

    with hooks.debug():
        for error in (pulled(make), pushed(make)):
            (step,) = steps(error)
            assert step.startswith("from_callable(")


def test_a_deferred_flow_is_noted_by_what_it_became() -> None:
    with hooks.debug():
        for form in (pulled, pushed, fused):
            error = form(lambda: flow.defer(lambda: flow.range(3).map(failing)).map(abs))
            assert steps(error) == ["range(0, 3)", "map(failing)", "map(abs)"]


def test_a_publisher_that_fails_gets_the_trace_of_the_flow_behind_it() -> None:
    publisher = TestPublisher[int]()
    error = FailureError("published")
    with hooks.debug():
        subscriber = observe(Flow(publisher).map(abs).skip_while(bool).scan(max, 0))
    publisher.next(1, 0).error(error)
    subscriber.assert_failure(error, 0)
    assert steps(error)[1:] == ["map(abs)", "skip_while(bool)", "scan(max, seed=0)"]


def test_an_error_that_was_handled_above_is_not_seen_below() -> None:
    with hooks.debug():
        assert list(flow.just(1).map(failing).on_error_return(7)) == [7]


def test_sources_made_outside_of_the_mode_are_named_without_a_place() -> None:
    made = flow.range(3)
    with hooks.debug():
        error = pulled(lambda: made.map(failing))
    assert trace(error)[1] == "  range(0, 3)"
    assert ", at " in trace(error)[2]


def test_a_flow_can_be_asked_how_it_was_assembled() -> None:
    made = flow.range(3).map(abs)
    assert assembly_trace(made).splitlines() == [
        "the flow was assembled from:",
        "  range(0, 3)",
        f"  map(abs), at {here(4)}",
    ]


# -- when it is on


def test_the_mode_is_off_by_default_and_then_nothing_is_noted() -> None:
    assert not hooks.debugging
    error = pulled(lambda: flow.range(3).map(failing))
    assert not [note for note in error.__notes__ if "was assembled from" in note]


def test_the_mode_ends_with_its_block_and_may_be_switched_off_for_one() -> None:
    with hooks.debug():
        assert hooks.debugging
        with hooks.debug(on=False):
            assert not hooks.debugging
            assert len(pulled(lambda: flow.range(3).map(failing)).__notes__) == 1
        assert hooks.debugging
        with pytest.raises(FailureError), hooks.debug():
            raise FailureError("in the block")
        assert hooks.debugging
    assert not hooks.debugging


def test_blocks_of_several_threads_may_end_in_any_order() -> None:
    first, second = hooks.debug(), hooks.debug()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert hooks.debugging
    second.__exit__(None, None, None)
    assert not hooks.debugging

    def switch() -> None:
        for _ in range(200):
            with hooks.debug():
                assert hooks.debugging

    race(switch, switch, switch)
    assert not hooks.debugging


def test_a_hook_that_is_off_adds_nothing_to_a_flow() -> None:
    made = flow.range(3).map(abs)
    assert hooks.on_assembly.call is None
    assert hooks.on_subscribe.call is None
    assert made._compiled()[1] is made._compiled()[1]
    assert [stage.name for stage in made._compiled()[1].stages] == ["map"]
    with hooks.debug():
        assert [stage.name for stage in made._compiled()[1].stages] == ["map", "checkpoint"]
    assert [stage.name for stage in made._compiled()[1].stages] == ["map"]


@pytest.mark.parametrize(
    ("value", "noted"), [("1", True), ("yes", True), ("0", False), ("", False), (None, False)]
)
def test_the_environment_switches_the_mode_on(
    value: str | None, noted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import flow_core as flow

            made = flow.range(3)
            list(made.map(lambda n: 1 // n))
        """)
    )
    if value is None:
        monkeypatch.delenv("FLOW_DEBUG", raising=False)
    else:
        monkeypatch.setenv("FLOW_DEBUG", value)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert "ZeroDivisionError" in done.stderr
    assert ("the flow was assembled from:" in done.stderr) == noted
    if noted:
        assert f"range(0, 3), at {script}:4" in done.stderr
        assert f"at {script}:5" in done.stderr


def test_a_flow_of_a_publisher_may_be_made_at_the_top_of_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import flow_core as flow
            from flow_core.assembly import assembly_trace
            from flow_core.structure import source_of

            print(assembly_trace(flow.Flow(source_of(flow.never()))))
        """)
    )
    monkeypatch.setenv("FLOW_DEBUG", "1")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["the flow was assembled from:", f"  never(), at {script}:6"]
