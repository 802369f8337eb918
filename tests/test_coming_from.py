"""The pages for those who come from other libraries: what their tables name exists."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import streamable

import flow_core as flow
import flow_multicast
import flow_spark
import flow_testing
from flow_core.parallel import ParallelFlow
from flow_core.plugins import plugin_host
from flow_core.surface.spark import SparkWords

FOLDER = Path(__file__).parent.parent / "docs" / "coming-from"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md"))
CODE = re.compile(r"`([^`]+)`")
NAMED = {"Reactor", "asyncio", "streamable", "Kafka Streams"}
"""Heads of the first columns of the tables that are checked."""


class Row(NamedTuple):
    """A row of a table: their word, ours, and a note."""

    theirs: str
    here: str
    note: str


def rows(page: str) -> Iterator[Row]:
    """Yield the rows of the tables of a page."""
    checked = False
    for line in (FOLDER / f"{page}.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not line.startswith("|"):
            checked = False
        elif cells[0] in NAMED and cells[1:] == ["here", "note"]:
            checked = True
        elif checked and not set(line) <= set("|- :"):
            yield Row(*cells)


ROWS = {page: list(rows(page)) for page in PAGES}
ALL = [pytest.param(row, id=f"{page}: {row.theirs}") for page in PAGES for row in ROWS[page]]

MODULES = ("asyncio", "concurrent", "contextvars", "flow_multicast", "flow_testing")
HOLDERS = (
    flow.Flow,
    flow,
    SparkWords,
    ParallelFlow,
    flow_multicast.Connectable,
    flow.Shutdown,
    flow_multicast.Sink,
    flow_testing.TestSubscriber,
    flow_testing.VirtualClock,
)
ARGUMENTS = {"function", "task"}
"""Names of functions that a reader gives."""


def found(name: str) -> Any:
    """Return what a name without a module is: of a flow, of what it leads to, or of Python."""
    for holder in (*HOLDERS, builtins):
        if hasattr(holder, name):
            return getattr(holder, name)
    host = plugin_host()
    assert name in host.operators, f"nothing here is called {name}"
    return host.operator(name)


def resolved(node: ast.expr) -> Any:
    """Return what an expression of a table names."""
    path = ast.unparse(node)
    root, _, rest = path.partition(".")
    if "(" in path:  # a method of what is called before
        return found(node.attr if isinstance(node, ast.Attribute) else path)
    if root == "flow" and rest:
        path = f"flow_core.{rest}"
    elif root == "flow_spark":  # looked up only: it would import pyspark, which takes seconds
        assert rest in flow_spark.__all__, path
        return None
    elif root not in MODULES:
        return found(node.attr if isinstance(node, ast.Attribute) else path)
    module, _, name = path.rpartition(".")
    left = [name]
    while True:
        try:
            value: Any = importlib.import_module(module)
            break
        except ImportError:
            module, _, name = module.rpartition(".")
            left.insert(0, name)
    for name in left:
        assert hasattr(value, name), path
        value = getattr(value, name)
    return value


def checked(code: str) -> None:
    """Fail if the code calls, or is, what does not exist, or names a parameter that does not."""
    tree = ast.parse(code, mode="eval").body
    if not isinstance(tree, ast.Call | ast.Lambda | ast.List | ast.Await):
        resolved(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) in ARGUMENTS:
            continue
        called = resolved(node.func)
        named = [each.arg for each in node.keywords]
        if named:
            known = inspect.signature(called).parameters
            assert set(named) <= set(known), (code, list(known))


@pytest.mark.parametrize("row", ALL)
def test_what_stands_for_a_name_exists(row: Row) -> None:
    codes = CODE.findall(row.here)
    assert codes or row.here == "–"
    for code in codes:
        checked(code)


@pytest.mark.parametrize("row", [row for row in ALL if "(" in row.values[0].note])
def test_what_a_note_calls_exists(row: Row) -> None:
    for code in CODE.findall(row.note):
        if "(" in code:
            checked(code)


@pytest.mark.parametrize("page", PAGES)
def test_no_name_comes_twice(page: str) -> None:
    times = Counter(code for row in ROWS[page] for code in CODE.findall(row.theirs))
    assert [name for name, count in times.items() if count > 1] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_row_without_a_counterpart_says_why_or_what_instead(page: str) -> None:
    assert [row.theirs for row in ROWS[page] if row.here == "–" and not row.note] == []


THEIRS = {
    "reactor": """
all any as blockFirst blockLast buffer bufferTimeout bufferUntil bufferUntilChanged bufferWhen
bufferWhile cache cancelOn cast checkpoint collect collectList collectMap collectMultimap
collectSortedList combineLatest concat concatDelayError concatMap concatMapDelayError
concatMapIterable concatWith concatWithValues contextCapture contextWrite count create
defaultIfEmpty defer deferContextual delayElements delaySequence delaySubscription delayUntil
dematerialize distinct distinctUntilChanged doAfterTerminate doFinally doFirst doOnCancel
doOnComplete doOnDiscard doOnEach doOnError doOnNext doOnRequest doOnSubscribe doOnTerminate
elapsed elementAt empty error expand expandDeep filter filterWhen first firstWithSignal
firstWithValue flatMap flatMapDelayError flatMapIterable flatMapSequential
flatMapSequentialDelayError from fromArray fromIterable fromStream generate getPrefetch groupBy
groupJoin handle hasElement hasElements hide ignoreElements index interval join just last
limitRate limitRequest log map mapNotNull materialize merge mergeComparing
mergeComparingDelayError mergeComparingWith mergeDelayError mergeOrdered mergeOrderedWith
mergePriority mergePriorityDelayError mergeSequential mergeSequentialDelayError mergeWith metrics
name never next ofType onBackpressureBuffer onBackpressureDrop onBackpressureError
onBackpressureLatest onErrorComplete onErrorContinue onErrorMap onErrorResume onErrorReturn
onErrorStop onTerminateDetach or parallel publish publishNext publishOn push range reduce
reduceWith repeat repeatWhen replay retry retryWhen sample sampleFirst sampleTimeout scan
scanWith share shareNext single singleOrEmpty skip skipLast skipUntil skipUntilOther skipWhile
sort startWith subscribe subscribeOn subscribeWith switchIfEmpty switchMap switchOnFirst
switchOnNext tag take takeLast takeUntil takeUntilOther takeWhile tap then thenEmpty thenMany
timed timeout timestamp toIterable toStream transform transformDeferred
transformDeferredContextual using usingWhen window windowTimeout windowUntil windowUntilChanged
windowWhen windowWhile withLatestFrom zip zipWith zipWithIterable
block blockOptional cacheInvalidateIf cacheInvalidateWhen delay delayElement doOnSuccess
flatMapMany flux fromCallable fromCompletionStage fromDirect fromFuture fromRunnable fromSupplier
ignoreElement justOrEmpty repeatWhenEmpty sequenceEqual singleOptional thenReturn toFuture when
whenDelayError zipDelayError zipWhen
""",
    "kafka-streams": """
filter filterNot flatMap flatMapValues foreach groupBy groupByKey join leftJoin map mapValues merge
outerJoin peek print process processValues repartition selectKey split to toTable
queryableStoreName suppress toStream transformValues aggregate cogroup count reduce windowedBy
addGlobalStore addStateStore build globalTable stream table
""",
}
"""The public methods: of reactor-core 3.8.8, those of Flux, and those that only Mono has; of
kafka-streams 4.1.1, those of KStream, KTable, KGroupedStream and StreamsBuilder."""


@pytest.mark.parametrize("page", THEIRS)
def test_a_page_has_every_name_of_theirs(page: str) -> None:
    known = {
        code.partition("(")[0].rpartition(".")[2]
        for row in ROWS[page]
        for code in CODE.findall(row.theirs)
    }
    assert sorted(set(THEIRS[page].split()) - known) == []


def test_the_page_of_streamable_has_all_that_it_exports_and_every_method() -> None:
    stream = streamable.stream
    names = {name for name in dir(stream) if name[0] != "_" and callable(getattr(stream, name))}
    there = {code for row in ROWS["streamable"] for code in CODE.findall(row.theirs)}
    known = {re.split(r"[(\s]", code.removeprefix("stream."))[0] for code in there}
    assert sorted((names | {"stream", "star", "Observation"}) - known) == []
