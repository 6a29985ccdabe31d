"""The keys of a configuration: which there are, and what each may be."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from breakscope.project.config import values
from breakscope.project.config.model import Budgets, Config, Lint, Target


def config(table: dict[str, Any], file: Path) -> Config:
    """The configuration that a table says. Raises ConfigError, naming the file and the key."""
    said = _read(table, _CONFIG, values.At(file))
    targets = tuple(_named(target, values.At(file) / "targets") for target in said.get("targets", ()))
    names = [target.name for target in targets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise values.At(file, "targets").error(f"has two targets {twice!r}; give them names")
    origins = dict.fromkeys(_said(table), file.name)
    return Config(**{**said, "targets": targets, "root": file.parent, "file": file, "origins": origins})


def _said(table: dict[str, Any], prefix: str = "") -> list[str]:
    keys = []
    for key, value in table.items():
        inner = isinstance(value, dict) and key in ("budgets", "lint")
        keys += _said(value, f"{prefix}{key}.") if inner else [f"{prefix}{key}"]
    return keys


def _read(table: Any, keys: Mapping[str, values.Reader], at: values.At) -> dict[str, Any]:
    """The values of a table by field name. Every key must be known."""
    if not isinstance(table, dict):
        raise at.error("must be a table")
    for key in table:
        if key not in keys:
            near = get_close_matches(key.replace("_", "-").lower(), keys, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(keys)}"
            raise at.error(f"has no key {key!r}; {hint}" if at.key else f"there is no key {key!r}; {hint}")
    return {key.replace("-", "_"): keys[key](value, at / key) for key, value in table.items()}


def _named(target: Target, at: values.At) -> Target:
    if (target.script is None) == (target.module is None):
        what = "a target names either a script or a module"
        raise at.error(f"{target.name!r}: {what}" if target.name else what)
    if target.mode is not None and target.backend != "inductor":
        raise at.error(f'{target.name or target.script!r}: mode needs backend = "inductor"')
    name = target.name or (target.script if target.script is not None else f"-m {target.module}")
    return dataclasses.replace(target, name=name)


def _targets(value: Any, at: values.At) -> tuple[Target, ...]:
    if not isinstance(value, list):
        raise at.error("must be a list of tables: [[tool.breakscope.targets]]")
    return tuple(Target(**_read(one, _TARGET, at)) for one in value)


def _lint(value: Any, at: values.At) -> Lint:
    return Lint(**_read(value, _LINT, at))


def _budgets(value: Any, at: values.At) -> Budgets:
    return Budgets(**_read(value, _BUDGETS, at))


_BUDGETS: dict[str, values.Reader] = {
    "max-sites": values.whole(0),
    "max-recompiles": values.whole(0),
    "max-crossings-per-step": values.number(0),
    "max-compile-seconds": values.number(0),
    "max-ms-per-step": values.number(0),
}
_LINT: dict[str, values.Reader] = {
    "level": values.one_of("likely", "possible"),
    "exclude": values.texts,
}
_TARGET: dict[str, values.Reader] = {
    "name": values.text,
    "script": values.text,
    "module": values.text,
    "args": values.texts,
    "compile": values.text,
    "backend": values.one_of("eager", "aot_eager", "inductor", "as-script"),
    "mode": values.text,
    "dynamic": values.one_of("auto", "true", "false"),
    "keep-fullgraph": values.flag,
    "steps": values.whole(1),
    "timeout": values.number(0.1),
    "budgets": _budgets,
}
_CONFIG: dict[str, values.Reader] = {
    "select": values.codes,
    "ignore": values.codes,
    "per-path-ignore": values.codes_by_path,
    "owners": values.owners,
    "baseline": values.text,
    "strict": values.flag,
    "lint": _lint,
    "budgets": _budgets,
    "targets": _targets,
}
