/* PJRT_Api: the table of one exported plugin. Tables live as long as the process. */
#include "core.h"

#include <string.h>

#define REFUSE(name, since)                                                                        \
  static PJRT_Error *no_##name(struct PJRT_##name##_Args *args) {                                  \
    (void)args;                                                                                    \
    return unimplemented(#name);                                                                   \
  }
#define REFUSED(name, since) .name = no_##name,
PJRT_SLOTS(REFUSE)

static const PJRT_Api refusing = {PJRT_SLOTS(REFUSED)};

static Table tables[MOST_TABLES];
static int num_tables;

/* --- functions that get no handle: a host says by the pointer that it calls whose they are ----------- */

static PJRT_Error *plugin_attributes(const Table *table, struct PJRT_Plugin_Attributes_Args *args) {
  args->attributes = table->attributes;
  args->num_attributes = table->num_attributes;
  return NULL;
}

#define OF_TABLE(n)                                                                                \
  static PJRT_Error *client_create_##n(struct PJRT_Client_Create_Args *args) {                     \
    return client_create(&tables[n], args);                                                        \
  }                                                                                                \
  static PJRT_Error *plugin_attributes_##n(struct PJRT_Plugin_Attributes_Args *args) {             \
    return plugin_attributes(&tables[n], args);                                                    \
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

typedef PJRT_Error *(*CreateClient)(struct PJRT_Client_Create_Args *);
typedef PJRT_Error *(*GetAttributes)(struct PJRT_Plugin_Attributes_Args *);
#define CREATE(n) client_create_##n,
#define ATTRIBUTES(n) plugin_attributes_##n,
static const CreateClient create_client[MOST_TABLES] = {EACH_TABLE(CREATE)};
static const GetAttributes get_attributes[MOST_TABLES] = {EACH_TABLE(ATTRIBUTES)};

static PJRT_Error *plugin_initialize(struct PJRT_Plugin_Initialize_Args *args) {
  (void)args;
  return NULL;
}

/* --- making one --------------------------------------------------------------------------------------- */

/* The size of the table at a minor version: what came later is not in it. */
static size_t size_at(int minor) {
  size_t size = offsetof(PJRT_Api, Error_Destroy);
#define LAST_SLOT(name, since)                                                                     \
  if (since <= minor)                                                                              \
    size = offsetof(PJRT_Api, name) + sizeof refusing.name;
  PJRT_SLOTS(LAST_SLOT)
  return size;
}

/* Puts the refusing function back in the place of those whose names are in a set. */
static int hide(PJRT_Api *api, PyObject *hidden) {
#define HIDE(name, since)                                                                          \
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

Table *make_table(PyObject *bridge, PyObject *attributes, int minor, PyObject *hidden) {
  if (num_tables == MOST_TABLES) {
    PyErr_Format(PyExc_RuntimeError, "a process can export %d plugins, and has done so",
                 MOST_TABLES);
    return NULL;
  }
  Table *table = &tables[num_tables];
  PJRT_Api *api = &table->api;
  if (arena_named_values(&table->arena, attributes, &table->attributes, &table->num_attributes))
    return NULL;
  *api = refusing;
  fill_errors(api);
  fill_events(api);
  fill_client(api);
  fill_devices(api);
  fill_buffers(api);
  fill_executables(api);
  fill_execution(api);
  api->Plugin_Initialize = plugin_initialize;
  api->Plugin_Attributes = get_attributes[num_tables];
  api->Client_Create = create_client[num_tables];
  if (hide(api, hidden))
    return NULL;
  api->struct_size = size_at(minor);
  api->pjrt_api_version.struct_size = sizeof api->pjrt_api_version;
  api->pjrt_api_version.major_version = PJRT_API_MAJOR;
  api->pjrt_api_version.minor_version = minor;
  fill_extensions(table);
  table->bridge = Py_NewRef(bridge); /* for ever: the host keeps the table */
  num_tables++;
  return table;
}
