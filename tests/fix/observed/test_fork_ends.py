"""A fork of the warm process ends as `python SCRIPT` does: what is printed at the end, in which order, which status."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import warm_server
from scanning import run_python
from warm import Warm
from warm_scanning import warm_process

SAYS = """\
class Says:
    def __init__(self, word):
        self.word, self.me = word, None
    def __del__(self, print=print):
        print(self.word, flush=True)
"""
ENDS = {
    "nothing": "",
    "a word that is not flushed": "import sys\nprint('a')\nsys.stderr.write('b')",
    "objects of the module": SAYS + "one, other = Says('one'), Says('other')",
    "a cycle": SAYS + "one = Says('one')\none.me = one\ndel one",
    "an object that another module keeps": SAYS
    + "open('own.py', 'w').close()\nimport own\nown.kept = Says('kept')",
    "at exit": SAYS + "import atexit\none = Says('one')\natexit.register(print, 'at exit')",
    "a thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('later'))).start()\nprint('first')",
    "a folder of its own": "import tempfile\nfolder = tempfile.TemporaryDirectory(dir='.')",
    "a status": SAYS + "import sys\none = Says('one')\nsys.exit(3)",
    "a reason": "raise SystemExit('because')",
    "an error": SAYS + "one = Says('one')\nraise ValueError('wrong')",
    "an interruption": "raise KeyboardInterrupt",
    "an output that takes nothing": "import os\nprint('a')\nos.close(1)",
    "no output": "import sys\nsys.stdout.close()",
    "an error while objects go": "class Fails:\n    def __del__(self):\n        raise ValueError('late')\none = Fails()",
}


def ended(folder: Path) -> tuple[str, str, list[str]]:
    """What a script has left: its output, its errors, without addresses and the frames of the server, its files."""
    errors = (folder / "err").read_text().replace(str(folder), "")
    own = re.compile(rf'  File "{re.escape(warm_server.HERE)}".*\n    .*\n')
    return (
        (folder / "out").read_text(),
        re.sub(r"0x\w+", "0x", own.sub("", errors)),
        sorted(path.name for path in folder.iterdir()),
    )


@pytest.mark.torch
@pytest.mark.parametrize("source", ENDS.values(), ids=ENDS)
def test_a_fork_ends_as_python_ends(source: str, tmp_path: Path) -> None:
    warm: Warm = warm_process()
    seen = []
    for name in ("cold", "fork"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "script.py").write_text(source)
        if name == "fork":
            code = warm.python("script.py", folder, folder / "out", folder / "err")
        else:
            done = run_python("script.py", folder=folder)
            code = done.returncode
            (folder / "out").write_text(done.stdout)
            (folder / "err").write_text(done.stderr)
        seen.append((code, *ended(folder)))
    cold, fork = seen
    assert fork == cold
