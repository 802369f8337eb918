"""Run the official TCK of Reactive Streams against this library, and compare test by test.

python tck/run.py                       everything, several subjects at a time
python tck/run.py --list                the subjects
python tck/run.py --only observe_on     the subjects with this in their names
python tck/run.py --repeat 10           ten times, to find occasional failures

The exit code is 0 if every test ended as expected, 1 if one did not or a registered operator has no
subject, and 77 if the machine lacks a tool, which the output names.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
SKIPPED: Final = 77

sys.path[:0] = [str(HERE), str(HERE.parent / "jvm")]

from flow_jvm import MissingToolError, missing_tools, prepare  # noqa: E402 - see above


def main() -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="name the subjects and stop")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a part of the subjects' names"
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="how often to run each")
    parser.add_argument(
        "--jobs",
        type=int,
        default=3 * (os.cpu_count() or 1),
        help="subjects at a time, each in a virtual machine; they wait most of the time",
    )
    parser.add_argument(
        "--timeout-ms", type=int, default=1000, help="how long the kit waits for a signal"
    )
    parser.add_argument(
        "--silence-ms", type=int, default=100, help="how long it waits to see that none comes"
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=HERE.parent / ".nox" / ".cache" / "tck",
        help="a folder for the jars and the compiled classes",
    )
    options = parser.parse_args()
    if min(options.repeat, options.jobs, options.timeout_ms, options.silence_ms) < 1:
        parser.error("numbers must be at least 1")
    if missing := missing_tools():
        print(f"the kit is skipped, this machine lacks: {', '.join(missing)}", file=sys.stderr)
        return SKIPPED

    # Import these only once the modules that they need are known to be installed.
    from flow_tck.report import Report
    from flow_tck.subjects import subjects, uncovered
    from flow_tck.workers import verify

    chosen = {
        name: subject
        for name, subject in subjects().items()
        if not options.only or any(part in name for part in options.only)
    }
    if not chosen:
        parser.error(f"no subject has {' or '.join(map(repr, options.only))} in its name")
    if options.list:
        print(*chosen, sep="\n")
        return 0
    try:
        toolchain = prepare(HERE, options.cache.resolve())
    except (MissingToolError, subprocess.CalledProcessError) as error:
        print(f"the kit cannot be prepared: {error}", file=sys.stderr)
        return 1
    with Report(chosen, options.repeat) as report:
        verify(
            [*chosen] * options.repeat,
            toolchain.classpath,
            (options.timeout_ms, options.silence_ms),
            min(options.jobs, len(chosen) * options.repeat),
            report,
        )
    return report.conclude([] if options.only else uncovered())


if __name__ == "__main__":
    sys.exit(main())
