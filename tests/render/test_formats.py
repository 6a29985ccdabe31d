"""The list of formats, and what each loads."""

from __future__ import annotations

import sys

import pytest
from report_samples import COSTS, HOSTILE, HUNDRED, SAMPLES, VACUOUS
from scanning import run_python

from breakscope.render import FORMATS, Options
from breakscope.view import notebook

TEXT = sorted(FORMATS.keys() - {"parquet"})


def test_the_formats_of_the_command_line() -> None:
    assert list(FORMATS) == [
        "terminal",
        "json",
        "markdown",
        "sarif",
        "github",
        "junit",
        "csv",
        "parquet",
        "warmup",
        "perfetto",
        "speedscope",
        "issue",
    ]


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_format_is_a_function_of_the_report_alone(
    name: str, sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = FORMATS[name](SAMPLES[sample], Options())
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    assert FORMATS[name](SAMPLES[sample], Options()) == first
    assert isinstance(first, str)
    assert first.endswith("\n")


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("json", {"torch", "pandas", "rich", "jinja2", "libcst"}),
        ("markdown", {"torch", "pandas", "rich", "jinja2", "libcst"}),
        ("sarif", {"torch", "pandas", "rich", "jinja2", "libcst"}),
        ("github", {"torch", "pandas", "rich", "jinja2", "libcst"}),
        ("junit", {"torch", "pandas", "rich", "jinja2", "libcst"}),
        ("terminal", {"torch", "pandas", "jinja2", "libcst"}),
        ("csv", {"torch", "rich", "jinja2", "libcst"}),
        ("perfetto", {"torch", "pandas", "rich", "jinja2", "libcst"}),
        ("speedscope", {"torch", "pandas", "rich", "jinja2", "libcst"}),
        ("issue", {"torch", "pandas", "jinja2", "libcst"}),
    ],
)
def test_nothing_is_imported_that_a_format_does_not_use(name: str, absent: set[str]) -> None:
    program = (
        f"import sys; sys.path[:] = {[entry for entry in sys.path if entry]!r}\n"
        "import report_samples\n"
        "from breakscope.render import FORMATS, Options\n"
        f"FORMATS[{name!r}](report_samples.COSTS, Options())\n"
        f"print([module for module in {sorted(absent)!r} if module in sys.modules])"
    )
    done = run_python("-c", program, check=True)
    assert done.stdout == "[]\n"


# ---- the notebook's cell ----


def test_a_notebook_shows_totals_and_findings() -> None:
    text = notebook.render(COSTS)
    assert text.startswith("<div>")
    assert text.index("BS101") < text.index("BS102") < text.index("BS104")
    assert "if y.abs().max() &gt; 1e4:" in text
    assert "1.42 ms a step (35%)" in text


def test_a_notebook_runs_nothing_of_a_report() -> None:
    for sample in SAMPLES.values():
        text = notebook.render(sample)
        assert "<script" not in text
        assert "<b onclick" not in text
    assert "&lt;script&gt;&amp;" in notebook.render(HOSTILE)
    assert "VACUOUS" in notebook.render(VACUOUS)


def test_a_notebook_shows_the_first_fifty() -> None:
    text = notebook.render(HUNDRED)
    assert text.count("<tr>") == 51
    assert "and 50 more" in text
