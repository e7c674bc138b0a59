/* PJRT_AsyncHostToDeviceTransferManager: buffers that are made first and filled in pieces.
 *
 * Pieces are gathered in host memory; the last one puts the whole array. */
#include "core.h"

#include <string.h>

typedef struct {
  PJRT_Buffer *buffer;
  char *gathered;
  atomic_int is_retrieved, is_finished;
} Transfer;

struct PJRT_AsyncHostToDeviceTransferManager {
  const void *functions;
  Place place;
  size_t count;
  Transfer transfers[];
};

static void fail(Transfer *transfer, int code, const char *message, size_t size) {
  future_complete(transfer->buffer->ready, code, message, size);
}

static void free_manager(PJRT_AsyncHostToDeviceTransferManager *manager) {
  static const char missing[] = "the transfer manager was destroyed before all data had come";
  for (size_t i = 0; i < manager->count; i++) {
    Transfer *transfer = &manager->transfers[i];
    if (transfer->buffer == NULL)
      continue;
    if (!transfer->is_finished)
      fail(transfer, PJRT_Error_Code_CANCELLED, missing, sizeof missing - 1);
    if (!transfer->is_retrieved)
      buffer_release(transfer->buffer); /* the host's reference */
    buffer_release(transfer->buffer);
    free(transfer->gathered);
  }
  client_release(manager->place.client);
  atomic_fetch_sub(&live_handles[LIVE_TRANSFERS], 1);
  free(manager);
}

static PJRT_Error *add_transfer(PJRT_AsyncHostToDeviceTransferManager *manager, size_t i,
                                const struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args) {
  static const char function[] = "Client_CreateBuffersForAsyncHostToDevice";
  const PJRT_ShapeSpec *spec = &args->shape_specs[i];
  Shape shape = {spec->element_type, spec->dims, spec->num_dims, NULL};
  Transfer *transfer = &manager->transfers[i];
  size_t size;
  PJRT_Error *error = measure(&shape, function, &size);
  if (error == NULL && i < args->num_device_layouts && args->device_layouts != NULL)
    error = require_row_major(args->device_layouts[i], &shape, function);
  if (error != NULL)
    return error;
  transfer->buffer = make_promise(manager->place.memory, manager->place.device, &shape);
  if (transfer->buffer == NULL)
    return no_host_memory();
  transfer->gathered = calloc(1, size ? size : 1);
  buffer_share(transfer->buffer); /* one reference is the host's, one the manager's */
  return transfer->gathered ? NULL : no_host_memory();
}

static PJRT_Error *create_manager(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args) {
  Place place;
  size_t count = args->num_shape_specs;
  PJRT_AsyncHostToDeviceTransferManager *manager;
  PJRT_Error *error = find_place(args->client, NULL, args->memory,
                                 "Client_CreateBuffersForAsyncHostToDevice", &place);
  if (error != NULL)
    return error;
  if (count > PY_SSIZE_T_MAX / sizeof(Transfer) - 1 ||
      (manager = calloc(1, sizeof *manager + count * sizeof(Transfer))) == NULL)
    return no_host_memory();
  manager->place = place;
  client_share(place.client);
  atomic_fetch_add(&live_handles[LIVE_TRANSFERS], 1);
  manager->count = count;
  for (size_t i = 0; error == NULL && i < count; i++)
    error = add_transfer(manager, i, args);
  if (error != NULL)
    free_manager(manager);
  else
    args->transfer_manager = manager;
  return error;
}

static PJRT_Error *destroy(struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args *args) {
  if (args->transfer_manager != NULL)
    free_manager(args->transfer_manager);
  return NULL;
}

/* Finds a transfer by its number; NULL if the host's number is wrong. */
static Transfer *find(PJRT_AsyncHostToDeviceTransferManager *manager, int index) {
  return index >= 0 && (size_t)index < manager->count ? &manager->transfers[index] : NULL;
}

static PJRT_Error *refuse_index(const char *function, int index,
                                const PJRT_AsyncHostToDeviceTransferManager *manager) {
  return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "PJRT_AsyncHostToDeviceTransferManager_%s: there is no buffer %d among %zu",
                      function, index, manager->count);
}

static PJRT_Error *refuse_finished(const char *function, int index) {
  return format_error(PJRT_Error_Code_FAILED_PRECONDITION,
                      "PJRT_AsyncHostToDeviceTransferManager_%s: buffer %d has all its data, or its "
                      "error, already",
                      function, index);
}

/* Puts the gathered array; on failure the buffer gets the error. */
static void finish(const Place *place, Transfer *transfer) {
  PJRT_Buffer *buffer = transfer->buffer;
  HostArray array = {transfer->gathered, {buffer->type, buffer->dims, buffer->num_dims, NULL}, NULL,
                     PJRT_HostBufferSemantics_kImmutableOnlyDuringCall};
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "AsyncHostToDeviceTransferManager_TransferData");
  if (error == NULL) {
    PyObject *object = put_array(&array, buffer->size, place, NULL);
    if (object != NULL)
      fulfil_promise(buffer, object);
    else
      error = take_exception("AsyncHostToDeviceTransferManager_TransferData");
    leave_python(&entry);
  }
  if (error != NULL)
    complete_with(buffer->ready, error);
  free(transfer->gathered);
  transfer->gathered = NULL;
}

static PJRT_Error *
transfer_data(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args *args) {
  PJRT_AsyncHostToDeviceTransferManager *manager = args->transfer_manager;
  Transfer *transfer = find(manager, args->buffer_index);
  if (transfer == NULL)
    return refuse_index("TransferData", args->buffer_index, manager);
  size_t whole = transfer->buffer->size;
  if (args->offset < 0 || args->transfer_size < 0 || (size_t)args->offset > whole ||
      (size_t)args->transfer_size > whole - (size_t)args->offset)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "%lld bytes from %lld on are outside of the array's %zu bytes",
                        (long long)args->transfer_size, (long long)args->offset, whole);
  if (args->is_last_transfer ? atomic_exchange(&transfer->is_finished, 1) : transfer->is_finished)
    return refuse_finished("TransferData", args->buffer_index);
  if (args->transfer_size > 0)
    memcpy(transfer->gathered + args->offset, args->data, (size_t)args->transfer_size);
  if (args->is_last_transfer)
    finish(&manager->place, transfer);
  args->done_with_h2d_transfer = make_event(future_ready()); /* the data were copied */
  return args->done_with_h2d_transfer ? NULL : no_host_memory();
}

static PJRT_Error *
transfer_literal(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args *args) {
  static const char function[] = "AsyncHostToDeviceTransferManager_TransferLiteral";
  Shape shape = {args->shape_element_type, args->shape_dims, args->shape_num_dims, NULL};
  PJRT_AsyncHostToDeviceTransferManager *manager = args->transfer_manager;
  Transfer *transfer = find(manager, args->buffer_index);
  size_t size;
  if (transfer == NULL)
    return refuse_index("TransferLiteral", args->buffer_index, manager);
  PJRT_Error *error = measure(&shape, function, &size);
  if (error != NULL || (error = require_row_major(args->shape_layout, &shape, function)) != NULL)
    return error;
  if (size != transfer->buffer->size)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_%s: the literal has %zu bytes, the buffer %zu", function, size,
                        transfer->buffer->size);
  if (atomic_exchange(&transfer->is_finished, 1))
    return refuse_finished("TransferLiteral", args->buffer_index);
  if (size > 0)
    memcpy(transfer->gathered, args->data, size);
  finish(&manager->place, transfer);
  args->done_with_h2d_transfer = make_event(future_ready());
  return args->done_with_h2d_transfer ? NULL : no_host_memory();
}

static PJRT_Error *
set_error(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args *args) {
  Transfer *transfer = find(args->transfer_manager, args->buffer_index);
  if (transfer == NULL)
    return refuse_index("SetBufferError", args->buffer_index, args->transfer_manager);
  if (atomic_exchange(&transfer->is_finished, 1))
    return refuse_finished("SetBufferError", args->buffer_index);
  fail(transfer, args->error_code ? args->error_code : PJRT_Error_Code_UNKNOWN,
       args->error_message, args->error_message_size);
  return NULL;
}

static PJRT_Error *retrieve(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args *args) {
  Transfer *transfer = find(args->transfer_manager, args->buffer_index);
  if (transfer == NULL)
    return refuse_index("RetrieveBuffer", args->buffer_index, args->transfer_manager);
  if (atomic_exchange(&transfer->is_retrieved, 1))
    return format_error(PJRT_Error_Code_FAILED_PRECONDITION, "buffer %d was retrieved before",
                        args->buffer_index);
  args->buffer_out = transfer->buffer;
  return NULL;
}

static PJRT_Error *device(struct PJRT_AsyncHostToDeviceTransferManager_Device_Args *args) {
  args->device_out = args->transfer_manager->place.device;
  return NULL;
}

static PJRT_Error *count(struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args *args) {
  args->buffer_count = args->transfer_manager->count;
  return NULL;
}

static PJRT_Error *size(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args *args) {
  const Transfer *transfer = find(args->transfer_manager, args->buffer_index);
  if (transfer == NULL)
    return refuse_index("BufferSize", args->buffer_index, args->transfer_manager);
  args->buffer_size = transfer->buffer->size;
  return NULL;
}

/* Metadata are for a backend's own tools; there are none. */
static PJRT_Error *metadata(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args *args) {
  (void)args;
  return NULL;
}

void fill_transfers(PJRT_Api *api) {
  api->Client_CreateBuffersForAsyncHostToDevice = create_manager;
  api->AsyncHostToDeviceTransferManager_Destroy = destroy;
  api->AsyncHostToDeviceTransferManager_TransferData = transfer_data;
  api->AsyncHostToDeviceTransferManager_TransferLiteral = transfer_literal;
  api->AsyncHostToDeviceTransferManager_SetBufferError = set_error;
  api->AsyncHostToDeviceTransferManager_RetrieveBuffer = retrieve;
  api->AsyncHostToDeviceTransferManager_Device = device;
  api->AsyncHostToDeviceTransferManager_BufferCount = count;
  api->AsyncHostToDeviceTransferManager_BufferSize = size;
  api->AsyncHostToDeviceTransferManager_AddMetadata = metadata;
}
