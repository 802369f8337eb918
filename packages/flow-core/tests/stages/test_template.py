"""A stage of one's own: what a template may say, and what its mistakes are answered with."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

import pytest

import flow_core as flow
from flow_core import UNSET, Flow, FlowError, Operator, Stage, Template, operators
from flow_core.stages import TemplateError
from flow_testing import TestSubscriber, assert_result

T = TypeVar("T")

# A stage in ten lines, as a third party writes it.
EVERY = Template(
    "every",
    params=("n",),
    state="i = 0",
    on_item="""
    i += 1
    if i % n == 0:
        EMIT
    """,
    ordered=True,
)


def every(n: int) -> Operator[T, Flow[T]]:
    return operators.stage(Stage(EVERY, n))


def made(template: Template, *args: object, items: range = range(6)) -> Flow[Any]:
    return flow.from_iterable(items).pipe(Stage(template, *args))


def test_a_users_stage_has_the_rights_of_the_built_in_ones() -> None:
    assert_result(lambda: flow.range(10).pipe(every(3)), [2, 5, 8])
    assert_result(lambda: flow.range(10).pipe(Stage(EVERY, 3)), [2, 5, 8])
    assert_result(
        lambda: flow.range(30).map(lambda n: n + 1).pipe(every(3)).pipe(every(2)).take(4),
        [6, 12, 18, 24],
    )
    assert repr(flow.range(10).pipe(every(3))) == "range(0, 10) | every(n=3)"


def test_a_template_reveals_its_properties() -> None:
    def shape(template: Template) -> set[str]:
        names = ("drops", "expands", "absorbs", "emits_at_end", "stops", "calls_user_code")
        return {name for name in names if getattr(template, name)}

    assert shape(Template("same")) == set()
    assert shape(EVERY) == {"drops"}
    assert shape(Template("map", params=("f",), on_item="x = f(x)\nEMIT")) == {"calls_user_code"}
    assert shape(Template("made", params=("f",), state="y = f()")) == {"calls_user_code"}
    assert shape(Template("method", params=("o",), on_item="x = o.name(x)\nEMIT")) == {
        "calls_user_code"
    }
    assert shape(Template("twice", on_item="for _ in (1, 2):\n    EMIT")) == {"expands", "drops"}
    assert shape(Template("last", state="y = UNSET", on_item="y = x", on_end="x = y\nEMIT")) == {
        "absorbs",
        "drops",
        "emits_at_end",
    }
    assert shape(Template("one", on_item="EMIT\nSTOP")) == {"stops"}


def test_a_stage_that_lets_nothing_through() -> None:
    for text in ("", "pass", "_ = x"):
        ignore = Template("ignore", on_item=text)
        assert_result(lambda ignore=ignore: made(ignore), [])
        assert_result(lambda ignore=ignore: made(ignore).count(), [0])
        assert_result(lambda ignore=ignore: flow.range(6).filter(bool).pipe(Stage(ignore)), [])
        assert_result(lambda ignore=ignore: made(ignore).flat_map_iterable(range).take(2), [])


def test_a_stage_that_emits_more_at_the_end() -> None:
    then = Template("then", params=("items",), on_end="for x in items:\n    NOT_NONE\n    EMIT")
    for stages, rest in (
        (lambda f: f, ["a", "b", "c"]),
        (lambda f: f.take(5), ["a", "b"]),
        (lambda f: f.pipe(Stage(then, "de")), ["a", "b", "c", "d", "e"]),
        (lambda f: f.pipe(Stage(then, "de")).take(7), ["a", "b", "c", "d"]),
        (lambda f: f.flat_map_iterable(lambda x: [x]).take(5), ["a", "b"]),
    ):
        assert_result(
            lambda stages=stages: stages(flow.range(3).pipe(Stage(then, "abc"))), [0, 1, 2, *rest]
        )
    assert_result(lambda: flow.range(9).take(3).pipe(Stage(then, "ab")).take(4), [0, 1, 2, "a"])


def test_a_stage_that_stops_itself_still_emits_its_rest() -> None:
    head = Template(
        "head",
        params=("count",),
        state="kept = []",
        on_item="""
        kept.append(x)
        if len(kept) == count:
            STOP
        """,
        on_end="""
        for x in kept:
            EMIT
        """,
    )
    assert_result(lambda: made(head, 3), [0, 1, 2])
    assert_result(lambda: made(head, 9), [0, 1, 2, 3, 4, 5])
    assert_result(lambda: made(head, 4).take(2), [0, 1])
    assert_result(lambda: made(head, 4).take(9), [0, 1, 2, 3])
    assert_result(
        lambda: made(head, 4).flat_map_iterable(lambda n: [n, n]).take(5), [0, 0, 1, 1, 2]
    )
    assert_result(lambda: flow.range(9).take(5).pipe(Stage(head, 4)).take(9), [0, 1, 2, 3])
    assert_result(lambda: flow.range(9).take(2).pipe(Stage(head, 4)).take(9), [0, 1])


def test_a_stop_in_a_loop_leaves_all_loops() -> None:
    until = Template(
        "until",
        params=("last",),
        on_item="""
        for i in range(3):
            x = (x, i) if i == 0 else (x[0], i)
            EMIT
            if x == last:
                STOP
        """,
    )
    expected = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert_result(lambda: made(until, (1, 1)), expected)
    assert_result(lambda: made(until, (1, 1)).buffer_with_count(9), [expected])
    assert_result(
        lambda: made(until, (1, 1)).flat_map_iterable(lambda pair: [pair]).take(9), expected
    )


def test_branches_and_loops_around_emit() -> None:
    branches = Template(
        "branches",
        on_item="""
        if x == 0:
            x = "zero"
        elif x % 2:
            x = "odd"
        else:
            x = "even"
        if x != "zero":
            EMIT
        else:
            pass
        """,
    )
    assert_result(lambda: made(branches), ["odd", "even", "odd", "even", "odd"])
    nested = Template(
        "nested",
        on_item="""
        for a in range(2):
            for b in range(2):
                if a or b:
                    y = x
                    x = (x, a, b)
                    EMIT
                    x = y
        """,
    )
    assert_result(
        lambda: made(nested, items=range(2)),
        [(0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1)],
    )


@pytest.mark.slow
def test_names_of_a_template_are_its_own() -> None:
    """Whatever the generated function calls its own variables, and in any number."""
    names = ["it", "it0", "n", "stop", "gate", "close", "args", "stages", "on_next", "mapper", "_"]
    for name in names:
        counting = Template(
            "counting",
            params=(name,),
            state=f"{name}0 = 0\n{name}_1 = 0",
            on_item=f"for y in [x]:\n    {name}0 += {name}\n    x = y + {name}0\n    EMIT",
        )
        assert_result(lambda counting=counting: made(counting, 10), [10, 21, 32, 43, 54, 65])
        assert_result(
            lambda counting=counting: made(counting, 10).pipe(Stage(counting, 1)).map(lambda n: n),
            [11, 23, 35, 47, 59, 71],
        )


def test_each_subscriber_has_a_separate_state() -> None:
    counted = flow.range(4).pipe(every(2))
    first, second = iter(counted), iter(counted)
    assert [next(first), next(second), next(first), next(second)] == [1, 1, 3, 3]


def test_unset_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(UNSET)) is UNSET
    assert repr(UNSET) == "UNSET"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"on_item": "x ="}, "not Python"),
        ({"on_item": "EMIT\nEMIT"}, "more than one EMIT"),
        ({"on_end": "EMIT\nEMIT"}, "more than one EMIT"),
        ({"on_item": "while True:\n    EMIT"}, "While"),
        ({"on_item": "try:\n    EMIT\nfinally:\n    pass"}, "Try"),
        ({"on_item": "with x:\n    EMIT"}, "With"),
        ({"on_item": "match x:\n    case 1:\n        EMIT"}, "Match"),
        ({"on_item": "def f(): pass"}, "FunctionDef"),
        ({"on_item": "class C: pass"}, "ClassDef"),
        ({"on_item": "import os"}, "Import"),
        ({"on_item": "global y"}, "Global"),
        ({"on_item": "for y in x:\n    break"}, "Break"),
        ({"on_item": "for y in x:\n    continue"}, "Continue"),
        ({"on_item": "for y in x:\n    EMIT\nelse:\n    pass"}, "no else on a loop"),
        ({"on_item": "return"}, "Return"),
        ({"on_item": "yield x"}, "Yield"),
        ({"on_item": "x = lambda: 1"}, "Lambda"),
        ({"on_item": "x = missing(x)\nEMIT"}, "'missing'"),
        ({"on_item": "x = EMIT"}, "EMIT"),
        ({"on_item": "EMIT = 1"}, "EMIT"),
        ({"on_item": "x = STOP + 1"}, "STOP"),
        ({"state": "EMIT"}, "EMIT"),
        ({"state": "STOP"}, "STOP"),
        ({"state": "NOT_NONE"}, "NOT_NONE"),
        ({"on_end": "STOP"}, "STOP"),
        ({"params": ("x",)}, "'x'"),
        ({"params": ("EMIT",)}, "'EMIT'"),
        ({"params": ("len",)}, "'len'"),
        ({"params": ("not a name",)}, "'not a name'"),
        ({"params": ("class",)}, "'class'"),
        ({"at_most": "count"}, "'count'"),
    ],
)
def test_a_mistake_in_a_template_is_reported_when_a_stage_is_made_of_it(
    texts: Any, message: str
) -> None:
    template = Template("mistaken", **texts)
    with pytest.raises(TemplateError, match=message) as raised:
        Stage(template, *template.params)
    assert "mistaken" in str(raised.value)
    assert isinstance(raised.value, FlowError)


@pytest.mark.parametrize("args", [(), (1, 2)])
def test_a_stage_needs_the_arguments_of_its_template(args: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match=r"'every' takes 1 arguments \(n\)"):
        Stage(EVERY, *args)


def test_equal_templates_are_interchangeable() -> None:
    again = pickle.loads(pickle.dumps(EVERY))
    assert again == EVERY
    assert pickle.loads(pickle.dumps(EVERY)) is again
    assert list(flow.range(10).pipe(Stage(again, 4))) == [3, 7]


def test_a_stage_that_is_named_like_a_built_in_one_is_not_taken_for_it() -> None:
    for name in ("take", "source"):
        double = Template(name, params=("count",), on_item="for _ in range(count):\n    EMIT")
        assert_result(lambda double=double: made(double, 2, items=range(3)), [0, 0, 1, 1, 2, 2])
        plain = Template(name, params=("count",), on_item="EMIT")
        assert_result(lambda plain=plain: made(plain, 1, items=range(3)), [0, 1, 2])


# -- the texts around the loop


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"state": "NOT_NONE"}, "NOT_NONE"),
        ({"on_close": "EMIT"}, "EMIT"),
        ({"on_close": "STOP"}, "STOP"),
        ({"on_close": "NOT_NONE"}, "NOT_NONE"),
        ({"on_start": "EMIT\nEMIT"}, "more than one EMIT"),
        ({"on_error": "EMIT\nEMIT"}, "more than one EMIT"),
        ({"on_start": "x = EMIT"}, "EMIT"),
        ({"on_error": "x = STOP"}, "STOP"),
        ({"on_start": "while True: pass"}, "While"),
        ({"on_close": "try:\n    pass\nfinally:\n    pass"}, "Try"),
        ({"on_close": "return"}, "Return"),
        ({"on_error": "x = 1\nraise ="}, "on_error of .* is not Python: .*, in its line 2"),
        ({"on_start": "missing()"}, "'missing'"),
        ({"on_close": "missing()"}, "'missing'"),
        ({"on_item": "x = error\nEMIT"}, "'error'"),
        ({"on_start": "x = error"}, "'error'"),
        ({"on_end": "x = error\nEMIT"}, "'error'"),
        ({"on_close": "x = error"}, "'error'"),
        ({"state": "y = error"}, "'error'"),
        ({"on_item": "error = 1"}, "'error'"),
        ({"params": ("error",)}, "'error'"),
        ({"params": ("f",), "on_error": "f(erorr)"}, "'erorr'"),
    ],
)
def test_a_mistake_in_the_other_texts_is_reported_when_a_stage_is_made_of_them(
    texts: Any, message: str
) -> None:
    template = Template("mistaken", **texts)
    with pytest.raises(TemplateError, match=message) as raised:
        Stage(template, *template.params)
    assert "mistaken" in str(raised.value)


def test_the_other_texts_reveal_the_properties_of_a_template() -> None:
    def shape(**texts: Any) -> set[str]:
        template = Template("revealing", **texts)
        names = (
            *("drops", "expands", "absorbs", "emits_at_start", "emits_at_end"),
            *("recovers", "stops", "calls_user_code"),
        )
        return {name for name in names if getattr(template, name)}

    assert shape(on_start="pass") == set()
    assert shape(on_start="x = 1\nEMIT") == {"emits_at_start"}
    assert shape(on_start="STOP") == {"stops"}
    assert shape(on_item="pass", on_start="x = 1\nEMIT") == {"drops", "emits_at_start"}
    assert shape(on_error="STOP") == {"recovers"}
    assert shape(on_error="x = 1\nEMIT\nSTOP") == {"emits_at_end", "recovers"}
    assert shape(on_error="x = 1\nEMIT") == {"emits_at_end"}
    for text in ("on_start", "on_end", "on_error", "on_close", "state"):
        assert shape(params=("f",), **{text: "f()"}) == {"calls_user_code"}
        assert shape(params=("f",), **{text: "y = f"}) == set()


# -- helpers


def plus(n: int, m: int) -> int:
    return n + m


def applied(function: Any, item: Any) -> Any:
    return function(item)


class Kept:
    """A class as a helper."""

    def __init__(self) -> None:
        self.items: list[Any] = []


PLUS = Template("plus", params=("m",), on_item="x = plus(x, m)\nEMIT", helpers=(plus,))


def test_helpers_are_called_by_their_names_in_any_text() -> None:
    assert_result(lambda: made(PLUS, 5), [5, 6, 7, 8, 9, 10])
    assert_result(lambda: made(PLUS, 5).pipe(Stage(PLUS, 1)).take(1), [6])
    kept = Template(
        "kept",
        state="kept = Kept()",
        on_item="kept.items.append(x)",
        on_end="x = kept.items\nEMIT",
        helpers=(Kept,),
    )
    assert_result(lambda: made(kept), [[0, 1, 2, 3, 4, 5]])


def test_two_templates_may_have_different_helpers_of_one_name() -> None:
    def plus(n: int, m: int) -> int:
        return n * m

    times = Template("times", params=("m",), on_item="x = plus(x, m)\nEMIT", helpers=(plus,))
    assert_result(lambda: made(PLUS, 1).pipe(Stage(times, 2)), [2, 4, 6, 8, 10, 12])


def test_helpers_are_pickled_by_reference_and_the_template_stays_one() -> None:
    copy = pickle.loads(pickle.dumps(PLUS))
    assert copy.helpers == (plus,)
    assert copy.helpers[0] is plus
    assert copy == PLUS
    assert pickle.loads(pickle.dumps(Stage(PLUS, 3))).template is copy
    assert list(flow.range(2).pipe(pickle.loads(pickle.dumps(Stage(PLUS, 3))))) == [3, 4]
    assert b"plus" in pickle.dumps(PLUS)


def test_a_function_that_a_helper_is_handed_counts_as_called() -> None:
    """It runs user code, which must not change thread (F39)."""
    handing = Template(
        "handing", params=("f",), on_item="x = applied(f, x)\nEMIT", helpers=(applied,)
    )
    assert handing.calls_user_code
    fixed = Template("fixed", on_item="x = applied(str, x)\nEMIT", helpers=(applied,))
    assert not fixed.calls_user_code


@pytest.mark.checklist("F39")
@pytest.mark.parametrize(
    "text",
    [
        "x = applied(function=f, item=x)\nEMIT",
        "x = sorted(x, key=f)\nEMIT",
        "x = list(map(f, x))\nEMIT",
        "x = max(x, key=f)\nEMIT",
    ],
)
def test_a_function_that_is_handed_on_in_any_way_counts_as_called(text: str) -> None:
    assert Template("handing", params=("f",), on_item=text, helpers=(applied,)).calls_user_code


@pytest.mark.parametrize(
    ("helpers", "texts"),
    [
        ((lambda: 1,), {}),
        ((plus,), {"params": ("plus",)}),
        ((plus,), {"state": "plus = 1"}),
        ((plus,), {"on_close": "plus = 1"}),
        ((plus, plus), {}),
        ((3,), {}),
    ],
)
def test_an_invalid_helper_is_refused(helpers: Any, texts: Any) -> None:
    template = Template("mistaken", helpers=helpers, **texts)
    with pytest.raises(TemplateError, match="mistaken"):
        Stage(template, *template.params)


def test_a_helper_of_a_reserved_name_is_refused() -> None:
    for name in ("x", "error", "EMIT", "STOP", "UNSET"):

        def helper() -> None: ...

        helper.__name__ = name
        with pytest.raises(TemplateError, match="mistaken"):
            Stage(Template("mistaken", helpers=(helper,)))


# -- names


def test_names_of_the_other_texts_are_the_stages_own() -> None:
    names = ["it", "n", "stop", "at", "gate", "close", "failure", "closers", "handler", "caught"]
    for name in names:
        seen: list[Any] = []
        own = Template(
            "own",
            params=("tell",),
            state=f"{name} = 1\n{name}_0 = 5",
            on_start=f"for {name}1 in range(2):\n    x = {name}1\n    EMIT",
            on_item=f"{name} += 1\nEMIT",
            on_end=f"x = {name}\nEMIT",
            on_error=f"tell({name}, error)",
            on_close=f"{name} += {name}_0\ntell({name})",
        )
        tell: Any = lambda *values, seen=seen: seen.append(values[0])  # noqa: E731 - a closure
        both = made(own, tell, items=range(2)).pipe(Stage(own, tell))
        assert list(both) == [0, 1, 0, 1, 0, 1, 3, 6]
        assert seen == [11, 8]
        seen.clear()
        both.subscribe(TestSubscriber[Any]())
        assert seen == [11, 8]


def test_a_name_that_only_one_text_knows_may_be_used_by_a_later_one() -> None:
    """Whatever is assigned anywhere is private to the stage, and lives as long as it."""
    carried = Template(
        "carried",
        params=("tell",),
        on_item="last = x\nEMIT",
        on_close="tell(last)",
    )
    seen: list[int] = []
    assert list(made(carried, seen.append)) == [0, 1, 2, 3, 4, 5]
    assert seen == [5]


def test_texts_with_newlines_in_strings_keep_them() -> None:
    text = Template(
        "text", params=("n",), on_item="if x == n:\n    x = 'a\\nb' + f'{x}\\n{n}'\n    EMIT"
    )
    assert_result(lambda: made(text, 3), ["a\nb3\n3"])


# -- nested loops, and stops in them


def test_a_stop_in_nested_loops_of_on_error_leaves_them_all_and_completes() -> None:
    error = KeyError(1)

    def failing() -> Flow[int]:
        return flow.just(0, 1).map(lambda n: n if n == 0 else {}[n])

    grid = Template(
        "grid",
        params=("limit",),
        on_error="""
        left = limit
        for a in range(3):
            for b in range(3):
                if a != b:
                    x = (a, b)
                    EMIT
                left -= 1
                if left == 0:
                    STOP
        """,
    )
    pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert_result(lambda: failing().pipe(Stage(grid, 9)), [0, *pairs])
    assert_result(lambda: failing().pipe(Stage(grid, 5)), [0, *pairs[:3]])
    assert_result(lambda: failing().pipe(Stage(grid, 5)).end_with(9), [0, *pairs[:3], 9])
    assert_result(lambda: failing().pipe(Stage(grid, 9)).take(3), [0, *pairs[:2]])
    assert_result(lambda: failing().pipe(Stage(grid, 99)), [0, *pairs], KeyError)
    assert_result(
        lambda: failing().pipe(Stage(grid, 99)).skip(1).flat_map_iterable(lambda p: p).take(3),
        [0, 1, 0],
    )
    assert_result(lambda: flow.error(error).pipe(Stage(grid, 99)).count(), [], error)
    assert_result(lambda: flow.error(error).pipe(Stage(grid, 5)).count(), [3])


async def awaited(n: int) -> int:
    return n


@pytest.mark.parametrize("name", ["map", "filter", "do_on_next", "take_while", "reduce"])
def test_a_coroutine_function_is_refused_since_nothing_would_await_it(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}\(\) .* awaited is a coroutine function"):
        getattr(flow.range(3), name)(awaited)


def test_a_lambda_around_a_coroutine_function_gives_the_coroutines() -> None:
    (made,) = flow.just(7).map(lambda n: awaited(n))
    with pytest.raises(StopIteration) as stop:
        made.send(None)
    assert stop.value.value == 7
