"""The texts of all errors: the page that lists them, and the words they may use."""

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("messages", ROOT / "docs" / "messages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


messages = _load()
FOUND = messages.messages()
RULE = re.compile(r"§|\b[A-Z]{1,2}\d{1,3}\b")
"""A rule of the specification, or an id of docs/rules.md."""

NAMED_BY_ITS_RULE = "§3.9 violated"
"""The specification wants this one to name its rule."""


def test_the_page_has_the_text_of_every_error() -> None:
    assert messages.PAGE.read_text("utf-8") == messages.page(FOUND), "python docs/messages.py"


def test_texts_are_read_with_the_names_of_their_variable_parts(tmp_path: Path) -> None:
    source = tmp_path / "packages" / "flow-acme" / "src" / "acme.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        "raise TypeError(f'smooth({self._width}) takes {shorten(items[0])}, ' f'not {1 + 1}')\n"
        "raise PipelineError(path, [f'{file}: it is ' + known])\n"
        "raise TypeError(message)\n"
        "raise AssertionError('it is not seen by users')\n"
        "raise _CutError('nor is this')\n"
    )
    assert [(found.error, found.text) for found in messages.messages(tmp_path)] == [
        ("PipelineError", "{file}: it is {known}"),
        ("TypeError", "smooth({width}) takes {items}, not {…}"),
    ]


@pytest.mark.parametrize("package", sorted({found.package for found in FOUND}))
def test_no_message_names_a_rule_by_its_id(package: str) -> None:
    named = [
        f"{found.place}: {found.text}"
        for found in FOUND
        if found.package == package != "flow-testing"  # its users look rules up
        and RULE.search(found.text)
        and not found.text.startswith(NAMED_BY_ITS_RULE)
    ]
    assert not named


def test_no_parameter_for_a_time_is_called_by_what_the_time_is_for() -> None:
    """A message that names its parameter, as in "item must be a number of seconds", is clear."""
    misleading = []
    for path in ROOT.glob("packages/*/src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.arg) and node.annotation is not None:
                is_time = "Seconds" in ast.unparse(node.annotation)
                if is_time and node.arg in {"item", "items", "value", "n", "count", "key"}:
                    misleading.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.arg}")
    assert not misleading
