"""The wheels, as they are installed here: what they carry and what they announce."""

from __future__ import annotations

from importlib.metadata import distribution, entry_points
from importlib.resources import files

import pytest

PLUGINS = ["flow-cli", "flow-core", "flow-multicast", "flow-ops", "flow-rxcompat", "flow-spark"]
PACKAGES = [*PLUGINS, "flow-testing"]

each_package = pytest.mark.parametrize("name", PACKAGES)


@each_package
def test_a_wheel_says_that_it_is_typed(name: str) -> None:
    assert (files(name.replace("-", "_")) / "py.typed").is_file()
    assert "Typing :: Typed" in distribution(name).metadata.get_all("Classifier", [])


@each_package
def test_a_wheel_holds_one_import_package_and_its_licence(name: str) -> None:
    paths = {str(path) for path in distribution(name).files or []}
    outside = {path for path in paths if ".dist-info/" not in path and not path.startswith("../")}
    assert {path.partition("/")[0] for path in outside} == {name.replace("-", "_")}
    assert any(path.endswith(".dist-info/licenses/LICENSE") for path in paths)


@each_package
def test_a_wheel_came_from_a_file_and_not_from_an_index(name: str) -> None:
    origin = distribution(name).read_text("direct_url.json") or ""
    assert "file://" in origin


@pytest.mark.parametrize("name", PLUGINS)
def test_the_plugin_of_a_wheel_is_registered_under_its_own_name(name: str) -> None:
    plugins = {point.name: point for point in entry_points(group="flow")}
    short = name.removeprefix("flow-")
    assert plugins[short].module.startswith(name.replace("-", "_") + ".")
    plugins[short].load()


def test_the_kit_brings_its_fixtures_to_pytest() -> None:
    (point,) = entry_points(group="pytest11", name="flow")
    assert point.load().__all__ == ["drops", "frequent_switches", "virtual_clock"]


def test_the_flow_command_has_two_names() -> None:
    for name in ("flow", "flow-cli"):  # the second one where another program has the first
        (command,) = entry_points(group="console_scripts", name=name)
        assert command.value == "flow_cli:main"
        assert callable(command.load())
