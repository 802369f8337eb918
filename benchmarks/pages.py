"""The pages of the report, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Entry = dict[str, Any]  # Any: what JSON holds; rounds.py says what that is

INTRODUCTION = """\
# Benchmarks

What `nox -s bench` found on one machine; run it to see what it finds on yours. Each case is timed
beside the least that could do its work, the floor, and beside other libraries, in turn, round by
round. Results must be equal. A figure is the median of the rounds, the spread is from the fastest
round to the slowest. Ratios are to the floor: those hold on other machines, nanoseconds do not.
CPU time counts, but wall time where threads wait for each other, and on Spark.

How it is done, and what each script measures: [benchmarks](../../benchmarks/README.md). Where the
time goes: [performance](../design/performance.md). Every figure: [results.json](results.json).
The tables that are not here, of single stages and of debugging: [details](details.md).
"""

RXJAVA = """\
RxJava 3 does the same work in Java, beside the same loop in Java, each case in a virtual machine of
its own after a warm-up. Only its ratios say something here: a loop costs less in Java, and more of
it is compiled away, so that all that is done beside it weighs more.
"""

LEGEND = """\
A red line is a mark; a hollow circle is a way of this library that has none. Rows are named after
the tables below.
"""

SLOPES = """\
Both axes are logarithmic. The slope is that of the straight line nearest to the points: 1 is in
proportion.
"""

DETAILS = """\
Tables that [the report](README.md) has no room for. What is measured, and why, is in
[benchmarks](../../benchmarks/README.md).
"""


def overview(results: Entry) -> str:
    """The first page: the machine, the marks, the pictures, and the tables of all cases."""
    tables, java = results["tables"], results["rxjava"]
    chief = [table for table in tables if _chief(table)]
    parts = [INTRODUCTION, "## The machine\n", _facts(results["facts"])]
    if results["failed"]:
        parts.append(f"These scripts failed: {', '.join(results['failed'])}.\n")
    parts += [
        "## The marks\n",
        _marks(chief, java),
        "## At a glance\n",
        "![The ratio of each case to its floor, on a logarithmic axis](ratios.svg)\n",
        LEGEND,
        "## The cases\n",
    ]
    if java:
        parts.append(RXJAVA)
    parts += [_case(table, java) for table in chief if table["kind"] == "compare"]
    growing = [table for table in chief if table["kind"] == "grow"]
    if growing:
        parts += [
            "## How time grows\n",
            SLOPES,
            "![How the time of each case grows](growth.svg)\n",
            *(_growth(table) for table in growing),
        ]
    parts += ["## What waits, and what is kept\n"]
    parts += [_weights(table) for table in chief if table["kind"] == "weigh"]
    return "\n".join(parts).rstrip() + "\n"


def details(results: Entry) -> str:
    """The second page: all other tables."""
    rest = [table for table in results["tables"] if not _chief(table)]
    parts = [
        "# Benchmarks in detail\n",
        DETAILS,
        _marks(rest, []),
    ]
    parts += [_pairs(table) if table["kind"] == "versus" else _case(table, []) for table in rest]
    return "\n".join(parts).rstrip() + "\n"


def rounded(value: object) -> object:
    """The same, with four digits of each figure: more would only be noise in a difference."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return value


def rxjava_of(table: Entry, row: Entry, java: Sequence[Entry]) -> Entry | None:
    """What RxJava does in the same case, in the same way."""
    if row["by"] != "flow" or "hidden" in row["name"]:
        return None
    for each in java:
        if each["key"] == table["key"] and _words(each["name"]) <= _words(row["name"]):
            return each
    return None


def _words(name: str) -> set[str]:
    """Its words, as they are in both languages: `flat_map` is flatMap."""
    return set(name.lower().replace("_", "").replace(",", "").split())


def _chief(table: Entry) -> bool:
    return bool(table["key"]) or table["kind"] in ("grow", "weigh")


def _facts(facts: dict[str, str]) -> str:
    rows = [(name, value) for name, value in facts.items() if name != "minutes"]
    rows.append(("the whole run", f"{facts['minutes']} minutes"))
    return _table(("", ""), rows)


def _marks(tables: Sequence[Entry], java: Sequence[Entry]) -> str:
    rows: list[tuple[bool, tuple[str, ...]]] = []
    for table in tables:
        for row in table["rows"]:
            for mark in row["marks"]:
                theirs = rxjava_of(table, row, java)
                in_us = mark["unit"] == "µs"
                rows.append(
                    (
                        mark["met"],
                        (
                            table["key"] or table["title"],
                            row["name"],
                            f"≤ {_limit(mark['mark'])}{_unit(mark['unit'])}",
                            f"{_value(mark)}{_unit(mark['unit'])}",
                            _spread(row, row["ns"] / row["ratio"] / 1e3 if in_us else 1),
                            "met" if mark["met"] else "**missed**",
                            f"{_figure(theirs['ratio'])} ×" if theirs else "",
                        ),
                    )
                )
    if not rows:
        return ""
    headings = ("case", "way", "mark", "measured", "spread", "", "RxJava 3")
    columns = len(headings) if java else len(headings) - 1
    rows.sort(key=lambda row: row[0])  # what is missed comes first
    met = sum(met for met, _ in rows)
    return f"{met} of {len(rows)} are met.\n\n" + _table(
        headings[:columns], [row[:columns] for _, row in rows]
    )


def _value(mark: Entry) -> str:
    """As many digits as show on which side of the mark it is."""
    return f"{mark['value']:.3f}" if mark["unit"] == "slope" else _figure(mark["value"])


def _unit(unit: str) -> str:
    return {"slope": "", "µs": " µs", "×": " ×", "bytes": " bytes"}[unit]


def _case(table: Entry, java: Sequence[Entry]) -> str:
    theirs = {row["name"]: rxjava_of(table, row, java) for row in table["rows"]}
    rows: list[tuple[str, ...]] = [
        (
            row["name"],
            {"floor": "the floor", "flow": "**this library**"}.get(row["by"], ""),
            f"{row['ns']:,.0f}",
            _figure(row["ratio"]),
            _spread(row),
            ", ".join(_verdict(mark) for mark in row["marks"]),
            f"{_figure(found['ratio'])}" if (found := theirs[row["name"]]) else "",
        )
        for row in table["rows"]
    ]
    unit = table["unit"]
    headings = ("case", "", f"ns / {unit}", "ratio", "spread", "mark", "RxJava 3")
    columns = len(headings) if any(theirs.values()) else len(headings) - 1
    about = f"{table['items']:,} {unit}s, {table['rounds']} rounds"
    return (
        f"{_heading(table)}\n"
        + _table(headings[:columns], [row[:columns] for row in rows])
        + f"\n<sub>{about}, {table['clock']} time</sub>\n"
    )


def _pairs(table: Entry) -> str:
    rows = [
        (
            row["name"],
            f"{row['ns']:,.0f}",
            f"{row['beside_ns']:,.0f}",
            _figure(row["ratio"]),
            _spread(row),
            ", ".join(_verdict(mark) for mark in row["marks"]),
        )
        for row in table["rows"]
    ]
    headings = ("case", *(f"{way}, ns" for way in table["ways"]), "ratio", "spread", "mark")
    return f"{_heading(table)}\n" + _table(headings, rows)


def _growth(table: Entry) -> str:
    rows = [
        (
            row["name"],
            *(_figure(seconds * 1e6) for seconds in row["seconds"]),
            _figure(row["ratio"]),
            _spread(row),
            ", ".join(_verdict(mark) for mark in row["marks"]),
        )
        for row in table["rows"]
    ]
    sizes = [f"{size:,}" for size in table["sizes"]]
    headings = (f"µs for so many {table['axis']}", *sizes, "slope", "spread", "mark")
    return f"{_heading(table)}\n" + _table(headings, rows)


def _weights(table: Entry) -> str:
    rows = [
        (
            row["name"],
            "**this library**" if row["by"] == "flow" else "",
            f"{row['ratio']:.1f}",
            ", ".join(_verdict(mark) for mark in row["marks"]),
        )
        for row in table["rows"]
    ]
    return f"{_heading(table)}\n" + _table(("case", "", "bytes / item", "mark"), rows)


def _heading(table: Entry) -> str:
    key = f"{table['key']}: " if table["key"] else ""
    return f"### {key}{table['title']}\n"


def _verdict(mark: Entry) -> str:
    met = "≤" if mark["met"] else "**>**"
    return f"{met} {_limit(mark['mark'])}{_unit(mark['unit']).replace(' ×', '')}"


def _limit(mark: float) -> str:
    return f"{mark:g}"


def _figure(value: float) -> str:
    """Three digits or more, and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _spread(row: Entry, unit: float = 1) -> str:
    if "low" not in row:
        return ""
    return f"{_figure(row['low'] * unit)}–{_figure(row['high'] * unit)}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; all columns but the first are right-aligned."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (headings, *rows)]
    rule = ["---", *["--:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])) + "\n"
