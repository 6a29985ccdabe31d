"""The pages that codes and torch's ids lead to."""

from __future__ import annotations

from email.message import Message

import pytest

from breakscope import catalog
from breakscope.catalog import links


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("https://example.org/breakscope/", "https://example.org/breakscope/codes/BS101.html"),
        ("https://git.example.org/ada/breakscope/tree/main/docs", None),
        ("javascript:alert(1)", None),
    ],
)
def test_our_page_is_where_the_packages_metadata_says(
    address: str, page: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Message()
    told["Project-URL"] = "Issues, https://git.example.org/ada/breakscope/issues"
    told["Project-URL"] = f"Documentation, {address}"
    monkeypatch.setattr("importlib.metadata.metadata", lambda _name: told)
    links._site.cache_clear()
    try:
        assert links.help_page("BS101", "GB0170") == (page or links.torch_page("GB0170"))
    finally:
        links._site.cache_clear()


def test_every_code_has_a_page_and_nothing_else_gets_into_an_address() -> None:
    pages = {links.help_page(entry.code) for entry in catalog.codes()}
    assert all(page.startswith("https://") for page in pages)
    assert links.help_page("../../x") == links.help_page("BS301")
    assert links.torch_page("GB0170/../x") is None
