/* PJRT_Executable and PJRT_LoadedExecutable: makes their handles from Bridge's descriptions. */
#include "core.h"

void executable_release(PJRT_Executable *executable) {
  if (atomic_fetch_sub(&executable->references, 1) != 1)
    return;
  release_object(executable->object);
  topology_release(executable->topology);
  arena_free(&executable->arena);
  free(executable);
}

/* Reads a tuple of integers. */
static int read_dims(Arena *arena, PyObject *dims, Shape *shape) {
  shape->num_dims = (size_t)PyTuple_Size(dims);
  int64_t *copy = PyErr_Occurred() ? NULL : arena_allocate(arena, shape->num_dims * sizeof *copy);
  for (size_t i = 0; copy != NULL && i < shape->num_dims; i++)
    copy[i] = PyLong_AsLongLong(PyTuple_GetItem(dims, (Py_ssize_t)i));
  shape->dims = copy;
  return copy == NULL || PyErr_Occurred() ? -1 : 0;
}

/* Reads a tuple of integers, the order of dimensions in memory, minor first. */
static int read_order_of(Arena *arena, PyObject *order, Shape *shape) {
  Shape read = {0};
  if (read_dims(arena, order, &read))
    return -1;
  shape->num_dims = read.num_dims;
  shape->minor_to_major = read.dims;
  return 0;
}

/* Reads a tuple of strings or bytes, or None if the backend does not provide them. */
static int read_texts(Arena *arena, PyObject *tuple, Texts *texts) {
  if (tuple == Py_None)
    return 0;
  size_t count = (size_t)PyTuple_Size(tuple);
  if (PyErr_Occurred())
    return -1;
  texts->data = arena_allocate(arena, count * sizeof *texts->data);
  texts->sizes = arena_allocate(arena, count * sizeof *texts->sizes);
  texts->count = count;
  for (size_t i = 0; !PyErr_Occurred() && i < count; i++) {
    Text text;
    if (arena_text(arena, PyTuple_GetItem(tuple, (Py_ssize_t)i), &text))
      return -1;
    texts->data[i] = text.data;
    texts->sizes[i] = text.size;
  }
  return PyErr_Occurred() ? -1 : 0;
}

/* Fills the flat lists of types, dimensions and layouts of results that hosts receive. */
static int flatten_outputs(PJRT_Executable *made) {
  size_t rank = 0, count = made->num_outputs;
  for (size_t i = 0; i < count; i++)
    rank += made->outputs[i].shape.num_dims;
  made->output_types = arena_allocate(&made->arena, count * sizeof *made->output_types);
  made->output_dims = arena_allocate(&made->arena, rank * sizeof *made->output_dims);
  made->output_dim_sizes = arena_allocate(&made->arena, count * sizeof(size_t));
  if (PyErr_Occurred())
    return -1;
  int64_t *dims = made->output_dims;
  for (size_t i = 0; i < count; i++) {
    const Shape *shape = &made->outputs[i].shape;
    made->output_types[i] = shape->type;
    made->output_dim_sizes[i] = shape->num_dims;
    for (size_t j = 0; j < shape->num_dims; j++)
      *dims++ = shape->dims[j];
  }
  const Shape **shapes = arena_allocate(&made->arena, count * sizeof *shapes);
  for (size_t i = 0; shapes != NULL && i < count; i++)
    shapes[i] = &made->outputs[i].shape;
  if (shapes != NULL)
    made->output_layouts = make_layouts(&made->arena, shapes, count);
  return made->output_layouts == NULL ? -1 : 0;
}

/* Reads the type, the dimensions, the dimension order and the memory kind of each result. */
static int read_outputs(PJRT_Executable *made, PyObject *outputs, PyObject *kinds) {
  made->num_outputs = (size_t)PyTuple_Size(outputs);
  if (PyErr_Occurred() || read_texts(&made->arena, kinds, &made->output_memory_kinds))
    return -1;
  made->outputs = arena_allocate(&made->arena, made->num_outputs * sizeof *made->outputs);
  for (size_t i = 0; made->outputs != NULL && i < made->num_outputs; i++) {
    PyObject *dims, *order;
    Output *output = &made->outputs[i];
    if (!PyArg_ParseTuple(PyTuple_GetItem(outputs, (Py_ssize_t)i), "iOO", &output->shape.type,
                          &dims, &order) ||
        read_dims(&made->arena, dims, &output->shape) ||
        read_order_of(&made->arena, order, &output->shape))
      return -1;
    if (i < made->output_memory_kinds.count)
      output->memory_kind = (Text){made->output_memory_kinds.data[i],
                                   made->output_memory_kinds.sizes[i]};
  }
  return made->outputs == NULL ? -1 : flatten_outputs(made);
}

/* Reads the dimension order of each parameter, or None if the backend does not provide it. */
static int read_parameters(PJRT_Executable *made, PyObject *tuple) {
  if (tuple == Py_None)
    return 0;
  size_t count = made->num_parameters = (size_t)PyTuple_Size(tuple);
  if (PyErr_Occurred())
    return -1;
  Shape *orders = arena_allocate(&made->arena, count * sizeof *orders);
  const Shape **shapes = arena_allocate(&made->arena, count * sizeof *shapes);
  if (orders == NULL || shapes == NULL)
    return -1;
  for (size_t i = 0; i < count; i++) {
    orders[i] = (Shape){0};
    shapes[i] = &orders[i];
    if (read_order_of(&made->arena, PyTuple_GetItem(tuple, (Py_ssize_t)i), &orders[i]))
      return -1;
  }
  made->parameter_layouts = make_layouts(&made->arena, shapes, count);
  return made->parameter_layouts == NULL ? -1 : 0;
}

/* Hosts read one item for each result: a backend that gives more or fewer is wrong. */
static int check_count(const Texts *texts, size_t count, const char *what) {
  if (texts->data == NULL || texts->count == count)
    return 0;
  PyErr_Format(PyExc_ValueError, "the backend states %zu %s of a program with %zu results",
               texts->count, what, count);
  return -1;
}

static int read_executable(PJRT_Executable *made, PyObject *tuple) {
  PyObject *object, *name, *outputs, *kinds, *assignment, *options, *output_shardings,
      *parameter_shardings, *parameter_kinds, *orders;
  Arena *arena = &made->arena;
  Py_ssize_t replicas, partitions;
  if (!PyArg_ParseTuple(tuple, "OOnnOOOOOOOO", &object, &name, &replicas, &partitions, &outputs,
                        &kinds, &assignment, &options, &output_shardings, &parameter_shardings,
                        &parameter_kinds, &orders))
    return -1;
  made->object = Py_NewRef(object);
  made->num_replicas = (size_t)replicas;
  made->num_partitions = (size_t)partitions;
  return arena_text(arena, name, &made->name) || read_outputs(made, outputs, kinds) ||
                 arena_text(arena, assignment, &made->device_assignment) ||
                 arena_text(arena, options, &made->compile_options) ||
                 read_texts(arena, output_shardings, &made->output_shardings) ||
                 read_texts(arena, parameter_shardings, &made->parameter_shardings) ||
                 read_texts(arena, parameter_kinds, &made->parameter_memory_kinds) ||
                 read_parameters(made, orders) ||
                 check_count(&made->output_memory_kinds, made->num_outputs, "memory kinds") ||
                 check_count(&made->output_shardings, made->num_outputs, "shardings")
             ? -1
             : 0;
}

PJRT_Executable *make_executable(PJRT_TopologyDescription *topology, PyObject *description) {
  PJRT_Executable *made = calloc(1, sizeof *made);
  if (made == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  made->references = 1;
  made->topology = topology_share(topology);
  if (read_executable(made, description) == 0)
    return made;
  executable_release(made);
  return NULL;
}

static int read_places(PJRT_LoadedExecutable *loaded, PyObject *places) {
  PJRT_Executable *executable = loaded->executable;
  loaded->num_devices = (size_t)PyTuple_Size(places);
  if (PyErr_Occurred())
    return -1;
  loaded->devices = arena_allocate(&executable->arena, loaded->num_devices * sizeof(void *));
  loaded->logical_ids =
      arena_allocate(&executable->arena, loaded->num_devices * sizeof *loaded->logical_ids);
  for (size_t i = 0; !PyErr_Occurred() && i < loaded->num_devices; i++) {
    int id;
    PJRT_LogicalDeviceIds *logical = &loaded->logical_ids[i];
    if (!PyArg_ParseTuple(PyTuple_GetItem(places, (Py_ssize_t)i), "iii", &id, &logical->replica,
                          &logical->partition))
      return -1;
    loaded->devices[i] = client_find_device(loaded->client, id);
    if (loaded->devices[i] == NULL)
      PyErr_Format(PyExc_ValueError, "the program runs on device %d, which the client lacks", id);
  }
  return PyErr_Occurred() ? -1 : 0;
}

void destroy_loaded(PJRT_LoadedExecutable *loaded) {
  release_object(loaded->object);
  release_object(loaded->execute);
  executable_release(loaded->executable);
  free(loaded);
}

PJRT_LoadedExecutable *make_loaded(PJRT_Client *client, PyObject *description) {
  PyObject *object, *execute, *places, *described;
  if (!PyArg_ParseTuple(description, "OOOO", &object, &execute, &places, &described))
    return NULL;
  PJRT_LoadedExecutable *loaded = calloc(1, sizeof *loaded);
  if (loaded == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  loaded->client = client; /* kept alive by the executable's topology */
  loaded->executable = make_executable(&client->topology, described);
  if (loaded->executable == NULL) {
    free(loaded);
    return NULL;
  }
  if (read_places(loaded, places)) {
    destroy_loaded(loaded);
    return NULL;
  }
  loaded->object = Py_NewRef(object);
  loaded->execute = Py_NewRef(execute);
  atomic_fetch_add(&live_handles[LIVE_LOADED], 1);
  return loaded;
}
