"""`capabilities_of`: a backend's capabilities, as hosts read them."""

from __future__ import annotations

from typing import Any

from plugrt.interface import Capabilities
from plugrt_sdk.declaration import FIELDS
from plugrt_sdk.session import Session


def capabilities_of(session: Session) -> Capabilities:
    """Returns the capabilities that a backend declares by the methods that it overrides.

    ``fingerprint`` is always included: the SDK computes it from program, options and version.
    """
    methods = session.methods
    declared: dict[str, Any] = {field: method in methods for method, field in FIELDS.items()}
    several = session.replicas > 1 or session.partitions > 1
    return Capabilities(
        **declared,
        host_callbacks="register_handler" in methods,
        fingerprint=True,
        executable_serialization={"serialize", "deserialize"} <= methods,
        layout_put="put_in_layout" in methods,
        zero_copy_get="view" in methods,
        dlpack="view" in methods,
        unsafe_pointer=not methods.isdisjoint(("view", "pointer")),
        multiple_devices=several,
        partitions=session.partitions > 1,
        collectives=several and "collectives" in methods,
        tuple_arguments_above=session.backend.tuple_arguments_above,
        stablehlo_current_version=session.backend.stablehlo_version,
        dtypes=frozenset(dtype.name for dtype in session.dtypes or ()),
    )
