"""What an arm changes about the script: ``torch.compile`` becomes its own, and steps wait for their turn."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from breakscope.inside import imports, torch_api
from breakscope.inside.bench import arm_compat
from breakscope.inside.bench.plan import ArmSettings
from breakscope.inside.bench.turns import Turns
from breakscope.inside.capture.outermost import OutermostCall
from breakscope.inside.compiled import OptimizeContext, module_of, with_calls_wrapped
from breakscope.inside.torch_api.hooks import answer_module_calls, never_compile, replace_entry_points
from breakscope.inside.torch_api.state import in_backward, skipped_by_rule
from breakscope.report.owners import owner_of

_PACKAGE = str(Path(__file__).resolve().parents[2])


class ArmHooks:
    """Everything that one arm hooks in torch."""

    def __init__(self, settings: ArmSettings, turns: Turns) -> None:
        self._settings = settings
        self._turns = turns
        self._by_us = False
        self._script_compiles = False
        self._called: weakref.WeakSet[Any] = weakref.WeakSet()  # outermost modules so far
        self._release: Callable[[], None] = lambda: None
        self._dynamic = {"auto": None, "true": True, "false": False}[settings.dynamic]

    def install(self) -> None:
        """Torch has just been imported."""
        torch.manual_seed(self._settings.seed)
        if self._settings.function is None:
            outermost = self._outermost()
            self._release = answer_module_calls(outermost.answer)
            self._turns.replaying = outermost.inside
            if self._settings.variant == "eager":
                # Compiled code has no nested calls that could ask; eager code would be slower by the hook.
                self._turns.when_timed = functools.partial(self._pin, outermost)
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(self._stepped)
        imports.after_import("torch._dynamo", self._install_dynamo)
        if self._settings.kernels:
            imports.after_import("torch._inductor.compile_fx", self._turns.sessions.cuda_graphs.install)

    def _pin(self, outermost: OutermostCall) -> None:
        outermost.pin(self._called)
        self._release()

    def measured(self, function: Any) -> Any:
        """The function of ``--function``, as this arm runs it."""
        return self._turns.wrap(self._compiled_by_us(function), repeat=True)

    def _install_dynamo(self) -> None:
        arm_compat.dynamo_loaded()
        never_compile(OutermostCall.answer.__code__)
        self._turns.compiles.install()
        real, real_reset = torch_api.get("optimize"), torch_api.get("reset")

        def optimize(*args: Any, **kwargs: Any) -> Any:
            return self._optimize(real, *args, **kwargs)

        def reset() -> None:
            real_reset()
            self._turns.compiles.install()  # a reset forgets who wanted to know of compiles

        replace_entry_points(optimize, reset)

    def _stepped(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        # A compiled optimizer step is traced through here, and must not be changed by it.
        if not torch.compiler.is_compiling():
            self._turns.optimizer_stepped(optimizer)

    # -- torch.compile -------------------------------------------------------------------------------

    def _optimize(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``torch._dynamo.optimize``, where every way to compile ends, as this arm understands it."""
        backend = args[0] if args else kwargs.pop("backend", "inductor")
        owner = "project" if self._by_us else _owner(self._settings.roots)
        untouched = real(backend, *args[1:], **kwargs)
        if kwargs.get("disable"):
            return untouched
        nested = self._settings.function is not None and not self._by_us
        if self._settings.variant == "eager" or nested:
            # Inside of something compiled, the function of --function would be no call of its own.
            ours = real(backend, *args[1:], **{**kwargs, "disable": True})
        else:
            if self._dynamic is not None:
                kwargs["dynamic"] = self._dynamic
            ours = real(self._backend(backend), *args[1:], **kwargs)
        return OptimizeContext(ours, functools.partial(self._take, untouched, ours, owner))

    def _backend(self, script_backend: Any) -> Any:
        backend = self._chosen(script_backend)
        if not self._settings.kernels:
            return backend
        from breakscope.inside.bench.graphs import RecordingBackend

        return RecordingBackend(torch_api.get("lookup_backend")(backend))

    def _chosen(self, script_backend: Any) -> Any:
        settings = self._settings
        if settings.mode != "as-script":
            return torch_api.get("inductor_wrapper")(settings.mode, None, self._dynamic)
        if settings.backend == "as-script":
            return script_backend
        return torch_api.get("lookup_backend")(settings.backend)

    def _take(self, untouched: Any, ours: Any, owner: str, function: Any) -> Any:
        """Compile ``function``, in this arm's way if it is the script's own choice to compile it."""
        # A library's decorated helper is not the script's choice; its compiling a whole model is.
        if owner != "project" and module_of(function) is None:
            return untouched(function)
        if self._by_us:
            return ours(function)
        self._script_compiles = True
        if self._settings.function is not None:
            return ours(function)
        return with_calls_wrapped(function, ours(function), self._turns.wrap)

    # -- a script that compiles nothing ----------------------------------------------------------------

    def _outermost(self) -> OutermostCall:
        return OutermostCall(
            in_backward=in_backward,
            wants=lambda: not self._script_compiles,
            skips=skipped_by_rule if self._settings.variant != "eager" else lambda _function: False,
            compile_call=lambda call: self._turns.wrap(self._compiled_by_us(call)),
            on_call=self._called.add if self._settings.variant == "eager" else lambda _module: None,
        )

    def _compiled_by_us(self, function: Any) -> Any:
        if self._settings.variant == "eager":
            return function
        self._by_us = True
        try:
            return torch.compile(function, dynamic=self._dynamic)
        finally:
            self._by_us = False


def _owner(roots: tuple[str, ...]) -> str:
    """Whose code asked for a compile: the innermost frame that is neither torch's nor ours."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and owner_of(file, ()) != "torch" and "<frozen" not in file:
            return owner_of(file, roots)
        frame = frame.f_back
    return "library"
