"""The core's own marks: fusion never loses, stages are held against loops, debugging is cheap."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

import reactivex
from reactivex import operators as rx

import flow_core as flow
from flow_core import (
    EMPTY,
    UNBOUNDED,
    CoreSubscriber,
    Flow,
    Fusion,
    QueueSubscription,
    Subscriber,
    Subscription,
    hooks,
)
from flow_core.structure import stages_of
from flow_core.subscribers import core_subscriber
from flow_ops import observe_on
from rounds import Case, Pair, compare, python, versus

RUNS = 5_000
"""Subscriptions and assemblies in one round."""
CHAIN_WORK = 60_000
"""Items times stages of a chain in one round."""
ITEMS = 100_000
PEER_ITEMS = 10_000
"""The most items that ReactiveX can process with each of its operators."""

MORE_ROUNDS = 21
"""Rounds for a case whose mark is nearer to 1 than single rounds are to each other."""
NOISE = 1.05
"""The mark for work that must not cost more than other work: a twentieth is noise."""


def increment(n: int) -> int:
    return n + 1


def is_positive(n: int) -> bool:
    return n > 0


def is_tenth(n: int) -> bool:
    return n % 10 == 0


def add(total: int, n: int) -> int:
    return total + n


def ignore(_: object = None) -> None:
    pass


# -- subscribers and sources with a known agreement on fusion


@final
class Adding(CoreSubscriber[int]):
    """Adds up its items: it polls if the upstream grants fusion, and requests otherwise.

    Args:
        mode: the fusion mode to request.
        batch: items to request at a time, without fusion; `UNBOUNDED` requests once.
    """

    def __init__(self, mode: Fusion = Fusion.NONE, batch: int = UNBOUNDED) -> None:
        self.total = 0
        self.granted = Fusion.NONE
        self._mode = mode
        self._batch = self._left = batch
        self._upstream: Subscription | None = None
        self._queue: QueueSubscription[int] | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        if self._mode and isinstance(subscription, QueueSubscription):
            self.granted = subscription.request_fusion(self._mode)
            if self.granted:
                self._queue = subscription
        if self.granted & Fusion.SYNC:
            self._poll()
        else:
            subscription.request(self._batch)

    def on_next(self, item: int, /) -> None:
        if self._queue is not None:
            self._poll()
            return
        self.total += item
        if self._batch != UNBOUNDED:
            self._left -= 1
            if not self._left and self._upstream is not None:
                self._left = self._batch
                self._upstream.request(self._batch)

    def on_error(self, error: BaseException, /) -> None:
        raise AssertionError("no flow here fails") from error

    def on_complete(self) -> None:
        if self._queue is not None:
            self._poll()  # completion may arrive while items wait

    def _poll(self) -> None:
        if self._queue is not None:
            poll, total = self._queue.poll, self.total
            while (item := poll()) is not EMPTY:
                total += item
            self.total = total


@final
class Pushed:
    """A publisher that sends from within `request`, and knows nothing of fusion."""

    def __init__(self, items: int) -> None:
        self._items = items

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        pushing = Pushing(core_subscriber(subscriber), self._items)
        pushing.start()


@final
class Pushing:
    """The subscription of one subscriber to `Pushed`."""

    def __init__(self, downstream: CoreSubscriber[int], items: int) -> None:
        self._downstream = downstream
        self._items = iter(range(items))
        self._demand = 0
        self._running = True
        self._cancelled = False

    def start(self) -> None:
        self._downstream.on_subscribe(self)
        self._running = False
        self._run()

    def request(self, n: int, /) -> None:
        self._demand += n
        self._run()

    def cancel(self) -> None:
        self._cancelled = True

    def _run(self) -> None:
        if self._running:
            return
        self._running = True
        on_next = self._downstream.on_next
        while self._demand and not self._cancelled:
            self._demand -= 1
            item = next(self._items, None)
            if item is None:
                self._cancelled = True
                self._downstream.on_complete()
            else:
                on_next(item)
        self._running = False


def added(
    make: Callable[[], Flow[int]],
    mode: Fusion = Fusion.NONE,
    *,
    batch: int = UNBOUNDED,
    grants: Fusion = Fusion.NONE,
) -> Callable[[], int]:
    """Return work that sums a flow by an `Adding`, which must get the fusion that `grants` says."""

    def work() -> int:
        subscriber = Adding(mode, batch)
        make().subscribe(subscriber)
        if subscriber.granted != grants:
            raise AssertionError(f"granted {subscriber.granted!r}, not {grants!r}")
        return subscriber.total

    return work


def summed(make: Callable[[], Flow[int]]) -> Callable[[], int]:
    """Return work that sums a flow by iteration."""
    return lambda: sum(make())


# -- 1. a fused chain never loses


def staged(source: Flow[int], stages: int, *, hidden: bool = False) -> Flow[int]:
    """Apply `stages` alternating maps and filters to `source`, each of them hidden or not."""
    made = source
    for index in range(stages):
        made = made.filter(is_positive) if index % 2 else made.map(increment)
        if hidden and index < stages - 1:
            made = made.hide()
    return made


def inline(task: Callable[[], object]) -> None:
    """Run a task at once, as an executor."""
    task()


def chains(stages: int) -> None:
    items = CHAIN_WORK // (stages + 2)

    def ranged() -> Flow[int]:
        return staged(flow.range(items), stages)

    def apart() -> Flow[int]:
        return staged(flow.range(items).hide(), stages)

    def pushed(*, hide: bool = False) -> Flow[int]:
        source: Flow[int] = Flow(Pushed(items))
        return source.hide() if hide else source

    def observed(*, hide: bool = False) -> Flow[int]:
        source = flow.range(items)
        return (source.hide() if hide else source).pipe(observe_on(inline))

    pairs = [
        Pair("range, iterated; source hidden", summed(ranged), summed(apart), NOISE),
        Pair("range, subscribed; source hidden", added(ranged), added(apart), NOISE),
        Pair(
            "range, polled; source hidden",
            added(ranged, Fusion.SYNC, grants=Fusion.SYNC),
            added(apart, Fusion.SYNC),
            NOISE,
        ),
        Pair(
            "range, observe_on inline; source hidden",
            added(lambda: staged(observed(), stages)),
            added(lambda: staged(observed(hide=True), stages)),
            NOISE,
        ),
        Pair(
            "pushed, observe_on inline, polled; end hidden",
            added(
                lambda: staged(pushed().pipe(observe_on(inline)), stages),
                Fusion.ASYNC,
                grants=Fusion.ASYNC,
            ),
            added(lambda: staged(pushed().pipe(observe_on(inline)), stages).hide(), Fusion.ASYNC),
            NOISE,
        ),
        Pair(
            "pushed, subscribed; source hidden",
            added(lambda: staged(pushed(), stages)),
            added(lambda: staged(pushed(hide=True), stages)),
            NOISE,
        ),
    ]
    if stages > 1:
        pairs += [
            Pair(
                "range, subscribed; each stage hidden",
                added(ranged),
                added(lambda: staged(flow.range(items), stages, hidden=True)),
                NOISE,
            ),
            Pair(
                "pushed, subscribed; each stage hidden",
                added(lambda: staged(pushed(), stages)),
                added(lambda: staged(pushed(), stages, hidden=True)),
                NOISE,
            ),
        ]
    versus(
        f"A chain of {stages}, map and filter in turn",
        *pairs,
        items=items,
        ways=("fused", "hidden"),
    )


# -- 2. conditional fusion


def conditional() -> None:
    """Time a filter that drops nine of ten, with a subscriber that requests one at a time (F57)."""

    def conditionally() -> Flow[int]:
        return Flow(flow.range(ITEMS)).filter(is_tenth)

    def hidden() -> Flow[int]:
        return flow.range(ITEMS).hide().filter(is_tenth)

    def observed(*, hide: bool) -> Callable[[], Flow[int]]:
        def make() -> Flow[int]:
            source = flow.range(ITEMS).pipe(observe_on(inline))
            return (source.hide() if hide else source).filter(is_tenth)

        return make

    def one_loop() -> Flow[int]:
        return flow.range(ITEMS).filter(is_tenth)

    versus(
        "A filter drops 90 % of a range; the upstream is conditional, or hidden",
        *(
            Pair(
                f"{what}, request({'unbounded' if batch == UNBOUNDED else batch})",
                added(fused, batch=batch),
                added(unfused, batch=batch),
                NOISE,
            )
            for what, fused, unfused in (
                ("try_on_next", conditionally, hidden),
                ("observe_on inline", observed(hide=False), observed(hide=True)),
                ("compiled into one loop", one_loop, conditionally),
            )
            for batch in (1, UNBOUNDED)
        ),
        items=ITEMS,
        ways=("conditional", "hidden"),
    )


# -- 3. stages beside loops


def drained(make: Callable[[], Flow[object]]) -> Callable[[], object]:
    """Return work that iterates a flow and gives its last item and the number of items."""

    def work() -> object:
        count, item = 0, None
        for item in make():  # noqa: B007 - the last one is wanted
            count += 1
        return count, item

    return work


def subscribed(make: Callable[[], Flow[object]]) -> Callable[[], object]:
    """Return the same work as `drained`, done by a subscription."""

    def work() -> object:
        count, last = 0, None

        def on_next(item: object) -> None:
            nonlocal count, last
            count += 1
            last = item

        make().subscribe(on_next)
        return count, last

    return work


def peer(
    operator: Callable[[reactivex.Observable[int]], reactivex.Observable[Any]],
) -> Callable[[], object]:  # Any: items of any type
    """Return the same work as `drained`, done by ReactiveX."""

    def work() -> object:
        count, last = 0, None

        def on_next(item: object) -> None:
            nonlocal count, last
            count += 1
            last = item

        reactivex.from_iterable(range(PEER_ITEMS)).pipe(operator).subscribe(on_next)
        return count, last

    return work


def buffered_by_hand() -> object:
    count, last = 0, None
    buffer: list[int] = []
    for n in range(PEER_ITEMS):
        buffer.append(n)
        if is_tenth(n):
            last, buffer = buffer, []
            count += 1
    if buffer:
        last = buffer
        count += 1
    return count, last


def zipped_by_hand() -> object:
    count, last = 0, None
    for n, other in zip(range(PEER_ITEMS), range(PEER_ITEMS), strict=True):
        last = add(n, other)
        count += 1
    return count, last


def started_by_hand() -> object:
    count, last = 0, None
    for n in (-2, -1):
        last = n
        count += 1
    for n in range(PEER_ITEMS):
        last = n
        count += 1
    return count, last


def scanned_by_hand() -> object:
    count, last, total = 0, None, 0
    for n in range(PEER_ITEMS):
        last = total = add(total, n)
        count += 1
    return count, last


def keyed_by_hand() -> object:
    found: dict[int, int] = {}
    for n in range(PEER_ITEMS):
        found[increment(n)] = n
    return 1, found


def summed_by_hand() -> object:
    total = 0
    for n in range(PEER_ITEMS):
        total += n
    return 1, total


def kept_by_hand() -> object:
    kept: list[int] = []
    first = 0
    for n in range(PEER_ITEMS):
        if len(kept) < 100:
            kept.append(n)
        else:
            kept[first] = n
            first = (first + 1) % 100
    count, last = 0, None
    for n in kept[first:] + kept[:first]:
        last = n
        count += 1
    return count, last


def indexed_by_hand() -> object:
    count, last = 0, None
    for index, n in enumerate(range(PEER_ITEMS)):
        last = add(n, index)
        count += 1
    return count, last


def against_loops() -> None:
    def source() -> Flow[int]:
        return flow.range(PEER_ITEMS)

    stages: list[
        tuple[str, Callable[[], object], Callable[[], Flow[object]], Callable[[], object] | None]
    ] = [
        ("buffer_until", buffered_by_hand, lambda: source().buffer_until(is_tenth), None),
        (
            "zip_with_iterable",
            zipped_by_hand,
            lambda: source().zip_with_iterable(range(PEER_ITEMS), add),
            peer(reactivex.compose(rx.zip_with_iterable(range(PEER_ITEMS)), rx.starmap(add))),
        ),
        (
            "start_with",
            started_by_hand,
            lambda: source().start_with(-2, -1),
            peer(rx.start_with(-2, -1)),
        ),
        ("scan", scanned_by_hand, lambda: source().scan(add, 0), peer(rx.scan(add, 0))),
        (
            "to_dict",
            keyed_by_hand,
            lambda: source().to_dict(increment),
            peer(rx.to_dict(increment)),
        ),
        ("sum", summed_by_hand, lambda: source().sum(), peer(rx.sum())),
        ("take_last", kept_by_hand, lambda: source().take_last(100), peer(rx.take_last(100))),
        (
            "map_indexed",
            indexed_by_hand,
            lambda: source().map_indexed(add),
            peer(rx.map_indexed(add)),
        ),
    ]
    for name, by_hand, make, by_peer in stages:
        cases = [
            python("hand-written loop", by_hand),
            Case("iterated", drained(make)),
            Case("subscribed", subscribed(make)),
        ]
        if by_peer is not None:
            cases.append(Case("reactivex", by_peer, by="reactivex"))
        compare(f"range | {name}", *cases, items=PEER_ITEMS)


def free_stages() -> None:
    """Time stages that only handle the end: they must not slow down a chain of maps."""

    def chain(between: Callable[[Flow[int]], Flow[int]]) -> Flow[int]:
        return between(flow.range(ITEMS).map(increment)).map(increment).map(increment)

    def plain() -> Flow[int]:
        return chain(lambda made: made)

    stages: list[tuple[str, Callable[[Flow[int]], Flow[int]]]] = [
        ("do_on_error", lambda made: made.do_on_error(ignore)),
        ("finally_action", lambda made: made.finally_action(ignore)),
        ("both", lambda made: made.do_on_error(ignore).finally_action(ignore)),
        ("checkpoint", lambda made: made.checkpoint("here")),
    ]
    versus(
        "range and three maps, with a stage between them that has nothing to do for an item",
        *(
            Pair(f"{name}, {how}", run(partial(chain, between)), run(plain), 1.03)
            for how, run in (("iterated", drained), ("subscribed", subscribed))
            for name, between in stages
        ),
        items=ITEMS,
        ways=("with", "without"),
        rounds=MORE_ROUNDS,
    )


# -- 4. the cost of debugging


def same_flow(made: Flow[object]) -> Flow[object]:
    return made


def debugging() -> None:
    length = 5

    def assemble() -> Flow[int]:
        return staged(flow.just(1), length)

    def assembled() -> int:
        made = assemble()
        for _ in range(RUNS - 1):
            made = assemble()
        return len(stages_of(made))

    def hooked() -> int:
        with hooks.on_assembly.scoped("benchmark", same_flow):
            return assembled()

    def debugged() -> int:
        with hooks.debug():
            return assembled()

    compare(
        f"Assembly of just(1) and {length} stages",
        Case("on_assembly is None", assembled),
        Case("on_assembly is set", hooked),
        Case("debug mode", debugged),
        items=RUNS,
        unit="assembly",
    )

    once = flow.just(1).map(increment)

    def subscribe() -> int:
        total = 0

        def on_next(n: int) -> None:
            nonlocal total
            total += n

        for _ in range(RUNS):
            once.subscribe(on_next)
        return total

    def subscribe_hooked() -> int:
        with hooks.on_subscribe.scoped("benchmark", lambda subscriber: subscriber):
            return subscribe()

    def subscribe_debugged() -> int:
        with hooks.debug():
            return subscribe()

    compare(
        "just(1) | map, subscribed, assembled once",
        Case("on_subscribe is None", subscribe),
        Case("on_subscribe is set", subscribe_hooked),
        Case("debug mode", subscribe_debugged),
        items=RUNS,
        unit="subscription",
    )

    chain = flow.range(ITEMS).map(increment).filter(is_positive).sum()

    def run() -> int:
        return next(iter(chain))

    def run_debugged() -> int:
        with hooks.debug():
            return next(iter(chain))

    compare(
        "range | map | filter | sum, iterated",
        Case("without debugging", run),
        Case("debug mode", run_debugged, NOISE),
        items=ITEMS,
    )


def main() -> None:
    for stages in (1, 2, 5, 20):
        chains(stages)
    conditional()
    against_loops()
    free_stages()
    debugging()


if __name__ == "__main__":
    main()
