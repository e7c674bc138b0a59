/* Runs the steps of a check on a client. */
#ifndef PLUGRT_RUNNER_PLAYER_H
#define PLUGRT_RUNNER_PLAYER_H
#include "checks_file.h"
#include "compare.h"
#include "library.h"
#include "verdict.h"

enum { MOST_DEVICES = 64, MOST_RANK = 16, MOST_NAMES = 1 << 14, MOST_BUFFERS = 1 << 12 };

/* Process-wide: the client of the checks of this process. */
static struct {
  PJRT_Client* handle;
  PJRT_Device* devices[MOST_DEVICES]; /* of this process, by id */
  int ids[MOST_DEVICES];
  int count;
  char platform[64], version[256], kinds[MOST_DEVICES][64];
  bool no_option;
} client;

typedef struct {
  PJRT_Buffer* buffer;
  PJRT_LoadedExecutable* program;
  PJRT_Event* done; /* with the source */
  void* source;
  unsigned char* read; /* the elements from a read */
  int type;
  int64_t dims[MOST_RANK];
  size_t rank, count, source_size;
} Slot;

/* Process-wide: the objects of the open check, by the number in their names. */
static Slot* slots;
static PJRT_Buffer* last_results[MOST_BUFFERS];
static size_t last_count;

static inline Slot* slot_of(const char* name) {
  long number = name && *name ? strtol(name + 1, NULL, 10) : 0;
  return &slots[number > 0 && number < MOST_NAMES ? number : 0];
}

static inline int ask_device(int i) {
  ARGS(Device_GetDescription, found);
  found.a.device = client.devices[i];
  if (CALL(Device_GetDescription, found)) return error_code;
  ARGS(DeviceDescription_Id, id);
  id.a.device_description = found.a.device_description;
  if (CALL(DeviceDescription_Id, id)) return error_code;
  client.ids[i] = id.a.id;
  ARGS(DeviceDescription_Kind, kind);
  kind.a.device_description = found.a.device_description;
  if (!CALL(DeviceDescription_Kind, kind) && kind.a.device_kind)
    snprintf(client.kinds[i], sizeof client.kinds[i], "%.*s", (int)kind.a.device_kind_size,
             kind.a.device_kind);
  return error_code = 0;
}

static inline void sort_devices(void) {
  for (int i = 1; i < client.count; i++)
    for (int k = i; k > 0 && client.ids[k] < client.ids[k - 1]; k--) {
      PJRT_Device* device = client.devices[k];
      int id = client.ids[k];
      client.devices[k] = client.devices[k - 1];
      client.ids[k] = client.ids[k - 1];
      client.devices[k - 1] = device;
      client.ids[k - 1] = id;
    }
}

/* Starts a client; returns the code of the error. */
static inline int start_client(const PJRT_NamedValue* options, size_t count) {
  slots = allocate(MOST_NAMES * sizeof *slots);
  ARGS(Client_Create, made);
  made.a.create_options = options;
  made.a.num_options = count;
  if (CALL(Client_Create, made)) return error_code;
  if (!(client.handle = made.a.client)) return no_handle("Client_Create");
  ARGS(Client_PlatformName, name);
  name.a.client = client.handle;
  if (CALL(Client_PlatformName, name)) return error_code;
  snprintf(client.platform, sizeof client.platform, "%.*s", (int)name.a.platform_name_size,
           name.a.platform_name);
  ARGS(Client_PlatformVersion, version);
  version.a.client = client.handle;
  if (!CALL(Client_PlatformVersion, version))
    snprintf(client.version, sizeof client.version, "%.*s", (int)version.a.platform_version_size,
             version.a.platform_version);
  ARGS(Client_AddressableDevices, found);
  found.a.client = client.handle;
  if (CALL(Client_AddressableDevices, found)) return error_code;
  for (size_t i = 0; i < found.a.num_addressable_devices && client.count < MOST_DEVICES; i++) {
    client.devices[client.count] = found.a.addressable_devices[i];
    if (ask_device(client.count++)) return error_code;
  }
  sort_devices();
  return error_code = client.count ? 0 : set_error(5, "the client has no devices");
}

static inline void destroy_buffer(PJRT_Buffer* buffer) {
  if (!buffer) return;
  ARGS(Buffer_Destroy, destroy);
  destroy.a.buffer = buffer;
  CALL(Buffer_Destroy, destroy);
}

static inline int await_buffer(PJRT_Buffer* buffer) {
  ARGS(Buffer_ReadyEvent, ready);
  ready.a.buffer = buffer;
  if (CALL(Buffer_ReadyEvent, ready)) return error_code;
  return finish(ready.a.event);
}

static inline size_t count_of(const int64_t* dims, size_t rank) {
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) count *= (size_t)dims[i];
  return count;
}

static inline int put(char* rest) {
  Slot* slot = slot_of(next_word(&rest));
  long long device = next_number(&rest);
  slot->type = (int)next_number(&rest);
  slot->rank = split_numbers(next_word(&rest), 'x', slot->dims, MOST_RANK);
  Blob blob = read_blob(next_word(&rest));
  long long offset = next_number(&rest);
  int64_t strides[MOST_RANK];
  size_t stride_count = split_numbers(next_word(&rest), ',', strides, MOST_RANK);
  int semantics = (int)next_number(&rest);
  long long odd = next_number(&rest);
  slot->count = count_of(slot->dims, slot->rank);
  int since = slot->type < MOST_TYPES ? kit.since[slot->type] : 0;
  if (api->pjrt_api_version.minor_version < since)
    return set_error(UNIMPLEMENTED, "the element type %s came with version 0.%d of the C API",
                     element_type(slot->type)->name, since);
  slot->source_size = blob.size + (size_t)odd;
  slot->source = allocate(slot->source_size + 64);
  unsigned char* begin = (unsigned char*)slot->source + odd;
  memcpy(begin, blob.at, blob.size);
  ARGS(Client_BufferFromHostBuffer, made);
  made.a.client = client.handle;
  made.a.data = begin + offset;
  made.a.type = slot->type;
  made.a.dims = slot->dims;
  made.a.num_dims = slot->rank;
  made.a.byte_strides = stride_count ? strides : NULL;
  made.a.num_byte_strides = stride_count;
  made.a.host_buffer_semantics = semantics;
  made.a.device = client.devices[device];
  if (CALL(Client_BufferFromHostBuffer, made)) return error_code;
  slot->buffer = made.a.buffer;
  slot->done = made.a.done_with_host_buffer;
  if (!slot->buffer || !slot->done) return no_handle("Client_BufferFromHostBuffer");
  if (semantics != 0) return 0;
  ARGS(Event_Destroy, destroy);
  destroy.a.event = slot->done;
  slot->done = NULL;
  return CALL(Event_Destroy, destroy);
}

/* Reads the order of a buffer's dimensions on its device, minor first; returns false if it has none. */
static inline bool read_order(PJRT_Buffer* buffer, size_t rank, int64_t* order,
                              PJRT_Buffer_MemoryLayout* layout) {
  ARGS(Buffer_GetMemoryLayout, found);
  found.a.buffer = buffer;
  found.a.layout.struct_size = PJRT_Buffer_MemoryLayout_SIZE;
  if (rank < 2 || CALL(Buffer_GetMemoryLayout, found)) return false;
  if (found.a.layout.type != PJRT_Buffer_MemoryLayout_Type_Tiled ||
      found.a.layout.tiled.minor_to_major_size != rank)
    return false;
  unsigned seen = 0;
  for (size_t i = 0; i < rank; i++) {
    order[i] = found.a.layout.tiled.minor_to_major[i];
    if (order[i] < 0 || (size_t)order[i] >= rank || seen >> order[i] & 1) return false;
    seen |= 1u << order[i];
  }
  memset(layout, 0, sizeof *layout);
  layout->struct_size = PJRT_Buffer_MemoryLayout_SIZE;
  layout->type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout->tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_SIZE;
  layout->tiled.minor_to_major = order;
  layout->tiled.minor_to_major_size = rank;
  return true;
}

/* Converts elements from a device's order to row-major order. */
static inline void turn(const Slot* slot, const int64_t* order, const unsigned char* from,
                        unsigned char* to, size_t size) {
  size_t strides[MOST_RANK] = {0}, at = 1;
  for (size_t i = 0; i < slot->rank; i++) {
    strides[order[i]] = at;
    at *= (size_t)slot->dims[order[i]];
  }
  for (size_t i = 0; i < slot->count; i++) {
    size_t rest = i, place = 0;
    for (size_t k = slot->rank; k-- > 0;) {
      place += rest % (size_t)slot->dims[k] * strides[k];
      rest /= (size_t)slot->dims[k];
    }
    memcpy(to + i * size, from + place * size, size);
  }
}

/* Reads the type and the shape of a buffer. */
static inline int ask_type(PJRT_Buffer* buffer, Slot* into) {
  ARGS(Buffer_ElementType, type);
  type.a.buffer = buffer;
  if (CALL(Buffer_ElementType, type)) return error_code;
  ARGS(Buffer_Dimensions, dims);
  dims.a.buffer = buffer;
  if (CALL(Buffer_Dimensions, dims)) return error_code;
  if (dims.a.num_dims > MOST_RANK || (dims.a.num_dims && !dims.a.dims))
    return set_error(INVALID_REPLY, "PJRT_Buffer_Dimensions: %zu dimensions", dims.a.num_dims);
  into->type = type.a.type;
  into->rank = dims.a.num_dims;
  if (into->rank) memcpy(into->dims, dims.a.dims, into->rank * sizeof *into->dims);
  for (size_t i = 0; i < into->rank; i++)
    if (into->dims[i] < 0 || into->dims[i] > INT32_MAX)
      return set_error(INVALID_REPLY, "PJRT_Buffer_Dimensions: a dimension of %lld",
                       (long long)into->dims[i]);
  into->count = count_of(into->dims, into->rank);
  return 0;
}

static inline int read_buffer(PJRT_Buffer* buffer, Slot* into) {
  if (!buffer) return set_error(INVALID_REPLY, "there is no buffer to read");
  if (ask_type(buffer, into)) return error_code;
  const ElementType* type = element_type(into->type);
  size_t size = into->count * type->size;
  ARGS(Buffer_OnDeviceSizeInBytes, stated);
  stated.a.buffer = buffer;
  size_t packed = (into->count * (size_t)type->bits + 7) / 8;
  if (!CALL(Buffer_OnDeviceSizeInBytes, stated) && stated.a.on_device_size_in_bytes < packed)
    return set_error(INVALID_REPLY, "PJRT_Buffer_OnDeviceSizeInBytes: %zu bytes, not %zu",
                     stated.a.on_device_size_in_bytes, packed);
  if (error_code && error_code != UNIMPLEMENTED) return error_code;
  free(into->read);
  into->read = allocate(size + GUARD);
  if (!size) return await_buffer(buffer);
  int64_t order[MOST_RANK];
  PJRT_Buffer_MemoryLayout layout;
  bool ordered = read_order(buffer, into->rank, order, &layout);
  unsigned char* raw = ordered ? allocate(size + GUARD) : into->read;
  memset(raw + size, POISON, GUARD);
  ARGS(Buffer_ToHostBuffer, read);
  read.a.src = buffer;
  read.a.host_layout = ordered ? &layout : NULL;
  read.a.dst = raw;
  read.a.dst_size = size;
  if (!CALL(Buffer_ToHostBuffer, read)) {
    if (!read.a.event)
      no_handle("Buffer_ToHostBuffer");
    else
      finish(read.a.event);
  }
  int code = error_code;
  note_guard("Buffer_ToHostBuffer", raw + size);
  if (ordered) {
    if (!code) turn(into, order, raw, into->read, type->size);
    free(raw);
  }
  return error_code = code;
}

static inline int compile_blob(Blob code, const char* format, Blob options, bool with_option,
                               PJRT_LoadedExecutable** into) {
  PJRT_Program program = {.struct_size = PJRT_Program_SIZE};
  char* copy = allocate(code.size);
  memcpy(copy, code.at, code.size);
  program.code = copy;
  program.code_size = code.size;
  program.format = format;
  program.format_size = strlen(format);
  bool more = with_option && !client.no_option && kit.option_platform &&
              !strcmp(kit.option_platform, client.platform);
  size_t size = options.size + (more ? kit.option.size : 0);
  char* encoded = allocate(size);
  memcpy(encoded, options.at, options.size);
  if (more) memcpy(encoded + options.size, kit.option.at, kit.option.size);
  ARGS(Client_Compile, made);
  made.a.client = client.handle;
  made.a.program = &program;
  made.a.compile_options = encoded;
  made.a.compile_options_size = size;
  CALL(Client_Compile, made);
  free(copy);
  free(encoded);
  if (error_code == 3 && more && strstr(error_text, kit.option_names)) {
    client.no_option = true; /* the library has no such option */
    return compile_blob(code, format, options, false, into);
  }
  if (error_code) return error_code;
  if (!(*into = made.a.executable)) return no_handle("Client_Compile");
  return 0;
}

static inline int compile(char* rest) {
  Slot* slot = slot_of(next_word(&rest));
  char* format = next_word(&rest);
  Blob code = read_blob(next_word(&rest));
  Blob options = read_blob(next_word(&rest));
  for (char* c = format; *c; c++)
    if (*c == '_' && strncmp(format, "hlo", 3)) *c = ' ';
  return compile_blob(code, format, options, true, &slot->program);
}

static inline void destroy_program(PJRT_LoadedExecutable* program) {
  if (!program) return;
  ARGS(LoadedExecutable_Destroy, destroy);
  destroy.a.executable = program;
  CALL(LoadedExecutable_Destroy, destroy);
}

static inline int count_results(PJRT_LoadedExecutable* program, size_t* count) {
  ARGS(LoadedExecutable_GetExecutable, found);
  found.a.loaded_executable = program;
  if (CALL(LoadedExecutable_GetExecutable, found)) return error_code;
  ARGS(Executable_NumOutputs, outputs);
  outputs.a.executable = found.a.executable;
  if (!CALL(Executable_NumOutputs, outputs)) *count = outputs.a.num_outputs;
  int code = error_code;
  ARGS(Executable_Destroy, destroy);
  destroy.a.executable = found.a.executable;
  CALL(Executable_Destroy, destroy);
  return error_code = code;
}

static inline void drop_last_results(void) {
  while (last_count) destroy_buffer(last_results[--last_count]);
}

/* Launches a program. Results of launches that must fail have no names, and are kept for `read_all`. */
static inline int run(char* rest) {
  PJRT_LoadedExecutable* program = slot_of(next_word(&rest))->program;
  size_t devices = (size_t)next_number(&rest), arguments = (size_t)next_number(&rest);
  size_t named = (size_t)next_number(&rest), results = 0;
  if (!program) return set_error(INVALID_REPLY, "there is no program to launch");
  if (count_results(program, &results)) return error_code;
  if (results * devices > MOST_BUFFERS || arguments * devices > MOST_BUFFERS)
    return set_error(INVALID_REPLY, "PJRT_Executable_NumOutputs: %zu results", results);
  PJRT_Buffer** inputs = allocate((arguments * devices + 1) * sizeof *inputs);
  PJRT_Buffer** outputs = allocate((results * devices + 1) * sizeof *outputs);
  PJRT_Buffer*** input_lists = allocate((devices + 1) * sizeof *input_lists);
  PJRT_Buffer*** output_lists = allocate((devices + 1) * sizeof *output_lists);
  for (size_t i = 0; i < arguments * devices; i++) inputs[i] = slot_of(next_word(&rest))->buffer;
  for (size_t i = 0; i < devices; i++) {
    input_lists[i] = inputs + i * arguments;
    output_lists[i] = outputs + i * results;
  }
  PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_SIZE};
  ARGS(LoadedExecutable_Execute, launch);
  launch.a.executable = program;
  launch.a.options = &options;
  launch.a.argument_lists = (PJRT_Buffer* const* const*)input_lists;
  launch.a.num_devices = devices;
  launch.a.num_args = arguments;
  launch.a.output_lists = output_lists;
  int code = CALL(LoadedExecutable_Execute, launch);
  for (size_t i = 0; i < results * devices && !code; i++)
    if (!outputs[i]) code = no_handle("LoadedExecutable_Execute");
  bool keep = !code && named && named == results;
  drop_last_results();
  for (size_t i = 0; i < results * devices && !code; i++) {
    if (keep)
      slot_of(next_word(&rest))->buffer = outputs[i];
    else
      last_results[last_count++] = outputs[i];
  }
  if (!code && named && !keep)
    code = set_error(INVALID_REPLY, "the program has %zu results, not %zu", results, named);
  free(inputs);
  free(outputs);
  free(input_lists);
  free(output_lists);
  return error_code = code;
}

static inline int read_all(void) {
  int code = 0;
  for (size_t i = 0; i < last_count && !code; i++) {
    Slot read = {0};
    code = read_buffer(last_results[i], &read);
    free(read.read);
  }
  return error_code = code;
}

static inline void show_type(int type, const int64_t* dims, size_t rank, char* into, size_t size) {
  size_t used = (size_t)snprintf(into, size, "%s[", element_type(type)->name);
  for (size_t i = 0; i < rank && used < size; i++)
    used += (size_t)snprintf(into + used, size - used, i ? ", %lld" : "%lld", (long long)dims[i]);
  if (used < size) snprintf(into + used, size - used, "]");
}

static inline Result compare(char* rest, bool bits) {
  Slot* got = slot_of(next_word(&rest));
  int type = (int)next_number(&rest);
  int64_t dims[MOST_RANK];
  size_t rank = split_numbers(next_word(&rest), 'x', dims, MOST_RANK);
  Blob expected = read_blob(next_word(&rest));
  double ulps = (double)next_number(&rest);
  bool of_largest = next_number(&rest) != 0;
  char wanted[200], found[200], text[300];
  show_type(type, dims, rank, wanted, sizeof wanted);
  show_type(got->type, got->dims, got->rank, found, sizeof found);
  snprintf(text, sizeof text, "an array of type %s", wanted);
  if (!got->read || strcmp(wanted, found)) return fail(text, "%s", got->read ? found : "nothing");
  const ElementType* element = element_type(type);
  size_t count = count_of(dims, rank);
  if (expected.size < count * element->size) return not_run(true, "data.bin is damaged");
  int64_t at = bits ? find_other_bits(element, got->read, expected.at, count)
                    : find_different(element, got->read, expected.at, count, ulps, of_largest);
  if (at < 0) return pass();
  size_t place = (size_t)at * element->size;
  show_element(element, expected.at + place, wanted, sizeof wanted);
  show_element(element, got->read + place, found, sizeof found);
  snprintf(text, sizeof text, "element %lld (row-major) %s", (long long)at, wanted);
  if (!bits && ulps > 0)
    snprintf(text + strlen(text), sizeof text - strlen(text), " within %g ulp%s", ulps,
             of_largest ? " of the largest" : "");
  return fail(text, "%s", found);
}

static inline void free_slot(Slot* slot) {
  destroy_buffer(slot->buffer);
  destroy_program(slot->program);
  slot->buffer = NULL;
  slot->program = NULL;
  if (slot->done) finish(slot->done);
  slot->done = NULL;
}

static inline void free_all(void) {
  drop_last_results();
  for (int i = 0; i < MOST_NAMES; i++) {
    free_slot(&slots[i]);
    free(slots[i].source);
    free(slots[i].read);
  }
  memset(slots, 0, MOST_NAMES * sizeof *slots);
}

/* Runs one step; returns the code of the library's error. Stores a comparison's result in `result`. */
static inline int do_step(const char* key, char* rest, Result* result) {
  error_code = 0;
  if (!strcmp(key, "put")) return put(rest);
  if (!strcmp(key, "compile")) return compile(rest);
  if (!strcmp(key, "run")) return run(rest);
  if (!strcmp(key, "read_all")) return read_all();
  if (!strcmp(key, "read")) {
    Slot* into = slot_of(next_word(&rest));
    return read_buffer(slot_of(next_word(&rest))->buffer, into);
  }
  if (!strcmp(key, "wait")) return await_buffer(slot_of(next_word(&rest))->buffer);
  if (!strcmp(key, "bits") || !strcmp(key, "close")) {
    *result = compare(rest, *key == 'b');
    return 0;
  }
  Slot* slot = slot_of(next_word(&rest));
  if (!strcmp(key, "scribble")) {
    if (slot->source) memset(slot->source, 255, slot->source_size);
  } else if (!strcmp(key, "free")) {
    free_slot(slot);
    error_code = 0;
  } else if (!strcmp(key, "delete")) {
    ARGS(Buffer_Delete, destroy);
    destroy.a.buffer = slot->buffer;
    return CALL(Buffer_Delete, destroy);
  } else if (!strcmp(key, "deleted")) {
    ARGS(Buffer_IsDeleted, found);
    found.a.buffer = slot->buffer;
    if (CALL(Buffer_IsDeleted, found)) return error_code;
    bool wanted = next_number(&rest) != 0;
    if (wanted != (found.a.is_deleted != 0))
      *result = fail(wanted ? "is_deleted 1" : "is_deleted 0", "%d", found.a.is_deleted);
  } else {
    *result = not_run(true, "the runner does not know a step of it");
  }
  return 0;
}

static inline bool has_code(const char* codes, int code) {
  if (!strcmp(codes, "any")) return true;
  int64_t wanted[16];
  size_t count = split_numbers(codes, ',', wanted, 16);
  for (size_t i = 0; i < count; i++)
    if (wanted[i] == code) return true;
  return false;
}

static inline Result play_steps(const Variant* variant) {
  Result result = pass();
  const char* codes = NULL; /* set between steps that must be refused */
  bool skipped = false;
  for (size_t i = 0; i < variant->count && result.verdict == PASS; i++) {
    char* line = allocate(strlen(variant->steps[i]) + 1);
    strcpy(line, variant->steps[i]);
    char* rest = line;
    char* key = next_word(&rest);
    bool may = !strcmp(key, "may");
    if (may) key = next_word(&rest);
    if (!strcmp(key, "refuse")) {
      codes = strchr(variant->steps[i], ' ') + 1;
      skipped = false;
    } else if (!strcmp(key, "refused")) {
      if (!skipped) result = fail("an error of the library", "no error");
      codes = NULL;
      skipped = false;
    } else if (!skipped || !strcmp(key, "free")) {
      int code = do_step(key, rest, &result);
      if (code && codes && has_code(codes, code)) {
        skipped = true;
      } else if (code && codes) {
        char text[100];
        snprintf(text, sizeof text, "an error of code %s", codes);
        result = fail(text, "%s", error_text);
      } else if (code && !may) {
        bool unimplemented = code == UNIMPLEMENTED;
        const char* verdict = unimplemented ? variant->unimplemented : variant->other;
        result = strcmp(verdict, "REFUSED") ? fail("no error", "%s", error_text)
                                            : refused(error_text);
      }
    }
    free(line);
  }
  return result;
}

/* Puts and reads an array: a refusal must leave the client unchanged. */
static inline bool is_alive(void) {
  float sent[6] = {0, 1, 2, 3, 4, 5};
  int64_t dims[] = {6};
  ARGS(Client_BufferFromHostBuffer, made);
  made.a.client = client.handle;
  made.a.data = sent;
  made.a.type = 11;
  made.a.dims = dims;
  made.a.num_dims = 1;
  made.a.device = client.devices[0];
  if (CALL(Client_BufferFromHostBuffer, made)) return false;
  finish(made.a.done_with_host_buffer);
  Slot read = {0};
  bool alive = !read_buffer(made.a.buffer, &read) && read.type == 11 && read.count == 6 &&
               !memcmp(read.read, sent, sizeof sent);
  free(read.read);
  destroy_buffer(made.a.buffer);
  return alive;
}

/* A client of one device must refuse a program for two. */
static inline Result refuse_pair(void) {
  PJRT_LoadedExecutable* program = NULL;
  int code = compile_blob(kit.twin, "mlir", kit.twin_options, true, &program);
  if (!code) {
    destroy_program(program);
    return fail("INVALID_ARGUMENT for two replicas on one device", "the program was compiled");
  }
  return code == 3 || code == UNIMPLEMENTED ? refused(error_text) : fail("no error", "%s", error_text);
}

static inline Result play(const Check* check) {
  *overrun = 0;
  Result result;
  if (check->kind == PAIR && client.count < 2) {
    result = refuse_pair();
  } else {
    const Variant* variant = NULL;
    for (int i = 0; i < check->variant_count && !variant; i++)
      if (check->variants[i].devices == client.count ||
          (check->variants[i].devices < client.count && !check->variants[i].exact))
        variant = &check->variants[i];
    if (!variant) return not_run(false, "the client has fewer devices than it needs");
    for (int i = 0; i < variant->devices && variant->devices > 1; i++)
      if (client.ids[i] != i) return not_run(true, "the ids of the devices do not begin with 0, 1");
    result = play_steps(variant);
    free_all();
  }
  if (result.verdict == REFUSED && !is_alive())
    result = fail("the client to work on after a refusal", "%s", error_text);
  if (*overrun && result.verdict <= REFUSED)
    result = fail("nothing written behind the arguments", "%s did", overrun);
  return result;
}
#endif
