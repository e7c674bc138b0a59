/* Buffers whose contents a host promises: another buffer's, set later, or a permanent error. */
#include "core.h"

struct PJRT_FulfillAliasBufferCallback {
  const void *functions;
  PJRT_Buffer *alias;
};

/* Makes a buffer that the host's arguments describe, without contents. */
static PJRT_Error *promise(PJRT_Client *client, PJRT_Memory *memory, const Shape *shape,
                           const PJRT_Buffer_MemoryLayout *layout, const char *function,
                           PJRT_Buffer **buffer) {
  Place place;
  size_t size;
  PJRT_Error *error = find_place(client, NULL, memory, function, &place);
  if (error != NULL || (error = measure(shape, function, &size)) != NULL ||
      (error = require_row_major(layout, shape, function)) != NULL)
    return error;
  *buffer = make_promise(place.memory, place.device, shape);
  return *buffer ? NULL : no_host_memory();
}

static PJRT_Error *create_error_buffer(struct PJRT_Client_CreateErrorBuffer_Args *args) {
  Shape shape = {args->shape_element_type, args->shape_dims, args->shape_num_dims, NULL};
  PJRT_Error *error = promise(args->client, args->memory, &shape, args->shape_layout,
                              "Client_CreateErrorBuffer", &args->buffer);
  if (error == NULL)
    future_complete(args->buffer->ready,
                    args->error_code ? args->error_code : PJRT_Error_Code_UNKNOWN,
                    args->error_message, args->error_message_size);
  return error;
}

static PJRT_Error *create_alias(struct PJRT_Client_CreateAliasBuffer_Args *args) {
  Shape shape = {args->shape_element_type, args->shape_dims, args->shape_num_dims, NULL};
  PJRT_FulfillAliasBufferCallback *callback = calloc(1, sizeof *callback);
  if (callback == NULL)
    return no_host_memory();
  PJRT_Error *error = promise(args->client, args->memory, &shape, args->shape_layout,
                              "Client_CreateAliasBuffer", &args->alias_buffer);
  if (error != NULL) {
    free(callback);
    return error;
  }
  callback->alias = buffer_share(args->alias_buffer);
  args->fulfill_alias_buffer_cb = callback;
  return NULL;
}

static PJRT_Error *check_kinds(const PJRT_Buffer *alias, const PJRT_Buffer *buffer) {
  int are_equal = alias->type == buffer->type && alias->num_dims == buffer->num_dims &&
                  alias->client == buffer->client;
  for (size_t i = 0; are_equal && i < alias->num_dims; i++)
    are_equal = alias->dims[i] == buffer->dims[i];
  return are_equal ? NULL
                   : format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                                  "PJRT_Client_FulfillAliasBuffer: the buffer has another client, "
                                  "element type or shape than its alias");
}

/* Frees the callback, unless an error is returned. */
static PJRT_Error *fulfil_alias(struct PJRT_Client_FulfillAliasBuffer_Args *args) {
  static const char function[] = "Client_FulfillAliasBuffer";
  PJRT_FulfillAliasBufferCallback *callback = args->fulfill_alias_buffer_cb;
  if (args->status_code != PJRT_Error_Code_OK) {
    future_complete(callback->alias->ready, args->status_code, args->error_message,
                    args->error_message_size);
  } else {
    Entry entry;
    PJRT_Error *error = check_kinds(callback->alias, args->buffer);
    if (error != NULL || (error = require_contents(args->buffer, function)) != NULL ||
        (error = enter_python(&entry, function)) != NULL)
      return error;
    share_contents(callback->alias, args->buffer);
    leave_python(&entry);
  }
  buffer_release(callback->alias);
  free(callback);
  return NULL;
}

void fill_promises(PJRT_Api *api) {
  api->Client_CreateErrorBuffer = create_error_buffer;
  api->Client_CreateAliasBuffer = create_alias;
  api->Client_FulfillAliasBuffer = fulfil_alias;
}
