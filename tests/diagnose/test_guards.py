"""From Dynamo's text to the cause of a recompile.

``data/recompile_reasons.json`` holds texts that torch 2.9.1, 2.13.0 and 2.15.0 gave for small real
programs, each with the cause that the program was written to provoke, and with what was read live at
the failing call.
"""

from __future__ import annotations

import ast
import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from breakscope.diagnose.guard_paths import WRAPPER, placeless
from breakscope.diagnose.guard_uses import PLAIN, Taken, taken
from breakscope.diagnose.guards import (
    MAX_VALUES,
    GuardFailure,
    classify,
    describe,
    finding_key,
    guard_sources,
    merge_values,
    parse_reasons,
    remedy,
    without_old,
)
from breakscope.diagnose.origins import Origin, Size, may_come_of
from breakscope.diagnose.recompile_advice import advice, of_group
from breakscope.project.sources import Sources
from breakscope.report.model import Frame, Guard, GuardCause

RECORDS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "recompile_reasons.json").read_text(encoding="utf-8")
)
CAUSES = frozenset(get_args(GuardCause))


def read(text: str) -> GuardFailure:
    (failure,) = parse_reasons([text])
    return failure


def guard_of(text: str, function: str = "f", **actuals: str) -> Guard:
    """The guard of one reason; ``actuals`` are given as local variables."""
    live = {f"L[{name!r}]": value for name, value in actuals.items()}
    return classify(read(text), function=function, actuals=live)


class TestRealTexts:
    @pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r['torch']}-{r['program']}")
    def test_cause(self, record: dict[str, Any]) -> None:
        failure = read(record["text"])
        guard = classify(failure, function=record["function"], actuals=record["actuals"])
        assert guard.cause == record["cause"]
        assert failure.compile_id is not None
        assert guard.expression == failure.expression
        assert "#" not in failure.expression.replace("# not a comment", "").replace("  # ", "")

    @pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r['torch']}-{r['program']}")
    def test_words(self, record: dict[str, Any]) -> None:
        """Nothing of Dynamo's own spelling reaches the user."""
        guard = classify(read(record["text"]), function=record["function"], actuals=record["actuals"])
        shown = f"{describe(guard)} {remedy(guard)}"
        for internal in ("___", "_modules", "_parameters", "L['", "G['", "0x", "cell_contents"):
            assert internal not in shown
        assert describe(guard)
        assert remedy(guard)

    @pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r['torch']}-{r['program']}")
    def test_sources(self, record: dict[str, Any]) -> None:
        """All that was named could be read live, and is what the guard names now."""
        sources = guard_sources(read(record["text"]).expression)
        assert set(sources) == set(record["actuals"])
        for source in sources:
            assert_only_reads(source)

    def test_breadth(self) -> None:
        assert {record["cause"] for record in RECORDS} == CAUSES
        assert {record["torch"] for record in RECORDS} == {"2.9.1", "2.13.0", "2.15.0"}

    def test_actual_values_are_used(self) -> None:
        given = [record for record in RECORDS if len(record["actuals"]) == 1]
        unused = [
            record["program"]
            for record in given
            if classify(read(record["text"]), function=record["function"], actuals=record["actuals"]).actual
            is None
        ]
        # An iterator's position cannot be read without moving it; a deque is not counted live.
        assert set(unused) == {"range_iter", "count_iter", "generator_tuple_iter", "deque_arg"}

    @pytest.mark.parametrize("keep", [0.1, 0.3, 0.5, 0.7, 0.9, 0.97])
    def test_cut_texts(self, keep: float) -> None:
        for record in RECORDS:
            text = record["text"][: int(len(record["text"]) * keep)]
            guard = classify(read(text), function=record["function"])
            assert guard.cause in CAUSES
            assert describe(guard)
            assert remedy(guard)
            for source in guard_sources(guard.expression):
                assert_only_reads(source)


def assert_only_reads(source: str) -> None:
    """A chain of attributes, constant items, and the three methods that cost nothing."""
    node = ast.parse(source, mode="eval").body
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value, _):
                node = value
            case ast.Subscript(value, index):
                ast.literal_eval(index)
                node = value
            case ast.Call(ast.Attribute(value, "size" | "stride" | "storage_offset"), [], []):
                node = value
            case _:
                pytest.fail(f"{source} is more than a chain")
    assert node.id in ("L", "G")


class TestParseReasons:
    TEXT = "0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4"

    def test_payload_shapes(self) -> None:
        single = parse_reasons(self.TEXT)
        assert [failure.compile_id for failure in single] == ["0/0"]
        several = ["0/1: n == 4", self.TEXT]
        assert parse_reasons(several) == parse_reasons(json.dumps(several))
        assert parse_reasons(json.dumps([self.TEXT])) == single
        assert parse_reasons(json.dumps(self.TEXT)) == single

    def test_parts(self) -> None:
        text = (
            "1/2: ___stack0 == 4.0                    # return x * n  # a.py:9 in torch_dynamo_resume_in_f_at_8"
            " (HINT: keep it)\nUser stack trace:\n"
            '  File "/home/u/a.py", line 3, in <lambda>\n    g(x)\n'
            '  File "/home/u/a.py", line 9, in torch_dynamo_resume_in_f_at_8\n    return x * n'
        )
        assert read(text) == GuardFailure(
            "1/2",
            "___stack0 == 4.0",
            "return x * n  # a.py:9 in torch_dynamo_resume_in_f_at_8 (HINT: keep it)",
            (Frame("/home/u/a.py", 3, "<lambda>", "g(x)"), Frame("/home/u/a.py", 9, "f", "return x * n")),
            text,
        )

    def test_stack_without_source_lines(self) -> None:
        text = '0/0: n == 3\nUser stack trace:\n  File "a.py", line 3, in f\n  File "a.py", line 5, in g'
        assert read(text).user_stack == (Frame("a.py", 3, "f"), Frame("a.py", 5, "g"))

    @pytest.mark.parametrize(
        ("text", "expression", "comment"),
        [
            ("0/0: m == 'a  # b'    # c", "m == 'a  # b'", "c"),
            ("0/0: m == \"it's  # b\"  # c", "m == \"it's  # b\"", "c"),
            (r"0/0: m == 'it\'s  # b'  # c", r"m == 'it\'s  # b'", "c"),
            ("0/0: ___check_type_id(n, 12), type=<class 'int'> (HINT: type int)",
             "___check_type_id(n, 12), type=<class 'int'>", "HINT: type int"),
            ("0/0: x is y", "x is y", None),
        ],
    )  # fmt: skip
    def test_comment(self, text: str, expression: str, comment: str | None) -> None:
        assert (read(text).expression, read(text).comment) == (expression, comment)

    @pytest.mark.parametrize(
        ("text", "compile_id"),
        [("0/0: a", "0/0"), ("12/3: a", "12/3"), ("!0/1/2: a", "!0/1/2"), ("!4: a", "!4"), ("None: a", None)],
    )
    def test_compile_id(self, text: str, compile_id: str | None) -> None:
        assert read(text).compile_id == compile_id
        assert read(text).expression == "a"

    @pytest.mark.parametrize(
        "text",
        ["", " ", "[", "{}", "null", "0/0", "0/0:", "\x00", "é" * 10, "(" * 5000, "x" + " + 1" * 5000 + " == 3",
         "tensor '", "tensor 'x' size mismatch", "L[", "'", "x == ", " == 3", "[1, 2", "0/0: a = b", "a\n" * 100],
    )  # fmt: skip
    def test_odd_texts(self, text: str) -> None:
        (failure,) = parse_reasons(text)
        assert failure.raw == text
        guard = classify(failure, function="f")
        assert guard.cause in CAUSES
        assert describe(guard)
        assert remedy(guard)
        guard_sources(failure.expression)

    def test_unknown_text_is_kept(self) -> None:
        guard = guard_of("something new happened to the cache")
        assert (guard.cause, guard.expression) == ("other", "something new happened to the cache")
        assert "something new happened to the cache" in describe(guard)

    def test_list_of_other_things(self) -> None:
        assert [failure.raw for failure in parse_reasons([1, None])] == ["1", "None"]
        assert parse_reasons([]) == ()


def test_a_tensor_that_indexes_another_is_compiled_for_each_value() -> None:
    guard = guard_of("0/1: t.item() == 5", t="Tensor((), torch.int64, cpu)")
    assert (guard.source, guard.expected, guard.actual, guard.values) == ("t", "5", None, ("5",))
    assert "x[t.reshape(1)][0]" in advice(guard, None, 5)


@pytest.mark.parametrize(
    ("text", "function", "source"),
    [
        ("0/0: L['x'] == 3", "f", "x"),
        ("0/0: x == 3", "f", "x"),
        ("0/0: L['self'].layers[0].counter == 3", "forward", "self.layers[0].counter"),
        ("0/0: self._modules['layers']._modules['0'].counter == 3", "forward", "self.layers[0].counter"),
        ("0/0: self._modules['heads']._modules['a-b'].k == 2", "forward", "self.heads['a-b'].k"),
        ("0/0: tensor 'L['self']._modules['fc']._parameters['weight']' rank mismatch. expected 1, actual 2",
         "forward", "self.fc.weight"),
        ("0/0: tensor 'self._buffers['cache']' rank mismatch. expected 1, actual 2", "forward", "self.cache"),
        ("0/0: G['cfg'] == 3", "f", "cfg"),
        ("0/0: G['cfg']['lr'] == 3", "f", "cfg['lr']"),
        ("0/0: G['__import_torch_dot_nn'].flag == 3", "f", "torch.nn.flag"),
        ("0/0: ___check_obj_id(G['__builtins_dict___0']['len'], 12)", "f", "len"),
        ("0/0: L['kwargs']['n'] == 3", "f", "kwargs['n']"),
        ('0/0: h.__closure__[0].cell_contents == 3  # n (HINT: guard on "n")', "f", "n"),
        ('0/0: h.__closure__[0].cell_contents.scale == 3  # n (HINT: guard on "cfg".scale)', "f", "cfg.scale"),
        ("0/0: h.__closure__[0].cell_contents == 3", "f", "h.__closure__[0]"),
        ("1/0: ___stack0 == 3", "torch_dynamo_resume_in_forward_at_12", "value from line 12"),
        ("1/0: L['___stack2'][1] == 3", "torch_dynamo_resume_in_<lambda>_at_7", "third value[1] from line 7"),
        ("0/0: fn._modules['1'].training == True", WRAPPER, "self[1].training"),
        ("0/0: fn.k == 2", "f", "fn.k"),
        ("0/0: ___check_obj_id(g.__code__, 12), type=<class 'code'>", "f", "g"),
        ("0/0: tensor '___from_numpy(x)' rank mismatch. expected 1, actual 2", "f", "x"),
        ("0/0: object.__getattribute__(o, 'k') == 2", "f", "o.k"),
        ("0/0: list.__getitem__(xs, 1) == 2", "f", "xs[1]"),
        ("0/0: len(d['a']) == 2", "f", "d['a']"),
    ],
)  # fmt: skip
def test_source(text: str, function: str, source: str) -> None:
    assert guard_of(text, function).source == source


@pytest.mark.parametrize(
    ("text", "cause", "source", "expected", "actual", "dimension"),
    [
        ("tensor 'x' size mismatch at index 1. expected 3, actual 4", "size", "x", "3", "4", 1),
        ("tensor 'x' stride mismatch at index 0. expected 4, actual 1", "stride", "x", "4", "1", 0),
        ("tensor 'x' rank mismatch. expected 1, actual 2", "rank", "x", "1", "2", None),
        ("tensor 'x' dtype mismatch. expected Half, actual BFloat16", "dtype", "x", "float16", "bfloat16", None),
        ("tensor 'x' requires_grad mismatch. expected requires_grad=1", "requires_grad", "x", "True", "False", None),
        ("tensor 'x' Tensor device index mismatch. Expected device index to be 0, actual 1",
         "device", "x", "device index 0", "device index 1", None),
        (("tensor 'x' dispatch key set mismatch. expected DispatchKeySet(CPU, BackendSelect, AutogradCPU), "
         "actual DispatchKeySet(CUDA, BackendSelect, AutogradCUDA)"), "device", "x", "cpu", "cuda", None),
        (("tensor 'x' dispatch key set mismatch. expected DispatchKeySet(SparseCPU, AutogradCPU), "
         "actual DispatchKeySet(SparseCUDA, AutogradCUDA)"), "device", "x", "cpu", "cuda", None),
        (("tensor 'x' dispatch key set mismatch. expected DispatchKeySet(CPU, AutogradCPU), "
         "actual DispatchKeySet(CPU)"), "dispatch_keys", "x", "with AutogradCPU", "without AutogradCPU", None),
        ("expected type of 'm' to be a tensor type, ' but found <class 'NoneType'>", "type", "m", "a tensor", "None", None),
        ("expected type of 'm' to be <class 'torch.Tensor'>, but found <class 'int'>",
         "type", "m", "torch.Tensor", "int", None),
        ("GLOBAL_STATE changed: grad_mode autocast ", "global_state", "grad_mode, autocast", None, None, None),
        ("torch.autograd.forward_ad._current_level == -1", "global_state", "forward-mode AD level", None, None, None),
        ("s is ___get_current_stream(torch.device('cuda', 0))", "global_state", "current stream", None, None, None),
        ("Cache line invalidated because L['m'] got deallocated", "identity", "m",
         "an object that was freed since", "another object", None),
        ("BACKEND_MATCH failure: torch.compile detected different backend callables. If this is unexpected, wrap it.",
         "identity", "backend", None, None, None),
        ('Duplicate tensors found: ["x", "y"], ["d[\'a\']", "z"]', "aliasing", "x and y and d['a'] and z",
         "different tensors", "the same tensor", None),
        ("check_overlapping(overlapping=[L['x'], L['y']], non_overlapping=[L['z']])", "aliasing", "x and y and z",
         "tensors that share nothing", "tensors that share memory", None),
        ("KeyError on L['d']['k']", "container", "d['k']", "present", "missing", None),
        ("IndexError on xs[1]", "container", "xs[1]", "present", "missing", None),
        ("set.__len__(s) == 2", "container", "s", "2 items", None, None),
        ("2 <= x.size()[0]", "symbolic_shape", "x", "2 <= size", None, 0),
        ("(L['x'].size()[1] % 8) == 0", "symbolic_shape", "x", "size % 8 == 0", None, 1),
        ("x.size()[0] == 3*(x.size()[1])", "symbolic_shape", "x", "x.size(0) == 3 * x.size(1)", None, None),
        ("Ne(s0, 1)", "symbolic_shape", None, "Ne(s0, 1)", None, None),
        ("Eq(Mod(s0, 8), 0)", "symbolic_shape", None, "Eq(Mod(s0, 8), 0)", None, None),
        ("11 <= x.stride()[0]", "stride", "x", "11 <= stride", None, 0),
        ("n == 3", "int_value", "n", "3", None, None),
        ("n == -3", "int_value", "n", "-3", None, None),
        ("n % 2 == 0", "int_value", "n", "n % 2 == 0", None, None),
        ("lr == inf", "float_value", "lr", "inf", None, None),
        ("lr == -inf", "float_value", "lr", "-inf", None, None),
        ("flag == True", "constant_value", "flag", "True", None, None),
        ("c == <Color.RED: 1>", "constant_value", "c", "<Color.RED: 1>", None, None),
        ("s == frozenset({1})", "container", "s", "frozenset({1})", None, None),
        ("model.k == 3  # a.py (HINT: torch.compile considers integer attributes of the nn.Module to be static.)",
         "module_attribute", "model.k", "3", None, None),
        ("self.cache is None", "module_attribute", "self.cache", "None", None, None),
        ("mask is not None", "type", "mask", "not None", "None", None),
    ],
)  # fmt: skip
def test_classify(
    text: str, cause: str, source: str | None, expected: str | None, actual: str | None, dimension: int | None
) -> None:
    guard = guard_of(f"0/0: {text}")
    assert (guard.cause, guard.source, guard.expected, guard.actual, guard.dimension) == (
        cause, source, expected, actual, dimension,
    )  # fmt: skip


class TestResumedFunctions:
    RESUMED = "torch_dynamo_resume_in_f_at_12"

    @pytest.mark.parametrize(
        "text", ["___stack0 == 4.0", "___stack0 == True", "___stack0 <= 10", "___stack0[1] == 3"]
    )
    def test_number_from_the_stack(self, text: str) -> None:
        assert guard_of(text, self.RESUMED).cause == "item_value"

    def test_other_values_from_the_stack(self) -> None:
        assert guard_of("___stack0 == 'a'", self.RESUMED).cause == "constant_value"
        size = guard_of("tensor '___stack0' size mismatch at index 0. expected 3, actual 4", self.RESUMED)
        assert describe(size) == "size of value from line 12, dimension 0: compiled for 3, got 4"

    def test_named_local(self) -> None:
        assert guard_of("n == 3", self.RESUMED).cause == "int_value"

    @pytest.mark.parametrize("name", ["value", "values", "value_states"])
    def test_a_variable_called_value_is_no_temporary(self, name: str) -> None:
        size = guard_of(f"tensor '{name}' size mismatch at index 0. expected 3, actual 4")
        assert remedy(size).startswith(f"call torch._dynamo.maybe_mark_dynamic({name}, 0) before the call")
        dtype = guard_of(f"tensor '{name}' dtype mismatch. expected Half, actual BFloat16")
        assert describe(dtype) == f"dtype of {name}: compiled for float16, got bfloat16"

    def test_what_names_a_finding_holds_no_line_and_no_number(self) -> None:
        words = [
            "value from line 12",
            "second value.shape from line 12",
            "x and 11th value['a b'] on the stack",
        ]
        assert [placeless(one) for one in words] == [
            "value from line",
            "value.shape from line (stack)",
            "x and value['a b'] on the stack (stack)",
        ]
        assert placeless("value_states") == "value_states"


class TestActuals:
    def test_value_and_values(self) -> None:
        guard = guard_of("0/0: n == 3", n="5")
        assert (guard.actual, guard.values) == ("5", ("3", "5"))

    def test_without_a_live_value(self) -> None:
        guard = guard_of("0/0: n == 3")
        assert (guard.actual, guard.values) == (None, ("3",))

    def test_condition_is_no_value(self) -> None:
        guard = classify(read("2 <= x.size()[0]"), function="f", actuals={"L['x'].size()[0]": "1"})
        assert (guard.expected, guard.actual, guard.values) == ("2 <= size", "1", ("1",))

    def test_length(self) -> None:
        assert guard_of("len(xs) == 2", xs="[1, 2, 3]").actual == "3 items"
        assert guard_of("not xs", xs="{'a': 1}").actual == "1 item"
        assert guard_of("len(xs) == 2", xs="deque object").actual is None
        assert guard_of("len(xs) == 2", xs="list of 1").actual == "1 item"
        assert guard_of("len(xs) == 2", xs="dict with 12 keys: a, b").actual == "12 items"

    def test_what_is_gone_has_no_value(self) -> None:
        guard = guard_of("0/0: n == 3", n="not readable (KeyError)")
        assert (guard.actual, guard.values) == (None, ("3",))

    def test_type(self) -> None:
        live = {"L['o'].__class__": "<class '__main__.main.<locals>.Small'>"}
        guard = classify(
            read("___check_type_id(o, 12), type=<class '__main__.Big'>"), function="f", actuals=live
        )
        assert (guard.expected, guard.actual) == ("Big", "Small")

    def test_long_value(self) -> None:
        guard = guard_of("0/0: s == 'a'", s=repr("b" * 5000))
        assert guard.actual is not None
        assert len(guard.actual) == 100


@pytest.mark.parametrize(
    ("expression", "sources"),
    [
        ("n == 3", ("L['n']",)),
        ("L['self'].counter == 3", ("L['self'].counter",)),
        ("2 <= x.size()[0]", ("L['x'].size()[0]",)),
        ("y.size()[0] == x.size()[0]", ("L['y'].size()[0]", "L['x'].size()[0]")),
        ("G['cfg'].n == 3", ("G['cfg'].n",)),
        ("d == device(type='cpu')", ("L['d']",)),
        ("mask is None", ("L['mask'].__class__",)),
        ("___check_type_id(o, 12), type=<class 'int'>", ("L['o'].__class__",)),
        ("___check_obj_id(self.act, 12)", ("L['self'].act",)),
        ("___check_obj_id(g.__code__, 12), type=<class 'code'>", ("L['g']",)),
        ("len(xs) == 3", ("L['xs']",)),
        ("launch(x) == 3", ("L['x']",)),
        ("x.pop() == 3", ("L['x']",)),
        ("xs[launch()] == 3", ("L['xs']",)),
        ("x is y", ()),
        ("not ___dict_contains('k', self.__dict__)", ()),
        ("tensor 'x' size mismatch at index 0. expected 3, actual 4", ()),
        ("GLOBAL_STATE changed: grad_mode ", ()),
        ("torch.autograd.forward_ad._current_level == -1", ()),
    ],
)
def test_guard_sources(expression: str, sources: tuple[str, ...]) -> None:
    assert guard_sources(expression) == sources


class TestFolding:
    def test_key_ignores_values(self) -> None:
        first, second = guard_of("0/0: n == 3"), guard_of("0/1: n == 4")
        assert finding_key(first, "f") == finding_key(second, "f")
        assert finding_key(first, "f") != finding_key(first, "g")
        assert finding_key(first, "f") != finding_key(guard_of("0/0: m == 3"), "f")

    def test_key_tells_dimensions_apart(self) -> None:
        text = "tensor 'x' size mismatch at index {}. expected 3, actual 4"
        assert finding_key(guard_of(text.format(0)), "f") != finding_key(guard_of(text.format(1)), "f")

    def test_key_tells_unknown_texts_apart(self) -> None:
        assert finding_key(guard_of("one thing"), "f") != finding_key(guard_of("other thing"), "f")

    def test_values_in_order_of_first_sight(self) -> None:
        merged = guard_of("n == 3", n="4")
        for expected, actual in ((4, 7), (3, 7), (7, 1)):
            merged = merge_values(merged, guard_of(f"n == {expected}", n=str(actual)))
        assert merged == replace(guard_of("n == 3", n="4"), values=("3", "4", "7", "1"))

    def test_an_optional_tensor_is_of_two_kinds(self) -> None:
        left_out = Guard("", "x", "a tensor", "None", "type", values=("a tensor", "None"))
        given = Guard("", "x", "None", "torch.Tensor", "type", values=("None", "torch.Tensor"))
        merged = merge_values(merge_values(left_out, given), given)
        assert merged.values == ("a tensor", "None")
        parameter = Guard("", "x", "a tensor", "torch.Tensor", "type", values=("a tensor", "torch.Tensor"))
        assert merge_values(parameter, parameter).values == ("a tensor", "torch.Tensor")

    def test_values_are_bounded(self) -> None:
        merged = guard_of("n == 0")
        for value in range(100):
            merged = merge_values(merged, guard_of(f"n == {value}"))
        assert merged.values == tuple(map(str, range(MAX_VALUES)))


@pytest.mark.parametrize(
    ("text", "function", "title", "advice"),
    [
        ("tensor 'x' size mismatch at index 0. expected 3, actual 4", "f",
         "size of x, dimension 0: compiled for 3, got 4",
         "call torch._dynamo.maybe_mark_dynamic(x, 0) before the call, or pad to one size (3, 4 were seen)"),
        ("tensor 'G['table']' stride mismatch at index 1. expected 1, actual 8", "f",
         "stride of global table, dimension 1: compiled for 1, got 8",
         ("give table one layout where it is made, .clone(memory_format=torch.contiguous_format): .contiguous()"
          " leaves it as it is where a size is 1")),
        ("self.counter == 3", "forward", "value of self.counter: compiled for 3, got another",
         ("keep self.counter the same between calls, or make it a tensor, or set"
         " torch._dynamo.config.allow_unspec_int_on_nn_module = True")),
        ("self.training == True", "forward", "value of self.training: compiled for True, got another",
         "set train() or eval() before the first call and keep it: self.training costs one compilation a mode"),
        ("self.param_groups[0]['lr'] == 0.1", "step",
         "value of self.param_groups[0]['lr']: compiled for 0.1, got another",
         ("give the optimizer its learning rate as a tensor: lr=torch.tensor(0.1), and set that in place where a"
            " schedule changes it, group['lr'].fill_(…)")),
        ("GLOBAL_STATE changed: grad_mode ", "f", "global state changed: grad_mode",
         "call it always inside, or always outside, torch.no_grad() and torch.inference_mode()"),
        (("tensor 'w' size mismatch at index 0. expected 3, actual 5. Guard failed on a parameter, consider using"
         " torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters."), "f",
         "size of w, dimension 0: compiled for 3, got 5",
         "keep the shape of w, or set torch._dynamo.config.force_parameter_static_shapes = False"),
        ("'NoneType' object has no attribute 'size'", "f",
         "a guard asked for .size of a tensor that is not there this time (None, or no view)",
         ("torch's own check stopped here: the code was made for a tensor that is a view of another one (a slice,"
            " an expand, what repeat_interleave gives), and the tensor that came is none. Call .clone() on the"
            " argument that is a view at some calls only")),
        ("0/0: ", "f", "no guard failed: another backend than before, or a fault of Dynamo",
         "pass the same backend object to every torch.compile of this function"),
    ],
)  # fmt: skip
def test_title_and_remedy(text: str, function: str, title: str, advice: str) -> None:
    guard = guard_of(text, function)
    assert (describe(guard), remedy(guard)) == (title, advice)


def test_remedy_lists_all_sizes() -> None:
    text = "tensor 'x' size mismatch at index 0. expected {}, actual {}"
    merged = merge_values(guard_of(text.format(3, 4)), guard_of(text.format(4, 7)))
    assert remedy(merged).endswith("pad to one size (3, 4, 7 were seen)")


class Payloads(logging.Handler):
    """Collects the artifact that the tests above are about."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "metadata", {}).get("artifact", {}).get("name") == "recompile_reasons":
            self.seen.append(record.payload)  # type: ignore[attr-defined]


@pytest.fixture
def payloads() -> Iterator[list[Any]]:
    handler, log = Payloads(), logging.getLogger("torch.__trace")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield handler.seen
    log.removeHandler(handler)
    log.setLevel(level)


@pytest.mark.torch
def test_installed_torch(payloads: list[Any]) -> None:
    """The torch at hand still writes what is read here."""
    torch = pytest.importorskip("torch")

    def f(x: Any, n: int, flag: bool) -> Any:
        return x + n if flag else x - n

    torch._dynamo.reset()
    compiled = torch.compile(f, backend="eager", dynamic=False)
    x = torch.ones(3)
    compiled(x, 2, True)
    compiled(torch.ones(4), 2, True)
    compiled(x.double(), 2, True)
    compiled(x, 5, True)
    compiled(x, 2, False)
    with torch.no_grad():
        compiled(x, 2, True)
    # The entry that was compiled first is reported last.
    oldest = [classify(failures[-1], function="f") for failures in map(parse_reasons, payloads)]
    assert [(guard.cause, guard.source, guard.expected) for guard in oldest] == [
        ("size", "x", "3"),
        ("dtype", "x", "float32"),
        ("int_value", "n", "2"),
        ("constant_value", "flag", "True"),
        ("global_state", "grad_mode", None),
    ]


def test_a_local_that_a_resumed_half_guards_on_cannot_be_marked_by_its_name() -> None:
    size = replace(guard_of("tensor 'h' size mismatch at index 0. expected 3, actual 4"), resumed=True)
    assert remedy(size) == (
        "find the argument that dimension 0 of h comes from, over the break in front of this part: pad that to"
        " one size, or have breakscope remedy try to mark it"
    )


def test_of_thousands_of_reasons_the_latest_are_kept() -> None:
    reasons = [f"0/{number}: name == 'n{number}'" for number in reversed(range(2_000))]
    for payload in (json.dumps(reasons), reasons):
        kept = without_old(payload)
        assert len(json.dumps(kept)) < 1_000
        assert parse_reasons(kept)[0] == parse_reasons(payload)[0]
    assert without_old(reasons[0]) == reasons[0]
    assert without_old(json.dumps(reasons[:8])) == json.dumps(reasons[:8])


def test_what_an_object_fills_itself_is_no_cache_of_tokens() -> None:
    values = ("1 item", "2 items")
    own = Guard("len(self.cache) == 1", "self.cache", "1 item", "2 items", "container", values=values)
    assert "return that and append in the caller" in advice(own, None, 1)
    assert "StaticCache" in advice(replace(own, source="past_key_values.key_cache"), None, 1)
    several = replace(
        own, source="self.seen", expected="{1, 4}", actual="set of 7", values=("{1, 4}", "set of 7")
    )
    assert "return that and append in the caller" in advice(several, None, 1)


def test_a_layout_that_a_break_hands_on_is_made_alike_before_the_break() -> None:
    passed = Guard("stride mismatch", "x", "1", "16", "stride", dimension=2)
    assert "one layout where it is made" in advice(passed, None, 1)
    assert "before that break" in advice(replace(passed, resumed=True), None, 1)
    held = replace(passed, source="__resume_frame_values[3]")
    assert "__resume" not in advice(held, None, 1)


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [("34", "28", "comes from data"), ("20", "22", "has its size from dimension 0 of x")],
)
def test_a_size_comes_of_one_of_the_call_only_where_both_grew(expected: str, actual: str, said: str) -> None:
    """What a miner finds in eleven rows may be less than what it found in ten."""
    origin = Origin(
        direct=False,
        same_call=False,
        sizes=(Size("x", 0, 10, 11),),
        values=(),
        modes=(),
        where="train.py:9",
        entry="step",
    )
    text = f"tensor 'losses' size mismatch at index 0. expected {expected}, actual {actual}"
    guard = replace(classify(read(text), function="reduce"), values=(expected, actual))
    assert said in advice(guard, origin, 1)


def sized(*sizes: Size, **changes: Any) -> Origin:
    """Two calls between which sizes differed, of arguments that are guarded themselves."""
    call = Origin(
        direct=True, same_call=False, sizes=sizes, values=(), modes=(), where="train.py:9", entry="f"
    )
    return replace(call, **changes)


def of_size(name: str, *sizes: str) -> Guard:
    text = f"tensor '{name}' size mismatch at index 0. expected {sizes[0]}, actual {sizes[1]}"
    return replace(classify(read(text), function="f"), values=sizes)


def test_dynamic_is_not_said_to_save_what_equal_sizes_or_a_branch_have_compiled(tmp_path: Path) -> None:
    """Torch takes sizes that are equal at the first call for one.

    A mark would keep them apart, of an argument alone: what goes on behind a break has none.
    """
    size, equal = Size("det", 0, 4, 5), ("dimension 1 of det",)
    plain, said = (of_group(sized(size, equal=one), [size], 1, ["4", "5"]) for one in ((), equal))
    assert "no help where the code branches on it, makes a Python number, a 0 or a 1 of it, or has" in plain
    assert "maybe_mark_dynamic" not in said
    assert "(with a first call whose sizes differ: dimension 1 of det was as large at the first call" in said
    file = tmp_path / "net.py"
    file.write_text("def f(det):\n    if det.shape[0] % 4:\n        det = det + 1\n    return det\n")
    does = taken(Sources(), of_size("det", "4", "5"), [(str(file), 1)])
    said = of_group(sized(size), [size], 1, ["4", "5"], does)
    assert "where a branch (line 2) asks for it, each side is compiled apart" in said
    said = advice(of_size("det", "4", "5"), sized(size), 1, does)
    assert "; a branch (line 2) asks for the size, and each side is compiled apart; or pad" in said


def test_a_counter_is_followed_into_the_methods_that_are_called(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "class Net(nn.Module):\n    def forward(self, x):\n        return x * self.rate()\n"
        "    def rate(self):\n        return math.cos(self.steps)\n"
    )
    guard = replace(classify(read("self.steps == 0"), function="forward"), source="self.steps")
    assert taken(Sources(), guard, [(str(file), 2)]).needs == "a function of math (line 5)"


def test_a_size_is_followed_into_what_gets_the_tensor(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "class Net(nn.Module):\n    def forward(self, sample):\n        return self.encode(sample) * 2\n"
        "    def encode(self, x):\n        for i in range(max(x.shape[0] // 8, 1)):\n            x = x + i\n"
        "        return x\n"
    )
    does = taken(Sources(), of_size("sample", "16", "24"), [(str(file), 2)])
    assert does.unrolled == "a loop (line 5)"


def test_a_tensor_that_an_object_is_given_anew_is_not_to_be_padded() -> None:
    said = advice(of_size("self.sigmas", "5", "4"), sized(Size("x", 0, 2, 3), direct=False), 1)
    assert said.startswith("self.sigmas came with another size than before (5, 4 were seen)")
    assert "pad" not in said


def test_a_list_that_grows_under_any_key_is_no_list_to_keep_the_same(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    guard = replace(classify(read("len(G['TIMES']['f']) == 2"), function="f"), source="TIMES['f']")
    for body, grows in (("TIMES.setdefault(name, []).append(t)", True), ("return TIMES[name][0]", False)):
        file.write_text(f"def f(name, t):\n    {body}\n")
        does = taken(Sources(), guard, [(str(file), 1)])
        assert (does.fills, does.grows) == (grows, grows)


def test_two_modes_in_one_call_are_not_told_as_two_calls() -> None:
    guard = classify(read("GLOBAL_STATE changed: grad_mode "), function="f")
    assert "runs this code in both modes" in advice(guard, sized(same_call=True), 1)
    assert "runs this code in both modes" in advice(guard, sized(modes=("train() and eval()",)), 1)
    assert "came in the other mode" in advice(guard, sized(modes=("grad mode",)), 1)


def test_a_list_that_is_as_long_as_a_size_is_made_for_each(tmp_path: Path) -> None:
    size, guard = Size("x", 0, 2, 3), of_size("x", "2", "3")
    source = (
        "def f(x):\n    batch, h, w = x.shape\n    sizes = [(h, w)] * batch\n"
        "    return [a + h for a, (h, w) in zip(x * 2, sizes)]\n"
    )
    does = in_function(tmp_path, source, guard)
    said = of_group(sized(size), [size], 2, ["2", "3"], does)
    assert "no help where a list of as many items (line 3) takes it as a Python number" in said


def test_a_branch_that_only_raises_has_no_other_side(tmp_path: Path) -> None:
    size, guard = Size("det", 0, 4, 5), of_size("det", "4", "5")
    source = "def f(det, b):\n    if det.shape[0] != b:\n        raise ValueError\n    return det\n"
    does = in_function(tmp_path, source, guard)
    assert "each side" not in of_group(sized(size), [size], 1, ["4", "5"], does)


def test_sizes_that_a_branch_asks_for_are_said_to_come_of_that(tmp_path: Path) -> None:
    guard = of_size("x", "48", "20", "28")
    does = in_function(
        tmp_path, "def f(x):\n    if x.shape[0] > 30:\n        print(1)\n    return x\n", guard
    )
    said = advice(guard, sized(Size("x", 0, 48, 20)), 2, does)
    assert said.startswith("A branch (line 2) asks for dimension 0 of x")
    assert "mark_static" not in said


def test_a_size_comes_of_another_one_behind_strided_convolutions() -> None:
    """The feature encoder of wav2vec 2.0 makes one of 320."""
    assert may_come_of(of_size("___stack0", "21", "25"), [Size("x", 1, 6800, 8080)])
    assert not may_come_of(of_size("___stack0", "21", "35"), [Size("x", 1, 6800, 8080)])


def test_a_second_size_is_no_matter_of_a_size_of_one_that_came_later() -> None:
    size = Size("x", 0, 2, 3)
    said = of_group(sized(size), [size], 5, ["2", "3", "1"])
    assert "breakscope remedy try dynamic=True" in said
    assert "Sizes 0 and 1 are compiled apart all the same." in said


def test_each_of_several_arguments_is_marked_at_its_own_dimension() -> None:
    sizes = [Size("out", 2, 4, 5), Size("y[1]", 1, 4, 5)]
    said = advice(of_size("out", "4", "5"), sized(*sizes), 1)
    assert "maybe_mark_dynamic(out, 2) and torch._dynamo.maybe_mark_dynamic(y[1], 1) before" in said


def test_what_saves_a_compile_saves_none_where_another_number_changes_too() -> None:
    guard = replace(classify(read("___as_tensor(clip).item() == 0.2"), function="f"), cause="float_value")
    guard = replace(guard, source="clip", expected="0.2", actual="0.1", values=("0.2", "0.1"))
    call = sized(values=(("clip", "0.2", "0.1"), ("rate", "0.01", "0.02")))
    assert "pass it (and rate, which changed at the same call) as a tensor" in advice(guard, call, 1)


def test_what_is_passed_gets_a_name_that_its_caller_does_not_use() -> None:
    sizes = (Size("y", 0, 4, 5), Size("y", 0, 4, 5, named=False), Size("argument 2", 1, 4, 5, named=False))
    said = advice(of_size("y", "4", "5"), sized(*sizes, used=frozenset({"x", "y"})), 1)
    marks = " and ".join(f"torch._dynamo.maybe_mark_dynamic({one})" for one in ("y, 0", "z, 0"))
    given = "Give what is passed as y the name z and what is passed as argument 2 the name x0, and call"
    assert said.startswith(given)
    assert marks.replace(" and ", ", ") + " and torch._dynamo.maybe_mark_dynamic(x0, 1) before" in said
    said = advice(of_size("y", "4", "5"), sized(sizes[1]), 1)
    assert said.startswith("Give what is passed as y a name, and call torch._dynamo.maybe_mark_dynamic(y, 0)")


@pytest.mark.parametrize(
    ("came", "sizes", "said"),
    [
        (("8", "23"), (Size("out", 2, 8, 16),), "No size of the call at train.py:9 changed"),
        (("2", "4"), (Size("det", 0, 14, 15),), "No size of the call at train.py:9 changed"),
        (("8", "12"), (Size("ids", 1, 8, 12),), "has its size from dimension 1 of ids of the call"),
        (("32", "63"), (Size("wave", 1, 64, 127),), "has its size from dimension 1 of wave of the call"),
        (("8", "18"), (Size("a", 0, 2, 3), Size("b", 1, 4, 6)), "has its size from"),
    ],
)
def test_a_size_inside_is_led_back_only_to_one_that_it_can_come_of(
    came: tuple[str, str], sizes: tuple[Size, ...], said: str
) -> None:
    assert said in advice(of_size("h", *came), sized(*sizes, direct=False), 1)


def test_another_size_that_explains_as_much_is_named() -> None:
    rival = (Size("pixels", 0, 2, 3),)
    size = Size("ids", 1, 8, 12)
    grouped = of_group(sized(size, *rival, direct=False, rivals=rival), [size], 2, ["8", "12"])
    assert "Dimension 1 of ids (or 0 of pixels, which changed too), of the call" in grouped
    assert "maybe_mark_dynamic" not in grouped
    said = advice(
        of_size("h", "8", "12"), sized(Size("ids", 1, 8, 12), *rival, direct=False, rivals=rival), 1
    )
    assert "changed as dimension 1 of ids did, and as 0 of pixels of the call" in said


def test_a_size_of_one_that_a_number_decides_is_one_more_graph() -> None:
    origin = Origin(
        direct=False,
        same_call=False,
        sizes=(),
        values=(("batch_size", "1", "2"),),
        modes=(),
        where="sample.py:7",
        entry="sample",
    )
    guard = classify(read("tensor 't' size mismatch at index 0. expected 1, actual 2"), function="scaled")
    text = advice(guard, origin, 1)
    assert "a graph for 1 is one more, made once, whatever dynamic= says" in text


def test_a_number_that_a_comprehension_indexes_with_is_told_as_an_index() -> None:
    guard = classify(read("___tuple_iterator_getitem(.0, 1).item() == 7"), function="<listcomp>")
    assert "x.index_select(dim, index)" in advice(guard, None, 1)


def test_what_two_callers_pass_is_no_matter_of_training() -> None:
    origin = Origin(
        direct=False,
        same_call=False,
        sizes=(),
        values=(),
        modes=(),
        where="train.py:37",
        entry="Imagine",
        other="RSSM.observe",
    )
    text = "tensor 'a' requires_grad mismatch. expected requires_grad=0"
    guard = replace(classify(read(text), function="step"), values=("False", "True"))
    assert advice(guard, origin, 1).startswith("This function is called by RSSM.observe and Imagine,")


TAKEN = """
class Net:
    def __init__(self):
        self.arms = [1, 2]
        self.n = 0
    def f(self, x, arm, psi, step, cap=1.0):
        if psi is not None:
            x = x * psi
        if step % 2 == 0:
            x = x + 1
        kl = x * 2
        self.n += 1
        if self.n % 3 == 0:
            x = x + 2
        if x.sum() > cap:
            x = x * cap
        lam = 0.5
        for i in range(len(x)):
            x = x + lam
        return x + self.arms[arm] + kl
def outer(net, x):
    return net.f(x)
"""


@pytest.mark.parametrize(
    ("expression", "source", "values", "said"),
    [
        ("arm == 0", "arm", ("0", "3"), "pick from self.arms (line 20) in the caller"),
        ("psi == 0.5", "psi", ("0.5", "0.7"), "pass it as a tensor|pass psi as a tensor"),
        ("step == 0", "step", ("0", "1", "5"), "A branch (line 9) asks for step"),
        ("G['net'].n == 0", "net.n", ("0", "2"), "Keep net.n in the caller, and pass in what follows of it"),
        (
            "kl is None",
            "kl",
            ("None", "a tensor"),
            "kl is made here (line 11), and a graph break hands it on: what it is",
        ),
        ("self.n == 1.5", "self.n", ("1.5", "2.5", "3.5"), "A branch (line 13) asks for self.n"),
        ("cap == 0.5", "cap", ("0.5", "0.7"), "pass cap as a tensor|pass it as a tensor"),
        ("lam == 0.5", "lam", ("0.5", "0.7"), "It is made here (line 17), and a graph break hands it on"),
        ("lam needs", "lam", ("False", "True"), "a graph break hands it on: whether it needs a gradient"),
        (
            "self.i == 0.0",
            "self.i",
            ("0.0", "Tensor((), torch.float32, cpu)"),
            "Let self.i begin as a tensor",
        ),
        ("kl['a']", "kl['a']", ("present", "missing"), "kl['a'] is made here (line 11), and a graph break"),
        ("n", "self.n", ("(1 + self.n) % 2 == 0", "2", "3"), "for the side where (1 + self.n) % 2 == 0"),
        ("self.pool == 'a'", "self.pool", ("'a'", "'b'"), "self.pool chooses what runs"),
    ],
)
def test_what_compiled_code_does_with_a_value_decides_what_is_said_of_it(
    tmp_path: Path, expression: str, source: str, values: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "net.py"
    file.write_text(TAKEN)
    causes: dict[str, GuardCause] = {
        **dict.fromkeys(("psi", "cap", "lam"), "float_value"),
        **dict.fromkeys(("self.n", "self.i", "self.pool"), "module_attribute"),
        "kl": "type",
        "kl['a']": "container",
    }
    cause = "requires_grad" if "needs" in expression else causes.get(source, "int_value")
    resumed = source in ("kl", "lam", "kl['a']")
    guard = Guard(expression, source, values[0], values[-1], cause, values=values, resumed=resumed)
    first = [] if source != "net.n" else [(str(file), 21)]
    does = taken(Sources(), guard, [*first, (str(file), 7)])
    text = advice(guard, None, len(values) - 1, does)
    assert any(one in text for one in said.split("|")), text


VALUES = """
import math
import torch
cache = {}
log = []
def note(text):
    log.append(text)
class Other:
    def __init__(self, mode):
        self.mode = mode
class Net:
    def __init__(self, mode):
        self.mode, self.table = mode, {0.1: 1}
    def f(self, x, ids, depth, rate, key):
        self.level = max(self.level, 0.5) + math.sqrt(self.t)
        if key not in cache:
            cache[key] = torch.ones(2)
        ids = torch.as_tensor(ids)
        ids.append(3)
        return x + self.table[depth] + F.dropout(x, p=rate) * cache[key]
"""


@pytest.mark.parametrize(
    ("source", "values", "cause", "said"),
    [
        ("depth", ("0.1", "0.3"), "float_value", "Look up in the caller what depth is the key of"),
        (
            "rate",
            ("0.1", "0.2", "0.3"),
            "float_value",
            "constant (an argument of F.dropout (line 20)), so each",
        ),
        (
            "self.t",
            ("0", "1", "2"),
            "module_attribute",
            "calculate in the caller what needs it, and pass that in",
        ),
        ("self.level", ("0.1", "0.2"), "module_attribute", "min or max compares it (line 15)"),
        ("self.mode", ("True", "False"), "module_attribute", "No line here but __init__ sets self.mode"),
        (
            "cache",
            ("0 items", "2 items", "1 item"),
            "container",
            "is filled by the code itself where it lacks",
        ),
        ("log", ("4 items", "6 items"), "container", "The code puts something into log at each call"),
        ("ids", ("4 items", "5 items", "6 items"), "container", "Each number of items in ids"),
        ("ids", ("4 items", "5 items"), "container", "Each number of items in ids"),
        ("g", ("torch._C.Generator", "None"), "type", "or draw in the caller what it is for"),
        (
            "self.grid",
            ("1", "5"),
            "rank",
            "Make the first call in eager where the model makes self.grid anew in it",
        ),
    ],
)
def test_what_is_said_of_a_value_goes_with_its_use(
    tmp_path: Path, source: str, values: tuple[str, ...], cause: GuardCause, said: str
) -> None:
    file = tmp_path / "net.py"
    file.write_text(VALUES)
    expression = f"G['{source}']" if source in ("cache", "log") else source
    guard = Guard(expression, source, values[0], values[1], cause, values=values)
    does = taken(Sources(), guard, [(str(file), 14)])
    assert said in advice(guard, None, len(values) - 1, does)


def test_what_differs_within_one_call_is_not_led_back_to_its_mode() -> None:
    inside = sized(direct=False, same_call=True, other="f")
    needs = Guard("c", "cells[0]", "True", "False", "requires_grad", values=("True", "False"))
    assert "a state that begins as zeros" in advice(needs, inside, 1)
    assert "follows the mode of the call" in advice(needs, replace(inside, modes=("grad mode",)), 1)
    flag = Guard("c", "use_cache", "True", "False", "constant_value", values=("True", "False"))
    assert "one call at train.py:9 runs this function with True and with False" in advice(flag, inside, 1)
    given = Guard("c", "pooled", "None", "torch.Tensor", "type", values=("None", "torch.Tensor"))
    assert "runs this function with pooled and without" in advice(given, inside, 1)


def test_views_of_tensors_that_were_equal_at_first_are_to_be_copies() -> None:
    expected = "tracks[4].box._base.size(0) == tracks[0].box._base.size(0)"
    guard = Guard("e", "tracks[4].box._base", expected, "5 and 4", "symbolic_shape", dimension=0)
    said = advice(guard, sized(values=(("self.frame", "3", "4"),)), 1)
    assert "were equal at first, so torch takes them for one" in said
    assert "pass .clone() of each view" in said


def test_a_gradient_that_is_missing_is_no_argument() -> None:
    guard = Guard("p.grad", "params[3].grad", "a tensor", "None", "type", values=("a tensor", "None"))
    assert "given None by zero_grad()" in advice(guard, None, 1)
    assert "given None by zero_grad()" in advice(replace(guard, cause="module_attribute"), None, 1)


def test_modules_of_one_class_of_which_some_lack_a_part_share_its_code() -> None:
    guard = Guard("lv", "self.lv", "present", "missing", "container", values=("present", "missing"))
    assert advice(guard, None, 1).startswith("Objects of one class that have different things in self.lv")


def test_numbers_in_a_list_of_ones_own_are_constants() -> None:
    guard = Guard("tail", "self.tail[0]", "12", "19", "module_attribute", values=("12", "19"))
    assert "keep self.tail, and what asks for its numbers, in the caller" in advice(
        guard, None, 1, Taken(of_module=False)
    )


@pytest.mark.parametrize(
    ("sizes", "number", "said"),
    [
        (("2", "4"), ("i", "0", "1"), "from the model's own state"),
        (("2", "4"), ("n", "1", "2"), "follows n"),
        (("5", "6"), ("n", "3", "4"), "changed with n"),
    ],
)
def test_a_size_follows_a_number_that_it_may_be_made_of(
    sizes: tuple[str, str], number: tuple[str, str, str], said: str
) -> None:
    """The length of a queue is none that grows by one at each step."""
    origin = Origin(
        direct=False,
        same_call=False,
        sizes=(),
        values=(number,),
        modes=(),
        where="train.py:9",
        entry="step",
    )
    text = f"tensor 'l' size mismatch at index 0. expected {sizes[0]}, actual {sizes[1]}"
    assert said in advice(replace(classify(read(text), function="loss"), values=sizes), origin, 1)


@pytest.mark.parametrize("one_each", [True, False])
def test_the_second_size_of_each_mode_is_none_that_stays_fixed(*, one_each: bool) -> None:
    size = Size("x", 0, 8, 5, path="args[0]")
    origin = Origin(
        direct=True,
        same_call=False,
        sizes=(size,),
        values=(),
        modes=(),
        where="train.py:9",
        entry="step",
        one_each=one_each,
    )
    guard = classify(read("tensor 'x' size mismatch at index 0. expected 8, actual 5"), function="step")
    said = advice(replace(guard, values=("8", "5", "3")), origin, 2)
    assert ("compiled one by one" in said) == (not one_each)
    assert ("maybe_mark_dynamic(x, 0)" in said) == one_each


def test_a_size_that_a_loop_runs_over_is_not_to_be_marked(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("def f(x):\n    for i in range(len(x)):\n        x = x + i\n    return x\n")
    origin = Origin(
        direct=True,
        same_call=False,
        sizes=(Size("x", 0, 6, 7),),
        values=(),
        modes=(),
        where="train.py:9",
        entry="f",
    )
    guard = classify(read("tensor 'x' size mismatch at index 0. expected 6, actual 7"), function="f")
    text = advice(replace(guard, values=("6", "7")), origin, 1, taken(Sources(), guard, [(str(file), 1)]))
    assert "maybe_mark_dynamic" not in text
    assert "(a loop (line 2)), so each size (6, 7 were seen) is compiled" in text


@pytest.mark.parametrize(("bases", "of_module"), [("", False), ("(object)", False), ("(nn.Module)", True)])
def test_a_class_of_object_is_no_module(tmp_path: Path, bases: str, of_module: bool) -> None:
    file = tmp_path / "net.py"
    file.write_text(f"class A{bases}:\n    def f(self, x):\n        return x[self.n]\n")
    guard = Guard("self.n == 0", "self.n", "0", "1", "module_attribute", values=("0", "1"))
    does = taken(Sources(), guard, [(str(file), 2)])
    assert does.of_module == of_module
    assert ("allow_unspec_int_on_nn_module" in advice(guard, None, 1, does)) == of_module


# One call of each operation that is said to take a plain number, of x with four dimensions or m with two.
PLAIN_CALLS = {
    "rot90": "torch.rot90(m, n)",
    "unfold": "x.unfold(1, n, 1)",
    "triu_indices": "torch.triu_indices(6, 6, n)",
    "tril_indices": "torch.tril_indices(6, 6, n)",
    "matrix_power": "torch.matrix_power(m, n)",
    "diag": "torch.diag(m, n)",
    "diagonal": "m.diagonal(n)",
    "diag_embed": "torch.diag_embed(m, n)",
    "one_hot": "F.one_hot(torch.tensor([0, 1]), n)",
    "polygamma": "torch.polygamma(n, m)",
    "chunk": "x.chunk(n, 1)",
    "split": "x.split(n, 1)",
    "tensor_split": "x.tensor_split(n, 1)",
    "group_norm": "F.group_norm(x, n)",
    "pixel_shuffle": "F.pixel_shuffle(x, n)",
    "linspace": "torch.linspace(0, 1, n)",
    "hann_window": "torch.hann_window(n)",
    "histc": "torch.histc(m, n)",
    "diff": "torch.diff(m, n)",
    "stft": "torch.stft(m[0], n, 1, window=torch.ones(n), return_complex=True)",
    "avg_pool1d": "F.avg_pool1d(m, n)",
    "avg_pool2d": "F.avg_pool2d(x, n)",
    "max_pool1d": "F.max_pool1d(m, n)",
    "max_pool2d": "F.max_pool2d(x, n)",
    "adaptive_avg_pool1d": "F.adaptive_avg_pool1d(m, n)",
    "adaptive_max_pool1d": "F.adaptive_max_pool1d(m, n)",
}


@pytest.mark.torch
@pytest.mark.parametrize(
    "names", [PLAIN[:4], pytest.param(PLAIN, marks=pytest.mark.nightly)], ids=["some", "all"]
)
def test_operations_that_take_a_plain_number_have_a_graph_for_each_with_dynamic_true_as_well(
    names: Sequence[str],
) -> None:
    """Torch's own schemas and converters decide that, so it is asked of the torch that runs."""
    code = """
import json, torch
from torch.nn import functional as F

calls = json.loads(input())
x, m = torch.ones(2, 36, 8, 8), torch.ones(8, 8)
graphs = {}
for name, call in calls.items():
    def backend(graph, _):
        graphs[name] = graphs.get(name, 0) + 1
        return graph.forward
    f = eval(f"lambda n: {call}")
    g = torch.compile(f, backend=backend, dynamic=True)
    for n in (2, 3, 6):
        g(n)
print(json.dumps(graphs))
"""
    calls = json.dumps({name: PLAIN_CALLS[name] for name in names})
    done = subprocess.run(
        [sys.executable, "-c", code], input=calls, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == dict.fromkeys(names, 3)
    assert set(PLAIN_CALLS) == set(PLAIN)


def test_a_rank_of_an_empty_state_is_not_said_to_be_saved_by_reshaping() -> None:
    """Reshaped it has a size of 0, which is compiled apart as well."""
    guard = classify(read("tensor 'mems' rank mismatch. expected 1, actual 3"), function="f")
    said = advice(replace(guard, values=("1", "3")), None, 1)
    assert "reshape mems to one number of dimensions before the call" in said
    assert said.endswith("where the sizes then are the same, none of them 0 or 1 at some calls only")


def in_function(path: Path, source: str, guard: Guard) -> Taken:
    file = path / "net.py"
    file.write_text(source)
    return taken(Sources(), guard, [(str(file), 1)])


def test_a_number_that_numpy_takes_is_compiled_for_each_value(tmp_path: Path) -> None:
    guard = replace(classify(read("step == 2"), function="f"), values=("2", "4"))
    does = in_function(tmp_path, "def f(x, step):\n    return x * float(np.exp(-step))\n", guard)
    said = advice(guard, None, 1, does)
    assert said.startswith("Numpy takes step (np.exp (line 2)) as a constant, so each value (2, 4 were seen)")
    plain = in_function(tmp_path, "def f(x, step):\n    return x * step\n", guard)
    assert "torch treats step as symbolic" in advice(guard, None, 1, plain)


def test_a_rate_that_a_branch_asks_for_is_not_to_be_a_float_at_every_call(tmp_path: Path) -> None:
    guard = replace(classify(read("p == 0.1"), function="f"), values=("0.1", "0"))
    branch = in_function(
        tmp_path, "def f(x, p):\n    if p:\n        x = F.dropout(x, p)\n    return x\n", guard
    )
    assert "A branch (line 2) asks for p" in advice(guard, None, 1, branch)
    plain = in_function(tmp_path, "def f(x, p):\n    return x * p\n", guard)
    assert "Pass p always as a float" in advice(guard, None, 1, plain)


@pytest.mark.parametrize("over", ["h", "zip(h, mask)", "enumerate(zip(mask, h))", "reversed(h)"])
def test_a_loop_over_a_tensor_has_a_graph_for_each_length(tmp_path: Path, over: str) -> None:
    guard = of_size("h", "3", "5", "4")
    does = in_function(tmp_path, f"def f(h, mask):\n    for one in {over}:\n        s = s + one\n", guard)
    said = advice(guard, sized(Size("h", 0, 3, 5)), 2, does)
    assert "a loop (line 2)), so each size (3, 5, 4 were seen) is compiled, and dynamic=True does not" in said
    said = of_group(sized(Size("h", 0, 3, 5)), [Size("h", 0, 3, 5)], 2, ["3", "5"], does)
    assert "no help where a loop (line 2) is unrolled over it, a graph for each size" in said
    said = of_group(sized(Size("h", 0, 3, 5)), [Size("h", 0, 3, 5)], 1, ["3", "5"], does)
    assert "a loop (line 2) is unrolled over it, a graph for each size, whatever dynamic= says" in said
    assert "remedy" not in said


def test_a_size_that_came_with_more_than_two_values_is_not_compiled_once_each() -> None:
    size = Size("x", 0, 3, 5)
    once, often = (of_group(sized(size), [size], 2, seen) for seen in (["3", "5"], ["3", "5", "4"]))
    assert "after the second size torch makes it dynamic by itself" in once.lower()
    assert "where more are compiled, the code makes a number of it, or another flag or mode" in often


def test_a_size_that_the_script_keeps_static_is_not_said_to_become_dynamic() -> None:
    size = Size("x", 0, 3, 5)
    said = of_group(replace(sized(size), kept_static=True), [size], 2, ["3", "5", "6"])
    assert "dynamic=False, or mark_static, keeps it fixed, a graph for each size" in said
    assert "torch makes it dynamic" not in said


def test_a_call_in_another_mode_may_be_compiled_whatever_its_sizes_are() -> None:
    size = Size("x", 0, 3, 5)
    origin = replace(sized(size), modes=("train() and eval()",))
    for said in (advice(of_size("x", "3", "5"), origin, 1), of_group(origin, [size], 2, ["3", "5"])):
        assert "the call came in another mode as well (train() and eval())" in said


def test_a_last_batch_of_one_is_a_batch_where_lists_hold_it_too() -> None:
    held = Size("out['aux'][0]['boxes']", 0, 2, 1, path="args[0]['aux'][0]['boxes']")
    whole = Size("out['boxes']", 0, 2, 1, path="args[0]['boxes']")
    said = advice(of_size("out['aux'][0]['boxes']", "2", "1"), sized(held, whole), 1)
    assert "drop_last=True" in said
    assert "an item of the list" not in said


def test_an_item_of_a_list_is_no_batch() -> None:
    boxes = Size("targets[0]['boxes']", 0, 3, 1, path="args[1][0]['boxes']")
    batch = Size("x", 0, 3, 1, path="args[0]")
    for size, said in ((boxes, "where an item has one thing"), (batch, "drop_last=True")):
        assert said in advice(of_size("boxes", "3", "1"), sized(size), 1)


def test_the_items_of_a_comprehension_have_no_name() -> None:
    guard = classify(read("___tuple_iterator_len(.0) == 4"), function="<listcomp>")
    assert describe(guard) == "contents of the comprehension's iterator: compiled for 4 items, got another"
    assert "a version for each number of items that it runs over" in advice(guard, None, 1)


def test_a_size_that_torch_can_make_symbolic_is_no_constant(tmp_path: Path) -> None:
    """A third size of another grad mode is compiled too: torch.zeros takes a symbol."""
    guard = of_size("x", "8", "5", "3")
    does = in_function(tmp_path, "def f(x):\n    return x + torch.zeros([x.shape[0], 4])\n", guard)
    said = advice(guard, sized(Size("x", 0, 8, 5)), 2, does)
    assert "dynamic=True does not help" not in said
    assert "after the second one of each mode (with gradients or without, training or evaluation)" in said


def test_two_arguments_that_changed_alike_are_both_named() -> None:
    sizes = [Size("a[0]", 0, 3, 4), Size("a[1]", 0, 3, 4)]
    origin = sized(*sizes, direct=False)
    assert "from dimension 0 of a[0] (or of a[1], which changed alike)" in advice(
        of_size("x", "3", "4"), origin, 1
    )


def test_two_callers_have_each_a_size_of_their_own() -> None:
    origin = sized(direct=False, entry="update", other="evaluate")
    said = advice(of_size("h", "16", "2"), origin, 1)
    assert said.startswith(
        "This code is run by evaluate() and by update(), each with its own size of h (16, 2 were"
    )


def test_a_list_that_grows_within_one_call_is_none_of_several_objects(tmp_path: Path) -> None:
    """Each call makes it longer: a higher limit only puts the end off."""
    guard = replace(
        classify(read("len(self.seen) == 1"), function="f"), values=("1 item", "2 items", "3 items")
    )
    does = in_function(tmp_path, "def f(self, x):\n    self.seen.append(x)\n    return x\n", guard)
    said = advice(guard, sized(direct=False, same_call=True), 2, does)
    assert "return that and append in the caller" in said
    assert "recompile_limit" not in said


def test_a_name_of_dynamos_is_no_list_that_anybody_passes() -> None:
    guard = replace(
        classify(read("len(L['__resume_frame_values']) == 2"), function="f"), values=("2 items", "3 items")
    )
    assert guard.source is not None
    assert guard.source.startswith("__")
    assert "repair the graph break over which it is held" in advice(guard, None, 1).lower()


def test_values_of_a_break_that_are_one_object_are_nothing_that_anybody_passes() -> None:
    passed = Guard("c", "x and y", "the same object", "different objects", "aliasing")
    assert remedy(passed).startswith("pass x and y always as one")
    held = replace(passed, source="value from line 8 and x")
    assert "repair the graph break that hands them on" in remedy(held)


def test_two_callers_with_a_size_of_one_are_two_graphs() -> None:
    seen = Origin(False, False, (), (), (), "train.py:9", "evaluate", other="train")
    guard = Guard("c", "h", "2", "1", "size", 1, ("2", "1"))
    assert "torch compiles sizes 0 and 1 apart from all others" in advice(guard, seen, 1)
    assert "after the second size torch makes it dynamic" in advice(replace(guard, actual="3"), seen, 1)
