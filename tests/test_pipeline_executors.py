"""Executors and clocks by name, in pipelines."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest

from flow_cli.pipelines import PipelineError, load
from flow_core.plugins import plugin_host
from flow_testing import TIMEOUT_S

THREADS = """
[source]
use = "range"
start = 20

[[operators]]
use = "observe_on"
executor = {{ use = "{name}", {options} }}

[[operators]]
use = "delay_elements"
delay = 0.001
clock = {{ use = "{clock}" }}

[[operators]]
use = "map"
mapper = {{ object = "{function}" }}
"""


@pytest.fixture
def write(tmp_path: Path) -> Path:
    return tmp_path / "job.toml"


def job(
    path: Path,
    name: str = "threads",
    options: str = "max_workers = 2, thread_name_prefix = 'named'",
    clock: str = "system",
    function: str = "builtins:str",
) -> Path:
    text = THREADS.format(name=name, options=options, clock=clock, function=function)
    path.write_text(text.replace("'", '"'))
    return path


def test_a_pool_of_threads_is_made_by_name_and_ends_with_the_flow(write: Path) -> None:
    made = load(job(write)).flow()
    assert list(made) == [str(n) for n in range(20)]
    workers = [each for each in threading.enumerate() if each.name.startswith("named")]
    assert workers
    del made
    gc.collect()
    for each in workers:
        each.join(TIMEOUT_S)
        assert not each.is_alive()


def test_each_assembled_flow_has_a_separate_pool(write: Path) -> None:
    pipeline = load(job(write))
    first, second = pipeline.flow(), pipeline.flow()
    assert list(first.zip(second)) == [(str(n), str(n)) for n in range(20)]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "thraeds"}, "executor use: no executor 'thraeds' is installed; did you mean"),
        ({"options": "workers = 2"}, "executor workers: threads has no such parameter; did you"),
        ({"clock": "sytem"}, "clock use: no clock 'sytem' is installed; did you mean 'system'?"),
        ({"options": "max_workers = 0"}, "max_workers must be greater than 0"),
    ],
)
def test_a_problem_of_an_executor_is_reported_with_its_place(
    write: Path, changes: dict[str, str], says: str
) -> None:
    with pytest.raises((PipelineError, ValueError)) as caught:
        load(job(write, **changes)).flow()
    text = f"{caught.value} {' '.join(getattr(caught.value, '__notes__', ()))}"
    assert says in text
    assert "job.toml:6" in text or "job.toml:10" in text


def test_the_registry_makes_them() -> None:
    host = plugin_host()
    with host.executor("threads")(max_workers=1) as pool:  # type: ignore[union-attr]
        assert pool.submit(threading.get_ident).result() != threading.get_ident()
    assert host.clock("system")().now() > 0
