"""Each operator that RxJava has, too, is compared with it, or the page says why not."""

from __future__ import annotations

import re
from pathlib import Path

from flow_core import hints
from flow_core.plugins import plugin_host
from flow_oracle.pipelines import OPERATORS, SOURCES

DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = {"flow-core", "flow-ops", "flow-multicast"}
NAMED_HERE = {
    "buffer": "buffer_with_count",
    "callable": "from_callable",
    "iterable": "from_iterable",
    "window": "window_with_count",
}
"""Operators that are drawn by a shorter name than that of the registry."""
FILES = {"read_csv", "read_json_lines", "read_lines"}
"""Sources that names.toml does not tell about, and RxJava does not have."""


def with_a_twin():
    host = plugin_host()
    here = {
        name
        for records in (host.operators, host.sources)
        for name, registered in records.items()
        if registered.plugin.distribution in PACKAGES
    }
    elsewhere = hints.tables()["elsewhere"]
    without = {name for name in here if name in elsewhere and not elsewhere[name][1]}
    return here - without - FILES


def told():
    page = (DOCS / "design" / "oracle.md").read_text("utf-8")
    part = page.partition("## Not drawn\n")[2].partition("\n## ")[0]
    first = re.findall(r"^\| ([^|]+) \|", part, flags=re.MULTILINE)
    return [name for cell in first[1:] for name in cell.split(", ")]


DRAWN = {NAMED_HERE.get(name, name) for name in (*OPERATORS, *SOURCES)}


def test_each_operator_with_a_twin_is_drawn_or_the_page_says_why_not():
    assert sorted(with_a_twin() - DRAWN) == sorted(told())
