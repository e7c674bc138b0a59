"""AbiVersion: checks an executable's compatibility with a runtime before loading it."""

from __future__ import annotations

from plugrt.capi.abi import c_values
from plugrt.capi.loading.library import Library
from plugrt.errors import PjrtError, Unimplemented

_PROTO = ("serialized_proto", "serialized_proto_holder", "serialized_proto_deleter")


def executable_abi(library: Library, executable: object) -> bytes | None:
    """Returns the ABI version of a ``PJRT_Executable*``, None where the library states none."""
    try:
        table = library.extension("AbiVersion")
        version = table.call("Executable_GetAbiVersion", executable=executable).abi_version
    except Unimplemented:
        return None
    try:
        args = table.call("ExecutableAbiVersion_ToProto", abi_version=version)
        return table.owned_bytes(args, *_PROTO)
    finally:
        table.dispose("ExecutableAbiVersion_Destroy", "abi_version", version)


def why_incompatible(library: Library, client: object, abi: bytes) -> str | None:
    """Returns why an executable of that ABI version does not fit a ``PJRT_Client*``.

    None means that it fits; `Unimplemented` means that the library does not know.
    """
    table = library.extension("AbiVersion")
    runtime = table.call("Client_RuntimeAbiVersion", client=client).abi_version
    try:
        content, size = c_values.chars(abi)
        made = table.call(
            "ExecutableAbiVersion_FromProto",
            serialized_proto=content,
            serialized_proto_size=size,
        )
        try:
            table.call(
                "RuntimeAbiVersion_IsCompatibleWithExecutable",
                abi_version=runtime,
                executable_abi_version=made.abi_version,
            )
        except Unimplemented:
            raise
        except PjrtError as error:
            return error.message
        finally:
            table.dispose("ExecutableAbiVersion_Destroy", "abi_version", made.abi_version)
    finally:
        table.dispose("RuntimeAbiVersion_Destroy", "abi_version", runtime)
    return None
