"""Ways out of what is wrong with a cluster's Python, found in what a failed job says."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Final

from flow_spark.pickling.failures import text_of
from flow_spark.pickling.modules import SHIPPED, importable

__all__ = ["short", "way_out"]

_SET: Final = (
    "set the environment variable PYSPARK_PYTHON to it before the session is made (of a Spark "
    "Connect server: before the server is started)"
)


def short(error: BaseException) -> str:
    """The lines of `error` without stacks, and what to do if they show it."""
    text = text_of(error)  # one of Java is asked in the JVM, which may have ended
    # The frames of a Python worker are indented; what it raised, below them, is not.
    kept = [
        line
        for line in text.splitlines()
        if not line.lstrip().startswith(("at ", "...")) and line[:2] != "  "
    ]
    told = "\n".join(kept[:12]).strip() or type(error).__name__
    advice = way_out(text)
    return told if advice is None else f"{told}\nThe way out: {advice}"


def way_out(text: str) -> str | None:
    """What a user can do about an error.

    Args:
        text: all that Spark says of it.

    Returns:
        The cause and the way out, in plain words; None if `text` does not tell.
    """
    for pattern, say in _KNOWN:
        found = re.search(pattern, text)
        if found is not None:
            return say(found)
    return None


def _other_version(found: re.Match[str]) -> str:
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"this process runs Python {mine}, and the executors run Python {found[1]}; functions that "
        "one version pickles are of no use to another one. Install Python "
        f"{mine} with the same packages on the executors, and {_SET}; or run this process with "
        f"Python {found[1]}."
    )


def _no_package_of_ours(found: re.Match[str]) -> str:
    return (
        f"the executors' Python has no {found[1]}. A session that is made by "
        "flow_spark.session(master) brings it along; to one that was made elsewhere, install "
        f"{found[1].replace('_', '-')} in the Python of the executors, and {_SET}."
    )


def _no_package(found: re.Match[str]) -> str:
    module = sys.modules.get(found[1])
    if module is not None and not importable(module):
        return (
            f"the executors' Python has no {found[1]}, a module of this program that is not "
            "installed. Such modules are sent along if a function refers to them as globals, and "
            "if all that they hold can be pickled. Do so, or send the file: "
            "spark.addArtifacts(path, pyfile=True), or install it there."
        )
    return (
        f"the executors' Python has no {found[1]}. Install flow-spark there, with all that it "
        "needs, and what the functions of the flow import; or if another Python on their machines "
        f"has it, {_SET}."
    )


def _no_program(found: re.Match[str]) -> str:
    return (
        f"the executors have no program {found[1]}. PYSPARK_PYTHON says which Python they are to "
        "run, and without it they are asked for the one of this process, by its path here. Find "
        f"a Python {sys.version_info.major}.{sys.version_info.minor} that is on all of their "
        f"machines, and {_SET}."
    )


_KNOWN: Final[tuple[tuple[str, Callable[[re.Match[str]], str]], ...]] = (
    (r"Python in worker has different version: (\d+\.\d+)", _other_version),
    (rf"No module named '({'|'.join(SHIPPED)})\b", _no_package_of_ours),
    (r"No module named '(\w+)", _no_package),
    (r"PACKAGE_NOT_INSTALLED\] (\w+)", _no_package),
    (r'Cannot run program "([^"]+)"', _no_program),
)
