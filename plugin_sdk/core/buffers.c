/* PJRT_Buffer: what hosts ask of one is kept in C; contents are put, copied and read in Python. */
#include "core.h"

#include <string.h>

unsigned char element_sizes[64];

size_t array_size(PJRT_Buffer_Type type, const int64_t *dims, size_t num_dims) {
  size_t size = type >= 0 && type < 64 ? element_sizes[type] : 0;
  for (size_t i = 0; i < num_dims; i++)
    size *= (size_t)dims[i];
  return size;
}

/* Returns when the contents are there, asked of the interface's Buffer; NULL: no memory. */
static Future *watch(PJRT_Client *client, PyObject *object) {
  if (!client->is_asynchronous)
    return future_ready();
  Future *future = future_new();
  if (future == NULL)
    return NULL;
  PyObject *completion = make_completion(future), *event = NULL, *answer = NULL;
  if (completion != NULL)
    event = PyObject_CallMethod(object, "ready_event", NULL);
  if (event != NULL)
    answer = PyObject_CallMethod(event, "on_ready", "O", completion);
  if (answer == NULL && completion != NULL) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *told = PyObject_CallFunctionObjArgs(completion, value, NULL);
    Py_XDECREF(told);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyErr_Clear();
  }
  Py_XDECREF(answer);
  Py_XDECREF(event);
  Py_XDECREF(completion);
  return future;
}

PJRT_Buffer *make_buffer(PJRT_Memory *memory, PJRT_Device *device, PyObject *object,
                         PJRT_Buffer_Type type, const int64_t *dims, size_t num_dims) {
  PJRT_Buffer *buffer = calloc(1, sizeof *buffer + 2 * num_dims * sizeof(int64_t));
  Future *ready = buffer == NULL ? NULL : watch(device->client, object);
  if (ready == NULL) {
    free(buffer);
    Py_DECREF(object);
    PyErr_NoMemory();
    return NULL;
  }
  buffer->client = client_share(device->client);
  buffer->object = object;
  buffer->device = device;
  buffer->memory = memory;
  buffer->ready = ready;
  buffer->type = type;
  buffer->size = array_size(type, dims, num_dims);
  buffer->num_dims = num_dims;
  for (size_t i = 0; i < num_dims; i++) {
    buffer->dims[i] = dims[i];
    buffer->dims[num_dims + i] = (int64_t)(num_dims - 1 - i);
  }
  atomic_fetch_add(&live_handles[LIVE_BUFFERS], 1);
  return buffer;
}

static void free_buffer(PJRT_Buffer *buffer) {
  atomic_fetch_sub(&live_handles[LIVE_BUFFERS], 1);
  future_release(buffer->ready);
  client_release(buffer->client);
  free(buffer);
}

void destroy_buffer(PJRT_Buffer *buffer) {
  Py_XDECREF(buffer->object);
  free_buffer(buffer);
}

static PJRT_Error *buffer_destroy(struct PJRT_Buffer_Destroy_Args *args) {
  if (args->buffer == NULL)
    return NULL;
  release_object(args->buffer->object);
  free_buffer(args->buffer);
  return NULL;
}

/* --- putting ------------------------------------------------------------------------------------ */

static PyObject *make_tuple(const int64_t *values, size_t count) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; tuple != NULL && i < count; i++)
    PyTuple_SetItem(tuple, (Py_ssize_t)i, PyLong_FromLongLong(values[i]));
  return tuple;
}

PyObject *layout_object(const PJRT_Buffer_MemoryLayout *layout) {
  if (layout == NULL)
    Py_RETURN_NONE;
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides)
    return Py_BuildValue("(sN)", "strides", make_tuple(layout->strides.byte_strides,
                                                       layout->strides.num_byte_strides));
  return Py_BuildValue("(sNn)", "tiled",
                       make_tuple(layout->tiled.minor_to_major, layout->tiled.minor_to_major_size),
                       (Py_ssize_t)layout->tiled.num_tiles);
}

typedef struct {
  const char *start;
  Py_ssize_t size, offset; /* of the first element from the start */
} Extent;

/* Finds the memory that an array takes; its strides may be negative, and data is at element 0. */
static Extent find_extent(const struct PJRT_Client_BufferFromHostBuffer_Args *args) {
  Extent extent = {args->data, (Py_ssize_t)array_size(args->type, args->dims, args->num_dims), 0};
  if (extent.size == 0 || args->byte_strides == NULL || args->num_byte_strides == 0)
    return extent;
  Py_ssize_t before = 0, after = element_sizes[args->type];
  for (size_t i = 0; i < args->num_dims; i++) {
    int64_t reach = args->byte_strides[i] * (args->dims[i] - 1);
    if (reach < 0)
      before -= (Py_ssize_t)reach;
    else
      after += (Py_ssize_t)reach;
  }
  extent.start -= before;
  extent.size = before + after;
  extent.offset = before;
  return extent;
}

static PJRT_Error *check_put(const struct PJRT_Client_BufferFromHostBuffer_Args *args) {
  if (args->memory == NULL && args->device == NULL)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_Client_BufferFromHostBuffer names neither a device nor a memory");
  if (args->type <= 0 || args->type >= 64 || element_sizes[args->type] == 0)
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "arrays of the element type %d are not implemented", args->type);
  if (args->num_byte_strides != 0 && args->num_byte_strides != args->num_dims)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "%zu strides for %zu dimensions",
                        args->num_byte_strides, args->num_dims);
  for (size_t i = 0; i < args->num_dims; i++)
    if (args->dims[i] < 0)
      return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "dimension %zu is %lld", i,
                          (long long)args->dims[i]);
  return NULL;
}

static PyObject *call_put(struct PJRT_Client_BufferFromHostBuffer_Args *args, PJRT_Device *device,
                          Future *done) {
  Extent extent = find_extent(args);
  PyObject *host = make_host_memory(extent.start, extent.size, 0, done);
  if (host == NULL)
    return NULL;
  int has_strides = args->byte_strides != NULL && args->num_byte_strides > 0;
  PyObject *strides = has_strides ? make_tuple(args->byte_strides, args->num_byte_strides)
                                  : Py_NewRef(Py_None);
  PyObject *memory = args->memory == NULL ? Py_None : args->memory->object;
  return PyObject_CallMethod(args->client->table->bridge, "put", "ONniNNOOiN",
                             args->client->object, host, extent.offset, args->type,
                             make_tuple(args->dims, args->num_dims), strides, device->object,
                             memory, args->host_buffer_semantics,
                             layout_object(args->device_layout));
}

static PJRT_Error *put(struct PJRT_Client_BufferFromHostBuffer_Args *args, PJRT_Device *device,
                       PJRT_Memory *memory, Future *done) {
  PyObject *object = call_put(args, device, done == future_ready() ? NULL : future_share(done));
  if (object == NULL)
    return take_exception("Client_BufferFromHostBuffer");
  args->buffer = make_buffer(memory, device, object, args->type, args->dims, args->num_dims);
  if (args->buffer == NULL)
    return take_exception("Client_BufferFromHostBuffer");
  args->done_with_host_buffer = make_event(future_share(done));
  if (args->done_with_host_buffer != NULL)
    return NULL;
  destroy_buffer(args->buffer);
  return format_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "no host memory for an event");
}

static PJRT_Error *buffer_from_host(struct PJRT_Client_BufferFromHostBuffer_Args *args) {
  PJRT_Error *error = check_put(args);
  if (error != NULL)
    return error;
  PJRT_Memory *memory = args->memory != NULL ? args->memory : args->device->default_memory;
  PJRT_Device *device = args->device != NULL ? args->device : memory->devices[0];
  int in_call =
      args->host_buffer_semantics == PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  Future *done = in_call ? future_ready() : future_new();
  if (done == NULL)
    return format_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "no host memory for an event");
  Entry entry;
  error = enter_python(&entry, "Client_BufferFromHostBuffer");
  if (error == NULL) {
    error = put(args, device, memory, done);
    leave_python(&entry);
  }
  future_release(done);
  return error;
}

/* --- reading -------------------------------------------------------------------------------------- */

typedef struct {
  PyObject *bridge, *object, *layout; /* references of its own to the last two */
  void *target;
  size_t size;
  Future *done;
} Read;

/* Frees the read; the GIL is held. */
static PJRT_Error *run_read(Read *read, const char *function) {
  PyObject *host = make_host_memory(read->target, (Py_ssize_t)read->size, 1, NULL), *answer = NULL;
  if (host != NULL)
    answer = PyObject_CallMethod(read->bridge, "read", "ONO", read->object, host, read->layout);
  PJRT_Error *error = answer == NULL ? take_exception(function) : NULL;
  Py_XDECREF(answer);
  Py_DECREF(read->object);
  Py_DECREF(read->layout);
  return error;
}

/* The contents are there, or failed: on any thread, without the GIL. */
static void read_when_ready(Future *future, void *argument) {
  Read *read = argument;
  Entry entry;
  PJRT_Error *error = NULL;
  if (future_is_done(future) && (error = future_error(future)) != NULL) {
    release_object(read->object);
    release_object(read->layout);
  } else if ((error = enter_python(&entry, "Buffer_ToHostBuffer")) == NULL) {
    error = run_read(read, "Buffer_ToHostBuffer");
    leave_python(&entry);
  }
  complete_with(read->done, error);
  future_release(read->done);
  free(read);
}

static PJRT_Error *start_read(PJRT_Buffer *buffer, PyObject *layout, void *target, size_t size,
                              PJRT_Event **event) {
  Read *read = malloc(sizeof *read), now;
  Future *done = future_is_done(buffer->ready) ? future_ready() : future_new();
  if (layout == NULL || read == NULL || done == NULL || buffer->object == NULL) {
    free(read);
    future_release(done);
    Py_XDECREF(layout);
    if (!PyErr_Occurred())
      PyErr_NoMemory();
    return take_exception("Buffer_ToHostBuffer");
  }
  *read = (Read){buffer->client->table->bridge, Py_NewRef(buffer->object), layout, target, size,
                 done};
  if (done == future_ready()) {
    now = *read;
    free(read);
    PJRT_Error *error = run_read(&now, "Buffer_ToHostBuffer");
    *event = error == NULL ? make_event(done) : NULL;
    return error;
  }
  *event = make_event(future_share(done)); /* NULL only where there is no memory at all */
  Future *ready = future_share(buffer->ready);
  Py_BEGIN_ALLOW_THREADS /* it may be complete by now, and then calls back at once */
  if (future_then(ready, read_when_ready, read))
    read_when_ready(ready, read);
  future_release(ready);
  Py_END_ALLOW_THREADS
  return NULL;
}

static PJRT_Error *read_buffer(PJRT_Buffer *buffer, const PJRT_Buffer_MemoryLayout *layout,
                               int64_t offset, void *target, size_t size, PJRT_Event **event) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "Buffer_ToHostBuffer");
  if (error != NULL)
    return error;
  PyObject *how = offset < 0 ? layout_object(layout)
                             : Py_BuildValue("(sn)", "raw", (Py_ssize_t)offset);
  error = start_read(buffer, how, target, size, event);
  leave_python(&entry);
  return error;
}

static PJRT_Error *refuse_deleted(PJRT_Buffer *buffer, const char *function) {
  if (!buffer->is_deleted)
    return NULL;
  return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "PJRT_%s: the buffer was deleted or donated", function);
}

static PJRT_Error *buffer_to_host(struct PJRT_Buffer_ToHostBuffer_Args *args) {
  PJRT_Buffer *buffer = args->src;
  if (args->dst == NULL) {
    args->dst_size = buffer->size;
    return NULL;
  }
  PJRT_Error *error = refuse_deleted(buffer, "Buffer_ToHostBuffer");
  if (error != NULL)
    return error;
  if (args->dst_size < buffer->size)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "the array has %zu bytes; dst has room for %zu", buffer->size,
                        args->dst_size);
  return read_buffer(buffer, args->host_layout, -1, args->dst, args->dst_size, &args->event);
}

static PJRT_Error *buffer_copy_raw(struct PJRT_Buffer_CopyRawToHost_Args *args) {
  PJRT_Error *error = refuse_deleted(args->buffer, "Buffer_CopyRawToHost");
  if (error != NULL)
    return error;
  if (args->offset < 0 || args->transfer_size < 0 ||
      (size_t)args->offset > args->buffer->size ||
      (size_t)args->transfer_size > args->buffer->size - (size_t)args->offset)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "%lld bytes from %lld on are outside of the array's %zu bytes",
                        (long long)args->transfer_size, (long long)args->offset,
                        args->buffer->size);
  return read_buffer(args->buffer, NULL, args->offset, args->dst, (size_t)args->transfer_size,
                     &args->event);
}

/* --- copying, deleting ------------------------------------------------------------------------------ */

static PJRT_Error *copy_buffer(PJRT_Buffer *buffer, PJRT_Device *device, PJRT_Memory *memory,
                               const char *function, PJRT_Buffer **copy) {
  Entry entry;
  PJRT_Error *error = refuse_deleted(buffer, function);
  if (error != NULL || (error = enter_python(&entry, function)) != NULL)
    return error;
  PyObject *object = PyObject_CallMethod(buffer->client->table->bridge, "copy", "OOO",
                                         buffer->object, device->object, memory->object);
  *copy = object == NULL ? NULL
                         : make_buffer(memory, device, object, buffer->type, buffer->dims,
                                       buffer->num_dims);
  error = *copy == NULL ? take_exception(function) : NULL;
  leave_python(&entry);
  return error;
}

static PJRT_Error *buffer_copy_to_device(struct PJRT_Buffer_CopyToDevice_Args *args) {
  return copy_buffer(args->buffer, args->dst_device, args->dst_device->default_memory,
                     "Buffer_CopyToDevice", &args->dst_buffer);
}

static PJRT_Error *buffer_copy_to_memory(struct PJRT_Buffer_CopyToMemory_Args *args) {
  if (args->dst_memory->num_devices == 0)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "no device can address the memory");
  return copy_buffer(args->buffer, args->dst_memory->devices[0], args->dst_memory,
                     "Buffer_CopyToMemory", &args->dst_buffer);
}

static PJRT_Error *buffer_delete(struct PJRT_Buffer_Delete_Args *args) {
  Entry entry;
  args->buffer->is_deleted = 1;
  if (!try_python(&entry))
    return NULL;
  PyObject *answer = PyObject_CallMethod(args->buffer->object, "delete", NULL);
  if (answer == NULL)
    log_exception("Buffer_Delete"); /* XLA's client ends the process when this fails */
  Py_XDECREF(answer);
  leave_python(&entry);
  return NULL;
}

static PJRT_Error *ask_pointer(PJRT_Buffer *buffer, const char *function, uintptr_t *pointer) {
  Entry entry;
  PJRT_Error *error = refuse_deleted(buffer, function);
  if (error != NULL || (error = enter_python(&entry, function)) != NULL)
    return error;
  PyObject *answer = PyObject_CallMethod(buffer->object, "unsafe_pointer", NULL);
  *pointer = answer == NULL ? 0 : (uintptr_t)PyLong_AsVoidPtr(answer);
  if (PyErr_Occurred())
    error = take_exception(function);
  Py_XDECREF(answer);
  leave_python(&entry);
  return error;
}

static PJRT_Error *buffer_unsafe_pointer(struct PJRT_Buffer_UnsafePointer_Args *args) {
  return ask_pointer(args->buffer, "Buffer_UnsafePointer", &args->buffer_pointer);
}

static PJRT_Error *
buffer_data_pointer(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *args) {
  uintptr_t pointer = 0;
  PJRT_Error *error =
      ask_pointer(args->buffer, "Buffer_OpaqueDeviceMemoryDataPointer", &pointer);
  args->device_memory_ptr = (void *)pointer;
  return error;
}

/* --- what is known without asking ------------------------------------------------------------------- */

static PJRT_Error *buffer_element_type(struct PJRT_Buffer_ElementType_Args *args) {
  args->type = args->buffer->type;
  return NULL;
}

static PJRT_Error *buffer_dimensions(struct PJRT_Buffer_Dimensions_Args *args) {
  args->dims = args->buffer->dims;
  args->num_dims = args->buffer->num_dims;
  return NULL;
}

static PJRT_Error *buffer_unpadded_dimensions(struct PJRT_Buffer_UnpaddedDimensions_Args *args) {
  args->unpadded_dims = args->buffer->dims;
  args->num_dims = args->buffer->num_dims;
  return NULL;
}

static PJRT_Error *
buffer_dynamic_dimensions(struct PJRT_Buffer_DynamicDimensionIndices_Args *args) {
  args->dynamic_dim_indices = NULL;
  args->num_dynamic_dims = 0;
  return NULL;
}

static PJRT_Error *buffer_memory_layout(struct PJRT_Buffer_GetMemoryLayout_Args *args) {
  PJRT_Buffer *buffer = args->buffer;
  memset(&args->layout, 0, sizeof args->layout);
  args->layout.struct_size = sizeof args->layout;
  args->layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args->layout.tiled.struct_size = sizeof args->layout.tiled;
  args->layout.tiled.minor_to_major = buffer->dims + buffer->num_dims;
  args->layout.tiled.minor_to_major_size = buffer->num_dims;
  return NULL;
}

static PJRT_Error *buffer_size(struct PJRT_Buffer_OnDeviceSizeInBytes_Args *args) {
  args->on_device_size_in_bytes = args->buffer->size;
  return NULL;
}

static PJRT_Error *buffer_device(struct PJRT_Buffer_Device_Args *args) {
  args->device = args->buffer->device;
  return NULL;
}

static PJRT_Error *buffer_memory(struct PJRT_Buffer_Memory_Args *args) {
  args->memory = args->buffer->memory;
  return NULL;
}

static PJRT_Error *buffer_is_deleted(struct PJRT_Buffer_IsDeleted_Args *args) {
  args->is_deleted = (uint8_t)args->buffer->is_deleted;
  return NULL;
}

static PJRT_Error *buffer_is_on_cpu(struct PJRT_Buffer_IsOnCpu_Args *args) {
  args->is_on_cpu = 0; /* hosts would read through PJRT_Buffer_UnsafePointer */
  return NULL;
}

static PJRT_Error *buffer_ready_event(struct PJRT_Buffer_ReadyEvent_Args *args) {
  static const char deleted[] = "the buffer was deleted or donated";
  Future *future = args->buffer->is_deleted
                       ? future_failed(PJRT_Error_Code_INVALID_ARGUMENT, deleted, sizeof deleted - 1)
                       : future_share(args->buffer->ready);
  args->event = make_event(future);
  return args->event ? NULL
                     : format_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "no host memory");
}

static PJRT_Error *
buffer_add_reference(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args *args) {
  atomic_fetch_add(&args->buffer->external_references, 1);
  return NULL;
}

static PJRT_Error *
buffer_drop_reference(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args *args) {
  atomic_long *count = &args->buffer->external_references;
  long held = *count;
  while (held > 0)
    if (atomic_compare_exchange_weak(count, &held, held - 1))
      return NULL;
  return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "the buffer has no external reference to take back");
}

void fill_buffers(PJRT_Api *api) {
  api->Client_BufferFromHostBuffer = buffer_from_host;
  api->Buffer_Destroy = buffer_destroy;
  api->Buffer_Delete = buffer_delete;
  api->Buffer_ToHostBuffer = buffer_to_host;
  api->Buffer_CopyRawToHost = buffer_copy_raw;
  api->Buffer_CopyToDevice = buffer_copy_to_device;
  api->Buffer_CopyToMemory = buffer_copy_to_memory;
  api->Buffer_UnsafePointer = buffer_unsafe_pointer;
  api->Buffer_OpaqueDeviceMemoryDataPointer = buffer_data_pointer;
  api->Buffer_IncreaseExternalReferenceCount = buffer_add_reference;
  api->Buffer_DecreaseExternalReferenceCount = buffer_drop_reference;
  api->Buffer_ElementType = buffer_element_type;
  api->Buffer_Dimensions = buffer_dimensions;
  api->Buffer_UnpaddedDimensions = buffer_unpadded_dimensions;
  api->Buffer_DynamicDimensionIndices = buffer_dynamic_dimensions;
  api->Buffer_GetMemoryLayout = buffer_memory_layout;
  api->Buffer_OnDeviceSizeInBytes = buffer_size;
  api->Buffer_Device = buffer_device;
  api->Buffer_Memory = buffer_memory;
  api->Buffer_IsDeleted = buffer_is_deleted;
  api->Buffer_IsOnCpu = buffer_is_on_cpu;
  api->Buffer_ReadyEvent = buffer_ready_event;
}
