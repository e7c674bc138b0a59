/* The extensions: shardings, layouts, memories of device descriptions, ABI versions. */
#include "core.h"

#include <stdio.h>
#include <string.h>

/* --- shardings ------------------------------------------------------------------------------------ */

/* NULL where the backend does not say: hosts take that for a program that is not partitioned. An
 * error would be logged by XLA's client at every compilation. */
static PJRT_Error *
output_shardings(struct PJRT_Shardings_Executable_OutputShardings_Args *args) {
  const PJRT_Executable *executable = args->executable;
  args->num_outputs = executable->output_shardings == NULL ? 0 : executable->num_outputs;
  args->shardings = executable->output_shardings;
  args->sharding_sizes = executable->output_sharding_sizes;
  return NULL;
}

static PJRT_Error *
parameter_shardings(struct PJRT_Shardings_Executable_ParameterShardings_Args *args) {
  const PJRT_Executable *executable = args->executable;
  args->num_parameters = executable->num_parameters;
  args->shardings = executable->parameter_shardings;
  args->sharding_sizes = executable->parameter_sharding_sizes;
  return NULL;
}

/* --- layouts: row-major, as XLA writes it: {1,0} ------------------------------------------------------ */

struct PJRT_Layouts_MemoryLayout {
  const void *functions;
  size_t size;
  char text[];
};

static PJRT_Error *make_layout(size_t num_dims, PJRT_Layouts_MemoryLayout **layout) {
  PJRT_Layouts_MemoryLayout *made = malloc(sizeof *made + 21 * num_dims + 3);
  if (made == NULL)
    return format_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "no host memory for a layout");
  made->functions = NULL;
  char *end = made->text;
  *end++ = '{';
  for (size_t i = num_dims; i-- > 0;)
    end += sprintf(end, i ? "%zu," : "%zu", i);
  *end++ = '}';
  made->size = (size_t)(end - made->text);
  *layout = made;
  atomic_fetch_add(&live_handles[LIVE_LAYOUTS], 1);
  return NULL;
}

static PJRT_Error *layout_destroy(struct PJRT_Layouts_MemoryLayout_Destroy_Args *args) {
  if (args->layout == NULL)
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
  return make_layout(args->num_dims, &args->layout);
}

static PJRT_Error *layout_of_topology(struct PJRT_Layouts_Topology_GetDefaultLayout_Args *args) {
  return make_layout(args->num_dims, &args->layout);
}

static PJRT_Error *layout_of_buffer(struct PJRT_Layouts_Buffer_MemoryLayout_Args *args) {
  return make_layout(args->buffer->num_dims, &args->layout);
}

/* --- memories of device descriptions -------------------------------------------------------------------- */

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

/* --- ABI versions: the platform's name and version, which must be equal ------------------------------------ */

typedef struct {
  const void *functions;
  size_t size;
  char text[];
} AbiVersion;

static void *make_version(const char *text, size_t size) {
  AbiVersion *made = malloc(sizeof *made + size);
  if (made != NULL) {
    made->functions = NULL;
    made->size = size;
    memcpy(made->text, text, size);
  }
  return made;
}

static void *version_of_client(const PJRT_Client *client) {
  size_t name = client->platform_name.size, version = client->platform_version.size;
  AbiVersion *made = malloc(sizeof *made + name + version + 1);
  if (made != NULL) {
    made->functions = NULL;
    made->size = name + version + 1;
    memcpy(made->text, client->platform_name.data, name);
    made->text[name] = '\n';
    memcpy(made->text + name + 1, client->platform_version.data, version);
  }
  return made;
}

static PJRT_Error *answer_version(void *version) {
  return version ? NULL : format_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "no host memory");
}

static PJRT_Error *runtime_version(struct PJRT_Client_RuntimeAbiVersion_Args *args) {
  return answer_version(args->abi_version = version_of_client(args->client));
}

static PJRT_Error *executable_version(struct PJRT_Executable_GetAbiVersion_Args *args) {
  return answer_version(args->abi_version = version_of_client(args->executable->client));
}

static PJRT_Error *runtime_version_destroy(struct PJRT_RuntimeAbiVersion_Destroy_Args *args) {
  free(args->abi_version);
  return NULL;
}

static PJRT_Error *
executable_version_destroy(struct PJRT_ExecutableAbiVersion_Destroy_Args *args) {
  free(args->abi_version);
  return NULL;
}

static PJRT_Error *compare(const void *runtime, const void *other) {
  const AbiVersion *ours = runtime, *theirs = other;
  if (ours->size == theirs->size && memcmp(ours->text, theirs->text, ours->size) == 0)
    return NULL;
  return format_error(PJRT_Error_Code_INVALID_ARGUMENT, "made by '%.*s'; this is '%.*s'",
                      (int)theirs->size, theirs->text, (int)ours->size, ours->text);
}

static PJRT_Error *
compare_runtimes(struct PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args *args) {
  return compare(args->abi_version, args->other_abi_version);
}

static PJRT_Error *
compare_executable(struct PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args *args) {
  return compare(args->abi_version, args->executable_abi_version);
}

static void keep_proto(PJRT_SerializedProto *holder) { (void)holder; }

/* Defines the functions that give the bytes of a version, and make one of them. */
#define VERSION_BYTES(name, function)                                                              \
  static PJRT_Error *function##_to_proto(struct PJRT_##name##_ToProto_Args *args) {                \
    const AbiVersion *version = (const void *)args->abi_version;                                   \
    args->serialized_proto = version->text;                                                        \
    args->serialized_proto_size = version->size;                                                   \
    args->serialized_proto_holder = (PJRT_SerializedProto *)args->abi_version;                     \
    args->serialized_proto_deleter = keep_proto;                                                   \
    return NULL;                                                                                   \
  }                                                                                                \
  static PJRT_Error *function##_from_proto(struct PJRT_##name##_FromProto_Args *args) {            \
    args->abi_version = make_version(args->serialized_proto, args->serialized_proto_size);         \
    return answer_version(args->abi_version);                                                      \
  }                                                                                                \
  static PJRT_Error *function##_platform_id(struct PJRT_##name##_PlatformId_Args *args) {          \
    const AbiVersion *version = (const void *)args->abi_version;                                   \
    args->platform_id = hash_platform(version);                                                    \
    return NULL;                                                                                   \
  }

/* FNV-1a of the platform's name. */
static uint64_t hash_platform(const AbiVersion *version) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < version->size && version->text[i] != '\n'; i++)
    hash = (hash ^ (unsigned char)version->text[i]) * 1099511628211u;
  return hash;
}

VERSION_BYTES(RuntimeAbiVersion, runtime)
VERSION_BYTES(ExecutableAbiVersion, executable)

/* --- the tables: every function that is not given is refused by name ---------------------------------------- */

#define REFUSE(name, since)                                                                        \
  static PJRT_Error *no_##name(struct PJRT_##name##_Args *args) {                                  \
    (void)args;                                                                                    \
    return unimplemented(#name);                                                                   \
  }
#define REFUSED(name, since) .name = no_##name,

PJRT_SHARDINGS_SLOTS(REFUSE)
PJRT_LAYOUTS_SLOTS(REFUSE)
PJRT_MEMORYDESCRIPTIONS_SLOTS(REFUSE)
PJRT_ABIVERSION_SLOTS(REFUSE)

static void begin(PJRT_Extension_Base *base, size_t size, PJRT_Extension_Type type) {
  base->struct_size = size;
  base->type = type;
  base->next = NULL;
}

static void fill_shardings(PJRT_Shardings_Extension *table) {
  *table = (PJRT_Shardings_Extension){PJRT_SHARDINGS_SLOTS(REFUSED)};
  begin(&table->base, sizeof *table, PJRT_Extension_Type_Shardings);
  table->Shardings_Executable_OutputShardings = output_shardings;
  table->Shardings_Executable_ParameterShardings = parameter_shardings;
}

static void fill_layouts(PJRT_Layouts_Extension *table) {
  *table = (PJRT_Layouts_Extension){PJRT_LAYOUTS_SLOTS(REFUSED)};
  begin(&table->base, sizeof *table, PJRT_Extension_Type_Layouts);
  table->Layouts_MemoryLayout_Destroy = layout_destroy;
  table->Layouts_MemoryLayout_Serialize = layout_serialize;
  table->Layouts_Client_GetDefaultLayout = layout_of_client;
  table->Layouts_Topology_GetDefaultLayout = layout_of_topology;
  table->Layouts_Buffer_MemoryLayout = layout_of_buffer;
}

static void fill_memory_descriptions(PJRT_MemoryDescriptions_Extension *table) {
  *table = (PJRT_MemoryDescriptions_Extension){PJRT_MEMORYDESCRIPTIONS_SLOTS(REFUSED)};
  begin(&table->base, sizeof *table, PJRT_Extension_Type_MemoryDescriptions);
  table->DeviceDescription_MemoryDescriptions = memory_descriptions;
  table->MemoryDescription_Kind = memory_description_kind;
}

static void fill_abi_version(PJRT_AbiVersion_Extension *table) {
  *table = (PJRT_AbiVersion_Extension){PJRT_ABIVERSION_SLOTS(REFUSED)};
  begin(&table->base, sizeof *table, PJRT_Extension_Type_AbiVersion);
  table->Client_RuntimeAbiVersion = runtime_version;
  table->Executable_GetAbiVersion = executable_version;
  table->RuntimeAbiVersion_Destroy = runtime_version_destroy;
  table->ExecutableAbiVersion_Destroy = executable_version_destroy;
  table->RuntimeAbiVersion_IsCompatibleWithRuntime = compare_runtimes;
  table->RuntimeAbiVersion_IsCompatibleWithExecutable = compare_executable;
  table->RuntimeAbiVersion_ToProto = runtime_to_proto;
  table->RuntimeAbiVersion_FromProto = runtime_from_proto;
  table->RuntimeAbiVersion_PlatformId = runtime_platform_id;
  table->ExecutableAbiVersion_ToProto = executable_to_proto;
  table->ExecutableAbiVersion_FromProto = executable_from_proto;
  table->ExecutableAbiVersion_PlatformId = executable_platform_id;
}

void fill_extensions(Table *table) {
  fill_shardings(&table->shardings);
  fill_layouts(&table->layouts);
  fill_memory_descriptions(&table->memory_descriptions);
  fill_abi_version(&table->abi_version);
  table->shardings.base.next = &table->layouts.base;
  table->layouts.base.next = &table->memory_descriptions.base;
  table->memory_descriptions.base.next = &table->abi_version.base;
  table->api.extension_start = &table->shardings.base;
}
