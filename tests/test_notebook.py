"""README and docs in a notebook: each block runs there, or says above it why it does not."""

from __future__ import annotations

import re
from doctest import DocTestParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(
    r"^(<!-- not in a notebook: [^\n]+ -->\n)?```python\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for pattern in ("docs/*.md", "docs/coming-from/*.md", "packages/*/README.md")
    for page in ROOT.glob(pattern)
    if BLOCK.search(page.read_text("utf-8")) and "flow-spark" not in page.parts
)

# What the packages of notebooks themselves warn of.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default:::(nbclient|jupyter_client|zmq|tornado)"),
]


def executed(*cells: str) -> list[Any]:
    """The outputs of each cell, in the kernel of a new notebook."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(ROOT)}}
    NotebookClient(book, timeout=60, kernel_name="python3", resources=resources).execute()
    return [cell.outputs for cell in book.cells]


@pytest.mark.parametrize(
    "page",
    ["README.md", *(pytest.param(page, marks=pytest.mark.nightly) for page in PAGES)],
)
def test_the_blocks_of_a_page_run_in_a_notebook(page: str) -> None:
    blocks = BLOCK.findall((ROOT / page).read_text("utf-8"))
    executed(*(_typed(block) for excuse, block in blocks if not excuse))


def _typed(block: str) -> str:
    """Return what a reader types: without prompts, and without the output below them."""
    if not block.startswith(">>>"):
        return block
    return "".join(example.source for example in DocTestParser().get_examples(block))


def test_a_notebook_shows_stages_and_boundaries_of_a_flow() -> None:
    (shown,) = executed("import flow_core as flow\nflow.range(9).map(str).hide().count()")[0]
    assert shown.data["text/plain"] == "range(0, 9) | map(str) | hide() | count()"
    picture = ElementTree.fromstring(shown.data["text/html"])
    drawn = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert drawn[:6] == [
        "source",
        "range(0, 9)",
        "an iterator",
        "loop 1, pushed",
        "map(str)",
        "boundary",
    ]
    assert {"hide()", "passes demand on", "loop 2, fed", "count()"} < set(drawn)


def test_a_notebook_shows_a_bar() -> None:
    given, ended = executed(
        "import flow_core as flow\n"
        "from flow_cli.progress import progress\n"
        "steps = flow.range(3).pipe(progress('counting', total=3))",
        "len(list(steps))",
    )
    assert given == []
    bar, result = ended
    assert bar.output_type == "display_data"
    assert re.match(r"counting ━+ 3 rows", bar.data["text/plain"])
    assert "counting" in bar.data["text/html"]
    assert result.data["text/plain"] == "3"


def test_a_flow_that_would_have_to_wait_says_in_a_notebook_what_to_do() -> None:
    waits = "import flow_core as flow\nimport flow_ops\npages = flow.timer(0.01)"
    refused = "try:\n    list(pages)\nexcept Exception as error:\n    print(error)"
    *_, told, awaited = executed(waits, refused, "await pages.to_list()")
    assert "`await flow.to_list()`" in told[0].text
    assert awaited[0].data["text/plain"] == "[0]"
