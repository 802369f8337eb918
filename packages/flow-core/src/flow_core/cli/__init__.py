"""The `flow` command: what is installed, run a flow, and see how a flow is put together.

`flow_core.cli.explain` draws a flow for programs and documents.
"""

from flow_core.cli._main import main

__all__ = ["main"]
