"""A PJRT library that poses as a GPU's: the real CPU library, with a GPU's answers for DLPack.

It records the waits that were requested, so that each way of ordering work can be asserted.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from plugrt.capi.abi.generate import cdef
from support.clib import compile_c

STREAM = 77
"""The stream that it gives for external ready events."""
FIRST_ID = 5
"""The local hardware id of its first device, which is no index."""

_SOURCE = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <dlfcn.h>
#include "pjrt.h"

static PJRT_Api real, api;
static char text[1 << 14];
const char* seen(void) { return text; }
void forget(void) { text[0] = 0; }
static void note(const char* what, long number) {
  size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, "%s %ld\n", what, number);
}
static PJRT_Error* platform_name(struct PJRT_Client_PlatformName_Args* a) {
  a->platform_name = PLATFORM; a->platform_name_size = strlen(PLATFORM);
  return 0;
}
static PJRT_Error* hardware_id(struct PJRT_Device_LocalHardwareId_Args* a) {
  PJRT_Error* e = real.Device_LocalHardwareId(a);
  a->local_hardware_id += FIRST_ID;
  return e;
}
static PJRT_Error* is_on_cpu(struct PJRT_Buffer_IsOnCpu_Args* a) {
  struct PJRT_Buffer_Memory_Args m = {sizeof m, 0, a->buffer};
  PJRT_Error* e = real.Buffer_Memory(&m);
  if (e) return e;
  struct PJRT_Memory_Kind_Args k = {sizeof k, 0, m.memory};
  e = real.Memory_Kind(&k);
  a->is_on_cpu = k.kind_size >= 11 && !strncmp(k.kind, "pinned_host", 11);
  return e;
}
static PJRT_Error* ready_event(struct PJRT_Buffer_ReadyEvent_Args* a) {
  note("ready", 0);
  return real.Buffer_ReadyEvent(a);
}
static PJRT_Error* refer(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args* a) {
  note("refer", 1);
  return real.Buffer_IncreaseExternalReferenceCount(a);
}
static PJRT_Error* drop(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args* a) {
  note("refer", -1);
  return real.Buffer_DecreaseExternalReferenceCount(a);
}
static PJRT_Error* view(struct PJRT_Client_CreateViewOfDeviceBuffer_Args* a) {
  note("view", a->stream);
  a->stream = 0;
  PJRT_Error* e = real.Client_CreateViewOfDeviceBuffer(a);
  if (e && TELLS_REFUSED) a->on_delete_callback(a->device_buffer_ptr, a->on_delete_callback_arg);
  return e;
}
static PJRT_Error* get_stream(struct PJRT_Get_Stream_For_External_Ready_Events_Args* a) {
  a->stream = STREAM;
  return 0;
}
static PJRT_Error* wait_on_stream(struct PJRT_Wait_Until_Buffer_Ready_On_Stream_Args* a) {
  note("wait", a->stream);
  return 0;
}
static PJRT_Stream_Extension stream;
const PJRT_Api* GetPjrtApi(void) {
  void* library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const PJRT_Api* (*get)(void) = (const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi");
  const PJRT_Api* found = get();
  memcpy(&real, found, found->struct_size < sizeof real ? found->struct_size : sizeof real);
  api = real;
  api.Client_PlatformName = platform_name;
  api.Device_LocalHardwareId = hardware_id;
  if (strcmp(PLATFORM, "cpu")) api.Buffer_IsOnCpu = is_on_cpu;
  api.Buffer_ReadyEvent = ready_event;
  api.Buffer_IncreaseExternalReferenceCount = refer;
  api.Buffer_DecreaseExternalReferenceCount = drop;
  api.Client_CreateViewOfDeviceBuffer = view;
  if (STREAM) {
    stream.base.struct_size = sizeof stream;
    stream.base.type = 3;  /* PJRT_Extension_Type_Stream */
    stream.base.next = real.extension_start;
    stream.Get_Stream_For_External_Ready_Events = get_stream;
    stream.Wait_Until_Buffer_Ready_On_Stream = wait_on_stream;
    api.extension_start = &stream.base;
  }
  return &api;
}
"""


class GpuLibrary:
    """The library in ``folder``, around the one at ``real``; without ``streams`` no extension.

    With ``tells_refused`` it reports a refused view as ended, like some libraries.
    """

    def __init__(
        self,
        folder: Path,
        real: Path,
        platform: str = "cuda",
        streams: bool = True,
        tells_refused: bool = False,
    ) -> None:
        (folder / "pjrt.h").write_text(cdef())
        self.path = compile_c(
            folder, _SOURCE, f"-I{folder}", f'-DREAL="{real}"', f'-DPLATFORM="{platform}"',
            f"-DSTREAM={STREAM if streams else 0}", f"-DFIRST_ID={FIRST_ID}",
            f"-DTELLS_REFUSED={int(tells_refused)}",
        )  # fmt: skip
        self._library = ctypes.CDLL(str(self.path))
        self._library.seen.restype = ctypes.c_char_p

    def seen(self) -> list[str]:
        """Returns the calls since the last time, such as ``wait 77`` or ``ready 0``."""
        lines: list[str] = self._library.seen().decode().splitlines()
        self._library.forget()
        return lines
