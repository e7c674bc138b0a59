/* A shared library that exports GetPjrtApi for a plugin written in Python.
 *
 * It does not link libpython: it finds the interpreter of the process that loads it. `plugrt
 * export` copies it and writes the plugin's name into the record below. If the process has no
 * Python, or one that cannot import plugrt_sdk, hosts get a table whose functions return an error
 * with a message: most hosts crash on NULL. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../pjrt.h"
#include "../slots.h"

/* The marker, and after it the name that `plugrt export` writes; see plugrt_sdk/export/library.py. */
__attribute__((used)) static volatile struct {
  char marker[32];
  char name[96];
} record = {"plugrt-exported-plugin-name-is:", ""};

static char reason[2048];
static char the_error; /* its address is every PJRT_Error* that this table returns */

#define REFUSE(name, since, last)                                                                   \
  static PJRT_Error *no_##name(struct PJRT_##name##_Args *args) {                                  \
    (void)args;                                                                                    \
    return (PJRT_Error *)&the_error;                                                               \
  }
#define REFUSED(name, since, last) .name = no_##name,
PJRT_SLOTS(REFUSE)

static void error_destroy(struct PJRT_Error_Destroy_Args *args) { (void)args; }

static void error_message(struct PJRT_Error_Message_Args *args) {
  args->message = reason;
  args->message_size = strlen(reason);
}

static PJRT_Error *error_get_code(struct PJRT_Error_GetCode_Args *args) {
  args->code = PJRT_Error_Code_FAILED_PRECONDITION;
  return NULL;
}

static PJRT_Error *error_for_each_payload(struct PJRT_Error_ForEachPayload_Args *args) {
  (void)args;
  return NULL;
}

/* Workaround for xla-plugin-attributes: this must not fail. */
static PJRT_Error *plugin_attributes(struct PJRT_Plugin_Attributes_Args *args) {
  args->attributes = NULL;
  args->num_attributes = 0;
  return NULL;
}

static PJRT_Api refusing = {.struct_size = sizeof(PJRT_Api),
                            .pjrt_api_version = {sizeof(PJRT_Api_Version), NULL, PJRT_API_MAJOR,
                                                 PJRT_API_MINOR},
                            .Error_Destroy = error_destroy,
                            .Error_Message = error_message,
                            PJRT_SLOTS(REFUSED)};

static const PJRT_Api *refuse(const char *format, ...) {
  va_list arguments;
  int begin = snprintf(reason, sizeof reason, "libpjrt of the plugin '%s' (plugrt export): ",
                       (const char *)record.name);
  va_start(arguments, format);
  vsnprintf(reason + begin, sizeof reason - (size_t)begin, format, arguments);
  va_end(arguments);
  fprintf(stderr, "%s\n", reason);
  refusing.Error_GetCode = error_get_code;
  refusing.Error_ForEachPayload = error_for_each_payload;
  refusing.Plugin_Attributes = plugin_attributes;
  return &refusing;
}

typedef struct PyObject PyObject;

static struct {
  int (*Py_IsInitialized)(void);
  const char *(*Py_GetVersion)(void);
  int (*PyGILState_Ensure)(void);
  void (*PyGILState_Release)(int);
  void (*PyErr_Fetch)(PyObject **, PyObject **, PyObject **);
  void (*PyErr_Restore)(PyObject *, PyObject *, PyObject *);
  void (*PyErr_NormalizeException)(PyObject **, PyObject **, PyObject **);
  PyObject *(*PyImport_ImportModule)(const char *);
  PyObject *(*PyObject_CallMethod)(PyObject *, const char *, const char *, ...);
  void *(*PyLong_AsVoidPtr)(PyObject *);
  PyObject *(*PyObject_Repr)(PyObject *);
  PyObject *(*PyUnicode_AsUTF8String)(PyObject *);
  char *(*PyBytes_AsString)(PyObject *);
  void (*Py_DecRef)(PyObject *);
} py;

/* Python's symbols may be local: a plugin of the process may have loaded its library. */
static int find_python(void **library) {
  static const char *const names[] = {"libpython3.so",         "libpython3.11.so.1.0",
                                      "libpython3.12.so.1.0",  "libpython3.13.so.1.0",
                                      "libpython3.14.so.1.0",  "libpython3.15.so.1.0"};
  *library = RTLD_DEFAULT;
  if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL)
    return 1;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if ((*library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD)) != NULL)
      return 1;
  return 0;
}

/* Returns the name of a function that is missing, NULL if all are there. */
static const char *bind_python(void *library) {
#define BIND(name)                                                                                 \
  if ((*(void **)&py.name = dlsym(library, #name)) == NULL)                                        \
    return #name;
  BIND(Py_IsInitialized)
  BIND(Py_GetVersion)
  BIND(PyGILState_Ensure)
  BIND(PyGILState_Release)
  BIND(PyErr_Fetch)
  BIND(PyErr_Restore)
  BIND(PyErr_NormalizeException)
  BIND(PyImport_ImportModule)
  BIND(PyObject_CallMethod)
  BIND(PyLong_AsVoidPtr)
  BIND(PyObject_Repr)
  BIND(PyUnicode_AsUTF8String)
  BIND(PyBytes_AsString)
  BIND(Py_DecRef)
  return NULL;
}

/* "3.11.7" of "3.11.7 (main, ...) [GCC ...]"; the caller prints that many bytes. */
static int version_size(void) { return (int)strcspn(py.Py_GetVersion(), " "); }

static const PJRT_Api *refuse_exception(void) {
  PyObject *type, *value, *traceback, *shown = NULL, *encoded = NULL;
  py.PyErr_Fetch(&type, &value, &traceback);
  py.PyErr_NormalizeException(&type, &value, &traceback);
  if (value != NULL && (shown = py.PyObject_Repr(value)) != NULL)
    encoded = py.PyUnicode_AsUTF8String(shown);
  const PJRT_Api *table =
      refuse("Python %.*s in this process cannot provide it: %s. Install plugrt-sdk and the "
             "plugin's package for this Python (pip install)",
             version_size(), py.Py_GetVersion(), encoded == NULL ? "an error" : py.PyBytes_AsString(encoded));
  py.PyErr_Restore(NULL, NULL, NULL);
  return table;
}

static const PJRT_Api *ask_python(void) {
  PyObject *module, *address = NULL, *type, *value, *traceback;
  const PJRT_Api *table;
  int state = py.PyGILState_Ensure();
  py.PyErr_Fetch(&type, &value, &traceback);
  module = py.PyImport_ImportModule("plugrt_sdk.export.library");
  if (module != NULL)
    address = py.PyObject_CallMethod(module, "table_address", "s", (const char *)record.name);
  table = address == NULL ? refuse_exception() : py.PyLong_AsVoidPtr(address);
  if (address != NULL)
    py.Py_DecRef(address);
  if (module != NULL)
    py.Py_DecRef(module);
  py.PyErr_Restore(type, value, traceback);
  py.PyGILState_Release(state);
  return table;
}

static const PJRT_Api *find_table(void) {
  void *library;
  if (!find_python(&library))
    return refuse("it is written in Python, and this process has no Python interpreter. Load it "
                  "in a Python process, such as JAX's");
  const char *missing = bind_python(library);
  if (missing != NULL)
    return refuse("this process has a Python without %s; CPython 3.11 or newer is needed", missing);
  if (!py.Py_IsInitialized())
    return refuse("the Python in this process was not started (Py_Initialize)");
  int major = 0, minor = 0;
  if (sscanf(py.Py_GetVersion(), "%d.%d", &major, &minor) != 2 || major != 3 || minor < 11)
    return refuse("CPython 3.11 or newer is needed; this process runs %.*s", version_size(),
                  py.Py_GetVersion());
  return ask_python();
}

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void) {
  static const PJRT_Api *_Atomic table;
  /* Not under a lock: the import acquires the GIL, which another caller may hold. The SDK makes one
   * table for each name, however many callers ask for it.
   */
  if (table == NULL)
    table = find_table();
  return table;
}
