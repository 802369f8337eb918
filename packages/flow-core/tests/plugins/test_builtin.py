"""What the core says of its own operators and sources is what they do."""

from __future__ import annotations

import operator as op
from concurrent.futures import Future
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

import pytest

import flow_core as flow
from flow_core import (
    EMPTY,
    UNBOUNDED,
    CoreSubscriber,
    Empty,
    Flow,
    Fusion,
    QueueSubscription,
    Subscription,
    sinks,
)
from flow_core.engine import EngineOptions
from flow_core.plugins import Backpressure, Kind, OperatorSpec, PluginHost, SourceSpec, _builtin
from flow_core.protocols import ConditionalSubscriber, Subscriber
from flow_core.sources import files
from flow_core.testing import TestSubscriber, recorded_screen

HOST = PluginHost({"FLOW_DISABLE_PLUGINS": "*"})

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "map": (str,),
    "filter": (bool,),
    "flat_map_iterable": (lambda n: [n, n],),
    "take": (3,),
    "skip": (1,),
    "take_while": (lambda n: True,),
    "skip_while": (lambda n: False,),
    "scan": (op.add,),
    "reduce": (op.add,),
    "collect": (list, list.append),
    "distinct": (str,),
    "distinct_until_changed": (),
    "do_on_next": (lambda n: None,),
    "buffer_with_count": (2,),
    "progress": ("items",),
    "max": (str,),
    "min": (str,),
    "sort": (str,),
    "all": (bool,),
    "buffer_split": (bool,),
    "buffer_until": (bool,),
    "buffer_while": (bool,),
    "cast": (int,),
    "contains": (9,),
    "context_write": (ContextVar("user"), "Ada"),
    "default_if_empty": (0,),
    "do_after_next": (str,),
    "do_after_terminate": (list,),
    "do_on_cancel": (list,),
    "do_on_complete": (list,),
    "do_on_error": (str,),
    "do_on_request": (str,),
    "do_on_subscribe": (list,),
    "do_on_terminate": (list,),
    "element_at": (3,),
    "element_at_or_default": (3, 0),
    "end_with": (7,),
    "filter_indexed": (lambda n, index: True,),
    "finally_action": (list,),
    "first_or_default": (0,),
    "handle": (lambda n, sink: sink.next(n),),
    "last_or_default": (0,),
    "lift": ("passing", lambda downstream: Passing(downstream)),
    "map_indexed": (lambda n, index: n,),
    "starmap": (lambda a, b: a,),
    "map_optional": (lambda n: n,),
    "name": ("ints",),
    "of_type": (int,),
    "on_error_map": (lambda error: error,),
    "on_error_return": (0,),
    "count_by_key": (str,),
    "reduce_by_key": (str, max),
    "single_or_default": (0,),
    "skip_last": (1,),
    "slice": (None, None, 2),
    "some": (bool,),
    "start_with": (7,),
    "tag": ("key", "value"),
    "take_last": (1,),
    "take_until": (lambda n: False,),
    "to_dict": (str,),
    "to_multidict": (str,),
    "zip_with_iterable": ("abc",),
}

SOURCES: dict[str, tuple[Any, ...]] = {
    "range": (3,),
    "just": (1,),
    "from_iterable": ([1, 2],),
    "from_callable": (lambda: 1,),
    "defer": (lambda: flow.just(1),),
    "from_publisher": (flow.just(1).hide().source,),
    "error": (ValueError("x"),),
    "generate": (list, lambda state, sink: sink.next(1)),
    "repeat_value": (1,),
    "repeat_callable": (list,),
    "create": (lambda emitter: emitter.next(1),),
    "from_future": (Future(),),
    "from_async_iterable": (flow.range(3),),
    "using": (list, flow.from_iterable, list.clear),
    "using_when": (lambda: aclosing(flow.range(3).__aiter__()), flow.just),
    "read_lines": ("file",),
    "read_csv": ("file",),
    "read_json_lines": ("file",),
}


class Probe(CoreSubscriber[Any]):
    """Asks for fusion, or requests one item, and notes the answers."""

    def __init__(self, asks: Fusion | None) -> None:
        self.asks = asks
        self.answer = Fusion.NONE
        self.subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self.asks is None:
            subscription.request(1)
        elif isinstance(subscription, QueueSubscription):
            self.answer = subscription.request_fusion(self.asks)

    def on_next(self, item: Any, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self) -> None: ...


class Passing(Probe):
    """A subscriber for `lift`: a subscription of its own, which passes requests on."""

    def __init__(self, downstream: CoreSubscriber[Any]) -> None:
        super().__init__(Fusion.NONE)
        self.downstream = downstream

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        self.downstream.on_subscribe(self)

    def request(self, n: int, /) -> None:
        assert self.subscription is not None
        self.subscription.request(n)

    def cancel(self) -> None: ...


class Upstream:
    """A publisher that notes what is requested of it and who subscribes, and sends nothing."""

    def __init__(self) -> None:
        self.requested = 0
        self.subscriber: Subscriber[Any] | None = None

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requested = min(self.requested + n, UNBOUNDED)

    def cancel(self) -> None: ...


class Queue(Upstream, QueueSubscription[Any]):
    """The same, which may also be polled."""

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        return mode & Fusion.ASYNC

    def poll(self) -> Empty:
        return EMPTY

    def is_empty(self) -> bool:
        return True

    def clear(self) -> None: ...


def applied(name: str, upstream: Flow[Any]) -> Flow[Any]:
    made: Flow[Any] = upstream.pipe(HOST.operator(name)(*ARGUMENTS.get(name, ())))
    return made


def granted(flow: Flow[Any], asks: Fusion) -> Fusion:
    probe = Probe(asks)
    flow.subscribe(probe)
    return probe.answer


each_operator = pytest.mark.parametrize("name", sorted(HOST.operators))


def spec(name: str) -> OperatorSpec:
    return HOST.operators[name].spec


def test_every_template_of_the_core_is_registered_under_its_name() -> None:
    templates = set(_builtin.stage_templates())
    stages = {name for name in HOST.operators if spec(name).kind is Kind.STAGE}
    assert stages == templates


def test_every_method_of_flow_that_adds_something_is_registered() -> None:
    returns_flow = {
        name
        for name, method in vars(Flow).items()
        if not name.startswith("_")
        and str(getattr(method, "__annotations__", {}).get("return", "")).startswith("Flow[")
    }
    assert returns_flow - {"then", "moved"} <= set(HOST.operators)


@each_operator
def test_an_operator_can_be_made_and_says_what_it_does(name: str) -> None:
    assert isinstance(applied(name, flow.range(5)), Flow)
    assert len(spec(name).summary) > 10
    assert "``" not in spec(name).summary


@each_operator
@pytest.mark.checklist("F11", "F39")
def test_an_operator_grants_the_fusion_that_it_is_said_to(name: str) -> None:
    made = applied(name, flow.range(5))
    answers = spec(name).answers
    assert granted(made, Fusion.ANY) == (answers & Fusion.SYNC or answers & Fusion.ANY)
    across = granted(made, Fusion.ANY | Fusion.THREAD_BOUNDARY)
    if Fusion.THREAD_BOUNDARY in spec(name).answers:
        assert across & Fusion.SYNC
    else:
        assert across is Fusion.NONE


@each_operator
@pytest.mark.checklist("F11", "F22")
def test_an_operator_shares_its_upstreams_queue_if_it_is_said_to(name: str) -> None:
    made = applied(name, Flow(Queue()))
    assert granted(made, Fusion.ASYNC) == spec(name).answers & Fusion.ASYNC


@each_operator
@pytest.mark.checklist("F11")
def test_an_operator_does_with_demand_what_it_is_said_to(name: str) -> None:
    upstream = Upstream()
    applied(name, Flow(upstream)).subscribe(Probe(None))
    expected = {
        Backpressure.PASS: [1],
        Backpressure.FULL: range(1, 1000),  # 1 of an operator that uses one item at most
        Backpressure.UNBOUNDED_IN: [UNBOUNDED],
    }
    assert upstream.requested in expected[spec(name).backpressure]


@each_operator
@pytest.mark.checklist("F12")
def test_an_operator_is_conditional_if_it_is_said_to_be(name: str) -> None:
    upstream, probe = Upstream(), Probe(None)
    with recorded_screen():  # for `progress`, which counts where somebody looks
        applied(name, Flow(upstream)).subscribe(probe)
        assert probe.subscription is not None
        probe.subscription.cancel()
    conditional = isinstance(upstream.subscriber, ConditionalSubscriber)
    assert conditional == spec(name).conditional


@pytest.mark.parametrize("name", sorted(HOST.sources))
@pytest.mark.checklist("F11", "F55")
def test_a_source_can_be_made_and_grants_the_fusion_that_it_is_said_to(name: str) -> None:
    record: SourceSpec = HOST.sources[name].spec
    made = HOST.source(name)(*SOURCES.get(name, ()))
    assert isinstance(made, Flow)
    assert len(record.summary) > 10
    assert granted(made, Fusion.ANY) == record.answers & Fusion.ANY
    across = granted(made, Fusion.ANY | Fusion.THREAD_BOUNDARY)
    assert bool(across) == (Fusion.THREAD_BOUNDARY in record.answers)


@pytest.mark.parametrize("name", sorted(HOST.sources))
@pytest.mark.checklist("F11")
def test_a_source_that_is_said_to_honour_demand_sends_nothing_without(name: str) -> None:
    record: SourceSpec = HOST.sources[name].spec
    subscriber = TestSubscriber[Any](0)
    HOST.source(name)(*SOURCES.get(name, ())).subscribe(subscriber)
    assert record.backpressure is Backpressure.FULL
    subscriber.assert_items().cancel()


def test_every_source_function_of_the_core_is_registered() -> None:
    reading = {name for name in files.__all__ if name.startswith("read_")}
    assert set(HOST.sources) == set(flow.sources.__all__) | reading


def test_every_sink_of_the_core_is_registered_and_says_what_it_does() -> None:
    targets = {found.spec.target for found in HOST.sinks.values()}
    assert targets == {f"flow_core.sinks:{name}" for name in sinks.__all__}
    for name, found in HOST.sinks.items():
        assert len(found.spec.summary) > 10
        assert callable(HOST.sink(name))


def test_the_local_engine_leaves_a_flow_where_it_is() -> None:
    numbers = flow.range(3)
    with HOST.engine("local")(EngineOptions()) as engine:
        assert engine.place(numbers) is numbers
        assert engine.name == "local"
        assert dict(engine.facts) == {}
