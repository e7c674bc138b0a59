"""The declarations are consistent, and the committed module is generated from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugrt.capi.abi import declarations, generate
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.structs import new_struct, struct_type
from plugrt.capi.loading.extension_chain import EXTENSION_NAMES
from plugrt.capi.loading.library import OLDEST_MINOR
from support.clib import compile_c, needs_cc
from support.markdown import load_script


def test_committed_module_is_generated(tmp_path: Path) -> None:
    made = tmp_path / "_abi.py"
    generate.generate(made)
    assert made.read_bytes() == generate.TARGET.read_bytes(), (
        "run python -m plugrt.capi.abi.generate"
    )


def test_slots_are_contiguous() -> None:
    functions = declarations.functions()
    assert [f.slot for f in functions] == list(range(1, 139))
    assert len({f.name for f in functions}) == 138


def test_later_slots_came_later() -> None:
    since = [f.since for f in declarations.functions()]
    assert all(s == 0 for s in since[:90])
    assert all(29 <= s <= declarations.API_MINOR for s in since[90:])


def test_size_of_the_newest_table() -> None:
    assert ffi.sizeof("PJRT_Api") == 1144


def test_names_shared_by_tables_and_chain() -> None:
    assert declarations.ENUMS["Extension_Type"] == EXTENSION_NAMES
    assert OLDEST_MINOR == declarations.OLDEST_MINOR


@pytest.mark.parametrize("table", ["no slot at all", "1 Name fields", "x Name: int a"])
def test_malformed_entry(table: str) -> None:
    with pytest.raises(ValueError, match="cannot read the declaration"):
        list(declarations.entries(table))


def test_entry_with_everything() -> None:
    (entry,) = declarations.entries("7@50 !void Name: int a; =void (*del)(int x);\n  =T* b")
    assert entry.name == "Name"
    assert entry.fields == ("int a", "void (*del)(int x)", "T* b")
    assert entry.outputs == {"del", "b"}
    assert (entry.slot, entry.since, entry.header, entry.returns_error) == (7, 50, 1, False)


def test_stated_size_ends_with_the_last_field() -> None:
    # Event_IsReady ends with a bool: C pads the struct, PJRT's size excludes the padding.
    name = "struct PJRT_Event_IsReady_Args"
    assert struct_type(name)[1] == 25 < ffi.sizeof(name)
    assert new_struct(name).struct_size == 25


@needs_cc
def test_cffi_and_the_c_compiler_agree(tmp_path: Path) -> None:
    """Every struct has the same size and offsets in C as in the module."""
    import ctypes

    structs = [f"struct PJRT_{f.name}_Args" for f in declarations.functions()]
    structs += ["PJRT_Api", "PJRT_NamedValue", "PJRT_ExecuteOptions", "PJRT_Buffer_MemoryLayout"]
    structs += [f"PJRT_{name}_Extension" for name in declarations.EXTENSIONS]
    rows, expected = [], []
    for struct in structs:
        rows.append(f"sizeof({struct})")
        expected.append(ffi.sizeof(struct))
        for field, info in ffi.typeof(struct).fields:
            if field:
                rows.append(f"offsetof({struct}, {field})")
                expected.append(info.offset)
    header = "#include <stddef.h>\n#include <stdint.h>\n#include <stdbool.h>\n" + generate.cdef()
    source = f"{header}\nsize_t n = {len(rows)}; size_t values[] = {{{', '.join(rows)}}};"
    library = ctypes.CDLL(str(compile_c(tmp_path, source)))
    found = list((ctypes.c_size_t * len(rows)).in_dll(library, "values"))
    assert [r for r, a, b in zip(rows, found, expected, strict=True) if a != b] == []


def test_coverage_page_is_up_to_date() -> None:
    generator = load_script("docs/generate/capi_coverage.py")
    page = generator.page()
    assert page == generator.PAGE.read_text(), "run python docs/generate/capi_coverage.py"
    used = generator.uses()
    assert [name for name in generator.WHY_NOT if name in used] == []
