"""The generated pages are what the code says, and the code does what they say."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from flow_core import Flow
from flow_core.plugins import Backpressure, Kind
from flow_core.protocols import Fusion
from flow_testing.facts import Fusable, granted

DOCS = Path(__file__).parent.parent / "docs"


def _load() -> Any:  # Any: a script, which is not a module of a package
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    if spec is None or spec.loader is None:
        raise ImportError("docs/generate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


generate = _load()
HOST = generate.hosts()
ROWS = {row.record.name: row for row in generate.operators(HOST)}
SOURCES = generate._sources(HOST)


def cells(page: str, name: str) -> list[str]:
    """The cells of the first row of an operator, a source or a processor."""
    lines = (DOCS / page).read_text("utf-8").splitlines()
    line = next(line for line in lines if line.startswith(f"| `{name}`"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def matrix(name: str) -> dict[str, str]:
    """A row of the fusion matrix by its columns."""
    lines = (DOCS / "fusion-matrix.md").read_text("utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| `{name}`"))
    head = next(lines[i - 1] for i in range(at, 0, -1) if lines[i].startswith("| ---"))
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    return dict(zip(columns, cells("fusion-matrix.md", name), strict=True))


@pytest.mark.checklist("F11", "F12", "F22")
def test_the_pages_are_what_the_generator_writes() -> None:
    difference = generate.stale()
    assert not difference, f"run: python docs/generate.py\n{difference}"


def test_the_check_tells_what_differs_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "FOLDER", tmp_path)
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    page = tmp_path / "operators.md"
    page.write_text(page.read_text("utf-8").replace("The result of", "Something"), "utf-8")
    assert generate.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert "-| `map` | Something" in said
    assert "+| `map` | The result of" in said
    assert "python docs/generate.py" in said


@pytest.mark.parametrize(
    ("fact", "wrong"),
    [
        ("asks", Fusion.NONE),
        ("answers", Fusion.SYNC | Fusion.THREAD_BOUNDARY),
        ("conditional", False),
        ("backpressure", Backpressure.UNBOUNDED_IN),
    ],
)
def test_a_record_that_says_what_is_not_so_is_refused(fact: str, wrong: object) -> None:
    row = ROWS["map"]
    generate._compare(row)
    lying = dataclasses.replace(row, record=dataclasses.replace(row.record, **{fact: wrong}))
    with pytest.raises(generate.MismatchError, match="map: its record says"):
        generate._compare(lying)


def test_the_error_for_a_parameter_type_without_a_sample_names_the_parameter() -> None:
    def odd(shape: bytearray) -> None: ...

    with pytest.raises(generate.MismatchError, match=r"odd: no sample for .*'shape'.*SAMPLES"):
        generate.ways("odd", odd)


def test_every_operator_of_the_packages_is_on_both_pages() -> None:
    registered = {
        name
        for name, found in HOST.operators.items()
        if found.plugin.distribution in generate.PACKAGES
    }
    assert registered == set(ROWS)
    for name in registered:
        assert cells("operators.md", name)[1] == ROWS[name].record.summary
        assert matrix(name)


def test_every_source_of_the_packages_is_in_the_matrix() -> None:
    assert set(SOURCES) == {
        name
        for name, found in HOST.sources.items()
        if found.plugin.distribution in generate.PACKAGES
    }
    assert all(matrix(name) for name in SOURCES)


@pytest.mark.checklist("F02", "F03", "F55")
@pytest.mark.parametrize(
    ("name", "scalar"), [("just", "yes"), ("empty", "yes"), ("from_callable", "–")]
)
def test_just_empty_and_from_callable_are_what_macro_fusion_looks_at(
    name: str, scalar: str
) -> None:
    assert (matrix(name)["scalar"], matrix(name)["callable"]) == (scalar, "yes")


@pytest.mark.checklist("F56")
@pytest.mark.parametrize("name", ["range", "from_iterable"])
def test_sources_of_iterators_are_polled_with_sync(name: str) -> None:
    assert (matrix(name)["SYNC"], matrix(name)["THREAD_BOUNDARY"]) == ("yes", "yes")


@pytest.mark.checklist("F56")
def test_the_unicast_processor_shares_its_queue() -> None:
    assert (matrix("UnicastProcessor")["ASYNC"], matrix("UnicastProcessor")["SYNC"]) == ("yes", "–")


@pytest.mark.checklist("F39", "F56")
@pytest.mark.parametrize(
    ("name", "roles", "across"),
    [
        ("map", {"transitive"}, "–"),
        ("filter", {"transitive"}, "–"),
        ("take", {"transitive"}, "yes"),
        ("distinct", {"transitive"}, "without a function"),
        ("concat_map", {"front"}, "–"),
        ("observe_on", {"front", "back"}, "yes"),
        ("hide", set(), "–"),
    ],
)
def test_an_operator_has_its_role_in_fusion(name: str, roles: set[str], across: str) -> None:
    row = matrix(name)
    assert {role for role in ("front", "back", "transitive") if row[role] == "yes"} == roles
    assert row["THREAD_BOUNDARY"] == across


@pytest.mark.checklist("F35", "F36")
@pytest.mark.parametrize("name", sorted(ROWS))
def test_an_operator_that_takes_no_part_grants_nothing(name: str) -> None:
    """It must not hand the upstream's subscription on."""
    row = ROWS[name]
    if not row.seen.asks and not row.seen.back:
        assert row.seen.answers is Fusion.NONE
    if row.record.kind is Kind.STAGE:
        assert row.seen.transitive


@pytest.mark.checklist("F23")
@pytest.mark.parametrize("answer", [Fusion.ASYNC, Fusion.ANY, Fusion.THREAD_BOUNDARY])
def test_an_answer_that_was_not_asked_for_is_found(answer: Fusion) -> None:
    class Wrong(Fusable):
        def request_fusion(self, mode: Fusion, /) -> Fusion:
            return answer

    with pytest.raises(AssertionError, match=r"answers .* to <Fusion.SYNC"):
        granted(Flow(Wrong(Fusion.NONE)), Fusion.SYNC)


def test_blocks_with_prompts_say_python_so_that_they_run() -> None:
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md"), *DOCS.parent.glob("packages/*/*.md")]
    assert [page.name for page in pages if "```pycon" in page.read_text("utf-8")] == []
