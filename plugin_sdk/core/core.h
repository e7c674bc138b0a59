/* Declarations that the core's files share: the objects behind PJRT's handles, and the functions
 * that enter Python.
 *
 * Every handle is memory whose first word is NULL: since PJRT 0.105 hosts read a table of functions
 * there (PJRT_Memory, PJRT_Error), and treat NULL as "no table". Only functions that enter Python
 * need the interpreter's lock (GIL); hosts call the others while they hold their own locks. */
#ifndef PLUGRT_CORE_H
#define PLUGRT_CORE_H

#include "python.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "futures.h"
#include "pjrt.h"
#include "slot_functions.h"
#include "slots.h"

/* Counts of live handles. */

enum { LIVE_ERRORS, LIVE_EVENTS, LIVE_BUFFERS, LIVE_EXECUTABLES, LIVE_LOADED, LIVE_CLIENTS,
       LIVE_LAYOUTS, LIVE_TOPOLOGIES, LIVE_TRANSFERS, LIVE_TRACKING_EVENTS, LIVE_KINDS };
extern atomic_long live_handles[LIVE_KINDS];

/* memory.c: text and blocks that are freed with their owner. */

typedef struct {
  const char *data;
  size_t size;
} Text;

typedef struct ArenaBlock ArenaBlock;
typedef struct {
  ArenaBlock *blocks;
} Arena;

/* Returns zeroed memory, NULL with MemoryError set if there is none. Needs the GIL. */
void *arena_allocate(Arena *arena, size_t size);
int arena_text(Arena *arena, PyObject *value, Text *text); /* a str or bytes; 0, or -1 */
int arena_named_values(Arena *arena, PyObject *mapping, const PJRT_NamedValue **values,
                       size_t *count);
void arena_free(Arena *arena);
PyObject *integer_tuple(const int64_t *values, size_t count);

/* errors.c */

PJRT_Error *make_error(int code, const char *message, size_t size);
PJRT_Error *format_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
PJRT_Error *unimplemented(const char *function);
PJRT_Error *no_host_memory(void); /* never freed */
PJRT_Error *refuse_size(const char *function, size_t found, size_t needed);
void error_destroy(struct PJRT_Error_Destroy_Args *args);
void error_message(struct PJRT_Error_Message_Args *args);
PJRT_Error *error_get_code(struct PJRT_Error_GetCode_Args *args);
void fill_errors(PJRT_Api *api);

/* table.c */

typedef struct Table {
  PJRT_Api api;
  PyObject *bridge; /* plugrt_sdk.export.bridge.Bridge */
  int makes_topologies;
  atomic_int refuses_handlers; /* handlers of custom calls are given to its newest client; false if
                                  that client accepts none */
  Arena arena;
  const PJRT_NamedValue *attributes;
  size_t num_attributes;
  PJRT_Shardings_Extension shardings;
  PJRT_Layouts_Extension layouts;
  PJRT_MemoryDescriptions_Extension memory_descriptions;
  PJRT_AbiVersion_Extension abi_version;
  PJRT_FFI_Extension ffi;
} Table;

enum { MOST_TABLES = 256 };
Table *make_table(PyObject *bridge, PyObject *attributes, int minor, PyObject *hidden);
PyObject *refused_functions(void); /* the names of slots that no table has */

/* client.c, devices.c */

struct PJRT_MemoryDescription {
  const void *functions;
  Text kind;
  int kind_id;
};

struct PJRT_Memory {
  const void *functions;
  PyObject *object;
  int id, kind_id;
  Text kind, debug_string, string;
  PJRT_Device **devices;
  size_t num_devices;
};

struct PJRT_DeviceDescription {
  const void *functions;
  int id, process_index;
  Text kind, debug_string, string;
  const PJRT_NamedValue *attributes;
  size_t num_attributes;
  PJRT_MemoryDescription **memories;
  size_t num_memories, default_memory;
};

struct PJRT_Device {
  const void *functions;
  PJRT_DeviceDescription description;
  PyObject *object;
  PJRT_Client *client;
  int local_hardware_id;
  uint8_t is_addressable;
  PJRT_Memory **memories;
  size_t num_memories;
  PJRT_Memory *default_memory;
};

/* A client's own, or one that the host made: devices that programs are compiled for. */
struct PJRT_TopologyDescription {
  const void *functions;
  Table *table;
  PJRT_Client *client; /* the client that contains this; NULL: `references` and `arena` are used */
  atomic_long references;
  Arena arena;
  PyObject *object; /* interface Topology, or the client */
  Text platform_name, platform_version;
  const PJRT_NamedValue *attributes;
  size_t num_attributes;
  PJRT_DeviceDescription **devices;
  size_t num_devices;
  int *memory_kinds; /* the ids of the kinds of memories; NULL: unknown */
  size_t num_memory_kinds;
};

struct PJRT_Client {
  const void *functions;
  Table *table;
  atomic_long references; /* one reference of the host, one for each buffer and executable */
  Arena arena;
  PyObject *object;
  int process_index;
  int is_asynchronous, donates, has_processes;
  int takes_layouts; /* puts accept layouts other than row-major */
  int is_on_host, takes_views; /* arrays are in memory that hosts can read; may view host memory */
  PJRT_Device **devices, **addressable_devices;
  size_t num_devices, num_addressable_devices;
  PJRT_Memory **memories;
  size_t num_memories;
  PJRT_TopologyDescription topology;
};

PJRT_Error *client_create(Table *table, struct PJRT_Client_Create_Args *args);
PJRT_Client *client_share(PJRT_Client *client);
void client_release(PJRT_Client *client);
PJRT_Device *client_find_device(PJRT_Client *client, long id); /* NULL: none */
PyObject *read_named_values(const PJRT_NamedValue *values, size_t count); /* a dict */
void fill_client(PJRT_Api *api);
int client_describe(PJRT_Client *client, PyObject *description); /* describing.c */
/* Reads a device from a tuple (id, process, kind, debug string, string, attributes). */
int read_description(Arena *arena, PJRT_DeviceDescription *description, PyObject *tuple);
void fill_devices(PJRT_Api *api);

/* topology.c */

PJRT_Error *topology_create(Table *table, struct PJRT_TopologyDescription_Create_Args *args);
PJRT_Error *topology_read(Table *table, struct PJRT_TopologyDescription_Deserialize_Args *args);
PJRT_TopologyDescription *topology_share(PJRT_TopologyDescription *topology);
void topology_release(PJRT_TopologyDescription *topology);
void fill_topology(PJRT_Api *api);

/* buffers.c, buffer_facts.c */

/* A shape, an element type, and the order of the dimensions in device memory. */
typedef struct {
  PJRT_Buffer_Type type;
  const int64_t *dims;
  size_t num_dims;
  const int64_t *minor_to_major; /* NULL: row-major */
} Shape;

extern unsigned char element_sizes[64]; /* bytes of an element, by PJRT_Buffer_Type */
/* Whether devices pack several elements into a byte; host arrays use a byte for each. */
int has_part_bytes(PJRT_Buffer_Type type);
/* Computes the size of an array in bytes; returns an error for invalid dimensions and types. */
PJRT_Error *measure(const Shape *shape, const char *function, size_t *size);

struct PJRT_Buffer {
  const void *functions;
  atomic_long references; /* one reference of the host, one for each reader or writer */
  PJRT_Client *client;
  PyObject *object; /* interface Buffer; NULL: not there yet, or failed (the GIL guards it) */
  PJRT_Buffer *source; /* the buffer that owns the object, if it is another one; this buffer keeps a
                          reference to it */
  PJRT_Device *device;
  PJRT_Memory *memory;
  Future *ready;
  int is_promised; /* the contents may come after the handle: see `ready` before using `object` */
  PJRT_Buffer_Type type;
  size_t size; /* bytes of the contents */
  size_t num_dims;
  atomic_int is_deleted;
  atomic_long holds; /* deletion waits until it is 0: the buffer holds one until it is deleted,
                        readers hold others */
  atomic_long external_references;
  int64_t dims[]; /* and then minor_to_major */
};

/* Makes a handle for an interface Buffer, and the future of its contents. Steals the reference to
 * the Buffer, also on failure (NULL, with an exception). The caller holds the GIL. */
PJRT_Buffer *make_buffer(PJRT_Memory *memory, PJRT_Device *device, PyObject *object,
                         const Shape *shape);
/* Makes a handle whose contents come later; NULL if there is no memory. No GIL is needed. */
PJRT_Buffer *make_promise(PJRT_Memory *memory, PJRT_Device *device, const Shape *shape);
/* Gives a promise its contents and steals the reference to them. The caller holds the GIL. */
void fulfil_promise(PJRT_Buffer *buffer, PyObject *object);
/* Gives a promise the contents of another buffer; the GIL is held. */
void share_contents(PJRT_Buffer *buffer, PJRT_Buffer *source);
PJRT_Buffer *buffer_share(PJRT_Buffer *buffer);
void buffer_release(PJRT_Buffer *buffer);
int buffer_hold(PJRT_Buffer *buffer); /* 0: it was deleted before */
void buffer_drop_hold(PJRT_Buffer *buffer);
void buffer_delete(PJRT_Buffer *buffer);
/* Returns an error for a buffer that was deleted or has no contents yet, else NULL. */
PJRT_Error *require_contents(PJRT_Buffer *buffer, const char *function);
void fill_buffers(PJRT_Api *api);
void fill_buffer_facts(PJRT_Api *api);

/* puts.c, buffer_reads.c, buffer_copies.c, promises.c, transfers.c */

/* An array in the host's memory: element 0, and strides if it is not row-major. */
typedef struct {
  const void *data;
  Shape shape;
  const int64_t *byte_strides; /* NULL: row-major */
  PJRT_HostBufferSemantics semantics;
} HostArray;

typedef struct {
  PJRT_Client *client;
  PJRT_Device *device;
  PJRT_Memory *memory;
} Place;

/* Finds the device and the memory; the host names one of them, or both. */
PJRT_Error *find_place(PJRT_Client *client, PJRT_Device *device, PJRT_Memory *memory,
                       const char *function, Place *place);
/* Computes the size of an array in bytes. Returns an error for an invalid array and for one that is
   not row-major on the device. */
PJRT_Error *check_array(const HostArray *array, const char *function, size_t *size);
/* Puts an array that was checked; the host may change it when `done` is complete (NULL: on return).
 * Returns the interface's Buffer, or NULL with an exception; the GIL is held. */
PyObject *put_array(const HostArray *array, size_t size, const Place *place, Future *done);
/* Reads the dimension order that a layout requests (NULL: row-major). Returns an error if the
 * client does not support it. */
PJRT_Error *read_order(PJRT_Client *client, const PJRT_Buffer_MemoryLayout *layout,
                       const Shape *shape, const char *function, const int64_t **order);
PJRT_Error *require_row_major(const PJRT_Buffer_MemoryLayout *layout, const Shape *shape,
                              const char *function);
void fill_puts(PJRT_Api *api);
void fill_reads(PJRT_Api *api);
void fill_copies(PJRT_Api *api);
void fill_promises(PJRT_Api *api);
void fill_transfers(PJRT_Api *api);

/* executables.c, programs.c, compiling.c, analyses.c, execution.c, contexts.c */

typedef struct {
  Shape shape;
  Text memory_kind;
} Output;

/* A list of strings or byte arrays, as hosts receive it. */
typedef struct {
  const char **data; /* NULL: not stated; else an arena's memory, also for a count of 0 */
  size_t *sizes;
  size_t count;
} Texts;

struct PJRT_Executable {
  const void *functions;
  atomic_long references;
  PJRT_TopologyDescription *topology; /* the compilation target: of a client, or without one */
  Arena arena;
  PyObject *object; /* interface Executable */
  Text name;
  size_t num_replicas, num_partitions, num_outputs;
  Output *outputs;
  PJRT_Buffer_Type *output_types;
  int64_t *output_dims;
  size_t *output_dim_sizes;
  Texts output_memory_kinds, parameter_memory_kinds;
  Texts output_shardings, parameter_shardings;
  Text device_assignment, compile_options;
  PJRT_Layouts_MemoryLayout **output_layouts, **parameter_layouts; /* NULL: unknown */
  size_t num_parameters; /* of `parameter_layouts` */
  atomic_int has_fingerprint, has_program, has_costs; /* properties that were requested and are now
                                                         kept */
  Text fingerprint, program, program_format;
  const PJRT_NamedValue *costs;
  size_t num_costs;
};

struct PJRT_LoadedExecutable {
  const void *functions;
  PJRT_Executable *executable;
  PJRT_Client *client;
  PyObject *object, *execute;
  PJRT_Device **devices;
  size_t num_devices;
  PJRT_LogicalDeviceIds *logical_ids;
  atomic_int is_deleted;
};

/* User data that a host passes to the handlers of custom calls of a launch: pointers by type id. */
PJRT_Error *context_add(PJRT_ExecuteContext *context, int64_t type_id, void *data);
/* Returns the user data as a dict from id to address, or None without any; the GIL is held. */
PyObject *context_data(const PJRT_ExecuteContext *context);

/* Make handles from Bridge's descriptions; return NULL with an exception on failure. */
PJRT_Executable *make_executable(PJRT_TopologyDescription *topology, PyObject *description);
PJRT_LoadedExecutable *make_loaded(PJRT_Client *client, PyObject *description);
void executable_release(PJRT_Executable *executable);
void destroy_loaded(PJRT_LoadedExecutable *loaded);
void fill_executables(PJRT_Api *api);
void fill_compiling(PJRT_Api *api);
void fill_analyses(PJRT_Api *api);
void fill_execution(PJRT_Api *api);
void fill_contexts(PJRT_Api *api);

/* The extensions. */

/* Makes the layouts of several arrays in an arena; NULL with an exception on failure. */
PJRT_Layouts_MemoryLayout **make_layouts(Arena *arena, const Shape *const *shapes, size_t count);
void fill_shardings(PJRT_Shardings_Extension *table);
void fill_layouts(PJRT_Layouts_Extension *table);
void fill_memory_descriptions(PJRT_MemoryDescriptions_Extension *table);
void fill_abi_version(PJRT_AbiVersion_Extension *table);
void fill_ffi(PJRT_FFI_Extension *table);
PJRT_Error *register_type(Table *table, struct PJRT_FFI_Type_Register_Args *args);
PJRT_Error *register_handler(Table *table, struct PJRT_FFI_Register_Handler_Args *args);

#endif
