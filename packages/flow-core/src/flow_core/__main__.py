"""``python -m flow_core``: names the command, and the package that brings it."""

import sys

from flow_core import hints

if __name__ == "__main__":
    sys.exit(f"flow-core has no command: it is {hints.command()}")
