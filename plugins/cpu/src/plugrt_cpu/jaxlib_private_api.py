"""The private names of jaxlib that this package uses."""

from __future__ import annotations

from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt_cpu.jaxlib_import import import_jaxlib

PRIVATE_NAMES = (
    "_hlo.HloSharding.replicate",
    "_hlo.XlaComputation.program_shape",
    "_jax.ArrayCopySemantics.ALWAYS_COPY",
    "_jax.ArrayImpl._arrays",
    "_jax.ArrayImpl._sharding",
    "_jax.ArrayImpl._single_device_array_to_np_array_did_copy",
    "_jax.ArrayImpl.block_until_ready",
    "_jax.ArrayImpl.clone",
    "_jax.ArrayImpl.delete",
    "_jax.ArrayImpl.is_deleted",
    "_jax.ArrayImpl.is_ready",
    "_jax.ArrayImpl.on_device_size_in_bytes",
    "_jax.ArrayImpl.unsafe_buffer_pointer",
    "_jax.Client.compile_and_load",
    "_jax.Client.deserialize_executable",
    "_jax.Client.devices",
    "_jax.Client.process_index",
    "_jax.Client.serialize_executable",
    "_jax.CompileOptions.ParseFromString",
    "_jax.CompileOptions.SerializeAsString",
    "_jax.CompileOptions.compile_portable_executable",
    "_jax.CompileOptions.device_assignment",
    "_jax.CompileOptions.env_option_overrides",
    "_jax.CompileOptions.executable_build_options",
    "_jax.CompileOptions.num_partitions",
    "_jax.CompileOptions.num_replicas",
    "_jax.CompileOptions.parameter_is_tupled_arguments",
    "_jax.Device.addressable_memories",
    "_jax.Device.client",
    "_jax.Device.default_memory",
    "_jax.Device.device_kind",
    "_jax.Device.id",
    "_jax.Device.local_hardware_id",
    "_jax.Device.process_index",
    "_jax.DeviceAssignment.create",
    "_jax.DeviceList",
    "_jax.DeviceList.__getitem__",
    "_jax.ExecutableBuildOptions.device_assignment",
    "_jax.ExecutableBuildOptions.num_partitions",
    "_jax.ExecutableBuildOptions.num_replicas",
    "_jax.ExecutableBuildOptions.use_shardy_partitioner",
    "_jax.ExecutableBuildOptions.use_spmd_partitioning",
    "_jax.ExecuteResults.consume_token",
    "_jax.ExecuteResults.consume_with_handlers",
    "_jax.GSPMDSharding",
    "_jax.GSPMDSharding._internal_device_list",
    "_jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL",
    "_jax.HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES",
    "_jax.HostBufferSemantics.ZERO_COPY",
    "_jax.JaxRuntimeError",
    "_jax.LoadedExecutable.cost_analysis",
    "_jax.LoadedExecutable.execute_sharded",
    "_jax.LoadedExecutable.fingerprint",
    "_jax.LoadedExecutable.get_compiled_memory_stats",
    "_jax.LoadedExecutable.get_output_memory_kinds",
    "_jax.LoadedExecutable.hlo_modules",
    "_jax.LoadedExecutable.size_of_generated_code_in_bytes",
    "_jax.Memory.kind",
    "_jax.MpiCollectives.Finalize",
    "_jax.MpiCollectives.Init",
    "_jax.ShardedToken.block_until_ready",
    "_jax.SingleDeviceSharding",
    "_jax.SingleDeviceSharding._internal_device_list",
    "_jax.array_result_handler",
    "_jax.batched_block_until_ready",
    "_jax.batched_copy_array_to_devices_with_sharding",
    "_jax.batched_device_put",
    "_jax.buffer_to_dlpack_managed_tensor",
    "_jax.collect_garbage",
    "_jax.dlpack_managed_tensor_to_buffer",
    "_jax.DistributedRuntimeClient.blocking_key_value_get_bytes",
    "_jax.DistributedRuntimeClient.connect",
    "_jax.DistributedRuntimeClient.get_live_nodes",
    "_jax.DistributedRuntimeClient.key_value_delete",
    "_jax.DistributedRuntimeClient.key_value_set_bytes",
    "_jax.DistributedRuntimeClient.key_value_try_get_bytes",
    "_jax.DistributedRuntimeClient.shutdown",
    "_jax.DistributedRuntimeClient.wait_at_barrier",
    "_jax.get_distributed_runtime_client",
    "_jax.get_distributed_runtime_service",
    "_jax.get_tfrt_cpu_client",
    "_jax.make_gloo_tcp_collectives",
    "_jax.make_mpi_collectives",
    "_jax.make_transfer_server_interface_factory",
    "_jax.mlir.hlo_to_stablehlo",
    "_jax.register_custom_call_as_batch_partitionable",
    "_jax.register_custom_call_target",
    "_jax.register_custom_type",
    "_jax.set_tracebacks_enabled",
    "_jax.tracebacks_enabled",
    "_profiler.ProfileOptions",
    "_profiler.ProfilerSession.stop",
    "_profiler.TraceMe.is_enabled",
    "lapack.batch_partitionable_targets",
    "lapack.prepare_lapack_call",
    "lapack.registrations",
)
"""Every private name of jaxlib used here; ``_hlo`` is the second module of `import_jaxlib`."""


def missing_names() -> list[str]:
    """Returns those that the installed jaxlib lacks."""
    client, hlo = import_jaxlib()
    lapack, profiler = import_native("jaxlib.lapack", "jaxlib._profiler")
    modules = {"_jax": client, "_hlo": hlo, "_profiler": profiler, "lapack": lapack}
    missing = []
    for name in PRIVATE_NAMES:
        module, *attributes = name.split(".")
        found: object = modules[module]
        for attribute in attributes:
            found = getattr(found, attribute, None)
        if found is None:
            missing.append(f"jaxlib.{name}")
    return missing
