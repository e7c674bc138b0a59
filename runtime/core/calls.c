/* Calls: the base of jitted functions, which finds the runner of a call with arrays and host
   values, also within built-in containers and beside static values.

   Any other call, and one whose runner is not there yet, is that of the method `_call_in_python`. */
#include "core.h"

PyTypeObject *Calls_Type;

typedef struct {
  PyObject_HEAD
  PyObject *runners;                    /* dict: (settings, *signatures) to a runner */
  PyObject *static_nums, *static_names; /* sets of those arguments; NULL for none */
} Calls;

static PyObject *trace_state; /* its attribute `trace` is None unless this thread traces */
static PyObject *filter;      /* filter(error): takes plugrt's frames out of its traceback */
static PyObject *trace_name, *python_name;

static PyObject *call_in_python(PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *method = PyObject_GetAttr(self, python_name);
  PyObject *made = method ? PyObject_Call(method, args, kwargs) : NULL;
  Py_XDECREF(method);
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

/* Sets the runner of a call with these values, NULL if there is none yet; `form` is NULL where the
   values are all there is of it. `avals` is room. */
static int find(Calls *self, const CallForm *form, PyObject *const *values, PyObject **avals,
                Py_ssize_t count, PyObject **found) {
  int plain = !form || (form->structure == Py_None && !PyTuple_Size(form->statics));
  Py_ssize_t head = plain ? 1 : 3;
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
  PyObject *key = ready == count ? PyTuple_New(count + head) : NULL;
  if (!key) {
    while (ready) Py_DECREF(avals[--ready]);
    Py_DECREF(token);
    return PyErr_Occurred() ? -1 : 0;
  }
  PyTuple_SetItem(key, 0, token);
  if (!plain) {
    PyTuple_SetItem(key, 1, Py_NewRef(form->structure));
    PyTuple_SetItem(key, 2, Py_NewRef(form->statics));
  }
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SetItem(key, i + head, avals[i]);
  *found = PyDict_GetItemWithError(self->runners, key);
  Py_XINCREF(*found); /* another thread may evict it */
  Py_DECREF(key);
  return !*found && PyErr_Occurred() ? -1 : 0;
}

static int is_known(PyObject *value) {
  if (Py_TYPE(value) == array_class) return ((Array *)value)->signature != NULL;
  return is_host_value(value);
}

/* Calls with values, where a runner is there for them: DONE, with what it made, or NULL and its
   exception. `room` is for as many. */
static int run_values(Calls *self, const CallForm *form, PyObject *given, PyObject *const *values,
                      PyObject **room, Py_ssize_t count, PyObject **made) {
  PyObject *runner;
  for (Py_ssize_t i = 0; i < count; i++)
    if (!is_known(values[i])) return NOT_HERE;
  if (find(self, form, values, room, count, &runner)) return FAILED;
  if (!runner) return NOT_HERE;
  *made = run_any(runner, given, values, count);
  Py_DECREF(runner);
  if (!*made) filter_error();
  return DONE;
}

/* Calls with the values in a tuple, or in what was taken apart. */
static int call_values(Calls *self, const CallForm *form, PyObject *args, PyObject **made) {
  Py_ssize_t count = form ? form->count : PyTuple_Size(args);
  PyObject *on_stack[2 * ON_STACK], **room = on_stack;
  if (count > ON_STACK && !(room = PyMem_Malloc(2 * count * sizeof *room))) {
    PyErr_NoMemory();
    return FAILED;
  }
  PyObject **values = form ? form->leaves : room + count;
  for (Py_ssize_t i = 0; !form && i < count; i++) values[i] = PyTuple_GetItem(args, i);
  int state = run_values(self, form, form ? NULL : args, values, room, count, made);
  if (room != on_stack) PyMem_Free(room);
  return state;
}

/* Calls with containers, keywords or static arguments. */
static int call_taken_apart(Calls *self, PyObject *args, PyObject *kwargs, PyObject **made) {
  CallForm form;
  int state = call_form_take(&form, args, kwargs, self->static_nums, self->static_names);
  if (state != DONE) return state;
  state = call_values(self, &form, NULL, made);
  call_form_drop(&form);
  return state;
}

static PyObject *calls_call(Calls *self, PyObject *args, PyObject *kwargs) {
  int state = self->runners && trace_state ? is_tracing() : 1;
  if (state < 0) return NULL;
  if (state) return call_in_python((PyObject *)self, args, kwargs);
  PyObject *made = NULL;
  if (self->static_nums || self->static_names || (kwargs && PyDict_Size(kwargs)))
    state = NOT_HERE;
  else
    state = call_values(self, NULL, args, &made);
  if (state == NOT_HERE) state = call_taken_apart(self, args, kwargs, &made);
  if (state == DONE) return made;
  if (state == FAILED) { /* a static value without a hash, say, which Python refuses by its name */
    PyObject *error = take_exception();
    if (!error) return NULL;
    Py_DECREF(error);
  }
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
  Py_XDECREF(old);
  return 0;
}

static int calls_traverse(Calls *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->runners);
  Py_VISIT(self->static_nums);
  Py_VISIT(self->static_names);
  return 0;
}

static int calls_clear(Calls *self) {
  Py_CLEAR(self->runners);
  Py_CLEAR(self->static_nums);
  Py_CLEAR(self->static_names);
  return 0;
}

static void calls_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  calls_clear((Calls *)object);
  free_object(object);
}

/* (numbers, names), frozensets. */
static PyObject *set_statics(Calls *self, PyObject *args) {
  PyObject *nums, *names;
  if (!PyArg_ParseTuple(args, "O!O!", &PyFrozenSet_Type, &nums, &PyFrozenSet_Type, &names))
    return NULL;
  if (self->static_nums || self->static_names) {
    PyErr_SetString(PyExc_TypeError, "static arguments are set once");
    return NULL;
  }
  if (PySet_Size(nums)) self->static_nums = Py_NewRef(nums);
  if (PySet_Size(names)) self->static_names = Py_NewRef(names);
  Py_RETURN_NONE;
}

static PyMethodDef calls_methods[] = {
    {"_set_statics", (PyCFunction)set_statics, METH_VARARGS,
     "_set_statics(numbers, names): which arguments are static."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef calls_getset[] = {
    {"_runners", (getter)get_runners, (setter)set_runners,
     "dict: the settings and the signatures of a call's arrays, to the runner.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot calls_slots[] = {
    {Py_tp_doc, "The base of jitted functions and of compiled ones."},
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
  trace_name = PyUnicode_InternFromString("trace");
  python_name = PyUnicode_InternFromString("_call_in_python");
  Calls_Type = type_of(module, &calls_spec);
  return trace_name && python_name && Calls_Type ? 0 : -1;
}

PyObject *set_call_hooks(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *state, *filtering, *static_key;
  if (!PyArg_ParseTuple(args, "OOO", &state, &filtering, &static_key)) return NULL;
  if (set_static_key(static_key)) return NULL;
  trace_state = Py_NewRef(state); /* kept for ever, as the classes are */
  filter = Py_NewRef(filtering);
  Py_RETURN_NONE;
}
