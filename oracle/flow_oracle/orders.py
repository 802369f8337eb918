"""The properties of a case's items that do not depend on timing, and so must always hold."""

from __future__ import annotations

import enum
import re
from collections import Counter
from typing import Any, Final

from flow_core import UNBOUNDED
from flow_oracle.decisions import healthy, names
from flow_oracle.language import Node, text

__all__ = ["OPERATORS", "Order", "everything", "fails", "is_part", "may_lack", "muted", "order"]


class Order(enum.IntEnum):
    """The knowledge about a flow's items that holds whatever is requested, and when."""

    FIXED = 0
    """The items and their order are known."""
    ANY = 1
    """The items are known, but not their order."""
    COUNT = 2
    """Only the number of items is known."""
    UNKNOWN = 3
    """Nothing is known: it depends on timing."""


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


_RACING: Final = _words(
    "amb amb_with combine_latest with_latest_from switch_latest switch_map take_until_other "
    "skip_until_other on_backpressure_drop on_backpressure_latest"
)
"""Operators whose items depend on the demand."""
_MERGING: Final = _words("merge merge_all merge_with flat_map flat_map_delay_error group_by")
"""Operators that merge the items of several flows, in any order."""
_PAIRING: Final = _words("zip zip_with zip_with_iterable sequence_equal")
"""Operators that pair items by position."""
_EACH: Final = _words(
    "map hide concat concat_with defer start_with start_with_flows end_with default_if_empty "
    "switch_if_empty count is_empty to_list sort ignore_elements on_error_return on_error_complete "
    "on_error_resume retry repeat observe_on subscribe_on rebatch_requests on_backpressure_buffer "
    "publish and_then do_on_next merge_sequential"
)
"""Operators whose number of items depends neither on the input's order nor on its values."""
_VALUES: Final = _words(
    "map_optional filter all some contains flat_map_iterable concat_map concat_map_delay_error "
    "concat_map_eager"
)
"""Operators whose number of items depends on the input's values, but not on their order."""
_PLACES: Final = _words(
    "pairwise take take_last skip skip_last scan scan_seed reduce reduce_seed buffer window "
    "element_at element_at_or_default first_or_error first_or_default last_or_error "
    "last_or_default single_or_error single_or_default"
)
"""Operators for which the order matters, but not for the number of items."""
_BOTH: Final = _words("take_while take_until skip_while distinct distinct_until_changed")
"""Operators for which both matter."""

OPERATORS: Final = (_RACING, _MERGING, _PAIRING, _EACH, _VALUES, _PLACES, _BOTH)
"""All operators that are drawn: each is in one of these sets."""

_PER_ITEM: Final = _words(
    "flat_map flat_map_delay_error merge_all concat_map concat_map_delay_error concat_map_eager"
)
_LEAVING: Final = _words(
    "take take_while take_until element_at element_at_or_default first_or_error first_or_default "
    "single_or_error single_or_default all some contains is_empty zip zip_with zip_with_iterable "
    "sequence_equal"
)
"""Operators that may end before their upstream does."""
_RECOVERING: Final = _words("on_error_return on_error_complete on_error_resume retry")
_AGAIN: Final = _words("retry repeat")
_WITHIN: Final = {"group_by": 4, "window": 3, "publish": 2}
"""The index of the first part that is an operator applied to each flow within."""


def order(case: Node) -> Order:
    """Return what is known of the items of a case.

    If a case continues after a failure, nothing is known: the items before the failure depend on
    the moment at which it is noticed.
    """
    if fails(case) and names(case[1]) & _RECOVERING:
        return Order.UNKNOWN
    return _flow(case[1])


def _flow(pipe: Node) -> Order:
    _, source, *operators = pipe
    return _behind(_joined(source, Order.FIXED), operators)


def _behind(made: Order, operators: Any) -> Order:  # Any: nodes
    for operator in operators:
        made = max(made, _joined(operator, made))
    return made


def _joined(node: Node, up: Order) -> Order:
    """Return what is known of the output of an operator, or of a source made of flows.

    Args:
        node: the operator, or the source.
        up: what is known of its input.
    """
    name = node[0]
    within = node[_WITHIN[name] :] if name in _WITHIN else ()
    inner = [_flow(part) for part in node if isinstance(part, tuple) and part[:1] == ("pipe",)]
    known = max([up, *inner])
    if known is Order.UNKNOWN or name in _RACING:
        return Order.UNKNOWN
    if known is not Order.FIXED and name in _PER_ITEM and "never" in text(node):
        return Order.UNKNOWN  # the first one that never ends keeps the others from running
    if name in ("group_by", "window") and names(("pipe", *within)) & _AGAIN:
        return Order.UNKNOWN  # each serves one subscriber: it depends on when the second comes
    if name == "group_by":
        if names(("pipe", *within)) & _LEAVING:
            return Order.UNKNOWN  # a group that is cancelled early begins again
        known = _behind(known, within)
        return Order.ANY if known is Order.FIXED else _unless(known, up is not Order.FIXED)
    if name == "publish":
        return _behind(known, within)
    if name == "window":
        return _behind(known if known is Order.FIXED else Order.COUNT, within)
    if known is Order.FIXED:
        return Order.ANY if name in _MERGING else Order.FIXED
    if name in _MERGING | _VALUES:
        return _unless(known, name not in ("merge", "merge_with"))
    if name in _EACH:
        return _unless(known, _may_fail(node))
    if name in _BOTH or name == "sequence_equal" or _may_fail(node):
        return Order.UNKNOWN
    return Order.COUNT


def _unless(known: Order, values_matter: bool) -> Order:
    """Return `known`, or UNKNOWN if only the count is known and the values matter."""
    return Order.UNKNOWN if known is Order.COUNT and values_matter else known


def _may_fail(node: Node) -> bool:
    return bool(re.search(r"\((fail|null) ", text(node)))


def fails(case: Node) -> bool:
    """Return whether a part of a case may fail."""
    return bool(healthy(case) != case)


def everything(case: Node) -> Node:
    """Return `case` with nothing that fails, and a subscriber that requests everything at once."""
    kind, pipe, _ = case
    return (kind, healthy(pipe), ("demand", UNBOUNDED, 0, 0, UNBOUNDED))


def is_part(items: list[str], whole: list[str], known: Order) -> bool:
    """Return whether `items` is a valid part of `whole`, the items for unlimited demand."""
    match known:
        case Order.FIXED:
            return items == whole[: len(items)]
        case Order.ANY:
            return Counter(map(_numbers, items)) <= Counter(map(_numbers, whole))
        case Order.COUNT:
            return len(items) <= len(whole)
        case Order.UNKNOWN:
            return True


def _numbers(item: str) -> tuple[str, ...]:
    """Return the numbers of an item, sorted: a list may hold them in any order."""
    return tuple(sorted(re.findall(r"\d+", item)))


def may_lack(case: Node) -> bool:
    """Return whether the last items, the end or a failure of a case may never be requested."""
    demand = case[2]
    return demand[3] != 0 or demand[-1] != UNBOUNDED or bool(names(case[1]) & _LEAVING)


# Any: parts of nodes.
def muted(part: Any) -> Any:
    """Return `part` with its failing sources silent instead; functions may still fail."""
    if not isinstance(part, tuple):
        return part
    match part:
        case ("probe" | "given_probe" as word, ("error", _), *rest):
            return (word, "never", *rest)
        case ("iterable", ("error", _), items):
            return ("probe", "never", 0, items)
        case ("callable", ("error", _)) | ("error" | "defer_fail", _):
            return ("never",)
    return tuple(map(muted, part))
