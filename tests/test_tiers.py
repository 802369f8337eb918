"""``pytest --quick`` runs the tests of the quick tier, and draws some of those that are many."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.nightly  # each test starts pytest more than once

ROOT = Path(__file__).parent.parent
TESTS = """
import pytest

def test_plain(): pass

@pytest.mark.nightly
def test_nightly(): pass

@pytest.mark.cluster
def test_cluster(): pass

@pytest.mark.spark
def test_spark(): pass

@pytest.mark.spark
@pytest.mark.essential
@pytest.mark.parametrize("kind", range(600))
def test_essential_on_spark(kind): pass

@pytest.mark.interleave
@pytest.mark.essential
@pytest.mark.nightly
def test_long(): pass

@pytest.mark.interleave
@pytest.mark.parametrize("operator", range(600))
def test_explored(operator): pass

@pytest.mark.interleave
@pytest.mark.essential
@pytest.mark.parametrize("machine", range(600))
def test_machine(machine): pass

@pytest.mark.tck
@pytest.mark.parametrize("rule", range(600))
def test_rule(rule): pass

@pytest.mark.many
@pytest.mark.parametrize("operator", range(600))
def test_many(operator): pass

@pytest.mark.slow
@pytest.mark.parametrize("size", range(600))
def test_slow(size): pass
"""
SAMPLED = {
    "test_essential_on_spark": 8,
    "test_explored": 64,
    "test_machine": 16,
    "test_rule": 16,
    "test_many": 16,
    "test_slow": 4,
}


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a test of each kind; nothing of the run around it is passed on."""
    for name in ("FLOW_SAMPLE", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeconftest((ROOT / "conftest.py").read_text("utf-8"))
    pytester.makepyprojecttoml((ROOT / "pyproject.toml").read_text("utf-8"))
    pytester.makepyfile(TESTS)
    return pytester


def collected(project: pytest.Pytester, *options: str) -> tuple[set[str], set[str]]:
    """The tests that run: those by name, and those of which there are many."""
    result = project.runpytest_subprocess(".", "--collect-only", "-q", *options)
    names = {line.partition("::")[2] for line in result.outlines if "::" in line}
    many = {name for name in names if "[" in name}
    return names - many, many


def counts(names: set[str]) -> Counter[str]:
    return Counter(name.partition("[")[0] for name in names)


def test_the_quick_tier_is_what_is_not_nightly_not_on_a_cluster_and_not_on_spark(
    project: pytest.Pytester,
) -> None:
    named, _ = collected(project, "--quick")
    assert named == {"test_plain"}


def test_a_sample_is_drawn_that_the_variable_repeats(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOW_SAMPLE", "one")
    _, first = collected(project, "--quick")
    for name, n in counts(first).items():
        assert 300 / SAMPLED[name] < n < 1200 / SAMPLED[name]
    assert collected(project, "--quick")[1] == first
    monkeypatch.setenv("FLOW_SAMPLE", "two")
    assert collected(project, "--quick")[1] != first


def test_fewer_of_all_tests_are_drawn_where_another_python_runs_them(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOW_SAMPLE", "one")
    _, whole = collected(project, "--quick")
    _, third = collected(project, "--quick", "--one-in=3")
    assert third < whole
    assert 1 / 5 < len(third) / len(whole) < 1 / 2


def test_the_head_of_the_output_says_how_to_repeat_the_sample(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOW_SAMPLE", "abc123")
    result = project.runpytest_subprocess(".", "--quick", "-k", "plain")
    result.stdout.fnmatch_lines(["quick tier:*FLOW_SAMPLE=abc123 repeats it"])


def test_without_the_option_all_tests_run_but_those_on_clusters(project: pytest.Pytester) -> None:
    named, many = collected(project)
    assert named == {"test_plain", "test_nightly", "test_spark", "test_long"}
    assert counts(many) == dict.fromkeys(SAMPLED, 600)


def test_a_choice_of_marks_that_speaks_of_clusters_has_them(project: pytest.Pytester) -> None:
    assert collected(project, "-m", "cluster") == ({"test_cluster"}, set())


def test_parts_are_all_tests_and_have_none_in_common(project: pytest.Pytester) -> None:
    whole = set().union(*collected(project, "--quick"))
    first, second = (set().union(*collected(project, "--quick", f"--part={k}/2")) for k in (1, 2))
    assert first | second == whole
    assert not first & second
    assert abs(len(first) - len(second)) <= 1


def test_patience_makes_every_time_limit_longer(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_limits="""
        import pytest
        from flow_testing import TIMEOUT_S

        def limit(request):
            return request.node.get_closest_marker("timeout").args[0]

        @pytest.mark.timeout(30)
        def test_own(request):
            assert limit(request) == 120

        def test_common(request):
            assert limit(request) == 480
            assert TIMEOUT_S == 20
        """
    )
    options = ("--patience=4", "--numprocesses=1", "test_limits.py")
    project.runpytest_subprocess(*options).assert_outcomes(passed=2)
