"""Real models with random weights: the report says what torch's own trace of the same run says.

Each scan runs with TORCH_TRACE set, so that torch writes its trace beside our events. A small reader
of that file, which shares no code with breakscope, gives the sites and the numbers to hold ours against.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from scanning import Scanned

from breakscope.report.model import Location

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]

needs_transformers = pytest.mark.skipif(
    # In CI a missing transformers must fail, not pass unseen.
    find_spec("transformers") is None and not os.environ.get("CI"),
    reason="transformers is not installed (pip install --group models)",
)
SITE_CODES = ("BS301", "BS302", "BS306")


@dataclass(frozen=True)
class Trace:
    """What torch's own trace of a run says.

    Attributes:
        breaks: (file, line) of each graph-break record.
        recompiles: compiles that began because a guard failed, less those that hit the recompile limit.
    """

    breaks: tuple[tuple[str, int], ...]
    recompiles: int

    @classmethod
    def read(cls, folder: Path) -> Trace:
        [path] = folder.glob("dedicated_log_torch_trace_*.log")
        breaks, recompiles = [], 0
        for envelope, payload in envelopes(path.read_text().split("\n")):
            artifact = envelope.get("artifact")
            if artifact and artifact["name"] == "dynamo_graph_break_reason":
                breaks.append(broke_at(payload))
            metrics = envelope.get("compilation_metrics", {})
            if metrics.get("recompile_reason"):
                refused = "limit" in f"{metrics.get('fail_type')}".lower()
                recompiles += not refused
        return cls(tuple(breaks), recompiles)


def envelopes(lines: list[str]) -> list[tuple[dict, str]]:
    """Each JSON object of a trace file with the payload lines under it."""
    found: list[tuple[dict, list[str]]] = []
    for line in lines:
        if line.startswith("\t"):
            found[-1][1].append(line[1:])
        elif "] {" in line:
            found.append((json.loads(line[line.index("] {") + 2 :]), []))
    return [(envelope, "\n".join(payload)) for envelope, payload in found]


def broke_at(payload: str) -> tuple[str, int]:
    """The innermost user frame of a graph-break record."""
    head = re.match(r"Graph break in user code at (.+):(\d+)\n", payload)
    if head is not None:
        return head[1], int(head[2])
    # A frame that was skipped as a whole: the user's frames come last, or before Dynamo's own traceback.
    frames = re.findall(r'^  File "(.+)", line (\d+), in ', payload, re.MULTILINE)
    file, line = next((file, line) for file, line in reversed(frames) if "/torch/_dynamo/" not in file)
    return file, int(line)


def told(location: Location, trace: Trace) -> tuple[str, int]:
    """Where torch says that a site is.

    Python 3.11 gives a later operand of a test, in a line of its own, the line of the first; the site's own
    line is the right one.
    """
    at = location.file, location.line
    before = location.file, location.line - 1
    return before if sys.version_info < (3, 12) and at not in trace.breaks and before in trace.breaks else at


def scanned_and_traced(scan: Scan, source: str, *options: str) -> Scanned:
    """Scan a script, hold the report against torch's trace of the same run, and return it."""
    scanned = scan(source, *options, TORCH_TRACE="trace", TRANSFORMERS_VERBOSITY="error")
    assert scanned.exit_code == 0, scanned.stderr
    report, trace = scanned.report, Trace.read(scanned.folder / "trace")
    sites = [f for f in report.findings if f.kind == "graph_break" or f.code in SITE_CODES]
    assert {told(f.location, trace) for f in sites} == set(trace.breaks)
    per_line: Counter[tuple[str, int]] = Counter()
    for finding in sites:
        per_line[told(finding.location, trace)] += finding.counts.occurrences
    assert per_line == Counter(trace.breaks)
    assert (
        report.totals.occurrences == report.reconciliation.dynamo["graph_break_records"] == len(trace.breaks)
    )
    assert report.totals.recompiles == trace.recompiles
    assert report.reconciliation.unattributed == ()
    for finding in sites:
        location = finding.location
        assert location.column is not None, finding
        assert location.end_column is not None, finding
        assert (location.line, location.column) < (location.end_line, location.end_column)
        assert location.source
    return scanned


def crossings(scanned: Scanned) -> dict[tuple[str | None, str], int]:
    """Crossings by function and code; a function may have several sites."""
    counted: Counter[tuple[str | None, str]] = Counter()
    for finding in scanned.report.findings:
        if finding.kind == "graph_break" or finding.code in SITE_CODES:
            counted[finding.location.function, finding.code] += finding.counts.crossings or 0
    return dict(counted)


BART = """
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=100, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
        encoder_layerdrop={layerdrop}, decoder_layerdrop={layerdrop},
    )
    model = BartForConditionalGeneration(config)
"""


@pytest.mark.nightly
@needs_transformers
def test_bart_in_half_precision_with_a_decoder_of_one_token(scan: Scan) -> None:
    scanned = scanned_and_traced(
        scan,
        BART.format(layerdrop=0.0)
        + """
    compiled = torch.compile(model.half().eval())
    with torch.no_grad():
        for _ in range(3):
            compiled(input_ids=torch.randint(4, 100, (2, 16)), decoder_input_ids=torch.full((2, 1), 2))
    """,
    )
    # `dtype == float16 and (isinf.any() or isnan.any())`: nothing is infinite, so both halves are asked:
    # 2 in each of 2 encoder layers in each of 3 calls. The logger is asked once in each call.
    assert crossings(scanned) == {
        ("BartEncoderLayer.forward", "BS101"): 12,
        ("BartDecoder.forward", "BS104"): 3,
    }
    # The layers are called in a loop of the encoder, which no break lets Dynamo resume.
    skipped = {(s.function, s.calls) for f in scanned.report.findings for s in f.skipped}
    assert skipped == {("BartEncoder.forward", 3)}


@pytest.mark.slow
@needs_transformers
def test_longformer(scan: Scan) -> None:
    scanned = scanned_and_traced(
        scan,
        """
        import torch
        from transformers import LongformerConfig, LongformerModel

        torch.manual_seed(0)
        config = LongformerConfig(
            vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64, attention_window=[8, 8], max_position_embeddings=80,
        )
        model = torch.compile(LongformerModel(config).eval())
        with torch.no_grad():
            for _ in range(3):
                # 30 is no multiple of the window: the model pads, and says so to its logger.
                model(input_ids=torch.randint(4, 100, (2, 30)), attention_mask=torch.ones(2, 30).long())
        """,
    )
    assert crossings(scanned) == {
        ("LongformerModel._pad_to_window_size", "BS104"): 3,
        ("LongformerEncoder.forward", "BS102"): 3,
    }


@pytest.mark.nightly
@pytest.mark.slow
@needs_transformers
def test_t5(scan: Scan) -> None:
    scanned = scanned_and_traced(
        scan,
        """
        import torch
        from transformers import T5Config, T5ForConditionalGeneration

        torch.manual_seed(0)
        config = T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=64, num_layers=2, num_heads=4)
        model = torch.compile(T5ForConditionalGeneration(config).eval())
        with torch.no_grad():
            for _ in range(3):
                model(input_ids=torch.randint(4, 100, (2, 16)), decoder_input_ids=torch.full((2, 4), 2))
        """,
    )
    # Only the decoder has a cache to complain about.
    assert crossings(scanned) == {("T5Stack.forward", "BS104"): 3}


@pytest.mark.nightly
@pytest.mark.slow
@needs_transformers
def test_phi3_with_longrope_and_prompts_short_and_long(scan: Scan) -> None:
    scanned = scanned_and_traced(
        scan,
        """
        import torch
        from transformers import Phi3Config, Phi3ForCausalLM

        torch.manual_seed(0)
        config = Phi3Config(
            vocab_size=100, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=64,
            original_max_position_embeddings=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            rope_scaling={"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8},
        )
        model = torch.compile(Phi3ForCausalLM(config).eval())
        with torch.no_grad():
            for length in (8, 8, 24, 24, 8):
                model(input_ids=torch.randint(4, 100, (2, length)), use_cache=False)
        """,
    )
    # The rotary embedding is one for all layers, and is asked for once in each of 5 calls.
    assert crossings(scanned) == {("dynamic_rope_update.<locals>.longrope_frequency_update", "BS101"): 5}
    sizes = [f.guard for f in scanned.report.findings if f.code == "BS201"]
    assert all(guard is not None and (guard.expected, guard.actual) == ("8", "24") for guard in sizes)
    # One decorator on two functions: each of 5 calls meets it twice, and its `try` can not be resumed.
    skipped = {(s.function, s.calls) for f in scanned.report.findings for s in f.skipped}
    assert skipped == {("can_return_tuple.<locals>.wrapper", 10)}


@pytest.mark.slow
@needs_transformers
def test_a_plain_training_loop_that_never_mentions_compile(scan: Scan) -> None:
    scanned = scanned_and_traced(
        scan,
        BART.format(layerdrop=0.1)
        + """
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(4):
        loss = model(
            input_ids=torch.randint(4, 100, (2, 16)), labels=torch.randint(4, 100, (2, 12))
        ).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    """,
    )
    report = scanned.report
    assert [(target.name, target.by) for target in report.run.targets] == [
        ("BartForConditionalGeneration", "breakscope")
    ]
    # layerdrop in the loop over the layers: both stacks run eagerly, and come to the line once for each of
    # two layers in each of 4 steps.
    assert crossings(scanned) == {("BartEncoder.forward", "BS301"): 8, ("BartDecoder.forward", "BS301"): 8}
    assert report.totals.steps == 4


def test_a_gan_with_two_networks_and_two_optimizers(scan: Scan) -> None:
    scanned = scanned_and_traced(
        scan,
        """
        import torch
        from torch import nn

        class Generator(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16))

            def forward(self, z):
                out = self.net(z)
                if torch.isnan(out).any():
                    out = torch.nan_to_num(out)
                return out

        class Critic(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

            def forward(self, x):
                score = self.net(x)
                self.latest = score.mean().item()
                return score

        torch.manual_seed(0)
        generator, critic, criterion = Generator(), Critic(), nn.BCEWithLogitsLoss()
        of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
        of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
        for step in range(5):
            fake = generator(torch.randn(4, 8))
            of_critic.zero_grad()
            loss = criterion(critic(torch.randn(4, 16)), torch.ones(4, 1))
            loss = loss + criterion(critic(fake.detach()), torch.zeros(4, 1))
            loss.backward()
            of_critic.step()
            of_generator.zero_grad()
            criterion(critic(fake), torch.ones(4, 1)).backward()
            of_generator.step()
        """,
    )
    report = scanned.report
    assert {(target.name, target.by) for target in report.run.targets} == {
        ("Generator", "breakscope"),
        ("Critic", "breakscope"),
    }
    # The critic judges three times in each of 5 steps.
    assert crossings(scanned) == {("Generator.forward", "BS101"): 5, ("Critic.forward", "BS102"): 15}
    # The first two inputs of the critic need no gradient, the third does.
    [recompile] = [f for f in report.findings if f.kind == "recompile"]
    assert recompile.guard is not None
    assert recompile.guard.cause == "requires_grad"
    assert report.totals.steps == 5
