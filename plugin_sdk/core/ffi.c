/* The extension FFI: handlers of custom calls (XLA_FFI_Handler), and their user data. */
#include "core.h"

/* A type has one id; a host that passes 0 receives it. */
PJRT_Error *register_type(Table *table, struct PJRT_FFI_Type_Register_Args *args) {
  static const char function[] = "FFI_Type_Register";
  Entry entry;
  if (args->type_name == NULL || args->type_name_size == 0 ||
      args->type_name_size > PY_SSIZE_T_MAX / 2)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "the FFI type has no name");
  PJRT_FFI_Type_Info *info = NULL;
  if (args->struct_size >= SIZE_TO(struct PJRT_FFI_Type_Register_Args, type_info))
    info = args->type_info;
  PJRT_Error *error = enter_python(&entry, function);
  if (error != NULL)
    return error;
  PyObject *deleter = PyLong_FromVoidPtr(info ? (void *)info->deleter : NULL), *id = NULL;
  if (deleter != NULL)
    id = PyObject_CallMethod(table->bridge, "register_type", "s#LO", args->type_name,
                             (Py_ssize_t)args->type_name_size, (long long)args->type_id, deleter);
  long long found = id == NULL ? -1 : PyLong_AsLongLong(id);
  if (PyErr_Occurred())
    error = take_exception(function);
  else
    args->type_id = found;
  Py_XDECREF(id);
  Py_XDECREF(deleter);
  leave_python(&entry);
  return error;
}

static PJRT_Error *user_data_add(struct PJRT_FFI_UserData_Add_Args *args) {
  if (args->context == NULL)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_FFI_UserData_Add: the context of the launch is NULL");
  return context_add(args->context, args->user_data.type_id, args->user_data.data);
}

static const char function[] = "FFI_Register_Handler";

PJRT_Error *register_handler(Table *table, struct PJRT_FFI_Register_Handler_Args *args) {
  Entry entry;
  size_t needed = SIZE_TO(struct PJRT_FFI_Register_Handler_Args, platform_name_size);
  if (table->refuses_handlers) /* first, so that hosts can ask without registering one */
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

DEFINE_EXTENSION(ffi, FFI, PJRT_FFI_SLOTS)

/* Each table has its own other two functions, which table.c sets. */
static void set_functions(PJRT_FFI_Extension *table) {
  table->FFI_UserData_Add = user_data_add;
}
