"""``flow explain``: sources, loops and boundaries, and what a source absorbs."""

from __future__ import annotations

import operator
import subprocess
import sys
from typing import Any

import pytest

import flow_core
from flow_cli.explain import explain
from flow_cli.progress import progress
from flow_core import AbsorbingSource, Flow, FlowError, Operator, Stage
from flow_core.operators import serialize
from flow_core.plugins import PluginHost, plugin_host
from flow_core.protocols import Publisher, Subscriber
from flow_core.structure import Place, source_of, stages_of
from flow_testing import TIMEOUT_S

HERE = "test_explain.py"


def lines(flow: Flow[Any], **options: bool) -> list[str]:
    """The drawing without the places in this file."""
    return [line.partition(f"  {HERE}")[0] for line in explain(flow, **options).splitlines()]


def test_stages_after_an_iterator_are_one_loop() -> None:
    flow = flow_core.range(9).filter(bool).map(str)
    assert lines(flow) == [
        "flow",
        "├── source range(0, 9): an iterator",
        "└── loop 1, pulled by iteration, or pushed to a subscriber: filter | map",
        "    ├── filter(bool)",
        "    └── map(str)",
    ]


def test_each_stage_says_where_it_was_assembled() -> None:
    line = sys._getframe().f_lineno + 1
    text = explain(flow_core.range(9).map(str))
    assert f"map(str)  {HERE}:{line}" in text


def test_a_boundary_separates_loops_and_says_what_it_does_with_demand_and_fusion() -> None:
    flow = flow_core.range(9).map(str).hide().take(3).buffer_with_count(2)
    assert lines(flow) == [
        "flow",
        "├── source range(0, 9): an iterator",
        "├── loop 1, pushed: map",
        "│   └── map(str)",
        "├── boundary hide(): passes demand on; no fusion",
        "└── loop 2, fed: take | buffer_with_count; an inbox of 3 items",
        "    ├── take(count=3)",
        "    └── buffer_with_count(count=2)",
    ]


def test_explain_marks_a_loop_that_requests_everything() -> None:
    assert "fed: count; requests everything at once" in explain(flow_core.just(1).hide().count())


def test_a_boundary_that_iterates_pulls_what_is_before_it() -> None:
    flow = flow_core.range(9).map(str).pipe(progress("digits")).filter(bool)
    assert "loop 1, pulled by progress: map" in explain(flow)
    assert "boundary progress('digits')" in explain(flow)


def test_a_boundary_that_asks_for_fusion_polls_unless_user_code_would_change_thread(
    write: Any, project: Any, monkeypatch: Any
) -> None:
    write(
        "pool_x.py",
        """
        from flow_core.plugins import OperatorSpec, hookimpl
        from flow_core.protocols import Fusion

        @hookimpl
        def flow_operators():
            yield OperatorSpec(
                "elsewhere", "pool_x:elsewhere",
                asks=Fusion.SYNC | Fusion.THREAD_BOUNDARY, answers=Fusion.ASYNC,
            )
        """,
    )
    monkeypatch.syspath_prepend(str(project))
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "*", "FLOW_LOAD_PLUGINS": "pool_x"})
    monkeypatch.setattr("flow_core.plugins.host._host", host)

    def elsewhere() -> Operator[Any, Flow[Any]]:
        return Operator("elsewhere", lambda flow: Flow(source_of(flow.hide())), "pool")

    assert "loop 1, polled by elsewhere (SYNC fusion): skip" in explain(
        flow_core.range(9).skip(1).pipe(elsewhere())
    )
    assert "loop 1, pushed: map" in explain(flow_core.range(9).map(str).pipe(elsewhere()))
    assert "boundary elsewhere(pool): bounded; asks SYNC across threads; answers ASYNC" in explain(
        flow_core.range(9).pipe(elsewhere())
    )


def test_a_boundary_that_no_plugin_registers_is_shown_as_such() -> None:
    own = Operator("mine", lambda flow: Flow(source_of(flow.hide())), "x=1")
    assert "boundary mine(x=1): registered by no plugin" in explain(flow_core.just(1).pipe(own))


def test_sources_say_what_they_are() -> None:
    cases: dict[str, Flow[Any]] = {
        "source just(1): a constant": flow_core.just(1),
        "source from_callable(list): a function that gives one item or none": (
            flow_core.from_callable(list)
        ),
        "source from_iterable(list): an iterator": flow_core.from_iterable([1]),
        "source defer(empty): a flow that is made when it is subscribed": (
            flow_core.defer(flow_core.empty)
        ),
        "source never(): a publisher": flow_core.never(),
    }
    for text, flow in cases.items():
        assert text in explain(flow)


class Cluster(AbsorbingSource[int]):
    """Takes over maps, refuses what is ordered."""

    def __init__(self, absorbed: int = 0) -> None:
        self.absorbed = absorbed

    def absorb(
        self, stages: tuple[Stage[Any, Any], ...]
    ) -> tuple[Publisher[Any], tuple[Stage[Any, Any], ...]]:
        taken = 0
        for stage in stages:
            if stage.template.ordered:
                raise FlowError(f"{stage!r} has no meaning on a cluster")
            if stage.name != "map":
                break
            taken += 1
        return Cluster(taken), stages[taken:]

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"cluster({self.absorbed})"


def test_stages_that_a_source_absorbs_are_shown_apart_from_local_ones() -> None:
    flow = Flow(Cluster()).map(abs).map(str).distinct().hide().count()
    assert lines(flow) == [
        "flow",
        "├── source cluster(0): absorbs stages and runs them where its items are",
        "├── absorbed by cluster(2): map | map",
        "│   ├── map(abs)",
        "│   └── map(str)",
        "├── loop 1, in this process, fed: distinct",
        "│   └── distinct()",
        "├── boundary hide(): passes demand on; no fusion",
        "└── loop 2, fed: count; requests everything at once",
        "    └── count()",
    ]


class Planned(Cluster):
    """Says where it runs what, and how."""

    def places(self, stages: tuple[Stage[Any, Any], ...]) -> tuple[Place, ...]:
        return (Place("each node", stages[:1]), Place("the first node", stages[1:]))

    def plan(self, stages: tuple[Stage[Any, Any], ...]) -> str | None:
        return f"Map [twice]\n+- Scan of {len(stages)}"


def test_a_source_may_say_what_runs_where() -> None:
    assert lines(Flow(Planned()).map(abs).map(str))[2:] == [
        "├── absorbed by each node: map",
        "│   └── map(abs)",
        "└── absorbed by the first node: map",
        "    └── map(str)",
    ]


def test_the_plan_of_an_engine_is_shown_on_request() -> None:
    flow = Flow(Planned()).map(abs)
    assert "Scan of" not in explain(flow)
    assert explain(flow, plan=True).splitlines()[-3:] == [
        "└── plan",
        "    ├── Map [twice]",
        "    └── +- Scan of 1",
    ]
    assert explain(Flow(Cluster()).map(abs), plan=True) == explain(Flow(Cluster()).map(abs))


def test_a_stage_that_a_source_refuses_is_shown_with_the_reason() -> None:
    text = explain(Flow(Cluster()).map(abs).scan(operator.add))
    assert "refused scan(add, seed=UNSET) has no meaning on a cluster" in text


def test_a_source_can_refuse_what_is_put_behind_it(project, write, monkeypatch) -> None:
    write(
        "paired_x.py",
        """
        from flow_core.plugins import OperatorSpec, Placement, hookimpl
        @hookimpl
        def flow_operators():
            yield OperatorSpec("paired", "builtins:zip", placement=Placement.REFUSED)
        """,
    )
    monkeypatch.syspath_prepend(str(project))
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "*", "FLOW_LOAD_PLUGINS": "paired_x"})
    monkeypatch.setattr("flow_core.plugins.host._host", host)

    class Particular(Cluster):
        def check(self, stages: tuple[Stage[Any, Any], ...], behind: str | None = None) -> None:
            if behind is not None or stages[-1].name == "skip":
                raise FlowError(f"not behind {stages}: {behind}")

    there = Flow(Particular()).map(abs)
    paired: Operator[int, Flow[int]] = Operator("paired", lambda flow: flow)

    with pytest.raises(FlowError, match=r"behind \(map\(abs\), skip\(count=1\)\): None"):
        there.skip(1)
    with pytest.raises(FlowError, match=r"behind \(map\(abs\), skip\(count=1\)\): None"):
        there.pipe(plugin_host().operator("skip")(1))
    with pytest.raises(
        FlowError, match=r"behind \(map\(abs\),\): paired\(\), assembled at .*test_explain.py:\d+,"
    ):
        there.pipe(paired)
    assert stages_of(there.hide().skip(1).pipe(paired))
    assert stages_of(there.pipe(Operator("unknown", lambda flow: flow)))


def test_explain_of_a_refused_flow_fails_with_its_exit_code(flow, write) -> None:
    write(
        "refused.py",
        """
        import operator
        from flow_core import AbsorbingSource, Flow, FlowError

        class Nowhere(AbsorbingSource):
            def absorb(self, stages):
                raise FlowError("it has no meaning there")

            def subscribe(self, subscriber):
                raise NotImplementedError

        made = Flow(Nowhere()).map(str)
        """,
    )

    done = flow("explain", "refused.py:made")

    assert done.code == 1
    assert "refused it has no meaning there" in done.out
    assert done.err == ""


def test_further_upstreams_of_a_source_are_drawn_inside() -> None:
    left, right = flow_core.range(3).map(str), flow_core.just("x").hide()

    class Both(Publisher[Any]):
        upstreams = (left, right)

        def subscribe(self, subscriber: Subscriber[Any], /) -> None:
            raise NotImplementedError

    merged = left.pipe(Operator("both", lambda flow: Flow(Both())))
    assert lines(merged) == [
        "flow",
        "├── source range(0, 3): an iterator",
        "├── loop 1, pushed: map",
        "│   └── map(str)",
        "├── boundary both(): registered by no plugin",
        "└── also from",
        "    ├── source just('x'): a constant",
        "    └── boundary hide(): passes demand on; no fusion",
    ]


def test_a_prepared_flow_is_drawn_over_its_input(flow: Any, write: Any) -> None:
    longest = flow_core.prepare(lambda words: words.map(len).max())
    drawn = explain(longest)
    assert "source input of <lambda test_explain.py:" in drawn
    assert ": map | max; requests everything at once" in drawn
    write("words.py", "import flow_core\ntotal = flow_core.prepare(lambda ns: ns.sum())\n")
    done = flow("explain", "words.py:total")
    assert "source input of <lambda words.py:2>" in done.out


def test_the_generated_code_is_shown_when_it_is_asked_for() -> None:
    flow = flow_core.from_iterable([1]).map(str).hide().filter(bool)
    text = explain(flow, source=True)
    assert "def flow(it, close, on_next, gate, n, made, args):" in text
    assert "raise none_item(made, 0)" in text  # the check of the source's items
    assert " def receive(x):" in text
    assert "if predicate_0(x):" in text
    assert "def flow" not in explain(flow)


def test_a_chain_that_is_too_deep_for_one_function_says_in_how_many_parts_it_runs() -> None:
    flow = flow_core.range(1)
    for _ in range(100):
        flow = flow.filter(bool)
    text = explain(flow)
    assert "loop 1, in 2 parts, pulled" in text
    assert "… 100 stages" in text


def test_explaining_runs_nothing() -> None:
    def fail(*args: object) -> Any:
        raise AssertionError("this must not run")

    explain(flow_core.from_callable(fail).map(fail))
    explain(flow_core.defer(fail).map(fail))


def test_the_command_draws_a_flow_and_what_a_function_returns(flow: Any, write: Any) -> None:
    write(
        "jobs.py",
        """
        import flow_core
        numbers = flow_core.range(3).map(str)
        def make(stop: int = 3): return flow_core.range(stop).map(str)
        def main() -> None: print("ran")
        def late(): return None
        """,
    )
    done = flow("explain", "jobs.py:numbers")
    assert done.code == 0
    assert done.out.startswith("numbers\n├── source range(0, 3): an iterator\n")
    assert "source range(0, 5)" in flow("explain", "jobs.py:make", "--", "--stop", "5").out
    assert "x = mapper_0(x)" in flow("explain", "jobs.py:numbers", "--source").out
    assert flow("explain", "jobs.py:numbers", "--plan").out == done.out  # no engine, no plan
    done = flow("explain", "jobs.py:main")
    assert (done.code, done.out) == (2, "")
    assert "main() returns None: it would run its flow" in done.err
    assert "late() returned None" in flow("explain", "jobs.py:late").err


def test_a_drawing_is_plain_text_without_a_terminal(write: Any) -> None:
    write("jobs.py", "import flow_core\nnumbers = flow_core.range(3).map(str)")
    done = subprocess.run(
        [sys.executable, "-m", "flow_cli", "explain", "jobs.py:numbers", "--source"],
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=12 * TIMEOUT_S,
    )
    assert "\x1b" not in done.stdout
    assert "└── " in done.stdout


def test_explain_shows_names_tags_and_the_prefetch_of_a_boundary() -> None:
    made = flow_core.range(3).name("numbers").tag("of", "us").pipe(serialize(prefetch=16)).map(str)
    text = explain(made)
    assert "; named 'numbers'; of=us" in text
    assert "boundary serialize(prefetch=16): bounded; no fusion; prefetch 16" in text
