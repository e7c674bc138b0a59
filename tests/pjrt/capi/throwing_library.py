"""A PJRT library in C++ that throws an exception from each function on request."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from plugrt.capi.abi.declarations import ENUMS
from plugrt.capi.abi.generate import cdef
from support.requirements import needs

needs_cxx = needs(shutil.which("c++"), "a C++ compiler")

STATIC = ("-static-libstdc++", "-static-libgcc")
"""The flags that give the library a C++ runtime of its own."""

THROWN = {
    1: "std::runtime_error: no chips here",
    2: "int",
    3: "Strange",
    4: "a C++ exception of another runtime",
}
"""The types that the library can throw, by number, with the words of their messages."""

_SOURCE = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <exception>
#include <stdexcept>
#include <utility>
#include <unwind.h>
extern "C" {
#include "pjrt.h"
}

struct Strange { int number; };
using Function = void *(*)(void *);
constexpr size_t FIRST = offsetof(PJRT_Api, Error_Destroy);
constexpr size_t COUNT = (sizeof(PJRT_Api) - FIRST) / sizeof(Function);
static PJRT_Api api;
static PLUGIN_Profiler_Api profiler;
static PJRT_Profiler_Extension extension;
static Function real[COUNT];
static size_t throwing = COUNT;
static int thrown, times;

/* Named as LLVM's are. GCC's have their type before this part, where these have anything. */
struct Foreign { char before[128]; _Unwind_Exception part; };
static void forget(_Unwind_Reason_Code, _Unwind_Exception *part) {
  free(reinterpret_cast<char *>(part) - offsetof(Foreign, part));
}
static void raise_foreign() {
  void *room = aligned_alloc(alignof(Foreign), sizeof(Foreign));
  auto *made = static_cast<Foreign *>(memset(room, 0x41, sizeof(Foreign)));
  memset(&made->part, 0, sizeof made->part);
  memcpy(&made->part.exception_class, "\0++CGNLC", 8);
  made->part.exception_cleanup = forget;
  _Unwind_RaiseException(&made->part);
  std::terminate();
}
static void raise_one() {
  times++;
  if (thrown == 4) raise_foreign();
  if (thrown == 1) throw std::runtime_error("no chips here");
  if (thrown == 2) throw 5;
  throw Strange{7};
}
static const struct Early {
  Early() {
    if (getenv("THROW_WHILE_LOADED")) { thrown = atoi(getenv("THROW_WHILE_LOADED")); raise_one(); }
  }
} early;
template <size_t N> static void *enter(void *args) {
  if (throwing == N) raise_one();
  return real[N] ? real[N](args) : nullptr;
}
static void *throw_now(void *) {
  raise_one();
  return nullptr;
}
/* Of the profiler each function throws at once. */
static void add_profiler() {
  profiler.struct_size = sizeof profiler;
  Function *slots = reinterpret_cast<Function *>(&profiler) + 2;
  for (size_t i = 0; i < sizeof profiler / sizeof(Function) - 2; i++) slots[i] = throw_now;
  extension.base.struct_size = sizeof extension;
  extension.base.type = PROFILER;
  extension.profiler_api = &profiler;
  api.extension_start = &extension.base;
}
extern "C" Function thrower() { return throw_now; }
template <size_t... N> static void fill(Function *slots, std::index_sequence<N...>) {
  ((slots[N] = enter<N>), ...);
}
/* Has the function at that place of the table throw; behind its end: none. */
extern "C" void arm(size_t place, int what) { throwing = place; thrown = what; times = 0; }
extern "C" int times_thrown() { return times; }
extern "C" const PJRT_Api *GetPjrtApi() {
  if (getenv("THROW_AT_ENTRY")) { thrown = atoi(getenv("THROW_AT_ENTRY")); raise_one(); }
  if (api.struct_size) return &api;
  Function *slots = reinterpret_cast<Function *>(reinterpret_cast<char *>(&api) + FIRST);
  if (const char *path = getenv("PATH_OF_LIBRARY")) {
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    auto *theirs = reinterpret_cast<const PJRT_Api *(*)()>(dlsym(opened, "GetPjrtApi"))();
    memcpy(&api, theirs, theirs->struct_size < sizeof api ? theirs->struct_size : sizeof api);
    memcpy(real, slots, sizeof real);
  } else {
    api.struct_size = sizeof api;
    api.pjrt_api_version.struct_size = sizeof api.pjrt_api_version;
    api.pjrt_api_version.minor_version = 114;
    add_profiler();
  }
  fill(slots, std::make_index_sequence<COUNT>());
  return &api;
}
"""


def throwing_library(folder: Path, *flags: str) -> Path:
    """Returns a library that passes calls on to ``PATH_OF_LIBRARY``, if that is set."""
    header = "#include <stddef.h>\n#include <stdint.h>\n" + cdef()
    (folder / "pjrt.h").write_text(header)
    source, target = folder / "throwing.cc", folder / "libthrowing.so"
    source.write_text(_SOURCE)
    command: list[str | Path] = [
        "c++",
        "-std=c++17",
        "-shared",
        "-fPIC",
        "-O0",
        "-w",
        f"-I{folder}",
        f"-DPROFILER={ENUMS['Extension_Type'].index('Profiler')}",
        "-o",
        target,
    ]
    subprocess.run([*command, source, *flags, "-ldl"], check=True, capture_output=True)
    return target
