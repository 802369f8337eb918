"""The pages of the report, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Entry = dict[str, Any]  # Any: what JSON holds; rounds.py says what that is

INTRODUCTION = """\
# Benchmarks

What `nox -s bench` found on one machine; run it to see what it finds on yours.

"""

SHORT = """\
What one item costs, in plain Python and in libraries that do the same work. *Plain* is the least
code by hand that gives the same result; a figure below 1 is faster than that.
"""

METHOD = """\
Each case is timed beside the least that could do its work, the floor, and beside other libraries,
in turn, round by round. In each round the results must be equal, and has its own ratio to the
floor. A figure is the median of the rounds, and the spread is from the least to the greatest.
Ratios hold on other machines, nanoseconds do not. CPU time counts, but wall time where threads wait
for each other, and on Spark.

What each script measures: [benchmarks](../../benchmarks/README.md). Where the time goes:
[performance](../design/performance.md). Every figure: [results.json](results.json). The tables that
are not here, of single stages and of debugging: [details](details.md).
"""

AT_A_GLANCE: Sequence[tuple[str, str, str, tuple[str, ...]]] = (
    ("three stages, `map` and `filter`, in a `for` loop", "chain-3", "iterated", ()),
    ("the same, each item to a function", "chain-3", "subscribed", ()),
    ("`async for` over a `map`", "async-for", "async for", ()),
    ("ten coroutines at a time, results in order", "ten-at-a-time", "map_concurrent", ()),
    (
        "items to another thread, 128 on their way",
        "observe-on",
        "observe_on, prefetch 128",
        ("observe-on-peers",),
    ),
    ("a whole flow of one item, assembled before", "one-element-assembled", "subscribed", ()),
)
"""The questions of a new visitor.

Each has its words, its table, this library's way, and the tables that have peers where the first
table has none.
"""

PEERS = ("reactivex", "streamable", "aiostream")

ON_EACH_PYTHON: Sequence[tuple[str, str]] = (
    ("chain-3", "iterated"),
    ("chain-3", "subscribed"),
    ("async-for", "async for"),
    ("one-element-assembled", "subscribed"),
    ("map-just", "flat_map, subscribed"),
    ("observe-on", "observe_on, prefetch 128"),
    ("group-by", "group_by, each group subscribed"),
    ("multicast-16", "MulticastProcessor"),
)
"""The tables and ways to measure on each Python."""

RXJAVA = """\
RxJava 3 does the same work in Java, beside the same loop in Java, each case in a virtual machine of
its own after a warm-up. Only its ratios say something here. Each item is stored where the compiler
has to leave it, by the loop as by RxJava; but a loop still costs less in Java, so that all that is
done beside it weighs more.
"""

RXJAVA_MARK = """\
Each case that RxJava 3 has in the same way: what it costs to do the work by a library, in units of
the loop of the same language. It is met where this library adds no more to its loop than RxJava to
its own.
"""

PYTHONS = """\
What `nox -s bench_pythons` found: the cases in the sizes of `nox -s guard`, each Python in turn, in
separate processes. First the ratio to the floor on the same Python, which is what the library
adds to plain Python there; then the time of an item in units of that on {beside}, which is how fast
flows are there. That also depends on how the interpreter was built: without profile-guided
optimisation, all takes longer, the floor too.
"""

LEGEND = """\
A red line is a mark; a hollow circle is a way of this library that has none. Rows are named after
the tables below.
"""

SLOPES = """\
Both axes are logarithmic. The slope is that of the straight line nearest to the points: 1 is in
proportion. The end is the slope of the last three sizes, less that of the first line, the floor: it
is above 0 for what bends upwards where the floor does not.
"""

DETAILS = """\
Tables that [the report](README.md) has no room for. What is measured, and why, is in
[benchmarks](../../benchmarks/README.md).
"""


def plural(unit: str) -> str:
    """Return the plural of a unit: ``assemblies`` for ``assembly``."""
    return f"{unit[:-1]}ies" if unit.endswith("y") else f"{unit}s"


def overview(results: Entry) -> str:
    """Return the first page: the machine, the marks, the pictures, and the tables of all cases."""
    tables, java = results["tables"], results["rxjava"]
    chief = [table for table in tables if _chief(table)]
    parts = [INTRODUCTION + SHORT, _short(tables)]
    if results["failed"]:
        parts.append(f"These scripts failed: {', '.join(results['failed'])}.\n")
    parts += [
        "## At a glance\n",
        "![The ratio of each case to its floor, on a logarithmic axis](ratios.svg)\n",
        LEGEND,
        "## How it is done\n",
        METHOD,
        _facts(results["facts"]),
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
    if pythons := results.get("pythons"):
        parts += ["## On each Python\n", _pythons(pythons, version_of(results))]
    parts += ["## What waits, and what is kept\n"]
    parts += [_weights(table) for table in chief if table["kind"] == "weigh"]
    parts += ["## The marks\n", _total(tables), _marks(chief, java)]
    if java:
        parts += ["## RxJava's mark\n", RXJAVA_MARK, _beside_rxjava(chief, java)]
    return "\n".join(parts).rstrip() + "\n"


def details(results: Entry) -> str:
    """Return the second page: all other tables."""
    rest = [table for table in results["tables"] if not _chief(table)]
    parts = [
        "# Benchmarks in detail\n",
        DETAILS,
        _marks(rest, []),
    ]
    parts += [_pairs(table) if table["kind"] == "versus" else _case(table, []) for table in rest]
    return "\n".join(parts).rstrip() + "\n"


def rounded(value: object) -> object:
    """Return the value with figures of four digits: more would only be noise in a difference."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return value


def rxjava_of(table: Entry, row: Entry, java: Sequence[Entry]) -> Entry | None:
    """Return RxJava's result in the same case, in the way of the same name."""
    for each in java:
        if row["by"] == "flow" and (each["key"], each["name"]) == (table["key"], row["name"]):
            return each
    return None


def _short(tables: Sequence[Entry]) -> str:
    """Return the table of a new visitor's questions; it omits cases that were not measured."""
    by_key = {table["key"]: table for table in tables if table.get("key")}
    rows: list[tuple[str, ...]] = []
    for words, key, way, others in AT_A_GLANCE:
        table = by_key.get(key)
        ours = _row(table, way) if table else None
        if table is None or ours is None:
            continue
        plain = table["rows"][0]
        peers = [_beside(by_key, (key, *others), way, ours, peer) for peer in PEERS]
        here = f"{_time(ours['ns'])}, {_figure(ours['ns'] / plain['ns'])} ×"
        rows.append((words, f"{plain['name']}: {_time(plain['ns'])}", f"**{here}**", *peers))
    headings = ("", "plain", "this library", "RxPY (reactivex)", *PEERS[1:])
    return _table(headings, rows)


def _beside(by_key: dict[str, Entry], keys: Sequence[str], way: str, ours: Entry, peer: str) -> str:
    """Return a peer's time relative to the plain way, by way of this library's figure there."""
    for table in (by_key[key] for key in keys if key in by_key):
        here = _row(table, way)
        theirs = next((row for row in table["rows"] if row["name"].startswith(peer)), None)
        if here is not None and theirs is not None:
            plain = by_key[keys[0]]["rows"][0]["ns"]
            return f"{_figure(ours['ns'] / plain * theirs['ns'] / here['ns'])} ×"
    return ""


def _row(table: Entry, name: str) -> Entry | None:
    return next((row for row in table["rows"] if row["name"] == name), None)


def _time(ns: float) -> str:
    return f"{ns / 1000:,.1f} µs" if ns >= 1000 else f"{ns:,.0f} ns"


def _chief(table: Entry) -> bool:
    return bool(table["key"]) or table["kind"] in ("grow", "weigh")


def _facts(facts: dict[str, str]) -> str:
    rows = [(name, value) for name, value in facts.items() if name != "minutes"]
    rows.append(("the whole run", f"{facts['minutes']} minutes"))
    return _table(("", ""), rows)


def version_of(results: Entry) -> str:
    """Return the Python version of the report, such as 3.13."""
    said: str = results["facts"]["Python"]
    return ".".join(said.rsplit(maxsplit=1)[-1].split(".")[:2])


def _pythons(pythons: dict[str, list[Entry]], beside: str) -> str:
    """Return a row for each Python: its ratios, and its times relative to the report's Python."""
    ratios, times = (
        [(name, *(_figure(row[figure]) for row in rows)) for name, rows in pythons.items()]
        for figure in ("ratio", "time")
    )
    headings = [f"{row['case']}: {row['way']}" for row in pythons[beside]]
    return "\n".join(
        (
            PYTHONS.format(beside=beside),
            _table(("ratio to the floor", *headings), ratios),
            _table((f"time, {beside} = 1", *headings), times),
        )
    )


def _total(tables: Sequence[Entry]) -> str:
    """Return the sentence on the number of marks on both pages, and of those that are met."""
    marks = [mark for table in tables for row in table["rows"] for mark in row["marks"]]
    met = sum(mark["met"] for mark in marks)
    return (
        f"Of all marks, with those of [the details](details.md), {met} of {len(marks)} are met. "
        "Of those on this page:\n"
    )


def _beside_rxjava(tables: Sequence[Entry], java: Sequence[Entry]) -> str:
    """Return the table of cases beside RxJava: first those in which its ratio is smaller."""
    both = [
        (table["key"], row, theirs)
        for table in tables
        for row in table["rows"]
        if (theirs := rxjava_of(table, row, java))
    ]
    both.sort(key=lambda each: each[1]["ratio"] <= each[2]["ratio"])  # missed ones come first
    met = sum(row["ratio"] <= theirs["ratio"] for _, row, theirs in both)
    rows = [
        (
            key,
            row["name"],
            _figure(row["ratio"]),
            _spread(row),
            _figure(theirs["ratio"]),
            _spread(theirs),
            "met" if row["ratio"] <= theirs["ratio"] else "**missed**",
        )
        for key, row, theirs in both
    ]
    headings = ("case", "way", "this library", "spread", "RxJava 3", "spread", "")
    return f"{met} of {len(rows)} are met.\n\n" + _table(headings, rows)


def _marks(tables: Sequence[Entry], java: Sequence[Entry]) -> str:
    rows: list[tuple[bool, tuple[str, ...]]] = []
    for table in tables:
        for row in table["rows"]:
            for mark in row["marks"]:
                theirs = rxjava_of(table, row, java)
                rows.append(
                    (
                        mark["met"],
                        (
                            table["key"] or table["title"],
                            row["name"],
                            f"≤ {_limit(mark['mark'])}{_unit(mark['unit'])}",
                            f"{_value(mark)}{_unit(mark['unit'])}",
                            _spread(mark if "low" in mark else row),
                            "met" if mark["met"] else "**missed**",
                            f"{_figure(theirs['ratio'])} ×" if theirs else "",
                        ),
                    )
                )
    if not rows:
        return ""
    headings = ("case", "way", "mark", "measured", "spread", "", "RxJava 3")
    columns = len(headings) if java else len(headings) - 1
    rows.sort(key=lambda row: row[0])  # missed ones come first
    met = sum(met for met, _ in rows)
    return f"{met} of {len(rows)} are met.\n\n" + _table(
        headings[:columns], [row[:columns] for _, row in rows]
    )


def _value(mark: Entry) -> str:
    """Return the value with enough digits to show on which side of the mark it is."""
    figure = _figure(mark["value"])
    near = abs(mark["value"] - mark["mark"]) < 0.005
    return f"{mark['value']:.3f}" if near or mark["unit"] in ("slope", "bend") else figure


def _unit(unit: str) -> str:
    return {"slope": "", "bend": " at the end", "µs": " µs", "×": " ×", "bytes": " bytes"}[unit]


def _case(table: Entry, java: Sequence[Entry]) -> str:
    theirs = {row["name"]: rxjava_of(table, row, java) for row in table["rows"]}
    rows: list[tuple[str, ...]] = [
        (
            row["name"],
            _whose(table, row),
            f"{row['ns']:,.0f}",
            _figure(row["ratio"]),
            _spread(row),
            ", ".join(_verdict(mark) for mark in row["marks"]),
            f"{_figure(found['ratio'])}" if (found := theirs[row["name"]]) else "",
            _spread(found) if found else "",
        )
        for row in table["rows"]
    ]
    unit = table["unit"]
    headings = ("case", "", f"ns / {unit}", "ratio", "spread", "mark", "RxJava 3", "spread")
    columns = len(headings) if any(theirs.values()) else len(headings) - 2
    about = f"{table['items']:,} {plural(unit)}, {_rounds(table)}"
    return (
        f"{_heading(table)}\n"
        + _table(headings[:columns], [row[:columns] for row in rows])
        + f"\n<sub>{about}, {table['clock']} time</sub>\n"
    )


def _whose(table: Entry, row: Entry) -> str:
    """Return the owner of a row, and the case it is compared with if that is not the first."""
    first = table["rows"][0]["name"]
    if row["by"] == "floor":
        return "the floor" if row["name"] == first else "a floor"
    whose = "**this library**" if row["by"] == "flow" else ""
    beside = row.get("beside", first)
    return whose if beside == first else f"{whose} beside {beside}"


def _rounds(table: Entry) -> str:
    """Return the number of rounds, and the cases that had a different number."""
    fewer: dict[int, list[str]] = {}
    for row in table["rows"]:
        if (count := row.get("rounds", table["rounds"])) != table["rounds"]:
            fewer.setdefault(count, []).append(row["name"])
    others = [f"{count} of {' and '.join(names)}" for count, names in fewer.items()]
    return ", but ".join([f"{table['rounds']} rounds", *filter(None, ["; ".join(others)])])


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
    about = f"{table['items']:,} items, {_rounds(table)}, {table['clock']} time"
    return f"{_heading(table)}\n" + _table(headings, rows) + f"\n<sub>{about}</sub>\n"


def _growth(table: Entry) -> str:
    rows = [
        (
            row["name"],
            *(_figure(seconds * 1e6) for seconds in row["seconds"]),
            _figure(row["ratio"]),
            _spread(row),
            f"{row['end']:+.2f}",
            ", ".join(_verdict(mark) for mark in row["marks"]),
        )
        for row in table["rows"]
    ]
    sizes = [f"{size:,}" for size in table["sizes"]]
    headings = (f"µs by number of {table['axis']}", *sizes, "slope", "spread", "end", "marks")
    about = f"{_rounds(table)}, {table['clock']} time"
    return f"{_heading(table)}\n" + _table(headings, rows) + f"\n<sub>{about}</sub>\n"


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
    """Return a figure with at least three digits and no exponent."""
    if 0 < value < 0.1:
        return f"{value:.4f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _spread(row: Entry) -> str:
    if "low" not in row:
        return ""
    return f"{_figure(row['low'])}–{_figure(row['high'])}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all columns but the first are right-aligned."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (headings, *rows)]
    rule = ["---", *["--:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])) + "\n"
