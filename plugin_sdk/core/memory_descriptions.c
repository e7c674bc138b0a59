/* The extension MemoryDescriptions: the memories of a device that may not be there. */
#include "core.h"

static PJRT_Error *
memory_descriptions(struct PJRT_DeviceDescription_MemoryDescriptions_Args *args) {
  const PJRT_DeviceDescription *description = args->device_description;
  args->memory_descriptions = (const PJRT_MemoryDescription *const *)description->memories;
  args->num_memory_descriptions = description->num_memories;
  args->default_memory_index = description->default_memory;
  return NULL;
}

static PJRT_Error *memory_description_kind(struct PJRT_MemoryDescription_Kind_Args *args) {
  args->kind = args->memory_description->kind.data;
  args->kind_size = args->memory_description->kind.size;
  args->kind_id = args->memory_description->kind_id;
  return NULL;
}

/* --- the table ---------------------------------------------------------------------------------- */

static PJRT_MemoryDescriptions_Extension filled;
PJRT_MEMORYDESCRIPTIONS_SLOTS(DEFINE_CALLS)

void fill_memory_descriptions(PJRT_MemoryDescriptions_Extension *table) {
  if (filled.base.struct_size == 0) { /* once, as hosts may be calling by way of it */
    filled = (PJRT_MemoryDescriptions_Extension){PJRT_MEMORYDESCRIPTIONS_SLOTS(REFUSED)};
    filled.DeviceDescription_MemoryDescriptions = memory_descriptions;
    filled.MemoryDescription_Kind = memory_description_kind;
    filled.base.struct_size = sizeof filled;
  }
  *table = (PJRT_MemoryDescriptions_Extension){PJRT_MEMORYDESCRIPTIONS_SLOTS(GUARDED)};
  table->base.struct_size = sizeof *table;
  table->base.type = PJRT_Extension_Type_MemoryDescriptions;
}
