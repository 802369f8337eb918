"""What all tests share: the Python blocks of the docs are tests, too; marks that skip."""

import signal
import sys
from importlib.util import find_spec

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is in what a shell starts in the background. Tests send Ctrl-C, to themselves as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Only nox's `examples` session installs Sybil: a package's own tests have no need of it.
if find_spec("sybil"):
    from sybil import Sybil
    from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

    pytest_collect_file = Sybil(
        parsers=[PythonCodeBlockParser(), SkipParser()],
        pattern="*.md",
    ).pytest()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Skip tests that explore interleavings where Python cannot."""
    if sys.version_info < (3, 12) and item.get_closest_marker("interleave"):
        item.add_marker(pytest.mark.skip(reason="needs sys.monitoring, which Python 3.12 brings"))
