/* PJRT_Api: the table of one exported plugin. Tables live as long as the process. */
#include "core.h"

#include <string.h>

static PJRT_Api filled; /* the functions that call_<name> calls */
PJRT_SLOTS(DEFINE_CALLS)

static Table tables[MOST_TABLES];
static int num_tables;

static PJRT_Error *plugin_attributes(const Table *table, struct PJRT_Plugin_Attributes_Args *args) {
  args->attributes = table->attributes;
  args->num_attributes = table->num_attributes;
  return NULL;
}

/* Defines the function of table n, which checks its arguments' size like the others. */
#define OF_TABLE_N(n, function, name, last)                                                        \
  static PJRT_Error *function##_##n(struct PJRT_##name##_Args *args) {                             \
    size_t needed = SIZE_TO(struct PJRT_##name##_Args, last);                                      \
    if (args->struct_size < needed)                                                                \
      return refuse_size(#name, args->struct_size, needed);                                        \
    return function(&tables[n], args);                                                             \
  }
#define OF_TABLE(n)                                                                                \
  OF_TABLE_N(n, client_create, Client_Create, client)                                              \
  OF_TABLE_N(n, plugin_attributes, Plugin_Attributes, num_attributes)                              \
  OF_TABLE_N(n, topology_create, TopologyDescription_Create, topology)                             \
  OF_TABLE_N(n, topology_read, TopologyDescription_Deserialize, topology)                          \
  OF_TABLE_N(n, register_type, FFI_Type_Register, type_id)                                         \
  static PJRT_Error *register_handler_##n(struct PJRT_FFI_Register_Handler_Args *args) {           \
    return register_handler(&tables[n], args);                                                     \
  }
#define ROW_OF_TABLES(DO, x)                                                                       \
  DO(0x##x##0) DO(0x##x##1) DO(0x##x##2) DO(0x##x##3) DO(0x##x##4) DO(0x##x##5) DO(0x##x##6)       \
  DO(0x##x##7) DO(0x##x##8) DO(0x##x##9) DO(0x##x##A) DO(0x##x##B) DO(0x##x##C) DO(0x##x##D)       \
  DO(0x##x##E) DO(0x##x##F)
#define EACH_TABLE(DO)                                                                             \
  ROW_OF_TABLES(DO, 0) ROW_OF_TABLES(DO, 1) ROW_OF_TABLES(DO, 2) ROW_OF_TABLES(DO, 3)              \
  ROW_OF_TABLES(DO, 4) ROW_OF_TABLES(DO, 5) ROW_OF_TABLES(DO, 6) ROW_OF_TABLES(DO, 7)              \
  ROW_OF_TABLES(DO, 8) ROW_OF_TABLES(DO, 9) ROW_OF_TABLES(DO, A) ROW_OF_TABLES(DO, B)              \
  ROW_OF_TABLES(DO, C) ROW_OF_TABLES(DO, D) ROW_OF_TABLES(DO, E) ROW_OF_TABLES(DO, F)
EACH_TABLE(OF_TABLE)

typedef struct {
  PJRT_Error *(*client_create)(struct PJRT_Client_Create_Args *);
  PJRT_Error *(*plugin_attributes)(struct PJRT_Plugin_Attributes_Args *);
  PJRT_Error *(*topology_create)(struct PJRT_TopologyDescription_Create_Args *);
  PJRT_Error *(*topology_read)(struct PJRT_TopologyDescription_Deserialize_Args *);
  PJRT_Error *(*register_type)(struct PJRT_FFI_Type_Register_Args *);
  PJRT_Error *(*register_handler)(struct PJRT_FFI_Register_Handler_Args *);
} OwnFunctions;
#define OWN_FUNCTIONS(n)                                                                           \
  {client_create_##n, plugin_attributes_##n, topology_create_##n, topology_read_##n,               \
   register_type_##n, register_handler_##n},
static const OwnFunctions own_functions[MOST_TABLES] = {EACH_TABLE(OWN_FUNCTIONS)};

static PJRT_Error *plugin_initialize(struct PJRT_Plugin_Initialize_Args *args) {
  (void)args;
  return NULL;
}

/* Returns the size of the table at a minor version, without later functions. */
static size_t size_at(int minor) {
  size_t size = offsetof(PJRT_Api, Error_Destroy);
#define LAST_SLOT(name, since, last)                                                                    \
  if (since <= minor)                                                                              \
    size = offsetof(PJRT_Api, name) + sizeof filled.name;
  PJRT_SLOTS(LAST_SLOT)
  return size;
}

/* Replaces the functions whose names are in a set by refusing ones. */
static int hide(PJRT_Api *api, PyObject *hidden) {
#define HIDE(name, since, last)                                                                        \
  do {                                                                                             \
    PyObject *key = PyUnicode_FromString("PJRT_" #name);                                           \
    int found = key == NULL ? -1 : PySet_Contains(hidden, key);                                    \
    Py_XDECREF(key);                                                                               \
    if (found < 0)                                                                                 \
      return -1;                                                                                   \
    if (found)                                                                                     \
      api->name = no_##name;                                                                       \
  } while (0);
  PJRT_SLOTS(HIDE)
  return 0;
}

/* Fills the table of functions once: hosts may be calling through it. */
static void fill(void) {
  if (filled.Plugin_Initialize != NULL)
    return;
  filled = (PJRT_Api){PJRT_SLOTS(REFUSED)};
  filled.Plugin_Initialize = plugin_initialize;
  fill_errors(&filled);
  fill_events(&filled);
  fill_client(&filled);
  fill_devices(&filled);
  fill_topology(&filled);
  fill_buffers(&filled);
  fill_buffer_facts(&filled);
  fill_puts(&filled);
  fill_reads(&filled);
  fill_copies(&filled);
  fill_promises(&filled);
  fill_transfers(&filled);
  fill_executables(&filled);
  fill_compiling(&filled);
  fill_analyses(&filled);
  fill_execution(&filled);
  fill_contexts(&filled);
}

static void fill_extensions(Table *table, const OwnFunctions *own) {
  fill_shardings(&table->shardings);
  fill_layouts(&table->layouts);
  fill_memory_descriptions(&table->memory_descriptions);
  fill_abi_version(&table->abi_version);
  fill_ffi(&table->ffi);
  table->ffi.FFI_Type_Register = own->register_type;
  table->ffi.FFI_Register_Handler = own->register_handler;
  table->shardings.base.next = &table->layouts.base;
  table->layouts.base.next = &table->memory_descriptions.base;
  table->memory_descriptions.base.next = &table->abi_version.base;
  table->abi_version.base.next = &table->ffi.base;
  table->api.extension_start = &table->shardings.base;
}

/* Whether each table has its own function in a slot: the shared `filled` refuses those. */
static int is_own(const PJRT_Api *api, const void *slot) {
  return slot == &api->Plugin_Attributes || slot == &api->Client_Create ||
         slot == &api->TopologyDescription_Create || slot == &api->TopologyDescription_Deserialize;
}

PyObject *refused_functions(void) {
  PyObject *names = PyList_New(0);
  fill();
#define LIST_REFUSED(name, since, last)                                                            \
  if (names != NULL && filled.name == no_##name && !is_own(&filled, &filled.name)) {               \
    PyObject *text = PyUnicode_FromString("PJRT_" #name);                                          \
    if (text == NULL || PyList_Append(names, text) != 0)                                           \
      Py_CLEAR(names);                                                                             \
    Py_XDECREF(text);                                                                              \
  }
  PJRT_SLOTS(LIST_REFUSED)
  return names;
}

Table *make_table(PyObject *bridge, PyObject *attributes, int minor, PyObject *hidden) {
  if (num_tables == MOST_TABLES) {
    PyErr_Format(PyExc_RuntimeError, "a process can export %d plugins, and has done so",
                 MOST_TABLES);
    return NULL;
  }
  Table *table = &tables[num_tables];
  const OwnFunctions *own = &own_functions[num_tables];
  PJRT_Api *api = &table->api;
  if (arena_named_values(&table->arena, attributes, &table->attributes, &table->num_attributes))
    return NULL;
  PyObject *makes_topologies = PyObject_GetAttrString(bridge, "makes_topologies");
  if (makes_topologies == NULL)
    return NULL;
  table->makes_topologies = makes_topologies == Py_True;
  Py_DECREF(makes_topologies);
  fill();
  *api = (PJRT_Api){PJRT_SLOTS(GUARDED)};
  fill_errors(api); /* unguarded: hosts would query an error about an error, without end */
  api->Plugin_Attributes = own->plugin_attributes;
  api->Client_Create = own->client_create;
  api->TopologyDescription_Create = own->topology_create;
  api->TopologyDescription_Deserialize = own->topology_read;
  if (hide(api, hidden))
    return NULL;
  api->struct_size = size_at(minor);
  api->pjrt_api_version.struct_size = sizeof api->pjrt_api_version;
  api->pjrt_api_version.major_version = PJRT_API_MAJOR;
  api->pjrt_api_version.minor_version = minor;
  fill_extensions(table, own);
  table->bridge = Py_NewRef(bridge); /* never released: the host keeps the table */
  num_tables++;
  return table;
}
