"""Check the site that was built: links, descriptions, and that it asks no other host for anything.

python docs/site/check.py FOLDER [AGAIN]    print what is wrong, as page: problem, and fail if
                                            anything is; AGAIN is the site, built again
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_LOADED: Final = {"img": "src", "script": "src", "link": "href", "iframe": "src", "object": "data"}
"""The attributes that make a browser load something, by tag."""

_MADE: Final = frozenset({"genindex.html", "py-modindex.html", "search.html"})
"""Pages that Sphinx makes, without a description."""


class Page(HTMLParser):
    """The anchors, links and loaded files of a page, and its description."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.description = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in a tag."""
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "meta" and values.get("name") == "description":
            self.description = values.get("content", "")
        elif tag in _LOADED and _LOADED[tag] in values:
            self.loaded.append(values[_LOADED[tag]])


def problems(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the site in `folder`."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in folder.glob("**/*.html")}
    for path, page in sorted(pages.items()):
        name = path.relative_to(folder.resolve())
        if not page.description and str(name) not in _MADE:
            yield f"{name}: has no description"
        yield from (f"{name}: loads {it}" for it in page.loaded if urlsplit(it).netloc)
        for link in dict.fromkeys([*page.links, *page.loaded]):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not to.is_file():
                yield f"{name}: a link leads to {link}, which is not there"
            elif parts.fragment and to in pages and parts.fragment not in pages[to].anchors:
                yield f"{name}: a link leads to {link}, and that page has no such place"


def differences(folder: Path, again: Path) -> Iterator[str]:
    """Yield the files in which two builds of the site differ."""
    files = {
        path.relative_to(built)
        for built in (folder, again)
        for path in built.glob("**/*")
        if path.is_file()
    }
    for path in sorted(files):
        one, other = folder / path, again / path
        if not one.is_file() or not other.is_file():
            yield f"{path}: is in one of two builds only"
        elif one.read_bytes() != other.read_bytes():
            yield f"{path}: is not the same when it is built again"


def main() -> None:
    """Check the folders that the command names."""
    folder, *again = map(Path, sys.argv[1:])
    found = [*problems(folder), *(each for other in again for each in differences(folder, other))]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
