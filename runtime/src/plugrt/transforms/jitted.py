"""`JitFunction`: a Python function as compiled programs, one for each kind of arguments."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NoReturn

import numpy as np

from plugrt.config import config
from plugrt.errors import (
    DeletedBuffer,
    FloatingPointFault,
    NotAnArray,
)
from plugrt.execution.array import Array
from plugrt.execution.placement import default_device
from plugrt.execution.program import check_floats
from plugrt.interface import Device
from plugrt.plugins import backends
from plugrt.tracing.dispatch import Runner, as_array, finisher, load, meets_doubles, parameters_of
from plugrt.tracing.nested import call_in_trace
from plugrt.tracing.staging import Parameter, Staged, stage
from plugrt.tracing.statics import static_key
from plugrt.tracing.trace import _state
from plugrt.transforms.arguments import ArgumentRules, Bound
from plugrt.transforms.calls import CachedFunction
from plugrt.transforms.described import call_parameters
from plugrt.transforms.stages import Lowered, Traced

_FLAT = frozenset({np.ndarray, bool, int, float, complex})
_ARRAYS_ALONE = {Array}
_signature_of = attrgetter("_signature")


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
        # What is put for a call that donates may be taken by it, so that it is not shared.
        self._donates = bool(rules.donate_nums or rules.donate_names)
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
        flat = self._flat_call(args) if trace is None and not kwargs else None
        if flat is not None and (run := self._cache.get(flat[0])) is not None:
            return run(flat[1])
        bound = self._rules.bind(args, kwargs)
        if trace is not None:
            names = self._rules.names(bound)
            key: Any = (self._cache, bound.spec, bound.static_key, config.token())
            return call_in_trace(
                trace, self._flat(bound), bound.leaves, names, self._rules.title, key, self._inline
            )
        arrays = flat[1] if flat is not None else self._arrays(bound)
        key = (config.token(), bound.spec, bound.static_key, *map(_signature_of, arrays))
        run = self._cache.get(key)
        if run is None:
            run = self._cache.made(key, lambda: self._compile(bound, arrays))
        if flat is not None:
            self._cache.keep(flat[0], run)
        return run(arrays)

    def _flat_call(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Array]] | None:
        """Returns a cache key and the arrays of a call without containers, else None.

        The key of a call with arrays alone is the one that `__call__` looks for.
        """
        static = self._rules.static_nums
        key: list[Any] = [config.token()]
        arrays: list[Array] = []
        wide = None
        for i, x in enumerate(args):
            if i in static:
                try:
                    hash(x)
                except TypeError:
                    return None
                key.append(static_key(x))
                continue
            kind = type(x)
            if kind is not Array:
                if kind not in _FLAT or self._donates:
                    return None
                if wide is None:
                    wide = meets_doubles([a for j, a in enumerate(args) if j not in static])
                try:
                    x = as_array(x, "an argument", wide)
                except NotAnArray:
                    return None  # refused again, by name
            elif x._shards is None:
                return None
            arrays.append(x)
            key.append(x._signature)
        return tuple(key), arrays

    def _arrays(self, bound: Bound) -> list[Array]:
        leaves = bound.leaves
        if {*map(type, leaves)} == _ARRAYS_ALONE:
            return leaves
        try:
            wide = meets_doubles(leaves)
            return [as_array(leaf, "an argument", wide, self._donates) for leaf in leaves]
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
