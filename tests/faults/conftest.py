"""The operators that each fault is tried on, and the things that it must not leave behind."""

from __future__ import annotations

import gc
import importlib.util
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flow_core import Flow
from flow_core.homes import library_loop
from flow_core.protocols import CoreSubscriber, QueueSubscription
from flow_core.serial import SerialDrain
from flow_ops.testing import OPERATOR_CASES
from flow_testing import Drops, OperatorCase, Surroundings, VirtualClock, recorded_drops
from flow_testing.tck import operator_recipes

ROOT = Path(__file__).parent.parent.parent
WAIT_S = 20


def load(path: str) -> ModuleType:
    """A file of the tests of a package, as a module."""
    name = "faults_" + path.replace("/", "_").replace("-", "_").removesuffix(".py")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look themselves up there
        spec.loader.exec_module(module)
    return sys.modules[name]


MULTICAST = load("packages/flow-multicast/tests/test_tck.py")

Apply = Callable[[Flow[int]], Flow[Any]]


@dataclass(frozen=True)
class Tried:
    """An operator or a source that is made of an upstream.

    Args:
        name: as it is registered, and after a comma how it is used.
        make: puts it behind a flow, with an executor and a clock for those that need them.
        kinds: see `OperatorCase`.
        registered: its name in the registry.
    """

    name: str
    make: Callable[[Flow[int], Any, Any], Flow[Any]]
    kinds: frozenset[str]
    package: str

    @property
    def registered(self) -> str:
        return self.name.partition(",")[0].partition(" ")[0]

    def inline(self) -> Apply:
        """With an executor that runs its tasks at once, and a clock that stands still."""
        return lambda up: self.make(up, lambda task: task(), VirtualClock())

    def __str__(self) -> str:
        return self.name


def _of_recipe(recipe: Any, package: str) -> Tried:
    return Tried(recipe.name, lambda up, _, __: recipe.apply(up), frozenset(), package)


def _of_case(case: OperatorCase) -> Tried:
    def make(up: Flow[int], executor: Any, clock: Any) -> Flow[Any]:
        return case.apply(up, Surroundings(executor, clock))

    return Tried(case.name, make, case.kinds, "flow-ops")


TRIED = (
    *(_of_recipe(recipe, "flow-core") for recipe in operator_recipes()),
    *(
        _of_case(case)
        for case in OPERATOR_CASES
        if case.kinds.isdisjoint(("loop", "processes"))  # which have separate faults
        and not {"timed", "delayed"} <= case.kinds  # whose time does not come
    ),
    *(_of_recipe(recipe, "flow-multicast") for recipe in MULTICAST.RECIPES),
)
"""Each operator of each package; none is left out, as the tests of the packages see to."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``tried`` with each operator."""
    if "tried" in metafunc.fixturenames:
        wanted: set[str] = set(getattr(metafunc.function, "kinds", ()))
        chosen = [each for each in TRIED if wanted <= each.kinds]
        ids = [f"{each.package[5:]}: {each}" for each in chosen]
        metafunc.parametrize("tried", chosen, ids=ids)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked ``cluster`` here, unless ``-m`` speaks of it."""
    if "cluster" in config.option.markexpr:
        return
    left_out = [
        item
        for item in items
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("cluster")
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def every_tried() -> tuple[Tried, ...]:
    return TRIED


# -- what is dropped


@pytest.fixture
def drops() -> Iterator[Drops]:
    """The items and errors that reached the hooks, as no subscriber could get them."""
    with recorded_drops() as seen:
        yield seen


@pytest.fixture(autouse=True)
def _no_error_is_dropped_unseen(request: pytest.FixtureRequest) -> Iterator[None]:
    if "drops" in request.fixturenames:
        yield
        return
    with recorded_drops() as seen:
        yield
    seen.assert_no_errors()


# -- what is left


def _threads() -> set[threading.Thread]:
    # The clock of the system has one thread for all flows, as long as the process lives.
    return {one for one in threading.enumerate() if one.name != "flow-clock"}


def _descriptors() -> set[str]:
    """Return the open files, sockets and pipes."""
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        return set()
    found: set[str] = set()
    for entry in folder.iterdir():
        try:
            found.add(f"{entry.name}: {entry.readlink()}")
        except OSError:  # the one that lists them
            continue
    return found


def flow_objects() -> list[object]:
    """Parts of flows that are alive, and have been made since the last freeze."""
    gc.collect()
    kinds = (CoreSubscriber, QueueSubscription, SerialDrain)
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, kinds)
        and type(one).__module__.startswith("flow_")
        and ".testing" not in type(one).__module__
    ]


def gone(left: Callable[[], object], within_s: float = WAIT_S) -> object:
    """Return what is left after a while: threads need a moment to end."""
    deadline = time.monotonic() + within_s
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """A test leaves no thread, no process, no open file and no part of a flow."""
    library_loop()  # it lives as long as the process, with its thread and its files
    threads, descriptors = _threads(), _descriptors()
    processes = {one.pid for one in multiprocessing.active_children()}
    gc.freeze()  # what is there already is not looked at
    try:
        yield
        assert not gone(lambda: [one.name for one in _threads() - threads])
        assert not gone(
            lambda: [one for one in multiprocessing.active_children() if one.pid not in processes]
        )
        gc.collect()  # a pool of processes is part of cycles
        assert not gone(lambda: _descriptors() - descriptors)
        assert not gone(lambda: sorted({type(one).__qualname__ for one in flow_objects()}), 2)
    finally:
        gc.unfreeze()
