/* Calls: the base class of operations, jitted functions and compiled functions. It finds the runner
   of a call. Arguments are arrays and host values, also in built-in containers and with static
   arguments.

   If the call has no runner yet, `_call_read` makes the call with the leaves and structure that
   were read here. `_call_in_python` makes any call that this file does not handle. */
#include "calls/internal.h"
#include "launches/launches.h"
#include "arrays/arrays.h"
#include "values/values.h"

static PyTypeObject *Calls_Type;

typedef struct {
  PyObject_HEAD
  PyObject *runners; /* dict: from (settings, structure, *avals) to a runner */
  Statics statics;
  LastCall last;
} Calls;

static PyObject *filter; /* filter(error): removes plugrt's frames from the traceback */
static PyObject *python_name, *read_name;

static PyObject *call_in_python(PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *method = PyObject_GetAttr(self, python_name);
  PyObject *made = method ? PyObject_Call(method, args, kwargs) : NULL;
  Py_XDECREF(method);
  return made;
}

/* Calls Python with the leaves and structure that were read here, so that the call is read once. */
static PyObject *call_read(PyObject *self, const Call *call, const FlatCall *flat) {
  PyObject *leaves = vector_list(&flat->leaves), *nodes = vector_list(&flat->nodes);
  PyObject *method = leaves && nodes ? PyObject_GetAttr(self, read_name) : NULL;
  PyObject *made = method ? PyObject_CallFunctionObjArgs(
                                method, call->args, call->kwargs ? call->kwargs : Py_None, call->token,
                                leaves, flat->structure, flat->statics ? flat->statics : Py_None,
                                nodes, NULL)
                          : NULL;
  Py_XDECREF(method);
  Py_XDECREF(leaves);
  Py_XDECREF(nodes);
  return made;
}

static void filter_error(void) {
  PyObject *error = take_exception();
  if (!error) return;
  PyObject *done = PyObject_CallFunctionObjArgs(filter, error, NULL);
  if (!done) {
    Py_DECREF(error);
    return;
  }
  Py_DECREF(done);
  raise_exception(error);
}

/* The runner for a key, a new reference; NULL, perhaps with an exception. */
static PyObject *look_up(Calls *self, PyObject *key) {
  return Py_XNewRef(PyDict_GetItemWithError(self->runners, key)); /* another thread may evict it */
}

/* Keeps the parts of a call for the next one, if its runner is still in the dict once they are
   made: the hash of a key or of a class may run Python code meanwhile. */
static void keep_parts(Calls *self, const Call *call, const FlatCall *flat, PyObject *key,
                       PyObject *const *avals, Py_ssize_t count, PyObject *runner) {
  CallParts *parts = call_parts_make(call, flat, &self->statics, avals, count);
  PyObject *again = parts ? look_up(self, key) : NULL;
  if (again == runner) last_call_keep(&self->last, call->token, parts, self->runners, runner);
  else call_parts_drop(parts);
  Py_XDECREF(again);
}

/* Sets the runner of a call with these values, NULL if there is none yet. */
static int find(Calls *self, const Call *call, const FlatCall *flat, PyObject *const *values,
                PyObject **avals, Py_ssize_t count, PyObject **found) {
  *found = NULL;
  PyObject *key = call_key(call, flat, values, avals, count);
  if (!key) return PyErr_Occurred() ? -1 : 0;
  *found = look_up(self, key);
  if (*found && last_call_is_repeated(&self->last, *found)) {
    keep_parts(self, call, flat, key, avals, count, *found);
    if (PyErr_Occurred() && !drop_exception()) Py_CLEAR(*found);
  }
  Py_DECREF(key);
  return !*found && PyErr_Occurred() ? -1 : 0;
}

enum { MISSED = 100 }; /* a further result code: all values are known, but there is no runner */

static int is_known(PyObject *value) {
  if (Py_TYPE(value) == array_class) return ((Array *)value)->aval != NULL;
  return is_host_value(value);
}

/* Runs a call if there is a runner for its values: DONE, with the result, or NULL and an exception.
   MISSED if there is no runner, NOT_HERE if a value is unknown. `room` is for as many values. */
static int run_values(Calls *self, const Call *call, const FlatCall *flat, PyObject *const *values,
                      PyObject **room, Py_ssize_t count, PyObject **made) {
  PyObject *runner;
  for (Py_ssize_t i = 0; i < count; i++)
    if (!is_known(values[i])) return NOT_HERE;
  if (find(self, call, flat, values, room, count, &runner)) return FAILED;
  if (!runner) return MISSED;
  *made = run_any(runner, flat ? NULL : call->args, values, count);
  Py_DECREF(runner);
  if (!*made) filter_error();
  return DONE;
}

/* Runs a call with its positional arguments, or with the values of a flattened call. */
static int call_values(Calls *self, const Call *call, const FlatCall *flat, PyObject **made) {
  Py_ssize_t count = flat ? flat->leaves.count : PyTuple_Size(call->args);
  PyObject *on_stack[2 * ON_STACK], **room = ROOM(on_stack, 2 * count);
  if (!room) return FAILED;
  PyObject **values = flat ? flat->leaves.items : room + count;
  for (Py_ssize_t i = 0; !flat && i < count; i++) values[i] = PyTuple_GetItem(call->args, i);
  int state = run_values(self, call, flat, values, room, count, made);
  if (room != on_stack) PyMem_Free(room);
  return state;
}

/* Runs a call with containers, keywords or static arguments, or without a runner. */
static int flatten_and_call(Calls *self, const Call *call, int missed, PyObject **made) {
  FlatCall flat;
  int state = flatten_call(&flat, call->args, call->kwargs, &self->statics);
  if (flat.raised) filter_error(); /* as for a container that Python opens */
  if (state != DONE) return flat.raised ? DONE : state;
  state = missed ? MISSED : call_values(self, call, &flat, made);
  if (state == MISSED || state == NOT_HERE || (state == FAILED && leave_to_python())) {
    *made = call_read((PyObject *)self, call, &flat);
    state = DONE;
  }
  flat_call_drop(&flat);
  return state;
}

/* Runs the runner of the last call if this call matches it. `room` is for its values. */
static int call_like_last(Calls *self, const Call *call, PyObject **room, PyObject **made) {
  const CallParts *parts = self->last.parts;
  Py_ssize_t count = parts->values;
  int owned = parts->owned, plain = !owned && count == parts->positional;
  PyObject *runner;
  int state = last_call_find(&self->last, call, room, &runner);
  if (state != DONE) return state;
  *made = run_any(runner, plain ? call->args : NULL, room, count);
  for (Py_ssize_t i = 0; owned && i < count; i++) Py_DECREF(room[i]);
  Py_DECREF(runner);
  if (!*made) filter_error();
  return DONE;
}

static int call_again(Calls *self, const Call *call, PyObject **made) {
  if (!self->last.runner) return NOT_HERE;
  PyObject *on_stack[ON_STACK], **room = ROOM(on_stack, self->last.parts->values);
  if (!room) return FAILED;
  int state = call_like_last(self, call, room, made);
  if (room != on_stack) PyMem_Free(room);
  return state;
}

static int call_here(Calls *self, const Call *call, PyObject **made) {
  int state = call_again(self, call, made);
  if (state != NOT_HERE) return state;
  if (!self->statics.nums && !self->statics.names && !(call->kwargs && PyDict_Size(call->kwargs)))
    state = call_values(self, call, NULL, made);
  return state == DONE || state == FAILED ? state
                                          : flatten_and_call(self, call, state == MISSED, made);
}

static PyObject *calls_call(Calls *self, PyObject *args, PyObject *kwargs) {
  PyObject *made = NULL;
  Call call = {self->runners ? token_outside_traces() : NULL, args, kwargs};
  int state = NOT_HERE;
  if (call.token) state = call_here(self, &call, &made);
  else if (PyErr_Occurred()) state = FAILED;
  Py_XDECREF(call.token);
  if (state == DONE) return made;
  if (state == FAILED && !leave_to_python()) return NULL;
  return call_in_python((PyObject *)self, args, kwargs);
}

static PyObject *get_runners(Calls *self, void *unused) {
  (void)unused;
  return Py_NewRef(self->runners ? self->runners : Py_None);
}

static int set_runners(Calls *self, PyObject *value, void *unused) {
  (void)unused;
  if (!value || !PyDict_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "the runners of calls are a dict");
    return -1;
  }
  PyObject *old = self->runners;
  self->runners = Py_NewRef(value);
  last_call_forget(&self->last);
  Py_XDECREF(old);
  return 0;
}

static int calls_traverse(Calls *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->runners);
  Py_VISIT(self->statics.nums);
  Py_VISIT(self->statics.names);
  return last_call_visit(&self->last, visit, arg);
}

static int calls_clear(Calls *self) {
  Py_CLEAR(self->runners);
  Py_CLEAR(self->statics.nums);
  Py_CLEAR(self->statics.names);
  last_call_forget(&self->last);
  return 0;
}

static void calls_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  calls_clear((Calls *)object);
  free_object(object);
}

/* (numbers, names): two frozensets. */
static PyObject *set_statics(Calls *self, PyObject *args) {
  PyObject *nums, *names;
  if (!PyArg_ParseTuple(args, "O!O!", &PyFrozenSet_Type, &nums, &PyFrozenSet_Type, &names))
    return NULL;
  if (self->statics.nums || self->statics.names) {
    PyErr_SetString(PyExc_TypeError, "static arguments are set once");
    return NULL;
  }
  if (PySet_Size(nums)) self->statics.nums = Py_NewRef(nums);
  if (PySet_Size(names)) self->statics.names = Py_NewRef(names);
  Py_RETURN_NONE;
}

/* (args, kwargs, ...): reads the call again, for classes without this method. */
static PyObject *read_again(PyObject *self, PyObject *given) {
  PyObject *kwargs = PyTuple_GetItem(given, 1);
  return call_in_python(self, PyTuple_GetItem(given, 0), kwargs == Py_None ? NULL : kwargs);
}

static PyMethodDef calls_methods[] = {
    {"_call_read", read_again, METH_VARARGS,
     "_call_read(args, kwargs, token, leaves, structure, statics, nodes): the call, read here."},
    {"_set_statics", (PyCFunction)set_statics, METH_VARARGS,
     "_set_statics(numbers, names): which arguments are static."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef calls_getset[] = {
    {"_runners", (getter)get_runners, (setter)set_runners,
     "dict: the settings, the structure and the avals of a call, to the runner.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot calls_slots[] = {
    {Py_tp_doc, "The base of plugrt.execution.launches.call_object.CallObject."},
    {Py_tp_call, calls_call},
    {Py_tp_traverse, calls_traverse},
    {Py_tp_clear, calls_clear},
    {Py_tp_dealloc, calls_dealloc},
    {Py_tp_getset, calls_getset},
    {Py_tp_methods, calls_methods},
    {0, NULL},
};
static PyType_Spec calls_spec = {
    "plugrt._core.Calls", sizeof(Calls), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, calls_slots};

int add_calls(PyObject *module) {
  python_name = PyUnicode_InternFromString("_call_in_python");
  Calls_Type = type_of(module, &calls_spec);
  read_name = PyUnicode_InternFromString("_call_read");
  return python_name && read_name && Calls_Type ? 0 : -1;
}

PyObject *set_call_hooks(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *filtering, *static_key, *classes, *order_keys;
  if (!PyArg_ParseTuple(args, "OOO!O", &filtering, &static_key, &PyDict_Type, &classes, &order_keys))
    return NULL;
  set_order_keys(order_keys);
  set_static_key(static_key);
  set_node_classes(classes);
  filter = Py_NewRef(filtering); /* kept for ever, as the classes are */
  Py_RETURN_NONE;
}
