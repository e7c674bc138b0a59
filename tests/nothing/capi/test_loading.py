"""Loading libraries: entry point, version and size of the function table, creation of a client."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import pytest

from plugrt.capi import create_client, load_library
from plugrt.capi.abi import process_map
from plugrt.errors import (
    InvalidArgument,
    PjrtError,
    PluginBroken,
    PluginIncompatible,
    Unavailable,
    Unimplemented,
    Unknown,
)
from support.clib import compile_c, needs_cc, tiny_library

pytestmark = needs_cc


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("void* GetPjrtApi(void) { return 0; }", "returned NULL"),
        ("void* GetPjrtApi(void) { return (void*)0x10000; }", "0x10000, which cannot be read"),
        ("int something(void) { return 1; }", "no function GetPjrtApi"),
        ("int GetPjrtApi = 5;", r"its GetPjrtApi is at 0x.*no code to run"),
        ('const char GetPjrtApi[8192] = "no";', r"its GetPjrtApi is at 0x.*no code to run"),
        ("char GetPjrtApi[64];", r"its GetPjrtApi is at 0x.*no code to run"),
    ],
)
def test_libraries_without_a_table(tmp_path: Path, source: str, message: str) -> None:
    path = compile_c(tmp_path, source)
    with pytest.raises(PluginBroken, match=message):
        load_library(path)


def test_an_entry_point_where_code_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier, data at an address of freed XLA code was called, and the process ended."""
    monkeypatch.setattr(process_map, "_latest", SimpleNamespace(executable=lambda address: True))
    path = compile_c(tmp_path, "int GetPjrtApi = 5;")
    with pytest.raises(PluginBroken, match="no code to run"):
        load_library(path)


def test_table_all_zero(tmp_path: Path) -> None:
    path = compile_c(tmp_path, "static char z[2000]; void* GetPjrtApi(void) { return z; }")
    with pytest.raises(PluginIncompatible, match=r"version 0\.0"):
        load_library(path)


def test_every_slot_null(tmp_path: Path) -> None:
    clear = "memset((char*)&api + 40, 0, sizeof api - 40);"
    library = load_library(tiny_library(tmp_path, clear))
    assert len(library.missing) == 138
    with pytest.raises(Unimplemented, match=r"PJRT_Plugin_Initialize is not implemented by .*0.90"):
        create_client(library, {}, name="empty")


@pytest.mark.parametrize(("major", "minor"), [(0, 28), (0, -1), (1, 0), (-1, 90)])
def test_version_gate(tmp_path: Path, major: int, minor: int) -> None:
    version = f"api.pjrt_api_version.major_version={major};"
    version += f"api.pjrt_api_version.minor_version={minor};"
    with pytest.raises(PluginIncompatible, match=rf"states version {major}.{minor} of"):
        load_library(tiny_library(tmp_path, version))


@pytest.mark.parametrize("minor", [57, 114, 5000])
def test_versions_that_load(tmp_path: Path, minor: int) -> None:
    path = tiny_library(tmp_path, f"api.pjrt_api_version.minor_version={minor};")
    client = create_client(path, {}, name="tiny")
    assert client.platform == "tiny"
    assert client.library.version == (0, minor)
    client.close()


def test_before_the_table_was_rearranged(tmp_path: Path) -> None:
    some = "api.Executable_Fingerprint=(void*)abort;"
    some += "api.Client_CreateViewOfDeviceBuffer=(void*)abort;"
    old = load_library(tiny_library(tmp_path, some + "api.pjrt_api_version.minor_version=56;"))
    assert old.has("Client_CreateViewOfDeviceBuffer")
    assert not old.has("Executable_Fingerprint")
    new = load_library(tiny_library(tmp_path, some + "api.pjrt_api_version.minor_version=57;"))
    assert new.has("Executable_Fingerprint")


def test_extensions_before_they_stated_their_size(tmp_path: Path) -> None:
    wild = "api.extension_start=(void*)0x1234560; api.pjrt_api_version.minor_version=44;"
    assert load_library(tiny_library(tmp_path, wild)).extensions == {}


@pytest.mark.parametrize("size", [0, 24, 759, 1 << 20, "~(size_t)0"])
def test_nonsense_table_size(tmp_path: Path, size: int | str) -> None:
    with pytest.raises(PluginIncompatible, match="states a table of"):
        load_library(tiny_library(tmp_path, f"api.struct_size={size};"))


def test_slots_past_the_table_are_not_read(tmp_path: Path) -> None:
    # The memory from Event_Create on has no defined contents.
    cut = "size_t n=offsetof(PJRT_Api, Event_Create); api.struct_size=n;"
    cut += "memset((char*)&api + n, 0x41, sizeof api - n);"
    library = load_library(tiny_library(tmp_path, cut))
    assert {"Event_Create", "Event_Set", "Buffer_Bitcast"} <= library.missing
    with pytest.raises(Unimplemented, match="PJRT_Event_Create"):
        library.call("Event_Create")


def test_slot_that_points_nowhere(tmp_path: Path) -> None:
    with pytest.raises(PluginBroken, match="PJRT_Client_Compile is at 0x40"):
        load_library(tiny_library(tmp_path, "api.Client_Compile=(void*)0x40;"))


NODE = "static PJRT_Extension_Base a, b; a.struct_size=b.struct_size=sizeof a; "


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (NODE + "a.next=&b; b.next=&a; api.extension_start=&a;", "runs in a circle"),
        (NODE + "a.next=&a; api.extension_start=&a;", "runs in a circle"),
        ("api.extension_start=(void*)0x1234560;", "0x1234560, which is not memory"),
        (NODE + "a.next=(void*)-8; api.extension_start=&a;", "which is not memory"),
        (NODE + "a.next=(void*)((char*)&b+1); api.extension_start=&a;", "which is not memory"),
        (NODE + "a.struct_size=8; api.extension_start=&a;", "states a size of 8 bytes"),
        (NODE + "a.struct_size=1<<30; api.extension_start=&a;", "states a size of 1073741824"),
        (
            "static PJRT_Extension_Base c[1000]; for (int i=0;i<1000;i++) {"
            "c[i].struct_size=sizeof c[0]; c[i].next=i<999?&c[i+1]:0; } api.extension_start=c;",
            "more than 128 members",
        ),
    ],
)
def test_sick_extension_chain(tmp_path: Path, chain: str, message: str) -> None:
    with pytest.raises(PluginBroken, match=message):
        load_library(tiny_library(tmp_path, chain))


def test_unknown_extension_is_listed(tmp_path: Path) -> None:
    unknown = NODE + "a.type=77; a.next=&b; b.type=4; api.extension_start=&a;"
    library = load_library(tiny_library(tmp_path, unknown))
    assert list(library.extensions) == ["type 77", "Layouts"]
    with pytest.raises(Unimplemented, match="Layouts_Client_GetDefaultLayout is not implemented"):
        library.extension("Layouts").call("Layouts_Client_GetDefaultLayout")
    with pytest.raises(Unimplemented, match="has no extension FFI"):
        library.extension("FFI")


def test_one_handle_for_a_file_however_it_is_named(tmp_path: Path) -> None:
    path = tiny_library(tmp_path)
    link = tmp_path / "link.so"
    link.symlink_to(path)
    assert load_library(path) is load_library(str(path)) is load_library(link)


def test_two_versions_of_one_library_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old = tiny_library(tmp_path / "old", "api.pjrt_api_version.minor_version=60;")
    newer = "api.pjrt_api_version.minor_version=112;"
    new = tiny_library(tmp_path / "new", newer, "", "-DDEVICES=3")
    first, second = create_client(old, {}, name="old"), create_client(new, {}, name="new")
    assert (first.library.version, len(first.devices())) == ((0, 60), 1)
    assert (second.library.version, len(second.devices())) == ((0, 112), 3)


def test_message_that_does_not_end(tmp_path: Path) -> None:
    function = """
    static PJRT_Error* endless(struct PJRT_Client_Create_Args* a) {
      struct error* e = (struct error*)fail(2, "out of beansXXXXXXXX"); e->size = 12;
      return (PJRT_Error*)e;
    }"""
    path = tiny_library(tmp_path, "api.Client_Create=endless;", function)
    with pytest.raises(Unknown) as caught:
        create_client(path, {}, name="tiny")
    assert caught.value.message == "out of beans"


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ("e->text = 0;", ""),
        ("e->size = 0;", ""),
        ('e->text = "\\xff\\x41"; e->size = 2;', r"\\xffA"),
    ],
)
def test_odd_messages(tmp_path: Path, setup: str, message: str) -> None:
    function = f"""
    static PJRT_Error* odd(struct PJRT_Client_Create_Args* a) {{
      struct error* e = (struct error*)fail(99, "text"); {setup} return (PJRT_Error*)e;
    }}"""
    path = tiny_library(tmp_path, "api.Client_Create=odd;", function)
    with pytest.raises(Unknown, match=message + ".*undefined PJRT error code 99"):
        create_client(path, {}, name="tiny")


def test_args_struct_too_small_for_the_library(tmp_path: Path) -> None:
    function = """
    static PJRT_Error* picky(struct PJRT_Client_Create_Args* a) {
      return a->struct_size < 4096 ? fail(3, "Unexpected size: expected 4096, got less") : 0;
    }"""
    path = tiny_library(tmp_path, "api.Client_Create=picky;", function)
    with pytest.raises(InvalidArgument, match="expected 4096"):
        create_client(path, {}, name="tiny")


def test_errors_are_freed_once(tmp_path: Path) -> None:
    refuse = 'static PJRT_Error* refuse(void* a) { return fail(14, "busy"); }'
    read = "int open_errors(void) { return live_errors; }"
    path = tiny_library(tmp_path, "api.Client_Create=(void*)refuse;", refuse + read)
    for _ in range(5):
        with pytest.raises(Unavailable, match="UNAVAILABLE: busy"):
            create_client(path, {}, name="tiny")
    assert ctypes.CDLL(str(path)).open_errors() == 0


def test_failed_initialisation_is_not_retried(tmp_path: Path) -> None:
    once = """
    int calls = 0;
    static PJRT_Error* once(void* a) { calls++; return fail(10, "locked"); }"""
    path = tiny_library(tmp_path, "api.Plugin_Initialize=(void*)once;", once)
    for _ in range(2):
        with pytest.raises(PjrtError, match="ABORTED: locked"):
            create_client(path, {}, name="tiny")
    assert ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "calls").value == 1


def test_attributes_unimplemented_or_null(tmp_path: Path) -> None:
    assert dict(load_library(tiny_library(tmp_path)).attributes()) == {}
    null = """
    static PJRT_Error* null(struct PJRT_Plugin_Attributes_Args* a) {
      a->attributes = 0; a->num_attributes = 5; return 0;
    }"""
    library = load_library(tiny_library(tmp_path, "api.Plugin_Attributes=null;", null))
    assert dict(library.attributes()) == {}


def test_attributes_of_every_kind(tmp_path: Path) -> None:
    function = """
    static int64_t list[2] = {7, -8};
    static PJRT_NamedValue v[6];
    static void set(int i, const char* name, int type, size_t size) {
      v[i].name = name; v[i].name_size = strlen(name); v[i].type = type; v[i].value_size = size;
    }
    static PJRT_Error* some(struct PJRT_Plugin_Attributes_Args* a) {
      set(0, "text", 0, 3); v[0].string_value = "abcdef";
      set(1, "number", 1, 1); v[1].int64_value = -5;
      set(2, "list", 2, 2); v[2].int64_array_value = list;
      set(3, "real", 3, 1); v[3].float_value = 0.5f;
      set(4, "flag", 4, 1); v[4].bool_value = true;
      set(5, "later", 9, 1);
      a->attributes = v; a->num_attributes = 6; return 0;
    }"""
    library = load_library(tiny_library(tmp_path, "api.Plugin_Attributes=some;", function))
    assert dict(library.attributes()) == {
        "text": "abc", "number": -5, "list": [7, -8], "real": 0.5, "flag": True,
    }  # fmt: skip


def test_zero_devices(tmp_path: Path) -> None:
    client = create_client(tiny_library(tmp_path, "", "", "-DDEVICES=0"), {}, name="none")
    assert list(client.devices()) == []
    assert client.process_count == 1
    with pytest.raises(InvalidArgument, match="need 1 devices"):
        client.default_device_assignment(1, 1)
    assert not client.capabilities.dlpack


def test_library_with_no_memories(tmp_path: Path) -> None:
    device = create_client(tiny_library(tmp_path), {}, name="tiny").devices()[0]
    assert list(device.memories()) == []
    with pytest.raises(Unimplemented, match="default_memory"):
        device.default_memory()
    with pytest.raises(Unimplemented, match="PJRT_Device_MemoryStats"):
        device.memory_stats()


def test_client_is_destroyed_once_and_with_its_last_child(tmp_path: Path) -> None:
    import ctypes
    import gc

    path = tiny_library(tmp_path, "", "int open_clients(void) { return live_clients; }")
    counter = ctypes.CDLL(str(path))
    client = create_client(path, {}, name="tiny")
    other = create_client(path, {}, name="tiny")
    assert counter.open_clients() == 2
    client.close()
    client.close()
    del client
    gc.collect()
    assert counter.open_clients() == 1
    del other
    gc.collect()
    assert counter.open_clients() == 0


@pytest.mark.parametrize("right", ["a->struct_size >= 88", "a->struct_size == 72"])
@pytest.mark.parametrize(("code", "error"), [(3, InvalidArgument), (14, Unavailable)])
def test_an_error_is_not_one_of_a_size_that_was_tried(
    tmp_path: Path, right: str, code: int, error: type[PjrtError]
) -> None:
    """Headers of 0.61 differ in this struct: a library may refuse or require the smaller size."""
    create = f"""static PJRT_Error* create(struct PJRT_Client_Create_Args* a) {{
      return {right} ? fail({code}, "no card") : fail(3, "Unexpected size of the struct");
    }}"""
    setup = """api.Client_Create = (void*)create; api.pjrt_api_version.minor_version = 61;
      api.struct_size = 40 + 104 * sizeof(void*);"""
    with pytest.raises(error, match="no card"):
        create_client(tiny_library(tmp_path, setup, create), {}, name="tiny")
