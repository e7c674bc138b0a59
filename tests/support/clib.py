"""Tiny PJRT libraries in C, compiled for one test: faults that no real library has."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from plugrt.capi.abi.generate import cdef
from support.requirements import needs

needs_cc = needs(shutil.which("cc"), "a C compiler")

MINIMAL = r"""
#include "pjrt.h"
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

/* A library with DEVICES devices that can start, and little more. */
#ifndef DEVICES
#define DEVICES 1
#endif
struct error { int code; const char* text; size_t size; };
static int live_errors = 0, live_clients = 0;
static PJRT_Error* fail(int code, const char* text) {
  struct error* e = malloc(sizeof *e);
  e->code = code; e->text = text; e->size = strlen(text);
  live_errors++;
  return (PJRT_Error*)e;
}
static void error_destroy(struct PJRT_Error_Destroy_Args* a) {
  if (a->error) { live_errors--; free(a->error); }
}
static void error_message(struct PJRT_Error_Message_Args* a) {
  a->message = ((struct error*)a->error)->text;
  a->message_size = ((struct error*)a->error)->size;
}
static PJRT_Error* error_code(struct PJRT_Error_GetCode_Args* a) {
  a->code = ((struct error*)a->error)->code;
  return 0;
}
static PJRT_Error* initialize(struct PJRT_Plugin_Initialize_Args* a) { return 0; }
static int client, devices[DEVICES + 1];
static PJRT_Device* pointers[DEVICES + 1];
static PJRT_Error* client_create(struct PJRT_Client_Create_Args* a) {
  live_clients++;
  a->client = (PJRT_Client*)&client;
  for (int i = 0; i < DEVICES; i++) { devices[i] = i; pointers[i] = (PJRT_Device*)&devices[i]; }
  return 0;
}
static PJRT_Error* client_destroy(struct PJRT_Client_Destroy_Args* a) { live_clients--; return 0; }
static PJRT_Error* platform_name(struct PJRT_Client_PlatformName_Args* a) {
  a->platform_name = "tinyXXX"; a->platform_name_size = 4;
  return 0;
}
static PJRT_Error* platform_version(struct PJRT_Client_PlatformVersion_Args* a) {
  a->platform_version = "1.0"; a->platform_version_size = 3;
  return 0;
}
static PJRT_Error* process_index(struct PJRT_Client_ProcessIndex_Args* a) { return 0; }
static PJRT_Error* client_devices(struct PJRT_Client_Devices_Args* a) {
  a->devices = DEVICES ? pointers : 0; a->num_devices = DEVICES;
  return 0;
}
static PJRT_Error* get_description(struct PJRT_Device_GetDescription_Args* a) {
  a->device_description = (PJRT_DeviceDescription*)a->device;
  return 0;
}
static PJRT_Error* is_addressable(struct PJRT_Device_IsAddressable_Args* a) {
  a->is_addressable = true;
  return 0;
}
static PJRT_Error* hardware_id(struct PJRT_Device_LocalHardwareId_Args* a) {
  a->local_hardware_id = *(int*)a->device;
  return 0;
}
static PJRT_Error* device_id(struct PJRT_DeviceDescription_Id_Args* a) {
  a->id = *(int*)a->device_description;
  return 0;
}
static PJRT_Error* device_process(struct PJRT_DeviceDescription_ProcessIndex_Args* a) { return 0; }
static PJRT_Error* device_kind(struct PJRT_DeviceDescription_Kind_Args* a) {
  a->device_kind = "tiny"; a->device_kind_size = 4;
  return 0;
}
static PJRT_Error* device_debug(struct PJRT_DeviceDescription_DebugString_Args* a) { return 0; }
static PJRT_Error* device_attributes(struct PJRT_DeviceDescription_Attributes_Args* a) { return 0; }

static PJRT_Api api;
static void customize(void);
const PJRT_Api* GetPjrtApi(void) {
  api.struct_size = sizeof api;
  api.pjrt_api_version.struct_size = sizeof api.pjrt_api_version;
  api.pjrt_api_version.minor_version = 90;
  api.Error_Destroy = error_destroy;
  api.Error_Message = error_message;
  api.Error_GetCode = error_code;
  api.Plugin_Initialize = initialize;
  api.Client_Create = client_create;
  api.Client_Destroy = client_destroy;
  api.Client_PlatformName = platform_name;
  api.Client_PlatformVersion = platform_version;
  api.Client_ProcessIndex = process_index;
  api.Client_Devices = client_devices;
  api.Device_GetDescription = get_description;
  api.Device_IsAddressable = is_addressable;
  api.Device_LocalHardwareId = hardware_id;
  api.DeviceDescription_Id = device_id;
  api.DeviceDescription_ProcessIndex = device_process;
  api.DeviceDescription_Kind = device_kind;
  api.DeviceDescription_DebugString = device_debug;
  api.DeviceDescription_Attributes = device_attributes;
  customize();
  return &api;
}
"""


def compile_c(folder: Path, source: str, *flags: str) -> Path:
    """Compiles C text into a shared library in ``folder`` and returns its path."""
    name = hashlib.sha256(repr((source, flags)).encode()).hexdigest()[:12]
    code = folder / f"{name}.c"
    code.write_text(source)
    target = folder / f"lib{name}.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O0", "-w", "-o", str(target), str(code), *flags],
        check=True,
        capture_output=True,
    )
    return target


def tiny_library(folder: Path, customize: str = "", functions: str = "", *flags: str) -> Path:
    """Returns a library that starts and lists its devices, changed by C code.

    ``customize`` is the body of a function that may change ``api``; ``functions`` are put before
    it. The C text includes our own declarations, so that a C compiler checks them, too.
    """
    header = "#include <stddef.h>\n#include <stdint.h>\n#include <stdbool.h>\n" + cdef()
    (folder / "pjrt.h").write_text(header)
    source = f"{MINIMAL}\n{functions}\nstatic void customize(void) {{ {customize} }}\n"
    return compile_c(folder, source, f"-I{folder}", *flags)


def linked(folder: Path, *libraries: str) -> tuple[str, ...]:
    """Returns the flags that make a library need others; these are put into ``folder``."""
    for name in libraries:
        compile_c(folder, "int other;", f"-Wl,-soname,{name}").rename(folder / name)
    return (f"-L{folder}", "-Wl,--no-as-needed", *(f"-l:{name}" for name in libraries))
