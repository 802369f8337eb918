"""The rules, tried on every operator and source that the core registers."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import Publisher
from flow_testing import STAGE_CASES
from flow_testing.tck import (
    OperatorRecipe,
    OperatorsAsSubscribersVerification,
    OperatorsVerification,
    PublisherVerification,
    SourcesVerification,
    operator_recipes,
    without_recipe,
)
from flow_testing.tck.registry import EXEMPT, OPERATORS, SOURCES

pytestmark = pytest.mark.tck


class TestOperators(OperatorsVerification):
    recipes = operator_recipes()


class TestOperatorsAsSubscribers(OperatorsAsSubscribersVerification):
    recipes = TestOperators.recipes


class TestSources(SourcesVerification):
    recipes = SOURCES


class LongChain(PublisherVerification[int]):
    quiet_s = 0

    def create_publisher(self, count: int) -> Publisher[int]:
        return flow.range(count).map(lambda n: n + 1)


class LongChainBehindABoundary(LongChain):
    def create_publisher(self, count: int) -> Publisher[int]:
        return flow.range(count).hide().map(lambda n: n + 1)


@pytest.mark.parametrize("verification", [LongChain(), LongChainBehindABoundary()])
def test_a_hundred_thousand_requests_from_within_on_next_take_constant_stack(
    verification: LongChain,
) -> None:
    assert verification.chain == 100_000
    verification.test_spec303_requests_within_on_next_take_constant_stack()


def test_every_operator_and_source_is_tried_or_says_why_not() -> None:
    recipes = [*TestOperators.recipes, *SOURCES]
    assert without_recipe("flow-core", recipes, EXEMPT) == [], (
        "add a StageCase; or a line to OPERATORS, SOURCES, EXEMPT in flow_testing.tck.registry"
    )


def test_each_exempt_operator_exists() -> None:
    assert set(EXEMPT) <= set(without_recipe("flow-core", []))


def test_an_operator_without_a_recipe_is_named() -> None:
    without_map = [recipe for recipe in TestOperators.recipes if recipe.name != "map"]
    assert "map" in without_recipe("flow-core", [*without_map, *SOURCES], EXEMPT)


def test_a_recipe_out_of_a_case_gives_as_many_items_as_are_asked_for() -> None:
    for recipe in TestOperators.recipes:
        least, most = recipe.facts.get("min_items", 0), recipe.facts.get("max_items", 1_000)
        assert isinstance(least, int)
        assert isinstance(most, int)
        for count in {least, min(most, 7), min(most, 1_000)}:
            made = recipe.apply(flow.from_iterable(recipe.upstream(count)))
            assert len(list(made)) == count, recipe.name


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("map", 0, flow.UNBOUNDED),
        ("filter", 0, flow.UNBOUNDED),
        ("flat_map_iterable", 0, flow.UNBOUNDED),
        ("buffer_with_count", 0, flow.UNBOUNDED),
        ("pairwise", 0, flow.UNBOUNDED),
        ("skip", 0, flow.UNBOUNDED),
        ("zip_with_iterable", 0, 4),
        ("count", 1, 1),
        ("reduce", 0, 1),
    ],
)
def test_limits_are_found_by_looking_at_the_cases(name: str, least: int, most: int) -> None:
    (recipe,) = [recipe for recipe in operator_recipes() if recipe.name == name]
    assert (recipe.facts["min_items"], recipe.facts["max_items"]) == (least, most)


def test_a_line_in_the_table_goes_before_a_case() -> None:
    mine = OperatorRecipe("map", lambda upstream: upstream.map(lambda n: -n))
    recipes = operator_recipes(table=[*OPERATORS, mine], cases=STAGE_CASES)
    assert [recipe for recipe in recipes if recipe.name == "map"] == [mine]


class FakeMetafunc:
    """Stands for what pytest gives to ``pytest_generate_tests``, for one test."""

    def __init__(self, test: str) -> None:
        self.function = getattr(OperatorsVerification, test)
        self.parameters: list[Any] = []

    def parametrize(self, name: str, parameters: list[Any], *, indirect: bool) -> None:
        assert (name, indirect) == ("_recipe", True)
        self.parameters += parameters


def generated(test: str, *recipes: OperatorRecipe, **known_bugs: str) -> dict[str, list[str]]:
    """The ids of the tests that are generated, each with its marks."""

    class Ours(OperatorsVerification):
        pass

    Ours.recipes = recipes
    Ours.known_bugs = known_bugs
    metafunc: Any = FakeMetafunc(test)
    Ours().pytest_generate_tests(metafunc)
    return {made.id: [mark.name for mark in made.marks] for made in metafunc.parameters}


PLAIN = OperatorRecipe("plain", lambda upstream: upstream)
ONE_ITEM = OperatorRecipe("one item", lambda upstream: upstream.count(), facts={"max_items": 1})
THREE = "test_spec101_never_sends_more_than_requested"


def test_each_recipe_is_tried_with_the_rules_that_say_something_about_it() -> None:
    assert list(generated(THREE, PLAIN, ONE_ITEM)) == ["plain", "plain behind a hidden source"]
    assert list(generated("test_spec101_sends_nothing_without_demand", ONE_ITEM)) == [
        "one item",
        "one item behind a hidden source",
    ]
    assert generated(THREE, ONE_ITEM) == {"none": ["skip"]}


def test_a_known_bug_must_fail() -> None:
    found = generated(THREE, PLAIN, **{f"{THREE}[plain]": "why"})
    assert found == {"plain": ["xfail"], "plain behind a hidden source": []}
    found = generated(THREE, PLAIN, **{f"{THREE}[plain*]": "why"})
    assert found == {"plain": ["xfail"], "plain behind a hidden source": ["xfail"]}


def test_a_fact_that_means_nothing_is_refused() -> None:
    with pytest.raises(AttributeError, match="max_itens"):
        generated(THREE, OperatorRecipe("typo", lambda upstream: upstream, facts={"max_itens": 1}))
