"""The reports of a count to displays, and the display of a flow in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.counting import Counter, Display, Outcome, counting
from flow_core.plugins import PluginHost

Told = list[tuple[object, ...]]


class Recorder(Display):
    """Writes down what it is to show."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.told: Told = []

    def add(self, counter: Counter, label: str) -> None:
        self.told.append(("add", label, counter.total, counter.unit))
        counter.shown = True

    def end(self, counter: Counter, outcome: Outcome) -> None:
        self.told.append(("end", counter.count, outcome))

    def drawn(self, flow: Flow[Any]) -> Mapping[str, str]:
        return {self.kind: f"<{flow}>"}


@pytest.fixture
def recorders(
    install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> tuple[Recorder, Recorder]:
    """Two displays that work; one between them cannot be loaded."""
    install(
        "acme-shown",
        """
        from flow_core.plugins import DisplaySpec, hookimpl

        @hookimpl
        def flow_displays():
            yield DisplaySpec("first", "acme_shown:first")
            yield DisplaySpec("broken", "acme_shown:gone")
            yield DisplaySpec("second", "acme_shown:second")
        """,
    )
    found = Recorder("text/html"), Recorder("image/svg+xml")
    made = SimpleNamespace(first=lambda: found[0], second=lambda: found[1])
    monkeypatch.setitem(sys.modules, "acme_shown", made)
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "flow-cli"})
    monkeypatch.setattr("flow_core.plugins.host._host", host)
    return found


def test_every_display_that_can_be_loaded_shows_a_count(
    recorders: tuple[Recorder, Recorder],
) -> None:
    with counting("flights", total=3, unit="flights") as flights:
        assert flights.shown
        flights.count += 2
    expected: Told = [("add", "flights", 3, "flights"), ("end", 2, Outcome.DONE)]
    assert [each.told for each in recorders] == [expected, expected]


@pytest.mark.parametrize(
    ("error", "stopped", "outcome"),
    [
        (ValueError, False, Outcome.FAILED),
        (ValueError, True, Outcome.STOPPED),
        (KeyboardInterrupt, False, Outcome.STOPPED),
    ],
)
def test_a_count_that_an_error_ends_has_failed_unless_it_was_stopped(
    recorders: tuple[Recorder, Recorder],
    error: type[BaseException],
    stopped: bool,
    outcome: Outcome,
) -> None:
    with pytest.raises(error), counting("rows") as rows:
        rows.stopped = stopped
        raise error
    assert recorders[1].told[-1] == ("end", 0, outcome)


def test_a_display_that_cannot_show_a_count_ends_it_at_the_others(
    recorders: tuple[Recorder, Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorders[1], "add", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError), counting("rows"):
        raise AssertionError("the block does not begin")
    assert [each.told[-1] for each in recorders] == [("end", 0, Outcome.FAILED)] * 2


def test_a_notebook_shows_what_every_display_draws(recorders: tuple[Recorder, Recorder]) -> None:
    assert flow.range(3).map(str)._repr_mimebundle_() == {
        "text/plain": "range(0, 3) | map(str)",
        "text/html": "<range(0, 3) | map(str)>",
        "image/svg+xml": "<range(0, 3) | map(str)>",
    }


def test_without_a_display_a_count_counts_and_a_notebook_shows_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flow_core.plugins.host._host", PluginHost({"FLOW_DISABLE_PLUGINS": "*"}))
    with counting("rows") as rows:
        rows.count += 1
    assert (rows.count, rows.shown) == (1, False)
    assert flow.range(3)._repr_mimebundle_() == {"text/plain": "range(0, 3)"}
