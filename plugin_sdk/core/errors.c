/* PJRT_Error: a code and a message, readable without Python. */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct PJRT_Error {
  const void *functions;
  int code;
  size_t size;
  char message[];
};

/* Returned if there is no memory for an error; never freed. */
static const char no_memory_text[] = "out of host memory";
static PJRT_Error no_memory = {.code = PJRT_Error_Code_RESOURCE_EXHAUSTED,
                               .size = sizeof no_memory_text - 1};

PJRT_Error *make_error(int code, const char *message, size_t size) {
  PJRT_Error *error = size < SIZE_MAX / 2 ? malloc(sizeof *error + size + 1) : NULL;
  if (error == NULL)
    return &no_memory;
  error->functions = NULL;
  error->code = code > 0 && code <= 16 ? code : PJRT_Error_Code_UNKNOWN;
  error->size = size;
  if (size > 0) /* an empty message may be NULL */
    memcpy(error->message, message, size);
  error->message[size] = '\0';
  atomic_fetch_add(&live_handles[LIVE_ERRORS], 1);
  return error;
}

PJRT_Error *format_error(int code, const char *format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (size < 0)
    size = 0;
  return make_error(code, message, (size_t)size < sizeof message ? (size_t)size : sizeof message - 1);
}

PJRT_Error *no_host_memory(void) { return &no_memory; }

PJRT_Error *refuse_size(const char *function, size_t found, size_t needed) {
  return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "PJRT_%s_Args of the host has %zu bytes; plugins that plugrt_sdk exports need "
                      "%zu: the host was built for an older PJRT C API than 0.%d",
                      function, found, needed, PJRT_API_OLDEST_MINOR);
}

PJRT_Error *unimplemented(const char *function) {
  return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                      "PJRT_%s is not implemented by plugins that plugrt_sdk exports", function);
}

void error_destroy(struct PJRT_Error_Destroy_Args *args) {
  if (args->error == NULL || args->error == &no_memory)
    return;
  atomic_fetch_sub(&live_handles[LIVE_ERRORS], 1);
  free(args->error);
}

/* The functions about an error return none: hosts would query that error, and so on without end.
 * They write to no field that the host's struct lacks. */

void error_message(struct PJRT_Error_Message_Args *args) {
  if (!HAS_FIELD(args, message_size))
    return;
  args->message = args->error == &no_memory ? no_memory_text : args->error->message;
  args->message_size = args->error->size;
}

PJRT_Error *error_get_code(struct PJRT_Error_GetCode_Args *args) {
  if (HAS_FIELD(args, code))
    args->code = args->error->code;
  return NULL;
}

/* Errors carry no payload. For an error from here, JAX would ask for a payload, without end. */
static PJRT_Error *error_for_each_payload(struct PJRT_Error_ForEachPayload_Args *args) {
  (void)args;
  return NULL;
}

void fill_errors(PJRT_Api *api) {
  api->Error_Destroy = error_destroy;
  api->Error_Message = error_message;
  api->Error_GetCode = error_get_code;
  api->Error_ForEachPayload = error_for_each_payload;
}
