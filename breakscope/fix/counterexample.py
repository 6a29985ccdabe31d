"""A counterexample as a script of a few lines, which shows both results when it is run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from breakscope.fix import diff, prove, runs
from breakscope.fix.patch import Edit, Patch, Rewrite
from breakscope.fix.prove import Counterexample
from breakscope.fix.runs import Script
from breakscope.fix.source_file import read
from breakscope.fix.trials import Trials
from breakscope.inside.settings import Settings
from breakscope.report.secrets import mask, mask_words, masked
from breakscope.run import launch
from breakscope.run.launch import Program

_VERSION = 1
_LAST_LINES = 3


def script_of(
    example: Counterexample,
    changes: Sequence[diff.Change],
    script: Script,
    options: prove.Options,
    through: Sequence[tuple[str, str]],
) -> str | None:
    """The script: it runs the user's script up to the call, and calls both forms on the input.

    None where it would hold what looks like a secret, which it could not run without.
    """
    what = script.what
    data = {
        "version": _VERSION,
        "command": what.command,
        "path": what.path,
        "module": what.module,
        "cwd": os.getcwd(),
        "budget_s": script.budget_s,
        "timeout_s": script.timeout_s,
        "compile": [options.settings.compile, options.settings.dynamic, options.settings.steps],
        "exact": options.exact,
        "only": [example.key, example.call, example.input] if example.function else None,
        "proof": prove.settings_of(changes, prove.claims_of(changes, options.exact), through),
    }
    if masked(data) is not data or mask_words(what.args) != what.args:
        return None
    command = " ".join(what.command)
    where = f"call {example.call} of `{example.function}`, on the input: {example.input}"
    title = where if example.function else "what the whole script does"
    text = json.dumps(data, indent=1, ensure_ascii=True)
    return (
        f"# The old and the new form of {title}.\n"
        f"# {mask(' '.join(example.difference.split())[:200])}\n"
        f"# It runs `python {command}`, changes no file, and exits with 1 if the forms differ.\n"
        "import json\n\n"
        "from breakscope.fix.counterexample import show\n\n"
        f"raise SystemExit(show(json.loads({text!r})))\n"
    )


def show(data: Mapping[str, Any]) -> int:
    """Run both forms and print what each gives. Returns 1 if they differ, 0 if not, 2 if files changed."""
    os.chdir(data["cwd"])
    words = data["command"][1:] if data["module"] else data["command"]
    what = Program(words[0], data["module"], tuple(words[1:]), data["path"])
    for file, given in data["proof"]["files"].items():
        if read(file).sha256 != given["sha256"]:
            print(f"{file} has changed since", file=sys.stderr)
            return 2
    with launch.workspace(Path(".breakscope").absolute()) as folder:
        script = Script(what, folder, data["timeout_s"], data["budget_s"])
        return _show_call(data, script) if data["only"] else _show_script(data, script)


def _show_call(data: Mapping[str, Any], script: Script) -> int:
    proof = runs.prove_files(script, {**data["proof"], "only": data["only"]})
    function = next((one for one in proof["functions"] if one["key"] == data["only"][0]), None)
    if function is None or not function["mismatch"]:
        print("the forms agree on this input now")
        return 0
    found = function["found"]
    print(f"{function['function']}, call {found['call']}, input: {found['input']}")
    for title in ("arguments", "old", "new"):
        print(f"{title}:")
        print("\n".join(f"    {line}" for line in found[title]) or "    (nothing to show)")
    print(f"difference: {function['mismatch']}")
    return 1


def _show_script(data: Mapping[str, Any], script: Script) -> int:
    compile_, dynamic, steps = data["compile"]
    options = prove.Options(Settings(compile=compile_, dynamic=dynamic, steps=steps), data["exact"])
    files = {file: read(file) for file in data["proof"]["files"]}
    sides = [
        Patch(
            (),
            prove.RULE,
            Rewrite(
                tuple(
                    Edit(start, end, text, file)
                    for file, given in data["proof"]["files"].items()
                    for start, end, text in given[side]
                ),
                side,
                exact=data["exact"],
            ),
        )
        for side in ("old", "new")
    ]
    trials = Trials(script, options.settings, files, (), as_it_was=[sides[0]] if sides[0].edits else ())
    with trials.with_patches([sides[1]]) as after:
        difference = trials.agreement(after, [sides[1]]).difference
        for title, one in (("old", trials.before), ("new", after)):
            text = (one.said.stdout + one.said.stderr).decode(errors="replace").strip().splitlines()
            print(f"{title}: ends with {one.ended.status}")
            print("\n".join(f"    {line}" for line in text[-_LAST_LINES:]))
    print(f"difference: {difference}")
    return 0 if difference is None else 1
