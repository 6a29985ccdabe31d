"""Starts an agent inside the user's script, then gets out of the way.

breakscope runs ``python SCRIPT ARGS`` itself, with this folder first in PYTHONPATH, so that
Python imports this file while it starts. The script then is the real ``__main__`` of a real Python;
nothing is emulated. Everything that made it so is undone here first: the script, and the processes
that it starts, must see the environment and the path that the user has.

A script may have modules of its own that are named as Python's are (``random.py``, ``token.py``). So nothing
is imported here that Python has not loaded already, but modules that are built into it. The agent, which
needs more, is loaded when the script has imported torch, which needs the same.
"""

import os
import sys
import time

_LOADED = "atexit" in sys.modules
import atexit  # noqa: E402 -- built into Python, and so not to be mistaken for one of the script's

_BEGAN = time.perf_counter_ns()
_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))
_LIBRARY = os.path.dirname(os.__file__)


def _restore():
    """Undo what made Python start this file; what the parent wants."""
    wanted = {name: os.environ.pop(f"BREAKSCOPE_AGENT_{name}", None) for name in _VARIABLES}
    path = wanted["PYTHONPATH"]
    if path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = path
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    sys.path_importer_cache.pop(_HERE, None)
    if wanted["PATIENT"]:
        _leave_to_torch(wanted["PATIENT"])
    return wanted


def _leave_to_torch(name):
    """Keep a variable of ours from the script until torch has read it; then it is gone."""

    def forget():
        if name not in os.environ:  # the script has set none of its own
            os.unsetenv(name)

    os.putenv(name, os.environ.pop(name))
    _imports().after_import("torch", forget)


_VARIABLES = ("MODULE", "SETTINGS", "PYTHONPATH", "AHEAD", "EVENTS", "TOLD", "PATIENT")


def _load(name):
    import importlib
    import importlib.util

    package = sys.modules.get("breakscope")
    if package is None:
        # By file, not by name: the script's path need not lead to breakscope, nor does it afterwards.
        spec = importlib.util.spec_from_file_location(
            "breakscope", os.path.join(_PACKAGE, "__init__.py"), submodule_search_locations=[_PACKAGE]
        )
        package = sys.modules["breakscope"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
    elif not hasattr(package, "__path__"):
        raise ImportError("the script has a module of its own named breakscope")
    return importlib.import_module(name)


def _is_ours_or_pythons(name):
    top = name.partition(".")[0]
    return top == "breakscope" or top in sys.stdlib_module_names


def load_apart(names):
    """Load modules with Python's own library beneath them, whatever the script's folder holds."""
    known = dict(sys.modules)
    path = sys.path
    sys.path = [
        entry for entry in path if entry.startswith(os.path.dirname(_LIBRARY)) and "-packages" not in entry
    ]
    for name in [name for name in known if name.partition(".")[0] in sys.stdlib_module_names]:
        file = getattr(known[name], "__file__", None)
        if file and not file.startswith(_LIBRARY):
            del sys.modules[name]
    try:
        return [_load(name) for name in names]
    finally:
        sys.path = path
        for name in list(sys.modules):
            if name not in known and name.partition(".")[0] in sys.stdlib_module_names:
                del sys.modules[name]
        sys.modules.update(known)


def _go_ahead(name, settings):
    """Start what must be there before the script's first line. It leaves no module behind."""
    known = dict(sys.modules)
    folders = set(sys.path_importer_cache)
    [module] = load_apart([name])
    module.start(settings)
    for added in [name for name in sys.modules if name not in known and _is_ours_or_pythons(name)]:
        del sys.modules[added]
    for added in sys.path_importer_cache.keys() - folders:
        del sys.path_importer_cache[added]


# ---- an agent that waits for torch ----

_PID = "%pid%"  # in the name of a child's file, see breakscope.inside.start


class _Waiting:
    """Says that the process lives and how it ended, and starts the agent once there is a torch.

    Of a child nothing is said until then: most of those that a script starts have no torch.
    """

    def __init__(self, name, settings, events):
        self.name = name
        self.settings = settings
        self.events = events
        self.pid = os.getpid()
        self.end = None

    def begin(self):
        version = ".".join(map(str, sys.version_info[:3])) + _LEVELS[sys.version_info.releaselevel]
        start = f'"t":"start","at":0.0,"step":0,"call":0,"pid":{self.pid},"python":"{version}"'
        self.say(f'{start},"wall":{time.time()!r}')
        atexit.register(self.ended)
        _imports().after_import("torch", self.torch_is_there)

    def torch_is_there(self):
        forked = os.getpid() != self.pid
        try:
            agent, *_ = load_apart([self.name, self.name.rpartition(".")[0] + ".dynamo"])
            began = time.perf_counter_ns() if forked else _BEGAN
            self.end = agent.start(self.settings, began, forked=forked)
        except Exception as error:  # noqa: BLE001 -- our fault must not become the user's
            words = f"the capture could not start: {type(error).__name__}: {error}"
            text = "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in words)
            self.say(f'"t":"note","at":0.0,"step":0,"call":0,"text":"{text}"')

    def ended(self):
        if self.end is not None:
            self.end()
        else:
            self.say(f'"t":"end","at":{(time.perf_counter_ns() - _BEGAN) / 1e9!r},"step":0,"call":0')

    def say(self, fields):
        if _PID in self.events or os.getpid() != self.pid:
            return
        try:
            file = os.open(self.events, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, f"{{{fields}}}\n".encode())
            finally:
                os.close(file)
        except OSError:
            pass  # the parent finds it missing, and says so


_LEVELS = {"alpha": "a", "beta": "b", "candidate": "rc", "final": ""}


def _imports():
    """The one module of ours that needs no other."""
    bootstrap, external = sys.modules["_frozen_importlib"], sys.modules["_frozen_importlib_external"]
    file = os.path.join(_PACKAGE, "inside", "imports.py")
    spec = external.spec_from_file_location("breakscope.inside.imports", file)
    module = bootstrap.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _begin(wanted):
    settings = wanted["SETTINGS"] or ""
    waiting = None
    if wanted["EVENTS"]:
        waiting = _Waiting(wanted["MODULE"], settings, wanted["EVENTS"])
        waiting.begin()
    if wanted["AHEAD"]:
        _go_ahead(wanted["AHEAD"], settings)
    if waiting is None and wanted["MODULE"]:
        _load(wanted["MODULE"]).start(settings)


def begin_in_fork(wanted):
    """In a fork of a process that has waited here: begin as one that has just been started."""
    global _BEGAN  # noqa: PLW0603 -- what counts from the start of the process asks for it
    _BEGAN = time.perf_counter_ns()
    _begin(wanted)


def _import_the_hidden_one(told):
    # An environment may have a sitecustomize of its own, which ours stands in front of. Where there is none,
    # the ImportError that says so is what Python itself would have met.
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize  # noqa: F401
    except Exception:
        if not told:
            raise
        # It failed in breakscope's own Python, too, which has said so: this is what Python passes over.
        raise ImportError(name="sitecustomize") from None


_wanted = {}
try:
    _wanted = _restore()
    _begin(_wanted)
finally:
    if not _LOADED:
        del sys.modules["atexit"]
    _import_the_hidden_one(_wanted.get("TOLD"))
