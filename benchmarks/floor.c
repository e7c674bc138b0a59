/* Measures the library's own time: calls it from C with as little other code as possible.

   benchmarks/floor.py writes plugrt's declarations of the API as pjrt.h, compiles this file into a
   shared library and calls it through ctypes, so that it runs in turn with the other hosts.
   Functions that measure return the mean seconds of `count` rounds. A failing call exits: the
   benchmark then has no result. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pjrt.h"

#define CALL(name, args) check(api->name(args), #name)
#define NEW(type) {.struct_size = sizeof(struct type)}

enum { MOST_DEVICES = 16, FLOAT32 = 11, DURING_CALL = 0 };

static const PJRT_Api* api;
static PJRT_Client* client;
static PJRT_Device* devices[MOST_DEVICES];

typedef struct {
  struct PJRT_LoadedExecutable_Execute_Args args;
  struct PJRT_ExecuteOptions options;
  PJRT_Buffer **arguments[MOST_DEVICES], **results[MOST_DEVICES];
  PJRT_Event* done[MOST_DEVICES];
  size_t num_results;
} Launch;

static void check(PJRT_Error* error, const char* what) {
  if (error == NULL) return;
  struct PJRT_Error_Message_Args said = NEW(PJRT_Error_Message_Args);
  said.error = error;
  api->Error_Message(&said);
  fprintf(stderr, "floor: %s: %.*s\n", what, (int)said.message_size, said.message);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void destroy_event(PJRT_Event* event) {
  struct PJRT_Event_Destroy_Args args = NEW(PJRT_Event_Destroy_Args);
  args.event = event;
  CALL(Event_Destroy, &args);
}

static void finish(PJRT_Event* event) {
  struct PJRT_Event_Await_Args args = NEW(PJRT_Event_Await_Args);
  args.event = event;
  CALL(Event_Await, &args);
  destroy_event(event);
}

static void destroy_buffer(PJRT_Buffer* buffer) {
  struct PJRT_Buffer_Destroy_Args args = NEW(PJRT_Buffer_Destroy_Args);
  args.buffer = buffer;
  CALL(Buffer_Destroy, &args);
}

/* Loads the library and makes a client; returns its number of devices. */
int floor_open(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const PJRT_Api* (*get)(void) = library ? (const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi") : NULL;
  if (get == NULL) {
    fprintf(stderr, "floor: %s\n", dlerror());
    exit(1);
  }
  api = get();
  struct PJRT_Plugin_Initialize_Args start = NEW(PJRT_Plugin_Initialize_Args);
  CALL(Plugin_Initialize, &start);
  struct PJRT_Client_Create_Args create = NEW(PJRT_Client_Create_Args);
  CALL(Client_Create, &create);
  client = create.client;
  struct PJRT_Client_AddressableDevices_Args ask = NEW(PJRT_Client_AddressableDevices_Args);
  ask.client = client;
  CALL(Client_AddressableDevices, &ask);
  int count = ask.num_addressable_devices < MOST_DEVICES ? (int)ask.num_addressable_devices : MOST_DEVICES;
  memcpy(devices, ask.addressable_devices, count * sizeof *devices);
  return count;
}

static PJRT_Buffer* put(const float* data, int64_t size, int device) {
  struct PJRT_Client_BufferFromHostBuffer_Args args = NEW(PJRT_Client_BufferFromHostBuffer_Args);
  args.client = client;
  args.data = data;
  args.type = FLOAT32;
  args.dims = &size;
  args.num_dims = 1;
  args.host_buffer_semantics = DURING_CALL;
  args.device = devices[device];
  CALL(Client_BufferFromHostBuffer, &args);
  destroy_event(args.done_with_host_buffer); /* with these semantics the source was read */
  return args.buffer;
}

static void await_buffer(PJRT_Buffer* buffer) {
  struct PJRT_Buffer_ReadyEvent_Args args = NEW(PJRT_Buffer_ReadyEvent_Args);
  args.buffer = buffer;
  CALL(Buffer_ReadyEvent, &args);
  finish(args.event);
}

/* Compiles a program with `arguments` arguments of `size` floats, and puts each on `replicas`
   devices. */
Launch* floor_compile(const char* code, size_t code_size, const char* options, size_t options_size,
                      int replicas, int arguments, int results, const float* data, int64_t size) {
  struct PJRT_Program program = NEW(PJRT_Program);
  program.code = (char*)code;
  program.code_size = code_size;
  program.format = "mlir";
  program.format_size = 4;
  struct PJRT_Client_Compile_Args compile = NEW(PJRT_Client_Compile_Args);
  compile.client = client;
  compile.program = &program;
  compile.compile_options = options;
  compile.compile_options_size = options_size;
  CALL(Client_Compile, &compile);
  Launch* launch = calloc(1, sizeof *launch);
  for (int d = 0; d < replicas; d++) {
    launch->arguments[d] = calloc(arguments, sizeof(PJRT_Buffer*));
    launch->results[d] = calloc(results, sizeof(PJRT_Buffer*));
    for (int i = 0; i < arguments; i++) {
      launch->arguments[d][i] = put(data, size, d);
      await_buffer(launch->arguments[d][i]);
    }
  }
  launch->num_results = results;
  launch->options.struct_size = sizeof launch->options;
  launch->args.struct_size = sizeof launch->args;
  launch->args.executable = compile.executable;
  launch->args.options = &launch->options;
  launch->args.argument_lists = (PJRT_Buffer* const* const*)launch->arguments;
  launch->args.num_devices = replicas;
  launch->args.num_args = arguments;
  launch->args.output_lists = (PJRT_Buffer** const*)launch->results;
  return launch;
}

/* Execute and destroy the results; wait for each device where `wait` is not 0. */
double floor_launch(Launch* launch, int wait, long count) {
  launch->args.device_complete_events = wait ? launch->done : NULL;
  double start = now();
  for (long i = 0; i < count; i++) {
    CALL(LoadedExecutable_Execute, &launch->args);
    for (size_t d = 0; d < launch->args.num_devices; d++) {
      if (wait) finish(launch->done[d]);
      for (size_t r = 0; r < launch->num_results; r++) destroy_buffer(launch->results[d][r]);
    }
  }
  return (now() - start) / count;
}

/* Put on each of the first `replicas` devices, wait, destroy. */
double floor_put(const float* data, int64_t size, int replicas, long count) {
  PJRT_Buffer* made[MOST_DEVICES];
  double start = now();
  for (long i = 0; i < count; i++) {
    for (int d = 0; d < replicas; d++) made[d] = put(data, size, d);
    for (int d = 0; d < replicas; d++) {
      await_buffer(made[d]);
      destroy_buffer(made[d]);
    }
  }
  return (now() - start) / count;
}

/* Waits, and reads one number from the buffer's memory. */
static float look(PJRT_Buffer* buffer) {
  struct PJRT_Buffer_IncreaseExternalReferenceCount_Args hold =
      NEW(PJRT_Buffer_IncreaseExternalReferenceCount_Args);
  struct PJRT_Buffer_DecreaseExternalReferenceCount_Args release =
      NEW(PJRT_Buffer_DecreaseExternalReferenceCount_Args);
  struct PJRT_Buffer_UnsafePointer_Args address = NEW(PJRT_Buffer_UnsafePointer_Args);
  hold.buffer = release.buffer = address.buffer = buffer;
  CALL(Buffer_IncreaseExternalReferenceCount, &hold);
  await_buffer(buffer);
  CALL(Buffer_UnsafePointer, &address);
  float first = *(const float*)address.buffer_pointer;
  CALL(Buffer_DecreaseExternalReferenceCount, &release);
  return first;
}

static void transfer(PJRT_Buffer* buffer, void* out, size_t bytes) {
  struct PJRT_Buffer_ToHostBuffer_Args args = NEW(PJRT_Buffer_ToHostBuffer_Args);
  args.src = buffer;
  args.dst = out;
  args.dst_size = bytes;
  CALL(Buffer_ToHostBuffer, &args);
  finish(args.event);
}

/* Reads an array of `size` floats: by a transfer into new memory, or directly from the buffer's
   memory if `direct` is not 0. */
double floor_get(const float* data, int64_t size, int direct, long count) {
  size_t bytes = size * sizeof *data;
  PJRT_Buffer* buffer = put(data, size, 0);
  await_buffer(buffer);
  volatile float seen = 0; /* otherwise the compiler removes the unused read */
  double start = now();
  for (long i = 0; i < count; i++) {
    if (direct) {
      seen = seen + look(buffer);
      continue;
    }
    void* out = malloc(bytes);
    transfer(buffer, out, bytes);
    free(out);
  }
  double taken = (now() - start) / count;
  destroy_buffer(buffer);
  return taken;
}

/* The cheapest call of the table: its time is that of the language's C interface. */
double floor_nothing(long count) {
  struct PJRT_Client_ProcessIndex_Args args = NEW(PJRT_Client_ProcessIndex_Args);
  args.client = client;
  double start = now();
  for (long i = 0; i < count; i++) CALL(Client_ProcessIndex, &args);
  return (now() - start) / count;
}
