/* What shim.c and witness.c share: calls of a PJRT library, written against its own header. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include HEADER

enum { MOST_RANK = 16, MOST_DEVICES = 64 };

#define NEW(F, a) PJRT_##F##_Args a = {0}; a.struct_size = sizeof a

static PJRT_Api real; /* the table of the library, as far as it goes */

static const PJRT_Api* open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const PJRT_Api* (*get)(void) = library ? (const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi") : NULL;
  if (!get) { fprintf(stderr, "%s\n", dlerror()); exit(9); }
  const PJRT_Api* found = get();
  memcpy(&real, found, found->struct_size < sizeof real ? found->struct_size : sizeof real);
  return found;
}

static int drop_error(PJRT_Error* e) {
  if (!e) return 0;
  NEW(Error_Destroy, a); a.error = e; real.PJRT_Error_Destroy(&a);
  return 1;
}
static int code_of(PJRT_Error* e) {
  NEW(Error_GetCode, a); a.error = e;
  return drop_error(real.PJRT_Error_GetCode(&a)) ? -1 : (int)a.code;
}
static int finish(PJRT_Event* event) { /* awaits and destroys; 1 for an error */
  if (!event) return 0;
  NEW(Event_Await, a); a.event = event;
  int failed = drop_error(real.PJRT_Event_Await(&a));
  NEW(Event_Destroy, d); d.event = event; drop_error(real.PJRT_Event_Destroy(&d));
  return failed;
}
static void destroy_buffer(PJRT_Buffer* b) {
  NEW(Buffer_Destroy, a); a.buffer = b; drop_error(real.PJRT_Buffer_Destroy(&a));
}
static int id_of(PJRT_Device* device) {
  NEW(Device_GetDescription, g); g.device = device;
  if (drop_error(real.PJRT_Device_GetDescription(&g))) return -1;
  NEW(DeviceDescription_Id, i); i.device_description = g.device_description;
  return drop_error(real.PJRT_DeviceDescription_Id(&i)) ? -1 : i.id;
}

/* A buffer's description. */
typedef struct { int type, rank, device; int64_t dims[MOST_RANK]; size_t n; PJRT_Memory* memory; } Info;

static size_t count(const int64_t* dims, size_t rank) {
  size_t n = 1;
  for (size_t i = 0; i < rank; i++) n *= (size_t)dims[i];
  return n;
}
static int width(int t) {
  switch (t) {
    case PJRT_Buffer_Type_S16: case PJRT_Buffer_Type_U16: case PJRT_Buffer_Type_F16: case PJRT_Buffer_Type_BF16: return 2;
    case PJRT_Buffer_Type_S32: case PJRT_Buffer_Type_U32: case PJRT_Buffer_Type_F32: return 4;
    case PJRT_Buffer_Type_S64: case PJRT_Buffer_Type_U64: case PJRT_Buffer_Type_F64: case PJRT_Buffer_Type_C64: return 8;
    case PJRT_Buffer_Type_C128: return 16;
    default: return 1;
  }
}
static int describe(PJRT_Buffer* b, Info* info) {
  NEW(Buffer_ElementType, t); t.buffer = b;
  NEW(Buffer_Dimensions, d); d.buffer = b;
  NEW(Buffer_Device, v); v.buffer = b;
  NEW(Buffer_Memory, m); m.buffer = b;
  if (drop_error(real.PJRT_Buffer_ElementType(&t)) || drop_error(real.PJRT_Buffer_Dimensions(&d)) ||
      drop_error(real.PJRT_Buffer_Device(&v)) || d.num_dims > MOST_RANK) return 0;
  info->memory = drop_error(real.PJRT_Buffer_Memory(&m)) ? NULL : m.memory;
  info->type = t.type; info->rank = (int)d.num_dims; info->device = id_of(v.device);
  memcpy(info->dims, d.dims, d.num_dims * sizeof *d.dims);
  info->n = count(d.dims, d.num_dims);
  return 1;
}
static unsigned char* read_buffer(PJRT_Buffer* b, size_t* size) { /* malloc'd; NULL for an error */
  NEW(Buffer_ToHostBuffer, a); a.src = b;
  if (drop_error(real.PJRT_Buffer_ToHostBuffer(&a))) return NULL;
  if (a.event) finish(a.event);
  *size = a.dst_size;
  unsigned char* bytes = calloc(1, a.dst_size + 1);
  NEW(Buffer_ToHostBuffer, r); r.src = b; r.dst = bytes; r.dst_size = a.dst_size;
  if (drop_error(real.PJRT_Buffer_ToHostBuffer(&r)) || finish(r.event)) { free(bytes); return NULL; }
  return bytes;
}
