"""The catalog: every code has a text that helps, and every id of torch has the right code."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from scanning import run_python

from breakscope import catalog
from breakscope.catalog import entries
from breakscope.catalog.entry import Entry, Remedy, Severity
from breakscope.errors import UnknownCodeError
from breakscope.report.model import GuardCause

TABLE: dict[str, Any] = json.loads((Path(catalog.__file__).parent / "gb_codes.json").read_text())
PROPER_NOUNS = ("Python", "RNN", "TorchScript", "Triton")


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    """Forget what the installed torch says, before and after."""
    catalog._torch_registry.cache_clear()
    yield
    catalog._torch_registry.cache_clear()


def installed_registry() -> dict[str, list[dict[str, Any]]]:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed")
    path = Path(spec.origin).parent / "_dynamo" / "graph_break_registry.json"
    registry: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())
    return registry


@pytest.mark.torch
def test_every_id_of_the_installed_torch_has_a_specific_code() -> None:
    registry = installed_registry()
    assert len(registry) > 250
    unknown = [name for name in registry if name not in TABLE["codes"]]
    generic = [name for name in registry if catalog.code_for_gb(name) == catalog.GENERIC]
    assert unknown == []
    assert generic == []


@pytest.mark.torch
def test_torchs_own_name_of_a_kind_never_changes_the_code_of_a_known_id() -> None:
    for name, versions in installed_registry().items():
        assert catalog.code_for_gb(name, versions[0]["Gb_type"]) == TABLE["codes"][name]


def test_table_is_sorted_and_names_only_codes_and_remedies_that_exist() -> None:
    known = {item.code for item in catalog.codes()}
    assert len(TABLE["codes"]) >= 593
    assert list(TABLE["codes"]) == sorted(TABLE["codes"])
    assert set(TABLE["codes"].values()) <= known
    assert set(TABLE["skips"]) <= set(TABLE["codes"])
    for name, remedy in TABLE["remedies"].items():
        assert remedy in get_args(Remedy)
        assert remedy != catalog.entry(TABLE["codes"][name]).remedy, f"{name} repeats the remedy of its code"


def test_refinements_lead_to_codes_that_exist() -> None:
    known = {item.code for item in catalog.codes()}
    assert {code for _, code in entries.GUESSES} <= known
    assert {code for _, _, code in entries.REFINEMENTS} <= known
    assert {code for coarse, _, _ in entries.REFINEMENTS for code in coarse} <= known


@pytest.mark.parametrize("item", catalog.codes(), ids=lambda item: item.code)
def test_entry_fits_the_terminal_and_reads_well(item: Entry) -> None:
    assert item.code.startswith(("BS1", "BS2", "BS3", "BS4"))
    assert len(item.code) == 5
    assert 0 < len(item.title) <= 60
    assert item.title[0].islower() or item.title.startswith(PROPER_NOUNS)
    assert not item.title.endswith(".")
    assert len(item.why) <= 320
    assert 1 <= item.why.count(". ") + 1 <= 3
    assert item.why.endswith(".")
    assert len(item.fix) <= 110
    assert item.fix[0].isupper()
    assert item.fix.endswith(".")
    assert ". " not in item.fix, "one sentence"
    assert item.severity in get_args(Severity)
    assert item.remedy in get_args(Remedy)


@pytest.mark.parametrize("item", catalog.codes(), ids=lambda item: item.code)
def test_example_is_python_with_something_said_about_it(item: Entry) -> None:
    lines = item.more.splitlines()
    assert 2 <= len(lines) <= 6
    assert max(map(len, lines)) <= 92
    tree = ast.parse(item.more)
    assert tree.body, "an example is more than comments"
    assert ("# before" in item.more) <= ("# after" in item.more or "before the first call" in item.more)


def test_codes_are_unique_and_in_order() -> None:
    names = [item.code for item in entries.ENTRIES]
    assert names == sorted(set(names))


def test_entry_knows_its_codes_in_either_case() -> None:
    assert catalog.entry("bs101").title == "branch on a tensor's value"
    with pytest.raises(UnknownCodeError, match="did you mean BS101"):
        catalog.entry("BS1O1")


# What torch writes into a record, shortened; the comment is the program.
RECORDS = [
    # if y.sum() > 0 (torch 2.9 gives this one no id)
    (None, "Data-dependent branching\n  Explanation: Detected it\n  Hint: Use `torch.cond`", "BS101"),
    # if random.random() > 0.5, on torch 2.15
    ("gb0170", "The branch condition involves:\n random_value_0: graph input (random_value_0)", "BS127"),
    # x.sum().item()
    ("gb0124", "Unsupported Tensor.item() call with capture_scalar_outputs=False", "BS102"),
    # math.sqrt(y.sum())
    (
        "gb0033",
        "Data dependent operator\n  Developer debug context: aten._local_scalar_dense.default",
        "BS102",
    ),
    # torch.equal(a, b)
    ("gb0033", "Data dependent operator\n  Developer debug context: aten.equal.default", "BS103"),
    # x.nonzero()
    ("gb0036", "Dynamic shape operator\n  Developer debug context: aten.nonzero.default", "BS105"),
    # print("hi")
    ("gb0059", "Developer debug context: builtin print [<class 'ConstantVariable'>] False", "BS104"),
    # open("f")
    ("gb0059", "cannot trace `open`\n  Hint: is it a logging function (e.g. `print`)?", "BS111"),
    # bool(y.sum()), on torch 2.9
    (
        "gb0059",
        "cannot trace builtin operator `bool` with argument types ['Tensor'] (has_kwargs False)",
        "BS102",
    ),
    # hash(y), on torch 2.9
    ("gb0059", "Developer debug context: builtin hash [<class 'TensorVariable'>] False", "BS129"),
    # logger.info("a")
    ("gb0291", "Developer debug context: method: <Logger me (WARNING)>.info, args: []", "BS104"),
    # logger.info("a"), on torch 2.9, which gives no id
    (None, "Logger not supported for non-export cases.", "BS104"),
    # logging.warning("a"), on torch 2.13 and 2.9
    (
        "gb4841",
        "GetAttrVariable(LoggingLoggerVariable(), handlers) does not implement python_type()",
        "BS104",
    ),
    ("gb0156", "call_method GetAttrVariable(LoggingLoggerVariable(), handlers) __len__ () {}", "BS104"),
    # any other object without a type
    ("gb4841", "SomeVariable() does not implement python_type()", "BS198"),
    # warnings.warn("a")
    ("gb0007", "module: _warnings, qualname: warn, skip reason: no source file", "BS104"),
    # sys.stdout.write("a")
    ("gb0156", "call_method UserDefinedObjectVariable(TextIOWrapper) write [Constant(str: 'a')] {}", "BS104"),
    # open("f").close()
    ("gb0156", "call_method UserDefinedObjectVariable(TextIOWrapper) close [] {}", "BS107"),
    # time.time(): the explanation names warnings only as an example
    ("gb0007", "builtin `time.time.` (e.g. _warnings.warn) module: time, qualname: time", "BS126"),
    # datetime.datetime.now()
    ("gb0156", "call_method UserDefinedClassVariable(<class 'datetime.datetime'>) now [] {}", "BS126"),
    # random.shuffle(l)
    ("gb0007", "module: random, qualname: Random.shuffle, skip reason: listed", "BS127"),
    # torch.manual_seed(0)
    ("gb0007", "module: torch.random, qualname: manual_seed, skip reason: listed", "BS127"),
    # numpy.random.Generator.normal
    ("gb0007", "module: numpy.random, qualname: Generator.normal, skip reason: no source file", "BS127"),
    # pandas.Series([1])
    ("gb0008", "qualname: Series.__init__, filename: `/v/site-packages/pandas/core/series.py`", "BS110"),
    # pickle.dumps([1])
    ("gb0007", "module: _pickle, qualname: dumps, skip reason: no source file", "BS118"),
    # os.getpid()
    ("gb0007", "module: posix, qualname: getpid, skip reason: no source file", "BS107"),
    # an nn.LSTM, on torch 2.15
    ("gb0148", "Reason: no support for RNN, GRU, or LSTM. Set torch._dynamo.config.allow_rnn=True", "BS116"),
]


@pytest.mark.parametrize(("gb_id", "reason", "code"), RECORDS)
def test_the_text_of_a_record_refines_a_coarse_id(gb_id: str | None, reason: str, code: str) -> None:
    assert catalog.code_for_gb(gb_id, None, reason) == code


def test_a_traceback_behind_the_record_does_not_refine_it() -> None:
    reason = "module: posix, qualname: getpid\n\nUser code traceback:\n  File 'a.py'\n    print(os.getpid())"
    assert catalog.code_for_gb("GB0007", None, reason) == "BS107"


def test_each_part_of_a_chained_record_is_read_for_its_own_id() -> None:
    reason = (
        "Developer debug context: builtin print []\n  please visit: https://host/gb/gb0059.html\n"
        "*** While handling this graph break, another graph break occurred: ***\n"
        "graph break in loop\n  please visit: https://host/gb/gb7000.html\n"
    )
    assert catalog.code_for_gb("gb0059", None, reason) == "BS104"
    assert catalog.code_for_gb("gb7000", None, reason) == "BS301"


def test_ids_newer_than_the_table_go_by_torchs_name_of_the_kind_or_stay_generic() -> None:
    assert catalog.code_for_gb("GB9999") == "BS199"
    assert catalog.code_for_gb("GB9999", "torch.cond: something new") == "BS120"
    assert catalog.code_for_gb("GB9999", "Something nobody has seen") == "BS199"


@pytest.mark.parametrize("gb_id", [None, "", "GB", "0170", "GB12345", "\x00", "gb0170\n", "GB-170"])
def test_no_id_raises(gb_id: str | None) -> None:
    assert catalog.code_for_gb(gb_id).startswith("BS")


def test_ids_that_give_up_the_frame() -> None:
    assert catalog.is_skip_gb("gb7000"), "break in a loop"
    assert catalog.is_skip_gb("GB0066"), "break under a context manager"
    assert catalog.is_skip_gb("GB0003"), "a generator is skipped as a whole"
    assert not catalog.is_skip_gb("GB0170")
    assert not catalog.is_skip_gb("GB9999")
    assert not catalog.is_skip_gb(None)


def test_remedy_is_that_of_the_id_where_it_differs() -> None:
    assert catalog.entry("BS121").remedy == "hoist"
    assert catalog.remedy_for_gb("GB0013") == "hoist"
    assert catalog.remedy_for_gb("GB0123") == "config", "torch has a setting that traces backward()"


def test_every_cause_of_a_recompile_has_a_code_of_its_family() -> None:
    for cause in get_args(GuardCause):
        assert catalog.entry(catalog.cause_code(cause)).code.startswith("BS2")
    assert catalog.cause_code("int_value") == catalog.cause_code("float_value") == "BS207"
    assert catalog.cause_code("other") == "BS299"


def test_explain_a_code_of_ours() -> None:
    text = catalog.explain("bs101")
    assert text.startswith("BS101  branch on a tensor's value")
    assert "torch.where" in text
    assert "GB0170" in text
    assert max(map(len, text.splitlines())) <= 100


def test_explain_an_id_of_torch_quotes_the_installed_torch_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_registry: None
) -> None:
    package = tmp_path / "torch"
    (package / "_dynamo").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('torch was imported')")
    said = {"Gb_type": "A kind", "Context": "", "Explanation": "Explained here.", "Hints": ["A hint."]}
    newer = {**said, "Gb_type": "torch.cond: a kind of tomorrow", "Explanation": "msg"}
    (package / "_dynamo" / "graph_break_registry.json").write_text(
        json.dumps({"GB0170": [said], "GB9999": [newer]})
    )
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path)

    text = catalog.explain("gb170")
    assert text.startswith("GB0170 is torch's id for a kind of graph break; breakscope reports it as BS101.")
    assert "The installed torch says:\n  | A kind\n  | Explained here.\n  | - A hint." in text
    unheard_of = catalog.explain("GB9999")
    assert "reports it as BS120" in unheard_of, "known to this torch only"
    assert "| msg" not in unheard_of, "the name of a variable says nothing"


@pytest.mark.parametrize("content", [None, "{", "[]", '{"GB0170": []}', '{"GB0170": [{}]}'])
def test_explain_works_without_a_readable_registry(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_registry: None
) -> None:
    (tmp_path / "torch" / "_dynamo").mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").touch()
    if content is not None:
        (tmp_path / "torch" / "_dynamo" / "graph_break_registry.json").write_text(content)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    text = catalog.explain("GB0170")
    assert "BS101" in text
    assert "torch says" not in text


def test_explain_works_without_torch(monkeypatch: pytest.MonkeyPatch, fresh_registry: None) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "BS102  Python scalar" in catalog.explain("GB0124")
    with pytest.raises(UnknownCodeError):
        catalog.explain("GB9999")


@pytest.mark.parametrize("text", ["", "BS9", "nonsense", "BS999", "GB99999"])
def test_explain_says_what_to_do_about_an_unknown_code(text: str) -> None:
    with pytest.raises(UnknownCodeError, match="breakscope explain --list") as caught:
        catalog.explain(text)
    assert "\n" not in str(caught.value)


def test_list_has_every_code_once_with_its_title() -> None:
    lines = catalog.list_text().splitlines()
    for item in catalog.codes():
        assert lines.count(f"  {item.code}  {item.title}") == 1


def test_importing_the_catalog_loads_neither_its_texts_nor_torch() -> None:
    program = (
        "import sys; from breakscope import catalog; assert 'breakscope.catalog.entries' not in sys.modules;"
        "catalog.explain('GB0170'); catalog.list_text(); assert 'torch' not in sys.modules; print('ok')"
    )
    done = run_python("-c", program)
    assert (done.stdout, done.stderr) == ("ok\n", "")


@pytest.mark.parametrize("name", [*(entry.code for entry in catalog.codes()), "GB0170", "GB0023"])
def test_an_explanation_fits_sixty_columns(name: str) -> None:
    assert max(map(len, catalog.explain(name, 60).splitlines())) <= 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '"Detected branching. "     "Dynamo does not." + trace_info',
            "Detected branching. Dynamo does not.",
        ),
        (
            '"Cannot compare {self}, "    + f"because {other} is none."',
            "Cannot compare {self}, because {other} is none.",
        ),
        ("plain words, as `f(x)` has them", "plain words, as `f(x)` has them"),
        ("explanation", ""),
    ],
)
def test_source_in_the_table_of_torch_becomes_words(text: str, said: str) -> None:
    assert catalog._words(text) == said
