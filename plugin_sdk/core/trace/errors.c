/* Errors: reads the errors of the library, and makes errors for calls that the tracer fails. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

typedef struct OwnError {
  const void *functions; /* NULL: since PJRT 0.107 hosts look for a table of functions here */
  struct OwnError *next;
  int code;
  const char *message;
} OwnError;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static OwnError *own_errors;

PJRT_Error *make_error(int code, const char *message) {
  OwnError *made = calloc(1, sizeof *made);
  if (made == NULL)
    abort();
  made->code = code;
  made->message = message;
  pthread_mutex_lock(&lock);
  made->next = own_errors;
  own_errors = made;
  pthread_mutex_unlock(&lock);
  return (PJRT_Error *)made;
}

static OwnError *find_own(const PJRT_Error *error, bool removes) {
  pthread_mutex_lock(&lock);
  OwnError **place = &own_errors;
  while (*place != NULL && *place != (const OwnError *)error)
    place = &(*place)->next;
  OwnError *found = *place;
  if (found != NULL && removes)
    *place = found->next;
  pthread_mutex_unlock(&lock);
  return found;
}

bool answer_error(const Call *call, PJRT_Error **result) {
  struct PJRT_Error_Message_Args *message = call->args;
  struct PJRT_Error_GetCode_Args *code = call->args;
  bool destroys = call->number == FUNCTION_Error_Destroy;
  if (!destroys && call->number != FUNCTION_Error_Message &&
      call->number != FUNCTION_Error_GetCode && call->number != FUNCTION_Error_ForEachPayload)
    return false;
  OwnError *found = call->args == NULL ? NULL : find_own(message->error, destroys);
  if (found == NULL)
    return false;
  if (destroys) {
    free(found);
  } else if (call->number == FUNCTION_Error_Message) {
    message->message = found->message;
    message->message_size = strlen(found->message);
  } else if (call->number == FUNCTION_Error_GetCode) {
    code->code = found->code;
  }
  *result = NULL;
  return true;
}

/* Without a buffer for the message, frees the error: it is from the tracer's own call. */
int read_error(const Table *table, PJRT_Error *error, char *message, size_t size) {
  struct PJRT_Error_GetCode_Args code = {.struct_size = sizeof code, .error = error};
  struct PJRT_Error_Message_Args text = {.struct_size = sizeof text, .error = error};
  struct PJRT_Error_Destroy_Args destroy = {.struct_size = sizeof destroy, .error = error};
  OwnError *own = find_own(error, false);
  if (own != NULL) {
    strncat(message, own->message, size - 1);
    return own->code;
  }
  if (message == NULL) {
    ((AnyProcedure)table->slots[FUNCTION_Error_Destroy])(&destroy);
    return 0;
  }
  ((AnyProcedure)table->slots[FUNCTION_Error_Message])(&text);
  if (text.message != NULL)
    strncat(message, text.message, text.message_size < size - 1 ? text.message_size : size - 1);
  PJRT_Error *failure = ((AnyFunction)table->slots[FUNCTION_Error_GetCode])(&code);
  return failure == NULL ? code.code : -1;
}
