"""``python -m flow_core``: says what the command is, and which package brings it."""

import sys

from flow_core import hints

if __name__ == "__main__":
    sys.exit(f"flow-core has no command: it is {hints.command()}")
