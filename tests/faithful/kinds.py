"""Small programs of many kinds, each to be run by Python and by a scan: name -> source, or source and files beside it."""

from __future__ import annotations

import io
import marshal
import zipfile
from importlib.util import MAGIC_NUMBER


def _zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("inz.py", "x = 1")
    return data.getvalue()


_PYC = MAGIC_NUMBER + bytes(12) + marshal.dumps(compile("x = 1", "only.py", "exec"))

Source = str | bytes | tuple[str | bytes, dict[str, str | bytes]]

KINDS: dict[str, Source] = {
    "asyncio signals and subprocess": (
        "import asyncio, sys\n"
        "async def m():\n"
        "    p = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(5)', stdout=-1)\n"
        "    out = await p.communicate()\n"
        "    print(out, p.returncode)\n"
        "    p = await asyncio.create_subprocess_shell(f'{sys.executable} -c \"print(6)\"', stdout=-1)\n"
        "    print(await p.communicate())\n"
        "asyncio.run(m())"
    ),
    "asyncio unretrieved": (
        "import asyncio\n"
        "async def f():\n"
        "    1/0\n"
        "async def m():\n"
        "    t = asyncio.create_task(f())\n"
        "    await asyncio.sleep(0)\n"
        "asyncio.run(m())"
    ),
    "atexit with threads": (
        "import atexit, threading, time\n"
        "atexit.register(lambda: print('exit', [t.name for t in threading.enumerate()]))\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\n"
        "threading._register_atexit(lambda: print('threading'))"
    ),
    "faulthandler dump": ("import faulthandler, sys\nfaulthandler.dump_traceback(sys.stderr)"),
    "faulthandler segv": ("import faulthandler, ctypes\nfaulthandler.enable()\nctypes.string_at(0)"),
    "faulthandler later": (
        "import faulthandler, time\nfaulthandler.dump_traceback_later(0.1)\ntime.sleep(0.3)"
    ),
    "mp spawn queue": (
        "import multiprocessing as mp, sys\n"
        "def w(q): q.put([__name__, sys.argv, mp.current_process().name, sorted(sys.flags)[:3]])\n"
        "if __name__ == '__main__':\n"
        "    c = mp.get_context('spawn'); q = c.Queue(); p = c.Process(target=w, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)"
    ),
    "mp forkserver preload": (
        "import multiprocessing as mp, sys\n"
        "def w(q): q.put([__name__, 'json' in sys.modules])\n"
        "if __name__ == '__main__':\n"
        "    c = mp.get_context('forkserver'); c.set_forkserver_preload(['json']); q = c.Queue(); p = c.Process(target=w, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)"
    ),
    "mp fork queue exit code": (
        "import multiprocessing as mp, sys, os\n"
        "def w(q): q.put(1); q.close(); q.join_thread(); sys.exit(7)\n"
        "c = mp.get_context('fork'); q = c.Queue(); p = c.Process(target=w, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)"
    ),
    "mp spawn error": (
        "import multiprocessing as mp\n"
        "def w(): raise ValueError('in the worker')\n"
        "if __name__ == '__main__':\n"
        "    p = mp.get_context('spawn').Process(target=w, name='W'); p.start(); p.join(); print(p.exitcode)"
    ),
    "mp manager shared": (
        "import multiprocessing as mp\n"
        "from multiprocessing import shared_memory\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Manager() as m:\n"
        "        d = m.dict(); d['a'] = 1; print(d)\n"
        "    s = shared_memory.SharedMemory(create=True, size=10); s.buf[0] = 1; print(bytes(s.buf[:2])); s.close(); s.unlink()"
    ),
    "process pool executor": (
        "from concurrent.futures import ProcessPoolExecutor as E\n"
        "import multiprocessing as mp\n"
        "def f(x): return x * 2\n"
        "if __name__ == '__main__':\n"
        "    with E(2, mp_context=mp.get_context('spawn')) as e: print(list(e.map(f, range(4))))"
    ),
    "inspect main": (
        "import inspect, sys\n"
        "class A:\n"
        "    def f(self):\n"
        "        return 1  # here\n"
        "print(inspect.getsource(A), inspect.getsource(A.f), inspect.getfile(A), inspect.getmodule(A))\n"
        "print([f.filename for f in inspect.stack()])"
    ),
    "pickle main": (
        "import pickle, dataclasses\n"
        "@dataclasses.dataclass(frozen=True)\n"
        "class P:\n"
        "    x: int = 1\n"
        "d = pickle.dumps(P(3)); print(d, pickle.loads(d), P.__module__)"
    ),
    "dataclass slots typing": (
        "import dataclasses, typing\n"
        "@dataclasses.dataclass(slots=True, kw_only=True)\n"
        "class P:\n"
        "    x: 'int' = 1\n"
        "print(typing.get_type_hints(P), P(x=2))"
    ),
    "importlib resources": (
        (
            "import importlib.resources as r, pkg\n"
            "print(r.files('pkg').joinpath('data.txt').read_text(), pkg.__path__, pkg.__spec__)"
        ),
        {"pkg/__init__.py": "", "pkg/data.txt": "d"},
    ),
    "pkgutil": (
        (
            "import pkgutil, pkg\n"
            "print(pkgutil.get_data('pkg','data.txt'), [m.name for m in pkgutil.iter_modules(pkg.__path__)])"
        ),
        {"pkg/__init__.py": "", "pkg/data.txt": "d", "pkg/m.py": ""},
    ),
    "importlib machinery": (
        (
            "import importlib, importlib.util, sys\n"
            "s = importlib.util.find_spec('beside'); print(s)\n"
            "m = importlib.import_module('beside'); print(m.__file__, m.__cached__, m.__loader__.__class__); importlib.reload(m)\n"
            "importlib.invalidate_caches()\n"
            "print([type(h).__name__ for h in sys.path_hooks], [getattr(f,'__name__',f) for f in sys.meta_path if 'Watcher' not in str(f)])"
        ),
        {"beside.py": "print('loaded')"},
    ),
    "own finder": (
        "import sys\n"
        "class F:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        print('asked', name)\n"
        "sys.meta_path.insert(0, F)\n"
        "import subprocess, multiprocessing.util, json"
    ),
    "replaced meta_path": (
        "import sys\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if getattr(f, '__name__', '') in ('BuiltinImporter','FrozenImporter','PathFinder')]\n"
        "import subprocess\n"
        "print(subprocess.run(['echo','x'], capture_output=True).stdout, len(sys.meta_path))"
    ),
    "runpy module": (
        (
            "import runpy\n"
            "print(sorted(runpy.run_module('pkg', run_name='__main__'))[:5])\n"
            "print(runpy.run_path('other.py', run_name='__main__')['y'])"
        ),
        {"pkg/__init__.py": "", "pkg/__main__.py": "print(__name__, __spec__)", "other.py": "y=__name__\n"},
    ),
    "contextvars": (
        "import contextvars, threading\n"
        "v = contextvars.ContextVar('v', default=1)\n"
        "print(len(contextvars.copy_context())); v.set(2); print(list(contextvars.copy_context().items())[0][1])"
    ),
    "gc callbacks": (
        "import gc\n"
        "print(gc.callbacks, gc.get_count()[1:] is not None, gc.garbage, gc.isenabled(), gc.get_freeze_count())\n"
        "gc.collect(); n = len(gc.get_objects())\n"
        "for _ in range(100): [].append([])\n"
        "gc.collect(); print(len(gc.get_objects()) - n < 50)"
    ),
    "refcounts": (
        "import sys\n"
        "x = object(); print(sys.getrefcount(x)); print(sys.getsizeof({}), sys.getallocatedblocks() > 0)\n"
        "class A: pass\n"
        "print(len(A.__subclasses__()), [c.__name__ for c in Exception.__subclasses__() if 'scope' in c.__module__])"
    ),
    "weakref finalize order": (
        "import weakref\n"
        "class A: pass\n"
        "a = A(); weakref.finalize(a, print, 'final')\n"
        "import atexit; atexit.register(print, 'atexit')"
    ),
    "module teardown": (
        "class D:\n"
        "    def __del__(self): print('del', __name__)\n"
        "d = D()\n"
        "import sys\n"
        "sys.modules['keep'] = D()"
    ),
    "threading.excepthook": (
        "import threading\n"
        "threading.excepthook = lambda a: print('hook', a.exc_type.__name__, a.thread.name)\n"
        "t = threading.Thread(target=lambda: 1/0, name='T'); t.start(); t.join()"
    ),
    "sys.unraisablehook": (
        "import sys\n"
        "sys.unraisablehook = lambda a: print('unraisable', a.exc_type.__name__)\n"
        "class A:\n"
        "    def __del__(self): 1/0\n"
        "A()"
    ),
    "excepthook that fails": ("import sys\ndef h(*a): 1/0\nsys.excepthook = h\nraise KeyError(1)"),
    "KeyboardInterrupt in thread wait": (
        "import _thread, threading, time\n"
        "threading.Timer(0.1, _thread.interrupt_main).start()\n"
        "try: time.sleep(5)\n"
        "except KeyboardInterrupt: print('caught')\n"
    ),
    "SIGINT self": ("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT); time.sleep(1)"),
    "SIGINT handler": (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, lambda n, f: print('h', n, f.f_code.co_name)); os.kill(os.getpid(), signal.SIGINT); print(signal.default_int_handler is signal.getsignal(signal.SIGINT))"
    ),
    "SIGALRM": (
        "import signal, time\n"
        "signal.signal(signal.SIGALRM, lambda *a: print('alarm')); signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.2)"
    ),
    "sigwait": (
        "import signal, os\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]); os.kill(os.getpid(), signal.SIGUSR1); print(signal.sigwait([signal.SIGUSR1]))"
    ),
    "recursion depth": (
        "import sys\n"
        "def f(n):\n"
        "    try: return f(n + 1)\n"
        "    except RecursionError: return n\n"
        "print(f(0), sys.getrecursionlimit())"
    ),
    "recursion traceback": ("def f(): f()\nf()"),
    "breakpoint off": ("import os\nos.environ['PYTHONBREAKPOINT'] = '0'\nbreakpoint(); print('on')"),
    "logging basicConfig": (
        "import logging, sys\n"
        "logging.warning('w'); logging.basicConfig(level=10, force=True, format='%(name)s %(module)s %(funcName)s %(lineno)d %(message)s'); logging.debug('d'); logging.getLogger('a.b').info('i'); print(sorted(logging.root.manager.loggerDict))"
    ),
    "logging dictConfig": (
        "import logging.config\n"
        "logging.config.dictConfig({'version': 1, 'disable_existing_loggers': True, 'handlers': {'h': {'class': 'logging.FileHandler', 'filename': 'x.log'}}, 'root': {'handlers': ['h'], 'level': 'INFO'}})\n"
        "logging.info('to file')"
    ),
    "subprocess modes": (
        "import subprocess, sys\n"
        "for kw in ({}, {'close_fds': False}, {'shell': True}, {'env': {'A': '1'}}, {'start_new_session': True}, {'preexec_fn': lambda: None}):\n"
        "    cmd = [sys.executable, '-c', 'import os, sys; print(sorted(os.environ)[:3] == [], sys.argv, len(os.listdir(\"/proc/self/fd\")))']\n"
        "    r = subprocess.run('echo $A' if 'shell' in kw else cmd, capture_output=True, text=True, **kw); print(r.returncode, r.stdout, r.stderr)"
    ),
    "os.popen and system": (
        "import os, sys\n"
        "print(os.popen(f'{sys.executable} -c \"print(1)\"').read(), os.system('exit 3'), os.system('kill -9 $$'))"
    ),
    "os.posix_spawn": (
        "import os, sys\n"
        "p = os.posix_spawn(sys.executable, [sys.executable, '-c', 'import os; print(\"PYTHONPATH\" in os.environ)'], os.environ)\n"
        "print(os.waitpid(p, 0)[1])"
    ),
    "os.exec env": (
        "import os, sys\n"
        "sys.stdout.flush(); os.execve(sys.executable, [sys.executable, '-c', 'import os; print(sorted(os.environ))'], {'ONLY': '1'})"
    ),
    "os.execvp": ("import os\nos.execvp('echo', ['echo', 'hi'])"),
    "os.spawnv": (
        "import os, sys\n"
        "print(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, '-c', 'raise SystemExit(4)']))"
    ),
    "os.fork exec": (
        "import os, sys\n"
        "p = os.fork()\n"
        "if not p: os.execv(sys.executable, [sys.executable, '-c', 'print(\"c\")'])\n"
        "print(os.waitpid(p, 0)[1])"
    ),
    "pty.spawn": (
        "import pty, sys\nprint(pty.spawn([sys.executable, '-c', 'import os; print(os.isatty(1))']))"
    ),
    "double fork daemon": (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        open('daemon', 'w').write('x'); os._exit(0)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "while not os.path.exists('daemon'): time.sleep(0.01)\n"
        "time.sleep(0.05)"
    ),
    "daemon thread at exit": (
        "import threading, time\n"
        "def f():\n"
        "    while True: time.sleep(0.001)\n"
        "for _ in range(5): threading.Thread(target=f, daemon=True).start()\n"
        "print('end')"
    ),
    "tempfile": (
        "import tempfile, os\n"
        "with tempfile.TemporaryDirectory() as d: print(os.path.dirname(d), len(os.listdir(d)))\n"
        "with tempfile.NamedTemporaryFile() as f: print(os.path.dirname(f.name))"
    ),
    "rlimits set": (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)); fs = []\n"
        "try:\n"
        "    while True: fs.append(open('/dev/null'))\n"
        "except OSError as e: print(len(fs), e)"
    ),
    "rlimit as": (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))\n"
        "try: bytearray(1 << 30)\n"
        "except MemoryError: print('no memory')"
    ),
    "rlimit cpu": ("import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass"),
    "chdir relative import": (
        (
            "import os, sys\n"
            "os.mkdir('d'); os.chdir('d'); import beside; print(beside.__file__, __file__, sys.path[0])"
        ),
        {"beside.py": ""},
    ),
    "BOM CRLF": b"\xef\xbb\xbfprint('a')\r\nprint(__doc__)\r\n",
    "CR only": b"print('a')\rprint('b')\r",
    "cookie utf-16ish": b"# vim: set fileencoding=iso-8859-15 :\nprint(ascii('\xa4'))\n",
    "cookie unknown": b"# -*- coding: nothing -*-\nprint(1)\n",
    "form feed and tabs": b"\x0cif 1:\n\tprint('x')\n",
    "doc and annotations": (
        "'''doc'''\n"
        "from __future__ import annotations\n"
        "x: int = 3\n"
        "print(__doc__, __annotations__, sorted(n for n in globals() if n.startswith('__')))"
    ),
    "main reimport": (
        "import __main__, sys\n"
        "print(__main__.__name__, __main__ is sys.modules['__main__'], 'script' in sys.modules)\n"
        "if __name__ == '__main__':\n"
        "    import script\n"
        "print(__name__)"
    ),
    "warnings registry": (
        "import warnings\n"
        "warnings.simplefilter('default'); [warnings.warn('w') for _ in range(2)]\n"
        "with warnings.catch_warnings(record=True) as r: warnings.warn('r'); print(len(r), r[0].filename)\n"
        "print('__warningregistry__' in globals())"
    ),
    "showwarning": (
        "import warnings\n"
        "warnings.showwarning = lambda m, c, f, l, *a: print('shown', m, f, l)\n"
        "warnings.warn('x')"
    ),
    "readline": ("import readline\nprint(readline.get_current_history_length(), readline.get_completer())"),
    "code.interact": ("import code\ncode.interact(local={'x': 1}, banner='b', exitmsg='bye')"),
    "site enablement": (
        "import site, sys\n"
        "print(site.getusersitepackages() in sys.path, hasattr(__builtins__, 'exit'), type(exit).__name__, copyright.__class__)"
    ),
    "exit builtin": "exit(5)",
    "quit while finally": ("try:\n    raise SystemExit\nfinally:\n    print('f')"),
    "sys.exit tuple": "import sys; sys.exit((1, 'x'))",
    "sys.exit object": ("import sys\nclass E:\n    def __str__(self): return 'obj'\nsys.exit(E())"),
    "stdout replaced": ("import sys, io\nsys.stdout = io.StringIO(); print('lost')"),
    "stdout detach": ("import sys\nb = sys.stdout.detach(); b.write(b'raw\\n'); b.flush()"),
    "stdout broken at exit": ("import sys, os\nos.close(1)\nprint('x')"),
    "stderr none": ("import sys\nsys.stderr = None\n1/0"),
    "stdin pipe iter": (
        "import sys\nfor l in sys.stdin: print(repr(l))\nprint(sys.stdin.fileno(), sys.stdin.seekable())"
    ),
    "settrace lines": (
        "import sys\n"
        "seen = []\n"
        "def t(f, e, a):\n"
        "    seen.append((f.f_code.co_name, e, f.f_lineno)); return t\n"
        "sys.settrace(t)\n"
        "def g():\n"
        "    x = 1\n"
        "    return x\n"
        "g(); sys.settrace(None); print(seen)"
    ),
    "profile": (
        "import cProfile, pstats, io\n"
        "p = cProfile.Profile(); p.enable(); sorted([2, 1]); p.disable(); print(sorted(k[2] for k in pstats.Stats(p).stats))"
    ),
    "tracemalloc": (
        "import tracemalloc\n"
        "tracemalloc.start(); x = [0] * 1000; s = tracemalloc.take_snapshot(); print(any('breakscope' in str(t.traceback) for t in s.statistics('filename')))"
    ),
    "audit hook": (
        "import sys\n"
        "seen = []\n"
        "sys.addaudithook(lambda e, a: seen.append(e) if e.startswith(('os.', 'subprocess')) else None)\n"
        "import os, subprocess\n"
        "os.listdir('.'); subprocess.run(['true']); os.system('true'); print(seen)"
    ),
    "audit import": (
        "import sys\n"
        "seen = []\n"
        "sys.addaudithook(lambda e, a: seen.append((e, str(a[0]))) if e in ('import', 'exec', 'open', 'compile') else None)\n"
        "import colorsys\n"
        "print(seen)"
    ),
    "ast exec compile": ("exec(compile('print(__name__, __file__)', 'x', 'exec'))\nprint(eval('1+1'))"),
    "zipimport": (
        ("import sys\nsys.path.insert(0, 'z.zip')\nimport inz; print(inz.__file__, inz.__loader__)"),
        {"z.zip": _zip()},
    ),
    "sqlite curses etc": (
        "import sqlite3, ssl, hashlib\n"
        "print(sqlite3.connect(':memory:').execute('select 1').fetchone(), hashlib.md5(b'').hexdigest())"
    ),
    "socket server": (
        "import socket, threading\n"
        "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); c = socket.create_connection(s.getsockname()); a, _ = s.accept(); c.sendall(b'x'); print(a.recv(1), s.fileno(), c.fileno(), a.fileno())"
    ),
    "selectors epoll": (
        "import select, selectors, os\n"
        "e = select.epoll(); print(e.fileno()); r, w = os.pipe(); print(r, w); print(selectors.DefaultSelector().__class__.__name__)"
    ),
    "fcntl inherit": (
        "import os, subprocess, sys\n"
        "r, w = os.pipe(); os.set_inheritable(w, True)\n"
        "subprocess.run([sys.executable, '-c', f'import os; os.write({w}, b\"x\")'], close_fds=False); print(os.read(r, 1), r, w)"
    ),
    "memory map counts": (
        "import mmap\n"
        "m = mmap.mmap(-1, 10); m[:1] = b'x'; print(m[:2]); print(open('/proc/self/cmdline','rb').read().split(b'\\0')[1:])"
    ),
    "proc comm": "print(open('/proc/self/comm').read(), open('/proc/self/status').read().split('Threads:')[1].split()[0])",
    "sched nice": (
        "import os\nprint(os.nice(1), os.getpriority(os.PRIO_PROCESS, 0), os.times().children_user)"
    ),
    "wait any": (
        "import os\n"
        "if not os.fork(): os._exit(2)\n"
        "print(os.wait()[1])\n"
        "try: os.wait()\n"
        "except ChildProcessError as e: print(e)"
    ),
    "SIGCHLD handler": (
        "import os, signal, time\n"
        "signal.signal(signal.SIGCHLD, lambda *a: print('child'))\n"
        "if not os.fork(): os._exit(0)\n"
        "time.sleep(0.2); os.wait()"
    ),
    "unicode names": (
        "print(open('ü∑.txt').read()); import ünicode",
        {"ü∑.txt": "t", "ünicode.py": "print(__name__)"},
    ),
    "namespace package": ("import ns.a; print(ns.__path__, ns.__file__)", {"ns/a.py": ""}),
    "pyc only": ("import only; print(only.__file__)", {"only.pyc": _PYC}),
    "torch blocked": (
        "import sys\nsys.modules['torch'] = None\ntry:\n    import torch\nexcept ImportError as e: print(e)"
    ),
    "torch fake module": (
        "import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\nimport torch; print(torch)"
    ),
    "typing of os funcs": (
        "import os, inspect\nprint(os.system.__name__, os.execv.__module__, os.execve.__doc__[:20])"
    ),
    "pickled os.system": ("import os, pickle\nprint(pickle.loads(pickle.dumps(os.system)) is os.system)"),
}

# Those that meet what we put into the process; all others run at night.
IN_EVERY_RUN = (
    "audit import",
    "faulthandler segv",
    "main reimport",
    "mp spawn queue",
    "os.exec env",
    "own finder",
    "pickled os.system",
    "recursion depth",
    "replaced meta_path",
    "settrace lines",
    "stdout broken at exit",
    "subprocess modes",
)

# What differs, and is in docs/faithful.md.
DIFFERENT: dict[str, str] = {
    "lazy torch spec": (
        "import importlib.util\ns = importlib.util.find_spec('torch'); print(s.loader.__class__, s.origin)"
    ),
    "os functions are builtin": (
        "import os, types\n"
        "print(isinstance(os.system, types.BuiltinFunctionType), isinstance(os.execv, types.BuiltinFunctionType))"
    ),
    "os.execl fail": ("import os\nos.execlp('no-such-thing', 'x')"),
}
