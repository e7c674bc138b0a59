"""`Model` and `load_model`: a packed model as a callable with named inputs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from plugrt.base.logger import get_logger
from plugrt.errors import (
    ArgumentMismatch,
    ArgumentTypeError,
    DeletedBuffer,
    Incompatible,
    PjrtError,
    ProgramError,
)
from plugrt.execution.arrays.arguments import read_arguments
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.aval import Aval, intern_aval, intern_host_aval
from plugrt.execution.arrays.casting import kind_rank
from plugrt.execution.compilation.ir_dumps import dump_executable
from plugrt.execution.launches.call_object import CallObject
from plugrt.execution.launches.compiled import refuse
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.launches.pipeline import Runner, RunnerCache, make_runner
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.placement.placement import single_device_launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings.sharding_base import SingleDeviceSharding
from plugrt.execution.transfers.transfer import device_put
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors, with_checked_methods
from plugrt.interface import Device, LoadedExecutable, Program, TensorType
from plugrt.models.model_file import WEIGHTS, read_model
from plugrt.models.signature import ModelValue, Signature, Sizes
from plugrt.plugins.selection import backends
from plugrt.programs.executables import EXECUTABLE, find_maker, load_executable, parameter_types
from plugrt.settings.declarations import config
from plugrt.settings.options import Token
from plugrt.wire.checked_fields import require
from plugrt.wire.safetensors import HostArray, read_arrays

logger = get_logger("plugrt.models")
_Typed = tuple[LoadedExecutable, Sequence[TensorType] | None, Sequence[TensorType]]
"""An executable, and the types of its parameters (None if unknown) and results."""


@with_argument_errors
def load_model(
    path: str | os.PathLike[str], *, device: Device | None = None, backend: str | None = None
) -> Model:
    """Returns a model that `plugrt.pack_model` or ``plugrt pack`` wrote, on one device.

    ``path`` is a folder or a zip file. The device is ``device``, else the first of ``backend``,
    else the default device. All files are read and compared with their checksums, and the weights
    are put on the device. The program of a bucket is loaded at its first call, from a saved
    executable if the model has one of this backend and version. Nothing is unpickled. Load only
    models that you trust: saved executables contain machine code, and checksums find only damage.

    Raises `FileNotFoundError`, `DataLoss` for damaged files, `Incompatible` for other files,
    another version of the format, and a model for other platforms, and `ArgumentTypeError` for a
    device and a backend together.
    """
    if device is not None and backend is not None:
        raise ArgumentTypeError("load_model takes a device or a backend, not both")
    signature, contents = read_model(Path(path))
    if device is None:
        device = (
            default_device()
            if backend is None
            else backends.get_backend(backend).addressable_devices()[0]
        )
    return Model(Parts.of(signature, contents, device))


@dataclass
class Parts:
    """The files, weights and loaded programs of a model, which its sessions share."""

    signature: Signature
    contents: Mapping[str, bytes]
    device: Device
    weights: Sequence[Any]
    initial: Mapping[str, HostArray]
    """The first values of inputs that outputs feed, if the model has them."""
    programs: Sequence[int]
    """The indices of the programs for the device's platform."""
    loaded: dict[int, LoadedProgram] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def of(signature: Signature, contents: Mapping[str, bytes], device: Device) -> Parts:
        """Returns the parts of a model, after its weights are put on the device."""
        names = {*backends.process_backends().platforms_of(device.client)}
        programs = [
            i
            for i, program in enumerate(signature.programs)
            if not program.platforms or names & {*program.platforms}
        ]
        if not programs:
            known = sorted({name for each in signature.programs for name in each.platforms})
            raise Incompatible(
                f"model {signature.name!r} was packed for {', '.join(known)}; it cannot run on "
                f"{' or '.join(sorted(names))}. Fix: export the function for that platform too"
            )
        arrays = read_arrays(contents[WEIGHTS]) if WEIGHTS in contents else {}
        states = [value for value in signature.inputs if value.name in arrays]
        require(
            {*arrays} == {value.name for value in (*signature.weights, *states)}
            and {value.name for value in states} <= {*signature.states},
            f"the weights are {sorted(arrays)!s:.200}",
        )
        for value in (*signature.weights, *states):
            found = arrays[value.name]
            require(
                (found.shape, found.dtype) == (value.shape, value.dtype),
                f"the weight {value} is {TensorType(found.shape, found.dtype)}",
            )
        initial = {value.name: arrays[value.name] for value in states}
        weights = device_put([arrays[value.name] for value in signature.weights], device)
        kept = {name: content for name, content in contents.items() if name != WEIGHTS}
        return Parts(signature, kept, device, weights, initial, programs)

    def load(self, index: int) -> LoadedProgram:
        """Returns the program of a bucket, loaded or compiled at the first call."""
        with self.lock:
            if index not in self.loaded:
                self.loaded[index] = self._load(index)
            return self.loaded[index]

    def _load(self, index: int) -> LoadedProgram:
        signature, device = self.signature, self.device
        stated = signature.programs[index]
        loaded, takes, returns = self._load_saved(index) or self._compile(index)
        parameters = [v.at(stated.bucket) for v in (*signature.inputs, *signature.weights)]
        results = [v.at(stated.bucket) for v in signature.outputs]
        for what, found, wanted in (
            ("takes", takes, parameters),
            ("returns", returns, results),
        ):
            if found is not None and [*map(_as_pair, found)] != [*map(_as_pair, wanted)]:
                raise Incompatible(
                    f"model {signature.name!r} contradicts its program {stated.file}: that {what} "
                    f"{', '.join(map(str, found))!s:.300}; the signature says "
                    f"{', '.join(map(str, wanted))!s:.300}"
                )
        count = len(signature.inputs)
        plan = Plan(
            name=signature.name,
            kept=tuple(range(count)),
            sources=tuple(("result", i) for i in range(len(results))),
            constants=tuple(self.weights),
            fed=len(self.weights),
            donated=tuple(i for i, v in enumerate(signature.inputs) if v.name in signature.states),
            argument_names=tuple(value.name for value in signature.inputs),
        )
        launch = single_device_launch(device, count, [None] * len(results), committed=True)
        outputs = [
            intern_aval(t.shape, t.dtype, where, True)
            for t, where in zip(results, launch.out_shardings, strict=True)
        ]
        types = [(t.shape, t.dtype, False) for t in parameters[:count]]
        return LoadedProgram(plan, types, launch, loaded, self.weights, outputs)

    def _load_saved(self, index: int) -> _Typed | None:
        """Returns a saved executable of the program; None if none can be loaded here."""
        name = backends.process_backends().platforms_of(self.device.client)[0]
        reasons = []
        for saved in self.signature.executables:
            if saved.program != index or saved.backend != name:
                continue
            content = self.contents[saved.file]
            require(find_maker(content) is not None, f"{saved.file} is not an executable")
            code = Program(content, EXECUTABLE, self.signature.name)
            try:
                loaded = load_executable(code, self.device)
            except PjrtError as error:
                reason = error.message.splitlines()[0]
                reasons.append(f"saved by {saved.version!r}: {reason:.200}")
                continue
            executable = loaded.executable
            dump_executable(code.name, executable)
            return loaded, parameter_types(executable), executable.output_types
        if reasons:
            logger.warning(
                "model %r: its executable for %s cannot be loaded, so its program is compiled "
                "again (%s)", self.signature.name, name, reasons[0],
            )  # fmt: skip
        return None

    def _compile(self, index: int) -> _Typed:
        # Imported late: a model with saved executables does not need its many imports.
        from plugrt.programs.compiled_program import CompiledProgram, compile

        file = self.signature.programs[index].file
        try:
            program = Program(self.contents[file], "mlir", self.signature.name)
            compiled = compile(program, device=self.device)
        except (ProgramError, PjrtError) as error:
            raise Incompatible(
                f"{self.device.client.backend_name} cannot compile {file} of the model "
                f"{self.signature.name!r}: {error}"
            ) from error
        assert isinstance(compiled, CompiledProgram)
        return compiled.runtime_executable(), compiled.input_types, compiled.output_types


def _as_pair(kind: TensorType) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    return kind.shape, kind.dtype


@with_checked_methods
class Model(CallObject):
    """A packed model on one device, called with its inputs by name: ``model(tokens=x)``.

    A call chooses the smallest bucket that holds the sizes of the inputs, pads them with zeros, and
    returns the results without the padding: an `Array`, or a dict of arrays by name if the model
    has several outputs. A call with exactly a bucket's sizes waits for nothing; a padded one reads
    its results to remove the padding. Weights stay on the device.

    An output that feeds an input is not returned: it stays on the device as ``state``, and the next
    call donates it. A call may pass such an input, which replaces the state; the array is donated.
    Calls of several threads run one after another if there is a state.

    Raises `ArgumentMismatch` for missing, unknown and wrong inputs, `Incompatible` for a program
    that the backend refuses, and `DeletedBuffer` for a state that a failed call has donated.
    """

    _most_runners = 1024

    @with_argument_errors
    def __init__(self, parts: Parts) -> None:
        """Called by `load_model`."""
        if not isinstance(parts, Parts):
            raise ArgumentTypeError("a Model is what load_model returns; it has no constructor")
        self._parts = parts
        self._runners = RunnerCache(self._most_runners)
        self._lock = threading.Lock()
        self._state: dict[str, Any] = dict(parts.initial)
        signature = parts.signature
        self._inputs = {value.name: value for value in signature.inputs}
        self._returned = len(signature.outputs) - len(signature.feeds)
        names = [value.name for value in signature.outputs[: self._returned]]
        self._result_tree = pytrees.structure(0 if len(names) == 1 else dict.fromkeys(names, 0))

    @property
    def name(self) -> str:
        """The name it was packed with."""
        return self._parts.signature.name

    @property
    def device(self) -> Device:
        """The device that it runs on."""
        return self._parts.device

    @property
    def inputs(self) -> tuple[str, ...]:
        """Its inputs with their types, such as ``tokens: int32[batch,64]``."""
        return tuple(map(str, self._parts.signature.inputs))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Its outputs with their types; those that feed an input are not returned."""
        return tuple(map(str, self._parts.signature.outputs))

    @property
    def returned(self) -> tuple[str, ...]:
        """The names of the outputs that a call returns."""
        return tuple(value.name for value in self._parts.signature.outputs[: self._returned])

    @property
    def buckets(self) -> tuple[dict[str, int], ...]:
        """The sizes of the dimension variables that it has programs for on this device."""
        return tuple(dict(self._parts.signature.programs[i].bucket) for i in self._parts.programs)

    @property
    def state(self) -> dict[str, Any]:
        """The arrays that the next call donates, by the name of the input."""
        return dict(self._state)

    def reset(self) -> None:
        """Sets the state to the first one, as the model was packed."""
        with self._lock:
            self._state = dict(self._parts.initial)

    def session(self) -> Model:
        """Returns the model with a state of its own; weights and programs are shared."""
        return Model(self._parts)

    def warm_up(self) -> None:
        """Loads or compiles the programs of all buckets, which first calls do otherwise.

        Raises `Incompatible` for a program that the backend refuses.
        """
        for index in self._parts.programs:
            self._parts.load(index)

    def __repr__(self) -> str:
        takes, gives = ", ".join(self.inputs), ", ".join(self.outputs)
        return f"<model {self.name!r} on {self.device!r}: ({takes}) -> ({gives})>"

    def _given(self, call: FlatCall) -> list[str]:
        """Returns the names of the inputs of a call, in the order of its leaves."""
        args, kwargs = call.spec.children()
        names: list[str] = kwargs.entries()
        signature = self._parts.signature
        strange = [name for name in names if name not in self._inputs]
        missing = [
            value.name
            for value in signature.inputs
            if value.name not in names
            and not (value.name in signature.states and value.name in self._state)
        ]
        has_containers = not all(map(pytrees.is_leaf_spec, kwargs.children()))
        if args.num_leaves or strange or missing or has_containers:
            found = [
                "arguments without a name" * bool(args.num_leaves),
                f"the unknown {', '.join(strange)}" * bool(strange),
                f"no {', '.join(missing)}" * bool(missing),
                "containers" * has_containers,
            ]
            raise ArgumentMismatch(
                f"model {self.name!r} takes arrays by name ({', '.join(self.inputs)}); it was "
                f"called with {' and '.join(filter(None, found))}"
            )
        return names

    def _read(self, call: FlatCall, token: Token) -> tuple[Sequence[Any], list[Aval]]:
        names = self._given(call)
        return read_arguments(
            call.leaves, lambda i: f"input {names[i]!r} of model {self.name!r}", token
        )

    def _make_runner(self, key: Any, call: FlatCall, avals: Sequence[Aval]) -> Runner:
        """Returns a function for calls with these inputs, and caches it under ``key``.

        It runs the smallest program that fits. If that program's sizes (the bucket) differ from
        the inputs', the function pads the inputs and removes the padding from the results.
        """
        names, parts, moment = self._given(call), self._parts, config.moment
        values = [self._inputs[name] for name in names]
        self._check_dtypes(values, avals)
        sizes = parts.signature.sizes_of(values, [aval.shape for aval in avals])
        index = parts.signature.choose(sizes, parts.programs)
        bucket = parts.signature.programs[index].bucket
        program = parts.load(index)
        what = f"the output of model {self.name!r}"
        if bucket == sizes and not parts.signature.feeds:
            run = make_runner(program, self._result_tree, avals, what)
        else:
            shapes = [value.at(bucket).shape for value in values]
            held = [
                aval if aval.shape == shape else intern_host_aval(shape, aval.dtype)
                for aval, shape in zip(avals, shapes, strict=True)
            ]
            launch = self._make_launch(program, names, held, what)
            run = partial(self._run, launch, shapes, self._result_shapes(bucket, sizes))
        if moment is config.moment and key[0] is config.token():  # no setting changed meanwhile
            self._runners.keep(key, run)
        return run

    def _check_dtypes(self, values: Sequence[ModelValue], avals: Sequence[Aval]) -> None:
        wrong = [
            f"  {value} was given {aval.tensor_type}"
            for value, aval in zip(values, avals, strict=True)
            if aval.dtype != value.dtype
            and not (aval.is_number and kind_rank(aval.dtype) <= kind_rank(value.dtype))
        ]
        refuse(f"model {self.name!r} was called with other dtypes", wrong)

    def _result_shapes(self, bucket: Sizes, sizes: Sizes) -> list[tuple[int, ...] | None]:
        """Returns the unpadded shape of each returned result; None if it has no padding."""
        outputs = [self._parts.signature.outputs[i] for i in range(self._returned)]
        shapes = [value.at(sizes).shape for value in outputs]
        return [
            None if value.at(bucket).shape == shape else shape
            for value, shape in zip(outputs, shapes, strict=True)
        ]

    def _make_launch(
        self, program: LoadedProgram, names: Sequence[str], avals: Sequence[Aval], what: str
    ) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Returns a function that maps a bucket's inputs to the returned results, flat."""
        outputs = self._parts.signature.outputs
        given = dict(zip(names, avals, strict=True))
        place = SingleDeviceSharding(self.device)
        inputs = [
            given.get(v.name) or intern_aval(v.at({}).shape, v.dtype, place, True)
            for v in self._inputs.values()
        ]
        tree = pytrees.flatten((0,) * len(outputs))[1]
        run: Callable[[Sequence[Any]], Sequence[Any]] = make_runner(program, tree, inputs, what)
        feeds, count = self._parts.signature.feeds, self._returned
        if not feeds:
            return run
        targets = [feeds[value.name] for value in outputs[count:]]

        def run_with_state(values: Sequence[Any]) -> Sequence[Any]:
            found = dict(zip(names, values, strict=True))
            with self._lock:
                for name in [n for n in self._inputs if n in self._state and n not in found]:
                    found[name] = self._put_state(name)
                results = run([found[name] for name in self._inputs])
                self._state.update(zip(targets, results[count:], strict=True))
            return results[:count]

        return run_with_state

    def _put_state(self, name: str) -> Any:
        """Puts an input of the state on the device, unless a call that failed has donated it."""
        held = self._state[name]
        if isinstance(held, Array) and held.is_deleted():
            raise DeletedBuffer(
                f"the state {name!r} of model {self.name!r} was deleted, or donated to a call that "
                f"failed. Fix: call reset(), or give {name} to the next call"
            )
        return device_put(held, self.device)

    def _run(
        self,
        launch: Callable[[Sequence[Any]], Sequence[Any]],
        shapes: Sequence[tuple[int, ...]],
        whole: Sequence[tuple[int, ...] | None],
        values: Sequence[Any],
    ) -> Any:
        results = launch([_pad(x, shape) for x, shape in zip(values, shapes, strict=True)])
        return pytrees.unflatten(
            self._result_tree,
            [
                result if shape is None else device_put(_cut(result, shape), self.device)
                for result, shape in zip(results, whole, strict=True)
            ],
        )


def _pad(x: Any, shape: tuple[int, ...]) -> Any:
    """Returns an array with zeros behind it in each dimension, up to a shape."""
    if np.shape(x) == shape:
        return x
    host = np.asarray(x)
    padded = np.zeros(shape, host.dtype)
    padded[tuple(map(slice, host.shape))] = host
    return padded


def _cut(x: Any, shape: tuple[int, ...]) -> HostArray:
    return np.asarray(x)[tuple(map(slice, shape))]
