"""Gather the pages of the site from where they are, and write those of the reference.

    python docs/site/pages.py FOLDER    write what Sphinx reads into FOLDER

A page stays where it is read in the repository. Here it gets a description and a place in the menu,
and its links lead to pages of the site. Operators, sources and modules get their pages from the
registry and from docstrings.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

from reference import PACKAGES, entries, entry_pages, front, module_pages

from flow_core.plugins import PluginHost

ROOT: Final = Path(__file__).parents[2]

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "Begin": ("README.md",),
        "Tutorials": (
            "docs/tutorials/first-flow.md",
            "docs/tutorials/event-loop.md",
            "docs/tutorials/threads.md",
            "docs/tutorials/many-subscribers.md",
            "docs/tutorials/spark.md",
            "docs/tutorials/testing.md",
            "docs/tutorials/plugin.md",
        ),
        "How to": (
            "docs/recipes.md",
            "docs/how-to.md",
            "docs/asyncio.md",
            "docs/web.md",
            "docs/cores.md",
            "docs/short-flows.md",
            "docs/testing.md",
            "docs/debugging.md",
            "docs/pipelines.md",
            "docs/writing-a-stage.md",
            "docs/plugins.md",
            "examples/plugin/README.md",
        ),
        "Coming from": (
            "docs/migration.md",
            "docs/rxpy.md",
            "docs/coming-from/reactor.md",
            "docs/coming-from/streamable.md",
            "docs/coming-from/asyncio.md",
            "docs/coming-from/kafka-streams.md",
        ),
        "Packages": (
            "packages/flow-core/README.md",
            "packages/flow-ops/README.md",
            "packages/flow-multicast/README.md",
            "packages/flow-spark/README.md",
            "packages/flow-rxcompat/README.md",
            "packages/flow-testing/README.md",
            "packages/flow-cli/README.md",
        ),
        "Reference": (
            "docs/operators.md",
            "docs/rules.md",
            "docs/fusion-matrix.md",
            "docs/messages.md",
            "docs/spark-types.md",
            "docs/support.md",
            "SECURITY.md",
        ),
        "Explanation": (
            "docs/how-an-item-travels.md",
            "docs/glossary.md",
            "docs/benchmarks/README.md",
            "docs/benchmarks/details.md",
            "benchmarks/README.md",
            "docs/design/README.md",
            "CONTRIBUTING.md",
        ),
    }
)
"""The pages of the menu, by the path that they have in the repository."""

TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {"README.md": "A tour in five minutes", "examples/plugin/README.md": "A plugin, to copy"}
)
"""Titles for the menu, where the title of the page says too little."""

FIRST: Final = "docs/site/index.md"
"""The page that a reader sees first."""

NOT_HERE: Final = frozenset({"docs/README.md"})
"""Pages that say what the menu says; links to them lead to the first page."""

_FENCE: Final = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`[^`\n]+`")
_LINK: Final = re.compile(r"(\]\()([^)\s#]*)(#[^)\s]*)?(\))")
_COMMENT: Final = re.compile(r"<!--.*?-->\n?", re.DOTALL)


class PageError(Exception):
    """A page or a link that cannot be part of the site; the message names it."""


def gather(folder: Path) -> None:
    """Write everything that Sphinx reads into `folder`.

    Raises:
        PageError: if a page is not in the menu, or a link leads nowhere.
    """
    places = _places()
    for path, place in places.items():
        text = (ROOT / path).read_text("utf-8")
        made = _described(path, linked(text, path, place, places, folder))
        if path == FIRST:
            made += _menu(places)
            made += _toctree("API", [f"api/{name}" for name in PACKAGES])
        if path == "docs/design/README.md":
            made += _toctree("", [f"{PurePosixPath(p).stem}" for p in _design()])
        _write(folder / place, made)
    found = entries(PluginHost({}))
    for place, text in [*entry_pages(found), *module_pages(found)]:
        _write(folder / place, text)
    shutil.copytree(ROOT / "docs/site/static", folder / "static", dirs_exist_ok=True)


def _design() -> list[str]:
    return sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "docs/design").glob("*.md")
        if path.name != "README.md"
    )


def _places() -> dict[str, str]:
    """Return where each page of the repository is on the site."""
    listed = [FIRST, *(path for paths in SECTIONS.values() for path in paths), *_design()]
    found = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("**/*.md")}
    if left := sorted(found - set(listed) - NOT_HERE):
        raise PageError(f"not in the menu of docs/site/pages.py: {', '.join(left)}")
    return {path: _place(path) for path in listed}


def _place(path: str) -> str:
    if path == "README.md":
        return "tour.md"
    if path == FIRST:
        return "index.md"
    folder, name = os.path.split(path.removeprefix("docs/"))
    if name == "README.md":
        return f"{folder}/index.md" if path.startswith("docs/") else f"{folder}.md"
    return name.lower() if not folder else path.removeprefix("docs/")


def linked(
    text: str, path: str, place: str, places: Mapping[str, str], folder: Path | None = None
) -> str:
    """Return `text` with links that lead to pages of the site.

    Args:
        text: a page.
        path: where it is in the repository.
        place: where it is on the site.
        places: where each page is.
        folder: where files go that are no pages, such as pictures; None for nowhere.

    Raises:
        PageError: if a link leads nowhere.
    """

    def replaced(found: re.Match[str]) -> str:
        start, target, anchor, end = found.groups()
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        to = os.path.normpath(PurePosixPath(path).parent / target)
        if (ROOT / to).is_dir():
            to = f"{to}/README.md"
        if to in NOT_HERE:
            to = FIRST
        if not (ROOT / to).is_file():
            raise PageError(f"{path}: a link leads to {target}, which is not there")
        new = places.get(to)
        if new is None:
            new = f"files/{to}"
            if folder is not None:
                (folder / new).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / to, folder / new)
        return f"{start}{os.path.relpath(new, PurePosixPath(place).parent)}{anchor or ''}{end}"

    return _outside_code(lambda part: _LINK.sub(replaced, part), _COMMENT.sub("", text))


def _outside_code(change: Callable[[str], str], text: str) -> str:
    parts: list[str] = []
    position = 0
    for found in _FENCE.finditer(text):
        parts += [_outside_spans(change, text[position : found.start()]), found[0]]
        position = found.end()
    return "".join([*parts, _outside_spans(change, text[position:])])


def _outside_spans(change: Callable[[str], str], text: str) -> str:
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found[0])
        return f"\0{len(held) - 1}\0"

    changed = change(_CODE.sub(hold, text))
    return re.sub("\0([0-9]+)\0", lambda found: held[int(found[1])], changed)


def _described(path: str, text: str) -> str:
    """Return a page with its description, the first sentence of its text."""
    for paragraph in _paragraphs(text):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = re.sub(r"[*`_]", "", " ".join(plain.split()))
        first = re.split(r"(?<=[.:])\s", plain, maxsplit=1)[0].rstrip(":")
        return front(first, in_menu=True) + text
    raise PageError(f"{path}: has no sentence that could describe it")


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in _FENCE.sub("", text).split("\n\n"):
        if paragraph.strip() and paragraph.lstrip()[0] not in "#|<-*:(":
            yield paragraph


def _menu(places: Mapping[str, str]) -> str:
    return "".join(
        _toctree(caption, [_entry(path, places[path]) for path in paths])
        for caption, paths in SECTIONS.items()
    )


def _entry(path: str, place: str) -> str:
    name = place.removesuffix(".md")
    return f"{TITLES[path]} <{name}>" if path in TITLES else name


def _toctree(caption: str, names: list[str]) -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["\n```{toctree}", *options, "", *names, "```\n"])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def main() -> None:
    """Write the pages into the folder that the command names."""
    try:
        gather(Path(sys.argv[1]))
    except PageError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
