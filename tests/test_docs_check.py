"""The check of docstrings, signatures, slots and typing tests finds what is wrong."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from flow_core.plugins import Kind, PluginHost
from flow_core.protocols import Fusion

SCRIPT = Path(__file__).parent.parent / "docs" / "check.py"


def _load() -> Any:  # Any: a script, not a module of a package
    spec = importlib.util.spec_from_file_location("docs_check", SCRIPT)
    if spec is None or spec.loader is None:
        raise ImportError("docs/check.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check = _load()

CORE = "packages/flow-core/src/flow_core"
TYPING = "packages/flow-core/typing_tests"
EXTRA = "packages/flow-extra/src/flow_extra"

SOUND = {
    f"{CORE}/__init__.py": '''
        """A small core."""
        from flow_core.flow import Flow
        from flow_core.sources import generate, just
        __all__ = ["Flow", "generate", "just"]
        ''',
    f"{CORE}/flow.py": '''
        """The flow."""
        from flow_core.stages.themes import Filtering
        __all__ = ["Flow"]
        class Flow(Filtering):
            """A description of items."""
        ''',
    f"{CORE}/stages/__init__.py": '''
        """Demand: passed on. Thread: the same. Fusion: any. Errors: passed on."""
        __all__ = []
        ''',
    f"{CORE}/stages/themes.py": '''
        """Some stages."""
        SKIP = Template("skip")
        class Filtering:
            """Methods that leave items out."""
            @overload
            def skip(self, count: int) -> Flow: ...
            @overload
            def skip(self, count: str) -> Flow: ...
            def skip(self, count: int = 0) -> Flow[T]:
                """Leaves out the first `count` items.

                Raises:
                    ValueError: if `count` is negative.
                """
                raise ValueError(count)
            def hide(self) -> Flow[T]:
                """The same items. Demand: passed on. Thread: the same. Fusion: none."""
        ''',
    f"{CORE}/_builtin.py": '''
        """What the core registers."""
        def flow_operators():
            yield OperatorSpec("hide", "flow_core.flow:Flow.hide")
        ''',
    f"{CORE}/sources/__init__.py": '''
        """Where flows begin."""
        __all__ = ["generate", "just"]
        def just(*items: T) -> Flow[T]:
            """The given items."""
        def generate(step: Callable[[], T]) -> Flow[T]:
            """What `step` gives. Demand: exact. Thread: any. Fusion: SYNC."""
        ''',
    f"{CORE}/_running.py": '''
        """What runs."""
        @final
        class Running(Base):
            """A subscription."""
            __slots__ = ("demand",)
            def request(self, n: int) -> None: ...
            def cancel(self) -> None: ...
        class Base:
            """What runs has."""
            __slots__ = ()
        ''',
    f"{EXTRA}/__init__.py": '''
        """Another package, which exports what private modules define."""
        from flow_extra._late import Spec, late
        __all__ = ["Spec", "late"]
        ''',
    f"{EXTRA}/_late.py": '''
        """An operator, and a record."""
        @dataclass
        class Spec:
            """Describes an operator.

            Args:
                name: what users call it.
            """
            name: str
        def late(seconds: float) -> Operator[T, Flow[T]]:
            """Items later, by `seconds`. Demand and threads are kept. Fusion: none."""
        ''',
    f"{EXTRA}/_plugin.py": '''
        """What the package registers."""
        def flow_operators():
            yield OperatorSpec("late", "flow_extra:late")
        ''',
    f"{TYPING}/stages.py": """
        def right(ints: Flow[int]) -> None:
            assert_type(ints.skip(1).hide(), Flow[int])
        def mistakes(ints: Flow[int]) -> None:
            ints.skip(b"")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            ints.hide(1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        """,
    "docs/rules.md": "| §2.13 | No signal is None. |",
}
"""Two packages, the typing tests and the rules, by file."""


def write(folder: Path) -> None:
    for name, text in SOUND.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip(), "utf-8")


def test_nothing_is_found_where_nothing_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.main() == 0
    assert capsys.readouterr().out == "Nothing is wrong with docstrings and signatures.\n"


@pytest.mark.parametrize(
    ("file", "sound", "fault", "finding"),
    [
        pytest.param(
            f"{CORE}/sources/__init__.py",
            '"""The given items."""',
            "return Flow()",
            "3: just has no docstring; say in one line what it is for",
            id="no docstring",
        ),
        pytest.param(
            f"{CORE}/sources/__init__.py",
            '"""The given items."""',
            '"""The given items, of which none is None (§2.13)."""',
            "3: just names §2.13; say in words what holds, or leave it out",
            id="the id of a rule in a public docstring",
        ),
        pytest.param(
            f"{CORE}/sources/__init__.py",
            '"""The given items."""',
            '"""The given items."""  # M' + "99",
            "4: mentions M" + "99, which has no line in docs/rules.md; add it there",
            id="a rule that is not defined",
        ),
        pytest.param(
            f"{CORE}/flow.py",
            "A description of items.",
            "A description of items",
            "4: Flow has a first line that is not a sentence: 'A description of items'; "
            "end it with a full stop",
            id="no sentence",
        ),
        pytest.param(
            f"{EXTRA}/_late.py",
            "later, by `seconds`",
            "later",
            "10: late does not say what 'seconds' is; add it under Args:",
            id="parameter",
        ),
        pytest.param(
            f"{EXTRA}/_late.py",
            "    name: str\n",
            "    name: str\n    target: str\n",
            "3: Spec does not say what 'target' is; add it under Args:",
            id="field",
        ),
        pytest.param(
            f"{CORE}/stages/themes.py",
            "ValueError: if",
            "An error: if",
            "9: Filtering.skip raises ValueError and does not say when; add it under Raises:",
            id="error",
        ),
        pytest.param(
            f"{CORE}/stages/__init__.py",
            "Errors: passed on.",
            "",
            "1: does not say 'Errors:' for all stages; add it to this docstring",
            id="all stages",
        ),
        pytest.param(
            f"{CORE}/stages/themes.py",
            " Fusion: none.",
            "",
            "16: Filtering.hide says nothing about fusion; add it to the docstring",
            id="silent boundary",
        ),
        pytest.param(
            f"{EXTRA}/_late.py",
            "Demand and threads are kept.",
            "Threads are kept.",
            "10: late says nothing about demand; add it to the docstring",
            id="silent operator",
        ),
        pytest.param(
            f"{CORE}/sources/__init__.py",
            "Thread: any.",
            "",
            "5: generate says nothing about threads; add it to the docstring",
            id="silent source",
        ),
        pytest.param(
            f"{CORE}/stages/themes.py",
            "def skip(self, count: int = 0)",
            "def skip(self, count: Any = 0)",
            "9: Filtering.skip declares 'count' as Any, and its overloads say more; "
            "annotate it as they do",
            id="overload",
        ),
        pytest.param(
            f"{TYPING}/stages.py",
            "skip(1).hide()",
            "skip(1)",
            "16: Filtering.hide is in no assert_type; add one to typing_tests/stages.py",
            id="method without a typing test",
        ),
        pytest.param(
            f"{TYPING}/stages.py",
            "  # pyright: ignore[reportCallIssue]",
            "",
            "5: is not a mistake for both mypy and pyright; ignore both findings, by name",
            id="mistake for one checker",
        ),
        pytest.param(
            f"{CORE}/_running.py",
            '    __slots__ = ("demand",)\n',
            "",
            "3: Running has no __slots__, and exists per subscription; add them",
            id="no slots",
        ),
        pytest.param(
            f"{CORE}/_running.py",
            "    __slots__ = ()\n",
            "",
            "8: Base has no __slots__, and exists per subscription, for Running; add them",
            id="base without slots",
        ),
        pytest.param(
            f"{CORE}/_running.py",
            "Running(Base)",
            "Running(Base, SimpleNamespace)",
            "3: Running gets a __dict__ from SimpleNamespace, and exists per subscription; "
            "derive it from classes with slots",
            id="dict",
        ),
        pytest.param(
            f"{CORE}/_running.py",
            "@final\n",
            "",
            "2: Running is not @final, and exists per subscription; decorate it",
            id="not final",
        ),
    ],
)
def test_a_fault_is_found_with_its_place_and_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: str,
    sound: str,
    fault: str,
    finding: str,
) -> None:
    write(tmp_path)
    text = (tmp_path / file).read_text("utf-8")
    assert text.count(sound) == 1
    (tmp_path / file).write_text(text.replace(sound, fault), "utf-8")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.main() == 1
    (line,) = capsys.readouterr().out.splitlines()
    path, _, said = line.partition(":")
    assert said == finding
    assert (tmp_path / path).is_file()


LIBRARY = check.Library(check.ROOT)
HOST = PluginHost()


def test_every_package_is_looked_at() -> None:
    projects = check.ROOT.glob("packages/*/pyproject.toml")
    packages = {project.parent.name.replace("-", "_") for project in projects}
    found = [thing.module.name.partition(".")[0] for thing in LIBRARY.things]
    assert {name for name in packages if found.count(name) < 20} == set()


def test_everything_that_is_registered_is_looked_at() -> None:
    found = {thing.node.name for thing in LIBRARY.things}
    records = [*HOST.operators.values(), *HOST.sources.values()]
    registered = {getattr(record.spec.load(), "__name__", record.spec.name) for record in records}
    assert registered - found == set()


def test_the_classes_that_exist_per_subscription_are_found() -> None:
    names = {cls.name for cls in check.per_subscription(LIBRARY)}
    assert {"StageSubscriber", "IteratorSubscription", "CallbackSubscriber", "_Hidden"} <= names


def test_everything_registered_must_document_demand_threads_and_fusion() -> None:
    plain = {
        name
        for name, found in HOST.sources.items()
        if found.spec.answers == Fusion.SYNC | Fusion.THREAD_BOUNDARY
    }
    assert plain == check.PLAIN_SOURCES
    boundaries = {
        name for name, found in HOST.operators.items() if found.spec.kind is Kind.BOUNDARY
    }
    asked = {thing.node.name for thing in check.operators_and_sources(LIBRARY)}
    assert boundaries - asked == set()
    assert set(HOST.sources) - plain - asked == {"stream_source"}  # gives a DataFrame
