"""The addresses in the package's metadata: those of the repository that builds it."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = {
    "Repository": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
}


class Addresses(MetadataHookInterface):
    """Sets ``urls``. A build that knows no repository sets none: a wrong address is worse."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        base = repository(self.root)
        metadata["urls"] = {name: base + page for name, page in PAGES.items()} if base else {}
        # Where the site is published, if it is: the same variable as in mkdocs.yml.
        if site := os.environ.get("SITE_URL"):
            metadata["urls"]["Documentation"] = site


def repository(root: str) -> str:
    """The repository's page: where GitHub runs the build, that one; else the one that was cloned."""
    if name := os.environ.get("GITHUB_REPOSITORY"):
        return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}"
    asked = ["git", "-C", root, "remote", "get-url", "origin"]
    try:
        address = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
    found = re.fullmatch(r"(?:https://|git@|ssh://git@)([\w.-]+)[:/](.+?)(?:\.git)?/?", address)
    return f"https://{found[1]}/{found[2]}" if found else ""
