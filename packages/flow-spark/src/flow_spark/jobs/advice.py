"""Ways out of problems with a cluster's Python, found by the text of a failed job."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable
from typing import Final

from flow_spark.errors import SparkJobError
from flow_spark.jobs.redaction import redacted
from flow_spark.pickling.failures import text_of
from flow_spark.pickling.modules import SHIPPED, importable

__all__ = ["INSTALL_CONNECT", "SAYS", "other_version", "short", "way_out"]

_SET: Final = (
    "set the environment variable PYSPARK_PYTHON to it before the session is made (of a Spark "
    "Connect server: before the server is started)"
)


INSTALL_CONNECT: Final = "pip install 'flow-spark[connect]'" + (
    ", which builds zstandard, for there is no wheel of it for Python 3.15 yet: that needs a C "
    "compiler and Python's header files"
    if sys.version_info >= (3, 15)
    else ""
)
"""The way to install what a client of Spark Connect needs."""

SAYS: Final = "Spark says: "
"""Stands before Spark's own text, if another text comes first."""

_TRACEBACK: Final = "Traceback (most recent call last):"
_STACK: Final = re.compile(r"\s+at |\s*\.\.\.|  ")
"""The beginnings of the lines of stacks; the lines of an error and of its notes begin
differently."""
_WAY_OUT: Final = "The way out: "
_STACK_OR_WAY_OUT: Final = re.compile(rf"{_STACK.pattern}|{_WAY_OUT}")
_OF_GRPC: Final = re.compile(
    r'<_\w+ of RPC that terminated with:.*?details = "(.*?)"\n.*?>', re.DOTALL
)
"""gRPC's text for a call that has failed, with the reason."""
_STUMP: Final = re.compile(r"\n\s*JVM stacktrace:\n.*", re.DOTALL)
"""The text that PySpark puts behind that of a Spark Connect server."""
_BEHIND: Final = ("Driver stacktrace:", "Caused by: ", " SQLSTATE: ", "=== ", SAYS)
_OURS: Final = f"{SparkJobError.__module__}.{SparkJobError.__qualname__}: "


def short(error: BaseException) -> str:
    """Return the text of `error`, without stacks and secrets.

    First comes the error of Python in a task, with the notes on its place; then the way out, if it
    is known; then Spark's own text.
    """
    # The text of a Java error comes from the JVM, which may have ended.
    text = text_of(error)
    advice = way_out(text)
    text = _STUMP.sub("", _OF_GRPC.sub(r"\1", text))
    # A process of the cluster that reports an error has added its own way out.
    left_out = _STACK if advice is None else _STACK_OR_WAY_OUT
    raised, said = _divided([line for line in text.splitlines() if not left_out.match(line)])
    told = ["\n".join(raised[:12]).strip()] if raised else []
    own = "\n".join(said[:12]).strip().removesuffix("Driver stacktrace:").strip()
    told += [f"{SAYS}{own}"] if raised and own else [own or type(error).__name__]
    if advice is not None:
        told.insert(1, f"{_WAY_OUT}{advice}")
    return redacted("\n".join(told))


def _divided(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return the text of an error of Python, if there is one, and the rest."""
    traces = [at for at, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    if not traces:
        return [], lines
    first, last = traces[0], traces[-1]
    raised = list(itertools.takewhile(lambda line: not line.startswith(_BEHIND), lines[last + 1 :]))
    raised[:1] = [line.removeprefix(_OURS) for line in raised[:1]]  # it reports another one
    said = (line.removesuffix(_TRACEBACK).strip(": ") for line in lines[: first + 1])
    return raised, list(filter(None, said))


def way_out(text: str) -> str | None:
    """Return what a user can do about an error.

    Args:
        text: Spark's whole text.

    Returns:
        The cause and the way out, in plain words; None if `text` does not show it.
    """
    for pattern, say in _KNOWN:
        found = re.search(pattern, text)
        if found is not None:
            return say(found)
    return None


def other_version(found: str) -> str:
    """Return the text for executors whose Python is `found`, other than that of this process."""
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"this process runs Python {mine}, and the executors run Python {found}; functions that "
        "one version pickles are of no use to another one. Install Python "
        f"{mine} with the same packages on the executors, and {_SET}; or run this process with "
        f"Python {found}."
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


_AWAY: Final = (
    "the Spark Connect server has ended, or cannot be reached any more. When it runs again, open "
    "a new session: the one that was open ended with it. A stream continues from its checkpoint."
)
_NOT_BEGUN: Final = (
    "a Python process of the cluster has ended before it began to work, and the log of its machine "
    "has what it printed. On a Spark Connect server streams need the packages of a client: install "
    "flow-spark[connect] in the Python of the server."
)
_CANCELLED: Final = (
    "it was cancelled: by interruptAll(), interruptTag(), cancelJobsWithTag() or the like of "
    "this session, or a user of Spark's web page. Run the flow again."
)
_CLOSED: Final = (
    "the session has ended on the Spark Connect server: it was stopped there, it was idle "
    "for an hour, or the server was restarted. Open a new session. A stream continues from its "
    "checkpoint."
)
_TOO_LARGE: Final = (
    "a message to a Spark Connect server holds 128 MB, and the functions of a flow travel in one "
    "with all that they refer to. Let them read large values there, from a file or a table, "
    "instead of taking them along; on_spark(spool=…) sends many items through files."
)

_KNOWN: Final[tuple[tuple[str, Callable[[re.Match[str]], str]], ...]] = (
    (r"Python in worker has different version: (\d+\.\d+)", lambda found: other_version(found[1])),
    (rf"No module named '({'|'.join(SHIPPED)})\b", _no_package_of_ours),
    (r"No module named '(\w+)", _no_package),
    (r"PACKAGE_NOT_INSTALLED\] (\w+)", _no_package),
    (r'Cannot run program "([^"]+)"', _no_program),
    (r"Python worker failed to connect back", lambda _: _NOT_BEGUN),
    (r"StatusCode\.UNAVAILABLE", lambda _: _AWAY),
    (r"OPERATION_CANCELED|SPARK_JOB_CANCELLED", lambda _: _CANCELLED),
    (r"NO_ACTIVE_SESSION|INVALID_HANDLE\.SESSION", lambda _: _CLOSED),
    (r"(?i)sent message larger than max|RESOURCE_EXHAUSTED", lambda _: _TOO_LARGE),
)
