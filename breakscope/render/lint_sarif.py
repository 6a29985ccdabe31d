"""Possible breaks as SARIF 2.1.0. Likely ones are warnings, possible ones notes."""

from __future__ import annotations

import json
import os
from typing import Any

from breakscope.catalog.entry import Severity
from breakscope.render import sarif, sarif_places
from breakscope.render.lint import Options
from breakscope.render.lint_text import function, shown_path, title
from breakscope.report.lint import Linted, Possible
from breakscope.view.text import harmless

_SEVERITIES: dict[str, Severity] = {"likely": "warning", "possible": "info"}


def render(linted: Linted, options: Options) -> str:
    """The log as text, in ASCII."""
    codes = sorted({one.code for one in linted.possible})
    run = {
        "tool": {
            "driver": {
                "name": "breakscope lint",
                "version": linted.tool.version,
                "rules": [sarif.rule_of(code, code, "warning") for code in codes],
            }
        },
        "automationDetails": {"id": "breakscope-lint/"},
        "invocations": [
            {
                "executionSuccessful": not linted.unreadable,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": sarif_places.message(
                            f"{shown_path(one.file, options)}: {harmless(one.text)}"
                        ),
                    }
                    for one in linted.unreadable
                ],
            }
        ],
        "originalUriBaseIds": sarif_places.BASES,
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, codes, options) for one in linted.possible],
    }
    return json.dumps({"$schema": sarif.SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(one: Possible, codes: list[str], options: Options) -> dict[str, Any]:
    place = one.location
    text = f"{one.level.capitalize()}: {title(one)}, in {function(one)} ({one.why})."
    relative = os.path.relpath(place.file, options.root).replace(os.sep, "/")
    outside = relative.startswith("../")
    artifact = (
        {"uri": "file://" + sarif_places.quoted(place.file.replace(os.sep, "/"))}
        if outside
        else {"uri": sarif_places.quoted(relative), "uriBaseId": "SRCROOT"}
    )
    return {
        "ruleId": one.code,
        "ruleIndex": codes.index(one.code),
        "level": sarif.LEVELS[_SEVERITIES[one.level]],
        "message": sarif_places.message(harmless(text)),
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": artifact,
                    "region": {
                        "startLine": place.line,
                        "startColumn": place.column,
                        "endLine": place.end_line,
                        "endColumn": place.end_column,
                    },
                }
            }
        ],
        "partialFingerprints": {sarif.FINGERPRINT: one.fingerprint},
        "properties": {"level": one.level},
    }
