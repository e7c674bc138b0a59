/* The extension Layouts: orders of dimensions without tiles, as XLA writes them: {1,0}. */
#include "core.h"

#include <stdio.h>

struct PJRT_Layouts_MemoryLayout {
  const void *functions;
  int is_kept; /* owned by an executable: the host does not free it */
  size_t size;
  char text[];
};

enum { LONGEST_NUMBER = 21 }; /* characters of a dimension and its comma */

static size_t size_of_layout(size_t num_dims) {
  return sizeof(PJRT_Layouts_MemoryLayout) + LONGEST_NUMBER * num_dims + sizeof "{}";
}

/* The order is minor to major; NULL is row-major. */
static void write_layout(PJRT_Layouts_MemoryLayout *layout, size_t num_dims, const int64_t *order) {
  char *end = layout->text;
  *end++ = '{';
  for (size_t i = 0; i < num_dims; i++)
    end += sprintf(end, i ? ",%lld" : "%lld",
                   order ? (long long)order[i] : (long long)(num_dims - 1 - i));
  *end++ = '}';
  layout->size = (size_t)(end - layout->text);
}

static PJRT_Error *make_layout(size_t num_dims, const int64_t *order,
                               PJRT_Layouts_MemoryLayout **layout) {
  PJRT_Layouts_MemoryLayout *made =
      num_dims < PY_SSIZE_T_MAX / LONGEST_NUMBER / 2 ? malloc(size_of_layout(num_dims)) : NULL;
  if (made == NULL)
    return no_host_memory();
  made->functions = NULL;
  made->is_kept = 0;
  write_layout(made, num_dims, order);
  *layout = made;
  atomic_fetch_add(&live_handles[LIVE_LAYOUTS], 1);
  return NULL;
}

PJRT_Layouts_MemoryLayout **make_layouts(Arena *arena, const Shape *const *shapes, size_t count) {
  PJRT_Layouts_MemoryLayout **made = arena_allocate(arena, count * sizeof *made);
  for (size_t i = 0; made != NULL && i < count; i++) {
    made[i] = arena_allocate(arena, size_of_layout(shapes[i]->num_dims));
    if (made[i] == NULL)
      return NULL;
    made[i]->is_kept = 1;
    write_layout(made[i], shapes[i]->num_dims, shapes[i]->minor_to_major);
  }
  return made;
}

static PJRT_Error *layout_destroy(struct PJRT_Layouts_MemoryLayout_Destroy_Args *args) {
  if (args->layout == NULL || args->layout->is_kept)
    return NULL;
  atomic_fetch_sub(&live_handles[LIVE_LAYOUTS], 1);
  free(args->layout);
  return NULL;
}

static void keep_layout(PJRT_Layouts_SerializedLayout *layout) { (void)layout; }

static PJRT_Error *layout_serialize(struct PJRT_Layouts_MemoryLayout_Serialize_Args *args) {
  args->serialized_bytes = args->layout->text;
  args->serialized_bytes_size = args->layout->size;
  args->serialized_layout = (PJRT_Layouts_SerializedLayout *)args->layout;
  args->serialized_layout_deleter = keep_layout;
  return NULL;
}

static PJRT_Error *layout_of_client(struct PJRT_Layouts_Client_GetDefaultLayout_Args *args) {
  return make_layout(args->num_dims, NULL, &args->layout);
}

static PJRT_Error *layout_of_topology(struct PJRT_Layouts_Topology_GetDefaultLayout_Args *args) {
  return make_layout(args->num_dims, NULL, &args->layout);
}

static PJRT_Error *layout_of_buffer(struct PJRT_Layouts_Buffer_MemoryLayout_Args *args) {
  PJRT_Buffer *buffer = args->buffer;
  return make_layout(buffer->num_dims, buffer->dims + buffer->num_dims, &args->layout);
}

static PJRT_Error *
layouts_of_outputs(struct PJRT_Layouts_Executable_GetOutputLayouts_Args *args) {
  args->num_outputs = args->executable->num_outputs;
  args->layouts = args->executable->output_layouts;
  return NULL;
}

static PJRT_Error *
layouts_of_parameters(struct PJRT_Layouts_Executable_GetParameterLayouts_Args *args) {
  if (args->executable->parameter_layouts == NULL)
    return unimplemented("Layouts_PJRT_Executable_GetParameterLayouts");
  args->num_parameters = args->executable->num_parameters;
  args->layouts = args->executable->parameter_layouts;
  return NULL;
}

DEFINE_EXTENSION(layouts, Layouts, PJRT_LAYOUTS_SLOTS)

static void set_functions(PJRT_Layouts_Extension *table) {
  table->Layouts_MemoryLayout_Destroy = layout_destroy;
  table->Layouts_MemoryLayout_Serialize = layout_serialize;
  table->Layouts_Client_GetDefaultLayout = layout_of_client;
  table->Layouts_Topology_GetDefaultLayout = layout_of_topology;
  table->Layouts_Buffer_MemoryLayout = layout_of_buffer;
  table->Layouts_Executable_GetOutputLayouts = layouts_of_outputs;
  table->Layouts_Executable_GetParameterLayouts = layouts_of_parameters;
}
