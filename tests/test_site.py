"""The site: every page is in its menu, links lead somewhere, and every operator has a page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from flow_core.plugins import PluginHost

SITE = Path(__file__).parent.parent / "docs" / "site"

PAGE = '<html><head><meta name="description" content="A page."></head><body>{}</body></html>'


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    """The script that gathers the pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SITE))
        import pages

        yield pages
        for name in ("pages", "reference"):
            del sys.modules[name]


@pytest.fixture(scope="module")
def gathered(pages: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that Sphinx reads."""
    folder = tmp_path_factory.mktemp("site")
    pages.gather(folder)
    return folder


@pytest.fixture
def problems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[object]:
    """A function that checks a site of one page, whose body is given."""
    monkeypatch.syspath_prepend(str(SITE))
    import check

    def found(body: str, page: str = PAGE) -> list[str]:
        (tmp_path / "index.html").write_text(page.format(body), "utf-8")
        return list(check.problems(tmp_path))

    yield found
    del sys.modules["check"]


def test_every_operator_source_and_sink_has_a_page_with_what_it_needs(gathered: Path) -> None:
    host = PluginHost({})
    for name in (*host.operators, *host.sources, *host.sinks):
        text = (gathered / "operators" / f"{name}.md").read_text("utf-8")
        assert re.search(r"\.\. auto(method|function)::", text)
        assert "| demand |" in text


def test_every_operator_has_the_picture_of_a_run_or_says_why_not(gathered: Path) -> None:
    assert "<svg " in (gathered / "operators" / "merge.md").read_text("utf-8")
    text = (gathered / "operators" / "observe_on.md").read_text("utf-8")
    assert "There is no marble diagram: the items are the same" in text


def test_a_long_value_is_not_printed(gathered: Path) -> None:
    text = (gathered / "api" / "flow_ops.testing.md").read_text("utf-8")
    assert ".. autodata:: flow_ops.testing.OPERATOR_CASES\n   :no-value:\n" in text


def test_every_page_has_a_description(gathered: Path) -> None:
    found = list(gathered.glob("**/*.md"))
    assert len(found) > 300
    for path in found:
        assert re.search(r'\n    description: "[^"\n]{10,}"\n', path.read_text("utf-8")), path


def test_a_link_between_pages_leads_to_their_places_on_the_site(gathered: Path) -> None:
    assert "(../design/performance.md)" in (gathered / "benchmarks" / "index.md").read_text("utf-8")
    assert "(packages/flow-spark.md)" in (gathered / "tour.md").read_text("utf-8")
    tutorial = (gathered / "tutorials" / "threads.md").read_text("utf-8")
    assert "(many-subscribers.md)" in tutorial
    assert "(../how-to.md#choose-what-happens-when-the-reader-is-slow)" in tutorial
    picture = "files/docs/marbles/on_backpressure_latest.svg"
    assert f"(../{picture})" in tutorial
    assert (gathered / picture).is_file()


def test_code_is_left_as_it_is(pages: ModuleType) -> None:
    text = "`x[0](a.md)`\n\n```python\nx[0](b.md)\n```\n[c](messages.md)\n"
    places = {"docs/messages.md": "messages.md"}
    assert pages.linked(text, "docs/web.md", "x/web.md", places) == text.replace(
        "(messages.md)", "(../messages.md)"
    )


def test_a_link_to_a_file_that_is_not_there_is_an_error_that_names_both(
    pages: ModuleType,
) -> None:
    with pytest.raises(pages.PageError, match=r"docs/web\.md: a link leads to gone\.md"):
        pages.linked("[x](gone.md)", "docs/web.md", "web.md", {})


def test_a_page_that_is_not_in_the_menu_is_an_error_that_names_it(
    pages: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "forgotten.md").write_text("# Forgotten\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    with pytest.raises(pages.PageError, match=r"not in the menu .*docs/forgotten\.md"):
        pages.gather(tmp_path / "out")


def test_a_page_that_is_right_has_no_problems(problems) -> None:  # type: ignore[no-untyped-def]
    body = '<a href="#there" id="there"></a><a href="index.html#there"></a>'
    assert problems(body) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone.html"></a>', "index.html: a link leads to gone.html, which is not there"),
        (
            '<a href="#gone"></a>',
            "index.html: a link leads to #gone, and that page has no such place",
        ),
        (
            '<img src="https://example.org/x.png">',
            "index.html: loads https://example.org/x.png",
        ),
    ],
)
def test_a_problem_is_named_with_its_page(problems, body: str, problem: str) -> None:  # type: ignore[no-untyped-def]
    assert problems(body) == [problem]


def test_a_page_without_a_description_is_named(problems) -> None:  # type: ignore[no-untyped-def]
    assert problems("", page="<html></html>{}") == ["index.html: has no description"]


def test_two_builds_that_differ_are_a_problem_that_names_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(SITE))
    import check

    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        (folder / "api").mkdir(parents=True)
        (folder / "api" / "same.html").write_text("same")
    assert list(check.differences(one, other)) == []
    (one / "api" / "same.html").write_text("made at 12:00")
    (other / "more.js").write_text("")
    assert list(check.differences(one, other)) == [
        "api/same.html: is not the same when it is built again",
        "more.js: is in one of two builds only",
    ]
    del sys.modules["check"]


def test_the_figures_on_the_first_page_are_those_of_the_benchmarks() -> None:
    first = (SITE / "index.md").read_text("utf-8")
    figures = re.findall(r"[\d.]+ ×", first)
    assert len(figures) == 4
    report = (SITE.parent / "benchmarks" / "README.md").read_text("utf-8")
    assert [figure for figure in figures if figure not in report] == []


def test_a_page_has_the_names_under_which_people_look_for_it(gathered: Path) -> None:
    def row(name: str) -> str:
        text = (gathered / "operators" / f"{name}.md").read_text("utf-8")
        return "".join(re.findall(r"^\| also \| (.*) \|$", text, re.MULTILINE))

    assert "`distinctUntilChanged`" in row("distinct_until_changed")
    assert "`mapAsync`" in row("map_concurrent")
    assert "`fromIterable`" in row("from_iterable")
    assert "`withColumn`" in row("map")
    assert row("hide") == ""
