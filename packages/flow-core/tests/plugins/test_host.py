"""Finding plugins, what happens to broken ones, and looking things up by name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import flow_core as flow
from flow_core.errors import PluginError, UnknownOperatorError
from flow_core.plugins import (
    ConverterSpec,
    EngineSpec,
    OperatorSpec,
    PluginHost,
    SourceSpec,
    plugin_host,
)
from flow_testing import TIMEOUT_S

Install = Callable[..., Path]

GOOD = """
    from flow_core.plugins import OperatorSpec, hookimpl

    @hookimpl
    def flow_operators():
        yield OperatorSpec("{name}", "acme.operators:{name}")
"""


def problems(host: PluginHost) -> str:
    return "\n".join(map(str, host.problems))


# --- finding ------------------------------------------------------------------------------------


def test_the_core_registers_itself_under_its_distribution() -> None:
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "*"})
    (core,) = host.plugins
    assert (core.name, core.module, core.distribution) == (
        "core",
        "flow_core.plugins._builtin",
        "flow-core",
    )
    assert core.version is not None
    assert not host.problems


def test_a_distribution_is_found_by_its_entry_point(install: Install) -> None:
    install("acme-one", GOOD.format(name="one"), version="2.5", name="acme")
    found = PluginHost({}).operators["one"]
    assert found.spec == OperatorSpec("one", "acme.operators:one")
    assert (found.plugin.name, found.plugin.distribution, found.plugin.version) == (
        "acme",
        "acme-one",
        "2.5",
    )


def test_the_process_has_one_host_that_is_made_once() -> None:
    assert plugin_host() is plugin_host()


def test_a_plugin_may_ask_for_the_host_while_another_thread_makes_it(tmp_path: Path) -> None:
    modules = {
        "signals": "import threading; imported, looking = threading.Event(), threading.Event()",
        "first": "import signals; signals.looking.set()",
        "asking": """
            import flow_core, signals
            from flow_core.plugins import OperatorSpec, hookimpl

            signals.imported.set()
            assert signals.looking.wait(30)
            numbers = list(flow_core.from_([1, 2]))

            @hookimpl
            def flow_operators():
                yield OperatorSpec("late", "asking:late")
        """,
        "main": """
            import importlib, signals, sys, threading
            from flow_core.plugins import plugin_host

            threading.Thread(target=importlib.import_module, args=("asking",), daemon=True).start()
            assert signals.imported.wait(30)
            host = plugin_host()  # waits until the other thread has imported the plugin
            print("late" in host.operators, plugin_host() is host, sys.modules["asking"].numbers)
        """,
    }
    for name, code in modules.items():
        (tmp_path / f"{name}.py").write_text(dedent(code), "utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "main.py"],
        env={**os.environ, "FLOW_LOAD_PLUGINS": "first,asking", "FLOW_DISABLE_PLUGINS": "*"},
        capture_output=True,
        text=True,
        timeout=12 * TIMEOUT_S,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True True [1, 2]\n", "")


def test_a_module_that_is_loaded_by_name_changes_no_message(install: Install) -> None:
    install("acme-one", GOOD.format(name="one"))
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "*", "FLOW_LOAD_PLUGINS": "acme_one_plugin"})
    with pytest.raises(UnknownOperatorError, match="no operator 'mapp' is installed; did you mean"):
        host.operator("mapp")


@pytest.mark.parametrize(
    "value", ["*", "1", "acme-one", "Acme_One", " other , acme ", "acme_one_plugin"]
)
def test_plugins_can_be_disabled_by_entry_point_distribution_or_module(
    install: Install, value: str
) -> None:
    install("acme-one", GOOD.format(name="one"), name="acme")
    host = PluginHost({"FLOW_DISABLE_PLUGINS": value})
    assert "one" not in host.operators
    assert "map" in host.operators


def test_the_core_can_be_disabled_by_name_alone() -> None:
    assert "map" not in PluginHost({"FLOW_DISABLE_PLUGINS": "core,ops"}).operators


def test_a_module_without_an_entry_point_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loose_plugin.py").write_text(
        "from flow_core.plugins import OperatorSpec, hookimpl\n"
        "@hookimpl\n"
        "def flow_operators():\n"
        "    return [OperatorSpec('loose', 'loose_plugin:loose')]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    host = PluginHost({"FLOW_LOAD_PLUGINS": "loose_plugin", "FLOW_DISABLE_PLUGINS": "*"})
    found = host.operators["loose"]
    assert (found.plugin.name, found.plugin.distribution) == ("loose_plugin", None)
    monkeypatch.delitem(sys.modules, "loose_plugin")


def test_a_module_that_is_loaded_twice_counts_once(install: Install) -> None:
    install("acme-one", GOOD.format(name="one"))
    host = PluginHost({"FLOW_LOAD_PLUGINS": "acme_one_plugin,acme_one_plugin"})
    assert [plugin.module for plugin in host.plugins].count("acme_one_plugin") == 1
    assert "acme_one" not in problems(host)


# --- broken plugins -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise RuntimeError('boom')", "cannot be loaded: RuntimeError: boom"),
        ("import no_such_module_anywhere", "No module named 'no_such_module_anywhere'"),
        ("def broken(:", "cannot be loaded: SyntaxError"),
        ("import sys; sys.exit(3)", "cannot be loaded: SystemExit: 3"),
        ("", "registers nothing"),
        (
            "from flow_core.plugins import hookimpl; flow_operators = hookimpl(lambda config: [])",
            "Argument(s) {'config'} are declared in the hookimpl but can not be found",
        ),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_reported_and_left_out(
    install: Install, code: str, says: str
) -> None:
    install("acme-bad", code)
    install("acme-good", GOOD.format(name="good"))
    host = PluginHost({})
    assert "acme-bad 1.0" in problems(host)
    assert says in problems(host)
    assert "good" in host.operators


def test_a_plugin_whose_distribution_names_a_missing_module_is_reported(install: Install) -> None:
    site = install("acme-gone", "")
    (site / "acme_gone_plugin.py").unlink()
    assert "No module named 'acme_gone_plugin'" in problems(PluginHost({}))


def test_a_hook_that_fails_keeps_what_it_has_yielded(install: Install) -> None:
    install(
        "acme-half",
        """
        from flow_core.plugins import OperatorSpec, SourceSpec, hookimpl

        @hookimpl
        def flow_operators():
            yield OperatorSpec("before", "acme:before")
            raise ValueError("half way")

        @hookimpl
        def flow_sources():
            yield SourceSpec("spring", "acme:spring")
        """,
    )
    host = PluginHost({})
    assert "before" in host.operators
    assert "spring" in host.sources
    assert "flow_operators failed: ValueError: half way" in problems(host)


@pytest.mark.parametrize(
    ("hook", "record", "says"),
    [
        ("flow_operators", "'observe_on'", "flow_operators yielded 'observe_on'"),
        ("flow_operators", "SourceSpec('x', 'a:b')", "which is not of type OperatorSpec"),
        ("flow_operators", "OperatorSpec('Bad Name', 'a:b')", "'Bad Name' is not a name"),
        ("flow_operators", "OperatorSpec('x', 'a.b.c')", "'package.module:attribute'"),
        ("flow_converters", "ConverterSpec('x', 'a:b', accepts='C')", "does not name a class"),
        ("flow_translations", "TranslationSpec('x', 'a:b', template='C')", "name a template"),
        ("flow_operaters", "OperatorSpec('x', 'a:b')", "did you mean flow_operators?"),
    ],
)
def test_an_invalid_record_is_reported(install: Install, hook: str, record: str, says: str) -> None:
    install(
        "acme-odd",
        f"""
        from flow_core.plugins import (
            ConverterSpec, OperatorSpec, SourceSpec, TranslationSpec, hookimpl
        )

        @hookimpl
        def {hook}():
            yield {record}
        """,
    )
    assert says in problems(PluginHost({}))


def test_a_hook_may_return_a_list_or_none_but_nothing_else(install: Install) -> None:
    install(
        "acme-list",
        """
        from flow_core.plugins import OperatorSpec, hookimpl

        @hookimpl
        def flow_operators():
            return [OperatorSpec("listed", "acme:listed")]

        @hookimpl
        def flow_sources():
            return None

        @hookimpl
        def flow_sinks():
            return 42
        """,
    )
    host = PluginHost({})
    assert "listed" in host.operators
    assert problems(host).count("acme-list") == 2  # its name and its distribution, once
    assert "flow_sinks failed: PluginError: it returned 42" in problems(host)


def test_damaged_metadata_of_any_distribution_does_no_harm(install: Install) -> None:
    site = install("acme-good", GOOD.format(name="good"))
    (site / "acme_damaged-1.0.dist-info").mkdir()
    (site / "acme_damaged-1.0.dist-info" / "entry_points.txt").write_bytes(b"[flow\n\xff = x")
    assert "good" in PluginHost({}).operators


def test_names_that_clash_are_reported_with_both_distributions_and_the_first_counts(
    install: Install,
) -> None:
    install("acme-a", GOOD.format(name="twice"), version="1.1")
    install("acme-b", GOOD.format(name="twice"), version="2.2")
    host = PluginHost({})
    assert host.operators["twice"].plugin.distribution == "acme-a"
    assert "acme-a 1.1" in problems(host)
    assert "acme-b 2.2" in problems(host)
    assert "'twice'" in problems(host)
    assert "FLOW_DISABLE_PLUGINS=acme-a" in problems(host)
    without = PluginHost({"FLOW_DISABLE_PLUGINS": "acme-a"})
    assert without.operators["twice"].plugin.distribution == "acme-b"


def test_no_plugin_can_take_a_name_of_the_core(install: Install) -> None:
    install("aaa-first", GOOD.format(name="map"))
    host = PluginHost({})
    assert host.operators["map"].plugin.distribution == "flow-core"
    assert "operator 'map' is registered by flow-core" in problems(host)


def test_the_same_name_in_two_classes_is_not_a_clash(install: Install) -> None:
    install(
        "acme-both",
        """
        from flow_core.plugins import SinkSpec, OperatorSpec, hookimpl

        @hookimpl
        def flow_operators():
            yield OperatorSpec("both", "acme:both")

        @hookimpl
        def flow_sinks():
            yield SinkSpec("both", "acme:both")
        """,
    )
    host = PluginHost({})
    assert "both" in host.operators
    assert "both" in host.sinks
    assert "both" not in problems(host)


# --- looking up ---------------------------------------------------------------------------------


@pytest.fixture
def host() -> Iterator[PluginHost]:
    return PluginHost({"FLOW_DISABLE_PLUGINS": "*"})


def test_an_operator_and_a_source_are_made_by_name(host: PluginHost) -> None:
    numbers = host.source("range")(10)
    assert list(numbers.pipe(host.operator("skip")(7))) == [7, 8, 9]
    assert list(numbers.pipe(host.operator("buffer_with_count")(count=6))) == [
        [0, 1, 2, 3, 4, 5],
        [6, 7, 8, 9],
    ]


def test_an_unknown_name_comes_with_what_is_near(host: PluginHost) -> None:
    with pytest.raises(UnknownOperatorError, match=r"no operator 'fliter'.*did you mean 'filter'"):
        host.operator("fliter")


def test_an_unknown_name_comes_with_the_package_that_would_bring_it(host: PluginHost) -> None:
    with pytest.raises(UnknownOperatorError, match="pip install flow-ops"):
        host.operator("observe_on")
    with pytest.raises(UnknownOperatorError, match="'observe_on' of the package flow-ops"):
        host.operator("observ_on")


def test_an_unknown_name_of_an_installed_package_is_not_to_be_installed_again(
    install: Install,
) -> None:
    install("flow-ops", GOOD.format(name="one"), version="0.0.1")
    host = PluginHost({})
    with pytest.raises(UnknownOperatorError, match=r"the installed flow-ops [0-9.]+ has none$"):
        host.operator("debounce")
    with pytest.raises(UnknownOperatorError, match=r"'debonce' is installed; (?!.*debounce)"):
        host.operator("debonce")


def test_an_unknown_name_that_is_like_none_comes_with_all_there_are(host: PluginHost) -> None:
    with pytest.raises(UnknownOperatorError, match=r"no source 'qqq'.*there are: .*range"):
        host.source("qqq")
    with pytest.raises(UnknownOperatorError, match="no sink 'qqq' is installed; there are: print"):
        host.sink("qqq")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("no_such_module_anywhere:x", "ModuleNotFoundError"),
        ("flow_core:no_such_thing", "NoSuchNameError"),
        ("flow_core:UNBOUNDED", "cannot be called"),
    ],
)
def test_a_target_that_is_not_there_is_an_error_that_names_the_record(
    install: Install, target: str, says: str
) -> None:
    install("acme-lost", GOOD.format(name="lost").replace("acme.operators:lost", target))
    with pytest.raises(PluginError, match=f"operator 'lost'.*{says}"):
        PluginHost({}).operator("lost")


@pytest.mark.parametrize("value", [[1, 2], (n for n in (1, 2)), flow.just(1, 2)])
def test_converters_make_flows_of_what_they_accept(host: PluginHost, value: object) -> None:
    assert list(host.convert(value)) == [1, 2]


def test_the_converter_of_the_nearest_class_counts(install: Install) -> None:
    install(
        "acme-conv",
        """
        from flow_core.plugins import ConverterSpec, hookimpl
        import flow_core

        class Base(list): ...
        class Derived(Base): ...

        def convert(value):
            return flow_core.just("converted")

        @hookimpl
        def flow_converters():
            yield ConverterSpec("base", "acme_conv_plugin:convert", accepts=f"{__name__}:Base")
            yield ConverterSpec("away", "not.there:convert", accepts="not.there:Class")
        """,
    )
    host = PluginHost({})
    derived = sys.modules["acme_conv_plugin"].__dict__["Derived"]
    assert list(host.convert(derived())) == ["converted"]
    assert list(host.convert([7])) == [7]


def test_the_error_for_a_value_that_no_converter_accepts_lists_what_they_accept(
    host: PluginHost,
) -> None:
    with pytest.raises(UnknownOperatorError, match=r"Path.*collections.abc:Iterable"):
        host.convert(Path())


def test_records_are_frozen_values() -> None:
    spec = SourceSpec("a", "b:c", summary="x")
    assert spec == SourceSpec("a", "b:c", summary="x")
    assert hash(spec) == hash(SourceSpec("a", "b:c", summary="x"))
    with pytest.raises(AttributeError):
        spec.name = "other"  # type: ignore[misc]
    assert EngineSpec("local", "a:b").options == ()
    assert ConverterSpec("x", "a:b", accepts="c:D").accepts == "c:D"


def fifths(text: str) -> None:
    """Each ``fifth`` item.

    And more.
    """


fifths.__module__ = "acme.numbers"


def test_a_record_of_a_function_takes_name_place_and_summary_from_it() -> None:
    spec = SourceSpec.of(fifths, distributed=True)
    assert spec == SourceSpec(
        "fifths", "acme.numbers:fifths", summary="Each `fifth` item.", distributed=True
    )
    other = SourceSpec.of(fifths, name="other", target="a:b")
    assert (other.name, other.target, other.summary) == ("other", "a:b", spec.summary)
