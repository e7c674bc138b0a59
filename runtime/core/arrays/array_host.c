/* The host copy of an array: read once, kept in it, and returned to NumPy.

   What does not succeed here, Python does, and finds what there is to say of it. */
#include "arrays/internal.h"
#include "library/library.h"
#include "values/values.h"

static PyObject *host_in_python, *array_in_python; /* the methods of the class below Array */
static PyObject *gates;                            /* while one is not empty, Python reads */
static PyObject *one_device; /* the class of shardings whose array is what its one buffer holds */
static PyObject *reader_name; /* of what a buffer of a library has */

/* The contents of a small buffer of a library; NULL as in `read_here`. */
static PyObject *read_buffer(PyObject *aval, PyObject *held) {
  PyObject *sharding = aval_sharding(aval), *host = NULL;
  int single = sharding && (PyObject *)Py_TYPE(sharding) == one_device;
  Py_XDECREF(sharding);
  if (!single || is_guarded()) return NULL;
  PyObject *spec = ((Buffer *)held)->spec;
  PyObject *reader = spec ? PyObject_GetAttr(spec, reader_name) : NULL;
  if (reader && Py_TYPE(reader) == Reader_Type) host = reader_read(reader, held);
  Py_XDECREF(reader);
  return host;
}

/* What reads arrays of the aval that another backend holds; NULL where Python does. */
static PyObject *reader_of(PyObject *aval) {
  PyObject *reader = aval_reader(aval);
  if (reader && Py_TYPE(reader) != FunctionReader_Type) Py_CLEAR(reader);
  return reader;
}

/* A launch under way may be taking what an array holds as another array's, and end only when this thread
   goes on: of what is held here once more. */
static int is_there(const Array *self, PyObject *held) { return self->is_there && Py_REFCNT(held) == 2; }

/* The contents of what another backend's array holds; NULL as in `read_here`. */
static PyObject *read_by_functions(const Array *self, PyObject *held) {
  PyObject *reader = reader_of(self->aval);
  PyObject *host = reader ? function_reader_read(reader, held, is_there(self, held)) : NULL;
  Py_XDECREF(reader);
  return host;
}

/* The contents of an array that keeps a `HostBuffer`; NULL as in `read_here`. */
static PyObject *read_host_buffer(const Array *self) {
  PyObject *host_buffer = Py_NewRef(self->extra), *reader = reader_of(self->aval);
  PyObject *host = reader ? function_reader_over(reader, host_buffer) : NULL;
  Py_XDECREF(reader);
  Py_DECREF(host_buffer);
  return host;
}

/* Whether it was filled and is not deleted, and reads have their hooks. */
static int is_read_here(const Array *self) {
  int there = self->shards && self->shards != Py_None; /* Python deletes it by setting None */
  return there && self->aval && gates;
}

/* Keeps what was read of `held`, unless the array has lost that meanwhile. */
static void keep_extra(Array *self, PyObject *held, PyObject *made) {
  if (self->shards != held) return;
  PyObject *old = self->extra;
  self->extra = Py_NewRef(made);
  Py_XDECREF(old);
}

/* A new reference; NULL where Python has to read, perhaps with an exception that is not derived from
   Exception. */
static PyObject *read_here(Array *self) {
  if (!is_read_here(self)) return NULL;
  int is_viewed = is_host_buffer(self->extra);
  if (self->extra && self->extra != Py_None && !is_viewed) return Py_NewRef(self->extra);
  if (any_is_filled(gates)) return NULL;
  PyObject *held = Py_NewRef(self->shards), *host; /* which another thread may delete */
  if (is_viewed) host = read_host_buffer(self);
  else if (PyType_IsSubtype(Py_TYPE(held), Buffer_Type)) host = read_buffer(self->aval, held);
  else host = read_by_functions(self, held);
  if (host) keep_extra(self, held, host);
  Py_DECREF(held);
  return host;
}

int array_fill_view(PyObject *object, Py_buffer *view, int flags) {
  Array *self = (Array *)object;
  if (!is_read_here(self) || any_is_filled(gates)) return NOT_HERE;
  int again = is_host_buffer(self->extra), state = NOT_HERE;
  if (self->extra && self->extra != Py_None && !again) return NOT_HERE;
  PyObject *held = Py_NewRef(self->shards), *reader = reader_of(self->aval);
  PyObject *host_buffer = NULL;
  if (again) host_buffer = Py_NewRef(self->extra);
  else if (reader) host_buffer = function_reader_acquire(reader, held, is_there(self, held));
  if (reader && host_buffer) state = function_reader_fill(reader, host_buffer, view, flags);
  if (state == DONE && !again) keep_extra(self, held, host_buffer);
  Py_XDECREF(host_buffer);
  Py_XDECREF(reader);
  Py_DECREF(held);
  return state;
}

PyObject *after_python(PyObject *made, PyObject *before) {
  if (made && before && !PyErr_GivenExceptionMatches(before, PyExc_MemoryError)) {
    Py_DECREF(made);
    raise_exception(before);
    return NULL;
  }
  Py_XDECREF(before);
  return made;
}

PyObject *array_host(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *host = read_here((Array *)self);
  if (host) return host;
  PyObject *before = take_exception();
  if (PyErr_Occurred()) return NULL;
  return after_python(PyObject_CallFunctionObjArgs(host_in_python, self, NULL), before);
}

PyObject *array_to_numpy(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  PyObject *before = NULL;
  if (!count && (!names || !PyTuple_Size(names))) {
    PyObject *host = read_here((Array *)self);
    if (host) return host;
    before = take_exception();
    if (PyErr_Occurred()) return NULL;
  }
  return after_python(call_method(array_in_python, self, args, count, names), before);
}

PyObject *set_read_hooks(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *host, *array, *buffer, *unless, *single;
  if (!PyArg_ParseTuple(args, "OOOO!O", &host, &array, &buffer, &PyTuple_Type, &unless, &single))
    return NULL;
  reader_name = PyUnicode_InternFromString("reader");
  if (!reader_name) return NULL;
  one_device = Py_NewRef(single);
  host_in_python = Py_NewRef(host); /* kept for ever, as the classes are */
  array_in_python = Py_NewRef(array);
  set_buffer_method(buffer);
  gates = Py_NewRef(unless);
  Py_RETURN_NONE;
}
