"""The columns that stages can read, found in the texts of their templates and their functions."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from flow_core.stages import Stage, Template
from flow_spark.items.records import runs_no_code
from flow_spark.items.shapes import name_of
from flow_spark.narrowing.fields_read import GivenUpError, Record, fields_read

__all__ = ["columns_read", "record_of"]


class _Uses(NamedTuple):
    """The use that a stage makes of an item.

    Attributes:
        functions: the positions of the arguments that it calls with the item alone.
        passes: whether it passes the item itself on to the next stage.
    """

    functions: tuple[int, ...]
    passes: bool


def columns_read(
    stages: Iterable[Stage[Any, Any]],  # Any: items of any type
    columns: Sequence[str],
    record: Record,
) -> frozenset[str]:
    """Return the columns that `stages` can read of records with a field for each column.

    If the records themselves leave the stages, these are all columns.

    Args:
        stages: the stages, upstream first.
        columns: the names of all columns.
        record: the way in which fields are taken out of a record.

    Raises:
        GivenUpError: if they may read all of them.
    """
    found: set[str] = set()
    for stage in stages:
        try:
            uses = _uses_of(stage.template)
            for index in uses.functions:
                function = stage.args[index]
                found |= fields_read(function, record)
        except GivenUpError as error:
            raise GivenUpError(f"{stage!r}: {error}") from None
        if not uses.passes:
            return frozenset(found)
    return frozenset(columns)


def record_of(columns: Sequence[str], as_: object) -> Record:
    """Return the way in which columns are taken out of a record of the type `as_`.

    Raises:
        GivenUpError: if code of that type may read any column.
    """
    indexes = tuple(columns)
    if as_ is None or as_ is tuple:
        return Record(frozenset(), indexes)
    if isinstance(as_, type) and runs_no_code(as_):
        return Record(frozenset(columns), indexes if issubclass(as_, tuple) else ())
    raise GivenUpError(f"code of {name_of(as_)} may read all columns")


@cache
def _uses_of(template: Template) -> _Uses:
    """Return the use that the text for an item makes of ``x``.

    Raises:
        GivenUpError: if it does not only call functions with it.
    """
    walk = _Walk(template.params)
    walk.block(ast.parse(textwrap.dedent(template.on_item)).body, is_record=True)
    return _Uses(tuple(sorted(walk.functions)), walk.passes)


class _Walk:
    """Walks through the statements of a text, as long as ``x`` is the record."""

    def __init__(self, params: tuple[str, ...]) -> None:
        self._params = params
        self.functions: set[int] = set()
        self.passes = False

    def block(self, statements: Sequence[ast.stmt], *, is_record: bool) -> bool:
        """Walk through a block; return whether ``x`` may be the record behind it."""
        for statement in statements:
            is_record = self._statement(statement, is_record=is_record)
        return is_record

    def _statement(self, statement: ast.stmt, *, is_record: bool) -> bool:
        match statement:
            case ast.Expr(ast.Name("EMIT")):
                self.passes = self.passes or is_record
            case ast.Assign([ast.Name("x")], value):
                self._expression(value, is_record=is_record)
                return False
            case ast.For(ast.Name("x"), items, body, _):
                self._expression(items, is_record=is_record)
                self.block(body, is_record=False)
            case ast.For(target, items, body, _):
                for part in (target, items):
                    self._expression(part, is_record=is_record)
                self.block(body, is_record=is_record)
            case ast.If(test, body, otherwise):
                self._expression(test, is_record=is_record)
                ends = [self.block(part, is_record=is_record) for part in (body, otherwise)]
                return any(ends)
            case _:
                self._expression(statement, is_record=is_record)
        return is_record

    def _expression(self, node: ast.AST, *, is_record: bool) -> None:
        if not is_record:
            return
        match node:
            case ast.Call(ast.Name(name), [ast.Name("x")], []) if name in self._params:
                self.functions.add(self._params.index(name))
            case ast.Name("x"):
                raise GivenUpError("it keeps the record, or uses it as a whole")
            case _:
                for part in ast.iter_child_nodes(node):
                    self._expression(part, is_record=True)
