"""`pack_model`: writes a model from an export or a program, weights and names."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    DataLoss,
    Incompatible,
    PluginUnavailable,
    ShapeError,
)
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device, Program, TensorType
from plugrt.models.model import Model, Parts, logger
from plugrt.models.model_file import WEIGHTS, list_files, write_model
from plugrt.models.signature import (
    ModelExecutable,
    ModelProgram,
    ModelValue,
    Signature,
    Sizes,
    find_variables,
)
from plugrt.models.sources import ModelSource, read_source
from plugrt.models.torch_source import read_torch
from plugrt.plugins.selection.backends import get_backend, process_backends
from plugrt.programs.compiled_program import compile
from plugrt.programs.parsing import convert_module
from plugrt.wire.safetensors import HostArray, write_arrays

if TYPE_CHECKING:
    from plugrt.programs.loading import ProgramSource


_CLOSE = 1e-3
"""The rounding allowed between programs of different sizes, relative to the largest result."""


@with_argument_errors
def pack_model(
    path: str | os.PathLike[str],
    program: ProgramSource | Any,
    *,
    weights: Mapping[str, Any] | None = None,
    names: Sequence[str] = (),
    outputs: Sequence[str] = (),
    buckets: Mapping[str, Sequence[int]] | None = None,
    feeds: Mapping[str, str] | None = None,
    pad: Sequence[str] | None = None,
    executables: Sequence[str] = (),
    name: str = "",
    check: bool = True,
) -> None:
    """Writes a model, for `plugrt.load_model`: to a zip file, or to a folder without ``.zip``.

    ``program`` is a program of StableHLO or an export of JAX, as `plugrt.load_program` accepts it,
    or a ``torch.export.ExportedProgram``, which torch_xla lowers and whose parameters are weights.
    Arguments are named ``names`` by position, then ``arg0``, or as in PyTorch, and results
    ``outputs``, then ``output0``; parts of containers by their path, ``params.dense.kernel``.

    ``weights`` are arrays, or containers of them, by the names of arguments; the other arguments
    are inputs. ``buckets`` are the sizes of each dimension variable; each combination of sizes has
    a program. StableHLO has no names for dynamic dimensions: one key names all, several name one
    each, in the order of the parameters. ``feeds`` maps the name of an output to the name of the
    input that it becomes in the next call; ``weights`` may have its first value. ``executables``
    names backends, whose compiled programs are saved too.

    Calls pad the variables ``pad`` with zeros, all variables by default. Results that depend on the
    padding, such as a mean over a batch, would be wrong: ``check`` compares a padded and an
    unpadded call on random inputs, and a program of PyTorch with PyTorch itself; without a backend,
    it logs a warning instead.

    Raises `ArgumentError` for names, sizes and weights that do not fit the program and for results
    that depend on padding, `ArgumentTypeError`, `ProgramError` for a program that cannot be packed,
    `MissingTraceExtra` without jaxlib, and `FileExistsError` for a folder that exists.
    """
    if Path(path).suffix != ".zip" and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "a model is written to a new folder", str(path))
    if type(program).__module__.startswith("torch.export"):
        source = read_torch(program, names, outputs, tuple(buckets or ()))
    else:
        source = read_source(program, names, outputs, tuple(buckets or ()))
    draft = _Draft.of(source, weights or {}, feeds or {}, pad)
    bucket_list = _combine(draft, buckets or {})
    title = name or source.name
    draft.sign(title, [ModelProgram("none", (), bucket) for bucket in bucket_list], {"none": b""})
    contents = {WEIGHTS: write_arrays(draft.arrays)} if draft.arrays else {}
    programs: list[ModelProgram] = []
    for bucket in bucket_list:
        programs += draft.add_programs(bucket, contents, f"programs/{len(programs)}")
    signature = draft.sign(title, programs, contents)
    if check:
        _check(draft, signature, contents, [*executables])
    saved = [each for backend in executables for each in _save(signature, contents, backend)]
    signature = replace(signature, executables=tuple(saved), files=list_files(contents))
    write_model(Path(path), signature, contents)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The parts of a signature that all programs share, and the arrays."""

    source: ModelSource
    inputs: tuple[ModelValue, ...]
    weights: tuple[ModelValue, ...]
    outputs: tuple[ModelValue, ...]
    feeds: Mapping[str, str]
    padded: tuple[str, ...]
    arrays: Mapping[str, HostArray]

    @staticmethod
    def of(
        source: ModelSource,
        weights: Mapping[str, Any],
        feeds: Mapping[str, str],
        pad: Sequence[str] | None,
    ) -> _Draft:
        """Divides the arguments of a program into inputs and weights."""
        arguments = {value.name: value for value in source.arguments}
        arrays = {**source.weights, **dict(_flatten(weights))}
        unknown = sorted(arrays.keys() - arguments.keys() - source.unused)
        if unknown:
            raise ArgumentError(
                f"the weights {', '.join(unknown[:5])} are not arguments of {source.name!r}, which "
                f"takes {', '.join(map(str, source.arguments))!s:.500}. Fix: name= and weights= of "
                "the argument that they are parts of"
            )
        arrays = {name: arrays[name] for name in arguments if name in arrays}
        for name, array in arrays.items():
            value = arguments[name]
            if (array.shape, array.dtype) != (value.shape, value.dtype):
                raise ArgumentError(
                    f"the weight {name} is {TensorType(array.shape, array.dtype)}; the program "
                    f"takes {value}"
                )
        states = {*feeds.values()}
        inputs = [v for v in source.arguments if v.name not in arrays or v.name in states]
        variables = find_variables(inputs)
        if strange := {*(pad or ())} - {*variables}:
            raise ArgumentError(f"pad names {sorted(strange)}; the variables are {[*variables]}")
        return _Draft(
            source,
            tuple(sorted(inputs, key=lambda v: (v.name in states, v.name))),
            tuple(v for v in source.arguments if v.name in arrays and v.name not in states),
            tuple(sorted(source.results, key=lambda v: (v.name in feeds, v.name))),
            feeds,
            variables if pad is None else tuple(pad),
            arrays,
        )

    def sign(
        self, name: str, programs: Sequence[ModelProgram], contents: Mapping[str, bytes]
    ) -> Signature:
        """Returns the signature; `ArgumentError` for parts that do not fit each other."""
        try:
            return Signature(
                name, self.inputs, self.weights, self.outputs, dict(self.feeds), self.padded,
                tuple(programs), (), list_files(contents),
            )  # fmt: skip
        except DataLoss as error:
            why = error.message.rpartition("by plugrt: ")[2]
            raise ArgumentError(
                f"{self.source.name!r} cannot be packed as a model: {why}"
            ) from error

    def add_programs(
        self, bucket: Sizes, contents: dict[str, bytes], stem: str
    ) -> list[ModelProgram]:
        """Adds the programs of a bucket to the files in ``contents``: one for each platform."""
        made: dict[bytes, list[str]] = {}
        for platform in self.source.platforms or [""]:
            made.setdefault(self._make(platform, bucket), []).append(platform)
        programs = []
        for i, (code, platforms) in enumerate(made.items()):
            file = f"{stem}{f'.{i}' * (i > 0)}.mlirbc"
            contents[file] = code
            programs.append(ModelProgram(file, tuple(filter(None, platforms)), dict(bucket)))
        return programs

    def _make(self, platform: str, bucket: Sizes) -> bytes:
        """Returns the program whose parameters and results are in the signature's order."""
        from plugrt.stablehlo.modules import portable_version
        from plugrt.stablehlo.reordered_main import reorder_main

        try:
            module = self.source.make_module(platform or None, bucket)
        except ShapeError as error:
            raise ArgumentError(f"the bucket {dict(bucket)} does not fit: {error}") from error
        values = (*self.inputs, *self.weights)
        number = {value.name: i for i, value in enumerate(values)}
        result = {value.name: i for i, value in enumerate(self.outputs)}
        reorder_main(
            module,
            [value.at(bucket) for value in values],
            [number[value.name] for value in self.source.arguments],
            [[v.name for v in self.source.results].index(v.name) for v in self.outputs],
            {number[target]: result[source] for source, target in self.feeds.items()},
        )
        return convert_module(module, self.source.name, portable_version()).code


def _flatten(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, HostArray]]:
    """Yields the arrays in containers with the names of their paths."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _flatten(value, (*path, str(key)))
    elif isinstance(tree, list | tuple):
        for i, value in enumerate(tree):
            yield from _flatten(value, (*path, str(i)))
    elif tree is not None:
        array = np.asarray(tree)
        if array.dtype.kind == "O":
            raise ArgumentTypeError(f"the weight {'.'.join(path)} is {tree!r:.60}, not an array")
        yield ".".join(filter(None, path)), array


def _combine(draft: _Draft, buckets: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
    """Returns a bucket for each combination of sizes."""
    variables = find_variables(draft.inputs)
    if {*buckets} != {*variables}:
        raise ArgumentError(
            f"buckets has sizes of {sorted(buckets)}; {draft.source.name!r} has the dimension "
            f"variables {[*variables]}, of which each has sizes"
        )
    for variable, sizes in buckets.items():
        if not sizes or not all(type(n) is int and n > 0 for n in sizes):
            raise ArgumentError(f"the sizes of {variable} are {sizes!r:.60}, not positive integers")
    chosen = [sorted({*buckets[name]}) for name in variables]
    return [dict(zip(variables, sizes, strict=True)) for sizes in itertools.product(*chosen)]


def _save(
    signature: Signature, contents: dict[str, bytes], backend: str
) -> Iterator[ModelExecutable]:
    """Compiles the programs for a backend, and adds the executables to ``contents``."""
    client = get_backend(backend)
    names = process_backends().platforms_of(client)
    for i, program in enumerate(signature.programs):
        if program.platforms and not {*program.platforms} & {*names}:
            continue
        code = Program(contents[program.file], "mlir", signature.name)
        compiled = compile(code, device=client.addressable_devices()[0])
        file = f"executables/{backend}-{i}.bin"
        contents[file] = compiled.serialize()
        yield ModelExecutable(file, i, names[0], client.platform_version)


def _check(
    draft: _Draft, signature: Signature, contents: Mapping[str, bytes], backends: Sequence[str]
) -> None:
    """Raises `ArgumentError` if a model's results differ from its source's, or change by padding.

    Logs a warning if no backend here runs the program.
    """
    if not signature.padded and draft.source.call is None:
        return
    try:
        device = get_backend(backends[0]).addressable_devices()[0] if backends else default_device()
        _check_results(draft, signature, contents, device)
        _check_padding(draft, signature, contents, device)
    except (Incompatible, PluginUnavailable) as error:
        logger.warning("model %r: its results were not compared: %s", signature.name, error)


def _check_results(
    draft: _Draft, signature: Signature, contents: Mapping[str, bytes], device: Device
) -> None:
    """Raises `ArgumentError` if the source's own call with its weights has other results."""
    replaced = any(draft.arrays[name] is not x for name, x in draft.source.weights.items())
    if draft.source.call is None or replaced:
        return
    generator = np.random.default_rng(0)
    model = Model(Parts.of(signature, contents, device))
    for bucket in (program.bucket for program in signature.programs):
        inputs = {v.name: _random(v.at(bucket), generator) for v in signature.inputs}
        found = pytrees.leaves(model(**inputs))
        results = dict(zip((v.name for v in signature.outputs), found, strict=True))
        wanted = draft.source.call({**draft.arrays, **inputs})
        for value, expected in zip(draft.source.results, wanted, strict=True):
            if not _is_close(results[value.name], expected):
                raise ArgumentError(
                    f"the output {value.name} of {signature.name!r} is not the source's, for the "
                    f"sizes {bucket} and random inputs: the program was lowered wrongly, or makes "
                    "random numbers. Fix: another formulation of the function; or check=False"
                )


def _check_padding(
    draft: _Draft, signature: Signature, contents: Mapping[str, bytes], device: Device
) -> None:
    """Raises `ArgumentError` if padding changes the results of a call."""
    largest = max((p.bucket for p in signature.programs), key=lambda b: tuple(b.values()))
    generator = np.random.default_rng(0)
    for variable in signature.padded:
        sizes = {**largest, variable: (largest[variable] + 1) // 2}
        if sizes == largest:
            continue
        inputs = {v.name: _random(v.at(sizes), generator) for v in signature.inputs}
        exact = dict(contents)
        programs = draft.add_programs(sizes, exact, "programs/exact")
        one = draft.sign(signature.name, programs, exact)
        other = replace(
            signature, programs=tuple(p for p in signature.programs if p.bucket == largest)
        )
        found = [Model(Parts.of(each, exact, device))(**inputs) for each in (other, one)]
        pairs = zip(*map(pytrees.leaves, found), strict=False)
        for value, (a, b) in zip(signature.outputs, pairs, strict=False):
            if not _is_close(a, b):
                raise ArgumentError(
                    f"the output {value.name} of {signature.name!r} changes where {variable!r} is "
                    f"padded from {sizes[variable]} to {largest[variable]}. Fix: a mask in the "
                    f"function; or pad= without {variable!r}, where calls have exactly the sizes "
                    "of a bucket; or check=False"
                )


def _is_close(found: Any, wanted: Any) -> bool:
    """Whether results are equal but for rounding."""
    a, b = (np.asarray(x).astype(np.float64) for x in (found, wanted))
    scale = float(np.nanmax(np.abs(b), initial=0)) if b.size else 0
    return a.shape == b.shape and np.allclose(
        a, b, rtol=_CLOSE, atol=_CLOSE * scale, equal_nan=True
    )


def _random(kind: TensorType, generator: np.random.Generator) -> HostArray:
    if kind.dtype.kind in "biu":
        return generator.integers(0, 2, kind.shape).astype(kind.dtype)
    return generator.standard_normal(kind.shape).astype(kind.dtype)
