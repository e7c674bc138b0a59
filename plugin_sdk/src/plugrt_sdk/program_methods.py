"""`ProgramMethods`: the optional methods of a backend for programs and launches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from plugrt.interface import (
    CompileOptions,
    DeviceDescription,
    Handler,
    MemoryAnalysis,
    OptionValue,
    Program,
    TensorType,
)
from plugrt_sdk.compiled import Compiled, Launch
from plugrt_sdk.optional import refuse_left_out


class ProgramMethods:
    """Optional methods of `Backend`: overriding one declares a capability, which hosts then use.

    A method that is not overridden is never called.
    """

    def replicas(self) -> int:
        """Returns the most replicas that a launch can have (``multiple_devices``).

        Called once, when the client is made. Without this method `compile` receives only programs
        with one replica, and ``pmap`` over several devices raises `Unimplemented`.
        """
        return 1

    def partitions(self) -> int:
        """Returns the most partitions that a launch can have (``partitions``).

        Called once, when the client is made. A program of several partitions states how its arrays
        are divided by shardings (``sdy`` or ``mhlo.sharding``), or is written for the parts.
        Without it a ``jit`` over arrays that are sharded over several devices is `Unimplemented`.
        """
        return 1

    def collectives(self) -> Collection[str]:
        """Returns the StableHLO collectives that `compile` accepts, such as ``{"all_reduce"}``.

        Called once, when the client is made (``collectives``). Without this method, hosts assume
        that the devices of a launch exchange no data.
        """
        refuse_left_out(self, "collectives")

    def chosen_shardings(self, compiled: Compiled) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """Returns the sharding of each parameter and each result, serialised ``xla.OpSharding``.

        Overriding it declares that `compile` chooses the shardings of arguments if
        ``options.use_auto_spmd_partitioning`` is set, over the mesh in the options
        (``auto_partitioning``): hosts then call this method and shard the arguments accordingly.
        Also called for other programs with several partitions.
        """
        refuse_left_out(self, "chosen_shardings")

    def device_types(
        self, program: Program, options: CompileOptions
    ) -> tuple[Sequence[TensorType], Sequence[TensorType]] | None:
        """Returns the types of a program's parameters and results on one device, or None.

        Called for programs of several partitions: ``main`` has the types of whole arrays, and each
        device has a part. None, the default, means the types of ``main``.
        """
        return None

    def register_handler(self, target: str, handler: Handler) -> None:
        """Makes programs that are compiled from now on call ``handler`` for a custom call.

        Overriding it declares ``custom_calls`` and ``host_callbacks``. A call to ``target`` with
        ``api_version = 4`` is ``handler(arguments, results, attributes)``: NumPy arrays that are
        row-major, arrays of the results' types, which it fills, and the values in
        ``backend_config``, with numbers as NumPy scalars. Arguments and results exclude tokens; the
        calls run in their order. An exception becomes the launch's error. Without this method, only
        custom calls that the backend itself implements work, and programs that call Python raise
        `Unimplemented`.

        Handlers in C may have stages and state: call the result of
        ``plugrt_sdk.instantiate(handler, attributes)``, made once for each custom call of a
        program. A handler with stages that is called directly raises `Unimplemented`.
        """
        refuse_left_out(self, "register_handler")

    def unregister_handler(self, target: str) -> None:
        """Forgets the handler of a target for programs that are compiled from now on.

        Programs that were compiled before keep it. Raise `NotFound` where there is none. Without
        this method handlers stay as long as the backend.
        """
        refuse_left_out(self, "unregister_handler")

    def donated(self, program: Program, options: CompileOptions) -> Collection[int]:
        """Returns the parameters whose handles launches may consume (``donation``).

        Usually ``read_aliases(program)``: the parameters that the program donates. Launches then
        receive a second argument, the frozenset of the parameters that this launch may consume:
        nothing else uses their handles, so you may reuse, overwrite or free the memory; `delete` is
        not called for them. Other donated handles are deleted when they are no longer used. A
        launch that raises has consumed nothing. Without this method donated arguments stay valid.
        """
        refuse_left_out(self, "donated")

    def serialize(self, compiled: Compiled) -> bytes:
        """Returns the bytes that `deserialize` needs.

        The SDK also stores the program and the options.

        Overriding both declares ``executable_serialization``: hosts then keep executables between
        runs (plugrt's and JAX's compilation caches). `SavesPrograms` is a base class that stores
        nothing and compiles again. Without these methods every process compiles.
        """
        refuse_left_out(self, "serialize")

    def deserialize(self, content: bytes, program: Program, options: CompileOptions) -> Launch:
        """Returns the launch of a saved program; the bytes are complete and of this `version`.

        ``options.device_assignment`` may name other devices than those that it was compiled for.
        """
        refuse_left_out(self, "deserialize")

    def topologies(
        self, name: str, options: Mapping[str, OptionValue]
    ) -> Sequence[DeviceDescription]:
        """Returns the devices of the topology of that name, present or not (``topology``).

        Called on a backend without a call of `devices`. `compile` then receives programs for these
        devices (``options.device_assignment`` has their ids), and the executables that `serialize`
        saves are loaded on a machine with the devices. Raise `InvalidArgument` for an unknown name.
        Without this method, programs are compiled only on a machine with the devices.
        """
        refuse_left_out(self, "topologies")

    def cost_analysis(self, compiled: Compiled) -> Mapping[str, OptionValue]:
        """Returns ``flops``, ``bytes accessed`` and other figures of a launch (``cost_analysis``).

        Called by ``Compiled.cost_analysis()`` of plugrt and JAX, which raises `Unimplemented`
        without this method.
        """
        refuse_left_out(self, "cost_analysis")

    def memory_analysis(self, compiled: Compiled) -> MemoryAnalysis:
        """Returns the bytes that a launch needs, on one device (``memory_analysis``).

        Called by ``Compiled.memory_analysis()`` of plugrt and JAX, which raises `Unimplemented`
        without this method.
        """
        refuse_left_out(self, "memory_analysis")

    def optimized_program(self, compiled: Compiled) -> Program:
        """Returns the program that is run, after your optimisation (``optimized_program``).

        Any format is allowed; hosts can show StableHLO (``mlir``) and HLO. Called by ``as_text()``
        of plugrt and JAX, which raises `Unimplemented` without this method.
        """
        refuse_left_out(self, "optimized_program")
