"""Addresses of pages: torch's for its ids, ours for our codes where the package says where they are."""

from __future__ import annotations

import re
from functools import cache

TORCH_PAGES = "https://meta-pytorch.github.io/compile-graph-break-site/gb"
_ID = re.compile(r"GB\d{4}")


def torch_page(gb_id: str | None) -> str | None:
    """Torch's page of one of its ids, the one that its own messages name; None for what is no such id."""
    return f"{TORCH_PAGES}/{gb_id.lower()}.html" if gb_id and _ID.fullmatch(gb_id) else None


def our_page(code: str) -> str | None:
    """The page of one of our codes; None where it has none, or the package does not name its site."""
    from breakscope import catalog

    site = _site()
    return f"{site}/codes/{code}.html" if site and catalog.find(code) else None


@cache
def _site() -> str | None:
    """The address of the documentation: the URL of that name in the metadata of the package."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("torch-breakscope").get_all("Project-URL") or []
    except PackageNotFoundError:  # the source beside a script, not installed
        return None
    named = dict(url.split(", ", 1) for url in urls if ", " in url)
    address = named.get("Documentation", "")
    return address.rstrip("/") if address.startswith("https://") else None
