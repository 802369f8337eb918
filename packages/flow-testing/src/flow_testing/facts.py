"""Observes an operator's demand and fusion, and compares them with the operator's record.

The record of an operator is written by hand. A plugin checks it by a test like this:

>>> import flow_core as flow
>>> from flow_core.plugins import plugin_host
>>> assert_facts(plugin_host().operators["take"].spec, lambda made: made.take(2))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from typing_extensions import override

from flow_core.demand import UNBOUNDED
from flow_core.flow import Flow
from flow_core.plugins import Backpressure, Kind, OperatorSpec
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Empty,
    Fusion,
    Publisher,
    QueueSubscription,
    Subscriber,
    Subscription,
)
from flow_core.sources import from_callable, from_iterable, just, range
from flow_core.structure import source_of, stages_of

__all__ = [
    "Facts",
    "Fusable",
    "assert_facts",
    "differences",
    "facts_of",
    "granted",
    "grants",
    "together",
]

_AnyFlow = Flow[Any]  # Any, in this module: the items do not matter

_MODES: Final = (Fusion.SYNC, Fusion.ASYNC, Fusion.ANY)
_ASKED: Final = (*_MODES, *(mode | Fusion.THREAD_BOUNDARY for mode in _MODES))


def assert_facts(record: OperatorSpec, *ways: Callable[[_AnyFlow], _AnyFlow]) -> None:
    """Check that an operator does what its record says: kind, demand, fusion and conditional.

    Args:
        record: the operator's record, as `flow_core.plugins.plugin_host` has it.
        ways: functions that put the operator behind a flow, each in another use of the operator.

    Raises:
        AssertionError: if a fact differs; the text names the first one, and what was observed.
        ValueError: if `ways` is empty.
    """
    if not ways:
        raise ValueError(f"assert_facts({record.name}): how is it put behind a flow?")
    if wrong := differences(record, together([facts_of(apply) for apply in ways])):
        raise AssertionError(wrong)
    upstream = range(3)
    stages = [stages_of(apply(upstream)) for apply in ways]
    if (record.kind is Kind.STAGE) != all(stages):
        kinds = "a stage" if all(stages) else "a boundary"
        raise AssertionError(f"{record.name}: its record says {record.kind}, but it is {kinds}")


def differences(record: OperatorSpec, seen: Facts) -> str:
    """Return how a record differs from what was observed; an empty text if it does not differ.

    Args:
        record: the record.
        seen: what was observed.
    """
    said = {
        "asks": (record.asks, seen.asks),
        "answers": (record.answers, seen.answers),
        "conditional": (record.conditional, seen.conditional),
    }
    for fact, (registered, found) in said.items():
        if registered != found:
            return (
                f"{record.name}: its record says {fact}={registered!r}, but it was seen to have "
                f"{found!r}; correct the record (or the operator)"
            )
    demand = {
        Backpressure.PASS: seen.requested == 1,
        Backpressure.UNBOUNDED_IN: seen.requested == UNBOUNDED,
        Backpressure.FULL: seen.requested < UNBOUNDED,
    }
    if not demand.get(record.backpressure, True):
        return (
            f"{record.name}: its record says {record.backpressure.value!r}, but for one item it "
            f"requests {seen.requested}"
        )
    return ""


def together(seen: Sequence[Facts]) -> Facts:
    """Combine the facts of several uses as a record does: a fact holds if it may happen.

    Args:
        seen: what was observed in each use.
    """
    asks = answers = Fusion.NONE
    for facts in seen:
        asks |= facts.asks
        answers |= facts.answers & Fusion.ANY
    across = all(Fusion.THREAD_BOUNDARY in facts.answers for facts in seen)
    return replace(
        seen[0],
        asks=asks,
        answers=answers | (Fusion.THREAD_BOUNDARY if across else Fusion.NONE),
        front=any(facts.front for facts in seen),
        back=any(facts.back for facts in seen),
        conditional=all(facts.conditional for facts in seen),
        scalar=any(facts.scalar for facts in seen),
        callable=any(facts.callable for facts in seen),
    )


@final
class _Probe(CoreSubscriber[Any]):
    """Requests fusion, or one item, and notes the answer."""

    def __init__(self, asks: Fusion = Fusion.NONE) -> None:
        self.asks = asks
        self.answer = Fusion.NONE
        self.subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if not self.asks:
            subscription.request(1)
        elif isinstance(subscription, QueueSubscription):
            self.answer = subscription.request_fusion(self.asks)

    def on_next(self, item: Any, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self) -> None: ...


class _Plain(Publisher[Any], Subscription):
    """A publisher that sends nothing and notes its subscribers and their requests."""

    def __init__(self) -> None:
        self.requested = 0
        self.asked: Fusion = Fusion.NONE
        self.subscriber: Subscriber[Any] | None = None

    @override
    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    @override
    def request(self, n: int, /) -> None:
        self.requested = min(self.requested + n, UNBOUNDED)

    @override
    def cancel(self) -> None:
        pass


class Fusable(_Plain, QueueSubscription[Any]):
    """A publisher that sends nothing, grants fusion, and notes which fusion was asked for.

    Args:
        grants: the modes that the publisher grants.
    """

    def __init__(self, grants: Fusion) -> None:
        super().__init__()
        self._grants = grants

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        self.asked |= mode
        return mode & self._grants

    @override
    def poll(self) -> Empty:
        return EMPTY

    @override
    def is_empty(self) -> bool:
        return True

    @override
    def clear(self) -> None:
        pass


def granted(made: _AnyFlow, asks: Fusion) -> Fusion:
    """Return the mode with which a flow answers a request for fusion.

    Args:
        made: the flow.
        asks: the requested modes.

    Raises:
        AssertionError: if the flow grants more than was requested.
    """
    probe = _Probe(asks)
    made.subscribe(probe)  # only this: the flow has not begun to run
    if probe.answer & ~asks or probe.answer not in {Fusion.NONE, Fusion.SYNC, Fusion.ASYNC}:
        raise AssertionError(f"{made!r} answers {probe.answer!r} to {asks!r}")
    return probe.answer


def grants(makes: Iterable[Callable[[], _AnyFlow]]) -> Fusion:
    """Return all modes that these flows grant.

    The result includes THREAD_BOUNDARY if one of them grants a mode across threads.

    Args:
        makes: functions that each make a new flow.
    """
    found = Fusion.NONE
    for make in makes:
        for asks in _ASKED:
            answer = granted(make(), asks)
            found |= answer | (asks & Fusion.THREAD_BOUNDARY if answer else Fusion.NONE)
    return found


@final
@dataclass(frozen=True)
class Facts:
    """The facts that were observed of an operator in one use of it."""

    asks: Fusion
    """The fusion that the operator requests of its upstream."""
    answers: Fusion
    """The fusion that the operator grants to its downstream."""
    front: bool
    """True if the operator requests fusion of its upstream even if its downstream does not request
    any."""
    back: bool
    """True if the operator grants fusion even if its upstream does not."""
    conditional: bool
    """True if the operator tells its upstream which items it has used up."""
    scalar: bool
    """True if the operator recognises a constant upstream, and replaces it by something else
    (macro-fusion)."""
    callable: bool
    """True if the operator does the same for an upstream that calls a function."""
    requested: int
    """The request that reaches the upstream when one item is requested."""

    @property
    def transitive(self) -> bool:
        """Return whether the operator only passes on what its neighbours agree on."""
        return bool(self.asks) and not self.front and not self.back


def facts_of(apply: Callable[[_AnyFlow], _AnyFlow]) -> Facts:
    """Observe an operator between neighbours that note all calls.

    Args:
        apply: puts the operator behind a flow. Called several times.
    """
    front = passed = Fusion.NONE
    for mode in (Fusion.SYNC, Fusion.ASYNC):
        upstream = Fusable(mode)
        probe = _Probe()
        apply(Flow(upstream)).subscribe(probe)
        front |= upstream.asked
        upstream = Fusable(mode)
        granted(apply(Flow(upstream)), Fusion.ANY)
        passed |= upstream.asked
    plain, probe = _Plain(), _Probe()
    apply(Flow(plain)).subscribe(probe)
    if probe.subscription is not None:
        probe.subscription.cancel()
    back = grants([lambda: apply(Flow(_Plain()))])
    behind = (
        lambda: apply(_no_items()),
        lambda: apply(Flow(Fusable(Fusion.SYNC))),
        lambda: apply(Flow(Fusable(Fusion.ASYNC))),
    )
    return Facts(
        asks=front | passed,
        answers=back | grants(behind),
        front=bool(front),
        back=bool(back),
        conditional=isinstance(plain.subscriber, ConditionalSubscriber),
        scalar=_special(apply, just(1)),
        callable=_special(apply, from_callable(lambda: 1)),
        requested=plain.requested,
    )


def _no_items() -> _AnyFlow:
    """Return a flow of an ordinary iterator."""
    return from_iterable(iter(()))


def _special(apply: Callable[[_AnyFlow], _AnyFlow], upstream: _AnyFlow) -> bool:
    made, usual = apply(upstream), apply(_no_items())
    source = source_of(made)
    return source is not source_of(upstream) and type(source) is not type(source_of(usual))
