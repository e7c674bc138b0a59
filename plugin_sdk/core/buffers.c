/* PJRT_Buffer: its handle, and the arrival and the lifetime of its contents. */
#include "core.h"

unsigned char element_sizes[64];

PJRT_Error *measure(const Shape *shape, const char *function, size_t *size) {
  if (shape->type <= 0 || shape->type >= 64 || element_sizes[shape->type] == 0)
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "PJRT_%s: arrays of the element type %d are not implemented", function,
                        shape->type);
  /* The product of the dimensions is bounded even if one of them is 0, as in NumPy. */
  size_t bytes = element_sizes[shape->type];
  int is_empty = 0;
  for (size_t i = 0; i < shape->num_dims; i++) {
    if (shape->dims[i] < 0 ||
        (shape->dims[i] > 0 && __builtin_mul_overflow(bytes, (size_t)shape->dims[i], &bytes)) ||
        bytes > PY_SSIZE_T_MAX)
      return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                          "PJRT_%s: no array has %lld as its dimension %zu", function,
                          (long long)shape->dims[i], i);
    is_empty |= shape->dims[i] == 0;
  }
  *size = is_empty ? 0 : bytes;
  return NULL;
}

/* Fails a future with the exception that is set, and clears it. */
static void fail_with_exception(PyObject *completion) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != NULL && traceback != NULL)
    PyException_SetTraceback(value, traceback);
  PyObject *told = PyObject_CallFunctionObjArgs(completion, value, NULL);
  Py_XDECREF(told);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyErr_Clear();
}

/* Returns a future of the contents of an interface Buffer; NULL: no memory. */
static Future *watch(PJRT_Client *client, PyObject *object) {
  if (!client->is_asynchronous)
    return future_ready();
  Future *future = future_new();
  PyObject *completion = future == NULL ? NULL : make_completion(future);
  if (completion == NULL) {
    future_release(future);
    return NULL;
  }
  PyObject *event = PyObject_CallMethod(object, "ready_event", NULL), *answer = NULL;
  if (event != NULL)
    answer = PyObject_CallMethod(event, "on_ready", "O", completion);
  if (answer == NULL)
    fail_with_exception(completion);
  Py_XDECREF(answer);
  Py_XDECREF(event);
  Py_DECREF(completion);
  return future;
}

/* Takes the reference to `ready`, also on failure. */
static PJRT_Buffer *allocate(PJRT_Memory *memory, PJRT_Device *device, const Shape *shape,
                             Future *ready) {
  size_t num_dims = shape->num_dims;
  PJRT_Buffer *buffer = calloc(1, sizeof *buffer + 2 * num_dims * sizeof(int64_t));
  PJRT_Error *error = NULL;
  if (buffer == NULL || ready == NULL)
    error = no_host_memory();
  else if (shape->type != PJRT_Buffer_Type_TOKEN) /* tokens have no bytes */
    error = measure(shape, "Buffer", &buffer->size);
  if (error != NULL) {
    struct PJRT_Error_Destroy_Args destroy = {sizeof destroy, NULL, error};
    error_destroy(&destroy);
    future_release(ready);
    free(buffer);
    return NULL;
  }
  buffer->references = buffer->holds = 1;
  buffer->client = client_share(device->client);
  buffer->device = device;
  buffer->memory = memory;
  buffer->ready = ready;
  buffer->type = shape->type;
  buffer->num_dims = num_dims;
  for (size_t i = 0; i < num_dims; i++) {
    buffer->dims[i] = shape->dims[i];
    buffer->dims[num_dims + i] =
        shape->minor_to_major ? shape->minor_to_major[i] : (int64_t)(num_dims - 1 - i);
  }
  atomic_fetch_add(&live_handles[LIVE_BUFFERS], 1);
  return buffer;
}

PJRT_Buffer *make_buffer(PJRT_Memory *memory, PJRT_Device *device, PyObject *object,
                         const Shape *shape) {
  PJRT_Buffer *buffer = allocate(memory, device, shape, watch(device->client, object));
  if (buffer != NULL) {
    buffer->object = object;
    return buffer;
  }
  Py_DECREF(object);
  if (!PyErr_Occurred())
    PyErr_NoMemory();
  return NULL;
}

PJRT_Buffer *make_promise(PJRT_Memory *memory, PJRT_Device *device, const Shape *shape) {
  PJRT_Buffer *buffer = allocate(memory, device, shape, future_new());
  if (buffer != NULL)
    buffer->is_promised = 1;
  return buffer;
}

PJRT_Buffer *buffer_share(PJRT_Buffer *buffer) {
  atomic_fetch_add(&buffer->references, 1);
  return buffer;
}

void buffer_release(PJRT_Buffer *buffer) {
  if (atomic_fetch_sub(&buffer->references, 1) != 1)
    return;
  atomic_fetch_sub(&live_handles[LIVE_BUFFERS], 1);
  release_object(buffer->object);
  if (buffer->source != NULL) {
    buffer_drop_hold(buffer->source);
    buffer_release(buffer->source);
  }
  future_release(buffer->ready);
  client_release(buffer->client);
  free(buffer);
}

static PJRT_Error *buffer_destroy(struct PJRT_Buffer_Destroy_Args *args) {
  if (args->buffer != NULL)
    buffer_release(args->buffer);
  return NULL;
}

/* Calls the backend's delete. It logs an error: hosts treat one of PJRT_Buffer_Delete as fatal. */
static void delete_object(PyObject *object) {
  PyObject *answer = PyObject_CallMethod(object, "delete", NULL);
  if (answer == NULL)
    log_exception("Buffer_Delete");
  Py_XDECREF(answer);
}

/* Completes a promise when a future is; callbacks of the host run without the GIL. */
static void follow(PJRT_Buffer *buffer, Future *source) {
  Py_BEGIN_ALLOW_THREADS
  future_follow(buffer->ready, source);
  Py_END_ALLOW_THREADS
}

void fulfil_promise(PJRT_Buffer *buffer, PyObject *object) {
  Future *ready = watch(buffer->client, object);
  buffer->object = object;
  if (buffer->is_deleted)
    delete_object(object);
  if (ready == NULL)
    ready = future_ready();
  follow(buffer, ready);
  future_release(ready);
}

void share_contents(PJRT_Buffer *buffer, PJRT_Buffer *source) {
  buffer->object = Py_NewRef(source->object);
  if (!buffer->is_deleted && buffer_hold(source))
    buffer->source = buffer_share(source);
  follow(buffer, source->ready);
}

PJRT_Error *require_contents(PJRT_Buffer *buffer, const char *function) {
  if (buffer->is_deleted)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_%s: the buffer was deleted or donated", function);
  if (!buffer->is_promised)
    return NULL;
  if (!future_is_done(buffer->ready))
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "PJRT_%s: the contents of the buffer have not come yet; await its ready "
                        "event first",
                        function);
  return future_error(buffer->ready);
}

int buffer_hold(PJRT_Buffer *buffer) {
  long holds = buffer->holds;
  while (holds > 0)
    if (atomic_compare_exchange_weak(&buffer->holds, &holds, holds + 1))
      return 1;
  return 0;
}

static void delete_contents(PJRT_Buffer *buffer) {
  Entry entry;
  if (!try_python(&entry))
    return;
  PJRT_Buffer *source = buffer->source;
  buffer->source = NULL;
  if (source == NULL && buffer->object != NULL)
    delete_object(buffer->object);
  leave_python(&entry);
  if (source != NULL) {
    buffer_drop_hold(source);
    buffer_release(source);
  }
}

void buffer_drop_hold(PJRT_Buffer *buffer) {
  if (atomic_fetch_sub(&buffer->holds, 1) == 1)
    delete_contents(buffer);
}

void buffer_delete(PJRT_Buffer *buffer) {
  if (!atomic_exchange(&buffer->is_deleted, 1))
    buffer_drop_hold(buffer);
}

static PJRT_Error *delete(struct PJRT_Buffer_Delete_Args *args) {
  buffer_delete(args->buffer);
  return NULL;
}

static PJRT_Error *
add_reference(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args *args) {
  if (!buffer_hold(args->buffer))
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "the buffer was deleted or donated");
  atomic_fetch_add(&args->buffer->external_references, 1);
  return NULL;
}

static PJRT_Error *
drop_reference(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args *args) {
  atomic_long *count = &args->buffer->external_references;
  long held = *count;
  while (held > 0)
    if (atomic_compare_exchange_weak(count, &held, held - 1)) {
      buffer_drop_hold(args->buffer);
      return NULL;
    }
  return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "the buffer has no external reference to take back");
}

void fill_buffers(PJRT_Api *api) {
  api->Buffer_Destroy = buffer_destroy;
  api->Buffer_Delete = delete;
  api->Buffer_IncreaseExternalReferenceCount = add_reference;
  api->Buffer_DecreaseExternalReferenceCount = drop_reference;
}
