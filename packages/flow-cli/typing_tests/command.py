"""What type checkers infer of this package; checked by mypy and pyright, never run."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import flow_core as flow
from flow_cli import main, pipelines
from flow_cli.explain import explain
from flow_cli.progress import progress
from flow_core import Flow, Operator
from flow_core.engine import EngineOptions

NUMBERS: Flow[int] = flow.range(3)

assert_type(main(["plugins"]), int)
assert_type(explain(NUMBERS), str)
assert_type(NUMBERS.pipe(progress("numbers")).map(str), Flow[str])


def described() -> None:
    pipeline = pipelines.load("job.toml", {"limit": 3})
    assert_type(pipeline.flow(), Flow[object])
    assert_type(pipeline.sink(), Operator[object, object])
    assert_type(pipeline.run(), object)
    assert_type(pipelines.load(Path("job.toml")).engine_options, EngineOptions)
