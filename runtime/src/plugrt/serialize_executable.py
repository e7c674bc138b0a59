"""Saves compiled functions as bytes and loads them: `serialize` and `deserialize_and_load`.

As ``jax.experimental.serialize_executable``. A file can be loaded if the versions and the kind of
devices are the same as when it was compiled; the loaded function is called without tracing and
compiling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plugrt.errors import ArgumentError, ArgumentTypeError
from plugrt.execution.launches.compiled import SavableCall
from plugrt.execution.trees.pytrees import PyTreeSpec
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Client, Device
from plugrt.plugins.selection.backends import get_backend
from plugrt.programs.compiled_export import CompiledExport
from plugrt.programs.loaded_function import LoadedFunction
from plugrt.programs.saved_function import SavedFunction, load, save

if TYPE_CHECKING:  # it traces, which needs jaxlib; loading does not
    from plugrt.transforms.compiled_function import Compiled

__all__ = ["LoadedFunction", "deserialize_and_load", "serialize"]


@with_argument_errors
def serialize(
    compiled: Compiled | CompiledExport,
) -> tuple[bytes, PyTreeSpec, PyTreeSpec]:
    """Returns a compiled function as bytes, with the structures of its arguments and results.

    ``compiled`` is the result of ``jit(f).lower(…).compile()``, of the same for `pmap`, or of
    ``plugrt.compile`` for an export. The structures are returned separately because they may
    contain your own container classes; ``pickle`` can save them. Arrays that the function closed
    over are in the bytes (JAX refuses such functions).

    Raises `Unimplemented` for a function that calls Python, and if the backend saves no
    executables; `ArgumentTypeError` for anything that is not compiled, and `ArgumentError` for an
    export with symbolic shapes.
    """
    if not isinstance(compiled, SavableCall):
        raise ArgumentTypeError(
            "serialize takes a compiled function, such as plugrt.jit(f).lower(x).compile(); got "
            f"{compiled!r:.80}"
        )
    saved = save(SavedFunction.of(compiled))
    assert compiled._in_tree is not None
    assert compiled._out_tree is not None
    return saved, compiled._in_tree, compiled._out_tree


@with_argument_errors
def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeSpec,
    out_tree: PyTreeSpec,
    backend: str | Client | None = None,
    execution_devices: Sequence[Device] | None = None,
) -> LoadedFunction:
    """Returns the function that `serialize` saved, loaded and callable.

    It runs on devices of ``execution_devices``, else of ``backend``, else of the default backend:
    on the devices with the ids that it was compiled for, in that order, or on the first devices if
    one of those is missing. Load only bytes that you trust: they contain machine code, and their
    checksum detects only damage.

    Raises `InvalidArgument` for other bytes and for too few devices, `DataLoss` for damaged ones,
    `FailedPrecondition` for bytes of other versions, and `ArgumentError` for structures with other
    numbers of arguments or results, or devices of another backend.
    """
    client = get_backend(backend)
    devices = client.addressable_devices() if execution_devices is None else execution_devices
    strangers = [device for device in devices if device.client is not client]
    if strangers and (backend is not None or execution_devices is None):
        raise ArgumentError(f"{strangers[0]!r} is no device of {client.backend_name}")
    function = load(bytes(memoryview(serialized)), devices)
    counts = len(function.types), len(function.program.outputs)
    if counts != (in_tree.num_leaves, out_tree.num_leaves):
        raise ArgumentError(
            f"{function.program.plan.name!r} has {counts[0]} arguments and {counts[1]} results; "
            f"the structures given have {in_tree.num_leaves} and {out_tree.num_leaves}"
        )
    return LoadedFunction(function, in_tree, out_tree)
