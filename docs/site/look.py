"""Look at the site as a reader does, in Chromium.

    python docs/site/look.py SITE FOLDER    leave pictures of ten pages in FOLDER

The pictures show pages in light and in dark, on a wide screen and on one of 360 pixels. It finds
pages that are wider than that, and names from other libraries that a search does not find; it
prints what is wrong, and fails if anything is.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

PAGES: Final = (
    "index",
    "tour",
    "how-to",
    "recipes",
    "asyncio",
    "operators",
    "operators/merge",
    "operators/observe_on",
    "api/flow_core.homes",
    "benchmarks/index",
)

WIDE: Final = (1300, 1100)
NARROW: Final = (360, 740)
"""The size of a small telephone, in pixels."""

SEARCHES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "flatMap": "operators/flat_map",
        "concatMap": "operators/concat_map",
        "switchMap": "operators/switch_map",
        "debounceTime": "operators/debounce",
        "throttleFirst": "operators/throttle_first",
        "combineLatest": "operators/combine_latest",
        "withLatestFrom": "operators/with_latest_from",
        "distinctUntilChanged": "operators/distinct_until_changed",
        "bufferTimeout": "operators/buffer_with_time_or_count",
        "publishOn": "operators/observe_on",
        "subscribeOn": "operators/subscribe_on",
        "onErrorResumeNext": "operators/on_error_resume",
        "retryWhen": "operators/retry_when",
        "startWith": "operators/start_with",
        "takeUntil": "operators/take_until_other",
        "groupBy": "operators/group_by",
        "shareReplay": "operators/cache",
        "mapAsync": "operators/map_concurrent",
        "fromIterable": "operators/from_iterable",
        "backpressure": "operators/on_backpressure_buffer",
    }
)
"""Names that people look for, and a page that has to be among the first results."""

FIRST: Final = 10
"""The number of results that a reader looks at."""

_ENDED: Final = "() => /finished|did not match/.test(document.body.innerText)"
_RESULTS: Final = (
    "() => [...document.querySelectorAll('#search-results ul.search li > a')]"
    ".map(link => link.getAttribute('href').split(/[#?]/)[0])"
)


def photographed(browser: Browser, site: Path, folder: Path) -> Iterator[str]:
    """Take the pictures, and yield the pages that do not fit on a narrow screen."""
    for width, height in (WIDE, NARROW):
        for theme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme="dark" if theme == "dark" else "light",
            )
            for name in PAGES:
                page.goto((site / f"{name}.html").as_uri())
                page.screenshot(path=folder / f"{name.replace('/', '-')}-{width}-{theme}.png")
                if (width, height) == NARROW and theme == "light":
                    yield from _too_wide(page, name)
            page.close()


def _too_wide(page: Page, name: str) -> Iterator[str]:
    width: int = page.evaluate("() => document.documentElement.scrollWidth")
    if width > NARROW[0]:
        yield f"{name}: {width} pixels wide on a screen of {NARROW[0]}"


def unfound(browser: Browser, site: Path) -> Iterator[str]:
    """Yield the names whose page is not among the first results of a search."""
    page = browser.new_page()
    for name, place in SEARCHES.items():
        page.goto(f"{(site / 'search.html').as_uri()}?q={name}")
        page.wait_for_function(_ENDED)
        found: list[str] = page.evaluate(_RESULTS)
        first = list(dict.fromkeys(each.removesuffix(".html") for each in found))[:FIRST]
        if place not in first:
            yield f"a search for {name} does not lead to {place}, but to {first}"


def main() -> int:
    """Look at the site; return 1 if something is wrong."""
    site, folder = (Path(argument).resolve() for argument in sys.argv[1:])
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("Nothing was looked at: there is no Chromium. Debian's package is called chromium.")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        problems = [*photographed(browser, site, folder), *unfound(browser, site)]
        browser.close()
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(list(folder.iterdir()))} pictures of pages are in {folder.name}")
    return bool(problems)


if __name__ == "__main__":
    raise SystemExit(main())
