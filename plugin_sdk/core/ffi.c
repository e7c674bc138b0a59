/* The extension FFI: handlers of custom calls (XLA_FFI_Handler), and the data they are given. */
#include "core.h"

#include <pthread.h>
#include <string.h>

/* --- types of data: names and ids, which are the process's as handlers are ------------------------- */

typedef struct Type {
  struct Type *next;
  int64_t id;
  size_t size;
  char name[];
} Type;

static pthread_mutex_t types_lock = PTHREAD_MUTEX_INITIALIZER;
static Type *types;
static int64_t last_id;

/* Finds the type of a name, or else of an id. */
static Type *find_type(const char *name, size_t size, int64_t id) {
  for (Type *each = types; each != NULL; each = each->next)
    if (each->size == size && memcmp(each->name, name, size) == 0)
      return each;
  for (Type *each = types; each != NULL && id != 0; each = each->next)
    if (each->id == id)
      return each;
  return NULL;
}

/* Adds a type; the id 0 asks for one that no other has. */
static Type *add_type(const char *name, size_t size, int64_t id) {
  Type *added = malloc(sizeof *added + size);
  if (added == NULL)
    return NULL;
  do
    added->id = id ? id : ++last_id;
  while (id == 0 && find_type(name, size, added->id) != NULL);
  added->next = types;
  added->size = size;
  memcpy(added->name, name, size);
  return types = added;
}

/* A type has one id; the host that names none (0) is told it. */
static PJRT_Error *type_register(struct PJRT_FFI_Type_Register_Args *args) {
  const char *name = args->type_name;
  size_t size = args->type_name_size;
  if (name == NULL || size == 0 || size > PY_SSIZE_T_MAX / 2)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "the FFI type has no name");
  PJRT_Error *error = NULL;
  pthread_mutex_lock(&types_lock);
  Type *type = find_type(name, size, args->type_id);
  if (type == NULL && (type = add_type(name, size, args->type_id)) == NULL)
    error = no_host_memory();
  else if (type->size != size || memcmp(type->name, name, size) ||
           (args->type_id != 0 && args->type_id != type->id))
    error = format_error(PJRT_Error_Code_ALREADY_EXISTS,
                         "the FFI type '%.*s' cannot have the id %lld: '%.*s' has the id %lld",
                         (int)size, name, (long long)args->type_id, (int)type->size, type->name,
                         (long long)type->id);
  else
    args->type_id = type->id;
  pthread_mutex_unlock(&types_lock);
  return error;
}

static PJRT_Error *user_data_add(struct PJRT_FFI_UserData_Add_Args *args) {
  if (args->context == NULL)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_FFI_UserData_Add: the context of the launch is NULL");
  return context_add(args->context, args->user_data.type_id, args->user_data.data);
}

/* --- handlers, which a table has for all clients --------------------------------------------------- */

static const char function[] = "FFI_Register_Handler";

PJRT_Error *register_handler(Table *table, struct PJRT_FFI_Register_Handler_Args *args) {
  Entry entry;
  size_t needed = SIZE_TO(struct PJRT_FFI_Register_Handler_Args, platform_name_size);
  if (table->refuses_handlers) /* before all else: so hosts can ask without registering one */
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "the backend of this plugin takes no handlers for custom calls");
  if (args->struct_size < needed)
    return refuse_size(function, args->struct_size, needed);
  if (args->target_name == NULL || args->platform_name == NULL || args->handler == NULL)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_FFI_Register_Handler: the target, the platform or the handler is NULL");
  PJRT_Error *error = enter_python(&entry, function);
  if (error != NULL)
    return error;
  PyObject *address = PyLong_FromVoidPtr(args->handler), *done = NULL;
  if (address != NULL)
    done = PyObject_CallMethod(table->bridge, "register_handler", "s#Os#", args->target_name,
                               (Py_ssize_t)args->target_name_size, address, args->platform_name,
                               (Py_ssize_t)args->platform_name_size);
  error = done == NULL ? take_exception(function) : NULL;
  Py_XDECREF(done);
  Py_XDECREF(address);
  leave_python(&entry);
  return error;
}

/* --- the table ---------------------------------------------------------------------------------- */

DEFINE_EXTENSION(ffi, FFI, PJRT_FFI_SLOTS)

/* FFI_Register_Handler is each table's own: table.c fills it. */
static void set_functions(PJRT_FFI_Extension *table) {
  table->FFI_Type_Register = type_register;
  table->FFI_UserData_Add = user_data_add;
}
