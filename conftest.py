"""Run the Python blocks of the README, the docs and the examples as tests."""

from importlib.util import find_spec

# Only nox's `examples` session installs Sybil: a package's own tests have no need of it.
if find_spec("sybil"):
    from sybil import Sybil
    from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

    pytest_collect_file = Sybil(
        parsers=[PythonCodeBlockParser(), SkipParser()],
        pattern="*.md",
    ).pytest()
