"""Recipes to get n items out of flow-multicast's operators and its processors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from flow_core import Flow
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    cache,
    multicast,
    publish,
    publish_value,
    replay,
    serialized,
    share,
)
from flow_tck.threads import repeat

__all__ = ["FED", "OPERATORS", "VARIANTS"]

# Any: of all types of items.
AnyFlow = Flow[Any]

_HOUR_S: Final = 3600.0


def _itself(made: AnyFlow) -> AnyFlow:
    return made


def _forked(made: AnyFlow) -> AnyFlow:
    made.subscribe(_ignore, _ignore)  # requests everything, beside the kit's
    return made


def _ignore(_: object) -> None:
    pass


def _valued(f: AnyFlow, n: int) -> AnyFlow:
    # Values replace each other. So the items are made from the initial value, not from the source.
    return f.ignore_elements().pipe(publish_value(n)).ref_count().flat_map_iterable(range)


_Apply = Callable[[AnyFlow, int], AnyFlow]

OPERATORS: Final[Mapping[str, tuple[_Apply, bool]]] = {
    "cache": (lambda f, _: f.pipe(cache()), False),
    "multicast": (lambda f, _: f.pipe(multicast(ReplayProcessor)).ref_count(), False),
    "publish": (lambda f, _: f.pipe(publish()).auto_connect(), True),
    "publish_value": (_valued, False),
    "replay": (lambda f, _: f.pipe(replay()).auto_connect(), False),
    "share": (lambda f, _: f.pipe(share()), True),
}
"""Operators by their registered names.

Each has a way to apply it to ints, and whether no subscriber gets an item before all have requested
it.
"""

VARIANTS: Final[Mapping[str, tuple[_Apply, bool]]] = {
    "cache, 8 items": (lambda f, _: f.pipe(cache(size=8)), False),
    "multicast, lock-step": (lambda f, _: f.pipe(multicast(MulticastProcessor)).ref_count(), True),
    "multicast, one processor": (
        lambda f, _: f.pipe(multicast(ReplayProcessor[Any]())).auto_connect(),
        False,
    ),
    "publish, prefetch 1": (lambda f, _: f.pipe(publish(prefetch=1)).ref_count(), True),
    "publish, with a selector": (lambda f, _: f.pipe(publish(_itself)), False),
    "publish, with a selector and another subscriber": (
        lambda f, _: f.pipe(publish(_forked)),
        False,
    ),
    "replay, 8 items": (lambda f, _: f.pipe(replay(size=8)).auto_connect(), False),
    "replay, an hour": (lambda f, _: f.pipe(replay(ttl=_HOUR_S)).auto_connect(), False),
    "replay, 8 items of an hour": (
        lambda f, _: f.pipe(replay(size=8, ttl=_HOUR_S)).ref_count(),
        False,
    ),
    "replay, with a selector": (lambda f, _: f.pipe(replay(_itself)), False),
    "replay, 8 items, with a selector": (lambda f, _: f.pipe(replay(_itself, size=8)), False),
    "share, with a time of grace": (lambda f, _: f.pipe(share(grace=0.001)), True),
}
"""Other ways to use these operators."""


# -- processors, as publishers


def _fed_before(make: Callable[[], Any], n: int) -> Any:
    """Make a processor that keeps its items for subscribers that come later, and feed it."""
    processor = make()
    for item in range(n):
        processor.on_next(item)
    processor.on_complete()
    return processor


def _fed_by_demand(make: Callable[[], Any], n: int) -> Any:
    """Make a processor and feed it, as its room permits, once it has a subscriber."""
    processor = make()
    waiting = deque(range(n))

    def feed() -> bool:
        while waiting and processor.has_subscribers and processor.offer(waiting[0]):
            waiting.popleft()
        if not waiting:
            processor.on_complete()
        return not waiting

    repeat(feed)
    return processor


_Make = Callable[[], Any]  # Any: a processor

FED: Final[Mapping[str, tuple[_Make, Callable[[_Make, int], Any], int | None, bool]]] = {
    "AsyncProcessor": (AsyncProcessor, _fed_before, 1, False),
    "BehaviorProcessor": (BehaviorProcessor, _fed_by_demand, 1, False),
    "DirectProcessor": (DirectProcessor, _fed_by_demand, None, True),
    "ReplayProcessor": (ReplayProcessor, _fed_before, None, False),
    "ReplayProcessor, 64 items": (partial(ReplayProcessor, 64), _fed_before, None, False),
    "ReplayProcessor, an hour": (
        partial(ReplayProcessor, ttl=_HOUR_S),
        _fed_before,
        None,
        False,
    ),
    "serialized": (lambda: serialized(ReplayProcessor[Any]()), _fed_before, None, False),
}
"""Processors that are fed by hand.

Each has a way to make it and one to feed it, the most items that it emits, and whether its
subscribers have to request together.
"""
