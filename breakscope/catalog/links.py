"""Addresses of torch's pages about its graph-break ids."""

from __future__ import annotations

import re

TORCH_PAGES = "https://meta-pytorch.github.io/compile-graph-break-site/gb"
_ID = re.compile(r"GB\d{4}")


def torch_page(gb_id: str | None) -> str | None:
    """Torch's page of one of its ids, the one that its own messages name; None for what is no such id."""
    return f"{TORCH_PAGES}/{gb_id.lower()}.html" if gb_id and _ID.fullmatch(gb_id) else None
