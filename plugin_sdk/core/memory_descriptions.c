/* The extension MemoryDescriptions: the memories of a device that may be absent. */
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

DEFINE_EXTENSION(memory_descriptions, MemoryDescriptions, PJRT_MEMORYDESCRIPTIONS_SLOTS)

static void set_functions(PJRT_MemoryDescriptions_Extension *table) {
  table->DeviceDescription_MemoryDescriptions = memory_descriptions;
  table->MemoryDescription_Kind = memory_description_kind;
}
