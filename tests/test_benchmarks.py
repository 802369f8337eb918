"""The benchmarks' own arithmetic: what counts as met, as worse, as linear, and what is refused."""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import flow_core as flow
import flow_core.subscribers
import flow_multicast
import flow_ops
import flow_spark

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of the benchmarks, again for each test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(gc, "collect", lambda: 0)  # between all rounds, of all that pytest has
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


class Clock:
    """Time passes when the work says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def takes(self, *seconds: float, result: object = None) -> Callable[[], object]:
        """Work of a number of seconds, round by round."""
        each = itertools.cycle(seconds)

        def work() -> object:
            self.seconds += next(each)
            return result

        return work


def test_a_ratio_is_taken_in_each_round_and_the_first_round_is_not_counted(
    load: Callable[[str], ModuleType],
) -> None:
    rounds, clock = load("rounds"), Clock()
    ratios = rounds.compare(
        "title",
        rounds.Case("floor", clock.takes(99, 1, 2, 3)),
        rounds.Case("slow", clock.takes(0, 4, 6, 50)),
        items=1,
        rounds=3,
        clock=clock,
    )
    assert ratios == {"floor": 1, "slow": 4}
    assert rounds.tables[-1]["rows"][1]["low"] == 3


def test_a_delay_of_a_whole_round_is_in_no_ratio(load: Callable[[str], ModuleType]) -> None:
    rounds, clock = load("rounds"), Clock()
    rounds.compare(
        "title",
        rounds.Case("floor", clock.takes(1, 1, 9, 2)),
        rounds.Case("twice as slow", clock.takes(2, 2, 18, 4)),
        items=1,
        rounds=3,
        clock=clock,
    )
    row = rounds.tables[-1]["rows"][1]
    assert (row["low"], row["ratio"], row["high"]) == (2, 2, 2)


def test_a_case_of_every_second_round_is_compared_with_its_floor_in_those(
    load: Callable[[str], ModuleType],
) -> None:
    rounds = load("rounds")
    floor = rounds.Case("floor", lambda: None, times=[1, 100, 2, 100, 3])
    slow = rounds.Case("slow", lambda: None, times=[5, 10, 15], every=2)
    assert rounds.by_round(slow, [floor, slow]) == [5, 5, 5]


def test_cases_with_different_results_are_refused(load: Callable[[str], ModuleType]) -> None:
    rounds, clock = load("rounds"), Clock()
    with pytest.raises(AssertionError, match=r"title: wrong gave 2, not 1"):
        rounds.compare(
            "title",
            rounds.Case("floor", clock.takes(1, result=1)),
            rounds.Case("wrong", clock.takes(1, result=2)),
            items=1,
            clock=clock,
        )


def test_a_result_that_differs_in_a_later_round_is_refused(
    load: Callable[[str], ModuleType],
) -> None:
    rounds, clock = load("rounds"), Clock()
    results = iter([1, 1, 2])
    with pytest.raises(AssertionError, match=r"title: late gave 2, not 1"):
        rounds.compare(
            "title",
            rounds.Case("floor", clock.takes(1, result=1)),
            rounds.Case("late", lambda: next(results)),
            items=1,
            clock=clock,
        )


def test_a_case_is_compared_with_the_floor_that_it_names(
    load: Callable[[str], ModuleType],
) -> None:
    rounds, clock = load("rounds"), Clock()
    ratios = rounds.compare(
        "title",
        rounds.python("floor", clock.takes(1)),
        rounds.python("its own floor", clock.takes(4)),
        rounds.Case("ours", clock.takes(6), 2.0, beside="its own floor"),
        items=1,
        clock=clock,
    )
    assert ratios == {"floor": 1, "its own floor": 4, "ours": 1.5}
    rows = rounds.tables[-1]["rows"]
    assert [(row["by"], row["beside"]) for row in rows] == [
        ("floor", "floor"),
        ("floor", "floor"),
        ("flow", "its own floor"),
    ]
    assert rows[2]["marks"][0]["met"]


def test_other_libraries_are_timed_in_seven_rounds_however_many_there_are(
    load: Callable[[str], ModuleType],
) -> None:
    rounds, clock = load("rounds"), Clock()
    rounds.compare(
        "title",
        rounds.python("floor", clock.takes(*range(1, 23))),
        rounds.peer("reactivex", clock.takes(1)),
        items=1,
        rounds=21,
        clock=clock,
    )
    floor, reactivex = rounds.tables[-1]["rows"]
    assert (floor["rounds"], reactivex["rounds"]) == (21, 7)
    # The first round is not counted: of the floor it took 1 s.
    assert (reactivex["high"], reactivex["ratio"], reactivex["low"]) == (1 / 2, 1 / 11, 1 / 20)


def test_a_printed_table_is_recorded_with_its_marks(
    load: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "record"
    monkeypatch.setenv("FLOW_BENCH_RECORD", str(record))
    rounds, clock = load("rounds"), Clock()
    rounds.compare(
        "title",
        rounds.python("floor", clock.takes(1)),
        rounds.Case("ours", clock.takes(3), 2.0, 4e6),
        rounds.peer("reactivex, somehow", clock.takes(5)),
        items=1,
        clock=clock,
        key="key",
    )
    [line] = record.read_text("utf-8").splitlines()
    table = json.loads(line)
    assert (table["key"], table["title"], table["rounds"]) == ("key", "title", 7)
    assert [(row["name"], row["by"], row["ratio"]) for row in table["rows"]] == [
        ("floor", "floor", 1),
        ("ours", "flow", 3),
        ("reactivex, somehow", "reactivex", 5),
    ]
    assert table["rows"][1]["marks"] == [
        {"mark": 2.0, "value": 3, "unit": "×", "met": False},
        {"mark": 4e6, "value": 3e6, "unit": "µs", "met": True, "low": 3e6, "high": 3e6},
    ]


@pytest.mark.parametrize(("power", "met"), [(1, True), (2, False)])
def test_a_slope_is_the_power_by_which_time_grows(
    load: Callable[[str], ModuleType], power: int, met: bool
) -> None:
    rounds, clock = load("rounds"), Clock()

    def work(size: int) -> None:
        clock.seconds += size**power

    slopes = rounds.grow(
        "title",
        rounds.Curve("curve", work, 1.05),
        axis="items",
        sizes=(10, 100, 1_000),
        clock=clock,
    )
    assert slopes["curve"] == pytest.approx(power)
    assert rounds.tables[-1]["rows"][0]["marks"][0]["met"] is met


@pytest.mark.parametrize(("of_the_floor", "met"), [(1, False), (2, True)])
def test_a_line_that_bends_at_its_end_misses_a_mark_unless_the_floor_bends_too(
    load: Callable[[str], ModuleType], of_the_floor: int, met: bool
) -> None:
    rounds, clock = load("rounds"), Clock()
    sizes = (1, 10, 100, 1_000, 10_000)

    def work(last: int) -> Callable[[int], None]:
        """Work that takes the same for few items, and as many seconds as items after that."""

        def run(size: int) -> None:
            clock.seconds += max(size, 100) * (last if size == sizes[-1] else 1)

        return run

    rounds.grow(
        "title",
        rounds.Curve("floor", work(of_the_floor)),
        rounds.Curve("curve", work(2), 1.05),
        axis="items",
        sizes=sizes,
        clock=clock,
    )
    slope, end = rounds.tables[-1]["rows"][1]["marks"]
    assert slope["met"]
    assert end["met"] is met


def test_a_size_that_gives_another_result_in_a_later_round_is_refused(
    load: Callable[[str], ModuleType],
) -> None:
    rounds, clock = load("rounds"), Clock()
    calls = itertools.count()

    def work(size: int) -> int:
        clock.seconds += size
        return size + (next(calls) > 5)

    with pytest.raises(AssertionError, match=r"title, \d+ items: curve gave"):
        rounds.grow(
            "title", rounds.Curve("curve", work), axis="items", sizes=(1, 2, 3), clock=clock
        )


def test_bytes_are_those_of_what_holds_the_items(load: Callable[[str], ModuleType]) -> None:
    rounds = load("rounds")
    found = rounds.weigh("title", rounds.Store("list", lambda items: [rounds.ITEM] * items))
    assert found["list"] == pytest.approx(8, abs=0.1)


def test_a_store_that_holds_less_than_it_should_is_refused(
    load: Callable[[str], ModuleType],
) -> None:
    rounds = load("rounds")
    with pytest.raises(AssertionError, match=r"title: lazy holds 49,990 of 50,000 items"):
        rounds.weigh("title", rounds.Store("lazy", lambda items: [rounds.ITEM] * (items - 10)))


def test_a_store_that_does_not_end_by_itself_is_ended_each_time(
    load: Callable[[str], ModuleType],
) -> None:
    rounds = load("rounds")
    kept: list[list[object]] = []

    def fill(items: int) -> list[object]:
        kept.append([rounds.ITEM] * items)
        return kept[-1]

    rounds.weigh("title", rounds.Store("list", fill, free=kept.remove))
    assert not kept


@pytest.fixture
def guarded(
    load: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """The guard of one case, `ratio` times its floor; `again` when it is timed again."""

    def run(*arguments: str, ratio: float, again: float | None = None) -> int:
        guard, rounds, clock = load("guard"), load("rounds"), Clock()

        def case() -> None:
            later = rounds.settings.rounds != guard.ROUNDS
            rounds.compare(
                "title",
                rounds.python("floor", clock.takes(1)),
                rounds.Case("ours", clock.takes(ratio if again is None or not later else again)),
                items=1,
                clock=clock,
                key="key",
            )

        monkeypatch.setattr(guard, "RECORDED", tmp_path / "recorded.json")
        timed = load("cases").CASES
        timed.clear()
        timed["key"] = SimpleNamespace(load=lambda: case)
        found: int = guard.main([*arguments])
        return found

    return run


def test_the_guard_passes_what_is_less_than_half_as_bad_again(
    guarded: Callable[..., int],
) -> None:
    assert guarded("--record", ratio=2) == 0
    assert guarded(ratio=2.9) == 0


def test_the_guard_fails_for_what_is_worse_and_says_by_how_much(
    guarded: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    guarded("--record", ratio=2)
    assert guarded(ratio=3.2) == 1
    assert "key, ours: 3.20 times its floor, and was 2.00: 1.6 times as bad" in (
        capsys.readouterr().out
    )


def test_the_guard_repeats_the_measurements_that_exceed_their_limit(
    guarded: Callable[..., int],
) -> None:
    guarded("--record", ratio=2)
    assert guarded(ratio=9, again=2) == 0


def test_the_guard_fails_for_a_measurement_that_is_not_recorded(
    guarded: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "recorded.json").write_text("{}", "utf-8")
    assert guarded(ratio=1) == 1
    assert "key, ours: nothing is recorded for it" in capsys.readouterr().out


def test_the_guard_holds_another_python_to_the_worst_that_is_recorded(
    guarded: Callable[..., int], tmp_path: Path
) -> None:
    recorded = {"1.4": {"key": {"ours": 2}}, "1.5": {"key": {"ours": 4}}}
    (tmp_path / "recorded.json").write_text(json.dumps(recorded), "utf-8")
    assert guarded(ratio=5.9) == 0
    assert guarded(ratio=6.1) == 1


@pytest.fixture
def compared(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, list[str]]]:
    """Compare trees of which each run takes the next number of seconds, or cannot run if None.

    The result is the exit code, and the trees in the order in which they ran.
    """

    def run(*arguments: str, **trees: Iterator[float | None]) -> tuple[int, list[str]]:
        compare = load("compare")
        order: list[str] = []

        class Tree:
            def __init__(self, folder: Path) -> None:
                self.name = folder.name

            def run(self, case: str, number: int) -> dict[str, object]:
                order.append(self.name)
                if (seconds := next(trees[self.name], None)) is None:
                    raise compare.CaseError("it is new")
                row = {"name": "way", "by": "flow", "best_ns": seconds * 1e9}
                return {"items": 1, "rows": [row]}

            def end(self) -> None:
                pass

        monkeypatch.setattr(compare, "Tree", Tree)
        return compare.main(["REF", *arguments, "--here=here", "--there=there"]), order

    return run


def test_the_first_to_run_changes_from_round_to_round(
    compared: Callable[..., tuple[int, list[str]]],
) -> None:
    ones = itertools.repeat(1.0)
    code, order = compared("zip", "--rounds=3", here=ones, there=ones)
    assert code == 0
    assert order == ["here", "there", "there", "here", "here", "there"]


def test_the_ratio_of_two_trees_is_the_median_of_all_rounds_beside_its_quartiles(
    compared: Callable[..., tuple[int, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    here = iter([1.3, 0.9, 9.0, 1.1, 1.0])
    compared("zip", "--rounds=5", here=here, there=itertools.repeat(1.0))
    row = next(line for line in capsys.readouterr().out.splitlines() if "zip" in line)
    cells = [cell.strip() for cell in row.split("│")[1:-1]]
    assert cells == [
        "zip",
        "way",
        "1100.00",
        "1000.00",
        "1.100",
        "1.000–1.300",
        "within the spread",
    ]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((0.8, 0.9, 1.005, 1.1, 1.2), "no slower"),
        ((0.8, 1.005, 1.1, 1.2, 1.3), "within the spread"),
        ((0.8, 1.1, 1.2, 1.3, 1.4), "slower"),
    ],
)
def test_slower_is_what_takes_a_hundredth_longer_in_three_rounds_of_four(
    load: Callable[[str], ModuleType], ratios: tuple[float, ...], verdict: str
) -> None:
    assert load("compare").Spread.of(ratios).verdict == verdict


@pytest.mark.parametrize(("limit", "code"), [("1.2", 0), ("1.05", 1)])
def test_a_comparison_fails_if_a_lower_quartile_exceeds_the_limit(
    compared: Callable[..., tuple[int, list[str]]], limit: str, code: int
) -> None:
    here = iter([1.3, 0.9, 1.1, 1.2, 1.1])
    there = itertools.repeat(1.0)
    assert compared("zip", "--rounds=5", f"--limit={limit}", here=here, there=there)[0] == code


def test_a_case_that_cannot_run_at_the_other_commit_is_named_and_left_out(
    compared: Callable[..., tuple[int, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    ones = itertools.repeat(1.0)
    # `zip` runs once there, `concat` does not, `zip` runs again.
    there = iter([1.0, None, 1.0])
    code, order = compared("zip", "concat", "--rounds=2", here=ones, there=there)
    assert code == 0
    assert order == ["here", "there", "here", "there", "there", "here"]
    out = capsys.readouterr().out
    assert "concat cannot run at REF: it is new" in out
    assert "│ zip" in out


def test_an_unknown_case_is_refused_with_those_that_exist(
    compared: Callable[..., tuple[int, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        compared("zip", "zap")
    assert "no case is called zap; there are chain-1, chain-3," in capsys.readouterr().err


def results(java: list[dict[str, Any]]) -> dict[str, Any]:
    """Of one case of three ways, as a script records it."""
    mark = {"mark": 1.2, "value": 1.1, "unit": "×", "met": True}
    rows = [
        {"name": "a loop", "by": "floor", "ns": 10.0, "ratio": 1.0, "marks": []},
        {"name": "iterated", "by": "flow", "ns": 11.0, "ratio": 1.1, "marks": [mark]},
        {
            "name": "subscribed",
            "by": "flow",
            "ns": 20.0,
            "ratio": 2.0,
            "marks": [mark | {"value": 2.0, "met": False}],
        },
    ]
    table = {
        "kind": "compare",
        "key": "chain-1",
        "title": "title",
        "unit": "item",
        "items": 1,
        "rounds": 7,
        "clock": "CPU",
        "rows": rows,
    }
    facts = {"Python": "CPython", "minutes": "1"}
    return {"facts": facts, "failed": [], "tables": [table], "rxjava": java}


def test_the_report_names_what_was_missed_first_and_counts_what_was_met(
    load: Callable[[str], ModuleType],
) -> None:
    page = load("pages").overview(results([]))
    assert "1 of 2 are met." in page
    assert page.index("| subscribed | ≤ 1.2 × | 2.00 × |  | **missed** |") < page.index(
        "| iterated | ≤ 1.2 × | 1.10 × |  | met |"
    )


def test_the_report_sets_rxjava_beside_the_way_of_the_same_name(
    load: Callable[[str], ModuleType],
) -> None:
    java = [{"key": "chain-1", "name": "subscribed", "ratio": 7.0}]
    page = load("pages").overview(results(java))
    assert "| subscribed | **this library** | 20 | 2.00 |  | **>** 1.2 | 7.00 |" in page
    assert "| iterated | **this library** | 11 | 1.10 |  | ≤ 1.2 |  |" in page


def test_the_report_says_where_rxjava_adds_less_to_its_loop(
    load: Callable[[str], ModuleType],
) -> None:
    java = [
        {"key": "chain-1", "name": "iterated", "ratio": 7.0, "low": 6.0, "high": 8.0},
        {"key": "chain-1", "name": "subscribed", "ratio": 1.5, "low": 1.4, "high": 1.6},
        {"key": "chain-1", "name": "hidden", "ratio": 1.0},
        {"key": "chain-2", "name": "subscribed", "ratio": 1.0},
    ]
    page = load("pages").overview(results(java))
    section = page.partition("## RxJava's mark")[2].partition("\n## ")[0]
    assert "1 of 2 are met." in section
    missed = "| chain-1 | subscribed | 2.00 |  | 1.50 | 1.40–1.60 | **missed** |"
    assert section.index(missed) < section.index("| chain-1 | iterated | 1.10 |")
    assert "hidden" not in section


def test_the_report_has_a_row_for_each_python_beside_its_own(
    load: Callable[[str], ModuleType],
) -> None:
    def row(ratio: float, time: float) -> list[dict[str, Any]]:
        return [{"case": "zip", "way": "zip", "ratio": ratio, "time": time}]

    found = results([]) | {"pythons": {"3.12": row(2.0, 1.5), "3.13": row(1.5, 1.0)}}
    found["facts"]["Python"] = "CPython 3.13.0"
    page = load("pages").overview(found)
    section = page.partition("## On each Python")[2].partition("\n## ")[0]
    assert "| ratio to the floor | zip: zip |" in section
    assert "| 3.12 | 2.00 |\n| 3.13 | 1.50 |" in section
    assert "| time, 3.13 = 1 | zip: zip |" in section
    assert "| 3.12 | 1.50 |\n| 3.13 | 1.00 |" in section


def test_each_python_runs_the_cases_and_the_first_one_changes(
    load: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The median is written, and the page is made again from the records."""
    pythons = load("pythons")
    pages = load("pages")
    monkeypatch.setattr(pages, "ON_EACH_PYTHON", (("zip", "zip"),))
    order: list[str] = []
    ratios = iter((1.0, 5.0, 6.0, 2.0, 3.0, 7.0))

    class Tree:
        def __init__(self, folder: Path, python: str, env: dict[str, str]) -> None:
            self.name = folder.name
            assert python == str(folder / "bin" / "python")
            assert ("PYTHON_JIT" in env) == (folder.name == "jit")

        def run(self, case: str, number: int) -> dict[str, object]:
            assert case == "zip"
            order.append(self.name)
            ratio = next(ratios)
            other = {"name": "zip of hidden flows", "ratio": 0.0, "ns": 0.0}
            return {"rows": [other, {"name": "zip", "ratio": ratio, "ns": 10 * ratio}]}

        def end(self) -> None:
            pass

    monkeypatch.setattr(pythons, "Tree", Tree)
    written: list[dict[str, Any]] = []
    monkeypatch.setattr(pythons.report, "write_pages", lambda found, _: written.append(found))
    known = results([])
    known["facts"]["Python"] = "CPython 3.13.0"
    (tmp_path / "results.json").write_text(json.dumps(known), "utf-8")
    named = ("--python", "3.13", "plain", "--python", "3.15 with the JIT", "jit")
    assert pythons.main([*named, "--rounds=3", f"--output={tmp_path}"]) == 0
    assert order == ["plain", "jit", "jit", "plain", "plain", "jit"]
    [found] = written
    assert found["tables"] == results([])["tables"]
    assert [rows[0]["ratio"] for rows in found["pythons"].values()] == [2.0, 6.0]
    assert [rows[0]["time"] for rows in found["pythons"].values()] == [1.0, 3.0]


def test_the_report_says_how_many_marks_of_both_pages_are_met(
    load: Callable[[str], ModuleType],
) -> None:
    found = results([])
    [table] = found["tables"]
    found["tables"].append(table | {"key": None})
    page = load("pages").overview(found)
    assert "Of all marks, with those of [the details](details.md), 2 of 4 are met." in page
    assert "\n1 of 2 are met." in page


def test_the_report_says_which_cases_had_fewer_rounds(
    load: Callable[[str], ModuleType],
) -> None:
    found = results([])
    iterated, subscribed = found["tables"][0]["rows"][1:]
    iterated["rounds"] = subscribed["rounds"] = 4
    assert "7 rounds, but 4 of iterated and subscribed" in load("pages").overview(found)


def test_all_that_the_guard_times_is_recorded(load: Callable[[str], ModuleType]) -> None:
    recorded = json.loads((BENCHMARKS / "recorded.json").read_text("utf-8"))
    timed = load("cases").CASES
    for python, ratios in recorded.items():
        for key, ways in ratios.items():
            assert key in timed, f"{python} has ratios of {key}, which is not timed"
            assert all(ratio > 0 for ratio in ways.values())


RESULTS = BENCHMARKS.parent / "docs" / "benchmarks" / "results.json"


def test_the_ways_of_this_library_are_named_after_what_exists() -> None:
    known = {
        *dir(flow.Flow),
        *dir(flow),
        *dir(flow_multicast),
        *dir(flow_ops),
        *dir(flow_spark),
        *dir(flow_core.subscribers),
    }
    results = json.loads(RESULTS.read_text())
    names = [
        (row["name"], word)
        for table in results["tables"]
        for row in table["rows"]
        if row["by"] == "flow" and table["key"]
        for word in re.findall(r"[a-z]+_[a-z_]+|[A-Z][a-z]+[A-Z]\w+", row["name"])
    ]
    assert [(name, word) for name, word in names if word not in known] == []


def test_the_report_begins_with_one_table_of_what_a_visitor_asks_first(
    load: Callable[[str], ModuleType],
) -> None:
    pages = load("pages")
    page = pages.overview(json.loads(RESULTS.read_text()))
    first = page[: page.index("## ")]
    for words, _, _, _ in pages.AT_A_GLANCE:
        assert f"| {words} |" in first
    assert page.index("## The cases") < page.index("## The marks")
