/* What the files of the core share: the objects behind PJRT's handles, and entering Python.
 *
 * Every handle is memory whose first word is NULL: since PJRT 0.105 hosts read a table of functions
 * there (PJRT_Memory, PJRT_Error), and take NULL for none. Nothing but what enters Python
 * needs the interpreter's lock (GIL); hosts ask for the rest while they hold locks of their own. */
#ifndef PLUGRT_CORE_H
#define PLUGRT_CORE_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdlib.h>

#include "pjrt.h"
#include "slots.h"

/* Whether an argument struct of the host, which may be older, has a field. */
#define HAS_FIELD(args, field)                                                                     \
  ((args)->struct_size >= (size_t)((char *)&(args)->field - (char *)(args)) + sizeof (args)->field)

/* --- counts of live handles ----------------------------------------------------------------- */

enum { LIVE_ERRORS, LIVE_EVENTS, LIVE_BUFFERS, LIVE_EXECUTABLES, LIVE_LOADED, LIVE_CLIENTS,
       LIVE_LAYOUTS, LIVE_KINDS };
extern atomic_long live_handles[LIVE_KINDS];

/* --- memory.c: text and blocks that live as long as their owner ------------------------------ */

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

/* --- errors.c ------------------------------------------------------------------------------- */

PJRT_Error *make_error(int code, const char *message, size_t size);
PJRT_Error *format_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
PJRT_Error *unimplemented(const char *function);
void error_destroy(struct PJRT_Error_Destroy_Args *args);
void error_message(struct PJRT_Error_Message_Args *args);
PJRT_Error *error_get_code(struct PJRT_Error_GetCode_Args *args);
void fill_errors(PJRT_Api *api);

/* --- events.c: the completion of work, shared by events, buffers and whoever completes it ------ */

typedef struct Future Future;
typedef void (*FutureCallback)(Future *future, void *argument);

Future *future_ready(void); /* complete and without an error; a new reference, like the others */
Future *future_new(void);   /* NULL if there is no memory */
Future *future_failed(int code, const char *message, size_t size);
Future *future_share(Future *future);
void future_release(Future *future);
int future_is_done(Future *future);
PJRT_Error *future_error(Future *future); /* of a complete one: a new error, or NULL */
/* Completes it; nothing happens if it is complete. Calls callbacks: not while a lock is held. */
void future_complete(Future *future, int code, const char *message, size_t size);
void complete_with(Future *future, PJRT_Error *error); /* frees the error; NULL: success */
void future_copy(Future *target, Future *source); /* completes it as a complete one was */
/* Calls back once, now or when it is complete; -1 if there is no memory. */
int future_then(Future *future, FutureCallback call, void *argument);
/* Complete when all are, with the first error; NULL if there is no memory. */
Future *future_join(Future *const *futures, size_t count);
PJRT_Event *make_event(Future *future); /* takes the reference; NULL if there is no memory */
void fill_events(PJRT_Api *api);
void prepare_events(void);

/* --- python.c: into Python and back ----------------------------------------------------------- */

typedef struct {
  PyGILState_STATE state;
  PyObject *type, *value, *traceback;
} Entry;

/* Takes the GIL and puts the thread's pending exception aside; an error where there is no Python,
 * or it is being finalised. Each success is followed by leave_python. */
PJRT_Error *enter_python(Entry *entry, const char *function);
int try_python(Entry *entry); /* the same for what must not fail; 0: it could not be entered */
void leave_python(Entry *entry);
void prepare_python(void);
void close_python(void); /* by an exit handler: from now on only its thread enters */
/* Turns the exception that is set into an error, and clears it. */
PJRT_Error *take_exception(const char *function);
/* The same for a function that must not fail: writes it to stderr. */
void log_exception(const char *function);
void release_object(PyObject *object); /* drops a reference from any state */
extern PyObject *describe_exception;   /* (function, exception) -> (code, message) */

/* --- objects.c: the Python types of the core -------------------------------------------------- */

/* A block of the host's memory with Python's buffer protocol; `done` (may be NULL) is completed
 * when nothing in Python refers to it any more. Takes the reference to `done` in any case. */
PyObject *make_host_memory(const void *base, Py_ssize_t size, int writable, Future *done);
/* A callable that completes a future: f() or f(error). Takes no reference. */
PyObject *make_completion(Future *future);
int add_types(PyObject *module);

/* --- table.c ----------------------------------------------------------------------------------- */

typedef struct Table {
  PJRT_Api api;
  PyObject *bridge; /* plugrt_sdk.export.bridge.Bridge */
  Arena arena;
  const PJRT_NamedValue *attributes;
  size_t num_attributes;
  PJRT_Shardings_Extension shardings;
  PJRT_Layouts_Extension layouts;
  PJRT_MemoryDescriptions_Extension memory_descriptions;
  PJRT_AbiVersion_Extension abi_version;
} Table;

enum { MOST_TABLES = 256 };
Table *make_table(PyObject *bridge, PyObject *attributes, int minor, PyObject *hidden);

/* --- client.c, devices.c ------------------------------------------------------------------------ */

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

struct PJRT_TopologyDescription {
  const void *functions;
  PJRT_Client *client;
  const PJRT_NamedValue *attributes;
  size_t num_attributes;
  PJRT_DeviceDescription **devices;
};

struct PJRT_Client {
  const void *functions;
  Table *table;
  atomic_long references; /* the host's, and those of buffers and executables */
  Arena arena;
  PyObject *object;
  Text platform_name, platform_version;
  int process_index;
  int is_asynchronous, donates, has_processes;
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
int client_describe(PJRT_Client *client, PyObject *description); /* devices.c */
void fill_devices(PJRT_Api *api);

/* --- buffers.c ---------------------------------------------------------------------------------- */

struct PJRT_Buffer {
  const void *functions;
  PJRT_Client *client;
  PyObject *object;
  PJRT_Device *device;
  PJRT_Memory *memory;
  Future *ready;
  PJRT_Buffer_Type type;
  size_t size; /* bytes of the contents */
  size_t num_dims;
  atomic_int is_deleted;
  atomic_long external_references;
  int64_t dims[]; /* and then minor_to_major */
};

extern unsigned char element_sizes[64]; /* bytes of an element, by PJRT_Buffer_Type */
size_t array_size(PJRT_Buffer_Type type, const int64_t *dims, size_t num_dims);
/* Makes a handle of an interface Buffer, whose reference it takes, also when it fails (NULL, with
 * an exception). The future of its contents is made too; the GIL is held. */
PJRT_Buffer *make_buffer(PJRT_Memory *memory, PJRT_Device *device, PyObject *object,
                         PJRT_Buffer_Type type, const int64_t *dims, size_t num_dims);
void destroy_buffer(PJRT_Buffer *buffer); /* the GIL is held */
PyObject *layout_object(const PJRT_Buffer_MemoryLayout *layout);
void fill_buffers(PJRT_Api *api);

/* --- executables.c ------------------------------------------------------------------------------ */

typedef struct {
  PJRT_Buffer_Type type;
  size_t num_dims;
  const int64_t *dims;
  Text memory_kind;
} Output;

struct PJRT_Executable {
  const void *functions;
  atomic_long references;
  PJRT_Client *client;
  Arena arena;
  PyObject *object; /* interface Executable */
  Text name;
  size_t num_replicas, num_partitions, num_outputs, num_parameters;
  Output *outputs;
  PJRT_Buffer_Type *output_types;
  int64_t *output_dims;
  size_t *output_dim_sizes;
  const char **output_memory_kinds;
  size_t *output_memory_kind_sizes;
  const char **output_shardings, **parameter_shardings; /* NULL: unknown */
  size_t *output_sharding_sizes, *parameter_sharding_sizes;
  Text device_assignment, compile_options;
  atomic_int has_fingerprint, has_program, has_costs; /* what was asked for and is kept */
  Text fingerprint, program, program_format;
  const PJRT_NamedValue *costs;
  size_t num_costs;
};

struct PJRT_LoadedExecutable {
  const void *functions;
  PJRT_Executable *executable;
  PyObject *object, *execute;
  PJRT_Device **devices;
  size_t num_devices;
  PJRT_LogicalDeviceIds *logical_ids;
  atomic_int is_deleted;
};

void executable_release(PJRT_Executable *executable);
void fill_executables(PJRT_Api *api);
void fill_execution(PJRT_Api *api);

/* --- extensions.c ------------------------------------------------------------------------------- */

void fill_extensions(Table *table);

#endif
