"""Libraries around a real one that have a stub for one function, or lack it.

They are one file under many names: the name states the function and the kind of stub,
``Buffer_CopyToDevice-unimplemented.so``. ``unimplemented`` answers with an error of that code, as
IREE's and tt-xla's plugins fill their tables; ``null`` leaves the slot empty; ``int4`` answers so
only for arrays of int4, ``later`` from the third call on; ``strict`` ends the process if the
arguments state another size than the library's header. None of these sizes is plugrt's own: they
are compiled from a header, or were (struct_sizes.json), or the library's answer (`ask_for_sizes`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plugrt.capi import Library, load_library
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.declarations import ENUMS, EXTENSIONS, Entry, entries, functions
from plugrt.capi.abi.generate import cdef
from plugrt.capi.loading.function_table import Table
from support import children
from support.clib import compile_c
from support.strict_library import compiled_sizes

OF_ERRORS = ("Error_Destroy", "Error_Message", "Error_GetCode", "Error_ForEachPayload")
SOURCE = r"""
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pjrt.h"

typedef struct { const char* name; int extension, slot; size_t size; } Place;
static const Place places[] = {PLACES};
static char at[128], what[64];
static PJRT_Api real, api;
static PJRT_Error* (*put)(void*);
static const Place* place;
static const int stub_error = 12;

static PJRT_Error* stub(void* args) { return (PJRT_Error*)&stub_error; }
static PJRT_Error* put_all_but_int4(struct PJRT_Client_BufferFromHostBuffer_Args* a) {
  return a->type == 21 ? stub(a) : put(a);
}
static PJRT_Error* later(void* args) {
  static int calls;
  return ++calls > 2 ? stub(args) : put(args);
}
static PJRT_Error* strict(size_t* args) {
  if (*args == place->size) return put(args);
  if (*args == 2 * sizeof(void*)) return put(args); /* on purpose: only to see that it is refused */
  fprintf(stderr, "%s: struct_size is %zu, not %zu\n", at, *args, place->size);
  abort();
}
/* The library's own extensions must stay as they are: other stubs share them. */
static void copy_extensions(void) {
  for (PJRT_Extension_Base** link = &api.extension_start; *link; link = &(*link)->next)
    *link = memcpy(malloc((*link)->struct_size), *link, (*link)->struct_size);
}
static void** slot_of(const Place* place) {
  if (place->extension < 0) return (void**)&api.Error_Destroy + place->slot;
  PJRT_Extension_Base* node = api.extension_start;
  while (node && node->type != place->extension) node = node->next;
  return node ? (void**)(node + 1) + place->slot : 0;
}
static void destroy(struct PJRT_Error_Destroy_Args* a) {
  if (a->error != (void*)&stub_error) real.Error_Destroy(a);
}
static void message(struct PJRT_Error_Message_Args* a) {
  if (a->error != (void*)&stub_error) { real.Error_Message(a); return; }
  a->message = "not supported";
  a->message_size = strlen(a->message);
}
static PJRT_Error* get_code(struct PJRT_Error_GetCode_Args* a) {
  if (a->error != (void*)&stub_error) return real.Error_GetCode(a);
  a->code = stub_error;
  return 0;
}
static PJRT_Error* for_each(struct PJRT_Error_ForEachPayload_Args* a) {
  return a->error == (void*)&stub_error ? 0 : real.Error_ForEachPayload(a);
}

const PJRT_Api* GetPjrtApi(void) {
  Dl_info info;
  dladdr((void*)stub, &info);
  sscanf(strrchr(info.dli_fname, '/') + 1, "%127[^-]-%63[^.]", at, what);
  void* library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const PJRT_Api* found = ((const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi"))();
  memcpy(&real, found, found->struct_size < sizeof real ? found->struct_size : sizeof real);
  api = real;
  api.Error_Destroy = destroy; api.Error_Message = message; api.Error_GetCode = get_code;
  if (real.Error_ForEachPayload) api.Error_ForEachPayload = for_each;
  copy_extensions();
  for (int i = 0; i < sizeof places / sizeof *places; i++) {
    if (strcmp(places[i].name, at)) continue;
    place = &places[i];
    void** slot = slot_of(place);
    put = (PJRT_Error* (*)(void*))*slot;
    *slot = stub;
    if (!strcmp(what, "null")) *slot = 0;
    if (!strcmp(what, "int4")) *slot = put_all_but_int4;
    if (!strcmp(what, "later")) *slot = later;
    if (!strcmp(what, "strict")) *slot = strict;
  }
  return &api;
}
"""


_EXTENSIONS = frozenset({"Layouts", "FFI", "MemoryDescriptions", "PhaseCompile", "Shardings"})
"""The extensions that the steps use, or that a library for CPUs has."""

HEADER_114: dict[str, Any] = json.loads(Path(__file__).with_name("struct_sizes.json").read_text())
"""Measured: the sizes of a public copy of the header of 0.114; ``header`` is its link.

No newer one was found. A library of 0.115 gives the same sizes (`ask_for_sizes`).
"""


def ask_for_sizes(library: Library) -> dict[str, int]:
    """Returns the size that each function of a library of XLA's reports as expected.

    It reports it if arguments state a smaller size. `_NOT_ASKED` do not check, or end the process,
    or are ``void``.
    """
    structs: list[tuple[Table, Any]] = [(library, library.api)]
    structs += [
        (library.extension(name), ffi.cast(f"PJRT_{name}_Extension*", library.extensions[name]))
        for name in _EXTENSIONS.intersection(library.extensions)
    ]
    found = {}
    for table, struct in structs:
        for name in filter(table.has, table.slots):
            if name not in _NOT_ASKED:
                answer = _call_with_a_size_of_one(library, getattr(struct, name))
                if expected := re.search(r"Unexpected \w+ size: expected (\d+)", answer):
                    found[name] = int(expected[1])
    return found


_NOT_ASKED = {
    "Error_Destroy", "Error_Message", "Client_CreateViewOfDeviceBuffer",
    "PhaseCompile_C_Buffers_Destroy",
}  # fmt: skip


def _call_with_a_size_of_one(library: Library, function: Any) -> str:
    """Returns the message of the error that a function reports."""
    args = ffi.new("size_t[512]", [1])
    error = ffi.cast("PJRT_Error* (*)(void*)", function)(args)
    if error == ffi.NULL:
        return ""
    message = ffi.new("struct PJRT_Error_Message_Args*", {"error": error})
    message.struct_size = ffi.sizeof(message[0])
    library.api.Error_Message(message)
    text = str(ffi.string(message.message, message.message_size).decode())
    destroy = ffi.new("struct PJRT_Error_Destroy_Args*", {"error": error})
    destroy.struct_size = ffi.sizeof(destroy[0])
    library.api.Error_Destroy(destroy)
    return text


_BEFORE_FUNCTIONS, _BASE, _SLOT = 40, 24, 8
"""Bytes of a table of the API, and of an extension, before its functions; of a slot."""


class StubbedLibraries:
    """Makes the libraries in ``folder``, around the library ``real``.

    ``header`` has the sizes of structs in the library's header; without it the header of the wheel
    ``xla-cpu-pjrt`` is compiled. The library reports the sizes for functions of extensions.
    ``slots`` is the number of slots in the tables, including empty ones.
    """

    def __init__(self, folder: Path, real: Path, header: Mapping[str, int] | None = None) -> None:
        self.folder = folder
        library = load_library(real)
        self.stated = ask_for_sizes(library)
        known = compiled_sizes(folder) if header is None else header
        self.sizes = {
            f.name: known[struct] for f in functions() if (struct := f"PJRT_{f.name}_Args") in known
        }
        self.functions: list[Entry] = [f for f in functions() if library.has(f.name)]
        found = _EXTENSIONS.intersection(library.extensions)
        tables = [library.extension(name) for name in found]
        self.of_extensions = [slot for t in tables for slot in t.slots if t.has(slot)]
        self.slots = (int(library.api.struct_size) - _BEFORE_FUNCTIONS) // _SLOT + sum(
            (int(library.extensions[t].struct_size) - _BASE) // _SLOT for t in found
        )
        (folder / "pjrt.h").write_text(cdef())
        numbers = ENUMS["Extension_Type"]
        places = [(f.name, -1, i) for i, f in enumerate(functions())] + [
            (entry.name, numbers.index(name), i)
            for name in sorted(_EXTENSIONS)
            for i, entry in enumerate(entries(EXTENSIONS[name]))
        ]
        sizes = self.stated | self.sizes
        text = ", ".join(
            f'{{"{name}", {number}, {i}, {sizes.get(name, 0)}}}' for name, number, i in places
        )
        self._made = compile_c(
            folder, SOURCE.replace("PLACES", text), f"-I{folder}", f'-DREAL="{real}"', "-ldl"
        )

    def library(self, function: str, how: str) -> Path:
        """Returns the library with that stub for ``function``."""
        path = self.folder / f"{function}-{how}.so"
        if not path.exists():
            shutil.copy(self._made, path)
        return path


@dataclass(frozen=True)
class Walk:
    """A process that used libraries: (library, step, outcome), exit code, standard error."""

    outcomes: list[tuple[str, str, str]]
    returncode: int
    stderr: str


def walk(made: StubbedLibraries, names: Sequence[str], host: str = "plugrt") -> Walk:
    """Runs all steps of a host with libraries of these names, in one process."""
    for name in names:
        made.library(*name.split("-"))
    env = {**os.environ, "HOST": host, "PLUGRT_PROBE_LIBRARIES": "0", "TF_CPP_MIN_LOG_LEVEL": "3"}
    # a newer library ends the process at removed flags
    for variable in ("JAX_PLATFORMS", "XLA_FLAGS"):
        env.pop(variable, None)
    env["PYTHONPATH"] = children.path_with(Path(__file__).parents[1])
    command = [sys.executable, "-m", "support.stubbed_steps", str(made.folder), *names]
    done = children.run(command, env=env, timeout=600)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    last = [line["begin"] for line in lines if "begin" in line][-1:]
    ended = [(*line["end"], line["outcome"]) for line in lines if "end" in line]
    return Walk(ended, done.returncode, f"{last}: {done.stderr[-2000:]}")


ENDS = "the process ends"


def jax_fails(made: StubbedLibraries, name: str) -> list[str] | str:
    """Returns the steps that fail with JAX in a process of its own; `ENDS` if the process ends."""
    found = walk(made, [name], "jax")
    failing = [step for _, step, outcome in found.outcomes if outcome != "ok"]
    return ENDS if found.returncode else failing
