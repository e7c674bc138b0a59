"""Sixty PJRT libraries with one misbehaviour each.

They are one file under many names: the misbehaviour depends on the name by which it was loaded, so
that all of them cost one run of the compiler.
"""

from __future__ import annotations

import os
from pathlib import Path

from support.clib import tiny_library

_FUNCTIONS = r"""
#define __USE_GNU
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
extern char** environ;

static char kind[64];
static int is(const char* name) { return strcmp(kind, name) == 0; }
static int begins(const char* name) { return strncmp(kind, name, strlen(name)) == 0; }
static void hang(void) { for (;;) pause(); }
static volatile int sink;
static void spin(void) { for (;;) sink++; }
static int recurse(int n) {
  volatile char block[4096];
  block[0] = n;
  return recurse(n + 1) + block[0];
}
static void* spin_thread(void* x) { spin(); return 0; }
static void deaf(void) { for (int i = 1; i < 65; i++) signal(i, SIG_IGN); }
static void become_daemon(void) {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) { for (int i = 0; i < 1000; i++) close(i); hang(); }
    _exit(0);
  }
  wait(0);
}

/* What any stage may do, by the end of the name. */
static void act(const char* what) {
  if (!strcmp(what, "abort")) { fprintf(stderr, "frobnitz: giving up\n"); abort(); }
  if (!strcmp(what, "segv")) *(volatile int*)8 = 1;
  if (!strcmp(what, "fpe")) raise(SIGFPE);
  if (!strcmp(what, "ill")) raise(SIGILL);
  if (!strcmp(what, "bus")) raise(SIGBUS);
  if (!strcmp(what, "exit0")) exit(0);
  if (!strcmp(what, "_exit0")) _exit(0);
  if (!strcmp(what, "_exit3")) _exit(3);
  if (!strcmp(what, "hang")) hang();
  if (!strcmp(what, "spin")) spin();
  if (!strcmp(what, "deaf")) { deaf(); hang(); }
  if (!strcmp(what, "stop")) raise(SIGSTOP);
  if (!strcmp(what, "kill")) raise(SIGKILL);
  if (!strcmp(what, "term")) raise(SIGTERM);
  if (!strcmp(what, "realtime")) raise(40);
  if (!strcmp(what, "group")) kill(0, SIGKILL);
  if (!strcmp(what, "recurse")) sink = recurse(0);
  if (!strcmp(what, "family")) { become_daemon(); become_daemon(); hang(); }
}
static void stage(const char* name) {
  size_t n = strlen(name);
  if (strncmp(kind, name, n) == 0 && kind[n] == '_') act(kind + n + 1);
}

__attribute__((constructor)) static void load(void) {
  Dl_info info;
  dladdr((void*)load, &info);
  const char* base = strrchr(info.dli_fname, '/');
  strncpy(kind, base ? base + 1 : info.dli_fname, sizeof kind - 1);
  *strchr(kind, '.') = 0;
  stage("load");
}
__attribute__((destructor)) static void unload(void) { stage("end"); }

static void replace_handler(int number) { signal(number, SIG_DFL); }
static PJRT_Error* sick_initialize(struct PJRT_Plugin_Initialize_Args* a) {
  stage("init");
  if (is("init_internal")) return fail(13, "frobnitz: firmware crashed");
  if (is("init_absent")) return fail(14, "frobnitz: no such card");
  if (is("does_chdir")) chdir("/");
  if (is("does_sigint")) replace_handler(SIGINT);
  if (is("does_sigpipe")) replace_handler(SIGPIPE);
  if (is("does_denormals")) {
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
  }
  for (int i = 0; i < 100000 && is("does_print"); i++) puts("{\"result\": 1, \"ended\": 2}");
  for (int i = 0; i < 100000 && is("does_print_errors"); i++) fputs("noise noise\n", stderr);
  if (is("does_daemon")) become_daemon();
  if (is("does_exec") && fork() == 0) execl("/bin/sleep", "sleep", "600", (char*)0);
  if (is("does_thread")) { pthread_t t; pthread_create(&t, 0, spin_thread, 0); }
  if (is("does_map_100gb"))
    mmap(0, 100ul << 30, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (is("does_clearenv")) environ = 0;
  if (is("does_umask")) umask(0777);
  if (is("does_rounding")) fesetround(FE_UPWARD);
  if (is("does_alarm")) alarm(3600);
  if (is("does_mask")) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
  }
  if (is("closes_stdin")) close(0);
  if (is("closes_stdout")) { fclose(stdout); close(1); }
  if (is("closes_stderr")) close(2);
  if (is("closes_report")) for (int i = 3; i < 1000; i++) close(i);
  if (is("closes_all")) for (int i = 0; i < 1000; i++) close(i);
  if (is("replaces_stdout")) dup2(open("/dev/null", O_WRONLY), 1);
  if (is("does_limits")) { struct rlimit r = {3, 3}; setrlimit(RLIMIT_NOFILE, &r); }
  return 0;
}
static PJRT_Error* sick_create(struct PJRT_Client_Create_Args* a) {
  stage("client");
  if (is("client_internal")) return fail(13, "frobnitz: firmware crashed");
  if (is("client_unknown")) return fail(2, "what happened?");
  if (is("client_escape")) return fail(13, "frob\033[31mnitz \002");
  if (is("client_undefined")) return fail(77, "a code of its own");
  if (is("client_absent")) return fail(5, "frobnitz: no chip");
  if (is("client_null")) return 0;
  return client_create(a);
}
static PJRT_Error* sick_devices(struct PJRT_Client_Devices_Args* a) {
  stage("devices");
  client_devices(a);
  if (is("devices_none")) a->num_devices = 0;
  if (is("devices_null")) { a->devices = 0; a->num_devices = 3; }
  if (is("devices_huge")) a->num_devices = (size_t)1 << 40;
  return 0;
}
static PJRT_Error* sick_id(struct PJRT_DeviceDescription_Id_Args* a) {
  a->id = is("devices_equal") ? 0 : *(int*)a->device_description;
  return 0;
}
static PJRT_Error* sick_process(struct PJRT_Client_ProcessIndex_Args* a) {
  a->process_index = is("process_nine") ? 9 : is("process_minus") ? -1 : 0;
  return 0;
}
static PJRT_Error* sick_platform(struct PJRT_Client_PlatformName_Args* a) {
  static char long_name[1 << 22];
  a->platform_name = is("platform_null") ? 0 : is("platform_line") ? "a\nb" : "tiny";
  a->platform_name_size = is("platform_empty") ? 0 : is("platform_line") ? 3 : 4;
  if (is("platform_huge")) {
    memset(long_name, 'x', sizeof long_name);
    a->platform_name = long_name;
    a->platform_name_size = sizeof long_name;
  }
  return 0;
}
static PJRT_Error* sick_addressable(struct PJRT_Device_IsAddressable_Args* a) {
  a->is_addressable = !is("devices_foreign");
  return 0;
}
static PJRT_Error* none_addressable(struct PJRT_Client_AddressableDevices_Args* a) {
  a->addressable_devices = pointers;
  a->num_addressable_devices = is("devices_foreign") ? 0 : DEVICES;
  return 0;
}
static PJRT_Error* sick_put(struct PJRT_Client_BufferFromHostBuffer_Args* a) {
  stage("put");
  if (is("put_refuses")) return fail(13, "frobnitz: no way");
  return 0;
}
static PJRT_Error* nothing(void* a) { return 0; }
"""

_CUSTOMIZE = r"""
  stage("api");
  api.Plugin_Initialize = sick_initialize;
  api.Client_Create = sick_create;
  api.Client_Devices = sick_devices;
  api.Client_AddressableDevices = none_addressable;
  api.DeviceDescription_Id = sick_id;
  api.Device_IsAddressable = sick_addressable;
  if (begins("process_")) api.Client_ProcessIndex = sick_process;
  if (begins("platform_")) api.Client_PlatformName = sick_platform;
  if (begins("put_")) api.Client_BufferFromHostBuffer = sick_put;
  if (is("version_old")) api.pjrt_api_version.minor_version = 5;
  if (is("version_major")) api.pjrt_api_version.major_version = 1;
  if (is("size_zero")) api.struct_size = 0;
  if (is("size_huge")) api.struct_size = (size_t)1 << 62;
  if (is("size_odd")) api.struct_size = 13;
  if (is("chain_wild")) api.extension_start = (PJRT_Extension_Base*)0x10;
  if (is("chain_self")) {
    static PJRT_Extension_Base loop;
    loop.struct_size = sizeof loop; loop.type = 3; loop.next = &loop;
    api.extension_start = &loop;
  }
  if (is("all_nothing") || is("rest_nothing")) {
    void** slots = (void**)&api.Error_Destroy;
    for (int i = 0; (char*)(slots + i) < (char*)(&api + 1); i++)
      if (is("all_nothing") || !slots[i]) slots[i] = (void*)nothing;
  }
  if (is("all_null")) memset(&api.Error_Destroy, 0, sizeof api - offsetof(PJRT_Api, Error_Destroy));
"""


LATE = "did not return within"
AT_END = "when the process ended, after all had worked"

SICK: dict[str, tuple[str, tuple[str, ...]]] = {
    # name: state, words of the reason
    "load_abort": ("broken", ("SIGABRT while it was loaded", "last output: frobnitz: giving up")),
    "load_segv": ("broken", ("SIGSEGV while it was loaded",)),
    "load_fpe": ("broken", ("SIGFPE while it was loaded",)),
    "load_exit0": ("broken", ("exit code 0 while it was loaded",)),
    "load__exit3": ("broken", ("exit code 3 while it was loaded",)),
    "load_hang": ("broken", (LATE, "while it was loaded")),
    "load_spin": ("broken", (LATE, "while it was loaded")),
    "load_deaf": ("broken", (LATE, "while it was loaded")),
    "load_family": ("broken", (LATE, "while it was loaded")),
    "load_recurse": ("broken", ("SIGSEGV while it was loaded",)),
    "load_stop": ("broken", ("was stopped by SIGSTOP while it was loaded",)),
    "load_kill": ("broken", ("SIGKILL while it was loaded",)),
    "load_group": ("broken", ("SIGKILL while it was loaded",)),
    "load_realtime": ("broken", ("signal 40 while it was loaded",)),
    "api_abort": ("broken", ("SIGABRT while it was loaded",)),
    "api_ill": ("broken", ("SIGILL while it was loaded",)),
    "version_old": ("incompatible", ("version 0.5",)),
    "version_major": ("incompatible", ("version 1.90",)),
    "size_zero": ("incompatible", ("a table of 0 bytes",)),
    "size_odd": ("incompatible", ("a table of 13 bytes",)),
    "size_huge": ("incompatible", ("a table of 4611686018427387904 bytes",)),
    "chain_self": ("broken", ("runs in a circle",)),
    "chain_wild": ("broken", ("the chain of extensions leads to the address 0x10",)),
    "all_null": ("broken", ("UNIMPLEMENTED", "Plugin_Initialize")),
    "all_nothing": ("broken", ("Client_Create reported success", "NULL")),
    "rest_nothing": ("broken", ("reported success",)),
    "init_internal": ("broken", ("INTERNAL: frobnitz: firmware crashed", "Plugin_Initialize")),
    "init_absent": ("unavailable", ("UNAVAILABLE: frobnitz: no such card",)),
    "init_abort": ("broken", ("SIGABRT in PJRT_Plugin_Initialize", "frobnitz: giving up")),
    "init_exit0": ("broken", ("exit code 0 in PJRT_Plugin_Initialize",)),
    "init_term": ("broken", ("SIGTERM in PJRT_Plugin_Initialize",)),
    "init_bus": ("broken", ("SIGBUS in PJRT_Plugin_Initialize",)),
    "init_stop": ("broken", ("SIGSTOP in PJRT_Plugin_Initialize",)),
    "closes_stdin": ("broken", ("closed the standard input",)),
    "closes_stdout": ("broken", ("closed the standard output",)),
    "closes_stderr": ("broken", ("closed the standard error",)),
    "replaces_stdout": ("broken", ("closed the standard output",)),
    "closes_report": ("broken", ("closed files of its process",)),
    "closes_all": ("broken", ("closed files of its process",)),
    "client_internal": ("broken", ("INTERNAL: frobnitz: firmware crashed", "Client_Create")),
    "client_unknown": ("broken", ("UNKNOWN: what happened?", "Client_Create")),
    "client_undefined": ("broken", ("a code of its own", "77")),
    "client_absent": ("unavailable", ("NOT_FOUND: frobnitz: no chip",)),
    "client_null": ("broken", ("Client_Create reported success", "NULL")),
    "client__exit0": ("broken", ("exit code 0 in PJRT_Client_Create",)),
    "client_hang": ("broken", (LATE, "in PJRT_Client_Create")),
    "devices_none": ("broken", ("has no devices",)),
    "devices_null": ("broken", ("Client_Devices reported success", "NULL")),
    "devices_huge": ("broken", ("Client_Devices reported success",)),
    "devices_equal": ("broken", ("devices", "the id 0")),
    "devices_foreign": ("broken", ("can use none of its 2 devices",)),
    "client_escape": ("broken", (r"INTERNAL: frob\x1b[31mnitz \x02",)),
    "process_nine": ("broken", ("this is process 9", "is of process 0")),
    "process_minus": ("broken", ("this is process -1",)),
    "platform_null": ("broken", ("Client_PlatformName reported success", "NULL")),
    "platform_empty": ("broken", ("Client_PlatformName reported success", "name is ''")),
    "platform_line": ("broken", (r"name is 'a\nb'",)),
    "platform_huge": ("broken", ("Client_PlatformName reported success", "xxx")),
    "devices_abort": ("broken", ("SIGABRT in", "devices were listed")),
    "put_abort": ("broken", ("SIGABRT while numbers were put on a device",)),
    "put_hang": ("broken", (LATE, "while numbers were put on a device")),
    "put_refuses": ("broken", ("INTERNAL: frobnitz: no way", "numbers were put")),
    "end_abort": ("broken", ("SIGABRT", AT_END)),
    "end_segv": ("broken", ("SIGSEGV", AT_END)),
    "end_hang": ("broken", (LATE, AT_END)),
    "end__exit3": ("broken", ("exit code 3", AT_END)),
    "end_stop": ("broken", ("SIGSTOP", AT_END)),
}
"""The state of each, and words of the reason."""

ODD: dict[str, str] = {
    "does_chdir": "it changed the working folder to /",
    "does_sigint": "it replaced the handler of SIGINT",
    "does_sigpipe": "it replaced the handler of SIGPIPE",
    "does_print": 'it printed 2600000 bytes to stdout: \'{"result": 1',
    "does_daemon": "it left processes behind, which were ended (1)",
    "does_exec": "it left processes behind, which were ended (1)",
    "does_print_errors": "",
    "does_thread": "",
    "does_map_100gb": "",
    "does_clearenv": "",
    "does_umask": "",
    "does_rounding": "it makes this thread round other than to the nearest number",
    "does_alarm": "it sets the timer of its process",
    "does_mask": "it blocks 6",
    "does_denormals": "it makes this thread take denormal numbers for zero",
}
"""Those that work, with words of the message about them."""


def make_libraries(folder: Path) -> dict[str, Path]:
    """Returns the path of each library by name."""
    made = tiny_library(folder, _CUSTOMIZE, _FUNCTIONS, "-DDEVICES=2", "-pthread", "-ldl", "-lm")
    found = {}
    for name in (*SICK, *ODD):
        found[name] = folder / f"{name}.so"
        os.link(made, found[name])
    return found
