"""The check of words finds those that the list has, and lets no folder have more."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent / "docs" / "words.py"
SOURCE = "packages/flow-extra/src/flow_extra"
LIST = """\
[[word]]
pattern = '\\bis no\\b'
write = "is not a"

[[word]]
pattern = '^Who\\b'
write = "a noun"
begins_docstring = true

[at_most]
"""


def _load() -> Any:  # Any: a script, not a module of a package
    spec = importlib.util.spec_from_file_location("docs_words", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


words = _load()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / SOURCE).mkdir(parents=True)
    (tmp_path / "docs" / "words.toml").write_text(LIST, "utf-8")
    return tmp_path


def found(root: Path) -> list[str]:
    return list(words.check(*words.counted(root)))


def fewer(root: Path) -> bool:
    return bool(words.fewer(*words.counted(root)))


def record(root: Path) -> None:
    words.record(root, words.counted(root)[0])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""Who sends."""', 1),
        ('"""A.\n\nThis is no test.\n"""', 3),
        ("x = 1  # is no use", 1),
        ('raise TypeError(f"{x} is no int")', 1),
        ('async def f():\n    r"""Who sends."""', 2),
    ],
    ids=["the first word of a docstring", "its text", "a comment", "a message", "a raw docstring"],
)
def test_it_is_found_with_its_line_and_what_to_write(root: Path, text: str, line: int) -> None:
    (root / SOURCE / "module.py").write_text(text, "utf-8")
    first, last = found(root)
    assert first.startswith(f"{SOURCE}/module.py:{line}: ")
    assert first.endswith((": write is not a", ": write a noun"))
    assert last == f"{SOURCE} has 1 of the words in docs/words.toml; 0 are allowed"


@pytest.mark.parametrize(
    "text",
    ["is_no = 1", '"""Those.\n\nWho sends.\n"""', 'x = "Who"', "# Who sends"],
    ids=["a name", "a later paragraph", "a string", "a comment"],
)
def test_in_other_places_it_is_not_looked_for(root: Path, text: str) -> None:
    (root / SOURCE / "module.py").write_text(text, "utf-8")
    assert not found(root)


def test_of_pages_the_text_is_read_and_not_the_blocks(root: Path) -> None:
    page = root / "docs" / "page.md"
    page.write_text("```python\nthis is no text\n```\nIt is no block.\n", "utf-8")
    assert found(root)[0].startswith("docs/page.md:4:")


@pytest.mark.parametrize(
    "path", ["tests/test_x.py", f"{SOURCE}/surface/ops.py", "docs/operators.md"]
)
def test_tests_and_generated_files_are_left_out(root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("# is no text\n", "utf-8")
    assert not found(root)


def test_a_folder_may_have_as_many_as_were_recorded_and_no_more(root: Path) -> None:
    module = root / SOURCE / "module.py"
    module.write_text("# is no text\n", "utf-8")
    record(root)
    assert not found(root)
    assert not fewer(root)
    module.write_text("# is no text\n# is no text\n", "utf-8")
    assert found(root)[-1] == f"{SOURCE} has 2 of the words in docs/words.toml; 1 are allowed"
    module.write_text("", "utf-8")
    assert fewer(root)
    record(root)
    assert (root / "docs" / "words.toml").read_text("utf-8") == LIST
