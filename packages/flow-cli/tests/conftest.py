"""Fixtures of every test of the command: no plugin but the core's and this package's."""

from __future__ import annotations

import pytest

from flow_core.plugins import PluginHost
from flow_testing import Drops

ALONE = {"FLOW_DISABLE_PLUGINS": "*", "FLOW_LOAD_PLUGINS": "flow_cli._plugin"}


@pytest.fixture(autouse=True)
def no_error_is_dropped_unseen(drops: Drops) -> None:
    """An error that reaches the hooks fails the test that does not take it out of `drops`."""


@pytest.fixture(autouse=True)
def no_other_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide all other plugins that are installed; in processes that the test starts, too."""
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FLOW_DEBUG", raising=False)
    monkeypatch.setattr("flow_core.plugins.host._host", PluginHost(ALONE))
