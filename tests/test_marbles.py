"""Marble diagrams of what several packages execute: every one is what a run draws."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

from flow_testing.pictures import Scene, draw, picture, play, scenes, without

SVG = "{http://www.w3.org/2000/svg}"

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def marbles() -> ModuleType:
    """The script that draws them."""
    spec = importlib.util.spec_from_file_location("docs_marbles", DOCS / "marbles.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_is_what_a_run_draws_and_every_operator_has_one_or_a_reason(
    marbles: ModuleType,
) -> None:
    assert list(marbles.problems()) == [], "run: python docs/marbles.py"


def test_a_picture_that_differs_or_is_missing_is_named(marbles: ModuleType, tmp_path: Path) -> None:
    marbles.write(tmp_path)
    (tmp_path / "take.svg").write_text("<svg/>")
    (tmp_path / "skip.svg").unlink()
    (tmp_path / "gone.svg").touch()
    said = "\n".join(marbles.problems(tmp_path))
    assert "take.svg: is not what a run of take draws" in said
    assert "skip.svg: is not what a run of skip draws" in said
    assert "gone.svg: shows an operator that has no scene" in said
    assert len(said.splitlines()) == 3


def labels(svg: str) -> list[str]:
    """The texts of the items that are drawn, from top to bottom."""
    found = ET.fromstring(svg).iter(f"{SVG}text")
    return [each.text or "" for each in found if each.get("class") == "item"]


def test_a_source_that_is_subscribed_to_again_is_drawn_again() -> None:
    shown = draw(Scene("a.repeat(2)", {"a": "-1-|"}))
    assert labels(shown.svg) == ["1", "1", "1", "1"]


def test_flows_that_are_items_have_lines_of_their_own() -> None:
    shown = draw(Scene("a.window_with_count(2)", {"a": "-1-2-3-|"}))
    assert labels(shown.svg) == ["1", "2", "3", "1", "2", "3"]
    assert "The flow that came at 5 s: 3 at 5 s, completes at 7 s." in shown.words


def test_requests_are_drawn_where_they_are_made() -> None:
    shown = draw(Scene("a.on_backpressure_latest()", {"a": "-1-2-3-|"}, requests={0: 1, 6: 1}))
    assert "request(1)" in shown.svg
    assert shown.words.endswith("1 at 1 s, 3 at 6 s, completes at 7 s.")


def test_each_subscriber_has_a_line_from_when_it_comes() -> None:
    played = play(Scene("a.share()", {"a": "-1-2-3-|"}, subscribers=(0, 2)))
    assert [[s.value for s in line.signals[:-1]] for line in played.results] == [[1, 2, 3], [2, 3]]


def test_a_flow_without_an_end_ends_the_picture_where_the_scene_says() -> None:
    played = play(Scene("flow.interval(1)", until=3))
    assert [s.value for s in played.results[0].signals] == [0, 1, 2]
    assert (played.results[0].end, played.until) == (None, 3)


def test_a_picture_has_a_title_and_a_description_for_those_who_cannot_see_it() -> None:
    root = ET.fromstring(picture("merge").svg)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "merge"
    assert "completes at" in (root.findtext(f"{SVG}desc") or "")


@pytest.mark.parametrize("name", sorted(scenes()))
def test_a_scene_shows_its_operator(name: str) -> None:
    assert f"{name}(" in scenes()[name].flow


@pytest.mark.parametrize(
    "name", sorted({*scenes()} - {"error", "on_backpressure_error", "timeout"})
)
def test_no_scene_fails_that_is_not_about_failing(name: str) -> None:
    scene = scenes()[name]
    if not any("#" in line for line in scene.inputs.values()):
        assert "fails" not in picture(name).words


def test_what_has_a_picture_needs_no_reason() -> None:
    assert not set(scenes()) & set(without())
