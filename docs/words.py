"""Count the words to avoid, which `words.toml` lists, and let no folder have more than before.

    python docs/words.py             fail if a folder has more of them than it may
    python docs/words.py --all       print all finds, with suggestions
    python docs/words.py --record    record the present numbers as the most that folders may have

It reads the comments and strings of Python files, including docstrings, and the text of pages, but
not tests, generated files and code blocks.
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
"""The head of the list's last table: folders, and the number of finds each may have."""

READ: Final = (
    *("*.md", "*.py", "docs/**/*.md", "docs/*.py", "packages/*/*.md", "packages/*/src/**/*.py"),
    *("tools/*.py", "benchmarks/*.py", "examples/**/*.py"),
    *("jvm/**/*.py", "oracle/**/*.py", "tck/**/*.py"),
)
LEFT_OUT: Final = re.compile(
    r"/surface/|/tests?/|/changelog|CHANGELOG|/\.|"
    r"docs/(migration|messages|rxpy|operators|fusion-matrix|spark-types)\.md|docs/benchmarks/"
)
"""Generated files, tests, and pages that describe other libraries in their own terms."""


SHOWN: Final = 10
"""The most finds to print for a folder that has too many; ``--all`` prints the others."""


class Word(NamedTuple):
    """A word to avoid.

    Args:
        pattern: matches it.
        write: what to write instead.
        begins_docstring: whether to avoid it only as a docstring's first word.
    """

    pattern: re.Pattern[str]
    write: str
    begins_docstring: bool


class Find(NamedTuple):
    """A word that was found, its place, and what to write instead."""

    path: Path
    line: int
    text: str
    write: str

    def __str__(self) -> str:
        return f"{self.path.as_posix()}:{self.line}: {self.text!r}: write {self.write}"


def listed(table: Mapping[str, Any]) -> list[Word]:
    """Return the words in the file's table."""
    return [
        Word(re.compile(word["pattern"]), word["write"], word.get("begins_docstring", False))
        for word in table["word"]
    ]


def prose(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Return the lines of prose in a file: number, text, and whether a docstring begins there."""
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
    for node in ast.walk(ast.parse(text)):  # a statement comes before its parts
        match node:
            case ast.Expr(value=ast.Constant() as constant):
                documentation.add(constant)
            case ast.Constant(value=str(string)):
                for number, line in enumerate(string.splitlines()):
                    yield node.lineno + number, line, node in documentation and not number


def finds(root: Path, words: Sequence[Word]) -> list[Find]:
    """Return all words to avoid in the files below a folder."""
    any_word = re.compile("|".join(word.pattern.pattern for word in words))
    paths = {path for pattern in READ for path in root.glob(pattern)}
    return [
        Find(path.relative_to(root), number, match[0], word.write)
        for path in sorted(paths)
        if not LEFT_OUT.search(path.relative_to(root).as_posix())
        for number, line, begins in prose(path)
        if any_word.search(line)  # most lines have none, and fifteen searches are slow
        for word in words
        if begins or not word.begins_docstring
        for match in word.pattern.finditer(line)
        if not word.begins_docstring or match.start() == 0
    ]


def counted(root: Path) -> tuple[dict[str, list[Find]], Mapping[str, int]]:
    """Return the finds of each folder below `root`, and how many each may have."""
    table = tomllib.loads((root / LIST).read_text("utf-8"))
    folders = defaultdict(list)
    for find in finds(root, listed(table)):
        folders[find.path.parent.as_posix()].append(find)
    return dict(sorted(folders.items())), table["at_most"]


def check(folders: Mapping[str, Sequence[Find]], limits: Mapping[str, int]) -> Iterator[str]:
    """Return readable lines about the folders that have more finds than they may."""
    for folder, found in folders.items():
        if len(found) > (limit := limits.get(folder, 0)):
            yield from map(str, found[:SHOWN])
            words = f"{len(found)} of the words in {LIST.as_posix()}"
            yield f"{folder} has {words}; {limit} are allowed"


def fewer(folders: Mapping[str, Sequence[Find]], limits: Mapping[str, int]) -> bool:
    """Return whether any folder has fewer finds than it may."""
    return any(len(folders.get(folder, ())) < limit for folder, limit in limits.items())


def record(root: Path, folders: Mapping[str, Sequence[Find]]) -> None:
    """Write the number of finds of each folder as the most that it may have."""
    file = root / LIST
    lines = [f'"{folder}" = {len(found)}\n' for folder, found in folders.items()]
    head = file.read_text("utf-8").partition(LIMITS)[0]
    file.write_text(head + LIMITS + "".join(lines), "utf-8")


def main(arguments: Sequence[str] = tuple(sys.argv[1:])) -> int:
    """Check, print all finds or record; return 1 if a folder has more finds than it may."""
    folders, limits = counted(ROOT)
    if "--all" in arguments:
        print(*(find for found in folders.values() for find in found), sep="\n")
    if "--record" in arguments:
        record(ROOT, folders)
        return 0
    wrong = list(check(folders, limits))
    print(*wrong, sep="\n") if wrong else print("No folder has more words to avoid than before.")
    if fewer(folders, limits):
        print("Some have fewer: `python docs/words.py --record` keeps it so.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
