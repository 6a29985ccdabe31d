"""The scoreboard's rows that are models: each is written as a small script that anybody can run.

    python benchmarks/scoreboard_models.py transformers/bart train bart-train.py

No model is described here by hand, but for the rows that GraphMend's paper names: a configuration is made
small by the names of its fields, inputs follow from the parameters of ``forward``, and what runs is kept.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import pprint
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TEMPLATE = '''"""{title}, {mode}: a small model with random weights, compiled with the backend eager.

Made by benchmarks/scoreboard.py. With ``--save FILE`` it goes on with other shapes and keeps what comes out.
"""

import random
import sys

import numpy
import torch
{imports}
SHAPES = ((2, 8), (2, 12), (3, 5), (1, 7), (2, 9), (2, 6))
OTHER_SHAPES = ((2, 10), (3, 13), (1, 5), (4, 16), (2, 7), (3, 4), (2, 15), (1, 11))


def seed(number):
    random.seed(number)
    numpy.random.seed(number)
    torch.manual_seed(number)


def build():
    torch.manual_seed(0)
{build}


def inputs(batch, length):
{inputs}


def tensors(value):
    """All tensors in what a model returns, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        value = vars(value).values() if hasattr(value, "__dict__") else ()
    return [tensor for item in value for tensor in tensors(item)]


{loop}

def save(path):
    kept = []
    for number, (batch, length) in enumerate(OTHER_SHAPES):
        seed(100 + number)
        try:
            kept.append([tensor.detach().clone() for tensor in step(batch, length)])
        except Exception as error:
            kept.append(f"{{type(error).__name__}}: {{error}}")
    torch.save(kept, path)


for number, (batch, length) in enumerate(SHAPES):
    seed(number)
    step(batch, length)
if len(sys.argv) == 3 and sys.argv[1] == "--save":
    save(sys.argv[2])
'''
_LOOPS = {
    "eval": """model = build().eval()
compiled = torch.compile(model, backend="eager")


def step(batch, length):
    with torch.no_grad():
        return tensors({call})

""",
    "train": """model = build().train()
compiled = torch.compile(model, backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def step(batch, length):
    optimizer.zero_grad()
    outputs = tensors({call})
    sum(one.float().pow(2).mean() for one in outputs if one.requires_grad).backward()
    gradients = [one.grad for one in model.parameters() if one.grad is not None]
    kept = [one.detach().clone() for one in outputs + gradients]
    optimizer.step()
    return kept

""",
}


_TOO_LARGE = "the model is too large"


class NotBuilt(Exception):  # noqa: N818 - it is an answer, not a failure
    """No small form of the model was found that runs; the message says what happened last."""


@dataclass(frozen=True, slots=True)
class Model:
    """A row that is a model.

    Attributes:
        name: ``transformers/bart``; the part before the slash is the library.
        graphmend: whether GraphMend's paper has the row; ``breaks`` it found there, and how many it removed.
        kind: of transformers, what configuration: its ``model_type``. class_name: what is built from it.
        changes: fields of the configuration, on top of those that make it small.
        inputs: expressions of inputs, instead of those found by name; an empty one leaves the input out.
        half: whether the model runs in half precision.
        remote: why it cannot be built from what is installed.
    """

    name: str
    kind: str = ""
    class_name: str = "AutoModel"
    changes: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    half: bool = False
    graphmend: tuple[int, int] | None = None
    remote: str = ""
    modes: tuple[str, ...] = ("eval", "train")


_ONE_TOKEN = {"decoder_input_ids": "torch.randint(3, 128, (batch, 1))"}
_LONGROPE = {
    "original_max_position_embeddings": 7,
    "max_position_embeddings": 64,
    "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8},
    "pad_token_id": 0,
}
_LONGROPE_5 = {
    "original_max_position_embeddings": 7,
    "max_position_embeddings": 64,
    "rope_parameters": {
        "rope_type": "longrope",
        "rope_theta": 1e4,
        "original_max_position_embeddings": 7,
        "partial_rotary_factor": 1.0,
        "short_factor": [1.0] * 8,
        "long_factor": [2.0] * 8,
    },
    "pad_token_id": 0,
}
_REMOTE = "its code is not part of transformers: it is downloaded with the model"


def graphmend(version: int) -> list[Model]:
    """The 27 rows of arXiv 2509.16248, from small configurations, in evaluation as there."""
    t5 = [
        Model(f"graphmend/{name}", "t5", "T5ForConditionalGeneration", graphmend=(3, 3))
        for name in ("t5-small", "t5-base", "t5-3b", "flan-t5-large", "inclusively-reformulation-it5")
    ]
    gated = {"feed_forward_proj": "gated-gelu"}
    t5[3:] = [
        Model(one.name, one.kind, one.class_name, gated | {"tie_word_embeddings": False}, graphmend=(3, 3))
        for one in t5[3:]
    ]
    whisper = [
        Model(f"graphmend/{name}", "whisper", "WhisperForConditionalGeneration", graphmend=(3, 3))
        for name in ("whisper", "whisper-small", "whisper-base")
    ]
    bart = [
        Model(f"graphmend/{name}", "bart", "BartForConditionalGeneration", {}, _ONE_TOKEN, True, (7, 7))
        for name in ("bart", "bart-base", "rebel-large")
    ]
    marian = ("marian", "MarianMTModel", {"decoder_start_token_id": 0}, _ONE_TOKEN, True, (6, 6))
    phi = ("phi3", "Phi3ForCausalLM", _LONGROPE if version < 5 else _LONGROPE_5)
    dino = ("grounding-dino", "GroundingDinoForObjectDetection")
    rows = [
        *t5,
        *whisper,
        *bart,
        Model("graphmend/opus-mt-fr-en", *marian),
        Model("graphmend/biogpt", "biogpt", "BioGptForCausalLM", graphmend=(2, 2)),
        Model("graphmend/blenderbot", "blenderbot", "BlenderbotForConditionalGeneration", graphmend=(3, 3)),
        Model("graphmend/pegasus", "pegasus", "PegasusForCausalLM", graphmend=(2, 2)),
        Model("graphmend/layoutlmv3", "layoutlmv3", "LayoutLMv3Model", graphmend=(2, 2)),
        Model("graphmend/phi-4-mini", *phi, {"use_cache": "False"}, graphmend=(5, 5)),
        Model("graphmend/grounding-dino", *dino, {}, _PICTURE, graphmend=(17, 10)),
        Model("graphmend/grounding-dino-base", *dino, {}, _PICTURE, graphmend=(17, 10)),
        Model("graphmend/longformer", "longformer", "LongformerModel", graphmend=(5, 2)),
        Model("graphmend/clap-htsat-fused", "clap", "ClapModel", _FUSED, _CLAP, graphmend=(4, 0)),
    ]
    downloaded = {
        "chronos-bolt-small": (6, 6),
        "MoLFormer-XL": (5, 5),
        "Florence-2": (7, 7),
        "Qwen-Audio-Chat": (2, 2),
        "moe-minicpm-x4-base": (15, 0),
        "stella-en-400M": (4, 0),
    }
    rows += [Model(f"graphmend/{name}", graphmend=both, remote=_REMOTE) for name, both in downloaded.items()]
    return [
        Model(**{slot: getattr(row, slot) for slot in Model.__slots__} | {"modes": ("eval",)}) for row in rows
    ]


_PICTURE = {"pixel_values": "torch.randn(batch, 3, 192, 192)"}
_FUSED = {"audio_config": {"model_type": "clap_audio_model", "enable_fusion": True}}
_CLAP = {
    "input_features": "torch.randn(batch, 4, 64, 64)",
    "is_longer": "torch.arange(batch)[:, None] % 2 == 0",
}


def transformers_models() -> list[Model]:
    """Every architecture of transformers that ``AutoModel`` knows, and the rows of GraphMend."""
    import transformers
    from transformers.models.auto import modeling_auto

    version = int(transformers.__version__.split(".")[0])
    kinds = sorted(modeling_auto.MODEL_MAPPING_NAMES)
    return graphmend(version) + [Model(f"transformers/{kind}", kind) for kind in kinds]


def timm_models() -> list[Model]:
    """One model of each family of timm: the first name of each of its modules that is small by its name."""
    import timm

    small = re.compile(r"nano|tiny|pico|femto|atto|xxs|_xs|_s\d*$|small|_b0|18|26|050|lite|micro|mini")
    rows = []
    for module in timm.list_modules():
        names = sorted(
            timm.list_models(module=module), key=lambda name: (not small.search(name), len(name), name)
        )
        rows += [Model(f"timm/{name}", name) for name in names[:1]]
    return rows


def torchvision_models() -> list[Model]:
    """Detection and segmentation models of torchvision."""
    from torchvision import models

    names = models.list_models(module=models.detection)
    return [Model(f"torchvision/{name}", name) for name in names]


def write_script(row: Model, mode: str, path: Path) -> None:
    """Write the script of a row, once a small form of it has run.

    Raises:
        NotBuilt: nothing that was tried ran.
    """
    if row.remote:
        raise NotBuilt(row.remote)
    library = row.name.split("/")[0]
    forms = {"timm": _timm_forms, "torchvision": _torchvision_forms}.get(library, _transformers_forms)
    troubles: list[str] = []
    for form in forms(row):
        text = TEMPLATE.format(
            title=row.name,
            mode={"eval": "evaluation", "train": "training"}[mode],
            imports=form["imports"],
            build="\n".join("    " + line for line in form["build"].splitlines()),
            inputs="\n".join("    " + line for line in form["inputs"].splitlines()),
            loop=_LOOPS[mode].format(call=form["call"]),
        )
        try:
            _run_once(text)
        except Exception as error:  # whatever a model answers to inputs that do not fit
            troubles.append(f"{type(error).__name__}: {error}")
            continue
        path.write_text(text)
        return
    # The last forms keep a model's own width: that they are too large does not say why the small ones fail.
    telling = [trouble for trouble in troubles if not trouble.endswith(_TOO_LARGE)]
    trouble = (telling or troubles or ["nothing could be tried"])[-1]
    raise NotBuilt(trouble.splitlines()[0][:300])


def _run_once(text: str) -> None:
    """Run the script's first shape and a shape of others, without a compiler."""
    import torch

    scope: dict[str, Any] = {"__name__": "row"}
    head, _, _ = text.partition("\nfor number, (batch, length) in enumerate(SHAPES):")
    exec(
        compile(head.replace("torch.compile(model", "(lambda module, backend: module)(model"), "row", "exec"),
        scope,
    )
    for batch, length in (scope["SHAPES"][0], scope["OTHER_SHAPES"][0], scope["OTHER_SHAPES"][2]):
        torch.manual_seed(0)
        if not scope["step"](batch, length):
            raise NotBuilt("it returns no tensor")


# --- transformers ---

_HEADS = re.compile(r"(^|_)n?_?heads?$|n_head$|heads$")
_HEAD_SIZE = re.compile(r"head_dim$|^d_kv$|head_size$")
_WIDTH = re.compile(
    r"hidden_size$|^d_model$|n_embd$|embed_dim$|hidden_dim$|^dim$|embedding_size$|_dim$|_size$|width$|^d_embed$"
    r"|channels$"
)
_INNER = re.compile(
    r"intermediate|ffn|d_ff|d_inner|n_inner|feed_forward|mlp_dim|mlp_hidden|^hidden_act_size$"
)
_KEPT = re.compile(
    r"vocab|image_size|patch|kernel|window|chunk|num_channels|in_channels|stride|sample|mel|block_size|rank|"
    r"tubelet|conv_|^groups$|group_size|crop|spectrogram|context_size|bin|axial|fft|hop"
)


LEVELS = (
    "narrow",
    "in proportion",
    "small pictures",
    "few layers",
)  # each leaves more of a configuration as it is


def shrunk(config: Any, level: str) -> dict[str, Any]:
    """Arguments that make a configuration small: few layers and words, and what the level asks for."""
    changes: dict[str, Any] = {}
    width = next((getattr(config, name, None) for name in ("hidden_size", "d_model", "dim", "n_embd")), None)
    ratio = max(1, width // 128) if isinstance(width, int) else 1
    for name, value in vars(config).items():
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            changes[name] = {"model_type": value.model_type, **shrunk(value, level)}
        elif (small := _small(name, value, level, ratio)) != value:
            changes[name] = small
    words = changes.get("vocab_size", getattr(config, "vocab_size", None))
    for number, (name, value) in enumerate(vars(config).items()):
        if (
            name.endswith("_token_id")
            and isinstance(value, int)
            and isinstance(words, int)
            and value >= words
        ):
            changes[name] = {"pad": 0, "bos": 1, "eos": 2}.get(name[:3], 3 + number % 60)
    if getattr(config, "prediction_length", 0) is None:
        changes["prediction_length"] = 8
    if getattr(config, "use_mamba_kernels", False):  # those need a GPU
        changes["use_mamba_kernels"] = False
    return changes


def _small(name: str, value: Any, level: str, ratio: int) -> Any:
    if isinstance(value, bool) or name.startswith("_") or name in _LEFT:
        return value
    if isinstance(value, (list, tuple)):
        whole = value and all(type(one) is int and one > 0 for one in value)
        return _small_list(name, list(value), level) if whole else value
    if type(value) is not int or value <= 0:
        return value
    for pattern, most in _MOST.items():
        if re.search(pattern, name):
            return min(value, most)
    if name in ("image_size", "input_size") and value >= 64:
        return value if level == LEVELS[3] else 64
    if level == LEVELS[0]:
        if _HEADS.search(name):
            return min(value, 2 if re.search("kv|key_value", name) else 4)
        if _HEAD_SIZE.search(name):
            return min(value, 16)
        if _INNER.search(name):
            return min(value, 128)
        return min(value, 64) if _WIDTH.search(name) and not _KEPT.search(name) else value
    if level == LEVELS[1] and not _HEAD_SIZE.search(name):
        wide = _WIDTH.search(name) and not _KEPT.search(name)
        return max(1, value // ratio) if _HEADS.search(name) or _INNER.search(name) or wide else value
    return value


_LEFT = ("top_k", "num_feat_extract_layers")  # the latter is the length of another field
_MOST = {  # by name, at every level
    r"(^|_)(n_)?(num_)?(hidden_)?(layers?|groups|blocks)$": 2,
    r"^vocab_size$": 128,
    r"experts$": 4,
    r"experts_per_tok|top_?k$": 2,
    r"(?<!2d_)position_embeddings$|n_positions|max_.*positions|max_seq_len": 256,
    r"num_queries|num_latents|num_query_tokens": 12,
}


def _small_list(name: str, value: list[int], level: str) -> list[int]:
    if re.search("depths|^layers$|num_blocks|layers$", name):
        return [min(one, 1) for one in value]
    if name == "image_size":
        return value if level == LEVELS[3] else [min(one, 64) for one in value]
    if level not in LEVELS[:2] or not re.search(
        "hidden_sizes|embed_dim|heads|conv_dim|dims$|channels$|sizes$", name
    ):
        return value
    if "heads" in name:
        return [min(one, 2) for one in value]
    return [max(16, 64 * one // max(value) // 16 * 16) for one in value]


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The first with the second's fields, dicts in dicts alike."""
    found = dict(one)
    for name, value in other.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = merged(found[name], value) if both else value
    return found


def _transformers_forms(row: Model) -> Iterator[dict[str, str]]:
    import transformers

    config_class = type(transformers.AutoConfig.for_model(row.kind))
    plain = transformers.AutoConfig.for_model(row.kind)
    for level in LEVELS:
        arguments = merged(shrunk(plain, level), row.changes)
        arguments = {name: value for name, value in arguments.items() if not name.startswith("_")}
        try:
            config = config_class(
                **copy.deepcopy(arguments)
            )  # some take their fields out of what they are given
            if _parameters_on_meta(row, config) > MOST_PARAMETERS:
                raise ValueError(_TOO_LARGE)
            model = _of_config(row, config)
        except Exception as error:  # a field that does not bear the change
            yield _failing(error)
            continue
        words = pprint.pformat(arguments, width=100, compact=True, sort_dicts=False)
        maker = (
            "transformers.AutoModel.from_config(config)"
            if row.class_name == "AutoModel"
            else f"transformers.{row.class_name}(config)"
        )
        build = f"config = transformers.{config_class.__name__}(\n    **{_indent(words)}\n)\n"
        build += f"return {maker}" + (".half()" if row.half else "")
        for expressions in _input_choices(model, config):
            chosen = {name: text for name, text in {**expressions, **row.inputs}.items() if text}
            listed = "\n".join(f'    "{name}": {text},' for name, text in chosen.items())
            yield {
                "imports": "import transformers\n",
                "build": build,
                "inputs": "return {\n" + listed + "\n}",
                "call": "compiled(**inputs(batch, length))",
            }


def _of_config(row: Model, config: Any) -> Any:
    import transformers

    if row.class_name == "AutoModel":
        return transformers.AutoModel.from_config(config)
    return getattr(transformers, row.class_name)(config)


MOST_PARAMETERS = 40_000_000


def _parameters_on_meta(row: Model, config: Any) -> int:
    """How large a model would be, without making it; 0 if that cannot be known."""
    import torch

    try:
        with torch.device("meta"):
            return sum(one.numel() for one in _of_config(row, copy.deepcopy(config)).parameters())
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        return 0


def _failing(error: Exception) -> dict[str, str]:
    text = f"raise ValueError({str(error)[:200]!r})"
    return {"imports": "", "build": text, "inputs": "pass", "call": "None"}


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")


def _input_choices(model: Any, config: Any) -> Iterator[dict[str, str]]:
    """Inputs by the names of the parameters of ``forward``, the likely ones first."""
    names = inspect.signature(model.forward).parameters
    parts = [config, *(one for one in vars(config).values() if hasattr(one, "model_type"))]

    def known(*wanted: str, default: Any = None) -> Any:
        found = (getattr(part, name, None) for name in wanted for part in parts)
        return next((one for one in found if one is not None), default)

    words = min(known("vocab_size", default=128), 128)
    sides = known("image_size", "input_size", default=64)
    high, wide = sides if isinstance(sides, (list, tuple)) else (sides, sides)
    channels = known("num_channels", "in_channels", "in_chans", default=3)
    frames = known("num_frames")
    mels = known(
        "num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim", "input_dim", default=80
    )
    context = known("context_length", default=16)
    reach = context + max(known("lags_sequence", default=[0]) or [0])
    ahead = known("prediction_length", default=8)
    tokens = f"torch.randint(3, {words}, (batch, length))"
    picture = f"torch.randn(batch, {channels}, {high}, {wide})"
    patches = "[1, 4, 2 * (length // 4 + 1)]"  # of a picture: times, rows and columns
    options: dict[str, list[str]] = {
        "input_ids": [tokens],
        "decoder_input_ids": [tokens.replace("length", "max(1, length // 2)")],
        "bbox": ["torch.randint(0, 500, (batch, length, 4)).sort(-1).values"],
        "pixel_values": [picture, f"torch.randn(batch, {channels}, 192, 192)"]
        if frames is None
        else [picture.replace("batch", f"batch, {frames}", 1), picture],
        "pixel_values_videos": [picture.replace("batch", f"batch, {frames or 2}", 1)],
        "grid_thw": [f"torch.tensor([{patches}] * batch)"],
        "merge_sizes": ["torch.full((batch,), 2)"],
        "input_values": [
            "torch.randn(batch, 320 * (length + 12) + 400)",
            f"torch.randn(batch, {known('max_length', default=1024)}, {mels})",
            "torch.randn(batch, 1, 320 * (length + 12))",
        ],
        "input_features": [
            f"torch.randn(batch, {mels}, {2 * known('max_source_positions', default=32)})",
            f"torch.randn(batch, 16 + 4 * length, {mels})",
        ],
        "past_values": [
            f"torch.randn(batch, {reach})",
            f"torch.randn(batch, {reach}, {known('num_input_channels', default=1)})",
        ],
        "past_time_features": [f"torch.randn(batch, {reach}, {known('num_time_features', default=1)})"],
        "past_observed_mask": [f"torch.ones(batch, {reach})", ""],
        "future_values": [f"torch.randn(batch, {known('prediction_length', default=8)})"],
        "future_time_features": [f"torch.randn(batch, {ahead}, {known('num_time_features', default=1)})"],
    }
    if "grid_thw" in names:  # a tower that takes the patches of all pictures in a row
        values = channels * known("temporal_patch_size", default=1) * known("patch_size", default=14) ** 2
        row = f"torch.randn(batch * 8 * (length // 4 + 1), {values})"
        options |= {"hidden_states": [row], "pixel_values": [row]}
    wanted = [name for name in options if name in names]
    if "decoder_input_ids" in wanted and not known("is_encoder_decoder", default=False):
        wanted.remove("decoder_input_ids")
    main = getattr(model, "main_input_name", "input_ids")
    mask = "torch.arange(length) < length - (torch.arange(batch)[:, None] == 1).long()"
    both = {"input_ids", "pixel_values"} <= set(wanted)
    sets = [
        wanted,
        [name for name in wanted if name in (main, "decoder_input_ids", "bbox")] if both else wanted,
    ]
    for several in sets[: 1 + both]:
        for masked in (True, False):
            if masked and not ("attention_mask" in names and "input_ids" in several):
                continue
            for number in range(3):
                chosen = {name: options[name][min(number, len(options[name]) - 1)] for name in several}
                if masked:
                    chosen["attention_mask"] = f"({mask}).long()"
                yield chosen


# --- timm and torchvision ---


def _timm_forms(row: Model) -> Iterator[dict[str, str]]:
    import timm

    size = timm.models.get_pretrained_cfg(row.kind)
    fixed = tuple(size.input_size) if size is not None else (3, 224, 224)
    for shape in ((3, 64, 64), (3, 96, 96), (3, 128, 128), fixed):
        for more in (f", img_size={shape[1:]}", "") if shape != fixed else ("",):
            yield {
                "imports": "import timm\n",
                "build": f'return timm.create_model("{row.kind}", num_classes=8{more})',
                "inputs": f"return torch.randn(batch, {shape[0]}, {shape[1]}, {shape[2]})",
                "call": "compiled(inputs(batch, length))",
            }


def _torchvision_forms(row: Model) -> Iterator[dict[str, str]]:
    made = (
        f'torchvision.models.get_model("{row.kind}", weights=None, weights_backbone=None, num_classes=5{{}})'
    )
    build = f"return {made}"
    inputs = """pictures = [torch.rand(3, 64 + 4 * length, 64 + 8 * batch) for _ in range(batch)]
boxes = torch.rand(length, 4) * 30 + torch.tensor([0.0, 0.0, 31.0, 31.0])
targets = [{"boxes": boxes, "labels": torch.randint(1, 5, (length,))} for _ in range(batch)]
return pictures, targets"""
    for more in (", min_size=96, max_size=128", ""):
        yield {
            "imports": "import torchvision\n",
            "build": build.format(more),
            "inputs": inputs,
            "call": "compiled(*inputs(batch, length))",
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("mode", choices=("eval", "train"))
    parser.add_argument("path", type=Path)
    asked = parser.parse_args()
    library = asked.name.split("/")[0]
    if library in ("transformers", "graphmend"):
        rows = transformers_models()
    else:
        rows = [Model(asked.name, asked.name.split("/")[1])]
    try:
        write_script(next(row for row in rows if row.name == asked.name), asked.mode, asked.path)
    except NotBuilt as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
