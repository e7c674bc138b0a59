"""Libraries around a real one that have a stub for one function, or lack it.

They are one file under many names: the name says which function it is and how it is stubbed,
``Buffer_CopyToDevice-unimplemented.so``. ``unimplemented`` answers with an error of that code, as
IREE's and tt-xla's plugins fill their tables; ``null`` leaves the slot empty; ``int4`` answers so
only for arrays of int4, ``later`` from the third call on; ``strict`` ends the process where the
arguments state another size than the library's header.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from plugrt.capi import load_library
from plugrt.capi.abi.declarations import ENUMS, EXTENSIONS, Entry, entries, functions
from plugrt.capi.abi.generate import cdef
from plugrt.capi.abi.structs import struct_type
from plugrt.capi.loading.library import Library
from support.clib import compile_c

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


def _size(function: str, library: Library) -> int:
    return struct_type(f"struct PJRT_{function}_Args", library.sizes)[1]


class StubbedLibraries:
    """Makes the libraries in ``folder``, around the library ``real``."""

    def __init__(self, folder: Path, real: Path) -> None:
        self.folder = folder
        library = load_library(real)
        self.functions: list[Entry] = [f for f in functions() if library.has(f.name)]
        self.of_extensions = [
            slot
            for name in _EXTENSIONS.intersection(library.extensions)
            for slot in library.extension(name).slots
            if library.extension(name).has(slot)
        ]
        (folder / "pjrt.h").write_text(cdef())
        numbers = ENUMS["Extension_Type"]
        places = [(f.name, -1, i) for i, f in enumerate(functions())] + [
            (entry.name, numbers.index(name), i)
            for name in sorted(_EXTENSIONS)
            for i, entry in enumerate(entries(EXTENSIONS[name]))
        ]
        text = ", ".join(
            f'{{"{name}", {number}, {i}, {_size(name, library)}}}' for name, number, i in places
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
