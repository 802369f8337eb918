"""Programs: one loop for a run of stages, in parts where Python's limits ask for it; pickles."""

from __future__ import annotations

import functools
import gc
import linecache
import pickle
import re
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cloudpickle
import pytest

import flow_core as flow
from flow_core import Flow, Stage, Template
from flow_core.stages import Form, Program, generated_source
from flow_core.stages import _shape as shapes
from flow_core.stages._shape import ROOT, Node
from flow_core.structure import stages_of
from flow_testing import STAGE_CASES, TIMEOUT_S, StageCase, assert_result
from flow_testing.interleave import Scenario, explore_all

each_case = pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)


def doubled(n: int) -> int:
    return 2 * n


def is_big(n: int) -> bool:
    return n > 10


def summed(a: int, b: int) -> int:
    return a + b


def program(made: Flow[Any]) -> Program[Any, Any]:
    return Program(stages_of(made))


# -- long flows


def chained(count: int, add: Any) -> Flow[int]:
    made: Flow[int] = flow.range(3)
    for _ in range(count):
        made = add(made)
    return made


@pytest.mark.many
@pytest.mark.parametrize(
    ("count", "add", "expected"),
    [
        (2100, lambda f: f.map(lambda n: n + 1), [2100, 2101, 2102]),
        (1000, lambda f: f.filter(lambda n: n >= 0), [0, 1, 2]),
        (300, lambda f: f.take(3), [0, 1, 2]),
        (300, lambda f: f.skip_while(lambda n: n < 1).take_while(lambda n: n < 2), [1]),
        (200, lambda f: f.flat_map_iterable(lambda n: [n]), [0, 1, 2]),
        (100, lambda f: f.buffer_with_count(1).map(lambda items: items[0]), [0, 1, 2]),
        (100, lambda f: f.reduce(summed), [3]),
        (100, lambda f: f.to_list().flat_map_iterable(lambda items: items), [0, 1, 2]),
        (100, lambda f: f.flat_map_iterable(lambda n: [n, n]).take(3).distinct(), [0, 1]),
        (50, lambda f: f.hide().map(lambda n: n), [0, 1, 2]),
    ],
    ids=[
        "maps",
        "filters",
        "takes",
        "whiles",
        "flat maps",
        "buffers",
        "reduces",
        "lists",
        "expanded and cut",
        "boundaries",
    ],
)
def test_a_long_flow_gives_the_same_in_every_form(count: int, add: Any, expected: Any) -> None:
    made = chained(count, add)
    assert_result(lambda: made, expected)


@pytest.mark.checklist("M02")
@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        (lambda: flow.range(3).start_with(9), [9, 0, 1, 2]),
        (lambda: flow.range(3).do_on_subscribe(lambda: None), [0, 1, 2]),
        (lambda: flow.empty().end_with(9), [9]),
        (lambda: flow.error(KeyError(1)).on_error_return(9), [9]),
        (flow.empty, []),
    ],
    ids=["starts", "looks", "ends", "recovers", "empty"],
)
def test_a_long_flow_sends_nothing_without_demand(begun: Any, expected: Any) -> None:
    def make() -> Flow[int]:
        made: Flow[int] = begun()
        for _ in range(100):
            made = made.filter(lambda _: True)
        return made

    assert len(program(make()).segments) > 1
    assert_result(make, expected)


def test_loops_nest_only_as_deep_as_python_allows() -> None:
    made = chained(200, lambda f: f.flat_map_iterable(lambda n: [n]))
    assert len(program(made).segments) >= 200 // 20
    assert sum(len(part.stages) for part in program(made).segments) == 200
    short = program(flow.range(3).map(doubled))
    assert short.segments == (short,)


def test_one_loop_is_generated_for_flows_of_one_shape() -> None:
    first = flow.range(3).map(lambda n: n + 1).filter(lambda n: n > 1)
    second = flow.range(9).map(str).filter(bool)
    before = generated_source(Form.PULL, program(first))
    assert generated_source(Form.PULL, program(second)) == before
    assert program(first).shape is program(second).shape


def generated(name: str) -> list[str]:
    gc.collect()
    return [file for file in linecache.cache if file.startswith(f"<flow pull: {name}")]


def test_the_number_of_loops_is_bounded_and_running_ones_outlive_it() -> None:
    running = iter(flow.range(3).pipe(Stage(Template("first of many"))))
    assert next(running) == 0
    for index in range(shapes.MAX_SHAPES + 10):
        assert list(flow.range(2).pipe(Stage(Template(f"shape {index}")))) == [0, 1]
    assert len(generated("shape")) <= shapes.MAX_SHAPES
    assert list(running) == [1, 2]


@pytest.mark.slow
def test_the_tree_of_templates_is_bounded_and_flows_outlive_it() -> None:
    first = Template("first of the tree")
    before = ROOT.then(first)
    for index in range(shapes.MAX_NODES + 10):
        before.then(Template(f"grown {index}"))
    assert len(before.after) <= shapes.MAX_NODES
    again = ROOT.then(first)
    assert again is not before, "it has left the tree"
    assert before.shaped().templates == again.shaped().templates == (first,)


def test_long_chains_take_little_of_the_tree() -> None:
    made, template = flow.range(3), Template("one of many")
    before = len(shapes._grown)
    for count in (200, 3000):
        for _ in range(count):
            made = made._then(Stage(template))
        assert program(made).shape.templates == (template,) * len(stages_of(made))
        assert list(made.take(1)) == [0]
    assert len(shapes._grown) < before + 80 or len(shapes._grown) == shapes.MAX_NODES
    first = made.filter(bool)
    assert made.filter(is_big)._node is first._node
    assert [stage.name for stage in stages_of(first)[-2:]] == ["one of many", "filter"]


@pytest.mark.slow
def test_a_template_that_is_no_longer_needed_is_freed() -> None:
    template = Template("freed")
    node = ROOT.then(template).then(template)
    assert node.shaped().templates == (template, template)
    gone = weakref.ref(template)
    del template, node
    for index in range(shapes.MAX_NODES):
        assert ROOT.then(Template(f"later {index}")).shaped().single
    gc.collect()
    assert gone() is None


@pytest.mark.interleave
def test_threads_that_grow_the_tree_at_once_find_the_same_node() -> None:
    def body() -> Scenario:
        template, found = Template("grown by two"), list[Node]()

        def grow() -> None:
            found.append(ROOT.then(template))

        return Scenario(grow, grow, outcome=lambda: len({*map(id, found)}))

    explore_all(body, modules=[shapes], expect={1})


def test_an_error_is_traced_to_its_stage_after_its_loop_has_left_the_cache() -> None:
    made = flow.range(3).pipe(Stage(Template("seldom"))).map(reciprocal)
    kept = program(made)
    assert generated_source(Form.PULL, kept)
    for index in range(shapes.MAX_SHAPES + 10):
        program(flow.range(2).pipe(Stage(Template(f"many {index}"))))
    with pytest.raises(ZeroDivisionError) as raised:
        list(kept.iterate(iter([0])))
    assert raised.value.__notes__[0].startswith("in stage 2 of 2: map(reciprocal)")


def test_threads_may_compile_at_once() -> None:
    def run(index: int) -> list[int]:
        made = flow.range(3)
        for _ in range(index % 7):
            made = made.pipe(Stage(Template(f"by threads {index % 5}")))
        return list(made)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(400), timeout=TIMEOUT_S)) == [[0, 1, 2]] * 400


def test_profilers_and_debuggers_see_the_names_of_the_stages() -> None:
    def caller(n: int) -> str:
        return sys._getframe(1).f_code.co_qualname

    made = flow.range(2).map(caller).filter(bool)
    assert list(made) == ["map|filter"] * 2
    assert list(flow.range(1).map(caller).filter(bool).take(1)) == ["map|filter|take"]
    long = functools.reduce(lambda so_far, _: so_far.filter(bool), range(9), made)
    assert next(iter(long)) == f"map|{'|'.join(['filter'] * 7)}|… 11 stages"


def test_each_line_of_the_generated_source_says_which_stage_it_is_of() -> None:
    source = generated_source(Form.PUSH, program(flow.range(9).map(doubled).filter(is_big)))
    said = dict(re.findall(r" *(.+)  # (.+)", source))
    assert said["x = mapper_0(x)"] == "1 map"
    assert said["if predicate_1(x):"] == "2 filter"
    assert re.search(r"\n +on_next\(x\)\n", source)  # of none


def test_a_subscriber_that_requests_everything_is_served_by_a_loop_without_a_count() -> None:
    made = program(flow.range(9).map(doubled).filter(is_big).buffer_with_count(2))
    assert "n -= 1" in generated_source(Form.PUSH, made)
    assert "n -= 1" not in generated_source(Form.PUSH_ALL, made)
    frames: list[str] = []
    flow.range(1).subscribe(lambda _: frames.append(sys._getframe(1).f_code.co_filename))
    assert frames[0].startswith(f"<flow {Form.PUSH_ALL.value}: ")


def test_a_name_of_several_lines_does_not_break_the_generated_source() -> None:
    assert list(flow.range(2).pipe(Stage(Template("first\nsecond")))) == [0, 1]


def test_the_generated_source_can_be_read() -> None:
    made = flow.range(9).map(doubled).filter(is_big).take(3)
    for form in Form:
        source = generated_source(form, program(made))
        compile(source, form.value, "exec")
        assert "x = mapper_0(x)" in source
        assert "if predicate_1(x):" in source
    assert repr(program(made)) == "map(doubled) | filter(is_big) | take(count=3)"


# -- the remote form


def test_a_program_pickles_as_its_stages() -> None:
    made = flow.range(9).map(doubled).filter(is_big).scan(summed).buffer_with_count(2)
    original = program(made)
    copy: Program[int, Any] = pickle.loads(pickle.dumps(original))
    assert list(copy.iterate(iter(range(9)))) == list(original.iterate(iter(range(9))))
    assert list(copy.iterate(iter(range(9)))) == [[12, 26], [42]]
    assert repr(copy) == repr(original)
    assert [stage.assembled_at for stage in copy.stages] == [
        stage.assembled_at for stage in original.stages
    ]
    assert copy.shape.templates == original.shape.templates
    assert (copy.limit, copy.demand_cap) == (original.limit, original.demand_cap)
    assert pickle.loads(pickle.dumps(copy)).stages[0].template is copy.stages[0].template


def test_the_limit_of_a_take_survives_pickling() -> None:
    original = program(flow.range(9).map(doubled).take(3))
    copy: Program[int, Any] = pickle.loads(pickle.dumps(original))
    assert copy.limit == copy.demand_cap == original.limit == 3


def test_an_error_in_a_pickled_program_names_the_place_of_the_original() -> None:
    made = flow.range(9).map(doubled).map(reciprocal)
    copy: Program[int, Any] = pickle.loads(pickle.dumps(program(made)))
    with pytest.raises(ZeroDivisionError) as raised:
        list(copy.iterate(iter(range(9))))
    (note,) = raised.value.__notes__
    assert note.startswith("in stage 2 of 2: map(reciprocal)")
    assert note.endswith(str(stages_of(made)[1].assembled_at))


def reciprocal(n: int) -> float:
    return 1 / n


@each_case
def test_every_stage_runs_after_pickling_with_its_lambdas(case: StageCase) -> None:
    items = [1, 1, 2, 3, 3, 3, 1, 7, 7]
    made = case.apply(flow.from_iterable(items))
    if not stages_of(made):
        return
    copy = pickle.loads(cloudpickle.dumps(program(made)))
    assert list(copy.iterate(iter(items))) == case.model(items)


def test_a_program_of_no_stage_is_the_iterator_itself() -> None:
    items = iter([1, 2])
    assert Program[int, int](()).iterate(items) is items
    assert repr(Program[int, int](())) == "(no stage)"


def test_a_flow_pickles_as_its_source_and_stages() -> None:
    made = flow.from_([3, 6, 9]).map(doubled).filter(is_big)
    assert list(made) == [12, 18]
    pickled = pickle.dumps(made)
    copy: Flow[int] = pickle.loads(pickled)
    assert list(copy) == list(copy.take(2)) == [12, 18]
    assert copy.first() == 12
    assert repr(copy) == repr(made)
    assert [stage.assembled_at for stage in stages_of(copy)] == [
        stage.assembled_at for stage in stages_of(made)
    ]
    assert len(pickled) < 2000, "what it shares with other flows stays here"


def test_a_flow_that_has_never_run_pickles_with_the_result_of_its_operator() -> None:
    made = flow.range(3).map(doubled).pipe(flow.Operator("marked", hidden)).map(doubled)
    copy: Flow[int] = pickle.loads(cloudpickle.dumps(made))
    assert repr(copy) == repr(made)
    assert list(copy) == [0, 4, 8]


def hidden(made: Flow[int]) -> Flow[int]:
    return made.hide()
