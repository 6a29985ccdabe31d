"""Every cause of the recompile fixtures: the remedy that the script itself proves, or the reason for none.

Nightly are all causes but one: several runs of a script each.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from scanning import rows, run_cold

import breakscope
from breakscope.report.model import Finding, Suggestion

pytestmark = pytest.mark.torch

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"

# Fixture -> finding, rule of the proved remedy, a line that its diff adds.
PROVED = {
    "varying_batch": ("BS201", "mark-dynamic", "torch._dynamo.maybe_mark_dynamic(x, 0)"),
    "varying_length": ("BS201", "mark-dynamic", "torch._dynamo.maybe_mark_dynamic(tokens, 1)"),
    "two_sizes": ("BS201", "mark-dynamic", "torch._dynamo.maybe_mark_dynamic(query, 1)"),
    "one_left": ("BS201", "mark-unbacked", "torch._dynamo.decorators.mark_unbacked(batch, 0)"),
    "transposed_image": ("BS202", "contiguous-argument", "out = stem(image.contiguous())"),
    "frozen_input": ("BS205", "detach-argument", "total += distance(x.detach(), centre).mean().item()"),
    "window_size": ("BS207", "dynamic-true", "@torch.compile(dynamic=True)"),
    "float_argument": (
        "BS207",
        "scalar-to-tensor",
        "weight = sgd_update(weight, grad, torch.tensor(lr, dtype=torch.float64))",
    ),
    "temperature": (
        "BS209",
        "attribute-to-buffer",
        'self.register_buffer("temperature", torch.tensor(1.0, dtype=torch.float64), persistent=False)',
    ),
    "call_tally": (
        "BS209",
        "attribute-to-buffer",
        'self.register_buffer("calls", torch.tensor(0), persistent=False)',
    ),
    "idle_grad_mode": ("BS212", "same-grad-mode", "with torch.no_grad():"),
    "self_attention": ("BS215", "clone-argument", "own = similarity(words, words.clone())"),
    "inference_tensor": ("BS216", "no-grad", "with torch.no_grad():"),
    "layer_index": (
        "BS303",
        "unspecialised-int",
        "torch._dynamo.config.allow_unspec_int_on_nn_module = True",
    ),
}

# Those of them that change nothing else; the others need consent to what they change.
WITHOUT_CONSENT = {"varying_batch", "varying_length", "two_sizes", "float_argument"}

# Fixture -> finding, what the reason must say.
REFUSED = {
    "grad_mode": ("BS212", "gradients flow back"),
    "saliency": ("BS205", "gradients flow back"),
}

# These are refused without running anything.
REFUSED_AT_ONCE = {
    "single_sample": ("BS206", "never dynamic"),
    "dtype_change": ("BS203", "float32, bfloat16, float64"),
    "reduction_flag": ("BS208", "'mean', 'sample'"),
    "growing_list": ("BS211", "1 item, 2 items, 3 items, 4 items"),
    "dict_keys": ("BS211", "keep its items the same in number and names"),
    "optional_mask": ("BS210", "with and without mask"),
    "two_activations": ("BS210", "activation decides which code runs"),
    "autocast_check": ("BS212", "autocast decides the dtypes"),
    "thread_count": ("BS212", "it is called in lines"),
    "train_eval": ("BS209", "compiled once each"),
    "item_resumed": ("BS213", "Goes with BS102"),
    "recompile_limit": ("BS303", "only moves the end"),
}


def remedied(script: str | Path, folder: Path, code: str) -> tuple[Finding, Suggestion, str]:
    """The suggestion for a finding of a script or a fixture, and what the command printed."""
    script = script if isinstance(script, Path) else FIXTURES / f"{script}.py"
    report = folder / "report.json"
    for words in (
        ["scan", "-q", "-o", str(report), str(script)],
        ["remedy", "--trust-report", str(report)],
    ):
        done = run_cold(*words, folder=folder)
        assert done.returncode == ("\n0 proved" in done.stdout), done.stderr
    [finding] = [one for one in breakscope.load(report).findings if one.code == code]
    assert finding.suggestion is not None
    return finding, finding.suggestion, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    rows(PROVED, {"varying_batch"}),
)
def test_a_remedy_is_proved_on_the_script_itself(name: str, tmp_path: Path) -> None:
    code, rule, line = PROVED[name]
    source = (FIXTURES / f"{name}.py").read_bytes()
    _, suggestion, printed = remedied(name, tmp_path, code)
    label = "proved" if name in WITHOUT_CONSENT else "needs consent"
    assert (suggestion.label, suggestion.rule) == (label, rule), suggestion
    assert line in [text[1:].strip() for text in suggestion.diff.splitlines() if text.startswith("+")]
    evidence = suggestion.evidence
    assert evidence["recompiles_after"] < evidence["recompiles_before"]
    assert evidence["printed_the_same"]
    assert evidence["calls_compared"] >= 2
    assert evidence["bitwise"] or evidence["max_rel"] < 1e-6
    assert f"{label}: {suggestion.summary}" in printed
    assert (FIXTURES / f"{name}.py").read_bytes() == source


PARAMETERS = """\
import torch

weights = [torch.nn.Parameter(torch.ones(size)) for size in range(2, 7)]


@torch.compile
def norm(weight):
    return weight.detach().square().sum()


print([norm(weight).item() for weight in weights])
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_sizes_of_parameters_become_dynamic_by_an_option_with_consent(tmp_path: Path) -> None:
    """One recompile is left, that of a second size: it is one that a healthy script has."""
    (tmp_path / "norms.py").write_text(PARAMETERS)
    _, suggestion, _ = remedied(tmp_path / "norms.py", tmp_path, "BS201")
    assert (suggestion.label, suggestion.rule) == ("needs consent", "dynamic-parameters")
    assert "+torch._dynamo.config.force_parameter_static_shapes = False" in suggestion.diff
    assert (suggestion.evidence["recompiles_before"], suggestion.evidence["recompiles_after"]) == (4, 1)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_what_a_trial_shows_to_be_wrong_is_refused(name: str, tmp_path: Path) -> None:
    code, reason = REFUSED[name]
    _, suggestion, printed = remedied(name, tmp_path, code)
    assert (suggestion.status, suggestion.diff) == ("refused", "")
    assert reason in suggestion.why
    assert "no proved remedy: " in printed


@pytest.mark.nightly
@pytest.mark.parametrize("name", REFUSED_AT_ONCE)
def test_a_refusal_gives_its_reason(name: str, tmp_path: Path) -> None:
    code, reason = REFUSED_AT_ONCE[name]
    _, suggestion, _ = remedied(name, tmp_path, code)
    assert (suggestion.status, suggestion.rule, suggestion.diff) == ("refused", "none", "")
    assert reason in suggestion.why, suggestion.why


@pytest.mark.nightly
@pytest.mark.slow
def test_a_counter_that_decides_a_branch_is_improved_and_not_called_proved(tmp_path: Path) -> None:
    _, suggestion, _ = remedied("call_counter", tmp_path, "BS209")
    assert (suggestion.status, suggestion.rule) == ("unproved", "unspecialised-int")
    assert 0 < suggestion.evidence["recompiles_after"] < suggestion.evidence["recompiles_before"] == 4


BEHIND_A_LIMIT = """
import torch

class Net(torch.nn.Module):
    step = 0

    def forward(self, x):
        if x.sum() > 99:
            x = x / 2
        return x * min(1.0, self.step / 20)

net = Net()
compiled = torch.compile(net)
for net.step in range(1, 14):
    compiled(torch.ones(4))
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_a_break_that_a_limit_hid_does_not_speak_against_a_remedy(tmp_path: Path) -> None:
    """Behind the limit the script ran eagerly, and crossed no break."""
    (tmp_path / "script.py").write_text(BEHIND_A_LIMIT)
    _, suggestion, _ = remedied(tmp_path / "script.py", tmp_path, "BS209")
    assert suggestion.rule == "unspecialised-int"
    assert "left more often" not in suggestion.why
    assert suggestion.evidence["recompiles_after"] < suggestion.evidence["recompiles_before"]


@pytest.mark.nightly
@pytest.mark.slow
def test_layers_that_share_code_are_recognised_with_the_break_that_parts_them(tmp_path: Path) -> None:
    finding, suggestion, _ = remedied("layer_index", tmp_path, "BS303")
    line = next(
        number
        for number, text in enumerate((FIXTURES / "layer_index.py").read_text().splitlines(), start=1)
        if text.strip() == "torch._dynamo.graph_break()"
    )
    assert finding.location.function == "Layer.forward"
    assert "share one code object" in suggestion.why
    assert f"because of the break in line {line}" in suggestion.why
