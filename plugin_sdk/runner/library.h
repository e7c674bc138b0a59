/* A PJRT library: its table, its calls, and its errors. */
#ifndef PLUGRT_RUNNER_LIBRARY_H
#define PLUGRT_RUNNER_LIBRARY_H
#include <dlfcn.h>

#include "base.h"
#include "pjrt_abi.h"

enum { UNIMPLEMENTED = 12, INVALID_REPLY = 13, POISON = 0xA5, GUARD = 64, MOST_CODE = 16 };

static const PJRT_Api* api;

/* The last error: its code, 0 for none, and its message. */
static int error_code;
static char error_text[512];
/* The first function that wrote beyond its arguments. */
static char overrun[128];

static inline int set_error(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error_text, sizeof error_text, format, arguments);
  va_end(arguments);
  return error_code = code;
}

static inline bool has_slot(size_t offset) { return offset + sizeof(void*) <= api->struct_size; }

static inline void* slot_at(size_t offset) {
  void* found;
  memcpy(&found, (const char*)api + offset, sizeof found);
  return found;
}

static inline void note_guard(const char* name, const unsigned char* guard) {
  for (int i = 0; i < GUARD; i++)
    if (guard[i] != POISON && !*overrun) snprintf(overrun, sizeof overrun, "PJRT_%s", name);
}

/* An argument struct that states the size SIZE, followed by poison. */
#define ARGS(name, variable)                                             \
  struct {                                                               \
    struct PJRT_##name##_Args a;                                         \
    unsigned char guard[GUARD];                                          \
  } variable;                                                            \
  memset(&variable, 0, sizeof variable);                                 \
  memset(variable.guard, POISON, GUARD);                                 \
  variable.a.struct_size = PJRT_##name##_Args_SIZE

/* Calls a function; the value is its error's code, or 0 for success. */
#define CALL(name, variable)                                                                \
  (!has_slot(offsetof(PJRT_Api, name)) || !api->name                                        \
       ? set_error(UNIMPLEMENTED, "the table has no PJRT_" #name)                           \
       : take_guarded(#name, api->name(&variable.a), variable.guard))

static inline void destroy_error(PJRT_Error* error) {
  ARGS(Error_Destroy, destroy);
  destroy.a.error = error;
  api->Error_Destroy(&destroy.a);
  note_guard("Error_Destroy", destroy.guard);
}

static inline int read_code(const PJRT_Error* error) {
  ARGS(Error_GetCode, code);
  code.a.error = error;
  PJRT_Error* failed = api->Error_GetCode(&code.a);
  if (failed) destroy_error(failed);
  note_guard("Error_GetCode", code.guard);
  return failed ? -1 : code.a.code;
}

/* Frees an error after storing its code and its message. */
static inline int take_error(const char* name, PJRT_Error* error) {
  if (!error) return error_code = 0;
  int code = read_code(error);
  ARGS(Error_Message, said);
  said.a.error = error;
  api->Error_Message(&said.a);
  int size = said.a.message_size > 400 ? 400 : (int)said.a.message_size;
  set_error(code ? code : 2, "PJRT_%s: code %d: %.*s", name, code, size,
            said.a.message ? said.a.message : "");
  destroy_error(error);
  return error_code;
}

static inline int take_guarded(const char* name, PJRT_Error* error, const unsigned char* guard) {
  note_guard(name, guard);
  return take_error(name, error);
}

static inline int no_handle(const char* name) {
  return set_error(INVALID_REPLY, "PJRT_%s succeeded and gave no handle", name);
}

/* Waits for an event, and destroys it. */
static inline int finish(PJRT_Event* event) {
  if (!event) return 0;
  ARGS(Event_Await, wait);
  wait.a.event = event;
  int code = CALL(Event_Await, wait);
  char kept[sizeof error_text];
  memcpy(kept, error_text, sizeof kept);
  ARGS(Event_Destroy, destroy);
  destroy.a.event = event;
  CALL(Event_Destroy, destroy);
  memcpy(error_text, kept, sizeof kept);
  return error_code = code;
}

/* Loads a library and its table; returns the reason of a failure, or NULL. */
static inline const char* load(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) return dlerror();
  void* found = dlsym(handle, "GetPjrtApi");
  if (!found) return dlerror();
  const PJRT_Api* (*get)(void);
  memcpy(&get, &found, sizeof get);
  api = get();
  return api ? NULL : "GetPjrtApi() returned NULL";
}

static inline int initialize(void) {
  ARGS(Plugin_Initialize, start);
  return CALL(Plugin_Initialize, start);
}
#endif
