"""Comments that leave findings out: where they stand, what they hold for, what is wrong with them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from breakscope.project.suppress import Suppressions, parse, read


def suppressions(source: str) -> Suppressions:
    return parse(textwrap.dedent(source).lstrip("\n"))


def test_a_comment_holds_for_its_line_and_its_codes_only() -> None:
    found = suppressions("""
        a = x.item()  # breakscope: ignore[BS102] -- once a run
        b = x.item()
    """)
    assert found.find("BS102", 1) is found.entries[0]
    assert found.entries[0].reason == "once a run"
    assert found.find("BS101", 1) is None
    assert found.find("BS102", 2) is None


def test_several_codes_prefixes_and_other_comments_on_the_line() -> None:
    found = suppressions("y = f(x)  # noqa: E501  # breakscope: ignore[BS101, BS3]\n")
    assert found.entries[0].reason is None
    assert [code for code in ("BS101", "BS102", "BS301", "BS303") if found.find(code, 1)] == [
        "BS101",
        "BS301",
        "BS303",
    ]


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_statement_of_several_lines_is_one(line: int) -> None:
    source = ["y = torch.where(", "    x.sum().item(),", "    0)"]
    source[line - 1] += "  # breakscope: ignore[BS102]"
    found = parse("\n".join([*source, "z = 1"]) + "\n")
    assert [number for number in (1, 2, 3, 4) if found.find("BS102", number)] == [1, 2, 3]


def test_on_a_line_of_its_own_it_holds_for_the_next_statement() -> None:
    found = suppressions("""
        # breakscope: ignore[BS101] -- rare
        if (x > 0 and
                y > 0):
            z = 1
    """)
    assert [number for number in (1, 2, 3, 4) if found.find("BS101", number)] == [2, 3]


@pytest.mark.parametrize("place", ["decorator", "def", "second line of the def"])
def test_on_a_function_it_holds_for_all_of_it(place: str) -> None:
    source = ["@torch.compile", "async def f(a,", "            b):", "    y = a", "    return y", "z = 1"]
    at = {"decorator": 0, "def": 1, "second line of the def": 2}[place]
    source[at] += "  # breakscope: ignore[BS]"
    found = parse("\n".join(source) + "\n")
    held = [number for number in range(1, 7) if found.find("BS101", number)]
    assert not held
    assert found.malformed, "a prefix has at least one digit"
    found = parse("\n".join(source).replace("[BS]", "[BS1]"))
    assert [number for number in range(1, 7) if found.find("BS101", number)] == [1, 2, 3, 4, 5]


def test_on_a_class_it_holds_for_its_methods_and_a_narrower_one_is_named() -> None:
    found = suppressions("""
        class Net:  # breakscope: ignore[BS1] -- to be replaced
            def one(self): return 1  # breakscope: ignore[BS101] -- this one
            def two(self):

                return 2
        x = 1
    """)
    assert [number for number in range(1, 7) if found.find("BS102", number)] == [1, 2, 3, 4, 5]
    one = found.find("BS101", 2)
    assert one is not None
    assert one.reason == "this one"


def test_text_in_a_string_is_no_comment() -> None:
    assert not suppressions(
        '"""\n# breakscope: ignore[BS101]\n"""\nx = "# breakscope: ignore[BS1]"\n'
    ).entries


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("# breakscope: ignore", "it names no code; write ignore[BS101]"),
        ("# breakscope: ignore[]", "it names no code; write ignore[BS101]"),
        ("# breakscope: ignore -- why", "it names no code; write ignore[BS101]"),
        ("# breakscope: ignore[E501]", "'E501' is no code; write ignore[BS101]"),
        ("# breakscope: ingore[BS101]", "only `ignore[CODE, …] -- reason` is understood"),
        ("# breakscope: ignore[BS101] because", "only `ignore[CODE, …] -- reason` is understood"),
    ],
)
def test_a_comment_that_suppresses_nothing_says_why(comment: str, why: str) -> None:
    found = parse(f"x = 1  {comment}\n")
    assert not found.entries
    assert [(one.line, one.text, one.why) for one in found.malformed] == [(1, comment, why)]


@pytest.mark.parametrize("rest", ["def broken(:\n", "  x = 1\n", "(\n", "'''\n", "\0\n"])
def test_what_stands_before_a_syntax_error_holds(rest: str) -> None:
    found = parse(f"x = 1  # breakscope: ignore[BS101]\ny = 2\n{rest}")
    assert found.find("BS101", 1)


def test_at_the_end_of_a_file_it_holds_for_nothing() -> None:
    found = parse("x = 1\n# breakscope: ignore[BS101]\n")
    assert len(found.entries) == 1
    assert not any(found.find("BS101", number) for number in range(1, 5))


def test_files_are_read_in_their_own_encoding(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_bytes("# coding: latin-1\nx = 'é'  # breakscope: ignore[BS101] -- déjà vu\n".encode("latin-1"))
    assert read(str(file)).entries[0].reason == "déjà vu"
    file.write_bytes(b"x = '\xff'\n")
    with pytest.raises((SyntaxError, ValueError)):
        read(str(file))


def test_a_long_file_without_comments_is_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise AssertionError("tokenized")

    monkeypatch.setattr("tokenize.generate_tokens", fail)
    assert parse("x = 1\n" * 200_000) == Suppressions()
