/* The state of a thread that calls depend on: the function that it traces, if any, and its
   settings, as one object, the token.

   Python keeps both in `threading.local` objects. To read an attribute of those takes as long as
   the core's own work for a launch. So the core keeps the dict with a thread's values of such an
   object, and the last token of a thread that traces nothing, until any thread changes one of
   them. */
#include "base/internal.h"

enum { PLACES = 64 };
typedef struct {
  uint64_t thread;
  PyObject *local, *values; /* references; NULL before the first use */
} Place;

typedef struct {
  uint64_t thread;
  unsigned long long change;
  PyObject *token; /* a reference; NULL before the first use */
} Found;

static PyObject *trace_state; /* its attribute `trace` is None unless this thread is tracing */
static Place of_traces[PLACES];
static PyObject *settings;  /* the attributes of `config`; "_token" is the token of a thread */
static PyObject *get_token; /* makes the token if there is none */
static Place of_tokens[PLACES];
static Found found_last[PLACES];
static unsigned long long changes; /* number of changes of traces and settings, in any thread */
static PyObject *dict_name, *trace_name, *token_name, *value_name, *guarded_name;

/* A new reference to the dict with the values of this thread. */
static PyObject *values_of(PyObject *local, Place *places) {
  /* ids of threads are never used again */
  uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
  Place *place = &places[thread % PLACES];
  if (place->local == local && place->thread == thread) return Py_NewRef(place->values);
  PyObject *values = PyObject_GetAttr(local, dict_name);
  if (!values) return NULL;
  PyObject *old_local = place->local, *old_values = place->values;
  place->thread = thread;
  place->local = Py_NewRef(local);
  place->values = Py_NewRef(values);
  Py_XDECREF(old_local);
  Py_XDECREF(old_values);
  return values;
}

/* A new reference to a value of this thread; NULL without an exception where that is None. */
static PyObject *value_of(PyObject *local, Place *places, PyObject *name) {
  PyObject *values = values_of(local, places);
  if (!values) return NULL;
  PyObject *found = PyDict_GetItemWithError(values, name);
  found = found && found != Py_None ? Py_NewRef(found) : NULL;
  Py_DECREF(values);
  return found;
}

/* As `is_tracing`, without the stored result. */
static int look_for_trace(void) {
  if (!trace_state) return 1;
  PyObject *trace = value_of(trace_state, of_traces, trace_name);
  if (!trace) return PyErr_Occurred() ? -1 : 0;
  Py_DECREF(trace);
  return 1;
}

/* The last token of this thread, a new reference; NULL after a change. */
static PyObject *found_here(void) {
  uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
  const Found *last = &found_last[thread % PLACES];
  return last->thread == thread && last->change == changes ? Py_XNewRef(last->token) : NULL;
}

int is_tracing(void) {
  uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
  const Found *last = &found_last[thread % PLACES];
  int known = last->thread == thread && last->change == changes && last->token;
  return known ? 0 : look_for_trace();
}

/* Keeps the token of this thread, which traces nothing; `since` is the number of changes before it
   was read. It is valid until the next change. */
static void keep_found(PyObject *token, unsigned long long since) {
  uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
  Found *last = &found_last[thread % PLACES];
  PyObject *old = last->token;
  last->thread = thread;
  last->change = since;
  last->token = Py_NewRef(token);
  /* last: this may run Python code, in which this or another thread comes here again */
  Py_XDECREF(old);
}

PyObject *settings_token(void) {
  PyObject *last = found_here();
  if (last) return last;
  finish_pending();
  PyObject *local = PyDict_GetItemWithError(settings, token_name);
  if (!local) return PyErr_Occurred() ? NULL : PyObject_CallNoArgs(get_token);
  Py_INCREF(local); /* another thread may replace it */
  PyObject *token = value_of(local, of_tokens, value_name);
  Py_DECREF(local);
  return token || PyErr_Occurred() ? token : PyObject_CallNoArgs(get_token);
}

PyObject *token_outside_traces(void) {
  PyObject *known = found_here();
  if (known) return known;
  finish_pending();
  unsigned long long before = changes;
  if (look_for_trace()) return NULL;
  PyObject *token = settings_token();
  if (token && !is_pending()) keep_found(token, before);
  return token;
}

int is_guarded(void) {
  PyObject *token = settings_token();
  PyObject *guarded = token ? PyObject_GetAttr(token, guarded_name) : NULL;
  int answer = guarded ? PyObject_IsTrue(guarded) : -1;
  Py_XDECREF(token);
  Py_XDECREF(guarded);
  return answer;
}

void note_change(void) { changes++; }

PyObject *change_surroundings(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *object, *name, *value;
  if (!PyArg_ParseTuple(args, "OOO", &object, &name, &value)) return NULL;
  changes++; /* before the old value is freed: its finalizer may read the state */
  int state = PyObject_SetAttr(object, name, value);
  changes++; /* also after a failure: a finalizer may have read the old state */
  if (state) return NULL;
  Py_RETURN_NONE;
}

PyObject *set_trace_state(PyObject *module, PyObject *state) {
  (void)module;
  dict_name = PyUnicode_InternFromString("__dict__");
  trace_name = PyUnicode_InternFromString("trace");
  if (!dict_name || !trace_name) return NULL;
  changes++;
  trace_state = Py_NewRef(state); /* kept for ever, as the classes are */
  Py_RETURN_NONE;
}

PyObject *set_settings_hooks(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *attributes, *token;
  if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &attributes, &token)) return NULL;
  dict_name = PyUnicode_InternFromString("__dict__");
  token_name = PyUnicode_InternFromString("_token");
  value_name = PyUnicode_InternFromString("value");
  guarded_name = PyUnicode_InternFromString("guarded");
  if (!dict_name || !token_name || !value_name || !guarded_name) return NULL;
  changes++;
  settings = Py_NewRef(attributes);
  get_token = Py_NewRef(token);
  Py_RETURN_NONE;
}
