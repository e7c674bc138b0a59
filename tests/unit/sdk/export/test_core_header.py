"""``core/pjrt.h`` and ``core/slots.h`` have cffi's layout (generated: test_core_sources)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plugrt.capi.abi import declarations
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.export import _core
from support.clib import needs_cc

CORE = Path(__file__).parents[4] / "plugin_sdk/core"


def _generator() -> Any:
    sys.path.insert(0, str(CORE))
    try:
        import generate
    finally:
        sys.path.remove(str(CORE))
    return generate


def _structs() -> Iterator[str]:
    """Yields the C name of each struct that the declarations have a layout for."""
    yield "PJRT_Api"
    yield "PJRT_Extension_Base"
    for entry in declarations.entries(declarations.STRUCTS):
        yield f"PJRT_{entry.name}"
    for entry in declarations.functions():
        yield f"struct PJRT_{entry.name}_Args"
    for name, table in declarations.EXTENSIONS.items():
        yield f"PJRT_{name}_Extension"
        for entry in declarations.entries(table):
            yield f"struct PJRT_{entry.name}_Args"


def _members(struct: str) -> list[tuple[str, int]]:
    """Returns the names of a struct's fields, also those in unnamed unions, and cffi's offsets."""
    found = []
    for name, field in ffi.typeof(struct).fields:
        inner = [(name, 0)] if name else [(n, f.offset) for n, f in field.type.fields]
        found += [(member, field.offset + offset) for member, offset in inner]
    return found


def test_the_compiler_lays_structs_out_as_cffi_does() -> None:
    def prefix(name: str) -> str:
        return "struct " if name.endswith("_Args") else ""

    found = _core.struct_sizes()
    assert len(found) > 138
    assert found == {name: ffi.sizeof(prefix(name) + name) for name in found}


@needs_cc
def test_every_field_is_where_the_declarations_have_it(tmp_path: Path) -> None:
    members = {struct: _members(struct) for struct in _structs()}
    lines = [
        f'  printf("%zu\\n", offsetof({struct}, {name}));'
        for struct, fields in members.items()
        for name, _ in fields
    ]
    source = tmp_path / "offsets.c"
    body = "\n".join(lines)
    source.write_text(f'#include <stdio.h>\n#include "pjrt.h"\nint main(void) {{\n{body}\n}}\n')
    subprocess.run(["cc", "-I", CORE, "-O0", "-o", tmp_path / "offsets", source], check=True)
    printed = subprocess.run([tmp_path / "offsets"], capture_output=True, text=True, check=True)
    found = map(int, printed.stdout.split())
    expected = [(s, n, offset) for s, fields in members.items() for n, offset in fields]
    assert len(expected) > 1000
    assert [(s, n, next(found)) for s, n, _ in expected] == expected


def test_the_last_field_that_every_host_has_is_one_of_the_struct() -> None:
    for name, field in _generator().LATER_FIELDS.items():
        assert field in dict(_members(f"struct PJRT_{name}_Args"))
