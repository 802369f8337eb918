"""``flow explain`` draws what connectables run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flow_core as flow
from flow_cli import main
from flow_cli.explain import explain
from flow_core import Flow

SHARED: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "share": lambda numbers: numbers.share(),
    "cache": lambda numbers: numbers.cache(),
    "publish": lambda numbers: numbers.publish().flow,
    "replay": lambda numbers: numbers.replay(size=3).flow,
    "ref_count": lambda numbers: numbers.publish().ref_count(2),
    "auto_connect": lambda numbers: numbers.replay().auto_connect(),
    "selected": lambda numbers: numbers.publish(lambda shared: shared.map(str)),
}


@pytest.mark.parametrize("make", SHARED.values(), ids=SHARED)
def test_a_shared_part_is_drawn_once(make: Callable[[Flow[int]], Flow[Any]]) -> None:
    text = explain(make(flow.range(10).map(abs)).filter(bool))
    assert "no plugin" not in text
    for part in ("source range(0, 10)", "── map(abs)", "── filter(bool)"):
        assert text.count(part) == 1, text


def test_a_connectable_is_explained_as_its_flow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shared.py"
    file.write_text("import flow_core as flow\n\nnumbers = flow.range(10).map(abs).publish()\n")
    main(["explain", f"{file}:numbers"])
    assert "source range(0, 10): an iterator" in capsys.readouterr().out
