"""What type checkers infer of lifted subscribers and statistics; checked, never run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

from flow_core import CoreSubscriber, Flow, Operator, Subscription
from flow_core.introspection import Scannable, Statistics, links, report
from flow_core.operators import lift, serialize
from flow_core.stages._pulled import IteratorSubscription
from flow_core.subscribers import CallbackSubscriber, StrictSubscriber


class Texts(CoreSubscriber[int]):
    """Sends what it gets as text."""

    def __init__(self, downstream: CoreSubscriber[str]) -> None:
        self.downstream = downstream

    def on_subscribe(self, subscription: Subscription, /) -> None: ...

    def on_next(self, item: int, /) -> None:
        self.downstream.on_next(str(item))

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self) -> None: ...


class Link:
    """A link of somebody else's."""

    def statistics(self) -> Statistics:
        return Statistics(operator="mine", buffered=3)


def lifted(ints: Flow[int], words: Flow[str]) -> None:
    texts: Operator[int, Flow[str]] = lift("texts", Texts)
    assert_type(ints.pipe(texts), Flow[str])
    assert_type(ints.pipe(lift("texts", Texts)), Flow[str])
    words.pipe(lift("texts", Texts))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(words.pipe(serialize(prefetch=8)), Flow[str])


def statistics(
    handle: CallbackSubscriber[int],
    strict: StrictSubscriber[int],
    source: IteratorSubscription[int],
) -> None:
    scannable: tuple[Scannable, ...] = (handle, strict, source, Link())
    for each in scannable:
        assert_type(links(each), Iterator[Statistics])
        assert_type(report(each), str)
    found = handle.statistics()
    assert_type(found.requested, int | None)
    assert_type(found.upstream, object | None)
    assert_type(found.tags, tuple[tuple[str, str], ...])
    found.buffered = 3  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
