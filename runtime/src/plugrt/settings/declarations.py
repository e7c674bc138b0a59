"""`config`: every setting of plugrt, declared once, with its environment variable.

The table in ``docs/configuration.md`` and the output of ``python -m plugrt.settings`` are generated
from it. Names are JAX's where JAX has the setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from plugrt.interface import OptionValue
from plugrt.settings.option import option
from plugrt.settings.option_types import (
    BOOLEAN,
    CREATE_OPTIONS,
    DEVICE,
    DUMP_MODES,
    FOLDER,
    FUNCTIONS,
    GPU_SHAPE,
    INTEGERS,
    LOWER,
    LOWERINGS,
    NAMED_OPTIONS,
    NAMES,
    SECRET,
    TEXT,
    choice,
    count,
    forced_cpu_devices,
    integer,
    number,
    seconds,
)
from plugrt.settings.options import Token

if TYPE_CHECKING:
    from plugrt.settings.typed_options import TypedOptions as Options  # generated from this file
else:
    from plugrt.settings.options import Options

GUARD = choice("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_NO_OPTIONS: Mapping[str, OptionValue] = MappingProxyType({})
_NO_PLUGINS: Mapping[str, Mapping[str, OptionValue]] = MappingProxyType({})


class Config(Options):
    """The settings; an attribute for each. `update`, `override` and `reset` change them."""

    platforms = option(
        "JAX_PLATFORMS", TEXT, None,
        "The backends to start, separated by commas; the first is the default, and each must "
        "start. Unset: the available one of the highest priority, and cpu.",
        at_start=True,
    )  # fmt: skip
    platform_name = option(
        "JAX_PLATFORM_NAME", LOWER, None,
        "Deprecated, as in JAX: the default backend, among JAX_PLATFORMS if that is set. If it is "
        "not available, only calls that name no backend fail.",
        at_start=True,
    )  # fmt: skip
    default_device = option(
        "JAX_DEFAULT_DEVICE", DEVICE, None,
        "Where uncommitted arrays are put and computations without committed arguments run.",
        launched=True,
    )  # fmt: skip
    pjrt_names_and_library_paths = option(
        "PJRT_NAMES_AND_LIBRARY_PATHS", TEXT, None,
        "PJRT libraries to offer as backends: name:path,name2:path2 (name;path on Windows); a "
        ".json path holds library_path and create_options. Of equal priorities the first is the "
        "default. A name without a folder is searched by the dynamic loader.",
        at_start=True,
    )  # fmt: skip
    plugins_allow = option(
        "PLUGRT_PLUGINS_ALLOW", NAMES, None,
        "If set, only these plugins (by name or by distribution) are used; the rest is listed.",
        at_start=True,
    )  # fmt: skip
    plugins_block = option(
        "PLUGRT_PLUGINS_BLOCK", NAMES, (),
        "Plugins (by name or by distribution) that are listed, but never used.",
        at_start=True,
    )  # fmt: skip
    isolate = option(
        "PLUGRT_ISOLATE", NAMES, (),
        "Plugins whose libraries run in a child process each (plugrt-remote): where one crashes or "
        "hangs, calls raise Unavailable, and plugrt.clear_backends() starts it again.",
        at_start=True,
    )  # fmt: skip
    isolate_seconds = option(
        "PLUGRT_ISOLATE_SECONDS", seconds(), 600.0,
        "After this many seconds without an answer, a process of PLUGRT_ISOLATE counts as hung and "
        "is killed, also while it starts; 0 means never.",
        at_start=True,
    )  # fmt: skip
    strict_plugins = option(
        "PLUGRT_STRICT_PLUGINS", BOOLEAN, False,
        "Whether a broken plugin raises even where another can be used instead; for CI.",
    )  # fmt: skip
    trace_plugins = option(
        "PLUGRT_TRACE_PLUGINS", BOOLEAN, False,
        "Whether each step of finding, choosing and loading plugins is printed to stderr.",
    )  # fmt: skip
    probe_libraries = option(
        "PLUGRT_PROBE_LIBRARIES", BOOLEAN, True,
        "Whether a plugin's library, or the code of a plugin for JAX, is first tried in a child "
        "process, since a faulty library can end the process that opens it. A trial needs about "
        "0.5 s; the cache folder keeps its result for each file and set of options.",
    )  # fmt: skip
    probe_seconds = option(
        "PLUGRT_PROBE_SECONDS", number(0.1), 20.0,
        "The time limit of a trial (PLUGRT_PROBE_LIBRARIES); a library that exceeds it is broken.",
    )  # fmt: skip
    doctor_seconds = option(
        "PLUGRT_DOCTOR_SECONDS", number(1.0), 30.0,
        "The longest time of all trials of `plugrt doctor`.",
    )  # fmt: skip
    cache_dir = option(
        "PLUGRT_CACHE_DIR", TEXT, None,
        "The folder for plugrt's records between runs; unset means plugrt in XDG_CACHE_HOME "
        "or ~/.cache.",
    )  # fmt: skip
    init_warn_seconds = option(
        "PLUGRT_INIT_WARN_SECONDS", seconds(), 60.0,
        "After this many seconds a warning names a plugin that is still starting its backend; 0 "
        "means never.",
    )  # fmt: skip
    load_warn_seconds = option(
        "PLUGRT_LOAD_WARN_SECONDS", seconds(), 10.0,
        "After this many seconds a warning names a plugin that is still being imported; 0 means "
        "never.",
    )  # fmt: skip

    pjrt_client_create_options = option(
        "JAX_PJRT_CLIENT_CREATE_OPTIONS", CREATE_OPTIONS, _NO_OPTIONS,
        "Create options for every PJRT library that is started. Values are typed: true, 4, 0.5, "
        "1,2 and text (also in quotes).",
        at_start=True,
    )  # fmt: skip
    client_create_options = option(
        "PLUGRT_CLIENT_CREATE_OPTIONS", NAMED_OPTIONS, _NO_PLUGINS,
        "Create options by plugin name; they override JAX_PJRT_CLIENT_CREATE_OPTIONS, and their "
        "values are typed in the same way.",
        at_start=True,
    )  # fmt: skip
    num_cpu_devices = option(
        "JAX_NUM_CPU_DEVICES", count(1, unset=-1), None,
        "The number of virtual devices of the cpu backend; unset means "
        "--xla_force_host_platform_device_count in XLA_FLAGS, or else 1.",
        derive=forced_cpu_devices,
        at_start=True,
    )  # fmt: skip
    cpu_enable_async_dispatch = option(
        "JAX_CPU_ENABLE_ASYNC_DISPATCH", BOOLEAN, True,
        "Whether the cpu backend returns before a computation has finished.",
        at_start=True,
    )  # fmt: skip
    cpu_collectives_implementation = option(
        "JAX_CPU_COLLECTIVES_IMPLEMENTATION", choice("gloo", "mpi", "none"), "gloo",
        "How cpu backends of several processes exchange data; mpi needs MPITRAMPOLINE_LIB.",
        at_start=True,
    )  # fmt: skip
    cross_host_transfer_socket_address = option(
        "JAX_CROSS_HOST_TRANSFER_SOCKET_ADDRESS", TEXT, None,
        "This process's host:port for other processes that copy arrays from its cpu devices; port "
        "0 is any free one. If it is unset, arrays cannot be copied to devices of other processes.",
        at_start=True,
    )  # fmt: skip
    cross_host_transport_addresses = option(
        "JAX_CROSS_HOST_TRANSPORT_ADDRESSES", NAMES, (),
        "host:port, separated by commas, of the connections for copies between processes; unset "
        "means four at the host of JAX_CROSS_HOST_TRANSFER_SOCKET_ADDRESS, each at a free port.",
        at_start=True,
    )  # fmt: skip
    cross_host_transfer_timeout_seconds = option(
        "JAX_CROSS_HOST_TRANSFER_TIMEOUT_SECONDS", integer(1), 60,
        "How long a copy between processes waits for the other process to join.",
        at_start=True,
    )  # fmt: skip
    cross_host_transfer_transfer_size = option(
        "JAX_CROSS_HOST_TRANSFER_TRANSFER_SIZE", integer(1), 2**28,
        "The bytes of one piece of a copy between processes.",
        at_start=True,
    )  # fmt: skip
    cuda_visible_devices = option(
        "JAX_CUDA_VISIBLE_DEVICES", INTEGERS, None,
        "The devices that a library named cuda uses, by index. (In JAX it is a flag only.)",
        at_start=True,
    )  # fmt: skip
    rocm_visible_devices = option(
        "JAX_ROCM_VISIBLE_DEVICES", INTEGERS, None,
        "The devices that a library named rocm uses, by index. (In JAX it is a flag only.)",
        at_start=True,
    )  # fmt: skip
    oneapi_visible_devices = option(
        "JAX_ONEAPI_VISIBLE_DEVICES", INTEGERS, None,
        "The devices that a library named oneapi uses, by index. (In JAX it is a flag only.)",
        at_start=True,
    )  # fmt: skip
    mock_gpu_topology = option(
        "JAX_MOCK_GPU_TOPOLOGY", GPU_SHAPE, None,
        "Slices x hosts x devices of GPUs to pretend, such as 2x1x4. (JAX: a flag only.)",
        at_start=True,
    )  # fmt: skip
    mock_num_gpu_processes = option(
        "JAX_MOCK_NUM_GPU_PROCESSES", integer(0), 0,
        "The number of processes to pretend when compiling for a mock topology.",
        at_start=True,
    )  # fmt: skip
    cuda_library_path = option(
        "PLUGRT_CUDA_LIBRARY_PATH", TEXT, None,
        "The PJRT library for CUDA to use instead of an installed one.",
    )  # fmt: skip
    skip_cuda_constraints_check = option(
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK", BOOLEAN, False,
        "Whether the checks of CUDA library versions are left out.",
    )  # fmt: skip
    tpu_library_path = option(
        "TPU_LIBRARY_PATH", TEXT, None, "The libtpu library to use instead of the installed one."
    )
    force_tpu_init = option(
        "JAX_FORCE_TPU_INIT", BOOLEAN, False,
        "Whether the tpu backend is tried although no TPU device is seen.",
    )  # fmt: skip
    xla_python_client_allocator = option(
        "XLA_PYTHON_CLIENT_ALLOCATOR", choice("default", "platform", "bfc", "cuda_async", "vmm"),
        "default", "The device memory allocator of GPU backends.",
        at_start=True,
    )  # fmt: skip
    xla_python_client_preallocate = option(
        "XLA_PYTHON_CLIENT_PREALLOCATE", BOOLEAN, None,
        "Whether GPU backends allocate their share of the device's memory at the start.",
        at_start=True,
    )  # fmt: skip
    xla_client_mem_fraction = option(
        "XLA_CLIENT_MEM_FRACTION", number(), None,
        "The share of the device's memory that GPU backends allocate; unset means "
        "XLA_PYTHON_CLIENT_MEM_FRACTION (deprecated).", also="XLA_PYTHON_CLIENT_MEM_FRACTION",
        at_start=True,
    )  # fmt: skip
    xla_python_client_collective_mem_size_mb = option(
        "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", integer(0), None,
        "The memory that GPU backends keep for collectives, in MB.",
        at_start=True,
    )  # fmt: skip
    xla_python_client_abort_collectives_on_failure = option(
        "XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE", BOOLEAN, None,
        "Whether GPU backends abort collectives when one participant fails.",
        at_start=True,
    )  # fmt: skip
    xla_python_client_use_tfrt_gpu_client = option(
        "XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT", BOOLEAN, None,
        "Whether GPU backends use the TFRT client.",
        at_start=True,
    )  # fmt: skip

    enable_x64 = option(
        "JAX_ENABLE_X64", BOOLEAN, None,
        "Unset: 64-bit data keep their width, and creation functions default to 32 bits. 1: "
        "defaults are 64-bit. 0: 64-bit data are narrowed to 32 bits with one warning, as in JAX.",
        traced=True,
    )  # fmt: skip
    default_prng_impl = option(
        "JAX_DEFAULT_PRNG_IMPL", choice("threefry2x32", "rbg", "unsafe_rbg"), "threefry2x32",
        "The generator of random keys that are made without a generator's name.", traced=True,
    )  # fmt: skip
    default_matmul_precision = option(
        "JAX_DEFAULT_MATMUL_PRECISION",
        choice("default", "bfloat16", "high", "tensorfloat32", "highest", "float32"), None,
        "The precision of matrix products and convolutions that state none.", traced=True,
    )  # fmt: skip
    disable_jit = option(
        "JAX_DISABLE_JIT", BOOLEAN, False,
        "Whether jitted functions run operation by operation.", traced=True,
    )  # fmt: skip
    read_only_arrays = option(
        "PLUGRT_READ_ONLY_ARRAYS", BOOLEAN, False,
        "Whether x[key] = value raises, as in JAX.", traced=True,
    )  # fmt: skip
    debug_nans = option(
        "JAX_DEBUG_NANS", BOOLEAN, False,
        "Whether results are checked for NaN, and the operation that made one is found.",
        launched=True,
    )  # fmt: skip
    debug_infs = option(
        "JAX_DEBUG_INFS", BOOLEAN, False,
        "Whether results are checked for infinities, and the operation that made one is found.",
        launched=True,
    )  # fmt: skip
    transfer_guard = option(
        "JAX_TRANSFER_GUARD", GUARD, None,
        "Whether transfers without a call of device_put or device_get are allowed, logged or "
        "refused; the levels with _explicit apply to transfers by such calls, too.",
        launched=True,
    )  # fmt: skip
    transfer_guard_host_to_device = option(
        "JAX_TRANSFER_GUARD_HOST_TO_DEVICE", GUARD, None,
        "As transfer_guard, for host data; unset means transfer_guard.", launched=True,
    )  # fmt: skip
    transfer_guard_device_to_device = option(
        "JAX_TRANSFER_GUARD_DEVICE_TO_DEVICE", GUARD, None,
        "As transfer_guard, for copies from one device to another.", launched=True,
    )  # fmt: skip
    transfer_guard_device_to_host = option(
        "JAX_TRANSFER_GUARD_DEVICE_TO_HOST", GUARD, None,
        "As transfer_guard, for reads of arrays; not if the host can read the device's memory.",
        launched=True,
    )  # fmt: skip
    use_shardy_partitioner = option(
        "JAX_USE_SHARDY_PARTITIONER", BOOLEAN, True,
        "Whether programs state shardings over a mesh in Shardy's dialect and Shardy partitions "
        "them; off, they have GSPMD's attributes.",
        launched=True,
    )  # fmt: skip
    traceback_filtering = option(
        "JAX_TRACEBACK_FILTERING",
        choice("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"), "auto",
        "Whether exceptions of jitted functions show the user's frames alone. off shows all "
        "frames; the other values, which differ in JAX, do the same here.",
    )  # fmt: skip
    log_compiles = option(
        "JAX_LOG_COMPILES", BOOLEAN, False,
        "Whether tracing, lowering and compiling are logged as warnings, each with its duration, "
        "and argument types.",
    )  # fmt: skip
    explain_cache_misses = option(
        "JAX_EXPLAIN_CACHE_MISSES", BOOLEAN, False,
        "Whether a warning explains why a jitted or pmapped function is traced again: how the call "
        "differs from the most similar earlier one, and its place in the source.",
    )  # fmt: skip
    captured_constants_warn_bytes = option(
        "JAX_CAPTURED_CONSTANTS_WARN_BYTES", integer(-1), 2 * 10**9,
        "A warning names a function that closes over arrays of at least this many bytes together; "
        "-1 means never.",
    )  # fmt: skip
    record_launches = option(
        "PLUGRT_RECORD_LAUNCHES", BOOLEAN, False,
        "Whether plugrt.monitoring records each launch and how long it took on the host; "
        "monitoring.timeline sets it for its block.",
        launched=True,
    )  # fmt: skip
    dump_ir_to = option(
        "JAX_DUMP_IR_TO", TEXT, None,
        "A folder for the programs that backends receive, each in a numbered file.",
    )  # fmt: skip
    dump_ir_modes = option(
        "JAX_DUMP_IR_MODES", DUMP_MODES, ("stablehlo",),
        "The forms of a program that are written to JAX_DUMP_IR_TO: stablehlo (as the backend gets "
        "it), hlo (the same as HLO), optimized (as the backend compiled it). jaxpr and "
        "eqn_count_pprof, for JAX's own representation, have no effect.",
    )  # fmt: skip
    program_rewriters = option(
        "PLUGRT_PROGRAM_REWRITERS", FUNCTIONS, (),
        "Functions that are called with each program and its client before compilation, and may "
        "return another program.",
        launched=True,
    )  # fmt: skip
    lowerings = option(
        "PLUGRT_LOWERINGS", LOWERINGS, (),
        "Functions that replace operations of traced programs on a platform.",
        launched=True,
    )  # fmt: skip
    quick_compile_bytes = option(
        "PLUGRT_QUICK_COMPILE_BYTES", integer(0), 0,
        "XLA's CPU compiler compiles programs of at most this many bytes (as StableHLO artifacts) "
        "without its fusion emitters, in about 0.6 of the time. Results may differ in the last "
        "digits, as in cbrt. 0 means never.",
        launched=True,
    )  # fmt: skip
    enable_compilation_cache = option(
        "JAX_ENABLE_COMPILATION_CACHE", BOOLEAN, True,
        "Whether the persistent compilation cache is used where a folder for it is set.",
    )  # fmt: skip
    compilation_cache_dir = option(
        "JAX_COMPILATION_CACHE_DIR", FOLDER, None,
        "The folder of the persistent compilation cache, writable by you only; unset means there "
        "is none.",
    )  # fmt: skip
    compilation_cache_max_size = option(
        "JAX_COMPILATION_CACHE_MAX_SIZE", integer(-1), -1,
        "The size of all entries in bytes; the least recently used go first; -1 means no bound.",
    )  # fmt: skip
    persistent_cache_min_compile_time_secs = option(
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", number(), 0.01,
        "Programs that compiled faster than this are not kept in the persistent cache. JAX's "
        "default is 1: but a small program takes 25 ms to compile, and 3 to load.",
    )  # fmt: skip
    persistent_cache_min_entry_size_bytes = option(
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", integer(-1), 0,
        "Executables smaller than this are not kept in the persistent cache.",
    )  # fmt: skip
    raise_persistent_cache_errors = option(
        "JAX_RAISE_PERSISTENT_CACHE_ERRORS", BOOLEAN, False,
        "Whether a fault of the persistent cache raises instead of warning.",
    )  # fmt: skip

    core = option(
        "PLUGRT_CORE", choice("c", "python"), None,
        "The implementation of calls of compiled programs: c is the compiled core, python has the "
        "same behaviour in Python. Unset means the core if it is installed. Read once, when plugrt "
        "is first used.",
    )  # fmt: skip

    coordinator_address = option(
        "JAX_COORDINATOR_ADDRESS", TEXT, None,
        "host:port of the coordinator, which `plugrt.distributed.initialize` starts in process 0.",
    )  # fmt: skip
    coordinator_port = option(
        "JAX_COORDINATOR_PORT", integer(1), None,
        "The coordinator's port, if its address is detected instead of given.",
    )  # fmt: skip
    coordinator_bind_address = option(
        "JAX_COORDINATOR_BIND_ADDRESS", TEXT, None,
        "The host:port where the coordinator listens, if it is not its address.",
    )  # fmt: skip
    coordinator_secret = option(
        "PLUGRT_COORDINATOR_SECRET", SECRET, None,
        "A secret that all processes of a run share; if it is set, the coordinator gives an index "
        "to no other process. (JAX has none.)",
    )  # fmt: skip
    num_processes = option(
        "JAX_NUM_PROCESSES", integer(1), None,
        "The number of processes. (In JAX it is an argument only.)",
    )  # fmt: skip
    process_id = option(
        "JAX_PROCESS_ID", integer(0), None,
        "The index of this process. (In JAX it is an argument only.)",
    )  # fmt: skip
    local_device_ids = option(
        "JAX_LOCAL_DEVICE_IDS", INTEGERS, None,
        "The GPUs that this process uses in a run of several processes, by index.",
    )  # fmt: skip
    partition_index = option(
        "JAX_PARTITION_INDEX", integer(0), None,
        "The partition of this process's devices; it is passed to libraries.",
        also="JAX_SLICE_INDEX",
    )  # fmt: skip

    distributed_debug = option(
        "JAX_DISTRIBUTED_DEBUG", BOOLEAN, False,
        "Whether each start of a backend and each launch on several devices is logged as a "
        "warning, with function, devices, process, argument types and executable fingerprint.",
        launched=True,
    )  # fmt: skip

    xla_flags = option(
        "XLA_FLAGS", TEXT, None, "XLA's debug options; read by each library, and shown by doctor."
    )
    libtpu_init_args = option(
        "LIBTPU_INIT_ARGS", TEXT, None, "libtpu's flags; read by that library, shown by doctor."
    )
    tf_cpp_min_log_level = option(
        "TF_CPP_MIN_LOG_LEVEL", integer(0), None,
        "The least severe log line that XLA prints (0 info to 3 fatal); read by each library.",
    )  # fmt: skip
    pjrt_nproc = option(
        "PJRT_NPROC", integer(1), None,
        "The number of threads of XLA's CPU clients; unset means one for each core, and at least "
        "two for each of several devices.",
        at_start=True,
    )  # fmt: skip

    def _make_token(self) -> Token:
        token = super()._make_token()
        token.guarded = any(
            level not in (None, "allow")
            for name, level in token.settings.items()
            if name.startswith("transfer_guard")
        )
        return token


config = Config()
"""The settings of this process."""
