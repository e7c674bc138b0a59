"""`BackendObject`: the base of the interface's classes, and their attributes as in JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from plugrt.errors import Unimplemented

OF_DEVICES: Mapping[str, str] = {
    "live_buffers": "plugrt.live_arrays() has the arrays of a platform",
    "poison_execution": "no launch can be made to fail from outside",
}
OF_CLIENTS: Mapping[str, str] = {
    "compile_and_load": "it is client.compile(program, options)",
    "defragment": "no backend here moves the arrays that live",
    "get_default_layout": "it is client.default_layout(type), of a plugrt.interface.TensorType",
    "heap_profile": "it is plugrt.profiler.device_memory_profile()",
    "live_arrays": "it is plugrt.live_arrays()",
    "live_buffers": "it is plugrt.live_arrays()",
    "live_executables": "compiled functions are the caller's: plugrt.jit(f).lower(x).compile()",
    "make_python_callback_from_host_send_and_recv": "it is plugrt.pure_callback",
    "runtime_type": "client.platform_version describes the runtime",
    "serialize_executable": "it is executable.executable.serialize()",
    **dict.fromkeys(
        ("compile_ifrt_program", "compile_and_load_ifrt_program"),
        "there is no IFRT here: client.compile takes programs of PJRT's formats",
    ),
    **dict.fromkeys(
        ("dma_map", "dma_unmap", "unsafe_client_pointer"),
        "addresses of the library's own are not given out",
    ),
}
"""Names that JAX's objects have besides, to a hint."""


def find_attribute(owner: Any, name: str, hints: Mapping[str, str]) -> Any:
    """Returns the fact of that name in an object's ``attributes``.

    Raises AttributeError with a hint where the backend does not state it.
    """
    # A property that raises AttributeError comes here, too: `attributes` would without end.
    stated = {} if name.startswith("_") or name == "attributes" else owner.attributes
    if name in stated:
        return stated[name]
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if name in hints:
        text = f"{text}: {hints[name]}"
    elif not name.startswith("_"):
        facts = ", ".join(sorted(stated)) or "none"
        text = f"{text}, and {owner.backend_name} states no such fact (its attributes: {facts})"
    raise AttributeError(text, name=name, obj=owner)


class BackendObject:
    """Mixin of the classes below, whose optional methods raise `Unimplemented`."""

    __slots__ = ()

    @property
    def backend_name(self) -> str:
        """The name of the backend for error messages: platform and class."""
        return f"{type(self).__module__.split('.')[0]}.{type(self).__name__}"

    def _unimplemented(self, what: str) -> NoReturn:
        raise Unimplemented(f"{what} is not implemented by the backend {self.backend_name}")
