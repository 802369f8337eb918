"""What the tests of this folder share: they run with all operators and sources.

A test that takes ``case`` runs with each that needs no process and no event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from flow_core import hooks
from flow_core.testing import OperatorCase
from flow_ops.testing import OPERATOR_CASES

CASES = [case for case in OPERATOR_CASES if case.kinds.isdisjoint(("loop", "processes"))]
"""Those in loops and processes have tests of their own."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``case`` with each of them."""
    if "case" in metafunc.fixturenames:
        wanted: set[str] = set(getattr(metafunc.function, "kinds", ()))
        chosen = [each for each in CASES if wanted <= each.kinds]
        metafunc.parametrize("case", chosen, ids=str)


@pytest.fixture
def cases() -> dict[str, OperatorCase]:
    """All of them, by name."""
    return {str(case): case for case in CASES}


class Refusing:
    """An executor that runs tasks inline, until it is shut down."""

    def __init__(self) -> None:
        self.open = True
        self.tasks = 0

    def submit(self, task: Callable[[], object]) -> Future[Any]:
        if not self.open:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.tasks += 1
        future: Future[Any] = Future()
        task()
        future.set_result(None)
        return future


@pytest.fixture
def refusing() -> Refusing:
    """An executor that can be shut down."""
    return Refusing()


@pytest.fixture
def dropped_unseen(dropped: object) -> Iterator[None]:
    """For tests that are about something else than what is dropped, and must not keep it."""
    with (
        hooks.dropped_errors.scoped("test", lambda _: None),
        hooks.dropped_items.scoped("test", lambda _: None),
    ):
        yield
