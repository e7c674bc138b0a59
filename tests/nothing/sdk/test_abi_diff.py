"""``plugrt abi diff``: changes of the header that plugrt generates, one of each kind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from plugrt.capi.abi import declarations
from plugrt.errors import InvalidArgument
from plugrt_sdk import BackendClient
from plugrt_sdk.abi.api import Field
from plugrt_sdk.abi.command import EXPORTED_EXTENSIONS, abi
from plugrt_sdk.abi.declared import declared_api
from plugrt_sdk.abi.difference import Change, compare
from plugrt_sdk.abi.header import parse_header, read_header
from plugrt_sdk.export import export_capsule
from support.exported import find_api
from support.late_client import Adder
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
    """Like PJRT_Error since version 0.107: a host that declares it opaque is compatible."""
    opaque = "typedef struct PJRT_Event PJRT_Event;"
    table = "struct PJRT_Event_FunctionTable { void (*destroy)(PJRT_Event*); };"
    described = f"{opaque} {table} struct PJRT_Event {{ PJRT_Event_FunctionTable* functions; }};"
    assert differences(changed((opaque, described))) == []


def test_lines_may_end_as_on_windows_and_a_slot_be_annotated(tmp_path: Path) -> None:
    """Both occur in headers of projects; upstream's functions are macros."""
    path = tmp_path / "header.h"
    macro = "  PJRT_NO_DISCARD _PJRT_API_STRUCT_FIELD(PJRT_Event_Await);\n"
    typedef = "typedef PJRT_Error* PJRT_Event_Await(PJRT_Event_Await_Args* args);\n"
    define = "#define TRAITS(name) \\\n  struct name { int size; }\n"
    text = define + TEXT.replace(AWAIT, macro).replace(
        "typedef struct {", typedef + "typedef struct {", 1
    )
    path.write_bytes(text.replace("\n", "\r\n").encode())
    assert compare(read_header(path), declared_api()) == []


EXTENSIONS = [f"PJRT_{name}_Extension" for name in declarations.EXTENSIONS]


def declare(field: Field) -> str:
    """Returns a field in C: the name of a function pointer is within its type."""
    if "(*)" in field.type:
        return field.type.replace("(*)", f"(*{field.name})", 1) + ";"
    return f"{field.type} {field.name};"


def upstream(extension: str, version: int = 3) -> str:
    """Returns our declarations of an extension in the style of its upstream header.

    Functions have types of their own, Layouts' and Shardings' names repeat the prefix, and other
    tables begin as they did before there was a PJRT_Extension_Base.
    """
    api = declared_api(extension).restrict()
    twice = extension in ("PJRT_Layouts_Extension", "PJRT_Shardings_Extension")
    lines = [f"#define PJRT_API_MINE_EXTENSION_VERSION {version}"]
    for name, values in api.enums.items():
        constants = ", ".join(f"{name}_{value} = {number}" for value, number in values.items())
        lines.append(f"typedef enum {{ {constants} }} {name};")
    for name, fields in api.structs.items():
        lines.append(f"struct {name} {{ {' '.join(map(declare, fields))} }};")
    for name in api.functions:
        result, _, parameters = api.signatures[name].partition("(")
        lines.append(f"typedef {result} {name}({parameters};")
    base = "PJRT_Extension_Base base;"
    if not twice:
        base = "size_t struct_size; PJRT_Extension_Type type; const PJRT_Extension_Base* next;"
    slots = " ".join(f"PJRT_NO_DISCARD {name}* {name.lower()};" for name in api.functions)
    lines.append(f"typedef struct {extension} {{ {base} {slots} }} PJRT_Mine;")
    text = "\n".join(lines)
    if twice:
        text = re.sub(r"PJRT_(Layouts|Shardings)_(?=[BET]\w+_)", r"PJRT_\1_PJRT_", text)
    return text


def extension_differences(extension: str, text: str) -> list[Change]:
    return compare(declared_api(extension), parse_header(text, "theirs"))


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_the_header_of_an_extension_is_compared(extension: str) -> None:
    """Unchanged, without its last function, with another field, and with another function."""
    text, functions = upstream(extension), declared_api(extension).functions
    assert parse_header(text, "theirs").version == (3,)
    assert extension_differences(extension, text) == []
    last = re.findall(r"PJRT_NO_DISCARD \w+\* \w+;", text)[-1]
    gone, *_ = extension_differences(extension, text.replace(last, ""))
    assert (gone.kind, gone.what, gone.name) == ("removed", "function", functions[-1])
    assert gone.breaks
    struct = re.findall(r"typedef [^;]*\((\w+_Args)\*\);", text)[-1]
    longer = re.sub(rf"(struct {struct} \{{.*?) \}};", r"\1 int more; };", text)
    [more] = extension_differences(extension, longer)
    assert (more.kind, more.what, more.breaks) == ("added", "field", False)
    assert more.name.endswith("_Args.more")
    typedef = "typedef PJRT_Error* PJRT_Other(PJRT_Other_Args* args);\ntypedef struct PJRT"
    wider = text.replace("typedef struct PJRT", typedef).replace(last, f"{last} PJRT_Other* other;")
    [added] = extension_differences(extension, wider)
    assert (added.kind, added.name, added.breaks) == ("added", "PJRT_Other", False)


def test_versions_of_an_extension_and_what_is_no_function_of_it() -> None:
    old = upstream("PJRT_Stream_Extension")
    new = old.replace("} PJRT_Mine;", "bool reads_traits; } PJRT_Mine;")
    found = compare(parse_header(old, "old"), parse_header(new, "new"))
    assert [(c.kind, c.what, c.name, c.breaks) for c in found] == [
        ("version", "version", "PJRT_Stream_Extension", True),
        ("added", "field", "PJRT_Stream_Extension.reads_traits", False),
    ]
    raised = new.replace("VERSION 3", "VERSION 4")
    [version, _] = compare(parse_header(old, "old"), parse_header(raised, "new"))
    assert (version.text, version.breaks) == ("from 3 to 4", False)


def test_headers_of_different_things_are_not_compared(tmp_path: Path) -> None:
    one, other, unknown = tmp_path / "one.h", tmp_path / "other.h", tmp_path / "unknown.h"
    one.write_text(upstream("PJRT_Stream_Extension"))
    other.write_text(upstream("PJRT_FFI_Extension"))
    unknown.write_text(one.read_text().replace("PJRT_Stream_Extension", "PJRT_Mine_Extension"))
    for arguments, said in (
        ((one, other), "there is nothing to compare"),
        ((HEADER, other), "is about PJRT_Api and"),
        ((unknown,), "plugrt does not declare PJRT_Mine_Extension; name two versions"),
    ):
        found = run(*arguments)
        assert isinstance(found.exception, click.UsageError), found.output
        assert said in str(found.exception)
    assert run(unknown, unknown).return_value == 0
    assert "of an extension that exports do not have" in run(one).output


def test_the_extensions_of_exports_are_named() -> None:
    base = find_api(export_capsule(lambda: BackendClient(Adder()))).extension_start
    names = declarations.ENUMS["Extension_Type"]
    found = []
    while base:
        found.append(f"PJRT_{names[base.type]}_Extension")
        base = base.next
    assert tuple(found) == EXPORTED_EXTENSIONS


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
    "empty": (b"", "this is not pjrt_c_api.h"),
    "another header": (b"int main(void) { return 0; }", "this is not pjrt_c_api.h"),
    "binary": (b"\x7fELF\0\0", "this is not a C header"),
    "not UTF-8": (b"// \xff\xfe\n", "this is not a C header"),
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
