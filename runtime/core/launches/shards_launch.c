/* Launches of a ShardsLauncher on several devices, on all at once or one after the other. */
#include "launches/internal.h"
#include "arrays/arrays.h"

static PyObject *raw_name, *parts_name, *ends_name, *type_name, *place_name;

int set_shards_names(void) {
  raw_name = PyUnicode_InternFromString("raw");
  parts_name = PyUnicode_InternFromString("_parts");
  ends_name = PyUnicode_InternFromString("_ends");
  type_name = PyUnicode_InternFromString("type");
  place_name = PyUnicode_InternFromString("place");
  return raw_name && parts_name && ends_name && type_name && place_name ? 0 : -1;
}

/* 1 if the array, a new reference, is not deleted; else drops the reference. */
static int is_alive(ShardsLauncher *self, PyObject *array) {
  PyObject *answer = array ? PyObject_CallFunctionObjArgs(self->is_deleted, array, NULL) : NULL;
  int deleted = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  if (deleted) Py_XDECREF(array);
  return deleted < 0 ? -1 : !deleted;
}

/* Sets the arrays of an argument, one per launch, `stride` apart: DONE. */
static int take_argument(ShardsLauncher *self, PyObject *shards, PyObject *parts, PyObject **taken,
                         Py_ssize_t stride) {
  Py_ssize_t launches = PyTuple_Size(self->launches), count = 1;
  if (parts != Py_None) {
    count = PySequence_Size(parts);
    if (count < 0) return FAILED;
  } else if (launches > 1) {
    return NOT_HERE; /* an array over several devices is not split: that costs more than it saves */
  }
  if (launches > 1 && count != launches) return NOT_HERE;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *array =
        parts == Py_None ? PyObject_GetAttr(shards, raw_name) : PySequence_GetItem(parts, i);
    int alive = is_alive(self, array);
    if (alive < 1) return alive < 0 ? FAILED : NOT_HERE;
    if (launches > 1 || parts == Py_None) taken[i * stride] = array;
    else Py_DECREF(array);
  }
  if (launches == 1 && parts != Py_None && !(taken[0] = PyObject_GetAttr(shards, raw_name)))
    return FAILED;
  return DONE;
}

/* Whether an attribute is the given object; -1 with an exception. */
static int has(PyObject *object, PyObject *name, PyObject *wanted) {
  PyObject *found = PyObject_GetAttr(object, name);
  Py_XDECREF(found);
  return found ? found == wanted : -1;
}

/* Sets the arrays of all arguments, one row per launch: DONE. */
static int take_arguments(ShardsLauncher *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject **taken) {
  if (count != PyTuple_Size(self->parameters)) return NOT_HERE;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (Py_TYPE(arguments[i]) != self->cls) return NOT_HERE;
    int fits = has(arguments[i], place_name, self->place);
    if (fits == 1) fits = has(arguments[i], type_name, PyTuple_GetItem(self->parameters, i));
    if (fits < 1) return fits < 0 ? FAILED : NOT_HERE;
    PyObject *parts = PyObject_GetAttr(arguments[i], parts_name);
    if (!parts) return FAILED;
    int state = take_argument(self, arguments[i], parts, taken + i, count);
    Py_DECREF(parts);
    if (state != DONE) return state;
  }
  for (Py_ssize_t i = PyTuple_Size(self->launches); i--;)
    if (!is_donated_once(&self->head.donated, taken + i * count, count)) return NOT_HERE;
  return DONE;
}

/* Makes one launch; a new reference to the arrays of the results. `token` is NULL if none is
   requested. */
static PyObject *launch_once(ShardsLauncher *self, PyObject *steps, PyObject *const *taken,
                             Py_ssize_t count, PyObject **token) {
  PyObject *given = PyList_New(count);
  for (Py_ssize_t i = 0; given && i < count; i++) PyList_SetItem(given, i, Py_NewRef(taken[i]));
  PyObject *function = PyTuple_GetItem(steps, token ? 1 : 0);
  PyObject *launched = given ? PyObject_CallFunctionObjArgs(function, given, NULL) : NULL;
  Py_XDECREF(given);
  if (launched && token && !(*token = PyObject_CallFunctionObjArgs(self->take_token, launched, NULL)))
    Py_CLEAR(launched);
  PyObject *made = launched ? PyObject_CallFunctionObjArgs(self->take, launched,
                                                           PyTuple_GetItem(steps, 2), Py_False, NULL)
                            : NULL;
  Py_XDECREF(launched);
  if (made && PySequence_Size(made) != self->head.produced) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a launch gave another number of results");
    Py_CLEAR(made);
  }
  return made;
}

/* Joins the parts of a result from the results of each launch. */
static PyObject *join(PyObject *const *made, Py_ssize_t launches, Py_ssize_t result) {
  PyObject *found = PyList_New(launches);
  for (Py_ssize_t i = 0; found && i < launches; i++) {
    PyObject *part = PySequence_GetItem(made[i], result);
    if (!part) Py_CLEAR(found);
    else PyList_SetItem(found, i, part);
  }
  return found;
}

/* Makes the shards of a result; `ends` are the tokens of launches on each device. */
static PyObject *wrap(ShardsLauncher *self, PyObject *const *made, Py_ssize_t result,
                      PyObject *ends) {
  Py_ssize_t launches = PyTuple_Size(self->launches);
  PyObject *of = PyTuple_GetItem(self->results, result);
  PyObject *parts = launches > 1 ? join(made, launches, result) : Py_NewRef(Py_None);
  PyObject *raw = launches > 1 ? NULL : PySequence_GetItem(made[0], result);
  PyObject *shards = NULL;
  if (parts && (raw || launches > 1))
    shards = ((allocfunc)PyType_GetSlot(self->cls, Py_tp_alloc))(self->cls, 0);
  if (shards && ((raw && PyObject_SetAttr(shards, raw_name, raw)) ||
                 (ends && PyObject_SetAttr(shards, ends_name, ends)) ||
                 PyObject_SetAttr(shards, parts_name, parts) ||
                 PyObject_SetAttr(shards, type_name, PyTuple_GetItem(of, 0)) ||
                 PyObject_SetAttr(shards, place_name, PyTuple_GetItem(of, 1))))
    Py_CLEAR(shards);
  Py_XDECREF(parts);
  Py_XDECREF(raw);
  return shards;
}

/* For each launch the arrays of its results, and its token, NULL if none was requested. */
typedef struct {
  PyObject **made, **tokens;
  Py_ssize_t count;
} Launched;

/* Makes the launches with the arrays. */
static int launch_all(ShardsLauncher *self, PyObject *const *taken, Py_ssize_t count,
                      Launched *launched, PyObject **wait) {
  PyObject *answer = PyObject_CallNoArgs(self->prepare);
  Py_XDECREF(answer);
  if (!answer) return FAILED;
  Py_ssize_t launches = PyTuple_Size(self->launches);
  int with_token = wait || launches > 1;
  for (Py_ssize_t i = 0; i < launches; i++) {
    PyObject *steps = PyTuple_GetItem(self->launches, i), **token = launched->tokens + i;
    *token = NULL;
    launched->made[i] =
        launch_once(self, steps, taken + i * count, count, with_token ? token : NULL);
    launched->count = i + 1;
    if (!launched->made[i]) {
      explain_launch(self->explain, NULL);
      return FAILED;
    }
  }
  if (!wait) return DONE;
  PyObject *token = launches == 1 ? launched->tokens[0] : Py_None;
  *wait = PyObject_CallFunctionObjArgs(self->make_wait, token, NULL);
  return *wait ? DONE : FAILED;
}

static int launch_locked(ShardsLauncher *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject **taken, Launched *launched, PyObject **wait) {
  if (acquire_lock(self->lock) == FAILED) return FAILED;
  int state = take_arguments(self, arguments, count, taken);
  if (state == DONE) state = launch_all(self, taken, count, launched, wait);
  Raised raised = set_aside();
  release_lock(self->lock);
  put_back_alone(raised, (PyObject *)self);
  return state;
}

static int launch_in_room(ShardsLauncher *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject **room, PyObject **results, PyObject **wait) {
  Py_ssize_t launches = PyTuple_Size(self->launches), taken = launches * count, i = 0;
  Launched launched = {room + taken, room + taken + launches, 0};
  for (Py_ssize_t j = 0; j < taken; j++) room[j] = NULL;
  int state = launch_locked(self, arguments, count, room, &launched, wait);
  for (Py_ssize_t j = 0; state == DONE && j < launches; j++)
    state = donated_end(&self->head.donated, room + j * count, count);
  PyObject *ends = NULL;
  if (state == DONE && launches > 1 && !(ends = tuple_of(launched.tokens, launches))) state = FAILED;
  for (; state == DONE && i < self->head.produced; i++)
    if (!(results[i] = wrap(self, launched.made, i, ends))) state = FAILED;
  if (state == FAILED && i) /* the last launch was not made */
    for (i--; i--;) Py_DECREF(results[i]);
  if (state == FAILED && wait) Py_CLEAR(*wait);
  for (Py_ssize_t j = 0; j < taken; j++) Py_XDECREF(room[j]);
  Py_XDECREF(ends);
  for (Py_ssize_t j = launched.count; j--;) {
    Py_XDECREF(launched.made[j]);
    Py_XDECREF(launched.tokens[j]);
  }
  return state;
}

int shards_launch(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                  PyObject **results, PyObject **wait) {
  ShardsLauncher *self = (ShardsLauncher *)object;
  int left = any_is_filled(self->unless);
  if (left) return left < 0 ? FAILED : NOT_HERE;
  if (tidy_up(self->tidy, &self->count) != DONE) return FAILED;
  Py_ssize_t words = PyTuple_Size(self->launches) * (count + 2);
  PyObject *on_stack[3 * ON_STACK], **room = ROOM(on_stack, words);
  int state = room ? launch_in_room(self, arguments, count, room, results, wait) : FAILED;
  if (room != on_stack) PyMem_Free(room);
  return state;
}
