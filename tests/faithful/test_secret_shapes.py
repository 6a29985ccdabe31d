"""Nothing that looks like a secret is in anything that a scan leaves or prints."""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import subprocess
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from faithful import planted
from report_samples import RECOMPILES
from scanning import Scanned, run_cold

from breakscope.cli import main
from breakscope.fix import engine, proofs
from breakscope.fix.outcomes import Fixed, Outcome
from breakscope.render import FORMATS, Options
from breakscope.render.lint import FORMATS as FORMATS_OF_LINT
from breakscope.report import schema, secrets
from breakscope.report.model import Suggestion

SHAPED, NAMED, OPTIONS = planted.shaped(), planted.named(), planted.options()


def test_forty_secrets_are_planted() -> None:
    assert len(SHAPED) + len(NAMED) + len(OPTIONS) >= 40


@pytest.mark.parametrize("name", [*SHAPED, *NAMED])
def test_a_secret_is_masked_wherever_it_stands_in_a_text(name: str) -> None:
    text, secret = (SHAPED | NAMED)[name]
    for around in ("{}", "x = '{}'", '{{"a": "{}"}}', "before {} after", "L['x'] == '{}'  # comment"):
        shown = secrets.mask(around.format(text))
        assert secret not in shown
        assert len(shown) == len(around.format(text))  # columns stay


@pytest.mark.parametrize("name", OPTIONS)
def test_a_secret_of_a_command_line_is_masked(name: str) -> None:
    words, secret = OPTIONS[name]
    masked = secrets.mask_words(["train", *words, "--epochs", "3"])
    assert secret not in " ".join(masked)
    assert masked[0] == "train"
    assert masked[-2:] == ("--epochs", "3")


@pytest.mark.parametrize(
    "text",
    [
        "num_tokens = 1024",
        "pad_token = '<|endoftext|>'",
        "tokenizer.bos_token == '<s>'",
        "key, value = self.qkv(x).chunk(2)",
        "return F.scaled_dot_product_attention(query, key, value)",
        "self.keys['weight']",
        "L['self']._modules['sk-learn']",
        "https://example.org/a:b@c/x",
        "GuardManager: source=L['token_type_ids']",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "monkey_patch = 'some text here'",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert secrets.mask(text) == text


@pytest.mark.parametrize(
    "words",
    [
        ["--max-tokens", "512"],
        ["--pad-token", "<pad>"],
        ["--token", "3"],
        ["--key", "weight"],
        ["--use-auth=true"],
    ],
    ids=str,
)
def test_arguments_that_are_no_secrets_stay(words: list[str]) -> None:
    assert secrets.mask_words(words) == tuple(words)


SCRIPT = """
    import sys
    import torch

    {hard_coded}

    def use(x, text):
        if x.sum() > 0:
            x = x + len(text)
        return x

    class Net(torch.nn.Module):
        def __init__(self, text):
            super().__init__()
            self.text = text
        def forward(self, x):
            y = use(x, self.text)
            if self.text.startswith("z") or y.sum() > 3: api_key = "{in_line}"; y = y - len(api_key)
            return y

    for text in [{listed}]:
        torch.compile(Net(text))(torch.ones(2))
"""


@pytest.mark.torch
def test_none_of_the_planted_secrets_is_in_anything_that_is_left(
    scan: Callable[..., Scanned], tmp_path: Path
) -> None:
    held = {name: pair for name, pair in SHAPED.items() if "\\n" not in pair[0]}
    in_line = SHAPED["Hugging Face token"][1]
    source = textwrap.dedent(SCRIPT).format(
        hard_coded="\n".join(line for line, _ in NAMED.values()),
        in_line=in_line,
        listed=", ".join(repr(text) for text, _ in list(held.values())[:6]),
    )
    source += "".join(f"# {text}\n" for text, _ in SHAPED.values())
    arguments = [word for words, _ in OPTIONS.values() for word in words]
    scanned = scan(
        source, "--artifacts", args=[*arguments, *(text for text, _ in held.values())], quiet=False
    )
    assert scanned.exit_code == 0, scanned.stderr
    report = scanned.report
    assert report.findings
    assert secrets.NOTE in report.run.notes
    latest = tmp_path / ".breakscope" / "latest.json"
    assert main(["report", str(latest), "--html"]) == 0
    assert main(["diff", str(latest), str(latest), "--html"]) == 0
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        shown = main(["show", str(latest), "--all"])
    outputs = {name: str(FORMATS[name](report, Options())) for name in FORMATS if name != "parquet"}
    outputs |= {"scan": scanned.text + scanned.stderr, "show": said.getvalue(), "shown": str(shown)}
    for path in (tmp_path / ".breakscope").rglob("*"):
        if path.is_file():
            outputs[path.name] = _text(path)
    everything = [secret for _, secret in (*SHAPED.values(), *NAMED.values(), *OPTIONS.values())]
    leaks = [(name, secret) for name, text in outputs.items() for secret in everything if secret in text]
    assert leaks == []
    assert "breakscope.html" in outputs
    assert "****" in outputs["breakscope.html"]


def _text(path: Path) -> str:
    import gzip

    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode(errors="replace")


@pytest.mark.torch
def test_a_script_whose_argument_was_masked_is_not_run_without_it(
    scan: Callable[..., Scanned], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, secret = OPTIONS["--token X"]
    scanned = scan("print('ran')", args=words)
    assert scanned.text == "ran\n"
    place = tmp_path / ".breakscope" / "latest.json"
    assert json.loads(place.read_text())["run"]["argv"] == ["--token", "*" * len(secret)]
    assert main(["fix", str(place), "--trust-report"]) == 2
    assert "was a secret" in capsys.readouterr().err


def _leaks(outputs: dict[str, str]) -> list[tuple[str, str]]:
    everything = [secret for _, secret in (*SHAPED.values(), *NAMED.values(), *OPTIONS.values())]
    return [(name, secret) for name, text in outputs.items() for secret in everything if secret in text]


@pytest.mark.parametrize("format_", FORMATS_OF_LINT)
def test_lint_shows_no_secret_of_the_lines_that_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"print(x.item()); note = {text!r}" for text, _ in SHAPED.values()]
    lines += [f"print(x.item()); {line}" for line, _ in NAMED.values()]
    body = "\n        ".join(lines)
    Path("net.py").write_text(
        f"import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        {body}\n        return x\n"
    )
    assert main(["lint", "net.py", "-f", format_, "--level", "possible"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("net.py") >= 10
    assert ("****" in shown) == (format_ in ("full", "json"))  # the others show no source
    assert _leaks({format_: shown, "cache": "".join(map(_text, Path(".breakscope").rglob("*.txt")))}) == []


@pytest.mark.parametrize("name", ["api_key", "Hugging Face token"])
def test_a_proof_that_holds_a_secret_is_not_kept(tmp_path: Path, name: str) -> None:
    text, _ = (SHAPED | NAMED)[name]
    proofs.keep(tmp_path / "proof.json", {"conditions": [{"text": "x.sum() > 0"}]}, ())
    proofs.keep(tmp_path / "telling.json", {"conditions": [{"text": f"if {text.replace('=', '==')}:"}]}, ())
    assert [path.name for path in tmp_path.iterdir()] == ["proof.json"]


def test_remedy_shows_no_secret_of_the_lines_that_it_would_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schema.save(replace(RECOMPILES, run=replace(RECOMPILES.run, cwd=str(tmp_path))), "report.json")
    Path("train.py").touch()
    lines = "\n".join(text for text, _ in (*NAMED.values(), *SHAPED.values()))
    suggestion = Suggestion("dynamic", "mark it dynamic", lines, "proved", "bitwise equal")
    found = Outcome(RECOMPILES.findings[0], suggestion, None, True)
    monkeypatch.setattr(engine, "remedies", lambda *_: Fixed((found,), {}, None))
    assert main(["remedy", "report.json", "--trust-report"]) == 0
    shown = capsys.readouterr().out
    assert "****" in shown
    assert _leaks({"remedy": shown, "report": Path("report.json").read_text()}) == []


TO_FIX = """
    import torch

    def step(x):
        api_key = {named!r}
        if x.sum() > 0: y = x + len({shaped!r})
        else: y = x - len(api_key)
        return y

    for _ in range(3):
        torch.compile(step, backend="eager")(torch.ones(2))
        torch.compile(step, backend="eager")(-torch.ones(2))
"""


@pytest.mark.nightly
@pytest.mark.torch
def test_neither_fix_nor_prove_nor_a_counterexample_shows_a_secret(
    scan: Callable[..., Scanned], tmp_path: Path
) -> None:
    named, shaped = NAMED["api_key"][1], SHAPED["Hugging Face token"][1]
    source = textwrap.dedent(TO_FIX).format(named=named, shaped=shaped)
    scanned = scan(source)
    assert scanned.report.findings

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return run_cold(*words, folder=scanned.folder)

    [script] = scanned.folder.glob("*.py")
    wrong = source.replace("y = x + len", "y = x * len")
    diff = "".join(
        difflib.unified_diff(
            source.splitlines(keepends=True),
            wrong.splitlines(keepends=True),
            f"a/{script.name}",
            f"b/{script.name}",
        )
    )
    (scanned.folder / "wrong.patch").write_text(diff)
    prove = ["prove", "wrong.patch", "--no-inductor"]
    ran = {
        "fix": run("fix", "--all", "--no-inductor"),
        "fix json": run("fix", "--format", "json", "--no-inductor"),
        "prove": run(*prove, "--counterexample", "example.py", "--", script.name),
        "prove json": run(*prove, "--format", "json", "--", script.name),
    }
    outputs = {name: done.stdout + done.stderr for name, done in ran.items()}
    assert "****" in outputs["fix json"], outputs
    assert "refused" in outputs["prove"], outputs
    assert "no counterexample is written" in ran["prove"].stderr
    assert not (scanned.folder / "example.py").exists()
    reports = (tmp_path / ".breakscope").glob("*.json")
    kept = (tmp_path / ".breakscope" / "proofs").glob("*")
    left = {path.name: _text(path) for path in (*reports, *kept)}
    assert _leaks({**outputs, **left}) == []
