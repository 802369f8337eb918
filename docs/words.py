"""Count the words at which a reader stops, which `words.toml` lists, and let no folder have more.

    python docs/words.py             fail where a folder has more of them than it may
    python docs/words.py --all       print all there are, with what to write instead
    python docs/words.py --record    have no folder have more than it has now

It reads the comments and strings of Python files, docstrings among them, and the text of pages,
but for tests, generated files and code blocks.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
LIST: Final = Path("docs", "words.toml")
LIMITS: Final = "[at_most]\n"
"""The head of the last table of the list: folders, and how many finds each may have."""

READ: Final = (
    *("*.md", "*.py", "docs/**/*.md", "docs/*.py", "packages/*/*.md", "packages/*/src/**/*.py"),
    *("tools/*.py", "benchmarks/*.py", "examples/**/*.py"),
    *("jvm/**/*.py", "oracle/**/*.py", "tck/**/*.py"),
)
LEFT_OUT: Final = re.compile(
    r"/surface/|/tests?/|/changelog|CHANGELOG|/\.|"
    r"docs/(migration|rxpy|operators|fusion-matrix|spark-types)\.md|docs/benchmarks/"
)
"""Generated files, tests, and pages that speak of others in the others' words."""


SHOWN: Final = 10
"""How many finds of a folder are printed that has too many; ``--all`` prints the others."""


class Word(NamedTuple):
    """Something to avoid.

    Args:
        pattern: finds it.
        write: what to write instead.
        begins_docstring: whether it is only to be avoided as a docstring's first word.
    """

    pattern: re.Pattern[str]
    write: str
    begins_docstring: bool


class Find(NamedTuple):
    """A word that was found, where, and what to write."""

    path: Path
    line: int
    text: str
    write: str

    def __str__(self) -> str:
        return f"{self.path.as_posix()}:{self.line}: {self.text!r}: write {self.write}"


def listed(table: Mapping[str, Any]) -> list[Word]:
    """The words of a table as the file has it."""
    return [
        Word(re.compile(word["pattern"]), word["write"], word.get("begins_docstring", False))
        for word in table["word"]
    ]


def prose(path: Path) -> Iterator[tuple[int, str, bool]]:
    """The lines for a reader in a file: number, text, and whether a docstring begins there."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        fenced = False
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced:
                yield number, line, False
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, False
    documentation = set[ast.expr]()
    for node in ast.walk(ast.parse(text)):  # statements come before what is in them
        match node:
            case ast.Expr(value=ast.Constant() as constant):
                documentation.add(constant)
            case ast.Constant(value=str(string)):
                for number, line in enumerate(string.splitlines()):
                    yield node.lineno + number, line, node in documentation and not number


def finds(root: Path, words: Sequence[Word]) -> list[Find]:
    """All words to avoid that the files below a folder have."""
    any_word = re.compile("|".join(word.pattern.pattern for word in words))
    paths = {path for pattern in READ for path in root.glob(pattern)}
    return [
        Find(path.relative_to(root), number, match[0], word.write)
        for path in sorted(paths)
        if not LEFT_OUT.search(path.relative_to(root).as_posix())
        for number, line, begins in prose(path)
        if any_word.search(line)  # most lines have none: fifteen searches would take as many times
        for word in words
        if begins or not word.begins_docstring
        for match in word.pattern.finditer(line)
        if not word.begins_docstring or match.start() == 0
    ]


def by_folder(found: Sequence[Find]) -> dict[str, list[Find]]:
    folders = defaultdict(list)
    for find in found:
        folders[find.path.parent.as_posix()].append(find)
    return dict(sorted(folders.items()))


def check(root: Path) -> Iterator[str]:
    """What is wrong, as lines for a reader: finds of folders that have more than they may."""
    table = tomllib.loads((root / LIST).read_text("utf-8"))
    folders, limits = by_folder(finds(root, listed(table))), table["at_most"]
    for folder, found in folders.items():
        if len(found) > (limit := limits.get(folder, 0)):
            yield from map(str, found[:SHOWN])
            yield f"{folder}: {len(found)} words of {LIST.as_posix()}, and {limit} at most may be"


def fewer(root: Path) -> bool:
    """Whether a folder has fewer finds than it may."""
    table = tomllib.loads((root / LIST).read_text("utf-8"))
    folders = by_folder(finds(root, listed(table)))
    return any(len(folders.get(each, [])) < limit for each, limit in table["at_most"].items())


def record(root: Path) -> None:
    """Write how many finds each folder has now, as the most that it may have."""
    file = root / LIST
    text = file.read_text("utf-8")
    found = by_folder(finds(root, listed(tomllib.loads(text))))
    lines = [f'"{folder}" = {len(each)}\n' for folder, each in found.items()]
    file.write_text(text.partition(LIMITS)[0] + LIMITS + "".join(lines), "utf-8")


def main(arguments: Sequence[str] = tuple(sys.argv[1:])) -> int:
    """Check, print all or record; 1 if a folder has more than it may."""
    if "--record" in arguments:
        record(ROOT)
    if "--all" in arguments:
        table = tomllib.loads((ROOT / LIST).read_text("utf-8"))
        print(*finds(ROOT, listed(table)), sep="\n")
    wrong = list(check(ROOT))
    print(*wrong, sep="\n") if wrong else print("No folder has more words to avoid than before.")
    if fewer(ROOT):
        print("Some have fewer: `python docs/words.py --record` keeps it so.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
