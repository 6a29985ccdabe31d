"""A script sees the same world under a scan as under Python: a table of circumstances, each with some 90 probes.

The one line that differs is documented (docs/faithful.md): until torch is imported, ``sys.meta_path`` holds the
finder that waits for it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

import pytest
from faithful.twice import HERE, Ran, World, twice
from scanning import rows

PORTRAIT = (HERE / "portrait.py").read_text()
# Probe -> how a scan's answer becomes Python's.
DOCUMENTED = {"meta_path": lambda finders: [one for one in finders if one != "_Watcher"]}


def _ignore(*numbers: signal.Signals):
    def before() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    return before


def _block() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})


def _limit(what: int, soft: int):
    def before() -> None:
        resource.setrlimit(what, (soft, resource.getrlimit(what)[1]))

    return before


def _hand_on() -> None:
    for number, text in ((7, b"seven"), (9, b"nine!")):
        read, write = os.pipe()
        os.write(write, text)
        os.close(write)
        os.dup2(read, number)


SITE = {"site/sitecustomize.py": "import os\nos.environ['SEEN'] = os.environ.get('SEEN', '') + 'x'\n"}
BROKEN = {"site/sitecustomize.py": "import os\nos.environ['SEEN'] = 'half'\nraise RuntimeError('broken')\n"}
USER = {"site/usercustomize.py": "import sys\nsys.setrecursionlimit(1234)\n"}

WORLDS = {
    "plain": World(stdin=b"typed"),
    "no environment": World(alone=True),
    "locale C": World(alone=True, environment={"LC_ALL": "C"}),
    "locale POSIX without coercion": World(
        alone=True, environment={"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"}
    ),
    "locale C.UTF-8": World(environment={"LC_ALL": "C.UTF-8"}),
    "a locale that is not there": World(environment={"LC_ALL": "xx_XX.ISO-8859-1"}),
    "PYTHONUTF8": World(environment={"PYTHONUTF8": "1"}),
    "PYTHONIOENCODING": World(environment={"PYTHONIOENCODING": "latin-1:replace"}),
    "PYTHONPATH": World(environment={"PYTHONPATH": "/nowhere:relative::/elsewhere"}),
    "an empty PYTHONPATH": World(environment={"PYTHONPATH": ""}),
    "PYTHONHASHSEED": World(environment={"PYTHONHASHSEED": "3"}),
    "PYTHONOPTIMIZE": World(environment={"PYTHONOPTIMIZE": "2"}),
    "PYTHONWARNINGS": World(environment={"PYTHONWARNINGS": "error::UserWarning,ignore::FutureWarning"}),
    "PYTHONDEVMODE": World(environment={"PYTHONDEVMODE": "1"}),
    "PYTHONFAULTHANDLER": World(environment={"PYTHONFAULTHANDLER": "1"}),
    "PYTHONNOUSERSITE": World(environment={"PYTHONNOUSERSITE": "1"}),
    "PYTHONSAFEPATH": World(environment={"PYTHONSAFEPATH": "1"}),
    "PYTHONPYCACHEPREFIX": World(environment={"PYTHONPYCACHEPREFIX": "/tmp/nowhere"}),
    "PYTHONINTMAXSTRDIGITS": World(environment={"PYTHONINTMAXSTRDIGITS": "5000"}),
    "PYTHONUNBUFFERED": World(environment={"PYTHONUNBUFFERED": "1"}),
    "a variable that is not UTF-8": World(environment={"ODD": os.fsdecode(b"\xff\xfe")}),
    "a variable with an equals sign": World(environment={"ODD": "a=b=c\nd"}),
    "TZ and TMPDIR": World(environment={"TZ": "Asia/Kathmandu", "TMPDIR": "/var/tmp"}),
    "no HOME": World(environment={"HOME": None}),
    "no PATH": World(environment={"PATH": None}),
    "-O": World(options=("-O",)),
    "-X dev -W error": World(options=("-X", "dev", "-W", "error::ResourceWarning")),
    "-X utf8 -B": World(options=("-X", "utf8", "-B")),
    "-P": World(options=("-P",), environment={"PYTHONPATH": str(HERE.parent.parent)}),
    "-s -b": World(options=("-s", "-b")),
    "SIGINT and SIGHUP ignored": World(before=_ignore(signal.SIGINT, signal.SIGHUP)),
    "SIGTERM, SIGQUIT and SIGUSR1 ignored": World(
        before=_ignore(signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1)
    ),
    "SIGCHLD ignored": World(before=_ignore(signal.SIGPIPE, signal.SIGALRM, signal.SIGWINCH)),
    "signals blocked": World(before=_block),
    "nohup": World(shell='nohup "$@"'),
    "in the background of a shell": World(shell='"$@" & wait $!'),
    "descriptors handed on": World(before=_hand_on),
    "a process substitution": World(shell='exec 7< <(echo seven) 9< <(echo nine); "$@"; exit $?'),
    "standard input closed": World(shell='"$@" <&-'),
    "standard error closed": World(shell='"$@" 2>&-'),
    "standard input a file": World(shell='"$@" < portrait.py'),
    "few descriptors": World(before=_limit(resource.RLIMIT_NOFILE, 40)),
    "small files": World(before=_limit(resource.RLIMIT_FSIZE, 100_000)),
    "a small stack": World(before=_limit(resource.RLIMIT_STACK, 4 * 1024 * 1024)),
    "no core": World(before=_limit(resource.RLIMIT_CORE, 0)),
    "umask and nice": World(before=lambda: (os.umask(0o077), os.nice(3))),
    "one processor": World(before=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})),
    "a sitecustomize": World(environment={"PYTHONPATH": "site"}, files=SITE),
    "a usercustomize": World(environment={"PYTHONPATH": "site"}, files=USER),
}


QUICK = ("plain", "no environment", "nohup", "descriptors handed on", "a sitecustomize")
# Variations of a world that every run looks at; these at night.
NIGHTLY = (
    *("PYTHONHASHSEED", "PYTHONFAULTHANDLER", "PYTHONNOUSERSITE", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED"),
    *("PYTHONINTMAXSTRDIGITS", "PYTHONWARNINGS", "PYTHONOPTIMIZE", "PYTHONDEVMODE", "-s -b", "-X utf8 -B"),
    *("locale C.UTF-8", "a locale that is not there", "a variable with an equals sign", "TZ and TMPDIR"),
    *("SIGCHLD ignored", "a small stack", "no core", "one processor", "no PATH", "standard input a file"),
)


def answers(ran: Ran) -> dict[str, object]:
    found: dict[str, object] = {}
    for line in ran.stdout.splitlines():
        found |= json.loads(line)
    return found


@pytest.mark.parametrize("name", rows(WORLDS, WORLDS.keys() - NIGHTLY, QUICK))
def test_a_script_sees_the_same_world(tmp_path: Path, name: str) -> None:
    given = WORLDS[name]
    files = {"portrait.py": PORTRAIT, **given.files}
    world = World(**{**{key: getattr(given, key) for key in World.__dataclass_fields__}, "files": files})
    plain, scanned = twice(tmp_path, ["portrait.py", "--epochs", "--", "x y", ""], world)
    seen, expected = answers(scanned), answers(plain)
    assert len(expected) > 85, plain.stderr.decode()
    for probe, change in DOCUMENTED.items():
        seen[probe] = change(seen[probe])
    assert {key: value for key, value in seen.items() if value != expected[key]} == {}
    assert seen.keys() == expected.keys()
    assert (scanned.code, scanned.stderr, scanned.files) == (plain.code, plain.stderr, plain.files)


def test_a_sitecustomize_that_fails_fails_as_without_us_and_says_so_once(tmp_path: Path) -> None:
    world = World(environment={"PYTHONPATH": "site"}, files={"portrait.py": PORTRAIT, **BROKEN})
    plain, scanned = twice(tmp_path, ["portrait.py"], world)
    seen, expected = answers(scanned), answers(plain)
    seen["meta_path"] = DOCUMENTED["meta_path"](seen["meta_path"])
    assert seen == expected
    assert plain.stderr
    assert scanned.stderr == plain.stderr
