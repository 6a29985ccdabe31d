"""The page of a scoreboard.

python benchmarks/scoreboard_page.py scoreboard.jsonl docs/scoreboard.md --screened screen.jsonl
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

Row = dict[str, Any]
_ABOUT = """\
What `breakscope fix` does with models and programs that it was not made for: small models with random
weights, in evaluation and in training, and programs that are no models. No rule knows a model's name."""
_THEIRS = """\
The 27 models of arXiv 2509.16248 v4, from small configurations, in evaluation. `theirs` is the paper's:
breaks (graphs less one, of the full model), and how many are left. Ours are sites: a place counts once."""
_READ = """\
- `sites`: places where Dynamo breaks; equal to what torch itself wrote to TORCH_TRACE in the same run, or the
  row says so. `crossings`: how often they were crossed in the six calls of the script.
- `left`: sites of a scan with the proved patches, at eight more shapes; and with those that need consent
  as well (where there are any).
- `outputs`: the patched script, compiled, against the plain one, uncompiled and without breakscope, at eight
  other shapes and values, in training with all gradients; bit for bit, or within 1e-4 of a tensor's largest
  value (`close`). A patch that needs consent may change outputs: other random numbers.
- `seconds`: everything of the row."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("--screened", type=Path)
    parser.add_argument("--command", default="python benchmarks/scoreboard.py")
    parser.add_argument("--machine", default="")
    asked = parser.parse_args()
    rows = [json.loads(line) for line in asked.rows.read_text().splitlines()]
    screened = (
        [json.loads(line) for line in asked.screened.read_text().splitlines()] if asked.screened else []
    )
    asked.page.write_text(page(rows, screened, asked.command, asked.machine))


def page(rows: list[Row], screened: list[Row], command: str, machine: str) -> str:
    """The page as Markdown."""
    rows = sorted(rows, key=lambda row: (row["row"].split("/")[0], row["row"], row["mode"]))
    scanned = [row for row in rows if "sites" in row]
    theirs = [row for row in scanned if "graphmend" in row]
    others = [row for row in scanned if "graphmend" not in row]
    parts = [
        "# Scoreboard",
        _ABOUT,
        f"{date.today().isoformat()} · "
        + " · ".join(f"{name} {known}" for name, known in _versions(rows).items()),
        f"`{command}`" + (f" ({machine})" if machine else ""),
        _totals(scanned, theirs, others),
        *([_screen(screened)] if screened else []),
        "## What is left, by reason",
        _reasons(scanned),
        "## GraphMend's rows",
        _THEIRS,
        _table([row for row in rows if "graphmend" in row], theirs=True),
        "## All other rows",
        _table([row for row in rows if "graphmend" not in row], theirs=False),
        "## How to read it",
        _READ,
    ]
    return "\n\n".join(parts) + "\n"


def _versions(rows: list[Row]) -> dict[str, str]:
    """What the rows ran with, all that differ of one name."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, known in row.get("versions", {}).items():
            found.setdefault(name, set()).add(known)
    return {name: " and ".join(sorted(known)) for name, known in found.items()}


def _left(row: Row, kind: str) -> int:
    """Sites that are left; where fix did not come to an end, all of them."""
    proved = row.get("left_proved", row["sites"])
    return int(proved if kind == "proved" else min(proved, row.get("left_consent", proved)))


def _totals(scanned: list[Row], theirs: list[Row], others: list[Row]) -> str:
    lines = [
        "| | rows | with a break | sites | left | left, with consent | gone, proved | gone, with consent |"
    ]
    lines.append("|---|" + "---:|" * 7)
    modes = {"evaluation": "eval", "training": "train", "programs": "run"}
    groups = {"all": scanned, "GraphMend's": theirs}
    groups |= {
        f"others, {name}": [row for row in others if row["mode"] == mode] for name, mode in modes.items()
    }
    for name, rows in groups.items():
        sites = sum(row["sites"] for row in rows)
        proved, consent = (sum(_left(row, kind) for row in rows) for kind in ("proved", "consent"))
        shares = [f"{(sites - left) / sites:.0%}" if sites else "" for left in (proved, consent)]
        broken = sum(row["sites"] > 0 for row in rows)
        lines.append(
            "| " + " | ".join(map(str, (name, len(rows), broken, sites, proved, consent, *shares))) + " |"
        )
    differ = [row for row in scanned if _differs(row)]
    late = sum("over " in row.get("trouble", "") for row in scanned)
    facts = [
        f"sites unequal to torch's own records: {sum(not row['equal'] for row in scanned)} rows",
        f"unattributed: {sum(row['unattributed'] for row in scanned)}",
        f"outputs that differ with proved patches: {len(differ)}"
        + (f" ({', '.join(row['row'] for row in differ)})" if differ else ""),
        f"rows that did not end within their limits: {late}",
        f"seconds a row: median {median(row['seconds'] for row in scanned):.0f}, "
        f"longest {max(row['seconds'] for row in scanned):.0f}"
        if scanned
        else "",
    ]
    return "\n".join(lines) + "\n\n" + "\n".join(f"- {fact}" for fact in facts)


def _differs(row: Row) -> bool:
    """Whether the patches, and not torch.compile itself, changed an output."""
    check = row.get("check_proved", {})
    return bool(check.get("different")) and bool(check.get("against_compiled", {}).get("different", 1))


def _screen(screened: list[Row]) -> str:
    clean = [row for row in screened if row.get("sites") == []]
    failed = [row for row in screened if "trouble" in row]
    return (
        "Before, architectures were built and run under Dynamo alone (`benchmarks/scoreboard_screen.py`): "
        f"{len(screened)} rows: {len(screened) - len(clean) - len(failed)} break, {len(clean)} do not, "
        f"and {len(failed)} could not be built or run from a small configuration made by names."
    )


def _reasons(rows: list[Row]) -> str:
    counted: Counter[tuple[str, str]] = Counter()
    seen_in: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        for one in row.get("open", ()):
            key = (one["status"], re.sub(r"`[^`]*`", "`…`", one["why"])[:140])
            counted[key] += 1
            seen_in.setdefault(key, set()).add(row["row"].split("/")[1])
    lines = ["| sites | answer | reason | for example |", "|---:|---|---|---|"]
    for (status, why), times in counted.most_common(40):
        lines.append(f"| {times} | {status} | {_cell(why)} | {', '.join(sorted(seen_in[status, why])[:3])} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _table(rows: list[Row], theirs: bool) -> str:
    head = [
        "row",
        "mode",
        *(["theirs"] if theirs else []),
        "sites",
        "left",
        "with consent",
        "crossings",
        "outputs",
        "seconds",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 4) + "---|---:|"]
    for row in rows:
        name = row["row"].partition("/")[2] if theirs else row["row"]
        paper = [f"{row['graphmend'][0]} → {row['graphmend'][0] - row['graphmend'][1]}"] if theirs else []
        if "sites" not in row:
            cells = [
                name,
                row["mode"],
                *paper,
                *[""] * 4,
                _cell(row.get("trouble", "")),
                f"{row['seconds']:.0f}",
            ]
        else:
            consent = row.get("left_consent", "")
            cells = [name, row["mode"], *paper, row["sites"], _left(row, "proved"), consent, row["crossings"]]
            cells += [_outputs(row), f"{row['seconds']:.0f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _outputs(row: Row) -> str:
    check = row.get("check_proved")
    words = []
    if not row["equal"]:
        words.append(f"torch recorded {row['recorded']} places, the report {row['places']}")
    if check:
        words += [f"{check[kind]} {kind}" for kind in ("bitwise", "close", "raised") if check.get(kind)]
        if check.get("different"):
            compiled = "" if _differs(row) else ", as torch.compile alone"
            words.append(f"**{check['different']} differ**{compiled}: {_cell(check['first'])}")
    if row.get("trouble"):
        words.append(_cell(row["trouble"]))
    return ", ".join(words)


if __name__ == "__main__":
    main()
