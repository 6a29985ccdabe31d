"""Starts an agent inside the user's script, then gets out of the way.

breakscope runs ``python SCRIPT ARGS`` itself, with this folder first in PYTHONPATH, so that
Python imports this file while it starts. The script then is the real ``__main__`` of a real Python;
nothing is emulated. Everything that made it so is undone here first: the script, and the processes
that it starts, must see the environment and the path that the user has.
"""

import os
import sys


def _restore():
    here = os.path.dirname(os.path.abspath(__file__))
    module = os.environ.pop("BREAKSCOPE_AGENT_MODULE", None)
    settings = os.environ.pop("BREAKSCOPE_AGENT_SETTINGS", "")
    path = os.environ.pop("BREAKSCOPE_AGENT_PYTHONPATH", None)
    if path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = path
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    sys.path_importer_cache.pop(here, None)
    return here, module, settings


def _import_the_hidden_one():
    # An environment may have a sitecustomize of its own, which ours stands in front of.
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # The import that is under way looks for a module of this name when it ends.
        sys.modules.setdefault("sitecustomize", ours)


def _start(here, name, settings):
    import importlib
    import importlib.util

    if "breakscope" not in sys.modules:
        # By file, not by name: the script's path need not lead to breakscope, nor does it afterwards.
        package = os.path.dirname(os.path.dirname(here))
        spec = importlib.util.spec_from_file_location(
            "breakscope", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules["breakscope"] = module
        spec.loader.exec_module(module)
    importlib.import_module(name).start(settings)


_here, _module, _settings = _restore()
_import_the_hidden_one()
if _module is not None:
    _start(_here, _module, _settings)
