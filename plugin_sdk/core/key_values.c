/* The key-value store that hosts with several processes pass when they create a client. */
#include "core.h"

PyObject *error_from_code;

typedef struct {
  PyObject ob_base;
  PJRT_KeyValueGetCallback get;
  PJRT_KeyValueTryGetCallback try_get;
  PJRT_KeyValuePutCallback put;
  void *get_argument, *try_get_argument, *put_argument;
} KeyValueStore;

static PyTypeObject *store_type;

PyObject *make_key_value_store(const struct PJRT_Client_Create_Args *args) {
  if (args->kv_get_callback == NULL || args->kv_put_callback == NULL)
    Py_RETURN_NONE;
  KeyValueStore *made = PyObject_New(KeyValueStore, store_type);
  if (made == NULL)
    return NULL;
  int has_try = HAS_FIELD(args, kv_try_get_user_arg);
  made->get = args->kv_get_callback;
  made->get_argument = args->kv_get_user_arg;
  made->put = args->kv_put_callback;
  made->put_argument = args->kv_put_user_arg;
  made->try_get = has_try ? args->kv_try_get_callback : NULL;
  made->try_get_argument = has_try ? args->kv_try_get_user_arg : NULL;
  return (PyObject *)made;
}

/* The host converts our errors to its own with these. */
static PJRT_Error *make_callback_error(PJRT_Error_Code code, const char *message, size_t size) {
  return make_error(code, message, size);
}
static PJRT_CallbackError callback_error = make_callback_error;

/* Raises an error of the host, and frees it. */
static PyObject *raise_error(PJRT_Error *error) {
  struct PJRT_Error_Message_Args text = {sizeof text, NULL, error, NULL, 0};
  struct PJRT_Error_GetCode_Args code = {sizeof code, NULL, error, 0};
  struct PJRT_Error_Destroy_Args destroy = {sizeof destroy, NULL, error};
  error_message(&text);
  error_get_code(&code);
  PyObject *exception = PyObject_CallFunction(error_from_code, "is#", code.code, text.message,
                                              (Py_ssize_t)text.message_size);
  error_destroy(&destroy);
  if (exception != NULL)
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  Py_XDECREF(exception);
  return NULL;
}

static PyObject *take_value(char *value, size_t size, void (*free_value)(char *)) {
  PyObject *bytes = PyBytes_FromStringAndSize(value, (Py_ssize_t)size);
  if (free_value != NULL)
    free_value(value);
  return bytes;
}

static PyObject *store_get(PyObject *self, PyObject *arguments) {
  KeyValueStore *store = (KeyValueStore *)self;
  PJRT_KeyValueGetCallback_Args args = {.struct_size = sizeof args,
                                        .callback_error = &callback_error,
                                        .user_arg = store->get_argument};
  Py_ssize_t size;
  PJRT_Error *error;
  if (!PyArg_ParseTuple(arguments, "s#i", &args.key, &size, &args.timeout_in_ms))
    return NULL;
  args.key_size = (size_t)size;
  Py_BEGIN_ALLOW_THREADS /* the callback waits for another process */
  error = store->get(&args);
  Py_END_ALLOW_THREADS
  return error ? raise_error(error)
               : take_value(args.value, args.value_size, args.value_deleter_callback);
}

static PyObject *store_try_get(PyObject *self, PyObject *arguments) {
  KeyValueStore *store = (KeyValueStore *)self;
  PJRT_KeyValueTryGetCallback_Args args = {.struct_size = sizeof args,
                                           .callback_error = &callback_error,
                                           .user_arg = store->try_get_argument};
  Py_ssize_t size;
  PJRT_Error *error;
  if (!PyArg_ParseTuple(arguments, "s#", &args.key, &size))
    return NULL;
  args.key_size = (size_t)size;
  if (store->try_get == NULL) {
    PyErr_SetString(PyExc_NotImplementedError, "the host's key-value store has no try_get");
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS
  error = store->try_get(&args);
  Py_END_ALLOW_THREADS
  if (error == NULL)
    return take_value(args.value, args.value_size, args.value_deleter_callback);
  struct PJRT_Error_GetCode_Args code = {sizeof code, NULL, error, 0};
  error_get_code(&code);
  if (code.code != PJRT_Error_Code_NOT_FOUND)
    return raise_error(error);
  struct PJRT_Error_Destroy_Args destroy = {sizeof destroy, NULL, error};
  error_destroy(&destroy);
  Py_RETURN_NONE;
}

static PyObject *store_put(PyObject *self, PyObject *arguments) {
  KeyValueStore *store = (KeyValueStore *)self;
  PJRT_KeyValuePutCallback_Args args = {.struct_size = sizeof args,
                                        .callback_error = &callback_error,
                                        .user_arg = store->put_argument};
  Py_ssize_t size, value_size;
  PJRT_Error *error;
  if (!PyArg_ParseTuple(arguments, "s#y#", &args.key, &size, &args.value, &value_size))
    return NULL;
  args.key_size = (size_t)size;
  args.value_size = (size_t)value_size;
  Py_BEGIN_ALLOW_THREADS
  error = store->put(&args);
  Py_END_ALLOW_THREADS
  if (error != NULL)
    return raise_error(error);
  Py_RETURN_NONE;
}

static void store_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyMethodDef store_methods[] = {
    {"get", store_get, METH_VARARGS, "get(key, timeout_ms): waits for the value, and returns it."},
    {"try_get", store_try_get, METH_VARARGS, "try_get(key): the value, or None."},
    {"put", store_put, METH_VARARGS, "put(key, value): sets the value."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot store_slots[] = {
    {Py_tp_methods, store_methods},
    {Py_tp_dealloc, store_dealloc},
    {Py_tp_doc, "The key-value store of a host, for the clients of several processes."},
    {0, NULL},
};

static PyType_Spec store_spec = {
    .name = "plugrt_sdk.export._core.KeyValueStore",
    .basicsize = sizeof(KeyValueStore),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = store_slots,
};

int add_key_value_type(PyObject *module) {
  store_type = (PyTypeObject *)PyType_FromSpec(&store_spec);
  return store_type == NULL ? -1 : PyModule_AddType(module, store_type);
}
