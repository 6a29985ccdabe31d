"""On a terminal: a live line while the script is silent, and the script's output whole."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pexpect
import pytest
from scanning import clean_environment, command

pytestmark = pytest.mark.torch

SOURCE = """
    import os, sys, time
    print("isatty", sys.stdout.isatty(), sys.stderr.isatty(), sys.stdin.isatty())
    print("columns", os.get_terminal_size().columns)
    print("half a line, ", end="", flush=True)
    time.sleep(3)
    print("and its end")
    name = input("your name: ")
    time.sleep(3)  # the cursor may stand anywhere: nothing is drawn
    print("thanks")
    time.sleep(3)
    print("hello", name, file=sys.stderr)
    sys.exit(5)
"""


def spawn(tmp_path: Path, *options: str, **environment: str) -> pexpect.spawn:
    (tmp_path / "script.py").write_text(textwrap.dedent(SOURCE))
    program, *words = command("scan", *options, "script.py")
    return pexpect.spawn(
        program,
        words,
        cwd=str(tmp_path),
        env=clean_environment(TERM="xterm", **environment),  # type: ignore[arg-type]
        dimensions=(24, 100),
        timeout=60,
        encoding="utf-8",
    )


def test_the_live_line_never_mixes_with_the_scripts_output(tmp_path: Path) -> None:
    child = spawn(tmp_path)
    child.expect("your name: ")
    before = child.before or ""
    # It is a terminal to the script as it is without us, and a line of the script's is never broken.
    assert "isatty True True True" in before
    assert "columns 100" in before
    assert "half a line, and its end" in before
    child.sendline("Ada")
    child.expect("thanks")
    assert "breakscope" not in (child.before or "")
    child.expect(r"breakscope: \d+ s, 0 frames compiled, 0 breaks reported, 0 steps")
    child.expect("hello Ada")
    drawn = (child.before or "") + "hello Ada"
    # The line was wiped before the script's next byte.
    assert re.search(r"\r\x1b\[2Khello Ada$", drawn)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 5


@pytest.mark.parametrize(("options", "environment"), [(("-q",), {}), ((), {"TERM": "dumb"})])
def test_no_live_line_when_it_is_not_wanted(
    tmp_path: Path, options: tuple[str, ...], environment: dict[str, str]
) -> None:
    (tmp_path / "script.py").write_text("")
    program, *words = command("scan", *options, "script.py")
    (tmp_path / "script.py").write_text("import time; time.sleep(3); print('done')")
    child = pexpect.spawn(
        program,
        words,
        cwd=str(tmp_path),
        env={**clean_environment(TERM="xterm"), **environment},  # type: ignore[arg-type]
        timeout=60,
        encoding="utf-8",
    )
    child.expect("done")
    assert "breakscope" not in (child.before or "")
    child.expect(pexpect.EOF)


def test_ctrl_c_interrupts_the_script_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    time.sleep(1)\n    print('cleaned up')\n    raise\n"
    )
    program, *words = command("scan", "script.py")
    child = pexpect.spawn(
        program,
        words,
        cwd=str(tmp_path),
        env=clean_environment(TERM="xterm"),
        timeout=60,
        encoding="utf-8",  # type: ignore[arg-type]
    )
    child.expect("ready")
    child.sendintr()
    child.expect("cleaned up")
    child.expect("INTERRUPTED")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_output_in_pieces_and_in_bulk_arrives_whole(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import sys\nfor i in range(20000):\n    print(i, 'x' * 50)\nprint('end of output')\n"
    )
    program, *words = command("scan", "script.py")
    child = pexpect.spawn(
        program,
        words,
        cwd=str(tmp_path),
        env=clean_environment(TERM="xterm"),
        timeout=60,
        encoding="utf-8",  # type: ignore[arg-type]
    )
    child.expect("end of output")
    numbers = re.findall(r"^(\d+) x{50}\r?$", child.before or "", re.MULTILINE)
    assert numbers == [str(i) for i in range(20000)]
    child.expect(pexpect.EOF)
