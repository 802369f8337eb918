"""The pictures of the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

Entry = dict[str, Any]  # Any: what JSON holds; rounds.py says what that is

LOOKS = {
    "flow": ("this library", "o", "#1f4e9c", 42),
    "python": ("plain Python", "x", "#444444", 26),
    "reactivex": ("reactivex", "s", "#c2185b", 20),
    "aiostream": ("aiostream", "^", "#ef8a17", 20),
    "streamable": ("streamable", "v", "#2e8b57", 20),
    "streamz": ("streamz", "D", "#8e6bbf", 16),
    "pyspark": ("Spark by hand", "P", "#c8741c", 22),
    "rxjava": ("RxJava 3, to a loop in Java", "*", "#b8860b", 40),
}
"""By the owner of a case: the label, the marker, its colour and size."""

mpl.rcParams.update(
    {"svg.hashsalt": "flow", "svg.fonttype": "none", "font.size": 8, "axes.titlesize": 9}
)


def ratios(tables: Sequence[Entry], java: Sequence[Entry], path: Path) -> None:
    """Draw a row for each case, with a point for each way to do it."""
    rows = [table for table in tables if table["kind"] == "compare" and table["key"]]
    figure = Figure(figsize=(8, 1.2 + 0.26 * len(rows)), layout="constrained")
    axes = figure.subplots()
    drawn: set[str] = set()

    def draw(by: str, ratio: float, place: float, *, filled: bool = True) -> None:
        label, marker, colour, size = LOOKS[by]
        axes.scatter(
            ratio,
            place,
            marker=marker,
            color=colour if filled else "white",
            edgecolors=None if by == "python" else colour,
            s=size,
            zorder=4 if by == "flow" else 3,
            linewidths=0.8,
            alpha=0.85,
            label=label if filled and by not in drawn else None,
        )
        if filled:
            drawn.add(by)

    for index, table in enumerate(rows):
        place = -index
        axes.axhline(place, color="#e4e4e4", linewidth=0.7, zorder=1)
        for row in table["rows"]:
            if row["by"] in LOOKS:
                filled = row["by"] != "flow" or bool(row["marks"])
                draw(row["by"], row["ratio"], place, filled=filled)
            for mark in row["marks"]:
                limit = row["ratio"] * mark["mark"] / mark["value"]
                axes.plot([limit, limit], [place - 0.38, place + 0.38], color="#d62728", zorder=2)
        for each in java:
            if each["key"] == table["key"]:
                draw("rxjava", each["ratio"], place)
    axes.axvline(1, color="black", linewidth=0.8, zorder=2)
    axes.set_xscale("log")
    axes.set_yticks([-index for index in range(len(rows))], [table["key"] for table in rows])
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.set_xlabel("times the floor")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def growth(tables: Sequence[Entry], path: Path) -> None:
    """Draw a line for each case, on logarithmic axes, in one panel for each thing that grows."""
    fields = [table for table in tables if table["kind"] == "grow"]
    if not fields:
        return
    columns = 2
    lines = math.ceil(len(fields) / columns)
    figure = Figure(figsize=(11, 3.4 * lines), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(fields):
            axes.set_visible(False)
            continue
        table = fields[place]
        for index, row in enumerate(table["rows"]):
            ours = row["by"] == "flow"
            axes.plot(
                table["sizes"],
                [seconds * 1e6 for seconds in row["seconds"]],
                color=f"C{(index - 1) % 10}" if ours else "black",
                linestyle=("-" if index < 11 else "--") if ours else ":",
                marker="o",
                markersize=2.5,
                linewidth=1,
                label=f"{row['ratio']:.2f}  {row['name']}",
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(table["title"])
        axes.set_xlabel(table["axis"])
        axes.set_ylabel("µs")
        axes.legend(
            title="slope",
            fontsize=6,
            title_fontsize=6,
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(1, 1),
        )
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
