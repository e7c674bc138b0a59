"""Functions of the host in JAX's programs: ``jax.ffi`` and callbacks, for exported plugins.

JAX asks a plugin's own extension module to register functions, and writes callbacks for its own
platforms alone: this module does both for a plugin with the extension FFI.
"""

from __future__ import annotations

from typing import Any

from plugrt.callbacks.host_callbacks import NumberedCallback
from plugrt.capi.extensions.ffi import register_c_handler, register_handler
from plugrt.capi.extensions.ffi_registration import (
    register,
    register_host_callbacks,
    register_type,
)
from plugrt.capi.library.capsule import library_in
from plugrt.capi.loading.library import Library
from plugrt.interface import HOST_CALLBACK, HandlerStages
from plugrt.transforms.ffi_targets import read_handler, read_type

_CALLBACK = "xla_ffi_python_cpu_callback"
"""The target of the calls that JAX writes for callbacks on its CPU, which jaxlib's registry has."""


def connect_functions(platform: str, capsule: object) -> None:
    """Makes ``jax.ffi`` and JAX's callbacks work on a platform with the table in a capsule.

    Functions that were registered for it before are registered now. Raises nothing where the
    backend accepts no handlers: JAX raises the error where a function is registered, or a callback
    lowered.
    """
    from jaxlib import xla_client

    library = library_in(capsule, platform)

    def register_target(
        name: str, fn: Any, platform: str, api_version: int, traits: object
    ) -> None:
        handler = read_handler(name, fn, api_version)
        if isinstance(handler, HandlerStages):
            register(library, name, handler, platform)
        elif isinstance(handler, int):
            register_c_handler(library, name, handler, platform)
        else:
            register_handler(library, name, handler, platform)

    def register_state(name: str, registration: Any) -> None:
        type_id, type_info = read_type(name, registration)
        register_type(library, name, type_id, type_info, platform)

    xla_client.register_custom_call_handler(platform, register_target)
    xla_client.register_custom_type_handler(platform, register_state)
    _lower_callbacks(platform, library)


def _lower_callbacks(platform: str, library: Any) -> None:
    """Gives JAX rules for callbacks on a platform: its own for CPUs, with functions by number."""
    from jax._src import callback, debugging
    from jax._src.interpreters import mlir

    def as_on_cpus(rule: Any) -> Any:
        def lower(context: Any, *arguments: Any, **parameters: Any) -> Any:
            register_host_callbacks(library, {}, platform)  # raises where it accepts none
            module = context.module_context
            callbacks = _Callbacks(library, platform, module.keepalives, _has_token(parameters))
            as_cpu = module.replace(platforms=("cpu",), backend=None, host_callbacks=callbacks)
            inner = context.replace(module_context=as_cpu)
            results = rule(inner, *arguments, **parameters)
            _name_target()
            if inner.tokens_out is not None:
                context.set_tokens_out(inner.tokens_out)
            return results

        return lower

    rules = {
        callback.pure_callback_p: callback.pure_callback_lowering,
        callback.io_callback_p: callback.io_callback_lowering,
        debugging.debug_callback_p: debugging.debug_callback_lowering,
        debugging.debug_print_p: debugging.debug_print_lowering_rule,
    }
    for primitive, rule in rules.items():
        # Not by register_lowering: it refuses platforms that are neither JAX's own nor a registered
        # plugin's, and a library's platform may have another name than its plugin.
        entry = mlir.LoweringRuleEntry(as_on_cpus(rule), inline=True)
        mlir._platform_specific_lowerings[platform][primitive] = entry


def _name_target() -> None:
    """Changes the custom call that JAX's rule emitted to the target of plugrt's callbacks.

    See `plugrt.interface.Program.callbacks`.
    """
    from plugrt.stablehlo.bindings import ir

    # The rule writes the call at the end of the block, or one or two operations before the end.
    for operation in reversed([*ir.InsertionPoint.current.block.operations]):
        attributes = operation.operation.attributes
        target = "call_target_name" in attributes and attributes["call_target_name"].value
        if target == _CALLBACK:
            attributes["call_target_name"] = ir.StringAttr.get(HOST_CALLBACK)
            attributes["api_version"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4)
            attributes["backend_config"] = attributes["mhlo.backend_config"]
            del attributes["mhlo.backend_config"]
            return
        if target == HOST_CALLBACK:
            return


def _has_token(parameters: dict[str, Any]) -> bool:
    """Whether JAX's rule passes a token to the callback and receives one, before the arrays."""
    from jax._src import effects

    if "effect" in parameters:
        return bool(effects.ordered_effects.contains(parameters["effect"]))
    return bool(parameters.get("ordered", False))


class _Callbacks(list[Any]):
    """The callbacks of a program, as JAX's rule adds them: the last one's index is its number."""

    def __init__(self, library: Library, platform: str, keep: list[Any], has_token: bool) -> None:
        super().__init__()
        self._library = library
        self._platform = platform
        self._keep = keep
        self._has_token = has_token

    def append(self, function: Any) -> None:
        def call(*arrays: Any) -> Any:
            return function(None, *arrays)[1:] if self._has_token else function(*arrays)

        numbered = NumberedCallback(call, "a callback of JAX", has_effect=False)
        self._keep.append(numbered)
        register_host_callbacks(self._library, {numbered.number: numbered}, self._platform)
        super().append(numbered)

    def __len__(self) -> int:
        return self[-1].number + 1 if super().__len__() else 0
