"""`jit`: a Python function as compiled programs, one for each kind of arguments."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, overload

import numpy as np

from plugrt.config import config
from plugrt.errors import (
    ArgumentError,
    DeletedBuffer,
    FloatingPointFault,
    InvalidArgument,
    NotAnArray,
    Unimplemented,
)
from plugrt.execution import tree
from plugrt.execution.array import Array
from plugrt.execution.placement import default_device
from plugrt.execution.program import check_floats
from plugrt.execution.sharding import Sharding, SingleDeviceSharding
from plugrt.interface import Device
from plugrt.plugins import backends
from plugrt.tracing.dispatch import Runner, as_array, finisher, load, meets_doubles, parameters_of
from plugrt.tracing.nested import call_in_trace
from plugrt.tracing.staging import Parameter, Staged, stage
from plugrt.tracing.trace import _state
from plugrt.transforms.arguments import ArgumentRules, Bound
from plugrt.transforms.calls import CachedFunction
from plugrt.transforms.described import call_parameters
from plugrt.transforms.stages import Lowered, Traced


class JitFunction(CachedFunction):
    """A jitted function: calls trace, compile and launch; `lower` and `trace` stop earlier."""

    def __init__(
        self,
        function: Callable[..., Any],
        rules: ArgumentRules,
        *,
        keep_unused: bool,
        device: Device | None,
        backend: str | None,
        inline: bool,
    ) -> None:
        self._keep_unused = keep_unused
        self._device = device
        self._backend = backend
        self._inline = inline
        options = (
            rules.static_nums,
            rules.static_names,
            rules.donate_nums,
            rules.donate_names,
            keep_unused,
            device,
            backend,
        )
        super().__init__(function, rules, options)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Returns the function traced for these arguments, ready to be compiled.

        Arrays may be stood in for by anything with ``shape`` and ``dtype``.
        """
        return self.trace(*args, **kwargs).lower()

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Returns the function traced for these arguments (see `lower`)."""
        bound = self._rules.bind(args, kwargs)
        names = self._rules.names(bound)
        donated = self._rules.donated(bound)
        described = call_parameters(bound.leaves, names, donated)
        staged = self._stage(bound, [parameter for parameter, _ in described])
        signatures = [signature for _, signature in described]
        return Traced(staged, bound.spec, tuple(signatures), self._where())

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the pytree of results as shapes and dtypes, computing nothing."""
        return self.trace(*args, **kwargs).out_info

    def __repr__(self) -> str:
        return f"<jitted {self._rules.title}>"

    # --- the general way ----------------------------------------------------------------------

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        trace = _state.trace
        if config.disable_jit and trace is None:
            return self._function(*args, **kwargs)
        bound = self._rules.bind(args, kwargs)
        if trace is not None:
            names = self._rules.names(bound)
            key: Any = (self._cache, bound.spec, bound.static_key, config.token())
            return call_in_trace(
                trace, self._flat(bound), bound.leaves, names, self._rules.title, key, self._inline
            )
        arrays = self._arrays(bound)
        signatures = [a._signature for a in arrays]
        key = (config.token(), bound.spec, bound.static_key, *signatures)
        run = self._cache.get(key)
        if run is None:
            run = self._compile(bound, arrays)
            self._cache.keep(key, run)
        if not kwargs and not bound.statics and all(type(a) is Array for a in args):
            self._cache.keep((key[0], *signatures), run)
        return run(arrays)

    def _arrays(self, bound: Bound) -> list[Array]:
        leaves = bound.leaves
        if all(type(leaf) is Array for leaf in leaves):
            return leaves
        # Scalars that are put once serve many calls, so that none of them may be donated.
        fresh = bool(self._rules.donate_nums or self._rules.donate_names)
        try:
            wide = meets_doubles(leaves)
            return [as_array(leaf, "an argument", wide, fresh) for leaf in leaves]
        except (NotAnArray, DeletedBuffer):
            self._refuse(bound)
            raise

    def _refuse(self, bound: Bound) -> None:
        """Raises the error of an argument that cannot be taken once more, with its name."""
        for leaf, name in zip(bound.leaves, self._rules.names(bound), strict=True):
            try:
                as_array(leaf, f"argument {name} of {self._rules.title!r}")
            except NotAnArray as error:
                if isinstance(leaf, np.ndarray):
                    raise
                raise NotAnArray(
                    f"{error}; or make it static (static_argnums, static_argnames)"
                ) from None

    def _where(self) -> Device | None:
        if self._device is not None:
            return self._device
        if self._backend is not None:
            wanted = default_device()
            client = backends.get_backend(self._backend)
            return wanted if wanted.client is client else client.addressable_devices()[0]
        return None

    def _stage(self, bound: Bound, parameters: Sequence[Parameter]) -> Staged:
        return stage(
            self._flat(bound), parameters, name=self._rules.title, keep_unused=self._keep_unused
        )

    def _compile(self, bound: Bound, arrays: Sequence[Array]) -> Runner:
        checked = config.debug_nans or config.debug_infs
        # Under a debug check the arguments must survive, to run the function again bit by bit.
        donated = frozenset() if checked else self._rules.donated(bound)
        signatures = [a._signature for a in arrays]
        staged = self._stage(bound, parameters_of(signatures, self._rules.names(bound), donated))
        run: Runner = load(staged, signatures, self._where()).runner(len(arrays))
        if checked:
            run = self._check(run, bound)
        return finisher(staged.out_tree, run)

    def _check(self, run: Runner, bound: Bound) -> Runner:
        nans, infs = bool(config.debug_nans), bool(config.debug_infs)
        title, statics, spec = self._rules.title, bound.statics, bound.spec
        function = weakref.ref(self)

        def checked(arguments: Sequence[Array]) -> Any:
            outputs = run(arguments)
            try:
                check_floats(outputs, f"the output of jitted {title!r}", nans=nans, infs=infs)
            except FloatingPointFault as fault:
                jitted = function()
                if jitted is not None:
                    call = Bound([], spec, statics, ((), {}))
                    _find_culprit(jitted._function, *call.rebuild(arguments), fault)
                raise
            return outputs

        return checked


def _is_arraylike(leaf: Any) -> bool:
    return type(leaf) in (Array, bool, int, float, complex)


def _find_culprit(
    function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], fault: FloatingPointFault
) -> NoReturn:
    """Runs the function operation by operation, so that the one at fault raises."""
    with config.override(disable_jit=True):
        function(*args, **kwargs)
    raise FloatingPointFault(
        f"{fault}; run operation by operation, the function makes none, so that the compiler's "
        "fusion is the cause"
    ) from fault


@overload
def jit(fun: Callable[..., Any], /, **options: Any) -> JitFunction: ...
@overload
def jit(**options: Any) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(  # type: ignore[misc]
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
) -> Any:
    """Returns ``fun`` as a function that is traced, compiled and launched on a device.

    Arguments and results are arrays, scalars and pytrees of them; static arguments are hashable
    values that a program is specialised for. Programs are cached by the structure, shapes, dtypes
    and placement of the arguments, the static values and the configuration, and the cache is
    shared by all jits of one function with the same options.

    The parameters are ``jax.jit``'s. ``in_shardings`` and ``out_shardings`` take a single device's
    sharding for now; ``inline`` puts the body in place when another traced function calls it,
    instead of a call to a function of the module.
    """
    if fun is None:
        return lambda f: jit(
            f,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
        )
    if not callable(fun):
        raise ArgumentError(f"jit takes a function; got {fun!r}")
    if device is not None and not isinstance(device, Device):
        raise InvalidArgument(f"jit's device must be one of plugrt.devices(); got {device!r}")
    if device is not None and backend is not None:
        raise ArgumentError("jit takes a device or a backend, not both")
    asked = [*_single_devices(in_shardings), *_single_devices(out_shardings)]
    if asked:
        if len({*asked, *([device] if device else [])}) > 1:
            raise Unimplemented(
                f"jit over several devices ({sorted(map(repr, set(asked)))}) is not implemented; "
                "use pmap, or one device"
            )
        device = asked[0]
    rules = ArgumentRules(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
    return JitFunction(
        fun, rules, keep_unused=keep_unused, device=device, backend=backend, inline=inline
    )


def _single_devices(shardings: Any) -> list[Device]:
    devices = []
    for sharding in tree.flatten(shardings)[0]:
        if isinstance(sharding, Device):
            devices.append(sharding)
        elif isinstance(sharding, SingleDeviceSharding):
            devices.append(sharding.device)
        elif isinstance(sharding, Sharding):
            raise Unimplemented(
                f"jit with {sharding!r} is not implemented; use pmap, or a single device"
            )
        else:
            raise InvalidArgument(
                f"in_shardings and out_shardings take shardings; got {sharding!r}"
            )
    return devices
