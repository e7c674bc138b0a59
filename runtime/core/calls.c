/* Calls: the base of jitted functions, which finds the runner of a call with arrays and host values.

   Any other call, and one whose runner is not there yet, is that of the Python function. */
#include "core.h"

PyTypeObject *Calls_Type;

typedef struct {
  PyObject_HEAD
  PyObject *runners; /* dict: (settings, *signatures) to a runner */
} Calls;

static PyObject *get_token;   /* the settings of this thread, as one object */
static PyObject *trace_state; /* its attribute `trace` is None unless this thread traces */
static PyObject *call_slowly; /* call_slowly(self, *args, **kwargs) */
static PyObject *filter;      /* filter(error): takes plugrt's frames out of its traceback */
static PyObject *trace_name;

PyObject *settings_token(void) { return PyObject_CallNoArgs(get_token); }

static PyObject *call_in_python(PyObject *self, PyObject *args, PyObject *kwargs) {
  Py_ssize_t count = PyTuple_Size(args);
  PyObject *all = PyTuple_New(count + 1);
  if (!all) return NULL;
  PyTuple_SetItem(all, 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(args, i)));
  PyObject *made = PyObject_Call(call_slowly, all, kwargs);
  Py_DECREF(all);
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

/* 1 if this thread traces a function, -1 with an exception. */
static int is_tracing(void) {
  PyObject *trace = PyObject_GetAttr(trace_state, trace_name);
  if (!trace) return -1;
  Py_DECREF(trace);
  return trace != Py_None;
}

/* Sets the runner of a call with these values, NULL if there is none yet. `avals` is room. */
static int find(Calls *self, PyObject *const *values, PyObject **avals, Py_ssize_t count,
                PyObject **found) {
  *found = NULL;
  PyObject *token = settings_token();
  if (!token) return -1;
  Py_ssize_t ready = 0;
  for (; ready < count; ready++) {
    PyObject *value = values[ready];
    avals[ready] = Py_TYPE(value) == array_class ? Py_NewRef(((Array *)value)->signature)
                                                 : host_aval(value, token);
    if (!avals[ready]) break;
  }
  /* After those functions, which are Python's: other threads run in them, and the garbage collector
     would show them a tuple that is not filled yet. */
  PyObject *key = ready == count ? PyTuple_New(count + 1) : NULL;
  if (!key) {
    while (ready) Py_DECREF(avals[--ready]);
    Py_DECREF(token);
    return PyErr_Occurred() ? -1 : 0;
  }
  PyTuple_SetItem(key, 0, token);
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SetItem(key, i + 1, avals[i]);
  *found = PyDict_GetItemWithError(self->runners, key);
  Py_XINCREF(*found); /* another thread may evict it */
  Py_DECREF(key);
  return !*found && PyErr_Occurred() ? -1 : 0;
}

/* `arrays` is room for twice as many. */
static PyObject *call_arrays(Calls *self, PyObject *args, PyObject **arrays, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    arrays[i] = PyTuple_GetItem(args, i);
    int known = Py_TYPE(arrays[i]) == array_class ? ((Array *)arrays[i])->signature != NULL
                                                  : is_host_value(arrays[i]);
    if (!known) return call_in_python((PyObject *)self, args, NULL);
  }
  int tracing = is_tracing();
  if (tracing < 0) return NULL;
  if (tracing) return call_in_python((PyObject *)self, args, NULL);
  PyObject *runner;
  if (find(self, arrays, arrays + count, count, &runner)) return NULL;
  if (!runner) return call_in_python((PyObject *)self, args, NULL);
  PyObject *made = Py_TYPE(runner) == Runner_Type
                       ? runner_run(runner, args, arrays, count)
                       : PyObject_CallFunctionObjArgs(runner, args, NULL);
  Py_DECREF(runner);
  if (!made) filter_error();
  return made;
}

static PyObject *calls_call(Calls *self, PyObject *args, PyObject *kwargs) {
  Py_ssize_t count = PyTuple_Size(args);
  if ((kwargs && PyDict_Size(kwargs)) || !self->runners || !count)
    return call_in_python((PyObject *)self, args, kwargs);
  PyObject *on_stack[2 * ON_STACK];
  if (count <= ON_STACK) return call_arrays(self, args, on_stack, count);
  PyObject **arrays = PyMem_Malloc(2 * count * sizeof *arrays);
  if (!arrays) return PyErr_NoMemory();
  PyObject *made = call_arrays(self, args, arrays, count);
  PyMem_Free(arrays);
  return made;
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
  Py_XDECREF(old);
  return 0;
}

static int calls_traverse(Calls *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->runners);
  return 0;
}

static int calls_clear(Calls *self) {
  Py_CLEAR(self->runners);
  return 0;
}

static void calls_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  calls_clear((Calls *)object);
  free_object(object);
}

static PyGetSetDef calls_getset[] = {
    {"_runners", (getter)get_runners, (setter)set_runners,
     "dict: the settings and the signatures of a call's arrays, to the runner.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot calls_slots[] = {
    {Py_tp_doc, "The base of jitted functions."},
    {Py_tp_call, calls_call},
    {Py_tp_traverse, calls_traverse},
    {Py_tp_clear, calls_clear},
    {Py_tp_dealloc, calls_dealloc},
    {Py_tp_getset, calls_getset},
    {0, NULL},
};
static PyType_Spec calls_spec = {
    "plugrt._core.Calls", sizeof(Calls), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, calls_slots};

int add_calls(PyObject *module) {
  trace_name = PyUnicode_InternFromString("trace");
  Calls_Type = type_of(module, &calls_spec);
  return trace_name && Calls_Type ? 0 : -1;
}

PyObject *set_call_hooks(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *token, *state, *slowly, *filtering;
  if (!PyArg_ParseTuple(args, "OOOO", &token, &state, &slowly, &filtering)) return NULL;
  get_token = Py_NewRef(token); /* kept for ever, as the classes are */
  trace_state = Py_NewRef(state);
  call_slowly = Py_NewRef(slowly);
  filter = Py_NewRef(filtering);
  Py_RETURN_NONE;
}
