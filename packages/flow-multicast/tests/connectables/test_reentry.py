"""Each call of a connectable comes in at each moment of each other call, in the same thread."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import flow_core as flow
from flow_core.protocols import Disposable
from flow_multicast import (
    Connectable,
    MulticastProcessor,
    cache,
    multicast,
    publish,
    replay,
    share,
)
from flow_testing import Drops, TestPublisher, TestSubscriber, VirtualClock
from flow_testing.reentry import Reentry, explore_reentry

MODULES = ["flow_multicast.connectables"]

CONNECTABLES: dict[str, Callable[[flow.Flow[int]], Connectable[int]]] = {
    "publish": lambda source: source.pipe(publish()),
    "replay": lambda source: source.pipe(replay(size=4)),
    "one processor": lambda source: source.pipe(multicast(MulticastProcessor[int]())),
}
SHARED: dict[str, Callable[[flow.Flow[int]], flow.Flow[int]]] = {
    "share": lambda source: source.pipe(share()),
    "share, 9 s": lambda source: source.pipe(share(grace=9.0, clock=VirtualClock())),
    "auto_connect": lambda source: source.pipe(publish()).auto_connect(2),
    "ref_count": lambda source: source.pipe(publish()).ref_count(2),
    "cache": lambda source: source.pipe(cache()),
    "selected": lambda source: source.pipe(publish(lambda items: items.map(int))),
}


class Runs:
    """A source that is run by a connectable, and its two subscribers."""

    def __init__(self, kind: str, *, connected: bool = True) -> None:
        self.sources: list[TestPublisher[int]] = []
        source = flow.defer(self._made)
        self.connectable = CONNECTABLES[kind](source) if kind in CONNECTABLES else None
        self.flow = self.connectable.flow if self.connectable else SHARED[kind](source)
        self.connection: Disposable | None = None
        self.subscribers: list[TestSubscriber[int]] = []
        self.gone: list[TestSubscriber[int]] = []
        self.sent = 0
        for _ in range(2):
            self.subscribe()
        if connected:
            self.connect()

    def _made(self) -> TestPublisher[int]:
        self.sources.append(TestPublisher())
        return self.sources[-1]

    def subscribe(self) -> None:
        self.subscribers.append(TestSubscriber(20))
        self.flow.subscribe(self.subscribers[-1])

    def cancel(self) -> None:
        leaving = self.subscribers[1]
        self.gone.append(leaving)
        leaving.cancel()

    def connect(self) -> None:
        if self.connectable is not None:
            self.connection = self.connectable.connect()

    def dispose(self) -> None:
        if self.connection is not None:
            self.connection.dispose()

    @property
    def running(self) -> list[TestPublisher[int]]:
        """The sources that still have a subscriber."""
        return [
            one
            for one in self.sources
            if one.subscribed and not one.cancelled and not one.terminated
        ]

    def next(self) -> None:
        for source in self.running:
            if source.outstanding:
                self.sent += 1
                source.next(self.sent)

    def complete(self) -> None:
        for source in self.running:
            source.complete()

    def error(self) -> None:
        for source in self.running:
            source.error(ValueError("failed"))

    def statistics(self) -> None:
        if self.connectable is not None:
            self.connectable.statistics()


CALLS: dict[str, Callable[[Runs], object]] = {
    "subscribe": Runs.subscribe,
    "cancel": Runs.cancel,
    "connect": Runs.connect,
    "dispose": Runs.dispose,
    "next": Runs.next,
    "complete": Runs.complete,
    "error": Runs.error,
    "request": lambda runs: runs.subscribers[0].request(1),
    "request of nothing": lambda runs: runs.subscribers[1].subscription.request(0),
    "statistics": Runs.statistics,
}


SOURCE = {"next", "complete", "error"}
"""The calls of a source, which come one after the other."""
PAIRS = [(work, call) for work in CALLS for call in CALLS if not {work, call} <= SOURCE]


def explore(kind: str, work: str, call: str, drops: Drops, *, connected: bool) -> None:
    ends = bool({work, call} & {"complete", "error", "dispose"})

    def body() -> Reentry:
        runs = Runs(kind, connected=connected)

        def check() -> None:
            for subscriber in runs.subscribers:
                subscriber.assert_rules_kept()
                assert subscriber.items == sorted(set(subscriber.items))
            runs.connect()
            assert len(runs.running) <= (len(runs.subscribers) if kind == "selected" else 1)
            living = [
                one
                for one in runs.subscribers
                if one not in runs.gone and not one.completed and one.error is None
            ]
            if not ends:
                bad = "request of nothing" in {work, call}
                assert len(living) >= len(runs.subscribers) - len(runs.gone) - bad
            sources = runs.running
            if living and (kind != "ref_count" or len(living) >= 2):
                assert sources
                assert all(source.outstanding for source in sources)
            runs.next()
            for one in living:
                if sources and kind != "selected":
                    assert one.items
                    assert one.items[-1] == runs.sent
            for one in living:
                one.cancel()
            if kind in {"share", "ref_count", "selected"}:
                assert not runs.running
            for one in runs.subscribers:
                one.assert_rules_kept()
            drops.items.clear()
            drops.take_errors()  # of two ends, one is sent

        return Reentry(lambda: CALLS[work](runs), lambda: CALLS[call](runs), check)

    explore_reentry(body, modules=MODULES, timeout_s=1)


@pytest.mark.many
@pytest.mark.parametrize(("work", "call"), PAIRS)
@pytest.mark.parametrize("kind", [*CONNECTABLES, *SHARED])
def test_nothing_hangs_or_is_lost_while_a_source_runs(
    drops: Drops, kind: str, work: str, call: str
) -> None:
    explore(kind, work, call, drops, connected=True)


@pytest.mark.many
@pytest.mark.parametrize(("work", "call"), PAIRS)
@pytest.mark.parametrize("kind", CONNECTABLES)
def test_nothing_hangs_or_is_lost_while_subscribers_gather(
    drops: Drops, kind: str, work: str, call: str
) -> None:
    explore(kind, work, call, drops, connected=False)
