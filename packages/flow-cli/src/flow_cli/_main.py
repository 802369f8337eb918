"""The entry point of the `flow` command: its arguments, exit codes and last messages."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from flow_cli import _run
from flow_cli._arguments import Parser
from flow_cli._errors import UsageError, describe_error, unknown_operator
from flow_cli._run import FAILED
from flow_cli._stopping import Stopped, stoppable
from flow_core.errors import PluginError, UnknownOperatorError
from flow_core.shutdown import LIMIT_S

__all__ = ["main"]

USAGE: Final = 2
BROKEN_PIPE: Final = 128 + 13

_TARGET_HELP: Final = (
    "path/to/file.py:NAME or module:NAME, where NAME is a Flow or a function; "
    "or a pipeline: path/to/file.toml"
)
_EPILOG: Final = """\
exit codes: 0 done, 1 the flow failed, 2 the command cannot be understood or its target not be
loaded, 128 + n stopped by signal n (Ctrl-C: 130)"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the `flow` command.

    Args:
        argv: the arguments of the command. Without it, those of the process are used, and the
            process is expected to end with the result: threads that a signal does not stop within
            two seconds are then ended by force.

    Returns:
        The exit code: 0 if all is done, 1 if the flow has failed, 2 for wrong usage, 128 + n if
        signal n stopped it.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    cut = given.index("--") if "--" in given else len(given)
    own, for_target = given[:cut], given[cut + 1 :]
    debug = os.environ.get("FLOW_DEBUG", "") not in ("", "0") or "--debug" in own
    with stoppable(forced=argv is None) as stop:
        try:
            options = _parsed(own)
            if options.command == "plugins":
                from flow_cli._listing import list_plugins

                if not list_plugins(options.words, as_json=options.json, check=options.check):
                    return FAILED
            elif options.command == "help":
                from flow_cli._listing import draw, show

                if options.picture is None:
                    show(options.name)
                else:
                    draw(options.name, options.picture)
            elif options.command == "explain":
                _run.explain_target(options, for_target, stop)
            else:
                _run.run_target(options, for_target, stop)
            sys.stdout.flush()
        except Stopped as stopped:
            return _stopped(stopped.exit_code)
        except KeyboardInterrupt:
            return _stopped(130)
        except BrokenPipeError:
            # The reader has closed the output. Nothing more can be written, at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        except (UsageError, PluginError, UnknownOperatorError) as error:
            return _report(own, [str(error)], error, debug, USAGE)
        except Exception as error:
            unknown = unknown_operator(error)
            lines = describe_error(error)
            if unknown is not None:
                return _report(own, [unknown, *lines[1:]], error, debug, USAGE)
            return _report(own, lines, error, debug, FAILED)
        except SystemExit as leaving:  # --help, or the user's own
            if leaving.code is None or isinstance(leaving.code, int):
                return leaving.code or 0
            return _report(own, [str(leaving.code)], leaving, debug, FAILED)
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="flow",
        description="Run flows, see how they are put together, and list what is installed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"flow-core {_version()}")
    common = Parser(add_help=False)
    common.add_argument(
        "--debug", action="store_true", help="show tracebacks, as FLOW_DEBUG=1 does"
    )
    placed = Parser(add_help=False)
    placed.add_argument("target", metavar="TARGET", help=_TARGET_HELP)
    placed.add_argument(
        "--on", metavar="ENGINE", help="where to run it: an engine's name (default: local)"
    )
    placed.add_argument("--master", metavar="URL", help="the master of the engine's cluster")
    placed.add_argument("--remote", metavar="URL", help="the server that keeps the session")
    placed.add_argument(
        "--spool", metavar="FOLDER", help="where this process and the cluster share files"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    listing = commands.add_parser(
        "plugins",
        parents=[common],
        help="what is installed, by distribution",
        description="List operators, sources, sinks, engines and converters by distribution.",
        allow_abbrev=False,
    )
    listing.add_argument(
        "words", metavar="WORD", nargs="*", help="only what has this in its name or its summary"
    )
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.add_argument(
        "--check", action="store_true", help="load everything, and fail if something cannot be"
    )
    helping = commands.add_parser(
        "help",
        parents=[common],
        help="what an operator, source or sink does, with an example",
        description="Show one operator, source or sink: how it is called, and what it does.",
        allow_abbrev=False,
    )
    helping.add_argument("name", metavar="NAME", help="its name, also that of another library")
    helping.add_argument(
        "--picture",
        metavar="FILE",
        nargs="?",
        const="",
        help="write its marble diagram to an SVG file, NAME.svg if you do not say another",
    )
    run = commands.add_parser(
        "run",
        parents=[common, placed],
        help="run a flow and print its items",
        usage="flow run TARGET [--on ENGINE] [--master URL] [--remote URL] [--spool FOLDER] "
        "[--limit N] [--brief] [--drain SECONDS] [-- --name value ...]",
        description="Run a Flow and print its items, or call a function. A function whose first "
        "parameter is annotated Engine gets the engine; what follows `--` are its other "
        "parameters. A flow that it returns is run and printed. A pipeline in TOML is run into its "
        "sink, or printed; what follows `--` are its parameters.",
        allow_abbrev=False,
    )
    run.add_argument(
        "--limit", metavar="N", type=_count, help="stop after N items; implies --brief"
    )
    run.add_argument(
        "--drain",
        metavar="SECONDS",
        type=_seconds,
        default=LIMIT_S,
        help="how long what is on its way may take to end after SIGTERM, in this process "
        f"(default: {LIMIT_S:g}; 0: stop at once)",
    )
    run.add_argument(
        "--brief", action="store_true", help="little is to run: start sooner, and run slower"
    )
    explain = commands.add_parser(
        "explain",
        parents=[common, placed],
        help="show a flow's sources, loops and boundaries",
        usage="flow explain TARGET [--format FORMAT] [--source] [--plan] [--on ENGINE] "
        "[--master URL] [--remote URL] [--spool FOLDER] [-- --name value ...]",
        description="Show a Flow, or what a function returns, without running it: its sources, "
        "which stages are compiled into which loop, and the boundaries between loops.",
        allow_abbrev=False,
    )
    explain.add_argument(
        "--format",
        choices=("text", "mermaid", "svg", "json"),
        default="text",
        help="text, mermaid (for Markdown), svg (a picture) or json (for programs)",
    )
    explain.add_argument("--source", action="store_true", help="show the generated loops' code")
    explain.add_argument(
        "--plan", action="store_true", help="show the engine's own plan of what it runs"
    )
    return parser


def _parsed(own: list[str]) -> argparse.Namespace:
    options, unknown = _parser().parse_known_args(own)
    if unknown:
        hint = ""
        if getattr(options, "target", None) is not None:
            hint = f"; options of {options.target} itself come after `--`"
        raise UsageError(f"flow {options.command} takes no {unknown[0]}{hint}")
    return options


def _count(text: str) -> int:
    count = int(text) if text.isdecimal() else -1
    if count < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of items, 0 or more")
    return count


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        seconds = float(text)
        if 0 <= seconds < math.inf:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, 0 or more")


def _version() -> str:
    try:
        return version("flow-core")
    except PackageNotFoundError:
        return "(not installed)"


def _report(
    own: Sequence[str], lines: Sequence[str], error: BaseException, debug: bool, code: int
) -> int:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, soft_wrap=True)
    if debug:
        console.print(Text("".join(traceback.format_exception(error)).rstrip()))
    command = own[0] if own and not own[0].startswith("-") else ""
    head = Text(f"flow {command}".strip() + ": ", style="bold red")
    console.print(head + Text(lines[0], style="not bold default"))
    for line in lines[1:]:
        console.print(Text(f"  {line}"))
    return code


def _stopped(code: int) -> int:
    os.write(2, b"flow: stopped\n")
    return code
