"""``python -m flow_core.cli``: the `flow` command without its script."""

import sys

from flow_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
