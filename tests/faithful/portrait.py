"""What a script can see of the world that it runs in: one line for each probe, as JSON.

Run as a script by the tests of this folder, once by Python and once by a scan, under many circumstances. It imports
nothing before it has looked at what is there.
"""

import sys

MODULES = sorted(sys.modules)
META_PATH = [getattr(one, "__name__", type(one).__name__) for one in sys.meta_path]
PATH = list(sys.path)
CACHE = sorted(sys.path_importer_cache)

import os  # noqa: E402


def descriptors():
    """The open ones, without that of the listing itself."""
    found = []
    for number in range(64):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append([number, os.get_inheritable(number)])
    return found


OPEN = descriptors()
OWN = os.open(os.devnull, os.O_RDONLY)
os.close(OWN)

import builtins  # noqa: E402
import codecs  # noqa: E402
import decimal  # noqa: E402
import gc  # noqa: E402
import importlib  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import locale  # noqa: E402
import logging  # noqa: E402
import mimetypes  # noqa: E402
import pickle  # noqa: E402
import platform  # noqa: E402
import random  # noqa: E402
import resource  # noqa: E402
import signal  # noqa: E402
import site  # noqa: E402
import socket  # noqa: E402
import subprocess  # noqa: E402
import sysconfig  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
import warnings  # noqa: E402

PROBES = {}


def probe(function):
    PROBES[function.__name__] = function
    return function


def probes(**simple):
    PROBES.update(simple)


class Point:
    x = 1


def stream(one):
    return [one.name, one.encoding, one.errors, one.isatty(), one.line_buffering, one.write_through, one.mode]


def caught():
    try:
        raise KeyError("here")
    except KeyError:
        return traceback.format_exc()


def child(*words, **options):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **options)
    return [done.returncode, done.stdout, done.stderr]


# What a Python that the script starts sees: asked in one, for each costs a start.
CHILD = """
import sys
print(sys.path, sorted(sys.modules), sys.flags, sys.argv)
import os, signal
print(sorted(name for name in os.environ if "SCOPE" in name or "PYTHON" in name))
print([number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN])
"""


def raised(function):
    try:
        return repr(function())
    except Exception as error:
        return [type(error).__name__, str(error)]


def seeded():
    random.seed(7)
    return [random.random() for _ in range(3)]


def forked():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        names = [name for name in sys.modules if name.startswith("breakscope")]
        os.write(
            write, json.dumps([names, sorted(threading.enumerate(), key=str) == [], os.getcwd()]).encode()
        )
        os._exit(3)
    os.close(write)
    data = os.read(read, 65536).decode()
    os.close(read)
    return [data, os.waitpid(pid, 0)[1]]


def on_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(threading.current_thread().name))
    thread.start()
    thread.join()
    return found


def traced():
    """Calls that a tracer sees around an import."""
    seen = []

    def trace(frame, event, _argument):
        seen.append([event, os.path.basename(frame.f_code.co_filename), frame.f_code.co_name])

    sys.settrace(trace)
    try:
        len("nothing")
    finally:
        sys.settrace(None)
    return seen


def lost_traceback():
    text = io.StringIO()
    try:
        importlib.import_module("no_such_module_here")
    except ImportError:
        traceback.print_exc(file=text)
    return text.getvalue()


def opened():
    with open(__file__) as file:
        return file.encoding


def shell():
    with os.popen("echo $0 $#; ulimit -n; umask") as answer:
        return answer.read()


SIGNALS = sorted(signal.valid_signals())
LIMITS = sorted(name for name in vars(resource) if name.startswith("RLIMIT_"))

probes(
    # the interpreter
    argv=lambda: sys.argv,
    orig_argv=lambda: sys.orig_argv[1:],
    flags=lambda: repr(sys.flags),
    xoptions=lambda: sys._xoptions,
    warnoptions=lambda: sys.warnoptions,
    executable=lambda: sys.executable,
    prefix=lambda: [sys.prefix, sys.base_prefix, sys.exec_prefix],
    version=lambda: sys.version,
    path=lambda: PATH,
    modules=lambda: MODULES,
    meta_path=lambda: META_PATH,
    path_hooks=lambda: [repr(one)[:40] for one in sys.path_hooks],
    path_importer_cache=lambda: CACHE,
    recursion_limit=sys.getrecursionlimit,
    switch_interval=sys.getswitchinterval,
    dont_write_bytecode=lambda: sys.dont_write_bytecode,
    pycache_prefix=lambda: sys.pycache_prefix,
    hash_of_text=lambda: hash("text") if os.environ.get("PYTHONHASHSEED") else None,
    int_digits=sys.get_int_max_str_digits,
    trace=lambda: [sys.gettrace(), sys.getprofile(), threading._trace_hook, threading._profile_hook],
    hooks=lambda: [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__],
    unraisable=lambda: [
        sys.unraisablehook is sys.__unraisablehook__,
        sys.breakpointhook is sys.__breakpointhook__,
    ],
    thread_hook=lambda: threading.excepthook is threading.__excepthook__,
    asyncgen_hooks=lambda: list(sys.get_asyncgen_hooks()),
    audit=lambda: raised(lambda: sys.audit("a.probe", 1)),
    builtins=lambda: sorted(vars(builtins)),
    importer=lambda: builtins.__import__.__class__.__name__,
    garbage=lambda: [gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.callbacks],
    site=lambda: [site.ENABLE_USER_SITE, site.PREFIXES, site.getsitepackages()],
    sysconfig=lambda: sysconfig.get_paths()["stdlib"],
    tracemalloc=lambda: [sys.flags.dev_mode, sys.flags.optimize, __debug__],
    faulthandler=lambda: __import__("faulthandler").is_enabled(),
    # __main__
    main_names=lambda: [__name__, __file__, repr(__spec__), __package__, __doc__, type(__loader__).__name__],
    main_module=lambda: sys.modules["__main__"].__dict__ is globals(),
    main_annotations=lambda: "__annotations__" in globals(),
    main_cached=lambda: repr(globals().get("__cached__")),
    main_builtins=lambda: type(globals()["__builtins__"]).__name__,
    pickled=lambda: [pickle.loads(pickle.dumps(Point)).x, Point.__module__, Point.__qualname__],
    code=lambda: [sys._getframe().f_code.co_filename, sys._getframe().f_lineno],
    depth=lambda: len(traceback.extract_stack()),
    traceback=caught,
    lost_traceback=lost_traceback,
    # the process
    environ=lambda: sorted(
        f"{name}={value}" for name, value in os.environ.items() if name not in ("_", "SHLVL", "OLDPWD")
    ),
    environ_bytes=lambda: len(os.environb) == len(os.environ),
    environ_order=lambda: [name for name in os.environ if name not in ("_", "SHLVL", "OLDPWD")],
    cwd=os.getcwd,
    umask=lambda: [os.umask(0o22), os.umask(0o22)][0],
    nice=lambda: os.nice(0),
    affinity=lambda: sorted(os.sched_getaffinity(0)),
    scheduler=lambda: [os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)],
    ids=lambda: [os.getuid(), os.geteuid(), os.getgid(), os.getgroups()],
    group=lambda: [os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid()],
    login=lambda: raised(os.getlogin),
    controlling_terminal=lambda: raised(os.ctermid),
    limits=lambda: {name: resource.getrlimit(getattr(resource, name)) for name in LIMITS},
    descriptors=lambda: OPEN,
    next_descriptor=lambda: OWN,
    inherited=lambda: [raised(lambda number=number: os.read(number, 5)) for number in (7, 9)],
    standard_streams=lambda: [stream(sys.stdin), stream(sys.stdout), stream(sys.stderr)],
    terminals=lambda: [os.isatty(number) for number in (0, 1, 2)],
    terminal_size=lambda: raised(lambda: os.get_terminal_size(0)),
    typed=lambda: sys.stdin.read(),
    processes=lambda: raised(lambda: os.waitpid(-1, os.WNOHANG)),
    timers=lambda: [signal.getitimer(signal.ITIMER_REAL), signal.alarm(0)],
    # signals
    handlers=lambda: [f"{int(one)} {signal.getsignal(one)!r}"[:60] for one in SIGNALS],
    blocked=lambda: sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
    pending=lambda: sorted(signal.sigpending()),
    wakeup=lambda: signal.set_wakeup_fd(-1),
    own_handler=lambda: [signal.signal(signal.SIGUSR1, signal.SIG_IGN) == signal.SIG_DFL],
    # encodings, locale
    encodings=lambda: [
        sys.getdefaultencoding(),
        sys.getfilesystemencoding(),
        sys.getfilesystemencodeerrors(),
    ],
    preferred=lambda: [
        locale.getpreferredencoding(False),
        locale.getlocale(),
        locale.setlocale(locale.LC_ALL),
    ],
    coerced=lambda: [os.environ.get("LC_CTYPE"), sys.flags.utf8_mode],
    opened=opened,
    codec=lambda: codecs.lookup("utf-8").name,
    decimal=lambda: repr(decimal.getcontext()),
    time_zone=lambda: [time.tzname, time.timezone],
    # the standard library's state
    warning_filters=lambda: [repr(one) for one in warnings.filters],
    logging=lambda: [logging.root.level, logging.root.handlers, sorted(logging.Logger.manager.loggerDict)],
    temporary=tempfile.gettempdir,
    threads=lambda: [one.name for one in threading.enumerate()],
    on_thread=on_thread,
    random=seeded,
    socket_timeout=socket.getdefaulttimeout,
    mimetypes=lambda: mimetypes.guess_type("a.json"),
    platform=lambda: platform.python_implementation(),
    random_is_pythons=lambda: random.__file__,
    traced=traced,
    # what the script starts
    child=lambda: child("-c", CHILD),
    child_isolated=lambda: child("-I", "-c", "import sys; print(sys.path[:1], sys.flags.isolated)"),
    shell=shell,
    forked=forked,
)


def main():
    for name, function in PROBES.items():
        try:
            found = function()
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        print(json.dumps({name: found}, default=repr), flush=True)


if __name__ == "__main__":
    main()
