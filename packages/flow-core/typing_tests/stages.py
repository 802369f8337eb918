"""What type checkers infer of every method of `Flow`; checked by mypy and pyright, never run."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, assert_type

import flow_core as flow
from flow_core import (
    Flow,
    IterableSource,
    Notification,
    OnComplete,
    OnNext,
    Operator,
    Publisher,
    SingleSink,
    Stage,
    Template,
    structure,
)
from flow_core.protocols import CallableSource
from flow_core.structure import boundary_of, call_of, source_of, stages_of
from flow_core.subscribers import CallbackSubscriber
from flow_core.subscribers._awaiting import AsyncItems

T = TypeVar("T")

USER: ContextVar[str] = ContextVar("user")
COUNT: ContextVar[int] = ContextVar("count")


class Animal:
    name = "animal"


class Cat(Animal):
    lives = 9


class Opaque:
    """Neither compared nor added."""


def transforming(ints: Flow[int], words: Flow[str]) -> None:
    assert_type(ints.map(lambda n: n / 2), Flow[float])
    assert_type(words.map(len), Flow[int])
    assert_type(words.map(lambda word: word.split()), Flow[list[str]])
    assert_type(words.map_optional({"a": 1}.get), Flow[int])
    assert_type(ints.map_optional(lambda n: str(n) if n else None), Flow[str])
    assert_type(words.map_indexed(lambda word, index: word.upper() * index), Flow[str])
    assert_type(words.flat_map_iterable(lambda word: word.split()), Flow[str])
    assert_type(ints.flat_map_iterable(flow.range), Flow[int])

    def numbers(word: str, sink: SingleSink[int]) -> None:
        sink.next(int(word))

    assert_type(words.handle(numbers), Flow[int])
    assert_type(flow.just(Animal()).cast(Cat), Flow[Cat])
    assert_type(ints.scan(lambda total, n: total + n), Flow[int])
    assert_type(ints.scan(lambda text, n: text + str(n), ""), Flow[str])
    assert_type(ints.scan(lambda total, n: total + n / 2, 0.0), Flow[float])
    assert_type(ints.pairwise(), Flow[tuple[int, int]])
    assert_type(ints.pairwise().map(lambda pair: pair[1] - pair[0]), Flow[int])
    assert_type(ints.pairwise().starmap(lambda before, after: after - before), Flow[int])
    assert_type(ints.buffer_with_count(2), Flow[list[int]])
    assert_type(ints.buffer_with_count(3, 1), Flow[list[int]])
    assert_type(words.buffer_until(lambda word: word.endswith(".")), Flow[list[str]])
    assert_type(words.buffer_until(lambda word: word.isdigit(), cut_before=True), Flow[list[str]])
    assert_type(words.buffer_while(lambda word: word.isalpha()), Flow[list[str]])
    assert_type(words.sliding(3), Flow[list[str]])
    assert_type(words.sliding(3, 2), Flow[list[str]])
    assert_type(words.buffer_split(lambda word: word.isspace()), Flow[list[str]])
    assert_type(words.buffer_until_changed(), Flow[list[str]])
    assert_type(words.buffer_until_changed(lambda word: len(word)), Flow[list[str]])
    assert_type(
        words.buffer_until_changed(lambda word: len(word), lambda a, b: a.bit_count() == b),
        Flow[list[str]],
    )


def filtering(ints: Flow[int], words: Flow[str]) -> None:
    assert_type(words.filter(lambda word: word.isdigit()), Flow[str])
    assert_type(words.filter_indexed(lambda word, index: word[index]), Flow[str])
    assert_type(flow.just(1, "a").of_type(int), Flow[int])
    assert_type(flow.just(Animal()).of_type(Cat).map(lambda cat: cat.lives), Flow[int])
    assert_type(words.ignore_elements(), Flow[str])
    assert_type(words.take(1), Flow[str])
    assert_type(words.take_last(1), Flow[str])
    assert_type(words.take_while(lambda word: word.isdigit()), Flow[str])
    assert_type(words.take_until(lambda word: word.isdigit()), Flow[str])
    assert_type(words.take_until(flow.Shutdown()), Flow[str])
    assert_type(words.skip(1), Flow[str])
    assert_type(words.skip_last(1), Flow[str])
    assert_type(words.skip_while(lambda word: word.isdigit()), Flow[str])
    assert_type(words.slice(1, None, 2), Flow[str])
    assert_type(words[1:], Flow[str])
    assert_type(words[1], Flow[str])
    assert_type(words.element_at(1), Flow[str])
    assert_type(words.element_at_or_default(1, ""), Flow[str])
    assert_type(words.element_at_or_default(1, 0), Flow[str | int])
    assert_type(words.first_or_error(), Flow[str])
    assert_type(words.first_or_default(""), Flow[str])
    assert_type(words.first_or_default(0), Flow[str | int])
    assert_type(words.last_or_error(), Flow[str])
    assert_type(words.last_or_default(""), Flow[str])
    assert_type(words.last_or_default(0), Flow[str | int])
    assert_type(words.single_or_error(), Flow[str])
    assert_type(words.single_or_default(""), Flow[str])
    assert_type(words.single_or_default(0), Flow[str | int])
    assert_type(words.distinct(), Flow[str])
    assert_type(words.distinct(lambda word: word.lower()), Flow[str])
    assert_type(words.distinct_until_changed(), Flow[str])
    assert_type(words.distinct_until_changed(lambda word: word.lower()), Flow[str])
    assert_type(
        ints.distinct_until_changed(lambda n: str(n), lambda a, b: a.lower() == b), Flow[int]
    )
    assert_type(ints.distinct_until_changed(same=lambda a, b: a.bit_count() == b), Flow[int])


def aggregating(ints: Flow[int], words: Flow[str], floats: Flow[float]) -> None:
    assert_type(ints.reduce(lambda total, n: total + n), Flow[int])
    assert_type(ints.reduce(lambda total, n: total + n / 2, 0.0), Flow[float])
    assert_type(ints.collect(list[int], lambda items, n: items.append(n)), Flow[list[int]])
    assert_type(words.collect(set[str], lambda seen, word: seen.add(word)), Flow[set[str]])
    assert_type(words.to_list(), Flow[list[str]])
    assert_type(words.to_set(), Flow[set[str]])
    assert_type(words.to_dict(lambda word: len(word)), Flow[dict[int, str]])
    assert_type(words.to_dict(len, lambda word: word.encode()), Flow[dict[int, bytes]])
    assert_type(words.reduce_by_key(len, lambda a, b: a + b), Flow[tuple[int, str]])
    assert_type(
        words.reduce_by_key(lambda word: word[0], int.__add__, value=lambda word: len(word)),
        Flow[tuple[str, int]],
    )
    assert_type(words.count_by_key(lambda word: word[0]), Flow[tuple[str, int]])
    assert_type(words.collect(set[str], set[str].add, set[str].update), Flow[set[str]])
    assert_type(words.to_multidict(lambda word: len(word)), Flow[dict[int, list[str]]])
    assert_type(words.to_multidict(len, lambda word: word.encode()), Flow[dict[int, list[bytes]]])
    assert_type(words.count(), Flow[int])
    assert_type(ints.sum(), Flow[int])
    assert_type(floats.sum(), Flow[float])
    assert_type(words.sum(""), Flow[str])
    assert_type(flow.just([1]).sum([2]), Flow[list[int]])
    assert_type(ints.average(), Flow[float])
    assert_type(words.min(), Flow[str])
    assert_type(words.min(lambda word: len(word)), Flow[str])
    assert_type(flow.just(Opaque()).min(id), Flow[Opaque])
    assert_type(words.max(), Flow[str])
    assert_type(words.max(lambda word: len(word)), Flow[str])
    assert_type(words.sort(), Flow[str])
    assert_type(words.sort(reverse=True), Flow[str])
    assert_type(words.sort(lambda word: word.lower(), reverse=True), Flow[str])
    assert_type(words.all(lambda word: word.isdigit()), Flow[bool])
    assert_type(words.some(lambda word: word.isdigit()), Flow[bool])
    assert_type(words.is_empty(), Flow[bool])
    assert_type(words.contains("a"), Flow[bool])


def combining(ints: Flow[int], words: Flow[str]) -> None:
    assert_type(words.start_with("a", "b"), Flow[str])
    assert_type(words.start_with(0), Flow[str | int])
    assert_type(words.end_with("a"), Flow[str])
    assert_type(words.end_with(0), Flow[str | int])
    assert_type(words.default_if_empty("a"), Flow[str])
    assert_type(words.default_if_empty(0), Flow[str | int])
    assert_type(words.zip_with_iterable([1]), Flow[tuple[str, int]])
    assert_type(words.zip_with_iterable(ints, lambda word, n: word.upper() * n), Flow[str])


def recovering(words: Flow[str]) -> None:
    assert_type(words.on_error_return("a"), Flow[str])
    assert_type(words.on_error_return(0, KeyError), Flow[str | int])
    assert_type(words.on_error_return("a", lambda error: error.args), Flow[str])
    assert_type(words.on_error_complete(), Flow[str])
    assert_type(words.on_error_complete((KeyError, ValueError)), Flow[str])
    assert_type(words.on_error_map(lambda error: ValueError(error.args)), Flow[str])
    assert_type(words.on_error_map(lambda error: ValueError(error.args), KeyError), Flow[str])
    assert_type(words.materialize(), Flow[Notification[str]])
    assert_type(words.materialize().dematerialize(), Flow[str])
    signals: Flow[Notification[int]] = flow.just(OnNext(1), OnComplete())
    assert_type(signals.dematerialize(), Flow[int])


def observing(words: Flow[str]) -> None:
    assert_type(words.do_on_next(lambda word: print(word.upper())), Flow[str])
    assert_type(words.do_after_next(lambda word: print(word.upper())), Flow[str])
    assert_type(words.do_on_subscribe(lambda: print()), Flow[str])
    assert_type(words.do_on_request(lambda n: print(n.bit_count())), Flow[str])
    assert_type(words.do_on_complete(lambda: print()), Flow[str])
    assert_type(words.do_on_error(lambda error: print(error.args)), Flow[str])
    assert_type(words.do_on_terminate(lambda: print()), Flow[str])
    assert_type(words.do_after_terminate(lambda: print()), Flow[str])
    assert_type(words.do_on_cancel(lambda: print()), Flow[str])
    assert_type(words.finally_action(lambda: print()), Flow[str])
    assert_type(
        words.do_action(
            lambda word: print(word.upper()),
            lambda error: print(error.args),
            on_cancel=lambda: print(),
        ),
        Flow[str],
    )
    assert_type(words.tap(lambda word: print(word.upper())), Flow[str])
    assert_type(words.log("words", logger="app", level=logging.DEBUG), Flow[str])
    assert_type(words.checkpoint("words"), Flow[str])
    assert_type(words.name("words"), Flow[str])
    assert_type(words.tag("team", "orders"), Flow[str])
    assert_type(words.hide(), Flow[str])


def assembling(words: Flow[str], lengths: Operator[str, Flow[int]]) -> None:
    upper: Stage[str, bytes] = Stage(Template("upper"))
    assert_type(words.pipe(), Flow[str])
    assert_type(words.pipe(upper), Flow[bytes])
    assert_type(words.pipe(lengths), Flow[int])
    assert_type(words.pipe(lambda made: made.map(len)), Flow[int])
    assert_type(words.pipe(lengths, doubled, Ends), Ends[int])
    assert_type(words.pipe(spread, first_half, lengths), Flow[int])
    assert_type(words.pipe(Ends).ends(), Flow[tuple[str, str]])
    assert_type(words.pipe(upper, joined), bytes)
    assert_type(words.pipe(spread).pipe(lambda made: made.map(len)), Flow[int])
    # Any: of the first item, and of neighbouring stages.
    assert_type(source_of(words), Publisher[Any] | IterableSource[Any])
    assert_type(stages_of(words), tuple[Stage[Any, Any], ...])
    assert_type(boundary_of(words), tuple[Flow[Any], Operator[Any, Any]] | None)
    assert_type(call_of(words), CallableSource[str] | None)
    assert_type(structure.moved(words, lambda first: first.hide()), Flow[str])


def doubled(numbers: Flow[int]) -> Flow[int]:
    return numbers.map(lambda n: 2 * n)


def spread(texts: Flow[str]) -> Flow[str]:
    return texts.flat_map_iterable(lambda text: text)


def first_half(made: Flow[T]) -> Flow[T]:
    return made.take(5)


def joined(parts: Flow[bytes]) -> bytes:
    return b"".join(parts)


class Ends(Generic[T]):
    """What a package puts beside a flow."""

    def __init__(self, made: Flow[T]) -> None:
        self._made = made

    def ends(self) -> Flow[tuple[T, T]]:
        return self._made.pairwise()


def consuming(words: Flow[str]) -> None:
    assert_type(
        words.subscribe(lambda word: print(word.upper()), prefetch=8), CallbackSubscriber[str]
    )
    assert_type(words.iterate(prefetch=8), Iterator[str])
    assert_type(words.aiterate(prefetch=8), AsyncItems[str])
    assert_type(words.run, Callable[[], None])
    assert_type(words.run_async, Callable[[], Coroutine[Any, Any, None]])
    assert_type([words.for_each(lambda word: word.upper())], list[None])  # type: ignore[func-returns-value]
    assert_type([words.for_each_async(lambda word: word.upper())], list[Coroutine[Any, Any, None]])
    assert_type(iter(words), Iterator[str])
    assert_type(words.__aiter__(), AsyncIterator[str])
    assert_type(words.__await__(), Generator[Any, Any, str])  # Any: what the loop sends and gets
    assert_type(words.first(), str)
    assert_type(words.last(), str)
    assert_type(words.single(), str)
    assert_type(words.to_future(), Future[str])


def chained() -> None:
    assert_type(
        flow.range(10)
        .filter(lambda n: n % 2 == 0)
        .map(lambda n: str(n))
        .zip_with_iterable([1.5])
        .map(lambda pair: (pair[0].upper(), pair[1].hex()))
        .on_error_return(("", ""))
        .to_dict(lambda pair: pair[0], lambda pair: len(pair[1])),
        Flow[dict[str, int]],
    )


def contexts(ints: Flow[int]) -> None:
    assert_type(ints.context_capture(), Flow[int])
    assert_type(ints.local(), Flow[int])
    assert_type(ints.context_write(USER, "Ada"), Flow[int])
    assert_type(ints.context_write({USER: "Ada", COUNT: 3}), Flow[int])
    assert_type(ints.context_capture().map(lambda n: n / 2), Flow[float])


def mistakes(ints: Flow[int], words: Flow[str], objects: Flow[Opaque]) -> None:
    ints.map(lambda n: n.upper())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - ints have no upper
    ints.filter(lambda n: n.upper())  # type: ignore[arg-type]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - ints have no upper
    ints.map_indexed(lambda n, index: n + index.upper())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - an index is an int
    ints.do_on_next(lambda n: n.upper())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - ints have no upper
    words.flat_map_iterable(lambda word: len(word))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType] - an int is not an iterable
    ints.scan(lambda text, n: text + n, "")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownLambdaType] - a text and an int
    ints.reduce(lambda text, n: text + n, "")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownLambdaType] - a text and an int
    ints.collect(list[int], lambda items, n: items.append(str(n)))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a list of ints
    ints.distinct_until_changed(lambda n: str(n), lambda a, b: a.bit_count() == b)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - the keys are texts
    ints.distinct_until_changed(same=lambda a, b: a.upper() == b)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - without a key ints are compared
    ints.zip_with_iterable([""], lambda n, word: n + word)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownLambdaType] - an int and a text
    ints.take("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a count is an int
    ints.of_type(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - no class
    ints.to_dict(1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType] - no function
    words.sum()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue] - texts need a start
    ints.sum("")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType] - ints cannot be added to a text
    words.average()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - texts have no mean
    objects.min()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue] - they cannot be compared
    objects.max()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue] - they cannot be compared
    objects.sort()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue] - they cannot be compared
    objects.sort(lambda opaque: opaque)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType] - the keys cannot be compared
    ints.dematerialize()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - ints are not notifications
    ints.zip_with_iterable(1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType] - no iterable
    ints.on_error_return(1, "KeyError")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - no class and no function
    ints.on_error_map(lambda error: str(error))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType] - a text is not an error
    ints.do_on_request(lambda: None)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType] - it gets the amount
    ints.do_on_complete(lambda n: None)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType, reportUnknownLambdaType] - it gets nothing
    ints.pipe(doubled, spread)  # type: ignore[misc]  # pyright: ignore[reportArgumentType] - it takes texts
    ints.pipe(Stage[str, str](Template("upper")))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a stage for texts
    ints.subscribe(1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue] - neither a subscriber nor a function
    ints.context_write(COUNT, "three")  # type: ignore[misc]  # pyright: ignore[reportArgumentType] - no text
    ints.context_write(USER)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType] - no value
