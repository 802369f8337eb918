"""``python -m flow_cli``: the `flow` command without its script."""

import sys

from flow_cli import main

if __name__ == "__main__":
    sys.exit(main())
