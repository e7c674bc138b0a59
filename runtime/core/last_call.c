/* LastCall: the runner of a function's last call, for the next one with arguments of the same types.

   It is found without a key and its hash, and without taking the call apart. Kept are calls without
   containers, whose static arguments last: the same object is always the same value. */
#include "core.h"

static LastCall *kept; /* all that have a runner, from the newest on */

static void unlink_call(LastCall *self) {
  if (self->before) self->before->after = self->after;
  else kept = self->after;
  if (self->after) self->after->before = self->before;
  self->before = self->after = NULL;
}

void last_call_forget(LastCall *self) {
  self->candidate = NULL;
  if (!self->runner) return;
  unlink_call(self);
  PyObject *token = self->token, *runner = self->runner;
  CallPart *parts = self->parts;
  Py_ssize_t count = self->positional + self->named;
  self->token = self->runner = NULL;
  self->parts = NULL;
  for (Py_ssize_t i = 0; i < count; i++) {
    Py_XDECREF(parts[i].name);
    Py_XDECREF(parts[i].fixed);
    Py_XDECREF(parts[i].aval);
  }
  PyMem_Free(parts);
  Py_DECREF(token);
  Py_DECREF(runner);
}

int last_call_visit(LastCall *self, visitproc visit, void *arg) {
  if (!self->runner) return 0;
  Py_VISIT(self->token);
  Py_VISIT(self->runner);
  for (Py_ssize_t i = 0; i < self->positional + self->named; i++) {
    Py_VISIT(self->parts[i].name);
    Py_VISIT(self->parts[i].fixed);
    Py_VISIT(self->parts[i].aval);
  }
  return 0;
}

PyObject *forget_runners(PyObject *module, PyObject *runners) {
  (void)module;
  LastCall *call = kept;
  while (call) { /* from the first one on again after one that was let go: Python may have run */
    if (call->runners != runners) {
      call = call->after;
    } else {
      last_call_forget(call);
      call = kept;
    }
  }
  Py_RETURN_NONE;
}

/* Whether an argument is as the last one was in its place. */
static int is_alike(const CallPart *part, PyObject *value, PyObject *token) {
  if (part->fixed) return is_same_lasting(part->fixed, value);
  if (Py_TYPE(value) == array_class) return ((Array *)value)->signature == part->aval;
  if (value == Py_None) return (PyObject *)Py_TYPE(value) == part->aval;
  return known_host_aval(value, token) == part->aval;
}

PyObject *last_call_find(const LastCall *self, const Call *call, PyObject **values,
                         Py_ssize_t *count) {
  PyObject *token = call->token;
  if (self->token != token) return NULL;
  Py_ssize_t given = PyTuple_Size(call->args), named = call->kwargs ? PyDict_Size(call->kwargs) : 0;
  if (given != self->positional || named != self->named) return NULL;
  const CallPart *part = self->parts;
  Py_ssize_t taken = 0, at = 0;
  PyObject *key, *value;
  for (Py_ssize_t i = 0; i < given; i++, part++) {
    value = PyTuple_GetItem(call->args, i);
    if (!is_alike(part, value, token)) return NULL;
    if (!part->fixed) values[taken++] = value;
  }
  while (named-- && PyDict_Next(call->kwargs, &at, &key, &value)) {
    if (key != part->name || !is_alike(part, value, token)) return NULL;
    if (!part->fixed) values[taken++] = value;
    part++;
  }
  *count = taken;
  return Py_NewRef(self->runner);
}

/* Fills in one argument; whether it is of a kind that is kept. */
static int fill_part(CallPart *part, PyObject *name, PyObject *value, int fixed, PyObject *aval) {
  if (fixed ? !is_lasting(value) : !aval) return 0;
  part->name = name ? Py_NewRef(name) : NULL;
  part->fixed = fixed ? Py_NewRef(value) : NULL;
  part->aval = fixed ? NULL : Py_NewRef(aval);
  return 1;
}

/* Whether all were filled in; `filled` are to be let go of else. */
static int fill(CallPart *parts, PyObject *args, PyObject *kwargs, const Statics *statics,
                PyObject *const *avals, Py_ssize_t count, Py_ssize_t *filled) {
  Py_ssize_t next = 0, at = 0;
  PyObject *key, *value;
  for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++) {
    int fixed = is_static(statics, NULL, i);
    if (fixed < 0) return 0;
    PyObject *aval = fixed || next == count ? NULL : avals[next++];
    if (!fill_part(&parts[*filled], NULL, PyTuple_GetItem(args, i), fixed, aval)) return 0;
    ++*filled;
  }
  while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
    if (!PyUnicode_CheckExact(key)) return 0; /* its class may be Python's */
    int fixed = is_static(statics, key, 0);
    if (fixed < 0) return 0;
    PyObject *aval = fixed || next == count ? NULL : avals[next++];
    if (!fill_part(&parts[*filled], key, value, fixed, aval)) return 0;
    ++*filled;
  }
  return next == count;
}

void last_call_keep(LastCall *self, const Call *call, const Statics *statics,
                    PyObject *const *avals, Py_ssize_t count, PyObject *runners, PyObject *runner) {
  PyObject *args = call->args, *kwargs = call->kwargs;
  int again = self->candidate == runner && !self->runner;
  if (self->runner) last_call_forget(self);
  self->candidate = runner;
  if (!again) return; /* functions that are called with types in turn would pay each time */
  Py_ssize_t positional = PyTuple_Size(args), named = kwargs ? PyDict_Size(kwargs) : 0, filled = 0;
  CallPart *parts = PyMem_Calloc(positional + named + 1, sizeof *parts);
  if (!parts) return;
  int whole = fill(parts, args, kwargs, statics, avals, count, &filled);
  if (PyErr_Occurred()) PyErr_Clear();
  if (!whole || filled != positional + named || self->runner) { /* kept meanwhile, by Python */
    while (filled--) {
      Py_XDECREF(parts[filled].name);
      Py_XDECREF(parts[filled].fixed);
      Py_XDECREF(parts[filled].aval);
    }
    PyMem_Free(parts);
    return;
  }
  self->parts = parts;
  self->positional = positional;
  self->named = named;
  self->token = Py_NewRef(call->token);
  self->runner = Py_NewRef(runner);
  self->runners = runners;
  self->after = kept;
  if (kept) kept->before = self;
  kept = self;
}
