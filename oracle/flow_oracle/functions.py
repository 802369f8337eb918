"""The functions of pipelines. Each has a counterpart in ``Functions.java``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flow_oracle.language import Node

__all__ = ["OracleError", "accumulator", "combiner", "key", "mapper", "number", "predicate"]

PRIME: Final = 10_007

Item = Any  # an int, or a list of items


class OracleError(Exception):
    """The error that functions and sources of the pipelines raise.

    Args:
        number: distinguishes one error from another.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"user{number}")
        self.number = number


def number(item: Item) -> int:
    """Return an item as a number: the sum, if it is a list."""
    return item if isinstance(item, int) else sum(map(number, item)) % PRIME


def _hit(node: Node, item: Item) -> bool:
    return bool(number(item) % node[1] == node[2])


def _failing(node: Node, item: Item) -> None:
    if _hit(node, item):
        raise OracleError(node[3])


def _fail_or(node: Node, item: Item, result: Item) -> Item:
    _failing(node, item)
    return result


def mapper(node: Node) -> Callable[[Item], Item]:
    """Return a function of one item."""
    k: Any = node[1] if len(node) > 1 else 0
    match node[0]:
        case "add":
            return lambda item: number(item) + k
        case "multiply":
            return lambda item: number(item) * k % PRIME
        case "modulo":
            return lambda item: number(item) % k
        case "number":
            return number
        case "wrap":
            return lambda item: [item]
        case "constant":
            return lambda _: k
        case "fail":
            return lambda item: _fail_or(node, item, item)
        case "null":
            return lambda item: None if _hit(node, item) else item
    raise ValueError(f"not known here: {node}")


def key(node: Node) -> Callable[[Item], int]:
    """Return the function whose results are compared in place of the items."""
    function = mapper(node)
    return lambda item: number(function(item))


def predicate(node: Node) -> Callable[[Item], bool]:
    """Return a predicate of one item."""
    k: Any = node[1] if len(node) > 1 else 0
    match node[0]:
        case "less":
            return lambda item: number(item) < k
        case "greater":
            return lambda item: number(item) > k
        case "modulo":
            return lambda item: _hit(node, item)
        case "always":
            return lambda _: True
        case "never":
            return lambda _: False
        case "fail":
            return lambda item: _fail_or(node, item, True)
    raise ValueError(f"not known here: {node}")


def accumulator(node: Node) -> Callable[[Item, Item], Item]:
    """Return a function that makes one item from two."""
    match node[0]:
        case "sum":
            return lambda a, b: (number(a) + number(b)) % PRIME
        case "digits":
            return lambda a, b: (number(a) * 10 + number(b)) % PRIME
        case "most":
            return lambda a, b: max(number(a), number(b))
        case "last":
            return lambda _, b: b
        case "fail":
            return lambda _, b: _fail_or(node, b, b)
        case "null":
            return lambda _, b: None if _hit(node, b) else b
    raise ValueError(f"not known here: {node}")


def combiner(node: Node) -> Callable[..., Item]:
    """Return a function that makes one item from several."""
    match node[0]:
        case "list":
            return lambda *items: list(items)
        case "digits":

            def digits(*items: Item) -> int:
                made = 0
                for item in items:
                    made = (made * 10 + number(item)) % PRIME
                return made

            return digits
        case "fail":
            return lambda *items: _fail_or(node, list(items), list(items))
        case "null":
            return lambda *items: None if _hit(node, list(items)) else list(items)
    raise ValueError(f"not known here: {node}")
