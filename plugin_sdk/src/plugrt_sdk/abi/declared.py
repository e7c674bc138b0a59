"""`declared_api`: the version of the PJRT C API, or of an extension, that plugrt declares."""

from __future__ import annotations

from plugrt.capi.abi import declarations
from plugrt.capi.abi.generate import cdef
from plugrt.errors import InvalidArgument
from plugrt_sdk.abi.api import Api
from plugrt_sdk.abi.header import parse_header


def declared_api(extension: str = "") -> Api:
    """Returns plugrt's declarations in the form of `read_header`.

    Enumerations have upstream's types. ``extension`` is the name of an extension's table, such as
    PJRT_Layouts_Extension. Raises `InvalidArgument` for an undeclared one.
    """
    text = cdef()
    if extension and f"}} {extension};" not in text:
        raise InvalidArgument(
            f"plugrt does not declare {extension}; name two versions of its header to compare them"
        )
    version = f"#define PJRT_API_MAJOR {declarations.API_MAJOR}\n"
    version += f"#define PJRT_API_MINOR {declarations.API_MINOR}\n"
    enums = (
        f"typedef enum {{ {', '.join(f'PJRT_{name}_{value}' for value in values)} }} PJRT_{name};"
        for name, values in declarations.ENUMS.items()
    )
    whole = "\n".join((version, text, *enums))
    api = parse_header(whole, "plugrt's declarations", extension)
    if extension:  # the header of an extension omits structs of the API
        shared = parse_header(whole, "").restrict()
        api.structs = {k: v for k, v in api.structs.items() if k not in shared.structs}
        api.enums = {k: v for k, v in api.enums.items() if k not in shared.enums}
    return api
