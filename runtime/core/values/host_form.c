/* HostForm: the dtype and shape of NumPy arrays that are made over existing memory.

   It uses functions of NumPy's C API, as a call of numpy.ndarray or numpy.asarray is a fifth of a
   small read. Each function has an index in NumPy's table that NumPy keeps in all its releases. */
#include "values/internal.h"

enum { ARRAY_CLASS = 2, DESCRIPTOR_CLASS = 3, NEW_FROM_DESCRIPTOR = 94, SET_BASE_OBJECT = 282 };
static PyTypeObject *array_type, *descriptor_class; /* numpy.ndarray and numpy.dtype */
static PyObject *(*new_from_descriptor)(PyTypeObject *, PyObject *, int, const Py_ssize_t *,
                                        const Py_ssize_t *, void *, int, PyObject *);
static int (*set_base_object)(PyObject *, PyObject *);
/* the address of arrays without elements: for NULL NumPy would allocate memory */
static char nothing;

int host_form_init(HostForm *self, PyObject *shape, PyObject *dtype) {
  if (!PyTuple_Check(shape) || !PyObject_TypeCheck(dtype, descriptor_class)) {
    PyErr_SetString(PyExc_TypeError, "arrays on the host have a tuple of dimensions, and a dtype");
    return -1;
  }
  PyObject *itemsize = PyObject_GetAttrString(dtype, "itemsize");
  Py_ssize_t bytes = itemsize ? PyLong_AsSsize_t(itemsize) : -1, stride = bytes;
  Py_XDECREF(itemsize);
  Py_ssize_t rank = PyTuple_Size(shape);
  Py_ssize_t *dims = PyErr_Occurred() ? NULL : PyMem_Malloc((2 * rank + 1) * sizeof *dims);
  for (Py_ssize_t i = rank; dims && i--; stride *= dims[i]) {
    dims[i] = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
    dims[rank + i] = stride;
  }
  if (PyErr_Occurred() || !dims) {
    PyMem_Free(dims);
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return -1;
  }
  self->dims = dims;
  self->rank = (int)rank;
  self->size = stride;
  self->itemsize = bytes;
  self->dtype = Py_NewRef(dtype);
  return 0;
}

PyObject *host_form_over(const HostForm *self, void *data, PyObject *owner) {
  PyObject *made = new_from_descriptor(array_type, Py_NewRef(self->dtype), self->rank, self->dims,
                                       self->dims + self->rank, data ? data : &nothing, 0, NULL);
  if (made && set_base_object(made, Py_NewRef(owner))) Py_CLEAR(made);
  return made;
}

enum { COLUMNS = PyBUF_F_CONTIGUOUS & ~PyBUF_STRIDES };

int host_form_suits(const HostForm *self, int flags) {
  return !(flags & PyBUF_WRITABLE) && (self->rank < 2 || !(flags & COLUMNS));
}

void host_form_fill(const HostForm *self, void *data, const char *format, Py_buffer *view, int flags) {
  int rank = flags & PyBUF_ND ? self->rank : 0; /* as in NumPy's own views */
  int has_strides = rank && (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  *view = (Py_buffer){
      .buf = data,
      .len = self->size,
      .itemsize = self->itemsize,
      .readonly = 1,
      .ndim = rank,
      .format = flags & PyBUF_FORMAT ? (char *)format : NULL,
      .shape = rank ? self->dims : NULL,
      .strides = has_strides ? self->dims + self->rank : NULL,
  };
}

void host_form_clear(HostForm *self) {
  Py_CLEAR(self->dtype);
  PyMem_Free(self->dims);
  self->dims = NULL;
}

PyObject *base_of(PyObject *host) {
  /* attributes of another class may run Python code */
  if (!host || Py_TYPE(host) != array_type) return NULL;
  PyObject *base = PyObject_GetAttrString(host, "base");
  if (!base) PyErr_Clear();
  return base;
}

int find_numpy(void) {
  PyObject *numpy = PyImport_ImportModule("numpy._core._multiarray_umath");
  PyObject *capsule = numpy ? PyObject_GetAttrString(numpy, "_ARRAY_API") : NULL;
  void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
  Py_XDECREF(numpy);
  Py_XDECREF(capsule);
  if (!table) return -1;
  array_type = table[ARRAY_CLASS];
  descriptor_class = table[DESCRIPTOR_CLASS];
  SET_FUNCTION(new_from_descriptor, table[NEW_FROM_DESCRIPTOR]);
  SET_FUNCTION(set_base_object, table[SET_BASE_OBJECT]);
  return 0;
}
