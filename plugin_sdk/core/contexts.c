/* PJRT_ExecuteContext: user data that a host passes to the handlers of custom calls of a launch. */
#include "core.h"

#include <pthread.h>

typedef struct UserData {
  struct UserData *next;
  int64_t type_id;
  void *data;
} UserData;

struct PJRT_ExecuteContext {
  const void *functions;
  _Atomic(UserData *) data; /* newest first; nothing is removed before the context is freed */
};

PJRT_Error *context_add(PJRT_ExecuteContext *context, int64_t type_id, void *data) {
  static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
  PJRT_Error *error = NULL;
  UserData *added = malloc(sizeof *added), *found;
  if (added == NULL)
    return no_host_memory();
  pthread_mutex_lock(&adding);
  for (found = context->data; found != NULL && found->type_id != type_id; found = found->next)
    ;
  *added = (UserData){context->data, type_id, data};
  if (found == NULL)
    context->data = added;
  pthread_mutex_unlock(&adding);
  if (found != NULL) {
    free(added);
    error = format_error(PJRT_Error_Code_ALREADY_EXISTS,
                         "the context of the launch has data of the type %lld already",
                         (long long)type_id);
  }
  return error;
}

PyObject *context_data(const PJRT_ExecuteContext *context) {
  UserData *each = context->data;
  if (each == NULL)
    return Py_NewRef(Py_None);
  PyObject *found = PyDict_New();
  for (; found != NULL && each != NULL; each = each->next) {
    PyObject *key = PyLong_FromLongLong(each->type_id), *value = PyLong_FromVoidPtr(each->data);
    if (key == NULL || value == NULL || PyDict_SetItem(found, key, value))
      Py_CLEAR(found);
    Py_XDECREF(key);
    Py_XDECREF(value);
  }
  return found;
}

static PJRT_Error *context_create(struct PJRT_ExecuteContext_Create_Args *args) {
  args->context = calloc(1, sizeof *args->context);
  return args->context ? NULL : no_host_memory();
}

/* The host owns the data; this frees only the list. */
static PJRT_Error *context_destroy(struct PJRT_ExecuteContext_Destroy_Args *args) {
  UserData *each = args->context == NULL ? NULL : args->context->data;
  while (each != NULL) {
    UserData *next = each->next;
    free(each);
    each = next;
  }
  free(args->context);
  return NULL;
}

void fill_contexts(PJRT_Api *api) {
  api->ExecuteContext_Create = context_create;
  api->ExecuteContext_Destroy = context_destroy;
}
