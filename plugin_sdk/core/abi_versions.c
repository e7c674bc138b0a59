/* The extension AbiVersion: the platform's name and version, which must be equal. */
#include "core.h"

#include <string.h>

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
    if (size > 0)
      memcpy(made->text, text, size);
  }
  return made;
}

static void *version_of(const PJRT_TopologyDescription *topology) {
  size_t name = topology->platform_name.size, version = topology->platform_version.size;
  AbiVersion *made = malloc(sizeof *made + name + version + 1);
  if (made != NULL) {
    made->functions = NULL;
    made->size = name + version + 1;
    memcpy(made->text, topology->platform_name.data, name);
    made->text[name] = '\n';
    memcpy(made->text + name + 1, topology->platform_version.data, version);
  }
  return made;
}

static PJRT_Error *answer_version(void *version) {
  return version ? NULL : no_host_memory();
}

static PJRT_Error *runtime_version(struct PJRT_Client_RuntimeAbiVersion_Args *args) {
  return answer_version(args->abi_version = version_of(&args->client->topology));
}

static PJRT_Error *executable_version(struct PJRT_Executable_GetAbiVersion_Args *args) {
  return answer_version(args->abi_version = version_of(args->executable->topology));
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

/* Defines functions that convert a version to and from bytes, and return its platform's id. */
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

DEFINE_EXTENSION(abi_version, AbiVersion, PJRT_ABIVERSION_SLOTS)

static void set_functions(PJRT_AbiVersion_Extension *table) {
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
