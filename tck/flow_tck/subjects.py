"""The subjects to verify. To add a new operator, write one line in `RECIPES`, if any.

A synchronous stage needs no line when a case of `flow_testing.STAGE_CASES` can emit any number
of items: this module searches for the inputs that make it do so. `uncovered` names the operators
and sources that have no subject.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol, final

import flow_core as flow
from flow_cli.progress import progress
from flow_core import (
    UNBOUNDED,
    CoreSubscriber,
    Emitter,
    Flow,
    Processor,
    Publisher,
    SingleSink,
    Subscriber,
    Subscription,
    sources,
)
from flow_core.operators import lift, serialize
from flow_core.plugins import Kind, plugin_host
from flow_core.sources.files import read_csv, read_json_lines, read_lines
from flow_core.structure import stages_of
from flow_core.subscribers import CallbackSubscriber, StrictSubscriber
from flow_multicast import MulticastProcessor, UnicastProcessor, serialized
from flow_ops import concat_map, observe_on
from flow_tck import multicast, ops
from flow_tck.bridge import ConditionalReceiver, Foreign, Receiver
from flow_tck.expected import (
    COORDINATED,
    LOCK_STEP,
    NEEDED,
    PROBED,
    PROCESSOR,
    SUBSCRIBER,
    UNICAST,
    UNICAST_PROCESSOR,
    Expected,
    asking_for_items,
    publisher_of,
)
from flow_tck.threads import event_loop, pool, spawn, spawn_async, subscriber_of
from flow_testing import STAGE_CASES, StageCase, TestSubscriber

__all__ = [
    "Probe",
    "Probed",
    "ProcessorSubject",
    "PublisherSubject",
    "Subject",
    "SubscriberSubject",
    "clean_up",
    "subjects",
    "uncovered",
]

AnyFlow = Flow[Any]  # Any: the kit takes items of all types
AnySubscriber = Subscriber[Any]

MANY: Final = 64
"""The number of items in place of the 2³¹-1 that one test requests; it cancels after eleven."""


class KitError(Exception):
    """The error of publishers that have to fail."""


def failing(*_: object) -> AnyFlow:
    """Return a flow that fails at once."""
    return flow.error(KitError("as the kit has asked for"))


# -- the kinds of subjects


@final
@dataclass(frozen=True)
class PublisherSubject:
    """A subject that is verified as a publisher.

    Args:
        name: the subject's name.
        make: makes a publisher of exactly that many items.
        fail: makes a publisher that fails; with the operator applied, if the subject is one.
        most: the most items that it can have, or None.
        expected: the results that its tests must have.
        receiver: the class in which the publisher sees the kit's subscribers.
    """

    name: str
    make: Callable[[int], Publisher[Any]] = field(repr=False)
    fail: Callable[[], Publisher[Any]] = field(repr=False, default=failing)
    most: int | None = None
    expected: Expected = field(repr=False, default=publisher_of(None))
    receiver: type[Foreign] = Receiver

    kind = "publisher"


@final
@dataclass(frozen=True)
class ProcessorSubject:
    """A subject that is verified as a processor that passes on what it receives.

    Args:
        name: the subject's name.
        make: makes a processor that can hold that many items.
        fail: makes a processor that fails every subscriber.
        coordinated: whether the kit has to let all subscribers request.
        subscribers: how many subscribers it serves.
        expected: the results that its tests must have.
    """

    name: str
    make: Callable[[int], Processor[Any, Any]] = field(repr=False)
    fail: Callable[[], Publisher[Any]] = field(repr=False)
    coordinated: bool = False
    subscribers: int = UNBOUNDED
    expected: Expected = field(repr=False, default=PROCESSOR)

    kind = "processor"


@final
@dataclass(frozen=True)
class SubscriberSubject:
    """A subject that is verified as a subscriber, from outside.

    Args:
        name: the subject's name.
        make: makes a subscriber that requests by itself.
        expected: the results that its tests must have.
    """

    name: str
    make: Callable[[], AnySubscriber] = field(repr=False)
    expected: Expected = field(repr=False, default=SUBSCRIBER)

    kind = "subscriber"


@final
@dataclass(frozen=True)
class Probed:
    """A subject that is verified as a subscriber whose inside the kit observes and controls.

    Args:
        name: the subject's name.
        make: makes a subscriber that reports to the probe.
        expected: the results that its tests must have.
    """

    name: str
    make: Callable[[Probe], AnySubscriber] = field(repr=False)
    expected: Expected = field(repr=False, default=PROBED)

    kind = "white box"


Subject = PublisherSubject | ProcessorSubject | SubscriberSubject | Probed


class Probe(Protocol):
    """Receives the reports from inside a subscriber."""

    def ready(self, request: Callable[[int], object], cancel: Callable[[], object]) -> None:
        """Report its subscription: two functions that the kit calls when it wants to."""

    def on_next(self, item: object, /) -> object:
        """Report that an item has arrived."""

    def on_error(self, error: BaseException, /) -> object:
        """Report that the error has arrived."""

    def on_complete(self) -> object:
        """Report that the completion has arrived."""


# -- operators and sources


@final
@dataclass(frozen=True)
class Recipe:
    """A recipe to get n items out of an operator.

    Args:
        apply: applies the operator to a flow of ints, so that it emits n items.
        inputs: the number of ints that flow must have.
        most: the most items that it can emit, or None.
        lock_step: whether no subscriber gets an item before all have requested it.
    """

    apply: Callable[[AnyFlow, int], AnyFlow] = field(repr=False)
    inputs: Callable[[int], int] = field(repr=False, default=lambda n: n)
    most: int | None = None
    lock_step: bool = False

    def subject(self, name: str) -> PublisherSubject:
        """Return the operator, applied to a range of ints, as a subject."""

        def make(n: int) -> AnyFlow:
            n = min(n, MANY)
            return self.apply(flow.range(self.inputs(n)), n)

        def fail() -> AnyFlow:
            return self.apply(failing(), 1)

        expected = publisher_of(self.most).but(skipped=LOCK_STEP if self.lock_step else ())
        return PublisherSubject(name, make, fail, self.most, expected)


def _identity(item: Any) -> Any:  # Any: of all types
    return item


def _unchanged(subscriber: CoreSubscriber[Any]) -> Subscriber[Any]:
    return subscriber


_VARIABLE: Final[ContextVar[int]] = ContextVar("tck")

RECIPES: Final[Mapping[str, Recipe]] = {
    **{name: Recipe(apply, most=most) for name, (apply, most) in ops.OPERATORS.items()},
    # Stages of which no case emits an item.
    "ignore_elements": Recipe(lambda f, _: f.ignore_elements(), most=0),
    # Boundaries.
    "concat_map": Recipe(
        lambda f, n: f.pipe(concat_map(lambda i: flow.range(min(2, n - 2 * i)))),
        inputs=lambda n: (n + 1) // 2,
    ),
    "context_capture": Recipe(lambda f, _: f.context_capture()),
    "context_write": Recipe(lambda f, _: f.context_write(_VARIABLE, 1)),
    "do_on_request": Recipe(lambda f, _: f.do_on_request(_ignore)),
    "hide": Recipe(lambda f, _: f.hide()),
    "local": Recipe(lambda f, _: f.local()),
    "lift": Recipe(lambda f, _: f.pipe(lift("unchanged", _unchanged))),
    "observe_on": Recipe(lambda f, _: f.pipe(observe_on(pool()))),
    "progress": Recipe(lambda f, _: f.pipe(progress("tck"))),
    "serialize": Recipe(lambda f, _: f.pipe(serialize())),
    **{
        name: Recipe(apply, lock_step=lock_step)
        for name, (apply, lock_step) in multicast.OPERATORS.items()
    },
}
"""Operators by their registered names: boundaries, and stages whose cases do not suffice."""


def _one_or_none(n: int) -> int | None:
    return 1 if n else None


def _emit(n: int, emitter: Emitter[int]) -> None:
    for i in range(n):
        emitter.next(i)
    emitter.complete()


def _failed_create() -> AnyFlow:
    return flow.create(lambda emitter: emitter.error(KitError("as the kit has asked for")))


def _step(n: int, i: int, sink: SingleSink[int]) -> int:
    if i < n:
        sink.next(i)
    else:
        sink.complete()
    return i + 1


class _Ticking:
    """An async iterable, of which each subscriber gets a separate iterator."""

    def __init__(self, n: int) -> None:
        self._n = n

    async def __aiter__(self) -> AsyncIterator[int]:
        for i in range(self._n):
            await asyncio.sleep(0)
            yield i


@functools.cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="flow-tck-")


def clean_up() -> None:
    """Remove the files that were made for sources to read."""
    if _folder.cache_info().currsize:
        _folder().cleanup()


@functools.cache
def _file(lines: tuple[object, ...]) -> Path:
    path = Path(_folder().name, str(hash(lines)))
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def _of_lines(name: str, read: Callable[[Path], AnyFlow], *heading: object) -> PublisherSubject:
    return PublisherSubject(
        f"source {name}",
        # A missing file is not a failing publisher: the source opens it only when demand comes.
        lambda n: read(_file((*heading, *range(min(n, MANY))))),
    )


def _of_ops(
    name: str,
    make: Callable[[int], AnyFlow],
    fail: Callable[[AnyFlow], AnyFlow] | None,
    most: int | None,
) -> PublisherSubject:
    return PublisherSubject(
        f"source {name}",
        lambda n: make(min(n, MANY)),
        failing if fail is None else lambda: fail(failing()),
        most,
        publisher_of(most),
    )


SOURCES: Final[Mapping[str, PublisherSubject]] = {
    subject.name.removeprefix("source "): subject
    for subject in (
        PublisherSubject("source range", lambda n: flow.range(n)),
        PublisherSubject(
            "source from_iterable", lambda n: flow.from_iterable(list(range(min(n, MANY))))
        ),
        PublisherSubject("source just", lambda n: flow.just(*range(min(n, MANY)))),
        PublisherSubject("source empty", lambda _: flow.empty(), most=0, expected=publisher_of(0)),
        PublisherSubject(
            "source from_callable",
            lambda n: flow.from_callable(lambda: _one_or_none(n)),
            lambda: flow.from_callable(_raise),
            most=1,
            expected=publisher_of(1),
        ),
        PublisherSubject(
            "source defer", lambda n: flow.defer(lambda: flow.range(n)), lambda: flow.defer(failing)
        ),
        PublisherSubject(
            "source create", lambda n: flow.create(partial(_emit, min(n, MANY))), _failed_create
        ),
        PublisherSubject(
            "source from_async_iterable",
            lambda n: flow.from_async_iterable(_Ticking(n), loop=event_loop()),
        ),
        PublisherSubject(
            "source from_future",
            lambda n: flow.from_future(pool().submit(_one_or_none, n)),
            lambda: flow.from_future(pool().submit(_raise)),
            most=1,
            expected=publisher_of(1),
        ),
        PublisherSubject("source generate", lambda n: flow.generate(lambda: 0, partial(_step, n))),
        PublisherSubject("source repeat_callable", lambda n: flow.repeat_callable(lambda: 7, n)),
        PublisherSubject("source repeat_value", lambda n: flow.repeat_value(7, n)),
        PublisherSubject(
            "source using",
            lambda n: flow.using(lambda: nullcontext(n), flow.range),
            lambda: flow.using(_raise, failing, _ignore),
        ),
        PublisherSubject(
            "source using_when",
            lambda n: sources.using_when(lambda: nullcontext(n), flow.range, loop=event_loop()),
        ),
        _of_lines("read_lines", read_lines),
        _of_lines("read_json_lines", read_json_lines),
        _of_lines("read_csv", read_csv, "n"),
        PublisherSubject(
            "source from_publisher",
            lambda n: flow.from_publisher(Stranger(n)),
            lambda: flow.from_publisher(Stranger(None)),
        ),
        *(_of_ops(name, *how) for name, how in ops.SOURCES.items()),
    )
}
"""Sources by their registered names."""

OURS: Final = ("flow_core.", "flow_multicast.", "flow_ops.")
"""The packages whose operators and sources must have subjects."""

EXEMPT: Final[Mapping[str, str]] = {
    "error": "has no items; it is what fails in every subject",
    "never": "has neither items nor an end",
    **ops.EXEMPT,
}
"""Registered operators and sources that the kit cannot verify, and why."""


def _raise() -> int:
    raise KitError("as the kit has asked for")


class Stranger:
    """A publisher that is not a flow, as others write them; it fails without a number of items."""

    def __init__(self, n: int | None) -> None:
        self._n = n

    def subscribe(self, subscriber: AnySubscriber, /) -> None:
        (failing() if self._n is None else flow.range(self._n)).subscribe(Relay(subscriber))


class Relay:
    """A subscriber that passes everything on and knows nothing of this library."""

    def __init__(self, downstream: AnySubscriber) -> None:
        self._downstream: AnySubscriber | None = downstream
        self._upstream: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        if self._downstream is not None:
            self._downstream.on_subscribe(self)

    def on_next(self, item: object, /) -> None:
        if self._downstream is not None:
            self._downstream.on_next(item)

    def on_error(self, error: BaseException, /) -> None:
        if self._downstream is not None:
            self._downstream.on_error(error)

    def on_complete(self) -> None:
        if self._downstream is not None:
            self._downstream.on_complete()

    def request(self, n: int, /) -> None:
        if self._upstream is not None:
            self._upstream.request(n)

    def cancel(self) -> None:
        self._downstream = None
        if self._upstream is not None:
            self._upstream.cancel()


# -- stages, by their cases

FAMILIES: Final[Sequence[Callable[[int], Sequence[int]]]] = (
    range,
    lambda length: [1] * length,
    lambda length: [0] * length,
    lambda length: range(length, 0, -1),
)
"""Ints to feed to a stage, by their number; the family that makes it emit most is used."""


FEW: Final = 8
"""A case that emits fewer items than this from more than `MANY` ints is not tried with more."""

_WANTED: Final = tuple(min(n, MANY) for n in NEEDED)


@final
@dataclass(frozen=True)
class _Fit:
    """The inputs that make a case emit n items.

    Args:
        case: a way to use a stage.
        ints: the ints to feed to it.
        lengths: the number of ints it needs, by the number of items that it emits.
    """

    case: StageCase
    ints: Callable[[int], Sequence[int]]
    lengths: Mapping[int, int]

    @property
    def most(self) -> int | None:
        """The most items that the kit can count on, or None."""
        most = max((n for n in _WANTED if n <= max(self.lengths)), default=0)
        return None if most == MANY else most

    @property
    def exact(self) -> int:
        """The number of the kit's item counts that the case can emit exactly."""
        return len(self.lengths.keys() & {*_WANTED})

    def give(self, n: int) -> AnyFlow:
        """Return a flow of n items: the shortest input that suffices, with any surplus skipped."""
        enough = min((made for made in self.lengths if made >= n), default=0)
        made = self.case.apply(flow.from_iterable(self.ints(self.lengths[enough])))
        return made.skip(enough - n) if enough > n else made


def _fitted(case: StageCase, ints: Callable[[int], Sequence[int]]) -> _Fit:
    lengths: dict[int, int] = {}
    for length in range(4 * MANY + 16):
        try:
            made = len(case.model([*ints(length)]))
        except Exception:  # for example, a stage that fails without items
            continue
        lengths.setdefault(made, length)
        if lengths.keys() >= {*_WANTED} or (length > MANY and max(lengths) < FEW):
            break
    return _Fit(case, ints, lengths)


@functools.cache
def _fit(case: StageCase) -> _Fit:
    """Return the best way to make a case emit n items."""
    fits = (_fitted(case, ints) for ints in FAMILIES)
    return max(
        [fit for fit in fits if fit.lengths] or [_Fit(case, range, {0: 0})],
        key=lambda fit: (MANY if fit.most is None else fit.most, fit.exact),
    )


def _by_case(case: StageCase) -> PublisherSubject:
    """Return the stage as it is, with as many items as it can emit."""
    fit = _fit(case)
    return PublisherSubject(
        f"stage {case.name}",
        lambda n: fit.give(min(n, MANY)),
        _failing_behind(case),
        fit.most,
        publisher_of(fit.most),
    )


def _expanded(name: str, case: StageCase) -> PublisherSubject:
    """Return a stage that emits one item or few, with its first item expanded to any number."""
    fit = _fit(case)

    def make(n: int) -> AnyFlow:
        items = range(min(n, MANY))
        return fit.give(1).flat_map_iterable(lambda _: items)

    return PublisherSubject(f"stage {name}, expanded", make, _failing_behind(case))


def _failing_behind(case: StageCase) -> Callable[[], AnyFlow]:
    """Return a maker of a failing flow; it includes the stage only if the error comes at once."""

    def fail() -> AnyFlow:
        behind = case.apply(failing())
        witness = TestSubscriber[Any](0)
        behind.subscribe(witness)
        return behind if isinstance(witness.error, KitError) else failing()

    return fail


def _stages_of(case: StageCase) -> set[str]:
    """Return the stages that a case is about: the one in its name, and those in its flow."""
    stages = stages_of(case.apply(flow.range(3)))
    return {case.name.split()[0].strip(","), *(stage.name for stage in stages)}


def _complete() -> set[str]:
    """Return the stages of which a case, or a recipe, emits any number of items."""
    complete = set(RECIPES)
    for case in STAGE_CASES:
        if _fit(case).most is None:
            complete |= _stages_of(case)
    return complete


def _expandable() -> dict[str, StageCase]:
    """Return, for each of the other stages, a case that emits an item."""
    complete = _complete()
    found: dict[str, StageCase] = {}
    for case in STAGE_CASES:
        for name in _stages_of(case) - complete:
            if _fit(case).most != 0:
                found.setdefault(name, case)
    return found


# -- the rest of the publishers


def _long_chain(n: int, *, hidden: bool = False) -> AnyFlow:
    made: AnyFlow = flow.range(min(n, MANY))
    for i in range(5):
        made = made.map(lambda k: k + 1).filter(lambda _: True).scan(lambda _, b: b).skip(0)
        made = made.hide() if hidden and i % 2 else made
    return made


def _multicast(n: int) -> MulticastProcessor[int]:
    processor = MulticastProcessor[int]()
    flow.range(min(n, MANY)).subscribe(processor)
    return processor


def _unicast(n: int) -> UnicastProcessor[int]:
    processor = UnicastProcessor[int]()
    flow.range(min(n, MANY)).subscribe(processor)
    return processor


def _failed(make: Callable[[], Any]) -> Any:  # Any: a processor
    processor = make()
    processor.on_error(KitError("as the kit has asked for"))
    return processor


def _fed(make: Callable[[], Any], feed: Callable[[Callable[[], Any], int], Any], n: int) -> Any:
    return feed(make, min(n, MANY))


def _generated(n: int) -> Iterator[int]:
    yield from range(n)


class _Generating:
    """An iterable of generators, because one generator cannot serve several subscribers."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __iter__(self) -> Iterator[int]:
        return _generated(self._n)


def _publishers() -> Iterator[PublisherSubject]:
    yield from SOURCES.values()
    yield PublisherSubject(
        "just one",
        lambda n: flow.just(1) if n else flow.empty(),
        most=1,
        expected=publisher_of(1),
    )
    yield PublisherSubject(
        "from_iterable, a generator", lambda n: flow.from_iterable(_Generating(n))
    )
    yield PublisherSubject(
        "defer, an asynchronous flow",
        lambda n: flow.defer(lambda: flow.range(n).pipe(observe_on(pool()))),
    )
    yield PublisherSubject("range, to a stranger", lambda n: flow.range(n), receiver=Foreign)
    yield PublisherSubject(
        "range, to a conditional subscriber", lambda n: flow.range(n), receiver=ConditionalReceiver
    )
    yield PublisherSubject("20 stages", _long_chain)
    yield PublisherSubject("20 stages, hidden here and there", partial(_long_chain, hidden=True))
    hop = Recipe(lambda f, _: f.pipe(observe_on(pool(), prefetch=1)))
    yield hop.subject("observe_on, prefetch 1")
    hop = Recipe(lambda f, _: f.hide().map(_identity).pipe(observe_on(pool())).map(_identity))
    yield hop.subject("observe_on between stages, not fused")
    hop = Recipe(lambda f, _: f.pipe(observe_on(lambda task: task())))
    yield hop.subject("observe_on, in the same thread")
    hop = Recipe(lambda f, _: f.pipe(observe_on(pool())).map(_identity).pipe(observe_on(pool())))
    yield hop.subject("observe_on, twice")
    yield PublisherSubject(
        "MulticastProcessor",
        _multicast,
        partial(_failed, MulticastProcessor[Any]),
        expected=_LOCK_STEP_PUBLISHER,
    )
    yield PublisherSubject(
        "UnicastProcessor",
        _unicast,
        partial(_failed, UnicastProcessor[Any]),
        expected=_UNICAST_PUBLISHER,
    )
    for name, (made, feed, most, lock_step) in multicast.FED.items():
        yield PublisherSubject(
            name,
            partial(_fed, made, feed),
            partial(_failed, made),
            most,
            publisher_of(most).but(skipped=LOCK_STEP if lock_step else ()),
        )
    for name, (apply, lock_step) in multicast.VARIANTS.items():
        yield Recipe(apply, lock_step=lock_step).subject(f"operator {name}")
    for name, recipe in RECIPES.items():
        yield recipe.subject(f"operator {name}")
    for case in STAGE_CASES:
        yield _by_case(case)
    for name, case in _expandable().items():
        yield _expanded(name, case)


_LOCK_STEP_PUBLISHER: Final = publisher_of(None).but(skipped=LOCK_STEP)
_UNICAST_PUBLISHER: Final = publisher_of(None).but(skipped=UNICAST)


# -- processors


def _processors() -> Iterator[ProcessorSubject]:
    yield ProcessorSubject(
        "MulticastProcessor, ref_count",
        _ref_counted,
        partial(_failed, _ref_counted),
        coordinated=True,
    )
    yield ProcessorSubject(
        "MulticastProcessor, ref_count, serialized",
        lambda size: serialized(_ref_counted(size)),
        lambda: _failed(lambda: serialized(_ref_counted())),
        coordinated=True,
    )
    yield ProcessorSubject(
        "MulticastProcessor, keeps its upstream",
        MulticastProcessor[Any],
        partial(_failed, MulticastProcessor[Any]),
        coordinated=True,
        expected=PROCESSOR.but(failed=_ABOUT_UPSTREAM),
    )
    yield ProcessorSubject(
        "UnicastProcessor",
        UnicastProcessor[Any],
        partial(_failed, UnicastProcessor[Any]),
        subscribers=1,
        expected=PROCESSOR.but(skipped=UNICAST_PROCESSOR),
    )


def _ref_counted(size: int = 4) -> MulticastProcessor[Any]:
    return MulticastProcessor[Any](size, ref_count=True)


_ABOUT_UPSTREAM: Final = [test for test in COORDINATED if "HappyPath" in test or "spec208" in test]
"""The tests that expect the last subscriber to cancel the upstream."""


# -- subscribers


def _consume_blocking(source: AnyFlow) -> None:
    def consume() -> None:
        try:
            for _ in source.iterate(prefetch=4):
                pass
        except Exception:  # the kit's own
            return

    spawn(consume)


def _consume_async(source: AnyFlow) -> None:
    async def consume() -> None:
        try:
            async for _ in source:
                pass
        except Exception:  # the kit's own
            return

    spawn_async(consume())


def _ignore(_: object) -> None:
    pass


class Sink:
    """A subscriber as a user would write one, which knows nothing of this library."""

    def __init__(self, probe: Probe | None = None) -> None:
        self._probe = probe
        self._subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        if self._probe is None:
            subscription.request(1)
        else:
            self._probe.ready(subscription.request, subscription.cancel)

    def on_next(self, item: object, /) -> None:
        if self._probe is not None:
            self._probe.on_next(item)
        elif self._subscription is not None:
            self._subscription.request(1)

    def on_error(self, error: BaseException, /) -> None:
        if self._probe is not None:
            self._probe.on_error(error)

    def on_complete(self) -> None:
        if self._probe is not None:
            self._probe.on_complete()


def _subscribers() -> Iterator[SubscriberSubject]:
    def consumed(name: str, consume: Callable[[AnyFlow], object]) -> SubscriberSubject:
        return SubscriberSubject(name, partial(subscriber_of, consume))

    yield SubscriberSubject("StrictSubscriber, of a stranger", lambda: StrictSubscriber(Sink()))
    yield SubscriberSubject(
        "StrictSubscriber, of functions",
        lambda: StrictSubscriber(CallbackSubscriber(_ignore, _ignore, prefetch=4)),
    )
    yield consumed("subscribe(stranger)", lambda f: f.subscribe(Sink()))
    yield consumed("subscribe(functions)", lambda f: f.subscribe(_ignore, _ignore))
    yield consumed(
        "subscribe(functions, prefetch)", lambda f: f.subscribe(_ignore, _ignore, prefetch=4)
    )
    yield consumed("for", _consume_blocking)
    yield consumed("async for", _consume_async)
    yield consumed("to_future", lambda f: f.to_future())
    yield consumed(
        "stages",
        lambda f: (
            f.map(_identity)
            .filter(lambda i: i % 2)
            .flat_map_iterable(lambda i: [i, i])
            .subscribe(_ignore, _ignore, prefetch=4)
        ),
    )
    yield consumed("hide", lambda f: f.hide().subscribe(_ignore, _ignore, prefetch=4))
    yield consumed(
        "observe_on", lambda f: f.pipe(observe_on(pool())).subscribe(_ignore, _ignore, prefetch=4)
    )


class _Announced:
    """Announces the subscription of a subscriber that only calls functions."""

    def __init__(
        self,
        subscriber: AnySubscriber,
        probe: Probe,
        request: Callable[[int], object],
        cancel: Callable[[], object],
    ) -> None:
        self._subscriber = subscriber
        self._announce: Callable[[], None] = lambda: probe.ready(request, cancel)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscriber.on_subscribe(subscription)
        self._announce()

    def on_next(self, item: object, /) -> None:
        self._subscriber.on_next(item)

    def on_error(self, error: BaseException, /) -> None:
        self._subscriber.on_error(error)

    def on_complete(self) -> None:
        self._subscriber.on_complete()


def _probed_functions(probe: Probe) -> AnySubscriber:
    functions: CallbackSubscriber[Any] = CallbackSubscriber(
        probe.on_next, probe.on_error, probe.on_complete, prefetch=4
    )
    # It requests four at once, and never waits for the kit.
    return _Announced(StrictSubscriber(functions), probe, _ignore, functions.dispose)


def _probed_subscribe(probe: Probe) -> AnySubscriber:
    handles: list[CallbackSubscriber[Any]] = []
    received = subscriber_of(
        lambda f: handles.append(
            f.subscribe(probe.on_next, probe.on_error, probe.on_complete, prefetch=4)
        )
    )
    return _Announced(received, probe, _ignore, handles[0].dispose)


def _probed() -> Iterator[Probed]:
    def behind(name: str, operator: Callable[[AnyFlow], AnyFlow]) -> Probed:
        return Probed(
            name, lambda probe: subscriber_of(lambda f: operator(f).subscribe(Sink(probe)))
        )

    yield Probed("StrictSubscriber, of a stranger", lambda probe: StrictSubscriber(Sink(probe)))
    yield Probed("StrictSubscriber, of functions", _probed_functions)
    yield Probed("subscribe(functions, prefetch)", _probed_subscribe)
    yield behind("stages", lambda f: f.map(_identity).filter(lambda _: True).skip(0))
    yield behind("hide", lambda f: f.hide())
    yield behind("observe_on", lambda f: f.pipe(observe_on(pool())))
    yield behind("observe_on, prefetch 1", lambda f: f.pipe(observe_on(pool(), prefetch=1)))


# -- controls: subjects that must fail, or the kit would not be worth its time


class _Careless:
    """Keeps its subscribers for ever, accepts None as one, and sends an item too many."""

    def __init__(self, n: int) -> None:
        self._items = range(min(n, MANY))
        self._subscribers: list[AnySubscriber] = []

    def subscribe(self, subscriber: AnySubscriber, /) -> None:
        self._subscribers.append(subscriber)
        if subscriber is not None:
            subscriber.on_subscribe(_CarelessLink(iter(self._items), subscriber))


class _CarelessLink:
    """Ignores cancel and wrong demand, and completes as often as something is requested."""

    def __init__(self, items: Iterator[int], subscriber: AnySubscriber) -> None:
        self._items = items
        self._subscriber = subscriber

    def request(self, n: int, /) -> None:
        for _ in range(min(n, MANY) + 1):
            item = next(self._items, None)
            if item is None:
                self._subscriber.on_complete()
                return
            self._subscriber.on_next(item)

    def cancel(self) -> None:
        pass


_CARELESS: Final = publisher_of(None).but(
    failed={
        "required_spec109_subscribeThrowNPEOnNullSubscriber",
        *asking_for_items(
            "required_createPublisher",
            *("required_spec101", "required_spec105", "required_spec107"),
            *("required_spec302", "required_spec303", "required_spec306", "required_spec309"),
            *("required_spec312", "required_spec313"),
            "required_spec317_mustSupportACumulative",
            "required_spec317_mustNotSignalOnError",
        ),
    },
    skipped=asking_for_items("optional_spec309"),
)


def _controls() -> Iterator[Subject]:
    yield PublisherSubject("control: a careless publisher", _Careless, expected=_CARELESS)
    yield ProcessorSubject(
        "control: lock-step, not announced",
        MulticastProcessor[Any],
        partial(_failed, MulticastProcessor[Any]),
        expected=PROCESSOR.but(failed=COORDINATED),
    )


# -- all of them


def subjects() -> dict[str, Subject]:
    """Return every subject by its full name, which begins with the kind."""
    found: dict[str, Subject] = {}
    everything = (_publishers(), _processors(), _subscribers(), _probed(), _controls())
    for made in (subject for group in everything for subject in group):
        name = f"{made.kind}: {made.name}"
        if name in found:
            raise ValueError(f"two subjects have the name {name!r}")
        found[name] = made
    return found


def uncovered() -> list[str]:
    """Return the registered operators and sources without a subject, each with the remedy."""
    covered = {*SOURCES, *EXEMPT, *_complete(), *_expandable()}
    host = plugin_host()
    found: list[str] = []
    for name, operator in host.operators.items():
        if name not in covered and operator.spec.target.startswith(OURS):
            stage = operator.spec.kind is Kind.STAGE
            cases = ", and no case of STAGE_CASES gives an item" if stage else ""
            found.append(f"operator {name!r} has no line in RECIPES{cases}")
    for name, source in host.sources.items():
        if name not in covered and source.spec.target.startswith(OURS):
            found.append(f"source {name!r} has no line in SOURCES")
    return found + [str(problem) for problem in host.problems]
