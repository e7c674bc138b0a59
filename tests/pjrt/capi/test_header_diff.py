"""Our declarations against a header from upstream: the one that the wheel carries."""

from __future__ import annotations

import pytest

from plugrt.capi.abi import declarations
from plugrt.capi.abi.header_diff import compare
from support.requirements import cannot
from support.xla_cpu import header_path


@pytest.fixture(scope="module")
def header() -> str:
    path = header_path()
    if path is None:
        cannot("the wheel xla-cpu-pjrt is not installed")
    return path.read_text()


def test_header_of_the_wheel(header: str) -> None:
    diff = compare(header)
    assert diff.version == (0, 81)
    assert diff.conflicts == []
    assert diff.added == []
    # Just what came after 0.81, by the minors that the declarations state.
    newer = {f"function {f.name!r} of PJRT_Api" for f in declarations.functions() if f.since > 81}
    assert {line for line in diff.older if line.startswith("function")} == newer
    field = "field 'LoadOptions*load_options' of PJRT_Executable_DeserializeAndLoad_Args"
    assert field in diff.older


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("_PJRT_API_STRUCT_FIELD(PJRT_Event_Await);", "", "function 8 is 'Event_OnReady'"),
        ("int process_index;", "int64_t process_index;", "field 1 is 'int64_t process_index'"),
        ("PJRT_Buffer_Type_S16,", "", "PJRT_Buffer_Type: enumerator 3 is 'S32'"),
        ("PJRT_Device* dst_device;", "int x; PJRT_Device* dst_device;", "field 1 is 'int x'"),
    ],
)
def test_change_that_breaks_is_a_conflict(header: str, old: str, new: str, message: str) -> None:
    assert old in header
    conflicts = compare(header.replace(old, new)).conflicts
    assert any(message in line for line in conflicts), conflicts


def test_addition_is_no_conflict(header: str) -> None:
    changed = header.replace(
        "  PJRT_Buffer* dst_buffer;  // out\n};",
        "  PJRT_Buffer* dst_buffer;  // out\n  int colour;\n};\nstruct PJRT_New_Args { int a; };",
        1,
    )
    assert changed != header
    diff = compare(changed)
    assert diff.conflicts == []
    assert any(line.startswith("field 'int colour' of PJRT_Buffer") for line in diff.added)
    assert "struct PJRT_New_Args" in diff.added


@pytest.mark.parametrize("text", ["", "int main(void) { return 0; }", "#define PJRT_API_MINOR 3"])
def test_text_that_is_no_header(text: str) -> None:
    with pytest.raises(ValueError, match=r"this is no pjrt_c_api\.h"):
        compare(text)
