/* The module `plugrt._core`: its functions and types. Types and hooks belong to the process: the
   core runs once, in the main interpreter. */
#include "calls/calls.h"
#include "launches/launches.h"
#include "arrays/arrays.h"
#include "library/library.h"
#include "values/values.h"
#include "sources.h"

static PyObject *get_calls_under_way(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyLong_FromSsize_t(calls_under_way);
}

static PyObject *forget_calls(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  calls_under_way = 0;
  forks++;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_buffer_class", set_buffer_class, METH_VARARGS,
     "set_buffer_class(cls, pointer_at, address_of): what launches make of results."},
    {"set_array_class", set_array_class, METH_O, "set_array_class(cls): what calls return."},
    {"set_aval_class", set_aval_class, METH_O,
     "set_aval_class(cls): of what arrays have that are read and waited for here."},
    {"make_array", (PyCFunction)(void (*)(void))make_array, METH_FASTCALL,
     "make_array(held, aval): an array of the class of these."},
    {"replace_held", replace_held, METH_VARARGS,
     "replace_held(array, held): replaces the buffers of an array, and forgets its host copy."},
    {"set_deletion_class", set_deletion_class, METH_VARARGS,
     "set_deletion_class(cls, our_files): what is kept of donations."},
    {"set_call_hooks", set_call_hooks, METH_VARARGS,
     "set_call_hooks(filter, static_key, classes, order_keys): what calls need of Python."},
    {"set_dtypes", set_dtypes, METH_VARARGS,
     "set_dtypes(ndarray, dtypes): NumPy's class, and the dtypes whose arrays the core takes."},
    {"set_host_hooks", set_host_hooks, METH_O, "set_host_hooks(avals): what finds those of host values."},
    {"set_trace_state", set_trace_state, METH_O,
     "set_trace_state(state): a thread's attribute `trace` is None unless it traces a function."},
    {"set_settings_hooks", set_settings_hooks, METH_VARARGS,
     "set_settings_hooks(attributes, token): those of the settings, and what makes their token."},
    {"set_finalizer_hooks", set_finalizer_hooks, METH_VARARGS,
     "set_finalizer_hooks(collecting, here, descend, is_interruption, main): what finalizers need of Python."},
    {"finish_pending", call_pending, METH_NOARGS,
     "finish_pending(): does what finalizers have put off."},
    {"stop_finalizers", stop_finalizers, METH_NOARGS,
     "stop_finalizers(): has those of Python do nothing more; the interpreter ends."},
    {"change_surroundings", change_surroundings, METH_VARARGS,
     "change_surroundings(object, name, value): sets an attribute of the settings or the traces."},
    {"forget_runners", forget_runners, METH_O,
     "forget_runners(runners): lets go of what functions keep of a dict that lost some."},
    {"set_read_hooks", set_read_hooks, METH_VARARGS,
     "set_read_hooks(host, array, buffer, unless, one_device): what reads arrays in Python, while what "
     "is not empty, and the class of shardings on one device."},
    {"set_wait_hooks", set_wait_hooks, METH_VARARGS,
     "set_wait_hooks(wait, ask, unless): what waits for arrays in Python and asks whether they are there, "
     "while what is not empty."},
    {"put_quickly", put_quickly, METH_VARARGS,
     "put_quickly(known, value, target): a value on a device; None where Python has to put it."},
    {"collect_held", collect_held, METH_O,
     "collect_held(tree): lists of what its arrays hold and of their avals; None where Python has to "
     "look."},
    {"call_holding", call_holding, METH_VARARGS,
     "call_holding(held, taken, function, *arguments): -1 and what it returns, called while these are held "
     "and taken; or the index of the one in held + taken that refuses, and None."},
    {"forget_result", forget_result, METH_O,
     "forget_result(buffer): drops what is kept of launches that it is a result of."},
    {"delete_later", delete_later, METH_O,
     "delete_later(buffer): whether it is held, and is deleted when the last hold ends."},
    {"is_readable", is_readable, METH_O,
     "is_readable(address): whether it is memory; None where the system does not say."},
#ifdef PLUGRT_CATCHES
    {"guard", guard, METH_VARARGS,
     "guard(address, kind, label): the address of a function that calls that of a library, and returns an "
     "error for its C++ exceptions; None if none is left."},
    {"take_caught", take_caught, METH_O,
     "take_caught(address): the text of an error that is one of an exception, and frees it; else None."},
#endif
    {"capsule_destructor", capsule_destructor, METH_NOARGS,
     "capsule_destructor(): the address of what frees DLPack capsules, also while an error is under way."},
    {"tensor_deleter", tensor_deleter, METH_O,
     "tensor_deleter(address): the address of what releases DLPack tensors with the function at that one, "
     "also when the interpreter has ended."},
    {"catching", catching, METH_VARARGS,
     "catching(function, settle): calls function(*arguments), and if that raises settle(error, *arguments): it "
     "returns the answer, and raises one that is an exception."},
    {"calls_under_way", get_calls_under_way, METH_NOARGS,
     "The number of calls of libraries that threads are in."},
    {"forget_calls", forget_calls, METH_NOARGS,
     "Has no call under way: in a forked process, which has none of these threads."},
    {NULL, NULL, 0, NULL},
};

/* not set by an import that failed or was interrupted, which may be tried again */
static int filled;

static int fill(PyObject *module) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError, "plugrt._core serves the main interpreter alone");
    return -1;
  }
  if (filled) {
    PyErr_SetString(PyExc_ImportError, "plugrt._core is loaded already, once for a process");
    return -1;
  }
  int failed =
      PyModule_AddStringConstant(module, "SOURCES", core_sources) || add_finalizers(module) || add_freer(module) || add_hold() || add_client(module) || add_buffer(module) || add_array(module) || add_deletion(module) ||
                 add_put(module) || add_copy(module) || add_scratch_put(module) || add_references(module) ||
                 add_view(module) || add_reader(module) || add_executable(module) ||
                 add_launcher(module) || add_events(module) || add_lock(module) ||
                 add_function_launcher(module) || add_host_buffer(module) || add_aval(module) || add_function_reader(module) ||
                 add_bounded_launcher(module) || add_shards_launcher(module) || add_shards_wait(module) ||
                 add_tree(module) || add_outputs(module) || add_runner(module) ||
                 add_calls(module);
  filled = !failed;
  return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "plugrt._core", "Calls of compiled programs, without Python between.", 0,
    functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
