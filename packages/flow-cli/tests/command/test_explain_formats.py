"""``flow explain --format``: a chart for Markdown, a picture, and data for programs."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any, cast
from xml.etree import ElementTree

import pytest

import flow_core
from flow_cli.explain import Format, explain
from flow_core import AbsorbingSource, Flow, FlowError, Operator
from flow_core.protocols import Publisher, Subscriber

HERE = "test_explain_formats.py"
SVG = "{http://www.w3.org/2000/svg}"


class Both(Publisher[Any]):
    """Reads several flows."""

    def __init__(self, *upstreams: Flow[Any]) -> None:
        self.upstreams = upstreams

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"both({len(self.upstreams)} flows)"


class Nowhere(AbsorbingSource[Any]):
    """Refuses everything."""

    def absorb(self, stages: Any) -> Any:
        raise FlowError("it has no meaning there\n" + "and the ways out take many words " * 5)

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        raise NotImplementedError


def both(*flows: Flow[Any]) -> Operator[Any, Flow[Any]]:
    return Operator("both", lambda flow: Flow(Both(flow, *flows)))


def joined() -> Flow[Any]:
    inner = flow_core.just(1).hide().pipe(both(flow_core.just("b").map(str).hide()))
    return (
        flow_core.range(3).map(str).pipe(both(flow_core.just("a"), inner)).map(len).hide().count()
    )


def test_a_chart_has_a_node_for_each_part_and_an_arrow_for_each_way_of_the_items() -> None:
    made = flow_core.range(3).map(str).pipe(both(flow_core.just("x").hide()))
    text = explain(made, format="mermaid", title='a "title"')
    assert re.sub(rf"<br/>{HERE}:\d+", "", text).splitlines() == [
        "---",
        'title: "a \\"title\\""',
        "---",
        "flowchart TD",
        '    n1(["source<br/>range(0, 3)<br/>an iterator"])',
        '    n2["loop 1, pushed<br/>map(str)"]',
        "    n1 --> n2",
        '    n3{{"boundary<br/>both()<br/>registered by no plugin"}}',
        "    n2 --> n3",
        '    n4(["source<br/>just(#39;x#39;)<br/>a constant"])'.replace("#39;", "'"),
        '    n5{{"boundary<br/>hide()<br/>passes demand on<br/>no fusion"}}',
        "    n4 --> n5",
        "    n5 --> n3",
        "    classDef refused stroke:#d33,stroke-width:3px",
    ]


def test_no_letter_of_a_label_has_a_meaning_in_a_chart() -> None:
    def odd(item: Any) -> Any:
        return item

    odd.__qualname__ = '`a` "b" <c> &amp; {d} [e] #f'
    text = explain(flow_core.just('"]\n%%{').map(odd).hide(), format="mermaid")
    labels = re.findall(r'"(.*)"', text.partition("flowchart")[2])
    assert len(labels) == 3
    for label in labels:
        assert not set('"<>&{}[]`%') & set(label.replace("<br/>", ""))
    assert "map(#96;a#96; #34;b#34; #60;c#62; #38;amp; #123;d#125; #91;e#93; #35;f)" in text


def test_a_picture_shows_each_part_once_and_says_the_same_in_words() -> None:
    root = ElementTree.fromstring(explain(joined(), format="svg", title="a < b"))
    shown = [text.text for text in root.iter(f"{SVG}text")]
    for part in ("range(0, 3)", "map(str)", "just('a')", "just(1)", "map(len)", "count()"):
        assert shown.count(part) == (2 if part == "map(str)" else 1), part
    assert root.findtext(f"{SVG}title") == "a < b"
    words = root.findtext(f"{SVG}desc") or ""
    assert "source; range(0, 3); an iterator." in words
    assert root.get("role") == "img"


def cards(text: str) -> list[tuple[float, float, float, float]]:
    """Return left, top, right and bottom of each part of a picture."""
    found = []
    for box in ElementTree.fromstring(text).iter(f"{SVG}rect"):
        if "card" in (box.get("class") or ""):
            x, y, width, height = (float(box.get(k) or 0) for k in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


@pytest.mark.parametrize("depth", range(4))
def test_no_part_of_a_picture_covers_another_and_all_are_within_it(depth: int) -> None:
    made = joined()
    for _ in range(depth):
        made = made.map(str).hide().pipe(both(made.filter(bool), made.hide().skip(1))).take(3)
    text = explain(made, format="svg")
    root, placed = ElementTree.fromstring(text), cards(text)
    assert len(placed) >= 10 * 3**depth
    for one, other in combinations(placed, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    assert all(x > 0 < y and right < width and low < height for x, y, right, low in placed)


def test_a_long_text_is_cut_and_many_stages_are_counted() -> None:
    long = flow_core.just("x" * 500)
    for _ in range(40):
        long = long.map(str)
    root = ElementTree.fromstring(explain(long, format="svg"))
    shown = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert max(map(len, shown)) <= 64
    assert shown.count("map(str)") == 12
    assert "… 40 stages" in shown


def test_programs_get_the_parts_as_data() -> None:
    document = json.loads(explain(joined(), format="json", title="joined"))
    assert (document["format"], document["name"]) == (1, "joined")
    source, loop, boundary, *_ = document["parts"]
    assert source == {"id": 1, "kind": "source", "text": "range(0, 3)", "how": "an iterator"}
    assert loop["number"] == 1
    assert loop["steps"][0]["text"] == "map(str)"
    assert loop["steps"][0]["place"].startswith(f"{HERE}:")
    assert boundary["facts"] == ["registered by no plugin"]
    labels = [(branch["label"], branch["parts"][0]["text"]) for branch in boundary["branches"]]
    assert labels == [("also from", "just('a')"), ("also from", "just(1)")]
    assert "code" not in loop
    document = json.loads(explain(joined(), format="json", source=True))
    assert "def flow(" in document["parts"][1]["code"]


def test_each_part_has_a_number_of_its_own() -> None:
    def numbers(parts: list[dict[str, Any]]) -> list[int]:
        inner = [branch["parts"] for part in parts for branch in part.get("branches", ())]
        return [part["id"] for part in parts] + [n for each in inner for n in numbers(each)]

    found = numbers(json.loads(explain(joined(), format="json"))["parts"])
    assert sorted(found) == list(range(1, len(found) + 1))


@pytest.mark.parametrize("form", ["mermaid", "svg", "json"])
def test_what_is_refused_is_shown_in_each_format(form: str) -> None:
    text = explain(Flow(Nowhere()).map(str), format=cast("Format", form))
    assert "it has no meaning there" in text
    assert "refused" in text
    assert text.count("ways out") == (10 if form == "svg" else 5)  # a picture says it in words, too
    if form == "svg":
        ElementTree.fromstring(text)


def test_letters_that_cannot_be_seen_are_left_out_of_a_picture() -> None:
    def odd(item: Any) -> Any:
        return item

    odd.__qualname__ = "a\x1b[1m\nb"
    for form in ("svg", "mermaid"):
        text = explain(flow_core.just(1).map(odd), format=cast("Format", form))
        assert "\x1b" not in text
    assert "map(a [1m b)" in explain(flow_core.just(1).map(odd), format="svg")


def test_a_format_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="it is one of text, mermaid, svg, json"):
        explain(flow_core.just(1), format=cast("Format", "png"))


def test_the_command_prints_each_format(flow: Any, write: Any) -> None:
    write("jobs.py", "import flow_core\nnumbers = flow_core.range(3).map(str)\n")
    chart = flow("explain", "jobs.py:numbers", "--format", "mermaid").out
    assert chart.startswith('---\ntitle: "numbers"\n')
    ElementTree.fromstring(flow("explain", "jobs.py:numbers", "--format", "svg").out)
    data = json.loads(flow("explain", "jobs.py:numbers", "--format", "json", "--source").out)
    assert data["parts"][1]["code"]
    done = flow("explain", "jobs.py:numbers", "--format", "svg", "--source")
    assert (done.code, done.out) == (2, "")
    assert "--format svg has no room for what --source shows; text and json do" in done.err


def test_the_sink_of_a_pipeline_is_the_last_part(flow: Any, write: Any) -> None:
    write(
        "copy.toml",
        """
        [source]
        use = "range"
        args = [3]
        [[operators]]
        use = "skip"
        args = [1]
        [sink]
        use = "print"
        """,
    )
    done = flow("explain", "copy.toml", "--format", "json")
    assert done.code == 0, done.err
    *_, loop, sink = json.loads(done.out)["parts"]
    assert (loop["kind"], sink["kind"]) == ("loop", "sink")
    assert "--> n3" in flow("explain", "copy.toml", "--format", "mermaid").out
