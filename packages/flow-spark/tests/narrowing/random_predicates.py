"""Random predicates of rows, as texts, and rows with values at the edges of their types."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

__all__ = ["DDL", "SCOPE", "Edge", "Predicates", "edges"]

DDL = (
    "a bigint, b bigint, tiny tinyint, f double, g double, single float, "
    "s string, u string, flag boolean"
)


class Edge(NamedTuple):
    """A row; each value may be None."""

    a: int
    b: int
    tiny: int
    f: float
    g: float
    single: float
    s: str
    u: str
    flag: bool


SCOPE = {"infinite": float("inf"), "undefined": float("nan"), "unknown": str}

_INTS = [0, 1, -1, 2, 3, 7, 10, 255, 2**31, -(2**31) - 1, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1]
_INTS += [2**63 - 1, -(2**63)]
_TINY = [0, 1, -1, 2, 127, -128]
_FLOATS = [0.0, -0.0, 0.5, -1.5, 2.0, 3.0, 1e300, -1e308, 5e-324, 2.0**53, 2.0**63]
_FLOATS += [float("nan"), float("inf"), float("-inf")]
_SINGLE = [0.0, 0.5, -1.5, 2.0, 0.10000000149011612, float("nan"), float("inf")]
_TEXTS = ["", "a", "b", "ab", "ba", "A", "\u00e9", "e\u0301", "\U0001d400", "\uffff"]
_TEXTS += ["\x00", "a\x00", "it's", "$x", "${x}", "a\\b", "%"]

_INT_TEXTS = [*map(str, _INTS), "2**63", "10**20", "True"]
_FLOAT_TEXTS = [*map(repr, _FLOATS[:11]), "1e19", "-9.3e18", "infinite", "undefined"]
_TEXT_TEXTS = [*map(repr, _TEXTS)]


def edges(count: int, chance: random.Random) -> list[Edge]:
    """Return rows."""
    columns: list[list[Any]] = [_INTS, _INTS, _TINY, _FLOATS, _FLOATS, _SINGLE, _TEXTS, _TEXTS]
    columns.append([True, False])
    return [Edge(*(chance.choice([None, *column]) for column in columns)) for _ in range(count)]


class Predicates:
    """Makes the text of a predicate, of names that `SCOPE` has."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def text(self) -> str:
        """Return a lambda, or the definition of a function ``f``."""
        if self._chance.random() < 0.8:
            return f"lambda t: {self._test(3)}"
        value = self._one(self._int(2), self._float(2))
        return (
            f"def f(t):\n    d = {value}\n"
            f"    if {self._test(2).replace('t.b', 'd')}:\n        return {self._test(1)}\n"
            f"    e, g = {self._atom()}, {self._atom()}\n    return e or {self._atom()}"
        )

    def _one(self, *choices: str) -> str:
        return self._chance.choice(choices)

    def _test(self, depth: int) -> str:
        kind = self._chance.random()
        if depth <= 0 or kind < 0.35:
            return self._atom()
        one, other = self._test(depth - 1), self._test(depth - 1)
        if kind < 0.6:
            return f"({one} and {other})"
        if kind < 0.8:
            return f"({one} or {other})"
        return f"not ({one})" if kind < 0.9 else f"({one} if {self._test(depth - 1)} else {other})"

    def _atom(self) -> str:
        compares = self._one("<", "<=", ">", ">=", "==", "!=")
        contains = self._one("in", "not in")
        field = self._one("t.s", "t.u")
        texts = [self._one(*_TEXT_TEXTS) for _ in range(2)]
        ints = [self._one(*_INT_TEXTS[:16]) for _ in range(3)]
        return self._one(
            f"{self._one('t.a', 't.f', 't.s', 't[8]', 't.tiny')} is {self._one('', 'not ')}None",
            f"{self._int(2)} {compares} {self._int(2)}",
            f"{self._int(2)} {compares} {self._int(2)}",
            f"{self._number(2)} {compares} {self._number(2)}",
            f"{self._number(2)} {compares} {self._number(2)}",
            f"{self._text()} {compares} {self._text()}",
            f"{self._text()} {compares} {self._text()}",
            f"{field}.{self._one('startswith', 'endswith')}({texts[0]})",
            f"{self._text()} {contains} {field}",
            f"{field} {contains} ({', '.join(texts)})",
            f"{self._int(1)} {contains} ({', '.join(ints)})",
            f"{self._int(1)} {compares} {self._int(1)} {self._one('<', '==')} {self._number(1)}",
            self._one("bool(t.s)", "(t.tiny and t.flag)", "True", "None", "unknown(t.a)"),
            self._one("t.flag", "t.a", "t.s", "t.f", "len(t.s)", "t.a + 1", "not t.u"),
        )

    def _int(self, depth: int) -> str:
        kind = self._chance.random()
        if depth <= 0 or kind < 0.45:
            return self._one("t.a", "t.b", "t.tiny", "t[0]")
        if kind < 0.7:
            return self._one(*_INT_TEXTS)
        if kind < 0.8:
            return f"len({self._one('t.s', 't.u')})"
        if kind < 0.85:
            return f"({self._int(depth - 1)} % {self._one('2', '3', '7', '0', '-3')})"
        if kind < 0.88:
            return f"(-{self._int(depth - 1)})"
        return f"({self._int(depth - 1)} {self._one('+', '-', '*')} {self._int(depth - 1)})"

    def _float(self, depth: int) -> str:
        kind = self._chance.random()
        if depth <= 0 or kind < 0.5:
            return self._one("t.f", "t.g", "t.single")
        if kind < 0.7:
            return self._one(*_FLOAT_TEXTS)
        if kind < 0.75:
            return f"(-{self._float(depth - 1)})"
        if kind < 0.82:
            return f"({self._int(depth - 1)} / {self._int(depth - 1)})"
        sign = self._one("+", "-", "*", "/")
        return f"({self._number(depth - 1)} {sign} {self._float(depth - 1)})"

    def _number(self, depth: int) -> str:
        return self._one(self._int(depth), self._float(depth))

    def _text(self) -> str:
        return self._one("t.s", "t.u", "t.s", "t.u", self._one(*_TEXT_TEXTS))
