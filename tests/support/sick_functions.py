"""Libraries around a sound one with one action that ends, hangs or floods a process.

They are one file under many names: the name states the function and the action,
``Client_Compile-abort.so``. The functions' names come from the declarations, so any of them is
possible, and ``load`` (when the library is loaded) and ``end`` (when the process ends).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from plugrt.capi.abi.declarations import functions
from plugrt.capi.abi.generate import cdef
from plugrt_sdk.export import export_library
from support.clib import compile_c

_SOURCE = r"""
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pjrt.h"

static const char* names[] = {NAMES, 0};
static char at[128], what[64];
static PJRT_Api api;
static void* (*sound)(void*);

static volatile int sink;
static void hang(void) {
  const char* path = getenv("SICK_FILE");  /* who waits for this moment reads it */
  FILE* file = path ? fopen(path, "w") : 0;
  if (file) { fputs("hangs", file); fclose(file); }
  for (;;) pause();
}
static int recurse(int n) {
  volatile char block[4096];
  block[0] = n;
  return recurse(n + 1) + block[0];
}
static void* abort_soon(void* x) {
  fprintf(stderr, "frobnitz: a thread gives up\n");
  abort();
}
static void abort_in_thread(void) {
  pthread_t thread;
  pthread_create(&thread, 0, abort_soon, 0);
  hang();
}
static void* spin(void* x) { for (;;) sink++; }
static void keep_lock(void) {
  int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
  if (ensure) ensure();
  spin(0);
}
static void throw_exception(void) {
  void* cxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
  void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(cxx, "__cxa_allocate_exception");
  void (*throw)(void*, void*, void*) = (void (*)(void*, void*, void*))dlsym(cxx, "__cxa_throw");
  int* thrown = allocate(sizeof *thrown);
  *thrown = 7;
  throw(thrown, dlsym(cxx, "_ZTIi"), 0);
}
static void deaf(void) { for (int i = 1; i < 65; i++) signal(i, SIG_IGN); }
static void become_daemon(void) {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) hang();
    _exit(0);
  }
}
static void write_everywhere(const char* line) {
  for (int i = 3; i < 300; i++) write(i, line, strlen(line));
}

/* What ends or hangs the process. */
static void act(void) {
  if (!strcmp(what, "abort")) { fprintf(stderr, "frobnitz: giving up\n"); abort(); }
  if (!strcmp(what, "abort_in_thread")) abort_in_thread();
  if (!strcmp(what, "segv")) *(volatile int*)8 = 1;
  if (!strcmp(what, "jump")) ((void (*)(void))0x10)();
  if (!strcmp(what, "recurse")) sink = recurse(0);
  if (!strcmp(what, "throw")) throw_exception();
  if (!strcmp(what, "exit0")) exit(0);
  if (!strcmp(what, "_exit0")) _exit(0);
  if (!strcmp(what, "kill")) raise(SIGKILL);
  if (!strcmp(what, "interrupt")) { signal(SIGINT, SIG_DFL); raise(SIGINT); }
  if (!strcmp(what, "stop")) raise(SIGSTOP);
  if (!strcmp(what, "kill_group")) kill(0, SIGKILL);
  if (!strcmp(what, "kill_parent")) { kill(getppid(), SIGKILL); hang(); }
  if (!strcmp(what, "hang")) hang();
  if (!strcmp(what, "deaf")) { deaf(); prctl(PR_SET_PDEATHSIG, 0); hang(); }
  if (!strcmp(what, "keep_lock")) keep_lock();
  if (!strcmp(what, "close_all")) for (int i = 0; i < 1000; i++) close(i);
  /* After these it goes on. */
  if (!strcmp(what, "print")) for (int i = 0; i < 1 << 20; i++) puts("{\"end\": \"programs.add\"}");
  if (!strcmp(what, "print_errors")) for (int i = 0; i < 1 << 20; i++) fputs("noise ", stderr);
  if (!strcmp(what, "close_output")) { fclose(stdout); close(1); close(2); }
  if (!strcmp(what, "write_everywhere"))
    write_everywhere("{\"within\": \"x\"}\n{\"end\": \"programs.add\", \"result\": 1}\nhalf");
  if (!strcmp(what, "fork")) fork();
  if (!strcmp(what, "daemon")) for (int i = 0; i < 8; i++) become_daemon();
  if (!strcmp(what, "thread")) { pthread_t t; pthread_create(&t, 0, spin, 0); }
  if (!strcmp(what, "handlers")) deaf();
  if (!strcmp(what, "mask")) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
  }
  if (!strcmp(what, "folder")) { chdir("/"); umask(0777); clearenv(); }
}
static void* sick(void* args) {
  act();
  return sound(args);
}

__attribute__((constructor)) static void load(void) {
  Dl_info info;
  dladdr((void*)load, &info);
  sscanf(strrchr(info.dli_fname, '/') + 1, "%127[^-]-%63[^.]", at, what);
  if (!strcmp(at, "load")) act();
}
__attribute__((destructor)) static void unload(void) { if (!strcmp(at, "end")) act(); }

const PJRT_Api* GetPjrtApi(void) {
  void* library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const PJRT_Api* found = ((const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi"))();
  memcpy(&api, found, found->struct_size < sizeof api ? found->struct_size : sizeof api);
  void** slots = (void**)&api.Error_Destroy;
  for (int i = 0; names[i]; i++)
    if (!strcmp(names[i], at)) { sound = (void* (*)(void*))slots[i]; slots[i] = (void*)sick; }
  return &api;
}
"""


CAUGHT_BY = {
    "load-abort": "abi.version",
    "load-recurse": "abi.version",
    "Plugin_Initialize-exit0": "abi.initialize",
    "Client_Create-segv": "client.create",
    "Client_Create-hang": "client.create",
    "Client_Devices-throw": "client.create",
    "Client_Compile-abort_in_thread": "programs.add",
    "Client_Compile-jump": "programs.add",
    "Client_Compile-keep_lock": "programs.add",
    "Client_Compile-close_all": "programs.add",
    "Client_Compile-kill_group": "programs.add",
    "LoadedExecutable_Execute-_exit0": "programs.add",
    "LoadedExecutable_Execute-stop": "programs.add",
    "LoadedExecutable_Execute-deaf": "programs.add",
    "end-abort": "client.exit",
    "end-hang": "client.exit",
}
"""Libraries that end or hang their process, to the check that is running then.

Without the one that kills the parent of its process: this kit's keeper handles that, other kits do
not.
"""


class SickFunctions:
    """Makes the libraries in ``folder``, around the exported plugin ``real``."""

    def __init__(self, folder: Path, real: str = "numpy") -> None:
        self._folder = folder
        sound = export_library(real, folder / f"lib{real}.so")
        (folder / "pjrt.h").write_text(cdef())
        names = ", ".join(f'"{f.name}"' for f in sorted(functions(), key=lambda f: f.slot))
        self._made = compile_c(
            folder, _SOURCE.replace("NAMES", names), f"-I{folder}", f'-DREAL="{sound}"', "-pthread",
            "-ldl", "-fexceptions",
        )  # fmt: skip

    def library(self, where: str, what: str) -> Path:
        """Returns the library with the action ``what`` in the function ``where``."""
        known: Iterable[str] = (f.name for f in functions())
        assert where in {"load", "end", *known}, where
        assert f'"{what}"' in _SOURCE, what
        path = self._folder / f"{where}-{what}.so"
        if not path.exists():
            os.link(self._made, path)
        return path
