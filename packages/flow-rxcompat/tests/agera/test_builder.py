"""The order of calls in the description of a repository."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flow_rxcompat.agera import (
    IllegalStateError,
    RConfig,
    Result,
    REventSource,
    RFlow,
    RFrequency,
    RSyncFlow,
    RTermination,
    RTerminationOrContinue,
    TestLoop,
    repositories,
)


def ran(config: RConfig[Any]) -> object:
    """The value after one run, and the updates it took."""
    with TestLoop() as loop:
        made = config.compile()
        updates: list[object] = []
        made.add_updatable(lambda: updates.append(made.get()))
        loop.drain()
        return made.get(), updates


def flow(initial: Any = 0) -> RFlow[Any, Any]:
    return repositories.repository_with_initial_value(initial).observe().on_updates_per_loop()


@pytest.fixture(autouse=True)
def _loop() -> Any:
    with TestLoop():
        yield


def test_each_state_is_a_separate_class() -> None:
    source = repositories.repository_with_initial_value(0)
    assert type(source) is REventSource
    frequency = source.observe()
    assert type(frequency) is RFrequency
    assert type(frequency.observe()) is RFrequency
    directives = frequency.on_updates_per(-5)
    assert type(directives) is RFlow
    termination = directives.check(lambda n: n == 0)
    assert type(termination) is RTermination
    assert type(termination.or_skip()) is RFlow
    last = directives.then_attempt_transform(Result.success)
    assert type(last) is RTerminationOrContinue
    lazily = last.or_continue().go_lazy()
    assert type(lazily) is RSyncFlow
    assert type(lazily.then_skip()) is RConfig


@pytest.mark.parametrize(
    ("describe", "value"),
    [
        (lambda f: f.then_get_from(lambda: 1), 1),
        (lambda f: f.get_from(lambda: 2).then_transform(lambda n: n * 2), 4),
        (lambda f: f.merge_in(lambda: 5, lambda a, b: a + b).then_transform(str), "15"),
        (lambda f: f.then_merge_in(lambda: 5, lambda a, b: a - b), 5),
        (lambda f: f.transform(lambda n: n + 1).then_transform(str), "11"),
        (lambda f: f.attempt_get_from(lambda: Result.success(3)).or_skip().then_transform(str),
         "3"),
        (lambda f: f.attempt_get_from(Result.failure).or_end(repr).then_get_from(lambda: 0),
         "AttemptFailedError('Attempt failed')"),
        (lambda f: f.attempt_transform(lambda n: Result.success(n + 1)).or_skip()
         .then_transform(str), "11"),
        (lambda f: f.attempt_merge_in(lambda: 1, lambda a, b: Result.success(a + b)).or_skip()
         .then_transform(str), "11"),
        (lambda f: f.then_attempt_get_from(lambda: Result.success(3)).or_skip(), 3),
        (lambda f: f.then_attempt_transform(lambda n: Result.success(n + 1)).or_skip(), 11),
        (lambda f: f.then_attempt_merge_in(lambda: 1, lambda a, b: Result.success(a + b)).or_skip(),
         11),
        (lambda f: f.then_attempt_get_from(Result.failure).or_end(lambda e: type(e).__name__),
         "AttemptFailedError"),
        (lambda f: f.then_attempt_get_from(Result.failure).or_continue()
         .then_transform(lambda e: type(e).__name__), "AttemptFailedError"),
        (lambda f: f.then_attempt_get_from(lambda: Result.success(3)).or_continue()
         .then_get_from(lambda: 99), 3),
        (lambda f: f.check(lambda n: n == 10).or_skip().then_transform(str), "10"),
        (lambda f: f.check(lambda n: n > 10).or_end(lambda n: f"no: {n}").then_get_from(lambda: 0),
         "no: 10"),
        (lambda f: f.check(lambda n: n * 3, lambda case: case == 30).or_skip().then_transform(str),
         "10"),
        (lambda f: f.check(lambda n: n * 3, lambda case: case > 30).or_end(lambda case: case)
         .then_get_from(lambda: 0), 30),
    ],
)  # fmt: skip
def test_the_directives(describe: Callable[[Any], RConfig[Any]], value: object) -> None:
    assert ran(describe(flow(10))) == (value, [value])


def test_skipping_leaves_the_value_and_notifies_no_updatable() -> None:
    assert ran(flow(10).get_from(lambda: 11).then_skip()) == (10, [])
    assert ran(flow(10).check(lambda n: n > 10).or_skip().then_get_from(lambda: 0)) == (10, [])
    skipped = flow(10).attempt_get_from(Result.failure).or_skip().then_get_from(lambda: 0)
    assert ran(skipped) == (10, [])


def test_an_equal_value_notifies_no_updatable() -> None:
    assert ran(flow(10).then_get_from(lambda: 10)) == (10, [])


def test_notify_if_decides_with_the_old_and_the_new_value() -> None:
    asked: list[tuple[int, int]] = []

    def checker(old: int, new: int) -> bool:
        asked.append((old, new))
        return new > 20

    assert ran(flow(10).then_get_from(lambda: 11).notify_if(checker)) == (11, [])
    assert ran(flow(10).then_get_from(lambda: 21).notify_if(checker)) == (21, [21])
    assert asked == [(10, 11), (10, 21)]


def test_receivers_and_binders_see_the_value_and_leave_it() -> None:
    seen: list[object] = []
    config = (
        flow(10)
        .send_to(seen.append)
        .bind_with(lambda: "with", lambda *both: seen.append(both))
        .then_transform(lambda n: n + 1)
    )
    assert ran(config) == (11, [11])
    assert seen == [10, (10, "with")]


def test_compile_into_begins_with_the_value_of_the_first() -> None:
    with TestLoop() as loop:
        celsius = repositories.mutable_repository(20)
        text = (
            repositories.repository_with_initial_value(0)
            .observe(celsius)
            .on_updates_per_loop()
            .get_from(celsius)
            .then_transform(lambda n: n * 10)
            .compile_into_repository_with_initial_value("none")
            .on_updates_per_loop()
            .then_transform(str)
            .compile()
        )
        seen: list[str] = []
        text.add_updatable(lambda: seen.append(text.get()))
        loop.drain()
        celsius.accept(21)
        loop.drain()
        assert seen == ["200", "210"]
        assert text.get() == "210"


UNEXPECTED: dict[str, Callable[[], object]] = {}


def unexpected(case: Callable[[], object]) -> Callable[[], object]:
    UNEXPECTED[case.__name__] = case
    return case


@unexpected
def observe_after_the_frequency() -> object:
    frequency = repositories.repository_with_initial_value(0).observe()
    frequency.on_updates_per_loop()
    return frequency.observe()


@unexpected
def frequency_before_observe() -> object:
    source: Any = repositories.repository_with_initial_value(0)
    return RFrequency.on_updates_per(source, 0)


@unexpected
def frequency_twice() -> object:
    frequency = repositories.repository_with_initial_value(0).observe()
    frequency.on_updates_per_loop()
    return frequency.on_updates_per_loop()


@unexpected
def directive_within_a_termination() -> object:
    directives = flow()
    directives.check(lambda _: True)
    return directives.transform(str)


@unexpected
def termination_twice() -> object:
    termination = flow().check(lambda _: True)
    termination.or_skip()
    return termination.or_skip()


@unexpected
def continuing_after_a_check() -> object:
    termination: Any = flow().check(lambda _: True)
    return RTerminationOrContinue(termination._compiler, RConfig, RFlow).or_continue()


@unexpected
def directive_after_the_end() -> object:
    directives = flow()
    directives.then_skip()
    return directives.transform(str)


@unexpected
def configuration_before_the_end() -> object:
    directives: Any = flow()
    return RConfig(directives._compiler).compile()


@unexpected
def compiling_twice() -> object:
    config = flow().then_skip()
    config.compile()
    return config.compile()


@unexpected
def configuration_after_compiling() -> object:
    config = flow().then_skip()
    config.compile()
    return config.notify_if(lambda *_: True)


@pytest.mark.parametrize("name", UNEXPECTED)
def test_a_state_that_was_left_raises(name: str) -> None:
    with pytest.raises(IllegalStateError, match="Unexpected compiler state"):
        UNEXPECTED[name]()


def test_go_lazy_comes_once_and_nothing_is_gone_to_after_it() -> None:
    directives = flow()
    lazily: Any = directives.go_lazy()
    with pytest.raises(IllegalStateError, match="async directive after goLazy"):
        directives.go_to(lambda task: task())
    with pytest.raises(IllegalStateError, match="async directive after goLazy"):
        RFlow.go_lazy(lazily)


def test_a_description_needs_a_loop_when_it_begins_and_what_it_is_given_is_looked_at() -> None:
    nothing: Any = None
    with pytest.raises(TypeError):
        flow().transform(nothing)
    with pytest.raises(TypeError):
        flow().transform(nothing or 42)
    with pytest.raises(TypeError):
        flow().check(lambda n: n, nothing)
    with pytest.raises(TypeError):
        repositories.repository_with_initial_value(0).observe(nothing)
