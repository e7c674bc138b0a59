"""`declared_api`: the version of the PJRT C API that plugrt's own declarations describe."""

from __future__ import annotations

from plugrt.capi.abi import declarations
from plugrt.capi.abi.generate import cdef
from plugrt_sdk.abi.api import Api
from plugrt_sdk.abi.header import parse_header


def declared_api() -> Api:
    """Returns it as a header of it would be read; upstream's types of enumerations included."""
    version = f"#define PJRT_API_MAJOR {declarations.API_MAJOR}\n"
    version += f"#define PJRT_API_MINOR {declarations.API_MINOR}\n"
    enums = (
        f"typedef enum {{ {', '.join(f'PJRT_{name}_{value}' for value in values)} }} PJRT_{name};"
        for name, values in declarations.ENUMS.items()
    )
    return parse_header("\n".join((version, cdef(), *enums)), "plugrt's declarations")
