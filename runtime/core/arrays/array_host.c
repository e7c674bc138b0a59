/* The host copy of an array: read once, stored in the array, and returned to NumPy. After a failure
   here, Python reads again and raises the exception with its message. */
#include "arrays/internal.h"
#include "library/library.h"
#include "values/values.h"

static PyObject *host_in_python, *array_in_python; /* methods of the class derived from Array */
/* Python reads while one of these is not empty */
static PyObject *gates;
/* the class of shardings with one device: the array's contents are those of its one buffer */
static PyObject *one_device;
static PyObject *reader_name; /* attribute of the spec of a library's buffers */

/* The contents of a small buffer of a library; NULL as for `read_here`. */
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

/* The reader for arrays of this aval that another backend holds; NULL if Python has to read. */
static PyObject *reader_of(PyObject *aval) {
  PyObject *reader = aval_reader(aval);
  if (reader && Py_TYPE(reader) != FunctionReader_Type) Py_CLEAR(reader);
  return reader;
}

/* Whether the array's contents were waited for and nothing else refers to them. A launch in
   progress may be donating them as another array's, and may not end before this thread
   continues. */
static int is_there(const Array *self, PyObject *held) { return self->is_there && Py_REFCNT(held) == 2; }

/* The contents of an array of another backend; NULL as for `read_here`. */
static PyObject *read_by_functions(const Array *self, PyObject *held) {
  PyObject *reader = reader_of(self->aval);
  PyObject *host = reader ? function_reader_read(reader, held, is_there(self, held)) : NULL;
  Py_XDECREF(reader);
  return host;
}

/* The contents of an array with a `HostBuffer`; NULL as for `read_here`. */
static PyObject *read_host_buffer(const Array *self) {
  PyObject *host_buffer = Py_NewRef(self->extra), *reader = reader_of(self->aval);
  PyObject *host = reader ? function_reader_over(reader, host_buffer) : NULL;
  Py_XDECREF(reader);
  Py_DECREF(host_buffer);
  return host;
}

/* Whether the array was filled and is not deleted, the hooks for reads are set, and the thread is not
   tracing: Python records reads in a trace. May set an exception, as `read_here`. */
static int is_read_here(const Array *self) {
  int there = self->shards && self->shards != Py_None; /* Python deletes an array by setting None */
  return there && self->aval && gates && !is_tracing();
}

/* Stores the host copy of `held`, unless the array was deleted or donated meanwhile. */
static void keep_extra(Array *self, PyObject *held, PyObject *made) {
  if (self->shards != held) return;
  PyObject *old = self->extra;
  self->extra = Py_NewRef(made);
  Py_XDECREF(old);
}

/* A new reference. NULL if Python has to read, perhaps with an exception that is not derived from
   Exception. */
static PyObject *read_here(Array *self) {
  if (!is_read_here(self)) return NULL;
  int is_viewed = is_host_buffer(self->extra);
  if (self->extra && self->extra != Py_None && !is_viewed) return Py_NewRef(self->extra);
  if (any_is_filled(gates)) return NULL;
  PyObject *held = Py_NewRef(self->shards), *host; /* another thread may delete it */
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
