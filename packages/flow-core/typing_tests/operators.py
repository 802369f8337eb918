"""What type checkers infer of every function of `flow_core.operators`; checked, never run."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import assert_type

import flow_core as flow
from flow_core import (
    CoreSubscriber,
    Flow,
    Notification,
    OnComplete,
    OnNext,
    SingleSink,
    Stage,
    Template,
)
from flow_core import (
    operators as op,
)


class Animal:
    name = "animal"


class Cat(Animal):
    lives = 9


class Opaque:
    """Neither compared nor added."""


def transforming(ints: Flow[int], words: Flow[str]) -> None:
    assert_type(ints.pipe(op.map(lambda n: n / 2)), Flow[float])
    assert_type(words.pipe(op.map(len)), Flow[int])
    assert_type(words.pipe(op.map(lambda word: word.split())), Flow[list[str]])
    assert_type(words.pipe(op.map_optional({"a": 1}.get)), Flow[int])
    assert_type(ints.pipe(op.map_optional(lambda n: str(n) if n else None)), Flow[str])
    assert_type(words.pipe(op.map_indexed(lambda word, index: word.upper() * index)), Flow[str])
    assert_type(words.pipe(op.flat_map_iterable(lambda word: word.split())), Flow[str])
    assert_type(ints.pipe(op.flat_map_iterable(flow.range)), Flow[int])

    def numbers(word: str, sink: SingleSink[int]) -> None:
        sink.next(int(word))

    assert_type(words.pipe(op.handle(numbers)), Flow[int])
    assert_type(flow.just(Animal()).pipe(op.cast(Cat)), Flow[Cat])
    assert_type(ints.pipe(op.scan(lambda total, n: total + n)), Flow[int])
    assert_type(ints.pipe(op.scan(lambda text, n: text + str(n), "")), Flow[str])
    assert_type(ints.pipe(op.scan(lambda total, n: total + n / 2, 0.0)), Flow[float])
    assert_type(ints.pipe(op.pairwise()), Flow[tuple[int, int]])
    assert_type(ints.pipe(op.buffer_with_count(2)), Flow[list[int]])
    assert_type(ints.pipe(op.buffer_with_count(3, 1)), Flow[list[int]])
    assert_type(words.pipe(op.buffer_until(lambda word: word.endswith("."))), Flow[list[str]])
    assert_type(
        words.pipe(op.buffer_until(lambda word: word.isdigit(), cut_before=True)), Flow[list[str]]
    )
    assert_type(words.pipe(op.buffer_while(lambda word: word.isalpha())), Flow[list[str]])
    assert_type(words.pipe(op.buffer_split(lambda word: word.isspace())), Flow[list[str]])
    assert_type(words.pipe(op.buffer_until_changed()), Flow[list[str]])
    assert_type(words.pipe(op.buffer_until_changed(lambda word: len(word))), Flow[list[str]])
    assert_type(
        words.pipe(
            op.buffer_until_changed(lambda word: len(word), lambda a, b: a.bit_count() == b)
        ),
        Flow[list[str]],
    )


def filtering(ints: Flow[int], words: Flow[str]) -> None:
    assert_type(words.pipe(op.filter(lambda word: word.isdigit())), Flow[str])
    assert_type(words.pipe(op.filter_indexed(lambda word, index: word[index])), Flow[str])
    assert_type(flow.just(1, "a").pipe(op.of_type(int)), Flow[int])
    assert_type(
        flow.just(Animal()).pipe(op.of_type(Cat)).pipe(op.map(lambda cat: cat.lives)), Flow[int]
    )
    assert_type(words.pipe(op.ignore_elements()), Flow[str])
    assert_type(words.pipe(op.take(1)), Flow[str])
    assert_type(words.pipe(op.take_last(1)), Flow[str])
    assert_type(words.pipe(op.take_while(lambda word: word.isdigit())), Flow[str])
    assert_type(words.pipe(op.take_until(lambda word: word.isdigit())), Flow[str])
    assert_type(words.pipe(op.skip(1)), Flow[str])
    assert_type(words.pipe(op.skip_last(1)), Flow[str])
    assert_type(words.pipe(op.skip_while(lambda word: word.isdigit())), Flow[str])
    assert_type(words.pipe(op.slice(1, None, 2)), Flow[str])
    assert_type(words.pipe(op.element_at(1)), Flow[str])
    assert_type(words.pipe(op.element_at_or_default(1, "")), Flow[str])
    assert_type(words.pipe(op.element_at_or_default(1, 0)), Flow[str | int])
    assert_type(words.pipe(op.first_or_error()), Flow[str])
    assert_type(words.pipe(op.first_or_default("")), Flow[str])
    assert_type(words.pipe(op.first_or_default(0)), Flow[str | int])
    assert_type(words.pipe(op.last_or_error()), Flow[str])
    assert_type(words.pipe(op.last_or_default("")), Flow[str])
    assert_type(words.pipe(op.last_or_default(0)), Flow[str | int])
    assert_type(words.pipe(op.single_or_error()), Flow[str])
    assert_type(words.pipe(op.single_or_default("")), Flow[str])
    assert_type(words.pipe(op.single_or_default(0)), Flow[str | int])
    assert_type(words.pipe(op.distinct()), Flow[str])
    assert_type(words.pipe(op.distinct(lambda word: word.lower())), Flow[str])
    assert_type(words.pipe(op.distinct_until_changed()), Flow[str])
    assert_type(words.pipe(op.distinct_until_changed(lambda word: word.lower())), Flow[str])
    assert_type(
        ints.pipe(op.distinct_until_changed(lambda n: str(n), lambda a, b: a.lower() == b)),
        Flow[int],
    )
    assert_type(
        ints.pipe(op.distinct_until_changed(same=lambda a, b: a.bit_count() == b)), Flow[int]
    )


def aggregating(ints: Flow[int], words: Flow[str], floats: Flow[float]) -> None:
    assert_type(ints.pipe(op.reduce(lambda total, n: total + n)), Flow[int])
    assert_type(ints.pipe(op.reduce(lambda total, n: total + n / 2, 0.0)), Flow[float])
    assert_type(ints.pipe(op.collect(list[int], lambda items, n: items.append(n))), Flow[list[int]])
    assert_type(words.pipe(op.collect(set[str], lambda seen, word: seen.add(word))), Flow[set[str]])
    assert_type(words.pipe(op.to_list()), Flow[list[str]])
    assert_type(words.pipe(op.to_set()), Flow[set[str]])
    assert_type(words.pipe(op.to_dict(lambda word: len(word))), Flow[dict[int, str]])
    assert_type(words.pipe(op.to_dict(len, lambda word: word.encode())), Flow[dict[int, bytes]])
    assert_type(words.pipe(op.reduce_by_key(len, min)), Flow[tuple[int, str]])
    assert_type(
        words.pipe(op.reduce_by_key(lambda word: word[0], int.__add__, len)),
        Flow[tuple[str, int]],
    )
    assert_type(words.pipe(op.count_by_key(lambda word: word[0])), Flow[tuple[str, int]])
    assert_type(words.pipe(op.to_multidict(lambda word: len(word))), Flow[dict[int, list[str]]])
    assert_type(
        words.pipe(op.to_multidict(len, lambda word: word.encode())), Flow[dict[int, list[bytes]]]
    )
    assert_type(words.pipe(op.count()), Flow[int])
    assert_type(ints.pipe(op.sum()), Flow[int])
    assert_type(floats.pipe(op.sum()), Flow[float])
    assert_type(words.pipe(op.sum("")), Flow[str])
    assert_type(flow.just([1]).pipe(op.sum([2])), Flow[list[int]])
    assert_type(ints.pipe(op.average()), Flow[float])
    assert_type(words.pipe(op.min()), Flow[str])
    assert_type(words.pipe(op.min(lambda word: len(word))), Flow[str])
    assert_type(flow.just(Opaque()).pipe(op.min(id)), Flow[Opaque])
    assert_type(words.pipe(op.max()), Flow[str])
    assert_type(words.pipe(op.max(lambda word: len(word))), Flow[str])
    assert_type(words.pipe(op.sort()), Flow[str])
    assert_type(words.pipe(op.sort(reverse=True)), Flow[str])
    assert_type(words.pipe(op.sort(lambda word: word.lower(), reverse=True)), Flow[str])
    assert_type(words.pipe(op.all(lambda word: word.isdigit())), Flow[bool])
    assert_type(words.pipe(op.some(lambda word: word.isdigit())), Flow[bool])
    assert_type(words.pipe(op.is_empty()), Flow[bool])
    assert_type(words.pipe(op.contains("a")), Flow[bool])


def combining(ints: Flow[int], words: Flow[str]) -> None:
    assert_type(words.pipe(op.start_with("a", "b")), Flow[str])
    assert_type(words.pipe(op.start_with(0)), Flow[str | int])
    assert_type(words.pipe(op.end_with("a")), Flow[str])
    assert_type(words.pipe(op.end_with(0)), Flow[str | int])
    assert_type(words.pipe(op.default_if_empty("a")), Flow[str])
    assert_type(words.pipe(op.default_if_empty(0)), Flow[str | int])
    assert_type(words.pipe(op.zip_with_iterable([1])), Flow[tuple[str, int]])
    assert_type(words.pipe(op.zip_with_iterable(ints, lambda word, n: word.upper() * n)), Flow[str])


def recovering(words: Flow[str]) -> None:
    assert_type(words.pipe(op.on_error_return("a")), Flow[str])
    assert_type(words.pipe(op.on_error_return(0, KeyError)), Flow[str | int])
    assert_type(words.pipe(op.on_error_return("a", lambda error: error.args)), Flow[str])
    assert_type(words.pipe(op.on_error_complete()), Flow[str])
    assert_type(words.pipe(op.on_error_complete((KeyError, ValueError))), Flow[str])
    assert_type(words.pipe(op.on_error_map(lambda error: ValueError(error.args))), Flow[str])
    assert_type(
        words.pipe(op.on_error_map(lambda error: ValueError(error.args), KeyError)), Flow[str]
    )
    assert_type(words.pipe(op.materialize()), Flow[Notification[str]])
    assert_type(words.pipe(op.materialize()).pipe(op.dematerialize()), Flow[str])
    signals: Flow[Notification[int]] = flow.just(OnNext(1), OnComplete())
    assert_type(signals.pipe(op.dematerialize()), Flow[int])


def observing(words: Flow[str]) -> None:
    assert_type(words.pipe(op.do_on_next(lambda word: print(word.upper()))), Flow[str])
    assert_type(words.pipe(op.do_after_next(lambda word: print(word.upper()))), Flow[str])
    assert_type(words.pipe(op.do_on_subscribe(lambda: print())), Flow[str])
    assert_type(words.pipe(op.do_on_request(lambda n: print(n.bit_count()))), Flow[str])
    assert_type(words.pipe(op.do_on_complete(lambda: print())), Flow[str])
    assert_type(words.pipe(op.do_on_error(lambda error: print(error.args))), Flow[str])
    assert_type(words.pipe(op.do_on_terminate(lambda: print())), Flow[str])
    assert_type(words.pipe(op.do_after_terminate(lambda: print())), Flow[str])
    assert_type(words.pipe(op.do_on_cancel(lambda: print())), Flow[str])
    assert_type(words.pipe(op.finally_action(lambda: print())), Flow[str])
    assert_type(
        words.pipe(
            op.do_action(
                lambda word: print(word.upper()),
                lambda error: print(error.args),
                on_cancel=lambda: print(),
            )
        ),
        Flow[str],
    )
    assert_type(words.pipe(op.tap(lambda word: print(word.upper()))), Flow[str])
    assert_type(words.pipe(op.log("words", logger="app", level=logging.DEBUG)), Flow[str])
    assert_type(words.pipe(op.checkpoint("words")), Flow[str])
    assert_type(words.pipe(op.name("words")), Flow[str])
    assert_type(words.pipe(op.tag("team", "orders")), Flow[str])
    assert_type(words.pipe(op.hide()), Flow[str])


def linking(words: Flow[str], user: ContextVar[str]) -> None:
    def lengths(downstream: CoreSubscriber[int]) -> CoreSubscriber[str]:
        raise NotImplementedError(downstream)

    assert_type(words.pipe(op.lift("lengths", lengths)), Flow[int])
    assert_type(words.pipe(op.serialize(prefetch=8)), Flow[str])
    assert_type(words.pipe(op.context_capture()), Flow[str])
    assert_type(words.pipe(op.context_write(user, "Ada")), Flow[str])
    assert_type(words.pipe(op.context_write({user: "Ada"})), Flow[str])
    upper: Stage[str, bytes] = Stage(Template("upper"))
    assert_type(words.pipe(op.stage(upper)), Flow[bytes])


def chained() -> None:
    assert_type(
        flow.range(10)
        .pipe(op.filter(lambda n: n % 2 == 0))
        .pipe(op.map(lambda n: str(n)))
        .pipe(op.zip_with_iterable([1.5]))
        .pipe(op.map(lambda pair: (pair[0].upper(), pair[1].hex())))
        .pipe(op.on_error_return(("", "")))
        .pipe(op.to_dict(lambda pair: pair[0], lambda pair: len(pair[1]))),
        Flow[dict[str, int]],
    )


def mistakes(ints: Flow[int], words: Flow[str], objects: Flow[Opaque]) -> None:
    ints.pipe(op.map(lambda n: n.upper()))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownLambdaType, reportUnknownMemberType] - ints have no upper
    ints.pipe(op.filter(lambda n: n.upper()))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - ints have no upper
    ints.pipe(op.map_indexed(lambda n, index: n + index.upper()))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownLambdaType, reportUnknownMemberType] - an index is an int
    ints.pipe(op.do_on_next(lambda n: n.upper()))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - ints have no upper
    words.pipe(op.flat_map_iterable(lambda word: len(word)))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportUnknownArgumentType] - an int is no iterable
    ints.pipe(op.scan(lambda text, n: text + n, ""))  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownLambdaType] - a text and an int
    ints.pipe(op.reduce(lambda text, n: text + n, ""))  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownLambdaType] - a text and an int
    ints.pipe(op.collect(list[int], lambda items, n: items.append(str(n))))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a list of ints
    ints.pipe(op.distinct_until_changed(lambda n: str(n), lambda a, b: a.bit_count() == b))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - the keys are texts
    ints.pipe(op.distinct_until_changed(same=lambda a, b: a.upper() == b))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - without a key ints are compared
    ints.pipe(op.zip_with_iterable([""], lambda n, word: n + word))  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType, reportUnknownLambdaType] - an int and a text
    op.take("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a count is an int
    op.of_type(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - no class
    op.to_dict(1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType] - no function
    words.pipe(op.sum())  # type: ignore[arg-type]  # pyright: ignore[reportUnknownArgumentType] - texts need a start
    words.pipe(op.average())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - texts have no mean
    objects.pipe(op.min())  # type: ignore[arg-type]  # pyright: ignore[reportUnknownArgumentType] - they cannot be compared
    objects.pipe(op.max())  # type: ignore[arg-type]  # pyright: ignore[reportUnknownArgumentType] - they cannot be compared
    objects.pipe(op.sort())  # type: ignore[arg-type]  # pyright: ignore[reportUnknownArgumentType] - they cannot be compared
    objects.pipe(op.sort(lambda opaque: opaque))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportUnknownArgumentType] - the keys cannot be compared
    ints.pipe(op.dematerialize())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - ints are no notifications
    op.zip_with_iterable(1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType] - no iterable
    op.on_error_return(1, "KeyError")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - no class and no function
    op.on_error_map(lambda error: str(error))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType] - a text is no error
    op.do_on_request(lambda: None)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType] - it gets the amount
    op.do_on_complete(lambda n: None)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType, reportUnknownLambdaType] - it gets nothing
    op.context_write(1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType] - no variable
    op.lift("ints", lambda downstream: 1)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType] - an int is no subscriber
    ints.pipe(op.stage(Stage[str, str](Template("upper"))))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a stage for texts
