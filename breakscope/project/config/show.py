"""A configuration as TOML, with where each value comes from: what ``breakscope config`` prints."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from breakscope.project.config.model import Config, Target

_LEFT_OUT = ("root", "file", "origins", "targets", "budgets", "lint")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def show(config: Config) -> str:
    """Text that is a valid breakscope.toml. A limit that is not set stands in a comment."""
    source = f"# {config.file}" if config.file else "# no configuration file: every value is the default"
    lines = [source, f"# paths are relative to {config.root}", ""]
    top = {name: getattr(config, name) for name in _names(config) if name not in _LEFT_OUT}
    lines += _entries(top, config.origins)
    linting = {name: getattr(config.lint, name) for name in _names(config.lint)}
    lines += ["", "[lint]", *_entries(linting, config.origins, "lint.")]
    limits = {name: getattr(config.budgets, name) for name in _names(config.budgets)}
    lines += ["", "[budgets]", *_entries(limits, config.origins, "budgets.")]
    for target in config.targets:
        lines += ["", "[[targets]]", *_target(target)]
    return "\n".join(lines) + "\n"


def _names(record: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(record)]


def _entries(values: Mapping[str, Any], origins: Mapping[str, str], prefix: str = "") -> list[str]:
    rows = []
    for name, value in values.items():
        key = name.replace("_", "-")
        text = f"# {key} is not set" if value is None else f"{key} = {_toml(value)}"
        origin = origins.get(prefix + key, "default")
        rows.append((text, "" if value is None else f"# {origin}"))
    width = max(len(text) for text, origin in rows if origin) if any(origin for _, origin in rows) else 0
    return [f"{text:{width}}  {origin}".rstrip() for text, origin in rows]


def _target(target: Target) -> list[str]:
    """What differs from the defaults: the rest is as ``breakscope scan --help`` says."""
    plain = Target()
    changed = {n: v for n in _names(target) if (v := getattr(target, n)) != getattr(plain, n)}
    budgets = changed.pop("budgets", None)
    rows = [f"{name.replace('_', '-')} = {_toml(value)}" for name, value in changed.items()]
    if budgets is not None:
        set_ = {name: value for name, value in dataclasses.asdict(budgets).items() if value is not None}
        rows.append(f"budgets = {_toml(set_)}")
    return rows


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(key)} = {_toml(one)}" for key, one in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)


def _key(key: str) -> str:
    name = key.replace("_", "-") if key.startswith("max_") else key
    return name if _BARE_KEY.fullmatch(name) else _toml(name)
