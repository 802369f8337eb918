"""Compare this library with RxJava 3 by random pipelines that both run.

python oracle/run.py                          20,000 pipelines
python oracle/run.py --examples 500           fewer
python oracle/run.py --only zip --only take   only with these operators and sources of flows
python oracle/run.py --seed 7                 other pipelines

The exit code is 0 if all pipelines agree, apart from the differences in docs/design/oracle.md; 1 if
one does not, if an operator was never drawn, or if fewer pipelines were drawn than requested; and
77 if the machine lacks a tool, which the output names.
"""

from __future__ import annotations

import argparse
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
    parser.add_argument("--examples", type=int, default=20_000, metavar="N", help="pipelines")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="selects them")
    parser.add_argument("--most", type=int, default=12, metavar="N", help="operators of each")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="see above")
    parser.add_argument(
        "--cache",
        type=Path,
        default=HERE.parent / ".nox" / ".cache" / "oracle",
        help="a folder for the jars and the compiled classes",
    )
    options = parser.parse_args()
    if options.examples < 1 or options.most < 0:
        parser.error("numbers must be at least 1")
    if missing := missing_tools():
        print(f"the oracle is skipped, this machine lacks: {', '.join(missing)}", file=sys.stderr)
        return SKIPPED

    # Import these only once the modules that they need are known to be installed.
    from flow_oracle import java, pipelines
    from flow_oracle.compare import Oracle
    from flow_oracle.report import Report
    from flow_oracle.sampling import sample
    from flow_oracle.strategies import NAMES, cases

    if unknown := set(options.only) - NAMES:
        parser.error(f"not known: {', '.join(sorted(unknown))}")
    try:
        toolchain = prepare(HERE, options.cache.resolve())
    except (MissingToolError, subprocess.CalledProcessError) as error:
        print(f"the oracle cannot be prepared: {error}", file=sys.stderr)
        return 1
    oracle = Oracle(pipelines.run, java.start(toolchain.classpath))
    wanted = frozenset(options.only)
    with Report(oracle, options.examples) as report:
        sample(cases(wanted, options.most), options.examples, options.seed, report.check)
    return report.conclude(NAMES if not wanted and options.examples >= 5000 else wanted)


if __name__ == "__main__":
    sys.exit(main())
