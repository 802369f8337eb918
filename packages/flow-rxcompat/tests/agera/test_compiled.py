"""The runs of the flow of a compiled repository."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from flow_core.errors import NoneItemError
from flow_core.executors import Task
from flow_rxcompat.agera import (
    IllegalStateError,
    Repository,
    RepositoryConfig,
    RunState,
    TestLoop,
    UpdateDispatcher,
    interrupted,
    observables,
    repositories,
)
from flow_rxcompat.agera.compiled import CompiledRepository
from flow_rxcompat.agera.protocols import Observable

CONTINUE, CANCEL = RepositoryConfig.CONTINUE_FLOW, RepositoryConfig.CANCEL_FLOW
RESET, INTERRUPT = RepositoryConfig.RESET_TO_INITIAL_VALUE, RepositoryConfig.SEND_INTERRUPT


class Executor:
    """Runs tasks when a test says so."""

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()

    def __call__(self, task: Task) -> None:
        self.tasks.append(task)

    def run(self) -> None:
        self.tasks.popleft()()


def state(repository: Repository[int]) -> RunState:
    assert isinstance(repository, CompiledRepository)
    return repository.state


def counted(observable: Observable) -> tuple[list[None], Callable[[], None]]:
    updates: list[None] = []

    def update() -> None:
        updates.append(None)

    observable.add_updatable(update)
    return updates, lambda: observable.remove_updatable(update)


class Bench:
    """A dispatcher, an executor, and a repository that goes to it between two steps."""

    def __init__(
        self,
        concurrent: RepositoryConfig = CONTINUE,
        deactivation: RepositoryConfig = CONTINUE,
    ) -> None:
        self.source: UpdateDispatcher = observables.update_dispatcher()
        self.executor = Executor()
        self.runs = 0
        self.discarded: list[object] = []
        self.steps: list[str] = []
        self.within: Callable[[], object] = lambda: None
        self.repository = (
            repositories.repository_with_initial_value(-1)
            .observe(self.source)
            .on_updates_per_loop()
            .get_from(self._first)
            .go_to(self.executor)
            .transform(self._second)
            .then_transform(self._third)
            .on_concurrent_update(concurrent)
            .on_deactivation(deactivation)
            .send_discarded_values_to(self.discarded.append)
            .compile()
        )

    def _first(self) -> int:
        self.runs += 1
        self.steps.append(f"first {self.runs}")
        return self.runs * 10

    def _second(self, value: int) -> int:
        self.steps.append(f"second {value}")
        self.within()
        return value + 1

    def _third(self, value: int) -> int:
        self.steps.append(f"third {value}")
        return value + 1


def test_configurations_include_each_other() -> None:
    assert (CONTINUE, CANCEL, RESET, INTERRUPT) == (0, 1, 3, 5)
    assert RESET & CANCEL
    assert INTERRUPT & CANCEL


def test_it_is_idle_until_an_updatable_is_added_and_then_runs_at_once() -> None:
    with TestLoop() as loop:
        runs: list[int] = []
        source = observables.update_dispatcher()
        numbers = (
            repositories.repository_with_initial_value(0)
            .observe(source)
            .on_updates_per_loop()
            .then_transform(lambda n: runs.append(n) or n + 1)
            .compile()
        )
        source.update()
        loop.drain()
        assert (runs, numbers.get(), state(numbers)) == ([], 0, RunState.IDLE)
        updates, remove = counted(numbers)
        assert (runs, numbers.get()) == ([0], 1)
        loop.drain()
        assert len(updates) == 1
        source.update()
        source.update()
        loop.drain()
        assert (runs, numbers.get(), len(updates)) == ([0, 1], 2, 2)
        remove()
        loop.drain()
        source.update()
        loop.drain()
        assert (runs, numbers.get()) == ([0, 1], 2)  # stale, as it is inactive


def test_on_updates_per_merges_updates_within_the_milliseconds() -> None:
    with TestLoop() as loop:
        source = observables.update_dispatcher()
        numbers = (
            repositories.repository_with_initial_value(0)
            .observe(source)
            .on_updates_per(100)
            .then_transform(lambda n: n + 1)
            .compile()
        )
        counted(numbers)
        for _ in range(10):
            source.update()
            loop.advance_by(0.03)
        loop.advance_by(1)
        # Activation; then updates at 0, 100, 200 and 300 ms.
        assert numbers.get() == 5


def test_directives_after_go_to_run_in_one_call_of_the_executor() -> None:
    with TestLoop() as loop:
        bench = Bench()
        updates, _ = counted(bench.repository)
        assert (state(bench.repository), len(bench.executor.tasks)) == (RunState.PAUSED_AT_GO_TO, 1)
        assert bench.repository.get() == -1
        bench.executor.run()
        assert bench.steps == ["first 1", "second 10", "third 11"]
        assert (bench.repository.get(), state(bench.repository)) == (12, RunState.IDLE)
        loop.drain()
        assert len(updates) == 1
        assert bench.discarded == []


def test_an_update_while_it_runs_makes_it_run_again_when_it_has_ended() -> None:
    with TestLoop() as loop:
        bench = Bench()
        counted(bench.repository)
        for _ in range(3):
            bench.source.update()
            loop.drain()
        assert len(bench.executor.tasks) == 1
        bench.executor.run()
        assert bench.repository.get() == 12
        loop.drain()
        assert len(bench.executor.tasks) == 1
        bench.executor.run()
        loop.drain()
        assert (bench.repository.get(), bench.runs) == (22, 2)


def test_a_cancelling_update_ends_it_before_the_next_directive_and_runs_it_again() -> None:
    with TestLoop() as loop:
        bench = Bench(concurrent=CANCEL)
        counted(bench.repository)
        loop.drain()

        def update() -> None:
            bench.within = lambda: None
            bench.source.update()
            loop.drain()
            assert state(bench.repository) is RunState.CANCEL_REQUESTED

        bench.within = update
        bench.executor.run()
        assert bench.steps == ["first 1", "second 10"]
        assert (bench.repository.get(), bench.discarded) == (-1, [])
        loop.drain()  # acknowledged on the loop
        assert bench.discarded == [11]
        assert bench.steps[-1] == "first 2"
        bench.executor.run()
        assert bench.repository.get() == 22


def test_one_that_waits_for_its_executor_is_cancelled_when_that_runs_it() -> None:
    with TestLoop() as loop:
        bench = Bench(concurrent=CANCEL)
        counted(bench.repository)
        bench.source.update()
        loop.drain()
        bench.executor.run()
        assert bench.steps == ["first 1"]
        loop.drain()
        assert bench.discarded == [10]
        bench.executor.run()
        assert bench.repository.get() == 22


@pytest.mark.parametrize(
    ("config", "value", "discarded"),
    [(CONTINUE, 12, []), (CANCEL, -1, [10]), (RESET, -1, [10]), (INTERRUPT, -1, [10])],
)
def test_deactivation_while_it_runs(
    config: RepositoryConfig, value: int, discarded: list[object]
) -> None:
    with TestLoop() as loop:
        bench = Bench(deactivation=config)
        _, remove = counted(bench.repository)
        remove()
        loop.drain()
        bench.executor.run()
        loop.drain()
        assert (bench.repository.get(), bench.discarded) == (value, discarded)
        assert not bench.executor.tasks
        assert state(bench.repository) is RunState.IDLE


def test_reset_on_deactivation_takes_the_value_back_also_when_nothing_runs() -> None:
    with TestLoop() as loop:
        bench = Bench(deactivation=RESET)
        _, remove = counted(bench.repository)
        bench.executor.run()
        assert bench.repository.get() == 12
        remove()
        loop.drain()
        assert bench.repository.get() == -1


def test_reset_on_an_update_only_cancels() -> None:
    with TestLoop() as loop:
        bench = Bench(concurrent=RESET)
        counted(bench.repository)
        bench.executor.run()
        bench.source.update()
        loop.drain()
        bench.source.update()
        loop.drain()
        assert bench.repository.get() == 12


def test_one_that_is_activated_again_while_it_is_cancelled_runs_again() -> None:
    with TestLoop() as loop:
        bench = Bench(deactivation=CANCEL)
        _, remove = counted(bench.repository)
        remove()
        loop.drain()
        assert state(bench.repository) is RunState.CANCEL_REQUESTED
        counted(bench.repository)
        bench.executor.run()
        loop.drain()
        assert bench.steps == ["first 1", "first 2"]


@pytest.mark.checklist("X06")
@pytest.mark.parametrize(
    ("config", "heard"), [(INTERRUPT, [True, False]), (CANCEL, [False, False])]
)
def test_an_interrupt_reaches_the_directive_that_runs_after_go_to(
    config: RepositoryConfig, heard: list[bool]
) -> None:
    with TestLoop() as loop:
        bench = Bench(concurrent=config)
        counted(bench.repository)
        said: list[bool] = []

        def within() -> None:
            bench.within = lambda: None
            bench.source.update()
            loop.drain()
            said.extend([interrupted(), interrupted()])  # asking clears it

        bench.within = within
        bench.executor.run()
        assert said == heard
        assert not interrupted()


def test_interrupted_is_false_on_the_loop_and_within_get() -> None:
    with TestLoop() as loop:
        source, executor, said = observables.update_dispatcher(), Executor(), list[bool]()
        numbers = (
            repositories.repository_with_initial_value(0)
            .observe(source)
            .on_updates_per_loop()
            .transform(lambda n: said.append(interrupted()) or n)
            .go_to(executor)
            .go_lazy()
            .then_transform(lambda n: said.append(interrupted()) or n + 1)
            .on_concurrent_update(INTERRUPT)
            .compile()
        )
        counted(numbers)
        executor.run()
        source.update()
        loop.drain()
        executor.run()
        assert numbers.get() == 1
        assert said == [False, False, False]


def test_go_lazy_tells_once_and_runs_the_rest_within_the_first_get() -> None:
    with TestLoop() as loop:
        runs: list[int] = []
        numbers = (
            repositories.repository_with_initial_value(0)
            .observe()
            .on_updates_per_loop()
            .go_lazy()
            .then_transform(lambda n: runs.append(n) or n + 1)
            .compile()
        )
        updates, _ = counted(numbers)
        loop.drain()
        assert (len(updates), runs, state(numbers)) == (1, [], RunState.PAUSED_AT_GO_LAZY)
        assert (numbers.get(), numbers.get(), runs) == (1, 1, [0])
        loop.drain()
        assert len(updates) == 1


def test_go_lazy_tells_even_if_the_value_will_be_equal() -> None:
    with TestLoop() as loop:
        numbers = (
            repositories.repository_with_initial_value(0)
            .observe()
            .on_updates_per_loop()
            .go_lazy()
            .then_get_from(lambda: 0)
            .compile()
        )
        updates, _ = counted(numbers)
        loop.drain()
        assert (len(updates), numbers.get()) == (1, 0)


def test_a_lazy_part_that_was_never_read_is_left_for_a_new_run() -> None:
    with TestLoop() as loop:
        source, runs = observables.update_dispatcher(), list[str]()
        numbers = (
            repositories.repository_with_initial_value(0)
            .observe(source)
            .on_updates_per_loop()
            .transform(lambda n: runs.append("eager") or n + 1)
            .go_lazy()
            .then_transform(lambda n: runs.append("lazy") or n + 1)
            .compile()
        )
        counted(numbers)
        source.update()
        loop.drain()
        assert runs == ["eager", "eager"]
        assert numbers.get() == 2
        assert runs == ["eager", "eager", "lazy"]


def test_values_that_are_made_in_vain_are_given_away_but_the_current_one_is_not() -> None:
    with TestLoop() as loop:
        discarded: list[object] = []
        made = [10]
        source = observables.update_dispatcher()
        numbers = (
            repositories.repository_with_initial_value([0])
            .observe(source)
            .on_updates_per_loop()
            .get_from(lambda: made)
            .check(lambda items: items[0] != 10)
            .or_skip()
            .then_transform(lambda items: items)
            .send_discarded_values_to(discarded.append)
            .compile()
        )
        counted(numbers)
        assert discarded == [made]
        made = [11]
        source.update()
        loop.drain()
        assert numbers.get() is made
        made[0] = 10
        source.update()
        loop.drain()
        assert len(discarded) == 1  # it is the current value


def test_the_case_of_or_end_is_kept_and_the_value_it_replaces_given_away() -> None:
    with TestLoop():
        discarded: list[object] = []
        numbers = (
            repositories.repository_with_initial_value(0)
            .observe()
            .on_updates_per_loop()
            .get_from(lambda: 1000)
            .check(lambda n: n < 1000)
            .or_end(lambda n: n + 1)
            .then_transform(lambda n: n)
            .send_discarded_values_to(discarded.append)
            .compile()
        )
        counted(numbers)
        assert (numbers.get(), discarded) == (1001, [1000])


@pytest.mark.checklist("A15")
def test_an_error_of_a_directive_escapes_and_no_run_starts_again() -> None:
    with TestLoop() as loop:
        source, runs = observables.update_dispatcher(), list[int]()

        def fails(_: int) -> int:
            runs.append(1)
            raise LookupError("directive")

        numbers = (
            repositories.repository_with_initial_value(0)
            .observe(source)
            .on_updates_per_loop()
            .then_transform(fails)
            .compile()
        )
        with pytest.raises(LookupError, match="directive"):
            numbers.add_updatable(lambda: None)
        assert state(numbers) is RunState.RUNNING
        for _ in range(3):
            source.update()
            loop.drain()
        assert len(runs) == 1


def test_a_directive_that_gives_none_raises() -> None:
    nothing: dict[int, int] = {}
    with TestLoop():
        numbers = (
            repositories.repository_with_initial_value(0)
            .observe()
            .on_updates_per_loop()
            .transform(lambda _: nothing.get(1))
            .then_transform(lambda _: 1)
            .compile()
        )
        with pytest.raises(NoneItemError, match="transform"):
            numbers.add_updatable(lambda: None)


def test_resuming_what_is_not_paused_is_illegal() -> None:
    with TestLoop():
        bench = Bench()
        assert isinstance(bench.repository, CompiledRepository)
        with pytest.raises(IllegalStateError, match="Illegal call"):
            bench.repository.resume()


def test_a_synchronous_executor_is_supported() -> None:
    with TestLoop():
        numbers = (
            repositories.repository_with_initial_value(0)
            .observe()
            .on_updates_per_loop()
            .go_to(lambda task: task())
            .transform(lambda n: n + 1)
            .go_to(lambda task: task())
            .then_transform(lambda n: n + 1)
            .compile()
        )
        counted(numbers)
        assert numbers.get() == 2
