"""A name that is missing is an error that says more; on each Python, and with the core alone."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

import flow_core
from flow_core import NoSuchNameError, hints

FLOW = flow_core.range(3)


def test_a_from_import_says_what_a_name_is_here() -> None:
    with pytest.raises(
        ImportError, match=r"^flow_core has no 'Observable'; here it is flow_core.F"
    ):
        from flow_core import Observable  # type: ignore[attr-defined]  # noqa: F401
    assert not hasattr(flow_core, "Observable")


def test_submodules_are_imported_as_ever() -> None:
    code = "from flow_core import backoff, counting; import flow_core.sinks as s; print(s.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "flow_core.sinks"


@pytest.mark.slow
@pytest.mark.parametrize("line", ["flow.range(3).chunk", "flow.chunk", "flow.range(3).zip_with"])
def test_python_suggests_no_other_name(line: str) -> None:
    code = f"import flow_core as flow\n{line}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert "Did you mean" not in done.stderr
    assert "or buffer_with_count(count)" in last or "instead: zip(*others)" in last


def test_the_text_is_made_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "hint", None)
    assert not hasattr(FLOW, "chunk")
    assert not hasattr(flow_core, "chunk")
    assert getattr(FLOW, "chunk", "none") == "none"


def test_private_names_get_a_plain_attribute_error() -> None:
    for owner in (FLOW, flow_core):
        with pytest.raises(AttributeError) as caught:
            owner._chunk  # type: ignore[union-attr]  # noqa: B018
        assert not isinstance(caught.value, NoSuchNameError)
    assert list(copy.copy(FLOW)) == [0, 1, 2]


def test_the_error_can_be_sent() -> None:
    sent = pickle.loads(pickle.dumps(NoSuchNameError("Flow", "chunk")))
    assert str(sent).startswith("Flow has no 'chunk'; here it is batch()")


def test_completion_shows_nothing_that_only_engines_ask_for() -> None:
    public = {name for name in dir(FLOW) if not name.startswith("_")}
    assert not public & {"boundary", "called", "moved", "source", "stages", "then"}
