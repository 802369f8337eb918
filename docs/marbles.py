"""Draw the marble diagrams of operators and sources, each from a run on a virtual clock.

    python docs/marbles.py            write docs/marbles
    python docs/marbles.py --check    fail if a picture is not what would be drawn

What a picture shows is in flow-testing: `flow_testing/pictures/scenes.toml`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from flow_core.plugins import PluginHost
from flow_testing.pictures import picture, scenes, without

FOLDER: Final = Path(__file__).parent / "marbles"

COMMAND: Final = "run: python docs/marbles.py"


def problems(folder: Path = FOLDER) -> Iterator[str]:
    """Yield what is wrong: pictures that differ, and names without a picture or a reason."""
    host = PluginHost({})
    known = {*host.operators, *host.sources, *host.sinks}
    said = {*scenes(), *without()}
    for name in sorted(known - said):
        yield f"{name}: has no picture, and scenes.toml does not say why"
    for name in sorted(said - known):
        yield f"{name}: is in scenes.toml, and the registry does not know it"
    for name in sorted({*scenes(), *(path.stem for path in folder.glob("*.svg"))}):
        path = folder / f"{name}.svg"
        if name not in scenes():
            yield f"{path.name}: shows an operator that has no scene; {COMMAND}"
        elif not path.exists() or path.read_text("utf-8") != picture(name).svg:
            yield f"{path.name}: is not what a run of {name} draws; {COMMAND}"


def write(folder: Path = FOLDER) -> None:
    """Draw all pictures."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.svg"):
        path.unlink()
    for name in scenes():
        (folder / f"{name}.svg").write_text(picture(name).svg, "utf-8", newline="\n")


def main() -> None:
    """Write the pictures, or check those that are there."""
    if sys.argv[1:] != ["--check"]:
        write()
    if found := list(problems()):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
