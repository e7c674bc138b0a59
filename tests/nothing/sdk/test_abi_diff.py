"""``plugrt abi diff``: changes of the header that plugrt generates, one of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plugrt.errors import InvalidArgument
from plugrt_sdk.abi.command import abi
from plugrt_sdk.abi.declared import declared_api
from plugrt_sdk.abi.difference import Change, compare
from plugrt_sdk.abi.header import parse_header, read_header
from support.xla_cpu import header_path, needs_library

HEADER = Path(__file__).parents[3] / "plugin_sdk/core/pjrt.h"
TEXT = HEADER.read_text()
RAISED = ("#define PJRT_API_MINOR 114", "#define PJRT_API_MINOR 115")
AWAIT = "  PJRT_Error* (*Event_Await)(struct PJRT_Event_Await_Args*);\n"
ERROR = "  PJRT_Error* (*Event_Error)(struct PJRT_Event_Error_Args*);\n"
LAST = (
    "  PJRT_Error* (*TopologyDescription_GetMemorySpaceKindIds)"
    "(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args*);\n"
)
READY = "PJRT_Event* event; uint8_t is_ready; };"
LAST_STATE = "PJRT_ProcessState_kError }"
NEW_STRUCT = "struct PJRT_Thing_Args { size_t struct_size; int thing; };\n"
NEW_SLOT = "  PJRT_Error* (*Thing)(struct PJRT_Thing_Args*);\n"


def changed(*replacements: tuple[str, str]) -> str:
    """Returns our header of the next minor version, with these replacements."""
    text = TEXT
    for old, new in (RAISED, *replacements):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def differences(text: str) -> list[Change]:
    found = compare(parse_header(TEXT, "old"), parse_header(text, "new"))
    return [change for change in found if change.what != "version"]


CASES = {
    "a function at the end": (
        ((LAST, LAST + NEW_SLOT),),
        Change("added", "function", "PJRT_Thing", "at place 139", False),
    ),
    "a function in the middle": (
        ((AWAIT, NEW_SLOT + AWAIT),),
        Change(
            "inserted", "function", "PJRT_Thing",
            "is at place 9; the 130 behind it have another place", True,
        ),
    ),
    "no function": (
        ((AWAIT, ""),),
        Change(
            "removed", "function", "PJRT_Event_Await",
            "was at place 9; the 129 behind it have another place", True,
        ),
    ),
    "two functions in another order": (
        ((ERROR, ""), (AWAIT, AWAIT + ERROR)),
        Change("moved", "function", "PJRT_Event_Error", "from place 8 to 9", True),
    ),
    "a function with another result": (
        ((AWAIT, AWAIT.replace("PJRT_Error*", "void", 1)),),
        Change(
            "type", "function", "PJRT_Event_Await",
            "from PJRT_Error*(PJRT_Event_Await_Args*) to void(PJRT_Event_Await_Args*)", True,
        ),
    ),
    "a field at the end": (
        ((READY, "PJRT_Event* event; uint8_t is_ready; int why; };"),),
        Change("added", "field", "PJRT_Event_IsReady_Args.why", "at place 5", False),
    ),
    "a field in the middle": (
        ((READY, "PJRT_Event* event; int why; uint8_t is_ready; };"),),
        Change(
            "inserted", "field", "PJRT_Event_IsReady_Args.why",
            "is at place 4; the 1 behind it have another place", True,
        ),
    ),
    "no field": (
        ((READY, "PJRT_Event* event; };"),),
        Change("removed", "field", "PJRT_Event_IsReady_Args.is_ready", "was at place 4", True),
    ),
    "a field of another type": (
        ((READY, "PJRT_Event* event; int is_ready; };"),),
        Change("type", "field", "PJRT_Event_IsReady_Args.is_ready", "from uint8_t to int", True),
    ),
    "a field of another name": (
        ((READY, "PJRT_Event* event; uint8_t ready; };"),),
        Change("renamed", "field", "PJRT_Event_IsReady_Args.is_ready", "to ready", False),
    ),
    "a callback of another type": (
        (("typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error* error,",
          "typedef int (*PJRT_Event_OnReadyCallback)(PJRT_Error* error,"),),
        Change(
            "type", "callback", "PJRT_Event_OnReadyCallback",
            "from void(PJRT_Error*,void*) to int(PJRT_Error*,void*)", True,
        ),
    ),
    "an enumerator at the end": (
        ((LAST_STATE, "PJRT_ProcessState_kError, PJRT_ProcessState_Late }"),),
        Change("added", "enumerator", "PJRT_ProcessState.Late", "is 5", False),
    ),
    "an enumerator with the value of another": (
        ((LAST_STATE, "PJRT_ProcessState_kError, PJRT_ProcessState_L = 0 }"),),
        Change("added", "enumerator", "PJRT_ProcessState.L", "is 0, which was kUnspecified", True),
    ),
    "an enumerator of another name": (
        ((LAST_STATE, "PJRT_ProcessState_Fatal }"),),
        Change("renamed", "enumerator", "PJRT_ProcessState.kError", "to Fatal", False),
    ),
    "an enumerator with another value": (
        ((LAST_STATE, "PJRT_ProcessState_kError = 7 }"),),
        Change("value", "enumerator", "PJRT_ProcessState.kError", "from 4 to 7", True),
    ),
    "no enumerator": (
        ((", PJRT_ProcessState_kError }", " }"),),
        Change("removed", "enumerator", "PJRT_ProcessState.kError", "was 4", True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_named_once_and_alone(name: str) -> None:
    replacements, expected = CASES[name]
    if expected.name == "PJRT_Thing":
        replacements = (
            *replacements,
            ("struct PJRT_Error_Destroy_Args {", NEW_STRUCT + "struct PJRT_Error_Destroy_Args {"),
        )
    assert differences(changed(*replacements)) == [expected]


def test_a_change_without_a_new_version_breaks() -> None:
    text = TEXT.replace(LAST, LAST + NEW_SLOT)
    [version, added] = compare(parse_header(TEXT, "old"), parse_header(text, "new"))
    assert (version.what, version.breaks, added.breaks) == ("version", True, False)
    assert "was not raised" in version.text
    [back] = compare(parse_header(changed(), "old"), parse_header(TEXT, "new"))
    assert back.breaks
    assert "goes back" in back.text


def test_our_declarations_are_our_header() -> None:
    assert compare(read_header(HEADER), declared_api()) == []


def test_a_handle_may_be_described_on_one_side() -> None:
    """As PJRT_Error is since version 0.107: a host that takes it for opaque is right, too."""
    opaque = "typedef struct PJRT_Event PJRT_Event;"
    table = "struct PJRT_Event_FunctionTable { void (*destroy)(PJRT_Event*); };"
    described = f"{opaque} {table} struct PJRT_Event {{ PJRT_Event_FunctionTable* functions; }};"
    assert differences(changed((opaque, described))) == []


def test_lines_may_end_as_on_windows_and_a_slot_be_annotated(tmp_path: Path) -> None:
    """Both are in headers that projects carry; upstream's functions are macros."""
    path = tmp_path / "header.h"
    macro = "  PJRT_NO_DISCARD _PJRT_API_STRUCT_FIELD(PJRT_Event_Await);\n"
    typedef = "typedef PJRT_Error* PJRT_Event_Await(PJRT_Event_Await_Args* args);\n"
    define = "#define TRAITS(name) \\\n  struct name { int size; }\n"
    text = define + TEXT.replace(AWAIT, macro).replace(
        "typedef struct {", typedef + "typedef struct {", 1
    )
    path.write_bytes(text.replace("\n", "\r\n").encode())
    assert compare(read_header(path), declared_api()) == []


def run(*arguments: object) -> Result:
    return CliRunner().invoke(abi, ["diff", *map(str, arguments)], standalone_mode=False)


def test_the_command_prints_and_says_by_its_code_what_breaks(tmp_path: Path) -> None:
    later, broken = tmp_path / "later.h", tmp_path / "broken.h"
    later.write_text(changed((LAST, LAST + NEW_SLOT)))
    broken.write_text(changed((AWAIT, "")))
    kept = run(HEADER, later)
    assert kept.return_value == 0
    assert "  added    function    PJRT_Thing: at place 139" in kept.output
    assert "PJRT_Thing: not known to this plugrt-sdk" in kept.output
    assert "PJRT_Device_ClearMemoryStats: refused as UNIMPLEMENTED" in kept.output
    assert run(later).output.startswith("from 0.114 (plugrt's declarations)")  # the older first
    lost = run("--json", HEADER, broken)
    assert lost.return_value == 1
    document = json.loads(lost.output)
    assert document["breaks"] == 1
    assert document["new"]["version"] == [0, 115]
    assert [c["name"] for c in document["changes"] if c["breaks"]] == ["PJRT_Event_Await"]
    assert "PJRT_Thing" not in document["not_exported"]


BAD = {
    "empty": (b"", "this is no pjrt_c_api.h"),
    "another header": (b"int main(void) { return 0; }", "this is no pjrt_c_api.h"),
    "binary": (b"\x7fELF\0\0", "this is no C header"),
    "not UTF-8": (b"// \xff\xfe\n", "this is no C header"),
    "cut short": (TEXT[: len(TEXT) // 2].encode(), "PJRT_Api|cut short"),
    "cut in the table": (TEXT[: TEXT.index(AWAIT) + 20].encode(), "cut short"),
    "no table": (
        TEXT.replace("} PJRT_Api;", "} PJRT_Tabelle; typedef int PJRT_Api;").encode(),
        "PJRT_Api is missing",
    ),
    "a bit field": (
        TEXT.replace("uint8_t is_ready;", "uint8_t is_ready : 1;").encode(),
        "'uint8_t is_ready : 1', which cannot be read",
    ),
    "a class": (
        TEXT.replace(
            "struct PJRT_Program {", "class X { int a; };\nstruct PJRT_Program {"
        ).encode(),
        "cannot read this declaration: 'class X",
    ),
    "an enumerator by a formula": (
        TEXT.replace(LAST_STATE, "PJRT_ProcessState_P = 1 << 2 }").encode(),
        "cannot read the enumerator value '1 << 2'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_header_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    content, reason = BAD[name]
    path = tmp_path / "bad.h"
    path.write_bytes(content)
    with pytest.raises(InvalidArgument, match=reason) as caught:
        read_header(path)
    assert str(path) in caught.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be read: No such file"):
        read_header(tmp_path / "nothing.h")


@needs_library
def test_the_header_of_the_wheel_is_an_older_version_of_ours() -> None:
    path = header_path()
    assert path is not None
    old = read_header(path)
    assert old.version == (0, 81)
    new = declared_api()
    found = compare(old, new)
    assert not [change for change in found if change.breaks]
    added = [change.name for change in found if change.what == "function"]
    assert added == new.functions[len(old.functions) :]
    fields = {change.name for change in found if change.what == "field"}
    assert "PJRT_Executable_DeserializeAndLoad_Args.load_options" in fields
