/* Plays a script against a PJRT library and prints what it observes, a line a command.

   A defect counts if this program prints something else for the library with it than for the library
   without. No part of plugrt is in it. `witness LIBRARY DEVICES < SCRIPT` */
#include "common.h"
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#define CALL(F, a) tell(#F, real.PJRT_##F(&a))
enum { SLOTS = 64 };
static PJRT_Client* client;
static PJRT_Device* devices[MOST_DEVICES];
static size_t num_devices;
static struct { char name[32]; PJRT_Buffer* b; } slots[SLOTS];
static struct { char name[32]; PJRT_LoadedExecutable* x; } progs[SLOTS];

static int tell(const char* what, PJRT_Error* e) { /* prints an error's code and message size */
  if (!e) return 0;
  NEW(Error_Message, m); m.error = e; real.PJRT_Error_Message(&m);
  int code = code_of(e);
  printf(" %s: error %d %zu bytes %.60s", what, code, m.message_size, m.message_size ? m.message : "");
  drop_error(e);
  return 1;
}
static uint64_t hash(const unsigned char* p, size_t n) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 1099511628211u;
  return h;
}
static void text(const char* s, size_t n) { printf(" '%.*s'", (int)n, n ? s : ""); }
static PJRT_Buffer** slot(const char* name) {
  for (int i = 0; i < SLOTS; i++)
    if (!slots[i].name[0] || !strcmp(slots[i].name, name)) { strcpy(slots[i].name, name); return &slots[i].b; }
  exit(8);
}
static PJRT_LoadedExecutable** prog(const char* name) {
  for (int i = 0; i < SLOTS; i++)
    if (!progs[i].name[0] || !strcmp(progs[i].name, name)) { strcpy(progs[i].name, name); return &progs[i].x; }
  exit(8);
}
static unsigned char* pattern(int t, size_t n, uint32_t seed) { /* elements of all bits that a type has */
  size_t w = width(t);
  unsigned char* p = NULL;
  if (posix_memalign((void**)&p, 64, n * w + 64)) exit(8); /* aligned, so that a library could keep it */
  for (size_t i = 0; i < n * w; i++) { seed = seed * 1664525u + 1013904223u; p[i] = seed >> 24; }
  for (size_t i = 0; i < n; i++) {
    if (t == PJRT_Buffer_Type_PRED) p[i] &= 1;
    if (t == PJRT_Buffer_Type_S4) p[i] = (unsigned char)((p[i] & 15) - 8);
    if (t == PJRT_Buffer_Type_U4) p[i] &= 15;
    if (t == PJRT_Buffer_Type_S2) p[i] = (unsigned char)((p[i] & 3) - 2);
    if (t == PJRT_Buffer_Type_U2) p[i] &= 3;
    if (t == PJRT_Buffer_Type_F4E2M1FN) p[i] &= 15;
  }
  static const uint32_t f32[] = {0x80000000, 0x7fc00001, 1, 0xff800000}; /* -0, a NaN, a denormal, -inf */
  static const uint16_t f16[] = {0x8000, 0x7e01, 1, 0xfc00}, b16[] = {0x8000, 0x7fc1, 1, 0xff80};
  static const uint64_t f64[] = {1ull << 63, 0x7ff8000000000001, 1, 0xfffull << 52};
  for (size_t i = 1; i < 5 && i + 1 < n; i++) {
    if (t == PJRT_Buffer_Type_F32) memcpy(p + 4 * i, &f32[i - 1], 4);
    if (t == PJRT_Buffer_Type_F64) memcpy(p + 8 * i, &f64[i - 1], 8);
    if (t == PJRT_Buffer_Type_F16) memcpy(p + 2 * i, &f16[i - 1], 2);
    if (t == PJRT_Buffer_Type_BF16) memcpy(p + 2 * i, &b16[i - 1], 2);
    if (t == PJRT_Buffer_Type_S8 || t == PJRT_Buffer_Type_S16 || t == PJRT_Buffer_Type_S32) {
      memset(p + i * w, 0, w);
      if (i == 1) p[i * w + w - 1] = 0x80; /* the smallest */
    }
  }
  return p;
}
static void put(char* line) { /* put NAME TYPE DEVICE MEMORY(-1: none) how RANK dims… */
  char name[32], how[16]; int t, device, memory, rank, at; int64_t dims[MOST_RANK], strides[MOST_RANK];
  sscanf(line, "%s %d %d %d %s %d%n", name, &t, &device, &memory, how, &rank, &at);
  for (int i = 0, k; i < rank; i++, at += k) sscanf(line + at, "%ld%n", &dims[i], &k);
  size_t n = count(dims, rank), w = width(t);
  unsigned char *data = pattern(t, n, 7 + (unsigned)strlen(name) + (unsigned)name[0]), *start = data;
  NEW(Client_BufferFromHostBuffer, a);
  a.client = client; a.type = t; a.dims = dims; a.num_dims = rank;
  a.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  a.device = devices[device];
  if (memory >= 0) {
    NEW(Device_AddressableMemories, m); m.device = devices[device];
    CALL(Device_AddressableMemories, m);
    if ((size_t)memory < m.num_memories) { a.memory = m.memories[memory]; a.device = NULL; }
  }
  int64_t step = w;
  if (!strcmp(how, "columns")) for (int i = 0; i < rank; i++) { strides[i] = step; step *= dims[i]; }
  if (!strcmp(how, "negative") || !strcmp(how, "zero"))
    for (int i = rank - 1; i >= 0; i--) { strides[i] = step; step *= dims[i]; }
  if (!strcmp(how, "negative")) { start += (dims[0] - 1) * strides[0]; strides[0] = -strides[0]; }
  if (!strcmp(how, "zero")) strides[0] = 0;
  if (strcmp(how, "dense")) { a.byte_strides = strides; a.num_byte_strides = rank; }
  a.data = start;
  if (!CALL(Client_BufferFromHostBuffer, a)) {
    memset(data, 0x55, n * w); /* these semantics allow it at once */
    finish(a.done_with_host_buffer);
    *slot(name) = a.buffer;
  }
  free(data);
}
static void meta(PJRT_Buffer* b) {
  Info info;
  if (!describe(b, &info)) { printf(" no description"); return; }
  printf(" type %d device %d dims", info.type, info.device);
  for (int i = 0; i < info.rank; i++) printf(" %ld", info.dims[i]);
  if (info.memory) { NEW(Memory_Id, i); i.memory = info.memory; CALL(Memory_Id, i); printf(" memory %d", i.id); }
  NEW(Buffer_OnDeviceSizeInBytes, s); s.buffer = b; CALL(Buffer_OnDeviceSizeInBytes, s); printf(" size %zu", s.on_device_size_in_bytes);
  NEW(Buffer_IsDeleted, d); d.buffer = b; CALL(Buffer_IsDeleted, d); printf(" deleted %d", d.is_deleted);
  NEW(Buffer_IsOnCpu, c); c.buffer = b; CALL(Buffer_IsOnCpu, c); printf(" on cpu %d", c.is_on_cpu);
  NEW(Buffer_UnpaddedDimensions, u); u.buffer = b;
  if (!CALL(Buffer_UnpaddedDimensions, u)) for (size_t i = 0; i < u.num_dims; i++) printf(" %ld", u.unpadded_dims[i]);
  NEW(Buffer_DynamicDimensionIndices, y); y.buffer = b;
  if (!CALL(Buffer_DynamicDimensionIndices, y)) printf(" dynamic %zu", y.num_dynamic_dims);
  NEW(Buffer_GetMemoryLayout, l); l.buffer = b;
  if (!CALL(Buffer_GetMemoryLayout, l) && l.layout.type == PJRT_Buffer_MemoryLayout_Type_Tiled)
    for (size_t i = 0; i < l.layout.tiled.minor_to_major_size; i++) printf(" /%ld", l.layout.tiled.minor_to_major[i]);
  NEW(Buffer_UnsafePointer, p); p.buffer = b;
  NEW(Buffer_OpaqueDeviceMemoryDataPointer, o); o.buffer = b;
  if (!CALL(Buffer_UnsafePointer, p) && !CALL(Buffer_OpaqueDeviceMemoryDataPointer, o))
    printf(" pointers %d", p.buffer_pointer == (uintptr_t)o.device_memory_ptr);
}
static volatile int calls;
static void on_ready(PJRT_Error* e, void* arg) { drop_error(e); (void)arg; __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST); }
static void events(PJRT_Event* event) {
  int want = calls + 1;
  NEW(Event_OnReady, o); o.event = event; o.callback = on_ready; CALL(Event_OnReady, o);
  NEW(Event_Await, w); w.event = event; CALL(Event_Await, w);
  NEW(Event_IsReady, r); r.event = event; CALL(Event_IsReady, r);
  NEW(Event_Error, x); x.event = event; CALL(Event_Error, x);
  for (int i = 0; i < 20000 && calls < want; i++) usleep(50);
  usleep(500);
  printf(" ready %d called %d", r.is_ready, calls - want + 1);
  NEW(Event_Destroy, d); d.event = event; CALL(Event_Destroy, d);
}
static void memory_of(PJRT_Memory* m) {
  NEW(Memory_Id, i); i.memory = m; CALL(Memory_Id, i);
  NEW(Memory_Kind, k); k.memory = m; CALL(Memory_Kind, k);
  NEW(Memory_Kind_Id, n); n.memory = m; CALL(Memory_Kind_Id, n);
  NEW(Memory_ToString, s); s.memory = m; CALL(Memory_ToString, s);
  NEW(Memory_AddressableByDevices, a); a.memory = m; CALL(Memory_AddressableByDevices, a);
  printf(" memory %d", i.id); text(k.kind, k.kind_size); printf(" kind %d", n.kind_id); text(s.to_string, s.to_string_size);
  for (size_t j = 0; j < a.num_devices; j++) printf(" by %d", id_of(a.devices[j]));
}
static void description(PJRT_DeviceDescription* d) {
  NEW(DeviceDescription_Id, i); i.device_description = d; CALL(DeviceDescription_Id, i);
  NEW(DeviceDescription_ProcessIndex, p); p.device_description = d; CALL(DeviceDescription_ProcessIndex, p);
  NEW(DeviceDescription_Kind, k); k.device_description = d; CALL(DeviceDescription_Kind, k);
  NEW(DeviceDescription_ToString, s); s.device_description = d; CALL(DeviceDescription_ToString, s);
  NEW(DeviceDescription_DebugString, g); g.device_description = d; CALL(DeviceDescription_DebugString, g);
  printf(" device %d of %d", i.id, p.process_index);
  text(k.device_kind, k.device_kind_size); text(s.to_string, s.to_string_size); text(g.debug_string, g.debug_string_size);
}
static void show_client(void) {
  NEW(Client_PlatformName, n); n.client = client; CALL(Client_PlatformName, n); text(n.platform_name, n.platform_name_size);
  NEW(Client_PlatformVersion, v); v.client = client; CALL(Client_PlatformVersion, v); text(v.platform_version, v.platform_version_size);
  NEW(Client_ProcessIndex, i); i.client = client; CALL(Client_ProcessIndex, i); printf(" process %d", i.process_index);
  NEW(Client_Devices, d); d.client = client; CALL(Client_Devices, d);
  for (size_t j = 0; j < d.num_devices; j++) {
    NEW(Device_GetDescription, g); g.device = d.devices[j]; CALL(Device_GetDescription, g); description(g.device_description);
    NEW(Device_IsAddressable, q); q.device = d.devices[j]; CALL(Device_IsAddressable, q);
    NEW(Device_LocalHardwareId, h); h.device = d.devices[j]; CALL(Device_LocalHardwareId, h);
    printf(" addressable %d local %d", q.is_addressable, h.local_hardware_id);
    NEW(Device_AddressableMemories, m); m.device = d.devices[j]; CALL(Device_AddressableMemories, m);
    for (size_t k = 0; k < m.num_memories; k++) memory_of(m.memories[k]);
    NEW(Device_DefaultMemory, f); f.device = d.devices[j]; CALL(Device_DefaultMemory, f); printf(" default:"); memory_of(f.memory);
    NEW(Client_LookupDevice, l); l.client = client; l.id = id_of(d.devices[j]); CALL(Client_LookupDevice, l);
    NEW(Client_LookupAddressableDevice, o); o.client = client; o.local_hardware_id = h.local_hardware_id; CALL(Client_LookupAddressableDevice, o);
    printf(" looked up %d %d", l.device == d.devices[j], o.addressable_device == d.devices[j]);
  }
  NEW(Client_AddressableDevices, a); a.client = client; CALL(Client_AddressableDevices, a);
  for (size_t j = 0; j < a.num_addressable_devices; j++) printf(" addressable %d %d", id_of(a.addressable_devices[j]), a.addressable_devices[j] == d.devices[j % d.num_devices]);
  NEW(Client_AddressableMemories, m); m.client = client; CALL(Client_AddressableMemories, m);
  for (size_t j = 0; j < m.num_addressable_memories; j++) memory_of(m.addressable_memories[j]);
  NEW(Client_TopologyDescription, t); t.client = client;
  if (!CALL(Client_TopologyDescription, t)) {
    NEW(TopologyDescription_PlatformName, tn); tn.topology = t.topology; CALL(TopologyDescription_PlatformName, tn); text(tn.platform_name, tn.platform_name_size);
    NEW(TopologyDescription_PlatformVersion, tv); tv.topology = t.topology; CALL(TopologyDescription_PlatformVersion, tv); text(tv.platform_version, tv.platform_version_size);
    NEW(TopologyDescription_GetDeviceDescriptions, td); td.topology = t.topology; CALL(TopologyDescription_GetDeviceDescriptions, td);
    for (size_t j = 0; j < td.num_descriptions; j++) description(td.descriptions[j]);
  }
  int ids[8] = {0};
  NEW(Client_DefaultDeviceAssignment, s); s.client = client; s.num_replicas = 2; s.num_partitions = 2; s.default_assignment_size = 4; s.default_assignment = ids;
  CALL(Client_DefaultDeviceAssignment, s); printf(" assigned %d %d %d %d", ids[0], ids[1], ids[2], ids[3]);
  NEW(Plugin_Attributes, pa);
  if (!CALL(Plugin_Attributes, pa)) for (size_t j = 0; j < pa.num_attributes; j++) text(pa.attributes[j].name, pa.attributes[j].name_size);
}
static int compile_bytes(const char* code, size_t size, const char* format, const char* options, PJRT_LoadedExecutable** x) {
  unsigned char bytes[200]; size_t n = strlen(options) / 2;
  for (size_t i = 0; i < n; i++) { unsigned v; sscanf(options + 2 * i, "%2x", &v); bytes[i] = v; }
  PJRT_Program p = {.struct_size = sizeof p, .code = (char*)code, .code_size = size, .format = format, .format_size = strlen(format)};
  NEW(Client_Compile, a); a.client = client; a.program = &p; a.compile_options = (char*)bytes; a.compile_options_size = n;
  if (CALL(Client_Compile, a)) return 0;
  *x = a.executable;
  return 1;
}
static void compile(char* line) { /* compile NAME OPTIONS(hex) MLIR… */
  char name[32], options[400]; int at;
  sscanf(line, "%s %s %n", name, options, &at);
  compile_bytes(line + at, strlen(line + at), "mlir", options, prog(name));
}
static void run(char* line) { /* run PROG DEVICES ARGS OUTS EXECUTE_DEVICE(-1: none) KEPT(-1: none) args by device… outs… */
  char name[32], word[32]; int nd, na, no, device, at, k; int64_t kept;
  sscanf(line, "%s %d %d %d %d %ld%n", name, &nd, &na, &no, &device, &kept, &at);
  PJRT_Buffer *args[8][8] = {{0}}, *outs[8][8] = {{0}}; PJRT_Buffer *const *al[8], **ol[8]; PJRT_Event* done[8] = {0};
  for (int d = 0; d < nd; d++) {
    al[d] = args[d]; ol[d] = outs[d];
    for (int i = 0; i < na; i++, at += k) { sscanf(line + at, "%s%n", word, &k); args[d][i] = *slot(word); }
  }
  PJRT_ExecuteOptions options = {.struct_size = sizeof options};
  if (kept >= 0) { options.non_donatable_input_indices = &kept; options.num_non_donatable_input_indices = 1; }
  NEW(LoadedExecutable_Execute, a); a.executable = *prog(name); a.options = &options; a.argument_lists = al; a.num_devices = nd;
  a.num_args = na; a.output_lists = ol; a.device_complete_events = done; if (device >= 0) a.execute_device = devices[device];
  if (CALL(LoadedExecutable_Execute, a)) return;
  for (int d = 0; d < nd; d++) {
    if (finish(done[d])) printf(" event failed");
    for (int i = 0; i < no; i++, at += k) {
      sscanf(line + at, "%s%n", word, &k);
      PJRT_Buffer** s = slot(word);
      if (*s) destroy_buffer(*s);
      *s = outs[d][i];
    }
  }
}
static void show_program(PJRT_LoadedExecutable* x) {
  NEW(LoadedExecutable_GetExecutable, g); g.loaded_executable = x; if (CALL(LoadedExecutable_GetExecutable, g)) return;
  PJRT_Executable* e = g.executable;
  NEW(Executable_Name, n); n.executable = e; CALL(Executable_Name, n); text(n.executable_name, n.executable_name_size);
  NEW(Executable_NumReplicas, r); r.executable = e; CALL(Executable_NumReplicas, r);
  NEW(Executable_NumPartitions, p); p.executable = e; CALL(Executable_NumPartitions, p);
  NEW(Executable_NumOutputs, o); o.executable = e; CALL(Executable_NumOutputs, o);
  printf(" %zu replicas %zu partitions %zu outputs", r.num_replicas, p.num_partitions, o.num_outputs);
  NEW(Executable_SizeOfGeneratedCodeInBytes, z); z.executable = e; CALL(Executable_SizeOfGeneratedCodeInBytes, z); printf(" code %d", z.size_in_bytes > 0);
  NEW(Executable_OutputElementTypes, t); t.executable = e;
  if (!CALL(Executable_OutputElementTypes, t)) for (size_t i = 0; i < t.num_output_types; i++) printf(" type %d", t.output_types[i]);
  NEW(Executable_OutputDimensions, d); d.executable = e;
  if (!CALL(Executable_OutputDimensions, d))
    for (size_t i = 0, at = 0; i < d.num_outputs; i++) { printf(" dims"); for (size_t j = 0; j < d.dim_sizes[i]; j++) printf(" %ld", d.dims[at++]); }
  NEW(Executable_OutputMemoryKinds, m); m.executable = e;
  if (!CALL(Executable_OutputMemoryKinds, m)) for (size_t i = 0; i < m.num_outputs; i++) text(m.memory_kinds[i], m.memory_kind_sizes[i]);
  NEW(Executable_GetCompiledMemoryStats, c); c.executable = e;
  if (!CALL(Executable_GetCompiledMemoryStats, c)) printf(" bytes %ld %ld", c.argument_size_in_bytes, c.output_size_in_bytes);
  NEW(Executable_Fingerprint, f); f.executable = e;
  if (!CALL(Executable_Fingerprint, f)) printf(" print %016lx", hash((const unsigned char*)f.executable_fingerprint, f.executable_fingerprint_size));
  NEW(LoadedExecutable_Fingerprint, lf); lf.executable = x;
  if (!CALL(LoadedExecutable_Fingerprint, lf)) printf(" loaded %016lx", hash((const unsigned char*)lf.executable_fingerprint, lf.executable_fingerprint_size));
  PJRT_Program code = {.struct_size = sizeof code};
  NEW(Executable_OptimizedProgram, y); y.executable = e; y.program = &code;
  if (!CALL(Executable_OptimizedProgram, y)) {
    code.code = calloc(1, code.code_size + 1);
    if (!CALL(Executable_OptimizedProgram, y)) printf(" optimised %zu ends %d", code.code_size, code.code_size ? (unsigned char)code.code[code.code_size - 1] : -1);
    free(code.code);
  }
  NEW(LoadedExecutable_IsDeleted, x2); x2.executable = x; CALL(LoadedExecutable_IsDeleted, x2); printf(" deleted %d", x2.is_deleted);
  NEW(LoadedExecutable_AddressableDevices, v); v.executable = x; CALL(LoadedExecutable_AddressableDevices, v);
  for (size_t i = 0; i < v.num_addressable_devices; i++) printf(" on %d", id_of(v.addressable_devices[i]));
  NEW(LoadedExecutable_GetDeviceAssignment, w); w.executable = x;
  if (real.PJRT_LoadedExecutable_GetDeviceAssignment && !CALL(LoadedExecutable_GetDeviceAssignment, w)) {
    printf(" assignment %zu:%016lx", w.serialized_bytes_size, hash((const unsigned char*)w.serialized_bytes, w.serialized_bytes_size));
    if (w.serialized_device_assignment_deleter) w.serialized_device_assignment_deleter(w.serialized_device_assignment);
  }
  NEW(Executable_Destroy, k); k.executable = e; CALL(Executable_Destroy, k);
}
static void save(const char* from, const char* to) {
  NEW(LoadedExecutable_GetExecutable, g); g.loaded_executable = *prog(from); if (CALL(LoadedExecutable_GetExecutable, g)) return;
  NEW(Executable_Serialize, s); s.executable = g.executable; if (CALL(Executable_Serialize, s)) return;
  NEW(Executable_DeserializeAndLoad, l); l.client = client; l.serialized_executable = s.serialized_bytes; l.serialized_executable_size = s.serialized_bytes_size;
  if (!CALL(Executable_DeserializeAndLoad, l)) *prog(to) = l.loaded_executable;
  s.serialized_executable_deleter(s.serialized_executable);
  NEW(Executable_Destroy, k); k.executable = g.executable; CALL(Executable_Destroy, k);
}
static void stream(char* line) { /* stream NAME TYPE DEVICE RANK dims…: in three parts */
  char name[32]; int t, device, rank, at; int64_t dims[MOST_RANK];
  sscanf(line, "%s %d %d %d%n", name, &t, &device, &rank, &at);
  for (int i = 0, k; i < rank; i++, at += k) sscanf(line + at, "%ld%n", &dims[i], &k);
  size_t size = count(dims, rank) * width(t);
  PJRT_ShapeSpec spec = {.struct_size = sizeof spec, .dims = dims, .num_dims = rank, .element_type = t};
  NEW(Device_DefaultMemory, f); f.device = devices[device]; CALL(Device_DefaultMemory, f);
  NEW(Client_CreateBuffersForAsyncHostToDevice, c); c.client = client; c.shape_specs = &spec; c.num_shape_specs = 1; c.memory = f.memory;
  if (!real.PJRT_Client_CreateBuffersForAsyncHostToDevice || CALL(Client_CreateBuffersForAsyncHostToDevice, c)) return;
  NEW(AsyncHostToDeviceTransferManager_BufferSize, z); z.transfer_manager = c.transfer_manager; CALL(AsyncHostToDeviceTransferManager_BufferSize, z);
  NEW(AsyncHostToDeviceTransferManager_BufferCount, n); n.transfer_manager = c.transfer_manager; CALL(AsyncHostToDeviceTransferManager_BufferCount, n);
  NEW(AsyncHostToDeviceTransferManager_Device, v); v.transfer_manager = c.transfer_manager; CALL(AsyncHostToDeviceTransferManager_Device, v);
  printf(" size %zu count %zu device %d", z.buffer_size, n.buffer_count, id_of(v.device_out));
  NEW(AsyncHostToDeviceTransferManager_RetrieveBuffer, r); r.transfer_manager = c.transfer_manager;
  if (!CALL(AsyncHostToDeviceTransferManager_RetrieveBuffer, r)) *slot(name) = r.buffer_out;
  unsigned char* data = pattern(t, count(dims, rank), 5);
  for (int i = 0; i < 3; i++) {
    size_t from = size * i / 3, to = size * (i + 1) / 3;
    NEW(AsyncHostToDeviceTransferManager_TransferData, d); d.transfer_manager = c.transfer_manager; d.data = data + from; d.offset = from; d.transfer_size = to - from; d.is_last_transfer = i == 2;
    if (!CALL(AsyncHostToDeviceTransferManager_TransferData, d)) finish(d.done_with_h2d_transfer);
  }
  NEW(AsyncHostToDeviceTransferManager_Destroy, y); y.transfer_manager = c.transfer_manager; CALL(AsyncHostToDeviceTransferManager_Destroy, y);
}
static long entries(const char* path) {
  DIR* folder = opendir(path); long n = 0;
  while (folder && readdir(folder)) n++;
  if (folder) closedir(folder);
  return n;
}
static void usage(void) { /* prints growth since the last time, in coarse steps */
  static long fds, threads, maps, rss; long pages = 0, n = 0; int c;
  FILE* f = fopen("/proc/self/statm", "r"); if (fscanf(f, "%*d %ld", &pages) != 1) pages = 0; fclose(f);
  f = fopen("/proc/self/maps", "r"); while ((c = fgetc(f)) != EOF) n += c == '\n'; fclose(f);
  long a = entries("/proc/self/fd"), b = entries("/proc/self/task");
  if (rss) printf(" grew: descriptors %d threads %d maps %d memory %d", a - fds > 4, b - threads > 4, n - maps > 60, pages - rss > 512);
  fds = a; threads = b; maps = n; rss = pages;
}
static void wrong(const char* what) { /* calls that must be refused, and the code of the refusal */
  PJRT_LoadedExecutable* x = NULL; const char* one = "1a0420012801";
  if (!strcmp(what, "syntax")) compile_bytes("module @x { nonsense", 20, "mlir", one, &x);
  if (!strcmp(what, "options")) compile_bytes("module @x { func.func public @main() { return } }", 49, "mlir", "ffffffffff", &x);
  if (!strcmp(what, "format")) compile_bytes("module @x { func.func public @main() { return } }", 49, "cobol", one, &x);
  if (!strcmp(what, "saved")) { NEW(Executable_DeserializeAndLoad, l); l.client = client; l.serialized_executable = "not a program"; l.serialized_executable_size = 13; CALL(Executable_DeserializeAndLoad, l); }
  if (!strcmp(what, "device")) { NEW(Client_LookupDevice, l); l.client = client; l.id = 4711; CALL(Client_LookupDevice, l); }
  if (!strcmp(what, "local")) { NEW(Client_LookupAddressableDevice, l); l.client = client; l.local_hardware_id = 4711; CALL(Client_LookupAddressableDevice, l); }
  if (!strcmp(what, "assignment")) { int i[4]; NEW(Client_DefaultDeviceAssignment, s); s.client = client; s.num_replicas = 64; s.num_partitions = 64; s.default_assignment_size = 4; s.default_assignment = i; CALL(Client_DefaultDeviceAssignment, s); }
  if (!strcmp(what, "raw")) { char c[8]; NEW(Buffer_CopyRawToHost, r); r.buffer = *slot("a"); r.dst = c; r.offset = 1 << 30; r.transfer_size = 8; if (!CALL(Buffer_CopyRawToHost, r)) { if (finish(r.event)) printf(" later"); } }
  if (!strcmp(what, "small")) { char c[1]; NEW(Buffer_ToHostBuffer, r); r.src = *slot("a"); r.dst = c; r.dst_size = 1; if (!CALL(Buffer_ToHostBuffer, r)) finish(r.event); }
}
static void play(char* line) {
  char cmd[32], a[32] = "", b[32] = "", c[32] = ""; int at = 0;
  sscanf(line, "%31s %n", cmd, &at);
  char* rest = line + at;
  sscanf(rest, "%31s %31s %31s", a, b, c);
  if (!strcmp(cmd, "put")) put(rest);
  else if (!strcmp(cmd, "compile")) compile(rest);
  else if (!strcmp(cmd, "run")) run(rest);
  else if (!strcmp(cmd, "client")) show_client();
  else if (!strcmp(cmd, "program")) show_program(*prog(a));
  else if (!strcmp(cmd, "save")) save(a, b);
  else if (!strcmp(cmd, "stream")) stream(rest);
  else if (!strcmp(cmd, "usage")) usage();
  else if (!strcmp(cmd, "wrong")) wrong(a);
  else if (!strcmp(cmd, "meta")) meta(*slot(a));
  else if (!strcmp(cmd, "read")) {
    size_t size = 0; unsigned char* p = *slot(a) ? read_buffer(*slot(a), &size) : NULL;
    if (p) printf(" %zu bytes %016lx", size, hash(p, size)); else printf(" nothing");
    free(p);
  } else if (!strcmp(cmd, "raw")) { /* raw NAME OFFSET SIZE */
    unsigned char p[4096] = {0}; NEW(Buffer_CopyRawToHost, r); r.buffer = *slot(a); r.dst = p; r.offset = atol(b); r.transfer_size = atol(c);
    if (!CALL(Buffer_CopyRawToHost, r)) { finish(r.event); printf(" %016lx", hash(p, sizeof p)); }
  } else if (!strcmp(cmd, "event")) {
    NEW(Buffer_ReadyEvent, r); r.buffer = *slot(a); if (!CALL(Buffer_ReadyEvent, r)) events(r.event);
  } else if (!strcmp(cmd, "copy")) { /* copy NAME DEVICE NEW */
    NEW(Buffer_CopyToDevice, r); r.buffer = *slot(a); r.dst_device = devices[atoi(b)]; if (!CALL(Buffer_CopyToDevice, r)) *slot(c) = r.dst_buffer;
  } else if (!strcmp(cmd, "move")) { /* move NAME DEVICE NEW: to its default memory */
    NEW(Device_DefaultMemory, f); f.device = devices[atoi(b)]; CALL(Device_DefaultMemory, f);
    NEW(Buffer_CopyToMemory, r); r.buffer = *slot(a); r.dst_memory = f.memory; if (!CALL(Buffer_CopyToMemory, r)) *slot(c) = r.dst_buffer;
  } else if (!strcmp(cmd, "delete")) { NEW(Buffer_Delete, r); r.buffer = *slot(a); CALL(Buffer_Delete, r); }
  else if (!strcmp(cmd, "destroy")) { destroy_buffer(*slot(a)); *slot(a) = NULL; }
  else if (!strcmp(cmd, "unload")) { NEW(LoadedExecutable_Delete, r); r.executable = *prog(a); CALL(LoadedExecutable_Delete, r); }
  else if (!strcmp(cmd, "drop")) { NEW(LoadedExecutable_Destroy, r); r.executable = *prog(a); CALL(LoadedExecutable_Destroy, r); *prog(a) = NULL; }
  else { printf("what is %s?\n", cmd); exit(7); }
}
static void* play_thread(void* line) { play(line); return NULL; }
int main(int argc, char** argv) {
  static char line[1 << 16]; long number = argc > 2 ? atol(argv[2]) : 4;
  if (argc < 2) return 9;
  open_library(argv[1]);
  NEW(Plugin_Initialize, start); CALL(Plugin_Initialize, start);
  PJRT_NamedValue option = {.struct_size = sizeof option, .name = "cpu_device_count", .name_size = 16, .type = PJRT_NamedValue_kInt64, .int64_value = number, .value_size = 1};
  NEW(Client_Create, create); create.create_options = &option; create.num_options = 1;
  if (CALL(Client_Create, create)) return 9;
  client = create.client;
  NEW(Client_AddressableDevices, ask); ask.client = client; CALL(Client_AddressableDevices, ask);
  num_devices = ask.num_addressable_devices;
  for (size_t i = 0; i < num_devices && i < MOST_DEVICES; i++) devices[i] = ask.addressable_devices[i];
  while (fgets(line, sizeof line, stdin)) { /* [thread|N times] COMMAND; the commands of a block are split by ; */
    line[strcspn(line, "\n")] = 0;
    char* at = line; int threaded = 0, k = 0; long times = 1;
    if (!strncmp(at, "thread ", 7)) { threaded = 1; at += 7; }
    if (sscanf(at, "%ld times %n", &times, &k) == 1 && k) at += k; else times = 1;
    printf("%.40s:", at);
    for (long i = 0; i < times; i++) {
      char* copy = strdup(at); char* rest = copy;
      for (char* part; (part = strsep(&rest, ";"));) {
        if (threaded) { pthread_t t; pthread_create(&t, NULL, play_thread, part); pthread_join(t, NULL); } else play(part);
      }
      free(copy);
    }
    printf("\n");
    fflush(stdout);
  }
  printf("end\n");
  fflush(stdout);
  _exit(0);
}
