"""Marble diagrams: what is drawn is what a run gives."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from flow_testing.pictures import NoPictureError, Scene, draw, picture, play

SVG = "{http://www.w3.org/2000/svg}"


def labels(svg: str) -> list[str]:
    """The texts of the items that are drawn, from top to bottom."""
    found = ET.fromstring(svg).iter(f"{SVG}text")
    return [each.text or "" for each in found if each.get("class") == "item"]


def test_the_signals_of_each_line_are_those_of_a_run() -> None:
    played = play(Scene("a.map(lambda n: n * 10)", {"a": "-1-2-|"}))
    assert [(s.time_s, str(s)) for s in played.results[0].signals] == [
        (1, "on_next(10)"),
        (3, "on_next(20)"),
        (5, "on_complete()"),
    ]
    assert [s.value for s in played.inputs["a"][0].signals] == [1, 2, None]


def test_the_picture_has_each_item_the_expression_and_the_ends() -> None:
    svg = draw(Scene("a.map(lambda n: n * 10)", {"a": "-1-2-|"})).svg
    assert labels(svg) == ["1", "2", "10", "20"]
    assert '<text x="46"' in svg
    assert "a.map(lambda n: n * 10)" in svg
    assert len(re.findall(r'v28"', svg)) == 2, "two lines complete"


def test_a_source_that_is_cancelled_is_drawn_up_to_then() -> None:
    shown = draw(Scene("a.take(1)", {"a": "-1-2-|"}))
    assert labels(shown.svg) == ["1", "1"]
    assert "cancelled at 1 s" in shown.words


def test_a_source_without_a_subscriber_is_said_to_have_none() -> None:
    assert draw(Scene("flow.just(1)", {"a": "-1-|"})).words.startswith("a: not subscribed to.")


def test_a_signal_after_the_end_of_the_picture_is_not_drawn() -> None:
    shown = draw(Scene("a.map(str)", {"a": "-1-2-3-|"}, until=4))
    assert labels(shown.svg) == ["1", "2", "1", "2"]
    assert "completes" not in shown.words


def test_an_error_is_drawn_as_a_cross_and_said() -> None:
    shown = draw(Scene("a", {"a": "-1-#"}))
    assert shown.words.endswith("1 at 1 s, fails at 3 s.")
    assert shown.svg.count("l16 16m0 -16l-16 16") == 2


def test_signs_of_xml_in_an_expression_are_text() -> None:
    svg = draw(Scene("a.filter(lambda n: n < 2 and n > 0)", {"a": "-1-|"}), title="<&>").svg
    assert ET.fromstring(svg).findtext(f"{SVG}title") == "<&>"


def test_what_comes_at_one_time_is_drawn_side_by_side() -> None:
    svg = draw(Scene("a.to_list().flat_map_iterable(list)", {"a": "-1-2-3-|"})).svg
    xs = [float(x) for x in re.findall(r'<text class="item" x="([\d.]+)"', svg)]
    assert xs[3:] == sorted(set(xs[3:]))


def test_an_item_has_the_same_colour_wherever_it_is() -> None:
    svg = draw(Scene("a.filter(lambda n: n > 1)", {"a": "-1-2-|"})).svg
    first, second, again = re.findall(r'fill="(#\w+)"', svg)
    assert first != second == again


def test_a_notebook_shows_it() -> None:
    shown = picture("take")
    assert shown._repr_svg_() == shown.svg


def test_an_operator_without_a_picture_says_why() -> None:
    with pytest.raises(NoPictureError, match=r"observe_on has no picture\. The items are the same"):
        picture("observe_on")
    with pytest.raises(NoPictureError, match="nothing has no picture"):
        picture("nothing")
