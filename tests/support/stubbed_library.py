"""Libraries around a real one that have a stub for one function, or lack it.

They are one file under many names: the name says which function it is and how it is stubbed,
``Buffer_CopyToDevice-unimplemented.so``. ``unimplemented`` answers with an error of that code, as
IREE's and tt-xla's plugins fill their tables; ``null`` leaves the slot empty; ``int4`` answers so
only for arrays of int4.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from plugrt.capi import load_library
from plugrt.capi.abi.declarations import Entry, functions
from plugrt.capi.abi.generate import cdef
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

static const char* names[] = {NAMES, 0};
static char at[128], what[64];
static PJRT_Api real, api;
static PJRT_Error* (*put)(void*);
static const int stub_error = 12;

static PJRT_Error* stub(void* args) { return (PJRT_Error*)&stub_error; }
static PJRT_Error* put_all_but_int4(struct PJRT_Client_BufferFromHostBuffer_Args* a) {
  return a->type == 21 ? stub(a) : put(a);
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
  void** slots = (void**)&api.Error_Destroy;
  for (int i = 0; names[i]; i++) {
    if (strcmp(names[i], at)) continue;
    put = (PJRT_Error* (*)(void*))slots[i];
    slots[i] = stub;
    if (!strcmp(what, "null")) slots[i] = 0;
    if (!strcmp(what, "int4")) slots[i] = put_all_but_int4;
  }
  return &api;
}
"""


class StubbedLibraries:
    """Makes the libraries in ``folder``, around the library ``real``."""

    def __init__(self, folder: Path, real: Path) -> None:
        self.folder = folder
        _, minor = load_library(real).version
        self.functions: list[Entry] = [f for f in functions() if f.since <= minor]
        (folder / "pjrt.h").write_text(cdef())
        names = ", ".join(f'"{f.name}"' for f in functions())
        self._made = compile_c(
            folder, SOURCE.replace("NAMES", names), f"-I{folder}", f'-DREAL="{real}"', "-ldl"
        )

    def library(self, function: str, how: str) -> Path:
        """Returns the library with that stub for ``function``."""
        path = self.folder / f"{function}-{how}.so"
        if not path.exists():
            shutil.copy(self._made, path)
        return path
