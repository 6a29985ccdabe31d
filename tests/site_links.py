"""The links of a built site, and what is wrong with them."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself while it shows a page. Links of rel=canonical and the like are only names.
_FETCHED = {"script", "img", "source", "iframe", "video", "audio", "embed"}
_FETCHED_RELATIONS = {"stylesheet", "icon", "preload", "preconnect", "prefetch"}


@dataclass
class Page(HTMLParser):
    """What a page links to, fetches, and has as anchors."""

    links: set[str] = field(default_factory=set)
    fetched: set[str] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if "href" in values and tag != "base":
            self.links.add(values["href"])
        if "src" in values:
            self.links.add(values["src"])
        relations = set(values.get("rel", "").split())
        if tag in _FETCHED and "src" in values:
            self.fetched.add(values["src"])
        if tag == "link" and relations & _FETCHED_RELATIONS:
            self.fetched.add(values["href"])


@functools.cache
def _file(place: str) -> Path | None:
    """What a server gives for a place; a navigation of hundreds of pages asks for each of them on each."""
    path = Path(place)
    path = path / "index.html" if path.is_dir() else path
    return path if path.is_file() else None


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def faults(site: Path) -> Iterator[str]:
    """Links of the site's pages that lead nowhere, and what a page would fetch from elsewhere."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name} fetches {one}" for one in sorted(page.fetched) if urlsplit(one).netloc)
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":  # that one is shown at any depth
                continue
            target = _file(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if target is None:
                yield f"{name} links to {link}: there is no such file"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name} links to {link}: there is no such anchor"
