"""`find_capabilities`: a library's capabilities, from its tables and one small buffer."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import numpy as np

from plugrt.base.dlpack_types import OF_DEVICES, ON_HOST
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt.capi.devices.devices import ClientBase
from plugrt.capi.extensions.ffi import can_register_handlers
from plugrt.capi.loading.library import Library
from plugrt.errors import PjrtError, PlugrtError, Unimplemented
from plugrt.interface import Capabilities, HostBufferSemantics, OptionValue

# Workaround for xla-rendezvous
_BLOCKING_LAUNCHES = {"cpu": 8}
"""By platform name: XLA's CPU client has 32 places for launches in each device's queue, and hangs
when they are full and its threads too few (see `plugrt.base.xla_environment.reserve_threads`)."""
TUPLE_ARGUMENTS_ABOVE = {"tpu": 2000}
"""By platform name, for libraries that state no limit: as in JAX."""
CHOOSES = "auto_partitioning"
"""The attribute of a library whose compiler can choose how arguments are divided."""
CALLS_ON_HOST = "host_callbacks"
"""The attribute of a library, such as an exported plugin, whose handlers get host memory."""
ASSUMED = frozenset(
    {
        "executable_serialization",
        "cost_analysis",
        "memory_analysis",
        "optimized_program",
        "fingerprint",
        "partitions",
        "collectives",
        "layouts",
        "device_to_device_copy",
        "unsafe_pointer",
        "strided_put",
        "topology",
        "custom_calls",
        "program_formats",
        "dtypes",
    }
)
"""Fields that libraries cannot declare in the C API. They are assumed true if the table has the
function, or the API's version the dtype; a library without the feature returns an error."""


def find_capabilities(client: ClientBase, layout_put: bool, copies: bool = False) -> Capabilities:
    """Returns the capabilities of the library behind a client, as declared or found by a trial.

    ``layout_put`` is whether it puts arrays in other layouts, as the client has found out;
    ``copies`` is whether its plugin copies arrays of programs to the host
    (`plugrt.capi.library.stream_copies`).
    """
    library = client.library
    attributes = client.attributes
    devices = client.addressable_devices()
    several = len(devices) > 1
    has = library.has
    on_host, zero_copy, viewed = _host_memory(client)
    handlers = can_register_handlers(library, ask=on_host)
    stated = _read_own_statements(client)
    return Capabilities(
        asynchronous_dispatch=True,
        donation=True,
        zero_copy_put=zero_copy,
        zero_copy_get=viewed,
        executable_serialization=has("Executable_Serialize")
        and has("Executable_DeserializeAndLoad"),
        cost_analysis=has("Executable_GetCostAnalysis"),
        memory_analysis=has("Executable_GetCompiledMemoryStats"),
        optimized_program=has("Executable_OptimizedProgram"),
        fingerprint=has("Executable_Fingerprint"),
        multiple_devices=several,
        partitions=several,
        auto_partitioning=stated.get(CHOOSES) is True,
        collectives=several,
        memory_kinds=any(len(d.memories()) > 1 for d in devices),
        layouts=_has_layouts(library),
        layout_put=layout_put,
        device_to_device_copy=several and has("Buffer_CopyToDevice"),
        memory_stats=bool(devices) and _is_implemented(devices[0].memory_stats),
        dlpack=on_host or _can_share_device_memory(client),
        unsafe_pointer=has("Buffer_UnsafePointer"),
        strided_put=True,
        topology=_is_implemented(lambda: _try_topology(client)),
        custom_calls=handlers,
        host_callbacks=handlers and (on_host or copies or stated.get(CALLS_ON_HOST) is True),
        max_blocking_launches=_BLOCKING_LAUNCHES.get(client.platform),
        tuple_arguments_above=_tuple_bound(stated, client.platform),
        program_formats=("mlir", "hlo"),
        stablehlo_current_version=_version(attributes.get("stablehlo_current_version")),
        stablehlo_minimum_version=_version(attributes.get("stablehlo_minimum_version")),
        dtypes=supported_dtypes(library.version[1]),
    )


def can_queue_nested_launches(client: ClientBase) -> bool:
    """Whether a launch waits for all earlier ones on its device, even for one that waits for it.

    True for XLA's CPU client, which has one order for all launches of the C API on a device
    (``xla/pjrt/cpu/cpu_client.cc``: ``GetLastEnqueueEvent``), and false for an exported plugin.
    """
    return client.platform in _BLOCKING_LAUNCHES and CALLS_ON_HOST not in _read_own_statements(
        client
    )


def _read_own_statements(client: ClientBase) -> Mapping[str, OptionValue]:
    """Returns the capabilities, by name, that a library states itself, since the C API cannot.

    They are attributes of the library or, for exported plugins, of its topology.
    """
    with contextlib.suppress(PjrtError):  # a library may have no topology
        return {**client.topology().attributes, **client.attributes}
    return client.attributes


def _tuple_bound(statements: Mapping[str, OptionValue], platform: str) -> int | None:
    """Returns the number of parameters above which a program has one tuple parameter.

    Ignores a value that is no number of parameters.
    """
    stated = statements.get("tuple_arguments_above")
    if type(stated) is int and stated >= 0:
        return stated
    return TUPLE_ARGUMENTS_ABOVE.get(platform)


def _has_layouts(library: Library) -> bool:
    """Whether a library states the layouts of arrays and of programs' results."""
    if "Layouts" not in library.extensions:
        return False
    table = library.extension("Layouts")
    needed = ("Layouts_Buffer_MemoryLayout", "Layouts_Client_GetDefaultLayout")
    of_results = table.has("Layouts_Executable_GetOutputLayouts")
    return all(map(table.has, needed)) and (
        of_results or library.has("Executable_OptimizedProgram")
    )


def _version(value: object) -> tuple[int, int, int] | None:
    if isinstance(value, list) and len(value) == 3:
        return (value[0], value[1], value[2])
    return None


def _is_implemented(question: object) -> bool:
    """Whether a function is implemented: any outcome but UNIMPLEMENTED shows that."""
    assert callable(question)
    try:
        question()
    except Unimplemented:
        return False
    except PjrtError:
        return True
    return True


def _try_topology(client: ClientBase) -> None:
    args = client.library.call("TopologyDescription_Create", topology_name=ffi.from_buffer(b""))
    client.library.call("TopologyDescription_Destroy", topology=args.topology)


def _can_share_device_memory(client: ClientBase) -> bool:
    """Whether DLPack has a type for the devices' memory, and the library the functions for it."""
    needed = (
        "Buffer_IsOnCpu",
        "Buffer_UnsafePointer",
        "Buffer_IncreaseExternalReferenceCount",
        "Client_CreateViewOfDeviceBuffer",
    )
    there = client.platform in OF_DEVICES and bool(client.addressable_devices())
    return there and all(map(client.library.has, needed))


def _host_memory(client: ClientBase) -> tuple[bool, bool, bool]:
    """Returns whether buffers are in host memory, an aligned put can alias, and a read does."""
    devices = client.addressable_devices()
    if not devices:
        return False, False, False
    memory = np.zeros(256, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + 64]
    try:
        buffer = client.buffer_from_host(
            array, devices[0], None, HostBufferSemantics.IMMUTABLE_ZERO_COPY
        )
        on_host = buffer.dlpack_device()[0] in ON_HOST
        where = buffer.unsafe_pointer()
        copy = client.buffer_from_host(array, devices[0])
        viewed = copy.to_host().ctypes.data == copy.unsafe_pointer()
        return on_host, on_host and where == array.ctypes.data, on_host and viewed
    except PlugrtError:
        return False, False, False
