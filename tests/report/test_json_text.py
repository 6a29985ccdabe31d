"""Our writer of JSON writes what Python's own writes."""

from __future__ import annotations

import enum
import json
from typing import Any

import pytest
import report_samples
from hypothesis import given, settings
from hypothesis import strategies as st

from breakscope.report import json_text, schema

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


class Name(enum.StrEnum):
    ONE = "one"


class Number(enum.IntEnum):
    ONE = 1


@given(VALUES)
@settings(deadline=None)
def test_as_python_writes_it(value: Any) -> None:
    assert json_text.text(value) == json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


@pytest.mark.parametrize("value", [Name.ONE, [Number.ONE], {"\ud800 \x7f \u2028": '\\"\n\0'}, -0.0, 1e300])
def test_unusual_values(value: Any) -> None:
    assert json_text.text(value) == json.dumps(value, indent=1, ensure_ascii=False)


@pytest.mark.parametrize(("value", "error"), [(float("nan"), ValueError), ({"a": {1}}, TypeError)])
def test_what_json_has_not(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        json_text.text(value)


def test_a_report_is_written_as_its_plain_form() -> None:
    report = report_samples.RECOMPILES
    whole = json.dumps(schema.to_dict(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    assert schema.dumps(report) == whole
