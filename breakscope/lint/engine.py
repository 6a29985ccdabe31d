"""One run of lint: files in, possible breaks out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from breakscope import __version__
from breakscope.errors import UsageError
from breakscope.lint import files, present
from breakscope.lint.cache import Cache, digest, run_key
from breakscope.lint.extract import may_matter
from breakscope.lint.facts import Facts, from_plain
from breakscope.lint.graph import Graph, Placed
from breakscope.lint.project import Project
from breakscope.lint.readers import read_all
from breakscope.report.lint import Linted, Possible, Remark
from breakscope.report.place import Location, Tool

_MOST_ROUNDS = 12  # files that are only called into are read when the call is known


def lint(
    paths: Sequence[str],
    *,
    exclude: Sequence[str] = (),
    configured: tuple[Sequence[str], str] = ((), ""),
    jobs: int | None = None,
    cache: Path | None = None,
    suppress: bool = True,
) -> Linted:
    """Every possible break in the given files and folders, sorted by place.

    Args:
        paths: files and folders; together they are the file set in which calls are followed.
        exclude: patterns in the manner of .gitignore, relative to the current folder.
        configured: patterns of the configuration, and the folder to which they are relative.
        jobs: processes at most; None for one a core.
        cache: folder of the cache; None for none.
        suppress: whether comments in the source leave possible breaks out.

    Raises:
        UsageError: a path does not exist, or there is no Python file.
    """
    found = files.collect(paths, exclude, configured)
    # A hook names files; that all of them are excluded is not an error.
    if not found and not any(map(os.path.isfile, paths)):
        raise UsageError(f"no Python files in {', '.join(paths)}")
    contents, unreadable = _load(found)
    store = Cache(cache)
    hashes = {path: digest(content) for path, content in contents.items()}
    root = os.getcwd()
    named = set(map(os.path.abspath, paths))
    # A file that was named is an error where it cannot be read; see below.
    asked = ",".join(sorted(named & hashes.keys()))
    key = run_key([*hashes.items(), (root, f"{suppress} {asked}")])
    kept = _result(store.run(key)) if not unreadable else None
    if kept is not None:
        return kept
    placed, facts, texts = _follow(contents, hashes, store, jobs)
    unreadable += [
        Remark(path, None, one.error)
        for path, one in facts.items()
        if one.error is not None and (path in named or may_matter(contents[path]))
    ]
    linted = present.present(placed, contents, root, suppress=suppress)
    result = Linted(
        Tool("breakscope", __version__),
        linted.possible,
        len(found),
        len(facts),
        linted.suppressed,
        tuple(unreadable),
        linted.unused,
    )
    store.keep(key, asdict(result), texts)
    return result


def _load(paths: Sequence[str]) -> tuple[dict[str, bytes], list[Remark]]:
    contents: dict[str, bytes] = {}
    unreadable: list[Remark] = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                contents[path] = file.read()
        except OSError as error:
            unreadable.append(Remark(path, None, f"it cannot be opened: {error.strerror}"))
    return contents, unreadable


def _follow(
    contents: dict[str, bytes], hashes: dict[str, str], store: Cache, jobs: int | None
) -> tuple[list[Placed], dict[str, Facts], dict[str, str]]:
    """Read what may be compiled, then what that calls, until nothing new is called."""
    facts: dict[str, Facts] = {}
    texts: dict[str, str] = {}
    whole: set[str] = set()
    single = len(contents) == 1
    todo = {path for path, content in contents.items() if single or may_matter(content)}
    placed: list[Placed] = []
    for _ in range(_MOST_ROUNDS):
        everything = bool(facts)
        keys = {path: hashes[path] + ("+" if everything else "") for path in todo}
        known = {path: text for path in todo if (text := store.facts(keys[path])) is not None}
        fresh = read_all(
            [(path, contents[path], everything) for path in sorted(todo) if path not in known], jobs
        )
        for path, text in {**known, **fresh}.items():
            try:
                facts[path] = from_plain(json.loads(text))
            except (ValueError, TypeError, KeyError):  # the cache was tampered with
                text = read_all([(path, contents[path], everything)], 1)[path]
                facts[path] = from_plain(json.loads(text))
            texts[keys[path]] = text
        if everything:
            whole |= todo
        project = Project(contents, facts)
        placed = Graph(project).placed()
        todo = {path for path in project.wanted if path not in whole}
        if not todo:
            break
    return placed, facts, texts


def _result(plain: Any) -> Linted | None:
    """A kept result; None where it is not what this version keeps."""
    try:
        possible = tuple(
            Possible(**{**one, "location": Location(**one["location"])}) for one in plain["possible"]
        )
        remarks = {name: tuple(Remark(**one) for one in plain[name]) for name in ("unreadable", "unused")}
        return Linted(
            Tool(**plain["tool"]),
            possible,
            plain["files"],
            plain["read"],
            plain["suppressed"],
            remarks["unreadable"],
            remarks["unused"],
        )
    except (TypeError, KeyError):
        return None
