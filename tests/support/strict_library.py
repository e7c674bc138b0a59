"""A PJRT library around xla-cpu-pjrt that refuses structs of another size than its header's.

Its C text is made from the header in that library's wheel, not from plugrt's declarations. It can
pretend to have been compiled with another header (`Pretended`), accept all sizes as XLA does, and
make a function fail on request (`Controls`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plugrt_sdk.abi.api import Api
from plugrt_sdk.abi.header import read_header
from support.clib import compile_c
from support.xla_cpu import header_path, library_path

NESTED = {
    "PJRT_Client_Create": ("create_options", "PJRT_NamedValue", "num_options"),
    "PJRT_Client_Compile": ("program", "PJRT_Program", "1"),
    "PJRT_Client_BufferFromHostBuffer": ("device_layout", "PJRT_Buffer_MemoryLayout", "1"),
    "PJRT_Client_CreateBuffersForAsyncHostToDevice": (
        "shape_specs", "PJRT_ShapeSpec", "num_shape_specs",
    ),
    "PJRT_LoadedExecutable_Execute": ("options", "PJRT_ExecuteOptions", "1"),
    "PJRT_Executable_OptimizedProgram": ("program", "PJRT_Program", "1"),
    "PJRT_Buffer_ToHostBuffer": ("host_layout", "PJRT_Buffer_MemoryLayout", "1"),
}  # fmt: skip
"""Function to the structs that its arguments point to: field, type, number."""


@dataclass(frozen=True)
class Pretended:
    """The properties of another header: version, functions in the table, differing struct sizes."""

    minor: int
    functions: int
    sizes: Mapping[str, int] = field(default_factory=dict)


PROLOGUE = r"""
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include HEADER
static PJRT_Api real, api;
static char texts[64][300], refused[1 << 16], failure[300];
static int made, failing = -1, accepts_all;
static long calls[200], failures;
const char* all_refused(void) { return refused; }
long calls_of(int slot) { return calls[slot]; }
long times_failed(void) { return failures; }
void accept_all_sizes(void) { accepts_all = 1; }
/* Has a function fail with these words, once it has accepted its sizes; behind the end: none. */
void fail_at(int slot, const char* words) {
  failing = slot; failures = 0;
  snprintf(failure, sizeof failure, "%s", words);
}
static PJRT_Error* say(const char* words) {
  return (PJRT_Error*)strncpy(texts[made++ % 64], words, sizeof *texts - 1);
}
static PJRT_Error* differs(const char* name, size_t given, size_t wanted) {
  if (given == wanted || accepts_all) return 0;
  char text[200];
  snprintf(text, sizeof text, "%s: struct_size is %zu, not %zu\n", name, given, wanted);
  strncat(refused, text, sizeof refused - strlen(refused) - 1);
  return say(text);
}
static PJRT_Error* fails(int slot) {
  if (slot != failing) return 0;
  failures++;
  return say(failure);
}
static int ours(const void* error) {
  return error >= (void*)texts && error < (void*)(texts + 64);
}
static void error_destroy(PJRT_Error_Destroy_Args* a) {
  if (!ours(a->error)) real.PJRT_Error_Destroy(a);
}
static void error_message(PJRT_Error_Message_Args* a) {
  if (!ours(a->error)) { real.PJRT_Error_Message(a); return; }
  a->message = (const char*)a->error;
  a->message_size = strlen(a->message);
}
static PJRT_Error* error_code(PJRT_Error_GetCode_Args* a) {
  if (!ours(a->error)) return real.PJRT_Error_GetCode(a);
  a->code = PJRT_Error_Code_INVALID_ARGUMENT;
  return 0;
}
"""
OWN = {
    "PJRT_Error_Destroy": "error_destroy",
    "PJRT_Error_Message": "error_message",
    "PJRT_Error_GetCode": "error_code",
}

EPILOGUE = r"""
const PJRT_Api* GetPjrtApi(void) {
  void* library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  real = *((const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi"))();
  api = real;
  SLOTS
#ifdef MINOR
  api.pjrt_api_version.minor_version = MINOR;
  api.struct_size = offsetof(PJRT_Api, PJRT_Error_Destroy) + FUNCTIONS * sizeof(void*);
#endif
  return &api;
}
"""


def header() -> Path:
    """Returns the header in the wheel."""
    path = header_path()
    assert path is not None
    return path


def read_api() -> Api:
    """Returns the declarations of the wheel's header."""
    return read_header(header())


def compiled_sizes(folder: Path) -> dict[str, int]:
    """Returns struct to size, of the arguments of functions, compiled from the wheel's header."""
    structs = [f"{name}_Args" for name in read_api().functions]
    structs += {kind for _, kind, _ in NESTED.values()}
    sizes_in_c = ", ".join(f"{struct}_STRUCT_SIZE" for struct in structs)
    text = f"#include HEADER\nsize_t sizes[] = {{{sizes_in_c}}};"
    library = ctypes.CDLL(str(compile_c(folder, text, f'-DHEADER="{header()}"')))
    return dict(
        zip(structs, (ctypes.c_size_t * len(structs)).in_dll(library, "sizes"), strict=True)
    )


def _enlarge(struct: str, given: str, sizes: Mapping[str, int]) -> tuple[str, str]:
    """Returns C text before and after a call that needs a struct in the library's own size.

    All of it is copied back: headers before 0.71 had fields that their sizes did not count.
    """
    if struct not in sizes:
        return "", ""
    copy = f"{struct} {given}_whole; size_t {given}_size = {given}->struct_size;"
    fill = f"memset(&{given}_whole, 0, sizeof {given}_whole); memcpy(&{given}_whole, {given}, "
    state = f"{given}_size); {given}_whole.struct_size = {struct}_STRUCT_SIZE;"
    back = f"{given}_whole.struct_size = {given}_size; *{given} = {given}_whole;"
    return f"{copy} {fill}{state}", back


def _wrapper(slot: int, name: str, signature: str, sizes: Mapping[str, int]) -> str:
    void = signature.startswith("void(")
    refuse = "" if void else "return refusal;"

    def size(struct: str) -> str:
        return str(sizes.get(struct, f"{struct}_STRUCT_SIZE"))

    struct = f"{name}_Args"
    differs = f'differs("{name}", a->struct_size, {size(struct)})'
    checks = [f"PJRT_Error* refusal = {differs}; if (refusal) {{ {refuse} }}"]
    before, after = _enlarge(struct, "a", sizes)
    if name in NESTED:
        field, kind, number = NESTED[name]
        count = number if number == "1" else f"a->{number}"
        checks.append(
            f"for (size_t i = 0; a->{field} && i < {count}; i++)\n"
            f'    if ((refusal = differs("{kind} of {name}", a->{field}[i].struct_size, '
            f"{size(kind)}))) return refusal;"
        )
        if kind in sizes:
            before, after = _enlarge(kind, field, sizes)
            before = f"{kind}* {field} = a->{field}; {before} a->{field} = &{field}_whole;"
            after += f" a->{field} = {field};"
    if not void:
        checks.append(f"if ((refusal = fails({slot}))) return refusal;")
    call = f"{OWN.get(name, f'real.{name}')}({'&a_whole' if struct in sizes else 'a'});"
    call = call if void else f"PJRT_Error* error = {call}"
    result, last = ("void", "") if void else ("PJRT_Error*", "return error;")
    start = f"static {result} w_{name}({name}_Args* a) {{"
    lines = [start, f"calls[{slot}]++;", *checks, before, call, after, last]
    return "\n  ".join(lines) + "\n}"


def source(api: Api, sizes: Mapping[str, int]) -> str:
    """Returns the C text, which needs ``REAL``, the library's path, and ``HEADER`` as strings."""
    wrappers = [_wrapper(i, n, api.signatures[n], sizes) for i, n in enumerate(api.functions)]
    slots = [f"if (real.{name}) api.{name} = w_{name};" for name in api.functions]
    return "\n".join([PROLOGUE, *wrappers, EPILOGUE.replace("SLOTS", "\n  ".join(slots))])


def strict_library(folder: Path, other: Pretended | None = None) -> Path:
    """Returns the library's path, compiled in ``folder``, as of its own or of another header."""
    flags = [f'-DREAL="{library_path()}"', f'-DHEADER="{header()}"']
    if other is not None:
        flags += [f"-DMINOR={other.minor}", f"-DFUNCTIONS={other.functions}"]
    return compile_c(folder, source(read_api(), other.sizes if other else {}), *flags)


class Controls:
    """Controls a strict library that this process has loaded."""

    def __init__(self, path: Path | str) -> None:
        self._library = ctypes.CDLL(str(path))
        self._slots = read_api().functions

    def accept_all_sizes(self) -> None:
        """Makes it check no size from now on."""
        self._library.accept_all_sizes()

    def fail(self, function: str, words: str) -> None:
        """Makes a function answer INVALID_ARGUMENT with these words; with no function, none."""
        slot = self._slots.index(function) if function else -1
        self._library.fail_at(slot, words.encode())

    def times_failed(self) -> int:
        """Returns how often that function has failed by `fail`."""
        return int(self._library.times_failed())


@dataclass(frozen=True)
class Seen:
    """The sizes that a loaded strict library has seen."""

    refused: list[str]
    called: set[str]


def seen_by(path: Path | str) -> Seen:
    """Returns the sizes that a loaded strict library has seen."""
    library = ctypes.CDLL(str(path))
    library.all_refused.restype = ctypes.c_char_p
    library.calls_of.restype = ctypes.c_long
    called = {name for i, name in enumerate(read_api().functions) if library.calls_of(i)}
    return Seen(library.all_refused().decode().splitlines(), called)
