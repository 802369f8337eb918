"""Connectables where a flow is expected: in a pipeline's file, and in a chain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import flow_core as flow
from flow_cli.pipelines import PipelineError, load
from flow_multicast import publish, publish_value, replay

HEAD = """
[source]
use = "range"
start = 0
stop = 4

[[operators]]
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(operator: str) -> Path:
        (tmp_path / "chosen.py").write_text(
            "def tens(shared):\n    return shared.map(lambda n: n * 10)\n", "utf-8"
        )
        path = tmp_path / "job.toml"
        path.write_text(HEAD + dedent(operator), "utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ('use = "share"', [0, 1, 2, 3]),
        ('use = "share"\nprefetch = 2\ngrace = 1.5', [0, 1, 2, 3]),
        ('use = "cache"\nsize = 2', [0, 1, 2, 3]),
        ('use = "publish"\nselector = { object = "chosen:tens" }', [0, 10, 20, 30]),
        ('use = "replay"\nselector = { object = "chosen:tens" }\nsize = 2', [0, 10, 20, 30]),
    ],
)
def test_an_operator_that_connects_by_itself_can_stand_in_a_file(
    write: Write, operator: str, expected: list[int]
) -> None:
    assert list(load(write(operator)).flow()) == expected


@pytest.mark.parametrize("operator", ["publish", "replay"])
def test_the_error_for_an_operator_that_waits_for_connect_names_the_ones_for_a_file(
    write: Write, operator: str
) -> None:
    pipeline = load(write(f'use = "{operator}"'))
    with pytest.raises(
        PipelineError, match="use share, cache, or publish or replay with"
    ) as raised:
        pipeline.flow()
    assert f"job.toml:7: [[operators]] 1 ({operator})" in str(raised.value)


@pytest.mark.parametrize("operator", [publish(), replay(), publish_value(0)])
def test_the_error_for_a_chain_after_a_connectable_says_how_to_continue(operator: Any) -> None:
    connectable: Any = flow.range(3).pipe(operator)
    with pytest.raises(AttributeError, match=r"continue with .ref_count\(\).map, .auto_connect"):
        connectable.map(str)
    with pytest.raises(AttributeError, match=r"Connectable has no 'mop'"):
        connectable.mop(str)


def test_the_place_of_a_connectable_is_the_users_line() -> None:
    assert f"{Path(__file__).name}:" in repr(flow.range(3).pipe(publish()))
