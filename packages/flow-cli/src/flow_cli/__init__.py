"""The `flow` command: what is installed, run a flow, and see how a flow is put together.

`flow_cli.explain` draws a flow for programs and documents, `flow_cli.pipelines` loads flows that
are written as TOML, and `flow_cli.progress` shows how far a flow is.
"""

from flow_cli._main import main

__all__ = ["main"]
