"""A PJRT library around a real one, which misbehaves in one function and one way at a time.

Its C text is generated from the declarations: each function forwards to the real library's and then
changes its argument struct as `misbehaviours` lists. So newly declared functions are tested without
further work.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plugrt.capi.abi import declarations as d
from plugrt.capi.abi.declarations import Entry, field_name
from plugrt.capi.abi.declarations.extensions import EXTENSION_OPAQUE
from plugrt.capi.abi.declarations.types import OPAQUE
from plugrt.capi.abi.generate import cdef
from support.clib import compile_c

WORDS = "broken on purpose"
"""The message of the errors that the library adds."""

SILENT, REFUSE, REFUSE_999, SCRIBBLE, ZERO, ONES, WILD, JUNK, EMPTY, MORE, SHORT = range(1, 12)
"""Actions of a function instead of, or after, the real one's work: see `PROLOGUE`."""

MODES = {
    SILENT: "does nothing and reports success",
    REFUSE: "reports an error",
    REFUSE_999: "reports an error of an undefined code",
    SCRIBBLE: "writes over its inputs",
    ZERO: "leaves zero in",
    ONES: "sets all bits of",
    WILD: "leaves a wild pointer in",
    JUNK: "points to bytes that are all 255 in",
    EMPTY: "points to zeros in",
    MORE: "adds a million to",
    SHORT: "takes one from",
}

PROLOGUE = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>
#include "pjrt.h"

enum { SILENT = 1, REFUSE, REFUSE_999, SCRIBBLE, ZERO, ONES, WILD, JUNK, EMPTY, MORE, SHORT };
static PJRT_Api real, api;
static int function, mode, field, skip;
static long calls[200], errors;
static char junk[1 << 16];
static void* zeros[1 << 13];
static int codes[2] = {13, 999};  /* the errors that are made up are these addresses */

void misbehave(int f, int m, int where, int after) {
  function = f; mode = m; field = where; skip = after;
}
long calls_of(int f) { return calls[f]; }
long errors_of_the_real_library(void) { return errors; }
static int now(int f) { calls[f]++; return mode && f == function && skip-- <= 0 ? mode : 0; }
static int ours(const void* error) { return error == &codes[0] || error == &codes[1]; }
static PJRT_Error* refuse(int m) { return (PJRT_Error*)&codes[m == REFUSE_999]; }
static void change(int m, void* at, size_t size, int pointer) {
  uint64_t word = 0;
  if (m == ZERO) memset(at, 0, size);
  if (m == ONES) memset(at, 255, size);
  if (m == WILD) *(void**)at = (void*)0x10;
  if (m == JUNK) *(void**)at = junk;
  if (m == EMPTY) *(void**)at = zeros;
  if (m == MORE || m == SHORT) {
    memcpy(&word, at, size);
    word += m == MORE ? 1000000 : -1;
    memcpy(at, &word, size);
  }
}
"""

ERRORS = r"""
static void w_Error_Destroy(struct PJRT_Error_Destroy_Args* a) {
  if (!ours(a->error)) real.Error_Destroy(a);
}
static void w_Error_Message(struct PJRT_Error_Message_Args* a) {
  if (ours(a->error)) { a->message = "WORDS"; a->message_size = strlen(a->message); }
  else real.Error_Message(a);
}
static PJRT_Error* w_Error_GetCode(struct PJRT_Error_GetCode_Args* a) {
  if (!ours(a->error)) return real.Error_GetCode(a);
  a->code = *(int*)a->error;
  return 0;
}
"""

EPILOGUE = r"""
const PJRT_Api* GetPjrtApi(void) {
  void* library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const PJRT_Api* (*get)(void) = (const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi");
  const PJRT_Api* found = get();
  memcpy(&real, found, found->struct_size < sizeof real ? found->struct_size : sizeof real);
  memset(junk, 255, sizeof junk);
  api = real;
  SLOTS
  return &api;
}
"""

OWN = ("Error_Destroy", "Error_Message", "Error_GetCode", "Error_ForEachPayload")


@dataclass(frozen=True)
class Case:
    """A function, its fault, and the index of the faulty field (-1 for none)."""

    function: str
    slot: int
    mode: int
    field: int = -1
    field_name: str = ""

    def __str__(self) -> str:
        return f"PJRT_{self.function} {MODES[self.mode]} {self.field_name}".rstrip()


_OPAQUE = {f"{name}*" for name in (*OPAQUE, *EXTENSION_OPAQUE)}


def _modes(declaration: str) -> tuple[int, ...]:
    """Returns the possible changes of a field, without those that no host can detect. Undetectable
    is a wrong handle or address that is valid memory.
    """
    kind = declaration.rsplit(" ", 1)[0].replace("const ", "")
    if "(*" in declaration:
        return (ZERO, WILD, JUNK)
    if kind in _OPAQUE or kind == "uintptr_t":
        return (ZERO,)
    if kind.endswith(("* const*", "**")):
        return (ZERO, WILD, EMPTY)
    if kind.endswith("*"):
        return (ZERO, WILD, JUNK, EMPTY)
    if kind in ("size_t", "int64_t", "int", "bool", "Error_Code", "Buffer_Type"):
        return (ZERO, ONES, MORE, SHORT)
    return (ZERO, ONES)


def _functions() -> list[Entry]:
    return [entry for entry in d.functions() if entry.name not in OWN]


def _fields(entry: Entry) -> Iterator[tuple[int, str, str]]:
    """Yields (number, name, declaration) of the fields that a function fills in."""
    for i, declaration in enumerate(entry.fields):
        if field_name(declaration) in entry.outputs:
            yield i, field_name(declaration), declaration


def misbehaviours() -> list[Case]:
    """Returns all misbehaviours of the library."""
    cases = []
    for entry in _functions():
        cases += [Case(entry.name, entry.slot, mode) for mode in (SILENT, REFUSE, REFUSE_999)]
        cases.append(Case(entry.name, entry.slot, SCRIBBLE))
        for i, name, declaration in _fields(entry):
            for mode in _modes(declaration):
                cases.append(Case(entry.name, entry.slot, mode, i, name))
    return cases


def _wrapper(entry: Entry) -> str:
    changes, inputs = [], ["  if (m == SCRIBBLE) {"]
    outputs = {i: name for i, name, _ in _fields(entry)}
    for i, declaration in enumerate(entry.fields):
        name = field_name(declaration)
        if i in outputs:
            changes.append(f"  if (field == {i}) change(m, &a->{name}, sizeof a->{name}, 0);")
        else:
            inputs.append(f"    memset(&a->{name}, 0x5a, sizeof a->{name});")
    if entry.header:
        inputs.append("    a->struct_size = 7;")
    inputs.append("  }")
    body = "\n".join([*inputs, *changes])
    return f"""
static PJRT_Error* w_{entry.name}(struct PJRT_{entry.name}_Args* a) {{
  int m = now({entry.slot});
  if (m == SILENT) return 0;
  if (m == REFUSE || m == REFUSE_999) return refuse(m);
  PJRT_Error* e = real.{entry.name}(a);
  if (e) errors++;
  if (!m || e) return e;
{body}
  return 0;
}}"""


def source() -> str:
    """Returns the C text, which needs ``REAL``, the path of the real library as a string."""
    functions = _functions()
    slots = [f"if (real.{e.name}) api.{e.name} = w_{e.name};" for e in functions]
    slots += [f"api.{name} = w_{name};" for name in OWN[:3]]
    return (
        PROLOGUE
        + ERRORS.replace("WORDS", WORDS)
        + "\n".join(map(_wrapper, functions))
        + EPILOGUE.replace("SLOTS", "\n  ".join(slots))
    )


class BrokenLibrary:
    """The library in ``folder``, compiled around the one at ``real``."""

    def __init__(self, folder: Path, real: Path) -> None:
        (folder / "pjrt.h").write_text(cdef())
        self.path = compile_c(folder, source(), f"-I{folder}", f'-DREAL="{real}"')


class Control:
    """Sets the misbehaviour of a loaded library, and reads its counts."""

    def __init__(self, path: Path | str) -> None:
        self._library = ctypes.CDLL(str(path))
        self._library.calls_of.restype = ctypes.c_long
        self._library.errors_of_the_real_library.restype = ctypes.c_long

    def misbehave(self, case: Case, skip: int = 0) -> None:
        """Misbehaves from now on, after ``skip`` correct calls of the function."""
        self._library.misbehave(case.slot, case.mode, case.field, skip)

    def behave(self) -> None:
        """Stops the misbehaviour."""
        self._library.misbehave(0, 0, 0, 0)

    def calls(self, slot: int) -> int:
        """How often a function was called."""
        return int(self._library.calls_of(slot))

    def real_errors(self) -> int:
        """How many errors the real library has reported."""
        return int(self._library.errors_of_the_real_library())
