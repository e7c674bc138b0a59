/* Reads buffers into the host's memory: at once, when the contents are ready, or to an address that
   the host gives later. */
#include "core.h"

/* A pending read. It keeps the buffer, and prevents the deletion of the buffer's contents. */
typedef struct {
  PJRT_Buffer *buffer;
  PyObject *layout;
  void *target;
  size_t size;
  Future *done;
} Read;

/* Performs a read; the GIL is held. */
static PJRT_Error *run_read(const Read *read, const char *function) {
  PyObject *object = read->buffer->object, *answer = NULL;
  if (object == NULL)
    return future_error(read->buffer->ready);
  PyObject *host = make_host_memory(read->target, (Py_ssize_t)read->size, 1, NULL);
  if (host != NULL)
    answer = PyObject_CallMethod(read->buffer->client->table->bridge, "read", "ONO", object, host,
                                 read->layout);
  Py_XDECREF(answer);
  return answer == NULL ? take_exception(function) : NULL;
}

/* Called when the contents are ready or failed: on any thread, without the GIL. */
static void read_when_ready(Future *ready, void *argument) {
  Read *read = argument;
  Entry entry;
  PJRT_Error *error = future_error(ready);
  if (error == NULL && (error = enter_python(&entry, "Buffer_ToHostBuffer")) == NULL) {
    error = run_read(read, "Buffer_ToHostBuffer");
    leave_python(&entry);
  }
  complete_with(read->done, error);
  future_release(read->done);
  release_object(read->layout);
  buffer_drop_hold(read->buffer);
  buffer_release(read->buffer);
  free(read);
}

/* Reads at once if the contents are ready, else when they are; the GIL is held. */
static PJRT_Error *run_or_wait(const Read *wanted, const char *function, Future **done) {
  if (future_is_done(wanted->buffer->ready)) {
    *done = future_ready();
    return run_read(wanted, function);
  }
  Read *read = malloc(sizeof *read);
  Future *future = future_new(), *ready = wanted->buffer->ready;
  if (read == NULL || future == NULL || !buffer_hold(wanted->buffer)) {
    free(read);
    future_release(future);
    return no_host_memory();
  }
  *read = *wanted;
  Py_INCREF(read->layout);
  buffer_share(read->buffer);
  read->done = future_share(future);
  *done = future;
  Py_BEGIN_ALLOW_THREADS /* `ready` may be complete by now: it then calls back at once */
  future_share(ready);
  if (future_then(ready, read_when_ready, read)) {
    PJRT_Error *failed = future_await(ready); /* no memory for a callback: waits */
    struct PJRT_Error_Destroy_Args destroy = {sizeof destroy, NULL, failed};
    error_destroy(&destroy);
    read_when_ready(ready, read);
  }
  future_release(ready);
  Py_END_ALLOW_THREADS
  return NULL;
}

static PyObject *layout_object(const PJRT_Buffer_MemoryLayout *layout) {
  if (layout == NULL)
    Py_RETURN_NONE;
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides)
    return Py_BuildValue("(sN)", "strides", integer_tuple(layout->strides.byte_strides,
                                                          layout->strides.num_byte_strides));
  return Py_BuildValue("(sNn)", "tiled", integer_tuple(layout->tiled.minor_to_major,
                                                       layout->tiled.minor_to_major_size),
                       (Py_ssize_t)layout->tiled.num_tiles);
}

/* Begins a read of bytes from an offset, or (offset -1) of the array in a layout. */
static PJRT_Error *begin_read(PJRT_Buffer *buffer, const PJRT_Buffer_MemoryLayout *layout,
                              int64_t offset, void *target, size_t size, const char *function,
                              Future **done) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, function);
  if (error != NULL)
    return error;
  Read read = {buffer, NULL, target, size, NULL};
  read.layout = offset < 0 ? layout_object(layout)
                           : Py_BuildValue("(sL)", "raw", (long long)offset);
  error = read.layout == NULL ? take_exception(function) : run_or_wait(&read, function, done);
  Py_XDECREF(read.layout);
  leave_python(&entry);
  return error;
}

/* The same, but returns an event. */
static PJRT_Error *answer_read(PJRT_Buffer *buffer, const PJRT_Buffer_MemoryLayout *layout,
                               int64_t offset, void *target, size_t size, const char *function,
                               PJRT_Event **event) {
  Future *done;
  PJRT_Error *error = begin_read(buffer, layout, offset, target, size, function, &done);
  if (error != NULL)
    return error;
  *event = make_event(done);
  return *event ? NULL : no_host_memory();
}

/* A read may wait for contents that are not ready; this refuses only contents that can never be
   ready. */
static PJRT_Error *require_alive(PJRT_Buffer *buffer, const char *function) {
  return buffer->is_deleted ? require_contents(buffer, function) : NULL;
}

static PJRT_Error *to_host(struct PJRT_Buffer_ToHostBuffer_Args *args) {
  static const char function[] = "Buffer_ToHostBuffer";
  PJRT_Buffer *buffer = args->src;
  if (args->dst == NULL) {
    args->dst_size = buffer->size;
    return NULL;
  }
  PJRT_Error *error = require_alive(buffer, function);
  if (error != NULL)
    return error;
  if (args->dst_size < buffer->size)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_%s: the array has %zu bytes; dst has room for %zu", function,
                        buffer->size, args->dst_size);
  return answer_read(buffer, args->host_layout, -1, args->dst, args->dst_size, function,
                     &args->event);
}

static PJRT_Error *check_range(PJRT_Buffer *buffer, int64_t offset, int64_t size,
                               const char *function) {
  PJRT_Error *error = require_alive(buffer, function);
  if (error != NULL)
    return error;
  if (offset < 0 || size < 0 || (size_t)offset > buffer->size ||
      (size_t)size > buffer->size - (size_t)offset)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "PJRT_%s: %lld bytes from %lld on are outside of the array's %zu bytes",
                        function, (long long)size, (long long)offset, buffer->size);
  return NULL;
}

static PJRT_Error *copy_raw(struct PJRT_Buffer_CopyRawToHost_Args *args) {
  static const char function[] = "Buffer_CopyRawToHost";
  PJRT_Error *error = check_range(args->buffer, args->offset, args->transfer_size, function);
  if (error != NULL)
    return error;
  return answer_read(args->buffer, NULL, args->offset, args->dst, (size_t)args->transfer_size,
                     function, &args->event);
}

typedef struct {
  PJRT_Buffer *buffer;
  int64_t offset;
  size_t size;
  Future *done;
} Destination;

static void free_destination(Destination *wanted) {
  buffer_drop_hold(wanted->buffer);
  buffer_release(wanted->buffer);
  future_release(wanted->done);
  free(wanted);
}

/* The host calls this once: with the memory, or with an error. */
static void destination_is_known(PJRT_Buffer_CopyRawToHostFuture_Callback_Args *args) {
  Destination *wanted = args->callback_data;
  Future *read = NULL;
  PJRT_Error *error =
      args->error_code != PJRT_Error_Code_OK
          ? make_error(args->error_code, args->error_message, args->error_message_size)
          : begin_read(wanted->buffer, NULL, wanted->offset, args->dst, wanted->size,
                       "Buffer_CopyRawToHostFuture", &read);
  if (error != NULL)
    complete_with(wanted->done, error);
  else
    future_follow(wanted->done, read);
  future_release(read);
  free_destination(wanted);
}

static PJRT_Error *copy_raw_later(struct PJRT_Buffer_CopyRawToHostFuture_Args *args) {
  static const char function[] = "Buffer_CopyRawToHostFuture";
  PJRT_Error *error = check_range(args->buffer, args->offset, args->transfer_size, function);
  if (error != NULL)
    return error;
  Destination *wanted = malloc(sizeof *wanted);
  Future *done = future_new();
  if (wanted == NULL || done == NULL || !buffer_hold(args->buffer)) {
    free(wanted);
    future_release(done);
    return no_host_memory();
  }
  *wanted = (Destination){buffer_share(args->buffer), args->offset, (size_t)args->transfer_size,
                          done};
  args->event = make_event(future_share(done));
  if (args->event == NULL) {
    free_destination(wanted);
    return no_host_memory();
  }
  args->callback_data = wanted;
  args->future_ready_callback = destination_is_known;
  return NULL;
}

void fill_reads(PJRT_Api *api) {
  api->Buffer_ToHostBuffer = to_host;
  api->Buffer_CopyRawToHost = copy_raw;
  api->Buffer_CopyRawToHostFuture = copy_raw_later;
}
