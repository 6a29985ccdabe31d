# ruff: noqa: INP001 - a script, not a package
"""The hook of mkdocs (see mkdocs.yml): makes the pages that nobody writes, each time the site is built.

The front page is README.md. A page for each code comes from the catalog, for each rewrite rule from the rule
itself, for each command from its own options. So none of them can be stale, and none is kept in git.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# Files of the repository that are pages of the site, too; links to the others lead nowhere, and stay text.
BESIDE = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "action.yml")
GROUPS = {
    "1": "Graph breaks",
    "2": "Recompiles and guards",
    "3": "Skips, limits and failures",
    "4": "Compile times",
}
_OUT_OF_DOCS = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"(!?)\[([^\]]+)\]\(([^):#\s]+)(#[^)\s]*)?\)")


# ---- called by mkdocs ----


def on_config(config: Any) -> Any:
    """Put the generated pages into the navigation."""
    reference = next(entry for entry in config.nav if "Reference" in entry)
    reference["Reference"] = [
        {"Codes": [{"All codes": "codes/index.md"}, *_listed("codes", (code.code for code in _codes()))]},
        {"Rules": [{"All rules": "rules/index.md"}, *_listed("rules", (rule.name for rule in _rules()))]},
        {"Commands": [{"All commands": "commands/index.md"}, *_listed("commands", _commands())]},
    ]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the generated pages to those of docs/."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links out of docs/ lead to what the site has of them; folds and tables show as they do on GitHub."""
    markdown = markdown.replace("<details>", '<details markdown="1">')
    up = "../" * page.file.src_uri.count("/")
    markdown = _CODE.sub(lambda code: code[0].replace("\\|", "|"), markdown)
    if page.file.generated_by:
        return markdown
    return _OUT_OF_DOCS.sub(lambda link: _inside(link, up), markdown)


# ---- pages ----


def pages() -> dict[str, str]:
    """The text of every page that is not a file of docs/, by its path in the site."""
    made = {name: _beside(name) for name in BESIDE} | {"index.md": _beside("README.md")}
    made["codes/index.md"] = "\n".join(_code_list())
    made |= {f"codes/{code.code}.md": "\n".join(_code_page(code)) for code in _codes()}
    made["rules/index.md"] = "\n".join(_rule_list())
    made |= {f"rules/{rule.name}.md": "\n".join(_rule_page(rule)) for rule in _rules()}
    made["commands/index.md"] = "\n".join(_command_list())
    made |= {f"commands/{name}.md": "\n".join(_command_page(name)) for name in _commands()}
    return made


def _code_list() -> Iterator[str]:
    yield "# Codes\n\n`breakscope explain CODE` prints the same."
    for digit, heading in GROUPS.items():
        yield f"\n## {heading}\n\n| code | | severity |\n|---|---|---|"
        for entry in _codes():
            if entry.code[2] == digit:
                yield f"| [{entry.code}]({entry.code}.md) | {_text(entry.title)} | {entry.severity} |"


def _code_page(entry: Any) -> Iterator[str]:
    from breakscope import catalog
    from breakscope.catalog.links import torch_page

    yield f"# {entry.code}: {_text(entry.title)}\n\n{_text(entry.why)}\n"
    yield f"**What to do.** {_text(entry.fix)}\n\n```python\n{entry.more}\n```\n"
    yield f"| severity | what helps |\n|---|---|\n| {entry.severity} | {catalog.help_of(entry.remedy)} |\n"
    ways = catalog.ways_of(entry.code)
    if ways:
        yield "## Ways out that torch offers\n\n| name | since torch | what it does |\n|---|---|---|"
        yield from (f"| `{way.name}` | {way.since} | {_text(way.does)} |" for way in ways)
        yield ""
    rules = [rule for rule in _rules() if entry.code in rule.codes]
    if rules:
        yield "## Rewrites\n\n`breakscope fix` tries these, and proves what it proposes:\n"
        yield from (f"- [{rule.name}](../rules/{rule.name}.md): {_text(rule.title)}" for rule in rules)
        yield ""
    ids = catalog.ids_of(entry.code)
    if ids:
        yield "## Torch's ids\n\nBreaks that torch reports under these ids are of this code:\n"
        yield ", ".join(f"[{name}]({torch_page(name)})" for name in ids) + ".\n"
    yield "## To accept it\n\nA comment on the line leaves the finding out of `check` and `lint`:\n"
    yield f"```python\n# breakscope: ignore[{entry.code}] -- why it may stay\n```"


def _rule_list() -> Iterator[str]:
    yield "# Rewrite rules\n\nIn the order in which they are asked. What a proof is: [Rewrites](../fix.md).\n"
    yield "| rule | what it does | codes | consent |\n|---|---|---|---|"
    for rule in _rules():
        does, asks = _cell(rule.does), _cell(rule.asks)
        yield f"| [{rule.name}]({rule.name}.md) | {does} | {_code_links(rule)} | {asks} |"


def _rule_page(rule: Any) -> Iterator[str]:
    example, kept = rule.rewritten, rule.left_alone
    yield f"# {rule.name}\n\nIn short: {_text(rule.title)}.\n"
    yield f"Answers {_code_links(rule)}." + (f" Consent is asked for {rule.asks}.\n" if rule.asks else "\n")
    yield "## Example\n\nBefore:\n"
    yield f"```python\n{example.before.rstrip()}\n```\n\nAfter:\n\n```python\n{example.after.rstrip()}\n```\n"
    yield "## What it needs\n"
    yield from (f"- {_text(need)}" for need in rule.needs)
    yield "\n## What it refuses, or names\n"
    yield from (f"- {_text(hazard)}" for hazard in rule.hazards)
    because = f", because {_text(kept.why)}" if kept.why else ""
    yield f"\n## What it leaves alone\n\nThis{because}:\n\n```python\n{kept.before.rstrip()}\n```"


def _command_list() -> Iterator[str]:
    from breakscope.cli.app import GROUPS as GROUPS_OF_COMMANDS

    yield "# Commands"
    made = _commands()
    for title, names in GROUPS_OF_COMMANDS.items():
        yield f"\n## {title}\n\n| command | |\n|---|---|"
        for name in names:
            yield f"| [{name}]({name}.md) | {_cell(made[name].get_short_help_str(limit=200))} |"


def _command_page(name: str) -> Iterator[str]:
    import click

    command = _commands()[name]
    context = click.Context(command, info_name=f"breakscope {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"# breakscope {name}\n\n```text\nbreakscope {name} {usage}\n```\n"
    yield _text((command.help or "").replace("\b\n", "")) + "\n"
    records = (option.get_help_record(context) for option in command.get_params(context))
    yield "| option | |\n|---|---|"
    yield from (f"| `{record[0]}` | {_cell(record[1])} |" for record in records if record)


# ---- what the pages are made of ----


def _codes() -> tuple[Any, ...]:
    from breakscope import catalog

    return catalog.codes()


def _rules() -> tuple[Any, ...]:
    from breakscope.fix.rules import RULES

    return RULES


def _commands() -> dict[str, Any]:
    from breakscope.cli.app import command

    return dict(command().commands)


def _beside(name: str) -> str:
    """A file of the repository's root, with links that hold in the site; a link out of it is its words."""

    def lead(link: re.Match[str]) -> str:
        picture, words, path, anchor = link[1], link[2], link[3], link[4] or ""
        if path in BESIDE or path.startswith("docs/"):
            return f"{picture}[{words}]({path.removeprefix('docs/')}{anchor})"
        return words

    return _LINK.sub(lead, (ROOT / name).read_text(encoding="utf-8"))


def _listed(folder: str, names: Iterable[str]) -> list[dict[str, str]]:
    return [{name: f"{folder}/{name}.md"} for name in names]


def _code_links(rule: Any) -> str:
    return ", ".join(f"[{code}](../codes/{code}.md)" for code in rule.codes)


def _text(text: str) -> str:
    """Plain text as Markdown that shows the same."""
    parts = text.split("`")  # code between backticks stays as it is
    return "`".join(part if n % 2 else re.sub(r"([*_<\[\]])", r"\\\1", part) for n, part in enumerate(parts))


def _cell(text: str) -> str:
    return " ".join(_text(text).replace("\\|", "|").replace("|", "\\|").split())


def _inside(link: re.Match[str], up: str) -> str:
    """A link out of docs/: to the site's own page of that file, else its words alone."""
    name = link[2].lstrip("./")
    return f"[{link[1]}]({up}{name})" if name.partition("#")[0] in BESIDE else link[1]
