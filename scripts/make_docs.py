# ruff: noqa: INP001 - a script, not a package
"""Refreshes what README.md and docs/example.md show: true output of true commands.

    python scripts/make_docs.py              run every command again and write what it printed
    python scripts/make_docs.py --rules      only the table of rules in docs/fix.md, which needs no command
    python scripts/make_docs.py --check      write nothing; exit with 1 and a diff if a text is stale
    python scripts/make_docs.py --pictures   take the screenshots again, too (see screenshots.py)

A block stands between a marker and ``<!-- end -->``. The marker says what the block holds:

    <!-- run: COMMAND; COMMAND -->   the commands and their standard output
    <!-- file: PATH -->              a file's text
    <!-- diff: OLD NEW -->           a unified diff of two files
    <!-- rules: WORDS -->            the table of all rewrite rules

Commands run without a shell in one temporary folder that holds ``docs/example`` and ``fixtures``, 100
columns wide, without colours. What varies between runs and machines (durations, times of day, the build
suffix of torch's version, the order of findings by cost) is not compared, nor are columns and carets:
Python 3.11 counts the ``not`` of a condition in, later ones do not. A block in which nothing else changed
stays as it is.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/example.md", "docs/fix.md", "docs/gate.md")
FOLDERS = ("docs/example", "docs/testing", "fixtures")
IMAGES = ROOT / "docs" / "images"

BLOCK = re.compile(
    r"(?P<marker><!-- (?P<kind>run|file|diff|rules): (?P<words>.+?) -->\n).*?(?=<!-- end -->)", re.DOTALL
)
VARYING = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:]{8}\+00:00"), "TIME"),
    # Said where compile times differ much, which depends on the machine; in one line or in several.
    (re.compile(r"; compile time [^\n]+(\n[^\n]+)*"), ""),
    # Not said where a busy machine hides it.
    (re.compile(r"\brepairing (the one place|all \d+ places|the breaks) would [^·\n]*(· )?"), ""),
    (re.compile(r"\b[\d,]+(\.\d+)? to (?=[\d,]+(\.\d+)? ms\b)"), ""),
    (re.compile(r"; their guards add at most [\d,.]+ ms to a\s+step"), ""),
    (re.compile(r", [\d,.]+ together"), ""),
    (re.compile(r"\bguards [\d,.]+ ms a step( ·)?"), ""),
    (re.compile(r"\b[\d,]+(\.\d+)? of [\d,]+(\.\d+)? ms\b"), "DURATION"),
    (re.compile(r"\b[\d,]+(\.\d+)? (ms|s)\b"), "DURATION"),
    (re.compile(r" \(\d+%\)"), ""),
    (re.compile(r"^ *\d+  (?=BS\d)", re.MULTILINE), "NUMBER  "),
    (re.compile(r"(torch \d+\.\d+\.\d+)\+\w+"), r"\1"),
    (re.compile(r"(\.py:\d+):\d+"), r"\1"),
    (re.compile(r"^ +\^+$", re.MULTILINE), "CARETS"),
    (re.compile(r"^note +costs were measured on a busy machine:(.+\n)+?.*milliseconds\n", re.MULTILINE), ""),
)


def comparable(text: str) -> str:
    """A text's words without what varies: times, and the order and the line breaks that follow them."""
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    return " ".join(sorted(text.split()))


def run(command: str, folder: Path) -> str:
    """Standard output of a command; ends the program if the command fails."""
    words = shlex.split(command)
    if words[0] == "breakscope":  # the one of this interpreter, whatever PATH holds
        words[:1] = [sys.executable, "-m", "breakscope"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BREAKSCOPE", "TORCH"))}
    roots = os.pathsep.join(filter(None, (str(ROOT), kept.get("PYTHONPATH"))))
    environment = kept | {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": roots}
    environment.pop("FORCE_COLOR", None)
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"`{command}` exited with {done.returncode}:\n{done.stderr}")
    return done.stdout


def rules() -> str:
    """The table of all rewrite rules, in the order in which they are asked."""
    sys.path.insert(0, str(ROOT))
    from breakscope.fix.rules import RULES

    rows = [(f"`{rule.name}`", rule.does.replace("|", r"\|"), rule.asks) for rule in RULES]
    lines = [f"| {' | '.join(row)} |" for row in [("rule", "what it does", "consent"), ("---",) * 3, *rows]]
    return "\n".join(line.replace("  |", " |") for line in lines) + "\n"


def content(kind: str, words: str, folder: Path) -> str:
    """What belongs between a marker and its end."""
    if kind == "file":
        return f"```python\n{(ROOT / words).read_text(encoding='utf-8')}```\n"
    if kind == "rules":
        return rules()
    if kind == "diff":
        old, new = words.split()
        before, after = ((ROOT / name).read_text(encoding="utf-8").splitlines(True) for name in (old, new))
        return f"```diff\n{''.join(difflib.unified_diff(before, after, old, new, n=1))}```\n"
    shown = "".join(f"$ {command}\n{run(command, folder)}" for command in words.split("; "))
    if str(folder) in shown:
        sys.exit(f"`{words}` printed the path of the temporary folder")
    return f"```console\n{shown.rstrip()}\n```\n"


def refreshed(text: str, folder: Path) -> str:
    """A page with every block made again, in the order in which they stand."""

    def replace(block: re.Match[str]) -> str:
        made = block["marker"] + content(block["kind"], block["words"], folder)
        varies = block["kind"] != "rules"  # their order is what the table says
        return block[0] if varies and comparable(made) == comparable(block[0]) else made

    return BLOCK.sub(replace, text)


def take_pictures(folder: Path) -> None:
    """The top of the HTML page that the commands of docs/example.md left in the folder, light and dark."""
    import screenshots

    IMAGES.mkdir(exist_ok=True)
    with screenshots.browser() as running:
        for theme in ("light", "dark"):
            page = screenshots.open_page(
                running, folder / "breakscope.html", size=screenshots.DESKTOP, dark=theme == "dark"
            )
            page.screenshot(path=IMAGES / f"report-{theme}.png")
            page.close()


def main() -> int:
    """Read the command line, make the pages; 1 if ``--check`` found a stale one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="write nothing; 1 and a diff if a text is stale")
    choice.add_argument("--pictures", action="store_true", help="take the screenshots again, too")
    choice.add_argument("--rules", action="store_true", help="only the table of rules, in docs/fix.md")
    options = parser.parse_args()
    stale = False
    if options.rules:
        page = ROOT / "docs" / "fix.md"
        page.write_text(refreshed(page.read_text(encoding="utf-8"), ROOT), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        for name in PAGES:
            old = (ROOT / name).read_text(encoding="utf-8")
            new = refreshed(old, folder)
            if options.check and new != old:
                stale = True
                before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
                sys.stdout.writelines(difflib.unified_diff(before, after, name, f"{name}, made again"))
            elif new != old:
                (ROOT / name).write_text(new, encoding="utf-8")
                print(f"{name}: written")
        if options.pictures:
            take_pictures(folder)
    if stale:
        print("\nstale: run `python scripts/make_docs.py` and look at what changed", file=sys.stderr)
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
