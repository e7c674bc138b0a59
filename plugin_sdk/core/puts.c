/* New buffers from the host's memory: copied, viewed, or with unspecified contents. */
#include "core.h"

#include <string.h>

PJRT_Error *find_place(PJRT_Client *client, PJRT_Device *device, PJRT_Memory *memory,
                       const char *function, Place *place) {
  if (device == NULL && (memory == NULL || memory->num_devices == 0))
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_%s names neither a device nor a memory of one", function);
  place->client = client;
  place->memory = memory != NULL ? memory : device->default_memory;
  place->device = device != NULL ? device : memory->devices[0];
  if (place->device->client == client)
    return NULL;
  return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "PJRT_%s: the device %d is of another client", function,
                      place->device->description.id);
}

static int is_order(const PJRT_Buffer_MemoryLayout *layout, const Shape *shape) {
  return layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled && layout->tiled.num_tiles == 0 &&
         layout->tiled.minor_to_major_size == shape->num_dims;
}

static int is_row_major(const PJRT_Buffer_MemoryLayout *layout, const Shape *shape) {
  int found = is_order(layout, shape);
  for (size_t i = 0; found && i < shape->num_dims; i++)
    found = layout->tiled.minor_to_major[i] == (int64_t)(shape->num_dims - 1 - i);
  return found;
}

/* Refuses layouts other than row-major, before Python is entered. */
PJRT_Error *require_row_major(const PJRT_Buffer_MemoryLayout *layout, const Shape *shape,
                              const char *function) {
  return layout == NULL || is_row_major(layout, shape)
             ? NULL
             : format_error(PJRT_Error_Code_UNIMPLEMENTED,
                            "PJRT_%s: arrays on the device are row-major; another layout was "
                            "asked for",
                            function);
}

PJRT_Error *read_order(PJRT_Client *client, const PJRT_Buffer_MemoryLayout *layout,
                       const Shape *shape, const char *function, const int64_t **order) {
  *order = NULL;
  if (layout == NULL || is_row_major(layout, shape))
    return NULL;
  if (!client->takes_layouts || !is_order(layout, shape))
    return require_row_major(layout, shape, function);
  /* Each dimension must occur once: the new array has room for one order only. */
  for (size_t i = 0; i < shape->num_dims; i++) {
    size_t found = 0;
    for (size_t j = 0; j < shape->num_dims; j++)
      found += layout->tiled.minor_to_major[j] == (int64_t)i;
    if (found != 1)
      return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                          "PJRT_%s: the layout names dimension %zu %zu times", function, i, found);
  }
  *order = layout->tiled.minor_to_major;
  return NULL;
}

typedef struct {
  const char *start;
  Py_ssize_t size, offset; /* offset of element 0: strides may be negative */
} Extent;

/* Returns 0, or -1 if the strides reach beyond any memory. */
static int find_extent(const HostArray *array, size_t size, Extent *extent) {
  const Shape *shape = &array->shape;
  *extent = (Extent){array->data, (Py_ssize_t)size, 0};
  if (size == 0 || array->byte_strides == NULL)
    return 0;
  Py_ssize_t before = 0, after = element_sizes[shape->type];
  for (size_t i = 0; i < shape->num_dims; i++) {
    int64_t reach;
    if (__builtin_mul_overflow(array->byte_strides[i], shape->dims[i] - 1, &reach) ||
        (reach < 0 ? __builtin_sub_overflow(before, reach, &before)
                   : __builtin_add_overflow(after, reach, &after)))
      return -1;
  }
  if (__builtin_add_overflow(before, after, &extent->size))
    return -1;
  extent->start -= before;
  extent->offset = before;
  return 0;
}

PJRT_Error *check_array(const HostArray *array, const char *function, size_t *size) {
  Extent extent;
  PJRT_Error *error = measure(&array->shape, function, size);
  if (error != NULL)
    return error;
  if (array->data == NULL && *size > 0)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "PJRT_%s: %zu bytes at NULL", function,
                        *size);
  if (find_extent(array, *size, &extent))
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_%s: the strides reach beyond all memory", function);
  return NULL;
}

PyObject *put_array(const HostArray *array, size_t size, const Place *place, Future *done) {
  Extent extent;
  if (find_extent(array, size, &extent)) {
    PyErr_SetString(PyExc_ValueError, "check_array was not asked");
    return NULL;
  }
  PyObject *host = make_host_memory(extent.start, extent.size, 0,
                                    done == NULL ? NULL : future_share(done));
  if (host == NULL)
    return NULL;
  PyObject *strides = array->byte_strides == NULL
                          ? Py_NewRef(Py_None)
                          : integer_tuple(array->byte_strides, array->shape.num_dims);
  const Shape *shape = &array->shape;
  PyObject *order = shape->minor_to_major == NULL
                        ? Py_NewRef(Py_None)
                        : integer_tuple(shape->minor_to_major, shape->num_dims);
  return PyObject_CallMethod(place->client->table->bridge, "put", "ONniNNOOiN",
                             place->client->object, host, extent.offset, array->shape.type,
                             integer_tuple(array->shape.dims, array->shape.num_dims), strides,
                             place->device->object, place->memory->object, array->semantics,
                             order);
}

/* Puts an array and makes its handle. */
static PJRT_Error *make_put(const HostArray *array, const Place *place, Future *done,
                            const char *function, PJRT_Buffer **buffer) {
  Entry entry;
  size_t size;
  *buffer = NULL;
  PJRT_Error *error = check_array(array, function, &size);
  if (error != NULL || (error = enter_python(&entry, function)) != NULL)
    return error;
  PyObject *object = put_array(array, size, place, done);
  if (object != NULL)
    *buffer = make_buffer(place->memory, place->device, object, &array->shape);
  error = *buffer == NULL ? take_exception(function) : NULL;
  leave_python(&entry);
  return error;
}

static PJRT_Error *buffer_from_host(struct PJRT_Client_BufferFromHostBuffer_Args *args) {
  static const char function[] = "Client_BufferFromHostBuffer";
  Place place;
  PJRT_Error *error = find_place(args->client, args->device, args->memory, function, &place);
  if (error != NULL)
    return error;
  if (args->num_byte_strides != 0 && args->num_byte_strides != args->num_dims)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "PJRT_%s: %zu strides for %zu dimensions",
                        function, args->num_byte_strides, args->num_dims);
  if (args->host_buffer_semantics < 0 ||
      args->host_buffer_semantics > PJRT_HostBufferSemantics_kMutableZeroCopy)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "PJRT_%s: no host_buffer_semantics is %d",
                        function, args->host_buffer_semantics);
  HostArray array = {args->data,
                     {args->type, args->dims, args->num_dims, NULL},
                     args->num_byte_strides ? args->byte_strides : NULL,
                     args->host_buffer_semantics};
  error = read_order(place.client, args->device_layout, &array.shape, function,
                     &array.shape.minor_to_major);
  if (error != NULL)
    return error;
  int in_call = array.semantics == PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  Future *done = in_call ? future_ready() : future_new();
  if (done == NULL)
    return no_host_memory();
  error = make_put(&array, &place, in_call ? NULL : done, function, &args->buffer);
  if (error != NULL) {
    future_release(done);
    return error;
  }
  args->done_with_host_buffer = make_event(done);
  if (args->done_with_host_buffer != NULL)
    return NULL;
  buffer_release(args->buffer);
  args->buffer = NULL;
  return no_host_memory();
}

static PJRT_Error *
create_uninitialized(struct PJRT_Client_CreateUninitializedBuffer_Args *args) {
  static const char function[] = "Client_CreateUninitializedBuffer";
  HostArray array = {NULL, {args->shape_element_type, args->shape_dims, args->shape_num_dims, NULL},
                     NULL, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall};
  Place place;
  size_t size;
  PJRT_Error *error = find_place(args->client, args->device, args->memory, function, &place);
  if (error != NULL || (error = measure(&array.shape, function, &size)) != NULL ||
      (error = read_order(args->client, args->shape_layout, &array.shape, function,
                          &array.shape.minor_to_major)) != NULL)
    return error;
  /* Zeros: the host must not see data that another array left in this process's memory. */
  void *zeros = calloc(1, size ? size : 1);
  if (zeros == NULL)
    return no_host_memory();
  array.data = zeros;
  error = make_put(&array, &place, NULL, function, &args->buffer);
  free(zeros);
  return error;
}

typedef struct {
  void (*release)(void *pointer, void *argument);
  void *pointer, *argument;
} Release;

/* Notifies the host that nothing refers to the memory any more. */
static void release_view(Future *future, void *argument) {
  Release release = *(Release *)argument;
  (void)future;
  free(argument);
  if (release.release != NULL)
    release.release(release.pointer, release.argument);
}

static PJRT_Error *create_view(struct PJRT_Client_CreateViewOfDeviceBuffer_Args *args) {
  static const char function[] = "Client_CreateViewOfDeviceBuffer";
  HostArray array = {args->device_buffer_ptr, {args->element_type, args->dims, args->num_dims, NULL},
                     NULL, PJRT_HostBufferSemantics_kImmutableZeroCopy};
  Place place;
  if (!args->client->takes_views)
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "PJRT_%s is not implemented: the client does not declare zero_copy_put and "
                        "unsafe_pointer, which make a view of the host's memory",
                        function);
  PJRT_Error *error = require_row_major(args->layout, &array.shape, function);
  if (error != NULL)
    return error;
  error = find_place(args->client, args->device, HAS_FIELD(args, memory) ? args->memory : NULL,
                     function, &place);
  if (error != NULL)
    return error;
  Future *unused = future_new();
  Release *release = malloc(sizeof *release);
  if (unused == NULL || release == NULL) {
    future_release(unused);
    free(release);
    return no_host_memory();
  }
  *release = (Release){args->on_delete_callback, args->device_buffer_ptr,
                       args->on_delete_callback_arg};
  error = make_put(&array, &place, unused, function, &args->buffer);
  /* After an error the host keeps the memory, and is not called back. */
  if (error != NULL || future_then(unused, release_view, release))
    free(release);
  future_release(unused);
  return error;
}

/* If arrays are in host memory, devices can access all of it: nothing needs to be mapped. */
static PJRT_Error *require_on_host(const PJRT_Client *client, const char *function) {
  return client->is_on_host
             ? NULL
             : format_error(PJRT_Error_Code_UNIMPLEMENTED,
                            "PJRT_%s: the backend does not declare that its devices share the "
                            "host's memory (zero_copy_get and unsafe_pointer)",
                            function);
}

static PJRT_Error *dma_map(struct PJRT_Client_DmaMap_Args *args) {
  if (args->data == NULL && args->size > 0)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "PJRT_Client_DmaMap: %zu bytes at NULL",
                        args->size);
  return require_on_host(args->client, "Client_DmaMap");
}

static PJRT_Error *dma_unmap(struct PJRT_Client_DmaUnmap_Args *args) {
  return require_on_host(args->client, "Client_DmaUnmap");
}

void fill_puts(PJRT_Api *api) {
  api->Client_DmaMap = dma_map;
  api->Client_DmaUnmap = dma_unmap;
  api->Client_BufferFromHostBuffer = buffer_from_host;
  api->Client_CreateUninitializedBuffer = create_uninitialized;
  api->Client_CreateViewOfDeviceBuffer = create_view;
}
