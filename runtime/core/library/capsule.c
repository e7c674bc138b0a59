/* DLPack: capsules that nobody took, which still own what they hold, and what releases a tensor.

   A consumer that refuses a capsule drops it while its error is under way. What Python is called then finds
   that error, and fails: the error is lost, and so is the memory.

   A consumer may also keep a tensor for longer than there is an interpreter, and release it from a destructor
   of the process. Python that is called then ends the process with a signal: what the exit frees is left to it. */
#include "library/library.h"

static const char UNUSED[] = "dltensor";

typedef struct Managed { /* DLManagedTensor */
  struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
  } tensor;
  void *context;
  void (*deleter)(struct Managed *);
} Managed;

static void free_capsule(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, UNUSED)) return;
  Managed *managed = PyCapsule_GetPointer(capsule, UNUSED);
  Raised raised = set_aside();
  managed->deleter(managed);
  put_back_alone(raised, NULL);
}

static void (*release_in_python)(Managed *);

static void release_tensor(Managed *managed) {
  /* While the interpreter ends, its own thread may still call Python, and frees what modules hold. */
  if (Py_IsInitialized() || PyGILState_GetThisThreadState()) release_in_python(managed);
}

PyObject *tensor_deleter(PyObject *module, PyObject *address) {
  (void)module;
  void *given = PyLong_AsVoidPtr(address);
  if (!given && PyErr_Occurred()) return NULL;
  SET_FUNCTION(release_in_python, given);
  return PyLong_FromVoidPtr((void *)release_tensor);
}

PyObject *capsule_destructor(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyLong_FromVoidPtr((void *)free_capsule);
}
