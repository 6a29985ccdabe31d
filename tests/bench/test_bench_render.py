"""A benchmark on the terminal, in Markdown, on the page and in a diff."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from bench_samples import BENCHMARK, EAGER, FAST, WRONG, around
from report_samples import CLEAN, HOSTILE_TEXT

from breakscope.bench.choose import recommend
from breakscope.diagnose.compare import compare
from breakscope.render import bench_terminal, diff_json, diff_markdown, diff_terminal, html, markdown
from breakscope.render import terminal as terminal_format
from breakscope.render.html import benchmark as page
from breakscope.report import benchmark, schema
from breakscope.view import bench_view

CHOSEN = replace(BENCHMARK, recommendation=recommend(BENCHMARK.arms, 100_000))
REPORT = replace(CLEAN, benchmark=benchmark.to_dict(CHOSEN))


def test_a_benchmark_survives_its_report() -> None:
    again = schema.from_dict(json.loads(schema.dumps(REPORT)))
    assert benchmark.from_dict(again.benchmark) == CHOSEN
    jsonschema.Draft202012Validator(schema.json_schema()).validate(schema.to_dict(REPORT))


def test_a_benchmark_of_another_layout_is_not_misread() -> None:
    data = benchmark.to_dict(CHOSEN)
    assert benchmark.from_dict(None) is None
    assert benchmark.from_dict({**data, "layout": 2}) is None
    assert benchmark.from_dict({**data, "arms": "many"}) is None
    assert benchmark.from_dict({**data, "from the future": 1}) == CHOSEN


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_number_is_cut_on_a_narrow_terminal(width: int) -> None:
    lines = bench_terminal.render(CHOSEN, width=width, color=False).splitlines()
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split()}
    assert {"4.00", "3.96", "0.0002", "3,339", "10,000,", "max-autotune"} <= words


def test_the_terminal_shows_every_part() -> None:
    text = bench_terminal.render(CHOSEN, width=200, color=False)
    assert "\x1b" not in text
    for words in (
        "benchmark of an outermost compiled call on NVIDIA H200, torch 2.11.0",
        "fixed · reduce-overhead failed: hang: no answer for 60 s",
        "noisy: the card was throttled: power cap",
        "use compiled · reduce-overhead: 110.02 s against 400.01 s of eager for 100,000 steps",
        "4.00x",
        "0.95 ms, device-bound",
        "within 0.0002 (of 1e-02)",
        "2 timed steps thrown out: something was compiled in it",
        "kernels of compiled · reduce-overhead: device time 0.95 ms a step, 98.0% of it identified",
        "kernels of fixed · reduce-overhead: not measured: hang",
        "triton_poi_fused_add_relu_0",
        "try max-autotune",
        "SM clock 1980 to 1980 MHz",
        "took  1 min 47 s: starting 20.0 s, compiling 55.0 s, warming up 5.0 s, timed rounds 15.0 s",
        "the device's ceilings 7.0 s",
        "3,339",
    ):
        assert words in text, words


def test_every_line_fits_a_narrow_terminal() -> None:
    text = bench_terminal.render(CHOSEN, width=80, color=False)
    assert max(map(len, text.splitlines())) <= 80


def test_colour_only_where_asked_for() -> None:
    assert "\x1b[" in bench_terminal.render(CHOSEN, width=120, color=True)


def test_hostile_text_steers_nothing() -> None:
    hostile = replace(CHOSEN, notes=(HOSTILE_TEXT,), device=HOSTILE_TEXT)
    text = bench_terminal.render(hostile, width=200, color=False)
    assert "\x1b" not in text
    assert "\u202e" not in text
    shown = html.render(replace(CLEAN, benchmark=benchmark.to_dict(hostile)), sources=None)
    assert "<script>alert" not in shown


def test_a_wrong_arm_stands_first() -> None:
    wrong = replace(CHOSEN, arms=(EAGER, WRONG))
    view = bench_view.build(wrong)
    assert view.alarms[0].startswith("compiled · reduce-overhead computes another result than eager mode")
    [arms] = [table for table in view.tables if table.title == "arms"]
    assert arms.rows[1][-1] == "DIFFERENT"


def test_columns_without_a_number_are_left_out() -> None:
    [arms] = [
        table for table in bench_view.build(replace(CHOSEN, arms=(EAGER,))).tables if table.title == "arms"
    ]
    assert "outputs" not in arms.head
    assert arms.head == ("arm", "ms a step", "95% interval", "crossings")


def test_a_report_shows_its_benchmark_in_every_format() -> None:
    assert "use compiled · reduce-overhead" in terminal_format.render(REPORT, width=120, color=False)
    text = markdown.render(REPORT)
    assert "### Benchmark of an outermost compiled call on NVIDIA H200" in text
    assert "| <code>eager</code> |" in text
    shown = html.render(REPORT, sources=None)
    assert "Not run: this report comes from a scan" not in shown
    assert "triton_poi_fused_add_relu_0" in shown
    assert "float16[8, 128, 768] stride" in shown  # what is too wide for a terminal


def test_markdown_keeps_to_its_size() -> None:
    assert len(markdown.render(REPORT, max_bytes=9_000).encode()) <= 9_000


def test_the_page_draws_bars_for_the_steps() -> None:
    view = page.view(benchmark.to_dict(CHOSEN))
    assert view.tables[0].bars == (1_000, 250, None)
    assert ("choice", bench_view.build(CHOSEN).sentences[0]) in view.pairs


def test_a_diff_says_what_became_faster_and_what_is_noise() -> None:
    faster = replace(CHOSEN, arms=(replace(EAGER, step=around(4.01)), replace(FAST, step=around(0.8))))
    comparison = compare(REPORT, replace(CLEAN, benchmark=benchmark.to_dict(faster)))
    text = diff_terminal.render(comparison, width=120, color=False)
    assert "4.01 ms (3.97 to 4.05), within the noise" in text
    assert "0.80 ms (0.79 to 0.81), 1.25x as fast" in text
    assert "1.25x as fast" in diff_markdown.render(comparison)
    assert "1.25x as fast" in html.render_diff(comparison, root=None)
    assert json.loads(diff_json.render(comparison))["after"]["benchmark"]["device"] == "NVIDIA H200"
