"""The testing kit is a package of its own: `flow_testing`, of the distribution ``flow-testing``."""

from typing import TYPE_CHECKING

from flow_core.errors import no_such_name

if not TYPE_CHECKING:  # for whom anything would be an attribute then

    def __getattr__(name: str) -> object:
        no_such_name(__name__, name)
