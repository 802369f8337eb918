"""Synchronous operators: code for one item each, which is compiled into one loop.

All stages have this in common, unless their own documentation says otherwise:

Demand: a stage that turns each item into at most one item passes requests on. An item that it drops
is requested again, or the stage answers False for it if its upstream is conditional (see
`ConditionalSubscriber`). A stage that emits nothing before the end requests everything. A stage
that turns one item into several, or adds items, requests 128 items ahead and refills at 75 %. No
stage requests more than it can use; `take` is an example.
Thread: an item passes the stage on the thread that brings it; an item that had to wait for demand,
on the thread that requests it. A stage starts no thread and waits for none.
Fusion: SYNC if the upstream is an iterator; also ASYNC if each item becomes at most one item and
the stage does nothing at the end. Both work across threads only if the stage calls no function of
the user.
Errors: an error raised by a user's function fails the flow with that very object, and the upstream
is cancelled. If the function returns None, the flow fails with a NoneItemError. A count that is not
an int raises a TypeError, and one that is too small a ValueError, where the stage is put into the
flow.
"""

from typing import TYPE_CHECKING, Final

from flow_core.exports import exported

if TYPE_CHECKING:
    from flow_core.stages._aggregate import (
        ALL,
        AVERAGE,
        COLLECT,
        COLLECT_PARTS,
        CONTAINS,
        COUNT,
        COUNT_BY_KEY,
        IS_EMPTY,
        MAX,
        MAX_BY,
        MIN,
        MIN_BY,
        REDUCE,
        REDUCE_BY_KEY,
        REDUCE_BY_KEY_OF,
        REDUCE_FROM,
        SOME,
        SORT,
        SORT_BY,
        SUM,
        TO_DICT,
        TO_DICT_OF,
        TO_LIST,
        TO_SET,
        Comparable,
    )
    from flow_core.stages._closing import Failing, Gate, close_iterator, exhausted
    from flow_core.stages._codegen import Form
    from flow_core.stages._effects import CHECKPOINT, DO_AFTER_NEXT, DO_ON_NEXT, labels
    from flow_core.stages._filtering import CHECK, DISTINCT, DISTINCT_BY, TAKE
    from flow_core.stages._fluent import identity
    from flow_core.stages._program import Program, generated_source
    from flow_core.stages._pulled import GRANT
    from flow_core.stages._recovery import ErrorFilter, error_filter, in_context, matches
    from flow_core.stages._sink import SingleSink
    from flow_core.stages._template import (
        UNSET,
        Stage,
        Template,
        TemplateError,
        describe,
        line_of,
        refuse_coroutine_function,
        user_site,
    )
    from flow_core.stages._transform import (
        BUFFER_WITH_COUNT,
        BUFFER_WITH_COUNT_SKIP,
        FLAT_MAP_ITERABLE,
        MAP,
        PAIRWISE,
        SCAN,
    )
    from flow_core.stages._translation import Translation

__all__ = [
    "ALL",
    "AVERAGE",
    "BUFFER_WITH_COUNT",
    "BUFFER_WITH_COUNT_SKIP",
    "CHECK",
    "CHECKPOINT",
    "COLLECT",
    "COLLECT_PARTS",
    "CONTAINS",
    "COUNT",
    "COUNT_BY_KEY",
    "DISTINCT",
    "DISTINCT_BY",
    "DO_AFTER_NEXT",
    "DO_ON_NEXT",
    "FLAT_MAP_ITERABLE",
    "GRANT",
    "IS_EMPTY",
    "MAP",
    "MAX",
    "MAX_BY",
    "MIN",
    "MIN_BY",
    "PAIRWISE",
    "REDUCE",
    "REDUCE_BY_KEY",
    "REDUCE_BY_KEY_OF",
    "REDUCE_FROM",
    "SCAN",
    "SOME",
    "SORT",
    "SORT_BY",
    "SUM",
    "TAKE",
    "TO_DICT",
    "TO_DICT_OF",
    "TO_LIST",
    "TO_SET",
    "UNSET",
    "Comparable",
    "ErrorFilter",
    "Failing",
    "Form",
    "Gate",
    "Program",
    "SingleSink",
    "Stage",
    "Template",
    "TemplateError",
    "Translation",
    "close_iterator",
    "describe",
    "error_filter",
    "exhausted",
    "generated_source",
    "identity",
    "in_context",
    "labels",
    "line_of",
    "matches",
    "refuse_coroutine_function",
    "user_site",
]

_PLACES: Final = {
    "._aggregate": (
        "ALL",
        "AVERAGE",
        "COLLECT",
        "COLLECT_PARTS",
        "CONTAINS",
        "COUNT",
        "COUNT_BY_KEY",
        "Comparable",
        "IS_EMPTY",
        "MAX",
        "MAX_BY",
        "MIN",
        "MIN_BY",
        "REDUCE",
        "REDUCE_BY_KEY",
        "REDUCE_BY_KEY_OF",
        "REDUCE_FROM",
        "SOME",
        "SORT",
        "SORT_BY",
        "SUM",
        "TO_DICT",
        "TO_DICT_OF",
        "TO_LIST",
        "TO_SET",
    ),
    "._closing": (
        "Failing",
        "Gate",
        "close_iterator",
        "exhausted",
    ),
    "._codegen": ("Form",),
    "._effects": (
        "CHECKPOINT",
        "DO_AFTER_NEXT",
        "DO_ON_NEXT",
        "labels",
    ),
    "._filtering": (
        "CHECK",
        "DISTINCT",
        "DISTINCT_BY",
        "TAKE",
    ),
    "._fluent": ("identity",),
    "._program": (
        "Program",
        "generated_source",
    ),
    "._pulled": ("GRANT",),
    "._recovery": (
        "ErrorFilter",
        "error_filter",
        "in_context",
        "matches",
    ),
    "._sink": ("SingleSink",),
    "._template": (
        "Stage",
        "Template",
        "TemplateError",
        "UNSET",
        "describe",
        "line_of",
        "refuse_coroutine_function",
        "user_site",
    ),
    "._transform": (
        "BUFFER_WITH_COUNT",
        "BUFFER_WITH_COUNT_SKIP",
        "FLAT_MAP_ITERABLE",
        "MAP",
        "PAIRWISE",
        "SCAN",
    ),
    "._translation": ("Translation",),
}
"""Names that are loaded when they are first used: some of their modules make flows, which import
other stages."""

if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then
    __getattr__, __dir__ = exported(__name__, _PLACES)
