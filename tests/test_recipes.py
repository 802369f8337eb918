"""The page of recipes counts lines as it says, and no job takes more of them here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "recipes.md"
TEXT = PAGE.read_text("utf-8")
LIBRARIES = ("Flow", "Python", "aiostream", "streamable", "reactivex")


def lines(code: str) -> int:
    """Those that are neither blank nor belong to a comment, an import or a comparison."""
    left = {number for number, line in enumerate(code.splitlines(), 1) if line.strip()}
    left -= {n for n, line in enumerate(code.splitlines(), 1) if line.strip().startswith("#")}
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            left -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.Assert) and not _runs_something(node):
            left -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(left)


def _runs_something(node: ast.Assert) -> bool:
    """Return whether the compared part is made there."""
    said = ast.unparse(node)
    return any(word in said for word in ("asyncio.run", "flow.", "stream(", ".run()"))


def counted() -> dict[str, dict[str, int]]:
    """The lines of each block, by job and library."""
    found: dict[str, dict[str, int]] = {}
    for part in TEXT.split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        blocks = re.findall(
            r"^\*\*(\w+)\*\*[^\n]*\n\n(?:<!--[^\n]+\n)?```python\n(.*?)^```",
            rest,
            re.MULTILINE | re.DOTALL,
        )
        found[title] = {library: lines(code) for library, code in blocks}
    return found


@pytest.mark.parametrize("job", counted())
def test_no_other_library_takes_fewer_lines(job: str) -> None:
    taken = counted()[job]
    assert set(taken) <= set(LIBRARIES)
    assert taken["Flow"] == min(taken.values()), taken


def test_the_table_says_what_is_counted() -> None:
    rows = [
        " | ".join(
            ["", job.partition(". ")[2], *(str(taken.get(name, "–")) for name in LIBRARIES), ""]
        ).strip()
        for job, taken in counted().items()
    ]
    assert len(rows) == 12
    assert "\n".join(rows) in TEXT, "the table should be:\n" + "\n".join(rows)


def test_the_answers_are_thirty_and_more_with_a_block_each() -> None:
    parts = PAGE.with_name("how-to.md").read_text("utf-8").split("\n## ")[1:]
    assert len(counted()) + len(parts) >= 30
    assert [part.count("\n```python\n") for part in parts] == [1] * len(parts)
