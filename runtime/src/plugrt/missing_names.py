"""`missing_name`: the error for names of JAX that plugrt lacks, with their replacement."""

from __future__ import annotations

_TRANSFORMED = (
    "plugrt runs programs and does not transform them. JAX does, and what it has transformed runs "
    "here: plugrt.from_jax(jax.{name}(f))(x)"
)
_RULE = (
    "plugrt has no differentiation that a rule could be given to. JAX has: "
    "plugrt.from_jax(jax.grad(f)) heeds the rules of jax.{name}"
)
_LEAKS = "a traced array that is used after its trace raises plugrt.errors.LeakedTracer, always"
_NO_SUCH_SETTING = "it is a setting of JAX's without a counterpart here"
_HOMES = {
    "interface": ("Client", "CompileOptions", "Device", "DeviceAssignment", "Memory"),
    "layout": ("Format", "Layout"),
    "memory": ("Space",),
    "sharding": (
        "AUTO", "AbstractMesh", "AxisType", "GSPMDSharding", "ManualAxisType", "Mesh",
        "NamedSharding", "PartitionSpec", "PmapSharding", "PositionalSharding", "Sharding",
        "SingleDeviceSharding", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
        "make_single_device_sharding", "reshard", "use_abstract_mesh", "use_mesh",
    ),
}  # fmt: skip
"""Module to its names that are looked for in ``plugrt``. A list, as each import of a module of
plugrt's comes here: it may import nothing."""
INSTEAD = {
    **{name: f"it is plugrt.{home}.{name}" for home, names in _HOMES.items() for name in names},
    "AbstractDevice": "an AbstractMesh has axes alone; lower(lowering_platforms=...) names the "
    "platform of devices that are not here",
    "Shard": "it is what the addressable_shards of an array hold: device, index and data",
    "P": "it is plugrt.sharding.PartitionSpec",
    "ad": _TRANSFORMED.replace("jax.{name}", "jax.grad"),
    "check_tracer_leaks": _LEAKS,
    "checking_leaks": _LEAKS,
    "checkpoint_policies": "policies are for JAX's gradients: plugrt.from_jax(jax.grad(f)) heeds "
    "those of jax.checkpoint",
    "closure_convert": "functions may close over arrays and traced values as they are",
    "core": "there is no jaxpr; plugrt.jit(f).lower(x).as_text() shows the StableHLO module",
    "custom_batching": _RULE.replace("differentiation", "batching").replace("jax.grad", "jax.vmap"),
    "custom_derivatives": _RULE,
    "custom_gradient": _RULE,
    "custom_jvp": _RULE,
    "custom_vjp": _RULE,
    "default_matmul_precision": "it is a setting: "
    "plugrt.config.override(default_matmul_precision='high')",
    "dlpack": "it is plugrt.array_api.from_dlpack(x); arrays have __dlpack__",
    "ds": "it is a slice: x[start : start + size], or plugrt.lax.dynamic_slice_in_dim",
    "dtypes": "they are in plugrt.array_api, as NumPy's and ml_dtypes' are",
    "ensure_compile_time_eval": "what does not depend on traced arrays is computed with NumPy",
    "experimental": "what is here of it has names of its own, such as plugrt.io_callback, "
    "plugrt.serialize_executable and plugrt.shard_map",
    "float0": "it is a dtype of JAX's gradients, of which plugrt.device_put takes arrays",
    "image": "write them with plugrt.array_api, or take JAX's in a function for plugrt.from_jax",
    "enable_x64": "it is a setting: plugrt.config.override(enable_x64=True)",
    "eval_shape": "it is plugrt.jit(f).eval_shape(x)",
    "extend": "plugrt.interface and plugrt.plugins have what extensions of JAX use of backends",
    "explain_cache_misses": "it is a setting: plugrt.config.override(explain_cache_misses=True)",
    "host_count": "it is plugrt.process_count",
    "host_id": "it is plugrt.process_index",
    "host_ids": "it is plugrt.process_indices",
    "interpreters": "there is no jaxpr; plugrt.jit(f).lower(x).as_text() shows the StableHLO "
    "module",
    "lib": "plugrt.interface has the classes of backends, clients and devices",
    "live_devices": "a run has the same processes to its end: plugrt.errors.ProcessLost names one "
    "that has ended",
    "make_user_context": "what a function depends on is an argument: "
    "plugrt.jit(f, static_argnames='context')",
    "named_call": "programs carry the lines of the functions that they came of; "
    "plugrt.profiler.annotate names what a thread does in traces",
    "ops": "segment_sum is written x.at[indices].add(values); others with plugrt.lax",
    "softmax_custom_jvp": _NO_SUCH_SETTING,
    "stages": "the stages are what plugrt.jit(f).trace(x), .lower(x) and .compile() return",
    "version": "it is plugrt.__version__",
    "jnp": "plugrt.array_api has the functions of the Python array API standard",
    "make_jaxpr": "there is no jaxpr; plugrt.jit(f).lower(x).as_text() shows the StableHLO module",
    "nn": "write them with plugrt.array_api and plugrt.lax",
    "numpy": "plugrt.array_api has the functions of the Python array API standard",
    "named_scope": "plugrt.profiler.annotate names what a thread does in traces; programs carry "
    "the lines of the functions that they came of",
    "print_environment_info": "the command `plugrt doctor` prints it",
    "reached_preemption_sync_point": "no process is told that it will be stopped: save the state "
    "of a run every few steps",
    "replicate": "plugrt.device_put(x, NamedSharding(mesh, PartitionSpec())) puts x on each device "
    "of a mesh, plugrt.device_put_replicated(x, devices) along a new dimension, for "
    "pmap, as flax.jax_utils.replicate; shardings of plugrt.sharding.PositionalSharding have "
    "replicate",
    "scipy": "SciPy's own functions take many arrays of plugrt's, through the array API standard",
    "tree_leaves": "it is plugrt.tree.leaves",
    "tree_map": "it is plugrt.tree.map",
    "tree_util": "plugrt.tree has functions on pytrees",
    **dict.fromkeys(
        ("checkpoint", "fwd_and_bwd", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp",
         "linear_transpose", "linearize", "remat", "value_and_grad", "vjp", "vmap"), _TRANSFORMED),
    **dict.fromkeys(
        ("allow_f16_reductions", "api_util", "array_garbage_collection_guard", "debug_key_reuse",
         "enable_checks", "jax2tf_associative_scan_reductions", "no_execution", "no_tracing",
         "numpy_dtype_promotion", "numpy_rank_promotion", "thread_guard"), _NO_SUCH_SETTING),
    **dict.fromkeys(
        ("default_prng_impl", "enable_custom_prng", "legacy_prng_key", "threefry_partitionable"),
        "keys are threefry2x32, as plugrt.random.key makes them"),
    **dict.fromkeys(("auto_pcast", "remove_size_one_mesh_axis_from_type"), _NO_SUCH_SETTING),
    **dict.fromkeys(
        ("Ref", "empty_ref", "free_ref", "freeze", "new_ref", "ref"),
        "arrays do not change: x.at[i].set(y) returns a new one"),
}  # fmt: skip


def missing_name(name: str, module: str = "plugrt") -> str:
    """Returns the message of the AttributeError for a name that a module of plugrt lacks."""
    text = f"module {module!r} has no attribute {name!r}"
    instead = INSTEAD.get(name)
    return text if instead is None else f"{text}: {instead.format(name=name)}"
