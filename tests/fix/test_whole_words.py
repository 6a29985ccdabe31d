"""What the script itself says, in two runs of it: what is compared, what is left out, and how a difference reads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import Scanned

from breakscope.fix.silenced import message, messages
from breakscope.run.words import Said, Silenced, Words, compare_words
from breakscope.run.written import look, written

Scan = Callable[..., Scanned]


def never() -> Said:
    raise AssertionError("nothing differs: the script need not run once more")


def printed(before: str, again: str, after: str) -> Words:
    one, two, three = (Said(text.encode(), b"") for text in (before, again, after))
    return compare_words(one, lambda: two, three)


def complained(before: str, again: str, after: str, *silenced: Silenced | None) -> Words:
    one, two, three = (Said(b"", text.encode()) for text in (before, again, after))
    return compare_words(one, lambda: two, three, [found for found in silenced if found is not None])


def test_equal_words_need_no_second_run() -> None:
    said = Said(b"clipped 2\nloss 0.5\n", b"done\n")
    assert compare_words(said, never, said) == Words(2, 1, 0)


def test_a_difference_shows_the_first_line_that_differs() -> None:
    text = "start\nloss 0.5\nclipped 2\n"
    found = printed(text, text, text.replace("clipped 2", "clipped 6"))
    assert (
        found.difference
        == 'with it the script prints "clipped 6" where it printed "clipped 2" (stdout, line 3)'
    )
    found = complained(text, text, "start\nclipped 2\n")
    assert found.difference == 'with it the script does not write "loss 0.5" any more (stderr, line 2)'
    found = printed(text, text, text + "nan\n")
    assert found.difference == 'with it the script also prints "nan" (stdout, line 4)'


STEPS = "".join(f"step {i} loss {i}.25 time {{}}.{i}5s\n" for i in range(4))
# What two runs of a script print, what a third with a patch prints, and what is left out of a comparison of them.
THE_SAME = {
    "a time behind a loss": (STEPS.format(*"1234"), STEPS.format(*"1243"), STEPS.format(*"9876"), "parts of 4 lines"),
    "a time that was equal twice": ("took 3 s\nx\n", "took 3 s\nx\n", "took 2 s\nx\n", "times"),
    "a rate": ("9.5 tokens/s\n", "9.5 tokens/s\n", "10.5 tokens/s\n", "times"),
    "a rate below one": ("9 it [00:01, 9.5it/s]\n", "9 it [00:01, 9.5it/s]\n", "9 it [00:09,  1.50s/it]\n", "times"),
    "an amount of memory": ("peak 12.5 MiB\n", "peak 12.5 MiB\n", "peak 7.0 MiB\n", "amounts of memory"),
    "an address": ("<Net at 0x7f00aa11bb22>\n", "<Net at 0x7f00aa11bb22>\n", "<Net at 0x7faabbccdd22>\n", "addresses"),
    "the line of a warning": ("net.py:304: UserWarning: slow\n", "net.py:304: UserWarning: slow\n", "net.py:299: UserWarning: slow\n", "lines of warnings"),
    "a date": ("2026-11-22 13:59\n", "2026-11-22 13:59\n", "2026-11-22 14:00\n", "times"),
    "a process id": ("pid 4711 ready\n", "pid 4712 ready\n", "pid 99 ready\n", "a part of 1 line"),
    "a temporary path": (
        "a\nsaved to /tmp/tmpab_cd/x\nb\n",
        "a\nsaved to /tmp/tmpqrst1/x\nb\n",
        "a\nsaved to /tmp/tmpz_zz9/x\nb\n",
        "a part of 1 line",
    ),
    "a width that comes of a time": ("took  9.5 | ok\n", "took  8.5 | ok\n", "took 10.5 | ok\n", "a part of 1 line"),
    "workers in any order": ("a 1\nworker 1\nworker 2\nb 2\n", "worker 2\na 1\nworker 1\nb 2\n", "a 1\nb 2\nworker 2\nworker 1\n", ""),
    "more lines than before": ("wait 1\nwait 2\nok\n", "wait 1\nok\n", "wait 1\nwait 2\nwait 3\nok\n", "2 lines that differ"),
    "a progress bar": ("\r 10%|#  |\r100%|###| 4/4\nok\n", "\r100%|###| 4/4\nok\n", "\r 50%|## |\r 70%|## |\r100%|###| 4/4\nok\n", "overwritten"),
}  # fmt: skip


@pytest.mark.parametrize("case", THE_SAME)
def test_what_the_script_does_not_repeat_is_left_out_and_that_is_said(case: str) -> None:
    before, again, after, said = THE_SAME[case]
    found = printed(before, again, after)
    assert found.difference is None
    assert said in "; ".join(found.left_out)
    assert bool(found.left_out) == bool(said)


# The same, with a difference in what the script does repeat.
DIFFERENT = {
    "a loss before a time": (STEPS.format(*"1234"), STEPS.format(*"1243"), STEPS.replace("2.25", "2.26").format(*"1234"), "loss 2.26"),
    "a number that once was equal": ("0.5\n0.25\n7\n", "0.5\n0.25\n8\n", "0.5\n0.26\n9\n", "0.26"),
    "a line of a worker": ("a 1\nworker 1\nworker 2\n", "worker 2\na 1\nworker 1\n", "a 1\nworker 2\nworker 3\n", "worker 1"),
    "what stays of a progress bar": ("\r 10%\r100% loss 1\n", "\r100% loss 1\n", "\r 5%\r100% loss 2\n", "loss 2"),
    "what a line overwrites each time": ("\rclipped 1\rok\n", "\rclipped 1\rok\n", "\rclipped 2\rok\n", "clipped 2"),
    "the order of what is printed": ("a b\nc d\n", "a b\nc d\n", "c d\na b\n", "c d"),
    "nan": ("loss 0.5\n", "loss 0.5\n", "loss nan\n", "nan"),
    "a sign": ("x 1\n", "x 1\n", "x -1\n", "x -1"),
    "spaces": ("a  b\n", "a  b\n", "a b\n", "a b"),
    "nothing any more": ("a\n", "a\n", "", "does not print"),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_the_script_repeats_is_compared_beside_what_it_does_not(case: str) -> None:
    before, again, after, said = DIFFERENT[case]
    found = printed(before, again, after)
    assert found.difference is not None
    assert said in found.difference


ROUNDED = {
    ("loss 0.123456", "loss 0.123457"): True,
    ("loss 0.1234", "loss 0.1235"): True,
    ("loss 1e-05", "loss 1.00001e-05"): True,
    ("loss 0.1234", "loss 0.1237"): False,
    ("loss 0.1", "loss 0.2"): False,
    ("clipped 10000", "clipped 10001"): False,
    ("loss 0.5", "loss nan"): False,
    ("loss 0.5", "loss -0.5"): False,
}


@pytest.mark.parametrize("lines", ROUNDED)
def test_numbers_may_be_rounded_otherwise_where_a_patch_is_known_to_do_so(lines: tuple[str, str]) -> None:
    old, new = (Said(f"{line}\n".encode(), b"") for line in lines)
    assert (compare_words(old, lambda: old, new, tolerance=1e-4).difference is None) == ROUNDED[lines]
    assert compare_words(old, lambda: old, new).difference is not None


NOTICES = (
    "W1122 13:00:00.000000 1 torch/_dynamo/convert_frame.py:1 [0/8] hit config.recompile_limit (8)\n",
    "/x/torch/_dynamo/variables/functions.py:12: UserWarning: no trace\nMore about it.\n  torch._dynamo.warn_once(text)\n",
    "<eval_with_key>.8:18: UserWarning: To copy construct from a tensor\n  m = torch.tensor(m)\n",
    "breakscope: the capture stopped\n",
    # Its text quotes a line of the script.
    (
        "/x/torch/_dynamo/variables/functions.py:9: UserWarning: Dynamo detected a call to a function\n\n"
        'This call originates from:\n  File "/x/fsdp.py", line 56, in is_managed\n    if not is_available():\n'
        "           ^^^^^^^^^^^^^^\n\n  torch._dynamo.utils.warn_once(msg)\n"
    ),
)


@pytest.mark.parametrize("notice", NOTICES)
def test_notices_of_the_compiler_are_not_the_scripts_words(notice: str) -> None:
    found = complained(f"a\n{notice}b\n", "", "a\nb\n")
    assert (found.difference, found.stderr_lines) == (None, 2)


def test_another_warning_of_torch_is() -> None:
    warning = "/x/torch/optim/lr_scheduler.py:9: UserWarning: step() before step()\n  warnings.warn(\n"
    found = complained("a\n", "a\n", "a\n" + warning)
    assert found.difference is not None
    assert found.difference.startswith("with it the script also writes")


def test_frames_of_a_traceback_are_not_compared_and_the_exception_is() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line {}, in {}\n    f(x)\nValueError: {}\n'
    before = text.format(3, "torch_dynamo_resume_in_forward_at_3", 7)
    assert complained(before, before, text.format(4, "forward", 7)).difference is None
    assert complained(before, before, text.format(4, "forward", 8)).difference is not None


# ---- messages that a patch leaves out ----

MESSAGES = {
    'warnings.warn("the input is too long")': "/a/b.py:7: UserWarning: the input is too long\n  warnings.warn(\n",
    'warnings.warn(\n    f"length {n} is over {limit}", RuntimeWarning\n)': "b.py:7: RuntimeWarning: length 9 is over 4\n  f(x)\n",
    'logger.warning_once("cut at %d of %s", n, total)': "WARNING:model:cut at 3 of 9\n",
    'LOG.info_once("use_cache=True " + "is incompatible")': "use_cache=True is incompatible\n",
    'print("clipped", n, "values")': "clipped 3 values\n",
    'logger.warning_once("two\\nlines here {}".format(n))': None,
    'logger.warning_once("first line\\nlines here {}".format(n))': "first line\nlines here 7\n",
    "logger.warning_once(text)": None,
    'print(n, end="")': None,
    'print(f"{a} {b}")': None,
}


@pytest.mark.parametrize("statement", MESSAGES)
def test_only_the_lines_of_a_message_that_is_left_out_are_expected_to_be_missing(statement: str) -> None:
    lines, found = MESSAGES[statement], message(statement)
    if lines is None:
        assert found is None, "it has no text to be recognised by, so its loss counts"
        return
    assert found is not None
    said = complained(f"a\n{lines}b\n", "", "a\nb\n", found)
    assert said.difference is None
    assert "of messages that a patch leaves out" in said.left_out[0]
    other = complained(f"a\n{lines}b\n", f"a\n{lines}b\n", "a\n", found)
    at = 2 + lines.count("\n")
    assert other.difference == f'with it the script does not write "b" any more (stderr, line {at})'


# ---- files ----


def wrote(folder: Path, write: Callable[[], object]) -> Said:
    before = look(folder, ())
    write()
    return Said(b"", b"", written(folder, before, ()))


def files(folder: Path, *contents: bytes, name: str = "log.txt", mode: str = "wb") -> Words:
    """Three runs that write a file, one after the other in one folder."""

    def write(data: bytes) -> None:
        with (folder / name).open(mode) as file:
            file.write(data)

    first, second, third = (wrote(folder, lambda data=data: write(data)) for data in contents)
    return compare_words(first, lambda: second, third)


def test_files_are_compared_by_content(tmp_path: Path) -> None:
    assert files(tmp_path, b"clipped 2\n", b"clipped 2\n", b"clipped 2\n") == Words(0, 0, 1)
    found = files(tmp_path, b"a\nclipped 2\n", b"a\nclipped 2\n", b"a\nclipped 6\n")
    assert (
        found.difference
        == 'with it the script writes "clipped 6" where it wrote "clipped 2" (log.txt, line 2)'
    )


def test_what_is_appended_is_compared_alone(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("of yesterday\n")
    assert files(tmp_path, b"loss 1\n", b"loss 1\n", b"loss 1\n", mode="ab") == Words(0, 0, 1)
    found = files(tmp_path, b"loss 1 took 3\n", b"loss 1 took 4\n", b"loss 1 took 5\n", mode="ab")
    assert found.difference is None
    assert "log.txt: a part of 1 line" in found.left_out[0]
    found = files(tmp_path, b"loss 1 pid 3\n", b"loss 1 pid 4\n", b"loss 2 pid 5\n", mode="ab")
    assert found.difference is not None
    assert found.difference.startswith(
        'with it the script writes "loss 2 pid 5" where it wrote "loss 1 pid 3"'
    )


def test_a_file_that_is_written_twice_is_not_one_that_grew(tmp_path: Path) -> None:
    found = files(tmp_path, b"loss 1\n", b"loss 1\n", b"loss 1\nloss 1\n")
    assert found.difference == 'with it the script also writes "loss 1" (log.txt, line 2)'


def test_a_checkpoint_is_compared_where_it_is_the_same_in_every_run(tmp_path: Path) -> None:
    found = files(tmp_path, b"\0one", b"\0one", b"\0two", name="net.pt")
    assert found.difference == "with it the script writes another net.pt (of the same size)"
    found = files(tmp_path, b"\0one", b"\0six", b"\0two", name="net.pt")
    assert (found.difference, found.left_out) == (None, ("files: net.pt, which differs from run to run",))


def test_a_file_that_is_not_written_any_more_is_a_difference(tmp_path: Path) -> None:
    def write(*names: str) -> Said:
        return wrote(tmp_path, lambda: [(tmp_path / name).write_text("x") for name in names])

    first, second = write("a.txt", "b.txt"), write("a.txt", "b.txt")
    assert compare_words(first, lambda: second, write("a.txt")).difference == (
        "with it the script does not write the file b.txt"
    )
    found = compare_words(first, lambda: second, write("a.txt", "b.txt", "c.txt"))
    assert found.difference == "with it the script also writes the file c.txt"


def test_files_whose_names_hold_the_time_are_left_out(tmp_path: Path) -> None:
    runs = [
        wrote(tmp_path, lambda stamp=stamp: (tmp_path / f"events.{stamp}.log").write_text("x"))
        for stamp in (1714567, 1714568, 1714999)
    ]
    found = compare_words(runs[0], lambda: runs[1], runs[2])
    assert found.difference is None
    assert "events.1714567.log" in found.left_out[0]


def test_folders_that_are_not_the_scripts_are_not_looked_at(tmp_path: Path) -> None:
    ours = tmp_path / ".run-1"
    for folder in (ours, tmp_path / ".git", tmp_path / "__pycache__", tmp_path / "results"):
        folder.mkdir()
    before = look(tmp_path, [ours])
    for folder in tmp_path.iterdir():
        (folder / "x").write_text("x")
    assert list(written(tmp_path, before, [ours]).written) == ["results/x"]


def test_where_our_own_output_goes_is_no_file_of_the_script(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from breakscope.run.written import look, written\n"
        "before = look(pathlib.Path(), [])\n"
        "print('proof 1 of 2', flush=True); print('about 3 s left', file=sys.stderr, flush=True)\n"
        "pathlib.Path('results.txt').write_text('x')\n"
        "assert list(written(pathlib.Path(), before, []).written) == ['results.txt']\n"
    )
    with (tmp_path / "fix.log").open("wb") as out, (tmp_path / "fix.err").open("wb") as err:
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, stdout=out, stderr=err, check=True)


def test_a_limit_that_is_reached_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("breakscope.run.written.MAX_FILES", 2)
    said = wrote(tmp_path, lambda: [(tmp_path / f"{i}.txt").write_text("x") for i in range(4)])
    found = compare_words(said, never, said)
    assert (found.files, found.left_out) == (2, ("files: only the first 2 were compared",))


@pytest.mark.parametrize("word", ["if", "elif"])
def test_messages_behind_a_condition_are_recognised_one_by_one(word: str) -> None:
    text = (
        f'    {word} bad(x):\n        print("first one")\n        if loud:\n            print("second one")\n'
    )
    assert messages(text) == messages('print("first one")') + messages('print("second one")')
    assert len(messages(text)) == 2
    assert messages(f"{text}    else:\n        pass\n") == messages(text)
