/* Copies of buffers to other memories and to other types, addresses of buffers, and buffers that
   take over the contents of others. */
#include "core.h"

static PJRT_Error *copy_buffer(PJRT_Buffer *buffer, const Place *place, const char *function,
                               PJRT_Buffer **copy) {
  Entry entry;
  PJRT_Error *error = require_contents(buffer, function);
  if (error != NULL || (error = enter_python(&entry, function)) != NULL)
    return error;
  Shape shape = {buffer->type, buffer->dims, buffer->num_dims, buffer->dims + buffer->num_dims};
  PyObject *object =
      PyObject_CallMethod(buffer->client->table->bridge, "copy", "OOO", buffer->object,
                          place->device->object, place->memory->object);
  *copy = object == NULL ? NULL : make_buffer(place->memory, place->device, object, &shape);
  error = *copy == NULL ? take_exception(function) : NULL;
  leave_python(&entry);
  return error;
}

static PJRT_Error *copy_to_device(struct PJRT_Buffer_CopyToDevice_Args *args) {
  static const char function[] = "Buffer_CopyToDevice";
  Place place;
  PJRT_Error *error = find_place(args->buffer->client, args->dst_device, NULL, function, &place);
  return error ? error : copy_buffer(args->buffer, &place, function, &args->dst_buffer);
}

static PJRT_Error *copy_to_memory(struct PJRT_Buffer_CopyToMemory_Args *args) {
  static const char function[] = "Buffer_CopyToMemory";
  Place place;
  PJRT_Error *error = find_place(args->buffer->client, NULL, args->dst_memory, function, &place);
  return error ? error : copy_buffer(args->buffer, &place, function, &args->dst_buffer);
}

/* Returns an error for a shape that cannot reinterpret a buffer's bytes. */
static PJRT_Error *check_bitcast(PJRT_Buffer *buffer, const Shape *shape, const char *function) {
  size_t size;
  PJRT_Error *error = measure(shape, function, &size);
  if (error != NULL)
    return error;
  if (size != buffer->size)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_%s: the array has %zu bytes, and is to be one of %zu", function,
                        buffer->size, size);
  if (shape->type != buffer->type && (has_part_bytes(shape->type) || has_part_bytes(buffer->type)))
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "PJRT_%s: how elements of less than a byte lie on the device is not known",
                        function);
  return NULL;
}

/* Arrays are immutable, so a copy is equivalent to an alias of the same memory. */
static PJRT_Error *bitcast(struct PJRT_Buffer_Bitcast_Args *args) {
  static const char function[] = "Buffer_Bitcast";
  PJRT_Buffer *buffer = args->buffer;
  Shape shape = {args->element_type, args->dims, args->num_dims, NULL};
  Entry entry;
  PJRT_Error *error = require_contents(buffer, function);
  if (error != NULL || (error = check_bitcast(buffer, &shape, function)) != NULL ||
      (error = require_row_major(args->device_layout, &shape, function)) != NULL ||
      (error = enter_python(&entry, function)) != NULL)
    return error;
  PyObject *object = PyObject_CallMethod(
      buffer->client->table->bridge, "bitcast", "OiNOO", buffer->object, shape.type,
      integer_tuple(shape.dims, shape.num_dims), buffer->device->object, buffer->memory->object);
  args->out_buffer =
      object == NULL ? NULL : make_buffer(buffer->memory, buffer->device, object, &shape);
  error = args->out_buffer == NULL ? take_exception(function) : NULL;
  leave_python(&entry);
  return error;
}

static PJRT_Error *ask_pointer(PJRT_Buffer *buffer, const char *function, uintptr_t *pointer) {
  Entry entry;
  PJRT_Error *error = require_contents(buffer, function);
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

static PJRT_Error *unsafe_pointer(struct PJRT_Buffer_UnsafePointer_Args *args) {
  return ask_pointer(args->buffer, "Buffer_UnsafePointer", &args->buffer_pointer);
}

static PJRT_Error *data_pointer(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *args) {
  uintptr_t pointer = 0;
  PJRT_Error *error = ask_pointer(args->buffer, "Buffer_OpaqueDeviceMemoryDataPointer", &pointer);
  args->device_memory_ptr = (void *)pointer;
  return error;
}

typedef struct {
  PJRT_Buffer *taker, *giver;
} Handover;

/* The host calls this once, when the event that the handover waits for is complete or has failed.
   */
static void dependency_is_ready(PJRT_Buffer_DonateWithControlDependency_Callback_Args *args) {
  Handover *handover = args->callback_data;
  Entry entry;
  PJRT_Error *error = NULL;
  if (args->error_code != PJRT_Error_Code_OK)
    error = make_error(args->error_code, args->error_message, args->error_message_size);
  else if ((error = enter_python(&entry, "Buffer_DonateWithControlDependency")) == NULL) {
    share_contents(handover->taker, handover->giver);
    leave_python(&entry);
  }
  if (error != NULL)
    complete_with(handover->taker->ready, error);
  buffer_drop_hold(handover->giver);
  buffer_release(handover->giver);
  buffer_release(handover->taker);
  free(handover);
}

static PJRT_Error *donate(struct PJRT_Buffer_DonateWithControlDependency_Args *args) {
  PJRT_Buffer *giver = args->buffer;
  Shape shape = {giver->type, giver->dims, giver->num_dims, giver->dims + giver->num_dims};
  PJRT_Error *error = require_contents(giver, "Buffer_DonateWithControlDependency");
  if (error != NULL)
    return error;
  Handover *handover = malloc(sizeof *handover);
  PJRT_Buffer *taker = make_promise(giver->memory, giver->device, &shape);
  if (handover == NULL || taker == NULL || !buffer_hold(giver)) {
    free(handover);
    if (taker != NULL)
      buffer_release(taker);
    return no_host_memory();
  }
  *handover = (Handover){buffer_share(taker), buffer_share(giver)};
  buffer_delete(giver); /* for the host only: the hold keeps the contents */
  args->callback_data = handover;
  args->dependency_ready_callback = dependency_is_ready;
  args->out_buffer = taker;
  return NULL;
}

void fill_copies(PJRT_Api *api) {
  api->Buffer_CopyToDevice = copy_to_device;
  api->Buffer_CopyToMemory = copy_to_memory;
  api->Buffer_Bitcast = bitcast;
  api->Buffer_UnsafePointer = unsafe_pointer;
  api->Buffer_OpaqueDeviceMemoryDataPointer = data_pointer;
  api->Buffer_DonateWithControlDependency = donate;
}
