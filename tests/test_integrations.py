"""Training frameworks that compile on a script's behalf, or say so and do not.

Nightly: Trainer, accelerate and lightning take half a minute each to import and train.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from warm_scanning import run_command

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.nightly]

TRAINER = """
    import sys
    import torch
    from transformers import Trainer, TrainingArguments

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return {"x": torch.full((4,), float(index)), "labels": torch.tensor(1.0)}

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 1)

        def forward(self, x, labels):
            y = self.linear(x).squeeze(-1)
            if y.sum() > 1e6:
                y = y / 2
            return {"loss": ((y - labels) ** 2).mean()}

    class Bypassing(Trainer):
        def compute_loss(self, model, inputs, **_):
            return self.model(**inputs)["loss"]  # not the compiled one that was passed

    arguments = TrainingArguments(
        output_dir="out", torch_compile=True, use_cpu=True, max_steps=2, per_device_train_batch_size=4,
        report_to=[], save_strategy="no", disable_tqdm=True,
    )
    case = sys.argv[1]
    if case == "trainer":
        Trainer(Net(), arguments, train_dataset=Data()).train()
    elif case == "bypassing":
        Bypassing(Net(), arguments, train_dataset=Data()).train()
    else:  # a loop of one's own, which reads everything of the arguments but this
        net, data = Net(), Data()
        for index in range(arguments.max_steps):
            net(**{name: value[None] for name, value in data[index].items()})["loss"].backward()
"""
ACCELERATE = """
    import sys
    import torch
    from accelerate import Accelerator
    from accelerate.utils import TorchDynamoPlugin

    plugin = TorchDynamoPlugin(backend="eager") if sys.argv[1] == "plugin" else None
    accelerator = Accelerator(cpu=True, dynamo_plugin=plugin)
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = accelerator.prepare(net, optimizer)
    for _ in range(2):
        accelerator.backward(net(torch.ones(2, 4)).sum())
        optimizer.step()
"""


def verdict(folder: Path, source: str, *words: str) -> tuple[int, dict[str, object]]:
    (folder / "train.py").write_text(textwrap.dedent(source))
    done = run_command("check", "-f", "json", *words, folder=folder, timeout=600)
    assert done.stdout, done.stderr
    (target,) = json.loads(done.stdout)["targets"]
    return done.returncode, target


@pytest.mark.parametrize(
    ("case", "outcome", "exit_code"),
    [("trainer", "new", 1), ("bypassing", "vacuous", 3), ("own loop", "vacuous", 3)],
)
def test_trainer_with_torch_compile(tmp_path: Path, case: str, outcome: str, exit_code: int) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    code, target = verdict(tmp_path, TRAINER, "--compile", "script", "--", "train.py", case)
    assert (target["outcome"], code) == (outcome, exit_code), target["why"]
    report: dict[str, object] = target["report"]  # type: ignore[assignment]
    by = [(one["name"], one["by"]) for one in report["run"]["targets"]]  # type: ignore[index]
    assert by == ([] if case == "own loop" else [("Net", "library")])
    assert [one["code"] for one in report["findings"]] == (["BS101"] if case == "trainer" else [])  # type: ignore[attr-defined]


@pytest.mark.parametrize(("case", "outcome"), [("plugin", "clean"), ("none", "vacuous")])
def test_accelerate(tmp_path: Path, case: str, outcome: str) -> None:
    pytest.importorskip("accelerate")
    _, target = verdict(tmp_path, ACCELERATE, "--compile", "script", "--", "train.py", case)
    assert target["outcome"] == outcome, target["why"]


def test_lightning(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    source = """
        import torch
        import lightning

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 1)

            def training_step(self, batch, _):
                return self.linear(batch[0]).sum()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 4)), batch_size=4)
        trainer = lightning.Trainer(
            max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
        )
        trainer.fit(torch.compile(Module()), data)
    """
    _, target = verdict(tmp_path, source, "--compile", "script", "--", "train.py")
    assert target["outcome"] == "clean", target["why"]
