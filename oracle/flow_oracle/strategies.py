"""The strategies that random pipelines are drawn from.

Nodes without a flow inside are enumerated and drawn from a list: one choice for an operator with
all its arguments keeps drawing cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from random import Random
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from flow_core import UNBOUNDED
from flow_oracle.language import Node

__all__ = ["NAMES", "cases"]

_random: Final = Random(0)


def _every(word: str, *options: Iterable[Any]) -> list[Node]:  # Any: parts of nodes
    """Return all nodes with one of the options in each place."""
    return [(word, *parts) for parts in product(*options)]


def _some(nodes: Sequence[Node], most: int = 60) -> list[Node]:
    """Return a selection if there are too many nodes."""
    return [*nodes] if len(nodes) <= most else _random.sample(nodes, most)


def _lists(word: str, least: int, most: int) -> list[Node]:
    """Return nodes of that many items, with more repetitions than chance would produce."""
    return [
        (word, *(_random.choice([*range(10), 0, 1, 1, 3]) for _ in range(length)))
        for length in range(least, most + 1)
        for _ in range(1 if length == 0 else 12)
    ]


_SMALL: Final = range(5)
_ITEMS: Final = range(10)
_PREFETCHES: Final = (1, 2, 3, 4, 128)
_CONCURRENCIES: Final = (1, 2, 128)
_ERRORS: Final = _every("error", range(1, 4))
_ENDS: Final = ("complete", "complete", "complete", *_ERRORS, "never")
_FAIL: Final = _every("fail", range(3, 10), range(4), range(4, 7))
_NULL: Final = _every("null", range(3, 10), range(4))
_MODULO: Final = _every("modulo", range(2, 5))

_MAPPERS: Final = [
    *_every("add", _ITEMS),
    *_every("multiply", range(2, 6)),
    *_MODULO,
    *_every("constant", range(3)),
    *[("number",), ("wrap",)] * 2,
    *_some(_FAIL, 8),
    *_some(_NULL, 4),
]
_KEYS: Final = [*_MODULO, ("number",), *_some(_FAIL, 2)]
_PREDICATES: Final = [
    *_every("less", _ITEMS),
    *_every("greater", _ITEMS),
    *_every("modulo", range(2, 4), range(2)),
    *[("always",), ("never",)] * 2,
    *_some(_FAIL, 8),
]
_ACCUMULATORS: Final = [
    *[("sum",), ("digits",), ("most",), ("last",)] * 3,
    *_some(_FAIL, 4),
    *_some(_NULL, 3),
]
_COMBINERS: Final = [*[("list",), ("digits",)] * 4, *_some(_FAIL, 2), *_some(_NULL, 2)]
_ITEM_LISTS: Final = _lists("items", 0, 6)

_PLAIN: Final[dict[str, list[Node]]] = {
    nodes[0][0]: nodes
    for nodes in (
        _every("map", _MAPPERS),
        _every("map_optional", [*_NULL, *_MAPPERS]),
        _every("do_on_next", [*_FAIL[:8], *[("number",)] * 8]),
        _every("filter", _PREDICATES),
        _every("take", _SMALL),
        _every("take_while", _PREDICATES),
        _every("take_until", _PREDICATES),
        _every("take_last", _SMALL),
        _every("skip", _SMALL),
        _every("skip_while", _PREDICATES),
        _every("skip_last", _SMALL),
        _every("distinct", _KEYS),
        _every("distinct_until_changed", _KEYS),
        _every("scan", _ACCUMULATORS),
        _every("scan_seed", _ACCUMULATORS, _ITEMS),
        _every("reduce", _ACCUMULATORS),
        _every("reduce_seed", _ACCUMULATORS, _ITEMS),
        _every("count"),
        _every("all", _PREDICATES),
        _every("some", _PREDICATES),
        _every("is_empty"),
        _every("contains", _ITEMS),
        _every("to_list"),
        _every("sort"),
        _every("buffer", range(1, 5), range(1, 5)),
        _every("pairwise"),
        _every("element_at", _SMALL),
        _every("element_at_or_default", _SMALL, _ITEMS),
        _every("first_or_error"),
        _every("first_or_default", _ITEMS),
        _every("last_or_error"),
        _every("last_or_default", _ITEMS),
        _every("single_or_error"),
        _every("single_or_default", _ITEMS),
        _every("ignore_elements"),
        _lists("start_with", 1, 3),
        _lists("end_with", 1, 3),
        _every("default_if_empty", _ITEMS),
        _every("on_error_return", _ITEMS),
        _every("on_error_complete"),
        _every("flat_map_iterable", _PREFETCHES, range(2, 5)),
        _some(_every("zip_with_iterable", _COMBINERS, _ITEM_LISTS)),
        _every("hide"),
        _every("retry", range(3)),
        _every("repeat", range(4)),
        _every("observe_on", _PREFETCHES, range(2)),
        _every("subscribe_on"),
        _every("rebatch_requests", _PREFETCHES),
        _every("on_backpressure_buffer"),
        _every("on_backpressure_drop"),
        _every("on_backpressure_latest"),
    )
}
"""Operators that need no other flow."""

_PROBES: Final = _every("probe", _ENDS, (0, 0, 0, 1), _ITEM_LISTS)
_LEAVES: Final = [
    _PROBES,
    _PROBES,
    _every("range", _ITEMS, range(7)),
    _lists("just", 1, 4),
    _every("iterable", ["complete", "complete", *_ERRORS], _ITEM_LISTS),
    _every("callable", [*_ITEMS, "null", "null", *_ERRORS]),
    [("empty",), ("never",), *_ERRORS, *_every("defer_fail", range(1, 4))],
]
_GIVEN: Final = [
    _every("given_probe", _ENDS, (0, 1), range(2, 5)),
    _every("given_range", range(2, 5)),
    [("given_just",)],
    *_LEAVES[1:],
]


def _with(head: list[Node], *flows: SearchStrategy[Any]) -> SearchStrategy[Node]:
    """Draw one of the nodes, with flows as its last parts."""
    return st.tuples(st.sampled_from(head), *flows).map(lambda drawn: (*drawn[0], *drawn[1:]))


def _with_list(head: list[Node], parts: SearchStrategy[Any]) -> SearchStrategy[Node]:
    """Draw one of the nodes, with the items of a list as its last parts."""
    return st.tuples(st.sampled_from(head), parts).map(lambda drawn: (*drawn[0], *drawn[1]))


def _joining(pipe: Any, inner: Any, stages: Any) -> dict[str, SearchStrategy[Node]]:
    """Return operators that take another flow, or make flows from items."""
    mapped = {
        "concat_map": (_PREFETCHES,),
        "concat_map_delay_error": (_PREFETCHES,),
        "concat_map_eager": (_CONCURRENCIES, _PREFETCHES),
        "flat_map": (_CONCURRENCIES, _PREFETCHES),
        "flat_map_delay_error": (_CONCURRENCIES, _PREFETCHES),
        "merge_all": (_CONCURRENCIES, _PREFETCHES),
        "switch_latest": (_PREFETCHES,),
        "switch_map": (_PREFETCHES,),
    }
    other: dict[str, tuple[Any, ...]] = {
        "and_then": (),
        "concat_with": (),
        "start_with_flows": (),
        "merge_with": (_PREFETCHES,),
        "zip_with": (_COMBINERS, _PREFETCHES),
        "with_latest_from": (_COMBINERS,),
        "amb_with": (),
        "switch_if_empty": (),
        "on_error_resume": (),
        "take_until_other": (),
        "skip_until_other": (),
    }
    within: dict[str, tuple[Any, ...]] = {
        "window": (range(1, 4), range(1, 4)),
        "publish": (_PREFETCHES,),
    }
    return {
        **{name: _with(_every(name, *options), inner) for name, options in mapped.items()},
        **{name: _with(_every(name, *options), pipe) for name, options in other.items()},
        **{name: _with_list(_every(name, *options), stages) for name, options in within.items()},
        # A group without a subscriber waits here; in RxJava another one takes its place.
        "group_by": _with_list(
            _every("group_by", _KEYS, _PREFETCHES, (128,)),
            stages.filter(lambda drawn: ("take", 0) not in drawn),
        ),
    }


def _sources(pipe: Any) -> dict[str, SearchStrategy[Node]]:
    """Return sources that are made of flows."""
    several = st.lists(pipe, min_size=1, max_size=3)
    return {
        "defer": _with([("defer",)], pipe),
        "concat": _with_list([("concat",)], several),
        "merge": _with_list(_every("merge", _CONCURRENCIES, _PREFETCHES), several),
        "merge_sequential": _with_list(
            _every("merge_sequential", _CONCURRENCIES, _PREFETCHES), several
        ),
        "zip": _with_list(_every("zip", _COMBINERS, _PREFETCHES), several),
        "combine_latest": _with_list(_every("combine_latest", _COMBINERS, _PREFETCHES), several),
        "amb": _with_list([("amb",)], several),
        "sequence_equal": _with(_every("sequence_equal", _PREFETCHES), pipe, pipe),
    }


NAMES: Final = frozenset(
    (*_PLAIN, *_joining(st.nothing(), st.nothing(), st.nothing()), *_sources(st.nothing()))
)
"""All operators, and the sources that are made of several flows."""


def _pipes(
    leaves: Sequence[Sequence[Node]], depth: int, most: int, only: frozenset[str]
) -> SearchStrategy[Node]:
    def chosen(made: dict[str, Any]) -> list[Any]:
        return [strategy for name, strategy in made.items() if not only or name in only]

    plain = [st.sampled_from(nodes) for nodes in chosen(_PLAIN)]
    source: SearchStrategy[Node] = st.one_of([st.sampled_from(nodes) for nodes in leaves])
    operators = plain
    if depth:
        inner = _pipes(_GIVEN, depth - 1, 2, only)
        pipe = _pipes(_LEAVES, depth - 1, 2, only)
        stages = st.lists(st.one_of(plain), max_size=3) if plain else st.just([])
        operators = plain + chosen(_joining(pipe, inner, stages))
        if sources := chosen(_sources(pipe)):
            source = st.one_of(source, source, st.one_of(sources))
    drawn = st.lists(st.one_of(operators), max_size=most) if operators else st.just([])
    return st.tuples(source, drawn).map(lambda parts: ("pipe", parts[0], *parts[1]))


_AMOUNTS: Final = (1, 1, 2, 3, 5, 128, UNBOUNDED)


def _demands() -> list[Node]:
    """Return subscribers that request and cancel in many ways."""
    return [
        (
            "demand",
            _random.choice((0, 0, UNBOUNDED, *_AMOUNTS)),
            _random.choice((0, 0, 1, 2)),
            _random.choice((0, 0, 0, 1, 2, 3)),
            *(_random.choice(_AMOUNTS) for _ in range(_random.randrange(9))),
            _random.choice((UNBOUNDED, UNBOUNDED, "cancel")),
        )
        for _ in range(2000)
    ]


def cases(only: frozenset[str] = frozenset(), most: int = 12) -> SearchStrategy[Node]:
    """Return a strategy for cases, see `language`.

    Args:
        only: names of operators and sources of several flows; all if there are none.
        most: the most operators of a pipeline.
    """
    return st.tuples(
        st.sampled_from(["foreign", "core"]),
        _pipes(_LEAVES, 2, most, only),
        st.sampled_from(_demands()),
    )
