"""The tree of decisions of a function says what the function says, where it says anything."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from flow_spark.narrowing.decisions import (
    Asked,
    Constant,
    Expression,
    Field,
    Needed,
    Operation,
    Returned,
    Tree,
    decisions,
)
from flow_spark.narrowing.fields_read import GivenUpError, Record

from .random_predicates import SCOPE, Edge, Predicates, edges
from .test_fields_read import FIELDS, compiled, function

OPERATORS: dict[str, Callable[..., Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "not": operator.not_,
    "bool": bool,
    "len": len,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "startswith": str.startswith,
    "endswith": str.endswith,
    "in": lambda element, whole: element in whole,
    "is None": lambda value: value is None,
}


class NotSaidError(Exception):
    """The tree ends as unknown."""


def value_of(expression: Expression, row: Any) -> Any:
    match expression:
        case Constant(value):
            return value
        case Field(name):
            return getattr(row, name)
        case Operation(symbol, operands):
            return OPERATORS[symbol](*(value_of(one, row) for one in operands))
    return row


def answer(tree: Tree, row: Any) -> bool:
    match tree:
        case Returned(value):
            return bool(value_of(value, row))
        case Needed(value, then):
            value_of(value, row)
            return answer(then, row)
        case Asked(condition, if_true, if_false):
            return answer(if_true if value_of(condition, row) else if_false, row)
    raise NotSaidError


def compare(call: Callable[[Any], object], record: Record, rows: list[Any], text: str) -> int:
    """Return for how many rows the tree has an answer, which is that of the function."""
    try:
        tree = decisions(call, record)
    except GivenUpError:
        return 0
    said = 0
    for row in rows:
        try:
            found = answer(tree, row)
        except Exception:  # a row for which it may raise is read
            continue
        said += 1
        assert found == bool(call(row)), (text, row)
    return said


@pytest.mark.many
@pytest.mark.parametrize("seed", range(32))
def test_random_predicates_answer_as_their_trees(seed: int) -> None:
    chance = random.Random(seed)
    made, rows = Predicates(chance), edges(20, chance)
    record, said = Record(frozenset(Edge._fields), Edge._fields), 0
    for _ in range(200):
        text = made.text()
        scope: dict[str, Any] = dict(SCOPE)
        exec(text if text.startswith("def") else f"f = {text}", scope)
        said += compare(scope["f"], record, rows, text)
    assert said > 1000


class Row:
    """A record of any values."""

    def __init__(self, *values: object) -> None:
        self.values = values
        for name, value in zip(FIELDS, values, strict=True):
            setattr(self, name, value)

    def __getitem__(self, index: int) -> object:
        return self.values[index]


@pytest.mark.many
@pytest.mark.parametrize("seed", range(32))
def test_random_functions_answer_as_their_trees(seed: int) -> None:
    chance = random.Random(seed)
    values = [0, 1, 5, -3, None, "", "x", "y", 2.5, True, 2**70]
    record, said = Record(frozenset(FIELDS), tuple(FIELDS)), 0
    for _ in range(400):
        text = function(chance)
        call = compiled(text)
        if call is not None:
            rows = [Row(*(chance.choice(values) for _ in FIELDS)) for _ in range(4)]
            said += compare(call, record, rows, text)
    assert said > 20
