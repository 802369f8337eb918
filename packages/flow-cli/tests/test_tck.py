"""The Reactive Streams rules, tried on the operator that this package registers."""

from __future__ import annotations

import pytest

from flow_cli.progress import progress
from flow_testing.tck import (
    OperatorRecipe,
    OperatorsAsSubscribersVerification,
    OperatorsVerification,
    without_recipe,
)

pytestmark = pytest.mark.tck

RECIPES = (OperatorRecipe("progress", lambda flow: flow.pipe(progress("items"))),)


@pytest.fixture(autouse=True)
def no_other_plugin() -> None:
    """All that is installed here is used."""


class TestOperators(OperatorsVerification):
    recipes = RECIPES


class TestOperatorsAsSubscribers(OperatorsAsSubscribersVerification):
    recipes = RECIPES


def test_every_operator_is_tried() -> None:
    assert without_recipe("flow-cli", []) == ["progress"]
    assert without_recipe("flow-cli", RECIPES) == []
