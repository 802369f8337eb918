"""The error for a missing name says what it is called here, or where it is."""

from __future__ import annotations

import builtins
import re
from importlib import import_module

import pytest
from reactivex import Observable

import flow_core
import flow_multicast
import flow_ops
import flow_rxcompat
import flow_spark
from flow_core import Flow, NoSuchNameError, UnknownOperatorError, hints, operators
from flow_core.connectable import Connectable
from flow_core.plugins import plugin_host
from flow_core.subscribers import CallbackSubscriber
from flow_core.surface.spark import SparkWords

from .test_docs import generate

FLOW = flow_core.range(3)
TABLES = hints.tables()
CODE = re.compile(r"`([^`]+)`")


def said(owner: object, name: str) -> str:
    with pytest.raises(NoSuchNameError) as caught:
        getattr(owner, name)
    assert isinstance(caught.value, AttributeError)
    assert caught.value.name == name
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chunk", "Flow has no 'chunk'; here it is batch"),
        ("debonce", "Flow has no 'debonce'; did you mean 'debounce'?"),
        ("flatMap", "Flow has no 'flatMap'; here it is flat_map(mapper)"),
        ("subscribeOn", "Flow has no 'subscribeOn'; here it is subscribe_on(executor)"),
        ("catch", "Flow has no 'catch'; here it is on_error_resume(fallback) or on_error_return("),
        ("find", "Flow has no 'find'; instead: filter(predicate).take(1)"),
        ("merge_with", "Flow has no 'merge_with'; instead: merge(*others)"),
        ("join", "Flow has no 'join'; there is nothing like it: "),
        ("just", "Flow has no 'just'; it is flow_core.just(*items)"),
        ("read_csv", "Flow has no 'read_csv'; it is flow_core.sources.files.read_csv"),
        ("where", "Flow has no 'where'; here it is spark.where(condition)"),
        ("from_rx", "Flow has no 'from_rx'; it is flow_rxcompat.rx.from_rx"),
        ("progress", "Flow has no 'progress'; here it is flow_cli.progress.progress, for pipe"),
        ("kwyjibo", "Flow has no 'kwyjibo'; `flow plugins` shows what there is"),
    ],
)
def test_a_flow_says_what_a_name_is_here(name: str, text: str) -> None:
    assert said(FLOW, name).startswith(text)


@pytest.mark.parametrize(
    ("module", "name", "text"),
    [
        (flow_core, "of", "flow_core has no 'of'; here it is flow_core.just(*items)"),
        (flow_core, "debounce", "flow_core has no 'debounce'; it is a method of Flow: debounce("),
        (flow_core, "Subject", "flow_core has no 'Subject'; here it is flow_multicast.Direct"),
        (flow_core, "rnge", "flow_core has no 'rnge'; did you mean 'range'?"),
        (flow_core, "Timestamped", "flow_core has no 'Timestamped'; it is flow_ops.Timestamped"),
        (flow_core, "VirtualClock", "flow_core has no 'VirtualClock'; it is flow_testing."),
        (operators, "filter", "flow_core.operators has no 'filter'; it is a method of Flow: "),
        (flow_ops, "share", "flow_ops has no 'share'; it is a method of Flow: share()"),
        (flow_multicast, "Flow", "flow_multicast has no 'Flow'; it is flow_core.Flow"),
        (flow_spark, "BehaviorSubject", "flow_spark has no 'BehaviorSubject'; here it is flow_m"),
        (flow_rxcompat, "from_rx", "flow_rxcompat has no 'from_rx'; it is flow_rxcompat.rx.from"),
    ],
)
def test_a_module_says_where_a_name_is(module: object, name: str, text: str) -> None:
    assert said(module, name).startswith(text)


def test_objects_that_are_not_flows_say_how_to_continue() -> None:
    assert "continue with sequential() and retry(" in said(FLOW.parallel(2), "retry")
    assert "here it is batch" in said(FLOW.publish(), "chunk")
    with pytest.raises(AttributeError, match=r"continue with \.ref_count\(\)\.map"):
        FLOW.publish().map  # type: ignore[attr-defined]  # noqa: B018


def test_a_group_says_what_a_name_is_here() -> None:
    assert "here it is batch" in said(FLOW.group_by(bool).first(), "chunk")


@pytest.mark.parametrize("module", ["flow_core", "flow_ops", "flow_multicast", "flow_spark"])
def test_a_from_import_says_where_a_name_is(module: str) -> None:
    with pytest.raises(ImportError, match=f"^{module} has no 'Observable'; here it is flow_core.F"):
        exec(f"from {module} import Observable")
    assert not hasattr(import_module(module), "Observable")


@pytest.mark.parametrize(
    ("package", "text"),
    [
        ("flow_ops", "here it is flat_map(mapper) (pip install flow-ops)"),
        ("flow_multicast", "here it is flat_map(mapper)"),
    ],
)
def test_a_package_that_is_not_installed_is_named(
    package: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "find_spec", lambda name: None if name == package else name)
    assert said(FLOW, "flatMap").endswith(text)


@pytest.mark.parametrize(
    ("category", "name", "text"),
    [
        ("operator", "chunk", "no operator 'chunk' is installed; here it is batch"),
        ("operator", "batched", "here it is batch"),
        ("operator", "flatMap", "did you mean 'flat_map'?"),
        ("source", "of", "here it is flow_core.just(*items)"),
        ("engine", "chunk", "no engine 'chunk' is installed; there are: local, spark"),
    ],
)
def test_the_registry_says_what_a_name_is_here(category: str, name: str, text: str) -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        getattr(plugin_host(), category)(name)
    assert text in str(caught.value)


def test_hints_attribute_names_to_the_packages_that_register_them() -> None:
    """No table of their names is kept: those of the generated methods and functions are true."""
    host = plugin_host()
    assert set(hints.plugged("engine")) == {
        name for name, found in host.engines.items() if found.plugin.distribution == "flow-spark"
    }
    for name, package in hints.plugged("operator").items():
        owners = {
            found.plugin.distribution
            for records in (host.operators, host.sinks, host.sources)
            for found in records.values()
            if getattr(found.spec, "method", None) == name
        }
        assert owners == {package}, name
    for name, package in hints.plugged("source").items():
        if name in host.sources:
            assert host.sources[name].plugin.distribution == package


CELLS = [
    *(cell for cells in TABLES["elsewhere"].values() for cell in cells),
    *(cell for section, table in TABLES.items() if section != "elsewhere" for cell in table),
]


@pytest.mark.parametrize("word", sorted({word for cell in CELLS for word in hints.words_of(cell)}))
def test_each_word_of_the_table_has_an_answer(word: str) -> None:
    if not (hasattr(FLOW, word) or hasattr(flow_core, word)):
        known = "here it is|it is|instead:|there is nothing like it:"
        assert re.search(f"; ({known}) ", said(FLOW, word))


ANSWERS = [
    *(f"`{name}()`" for name in TABLES["elsewhere"]),
    *(
        f"`{name}()`"
        for library in ("itertools", "aiostream", "streamable")
        for names in TABLES[library].values()
        for name in names.split(", ")
    ),
    *(f"`{path}.{name}`" for name, path in TABLES["packages"].items()),
    *(
        way
        for section in ("instead", "nothing", "module", "differs")
        for way in TABLES[section].values()
    ),
]
PLACES = (Flow, flow_core, SparkWords, Connectable, CallbackSubscriber, builtins)
ARGUMENTS = {"function", "group", "predicate", "stop"}


def exists(name: str) -> bool:
    """Return whether a name in an answer is one of a flow, of its results, a module or Python."""
    module, _, attribute = name.rpartition(".")
    if module:
        return hasattr(FLOW if module in ARGUMENTS else import_module(module), attribute)
    host = plugin_host()
    known = any(hasattr(place, name) for place in PLACES) or name in ARGUMENTS
    return known or name in host.operators or name in host.sources


@pytest.mark.parametrize("text", sorted(set(ANSWERS)))
def test_each_answer_of_the_table_exists(text: str) -> None:
    for code in CODE.findall(text):
        called = re.findall(r"\.?([a-z][\w.]*)\(", code) if "(" in code else [code]
        for name in called:
            if not code.endswith("=") and not code.startswith("for "):  # a parameter, a statement
                assert exists(name.removeprefix("Flow.")), name


def test_each_name_of_rxpy_has_an_answer() -> None:
    rows = list(generate.rxpy_names())
    public = {name for name in {*dir(Observable), *vars(Observable())} if name[0] != "_"}
    assert {name for name, _, _ in rows} == public
    for name, how, what in rows:
        own = hasattr(Flow, name)
        assert own == (how in {"the same", "the same name, but"}), name
        assert bool(what) == (how != "the same"), name


@pytest.mark.parametrize("name", TABLES["differs"])
def test_a_name_with_a_different_meaning_exists_in_both_libraries(name: str) -> None:
    assert hasattr(Flow, name)
    assert hasattr(Observable, name)


OTHERS = {
    "Reactor": """
all any block blockFirst blockLast buffer bufferTimeout bufferUntil bufferUntilChanged
bufferWhen bufferWhile cache cancelOn cast checkpoint collect collectList collectMap
collectMultimap collectSortedList concatMap concatMapDelayError concatMapIterable concatWith
concatWithValues contextCapture contextWrite count defaultIfEmpty delayElement delayElements
delaySequence delaySubscription delayUntil dematerialize distinct distinctUntilChanged
doAfterTerminate doFinally doFirst doOnCancel doOnComplete doOnDiscard doOnEach doOnError
doOnNext doOnRequest doOnSubscribe doOnSuccess doOnTerminate elapsed elementAt expand expandDeep
filter filterWhen flatMap flatMapDelayError flatMapIterable flatMapMany flatMapSequential
getPrefetch groupBy groupJoin handle hasElement hasElements hide ignoreElements index join last
limitRate limitRequest log map mapNotNull materialize mergeComparing mergeOrderedWith
mergePriority mergeWith metrics name next ofType onBackpressureBuffer onBackpressureDrop
onBackpressureError onBackpressureLatest onErrorComplete onErrorContinue onErrorMap
onErrorResume onErrorReturn onErrorStop onTerminateDetach or parallel publish publishNext
publishOn reduce reduceWith repeat repeatWhen replay retry retryWhen sample sampleFirst
sampleTimeout scan scanWith share shareNext single singleOrEmpty skip skipLast skipUntil
skipUntilOther skipWhile sort startWith subscribe subscribeOn subscribeWith subscriberContext
switchIfEmpty switchMap switchOnFirst tag take takeLast takeUntil takeUntilOther takeWhile tap
then thenEmpty thenMany timed timeout timestamp toIterable toStream transform transformDeferred
transformDeferredContextual window windowTimeout windowUntil windowUntilChanged windowWhen
windowWhile withLatestFrom zipWith zipWithIterable zipWhen zipDelayError whenDelayError
firstWithValue firstWithSignal combineLatest concat concatDelayError create defer
deferContextual empty error from fromArray fromIterable fromStream generate interval just
justOrEmpty merge mergeDelayError mergeSequential mergeSequentialDelayError never push range
switchOnNext using usingWhen zip toFuture toProcessor cacheInvalidateIf cacheInvalidateWhen
repeatWhenEmpty ignoreElement fromRunnable fromSupplier fromCompletionStage sequenceEqual when
as asFlux autoConnect blockOptional boundedElastic emitNext fixedDelay flatMapSequentialDelayError
fromDirect onEachOperator onErrorDropped onNextDropped onOperatorDebug runOn singleOptional
thenReturn tryEmitNext
""",
    "RxJava": """
all amb ambArray ambWith any blockingFirst blockingForEach blockingIterable blockingLast
blockingLatest blockingMostRecent blockingNext blockingSingle blockingStream blockingSubscribe
buffer cache cacheWithInitialCapacity cast collect collectInto combineLatestArray
combineLatestDelayError compose concatArray concatArrayDelayError concatArrayEager
concatDelayError concatEager concatMap concatMapCompletable concatMapDelayError concatMapEager
concatMapEagerDelayError concatMapIterable concatMapMaybe concatMapSingle concatMapStream
concatWith contains count debounce defaultIfEmpty delay delaySubscription dematerialize distinct
distinctUntilChanged doAfterNext doAfterTerminate doFinally doOnCancel doOnComplete doOnDispose
doOnEach doOnError doOnLifecycle doOnNext doOnRequest doOnSubscribe doOnTerminate doOnEvent
elementAt elementAtOrError filter first firstElement firstOrError firstStage flatMap
flatMapCompletable flatMapIterable flatMapMaybe flatMapSingle flatMapStream flatMapPublisher
forEach forEachWhile fromAction fromArray fromCallable fromCompletable fromCompletionStage
fromFuture fromIterable fromMaybe fromObservable fromOptional fromPublisher fromRunnable
fromSingle fromStream fromSupplier generate groupBy groupJoin hide ignoreElement ignoreElements
interval intervalRange isEmpty join just lastElement lastOrError lastStage lift map mapOptional
materialize mergeArray mergeArrayDelayError mergeDelayError mergeWith never observeOn ofType
onBackpressureBuffer onBackpressureDrop onBackpressureLatest onBackpressureReduce
onErrorComplete onErrorResumeNext onErrorResumeWith onErrorReturn onErrorReturnItem
onTerminateDetach parallel publish range rangeLong rebatchRequests reduce reduceWith repeat
repeatUntil repeatWhen replay retry retryUntil retryWhen safeSubscribe sample scan scanArray
scanWith sequenceEqual serialize share single singleElement singleOrError singleStage skip
skipLast skipUntil skipWhile sorted startWith startWithArray startWithItem startWithIterable
strict subscribe subscribeOn subscribeWith switchIfEmpty switchMap switchMapCompletable
switchMapDelayError switchMapMaybe switchMapSingle switchOnNext switchOnNextDelayError take
takeLast takeUntil takeWhile test throttleFirst throttleLast throttleLatest throttleWithTimeout
timeInterval timeout timer timestamp to toFuture toList toMap toMultimap toSortedList toFlowable
toObservable toMaybe toSingle toSingleDefault unsafeCreate unsubscribeOn using window
withLatestFrom zip zipArray zipWith andThen blockingAwait blockingGet doOnSuccess defer concat
merge empty error create
""",
    "Kafka Streams": """
addStateStore aggregate branch cogroup filterNot flatMapValues foreach globalTable groupByKey join
leftJoin mapValues outerJoin peek process processValues selectKey split suppress table toStream
toTable transformValues windowedBy
""",
    "asyncio": """
Queue Semaphore TaskGroup as_completed create_task gather run_in_executor sleep to_thread wait_for
""",
    "pandas, Spark and toolz": """
groupby head tail agg aggregate select where explode dropna fillna apply applymap pipe assign
astype rename sort_values drop_duplicates unique nunique value_counts cumsum diff rolling shift
merge concat join sample describe iterrows itertuples mean median std quantile melt pivot to_csv
to_json limit collect show withColumn orderBy repartition foreach foreachPartition mapPartitions
reduceByKey groupByKey flatMap distinct union zipWithIndex persist chunked islice accumulate tee
chain repeat partition partition_all pluck frequencies get nth peek sliding_window interleave
mapcat remove keyfilter first second last consume flatten ilen unique_everseen zip_longest
starmap product pairwise batched windowed spy collapse sort_together
""",
}


@pytest.mark.parametrize(("library", "names"), OTHERS.items(), ids=OTHERS)
def test_no_operator_of_another_library_goes_without_an_answer(library: str, names: str) -> None:
    silent = [
        name
        for name in names.split()
        if not hasattr(Flow, name)
        and hints.hint(name, "Flow").startswith(("; `flow plugins`", "; did you mean"))
    ]
    assert silent == []
