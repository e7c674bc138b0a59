// The table of functions: every one is a stub until its line is written here.

#include <cstdint>
#include <cstring>
#include <iterator>

#include "error.h"
#include "stubs.h"

namespace my_chip {
namespace {

#if PJRT_API_MAJOR > 0 || PJRT_API_MINOR >= 99
PJRT_Error* VisitNoPayload(PJRT_Error_ForEachPayload_Args*) { return nullptr; }
#endif

PJRT_Error* InitializePlugin(PJRT_Plugin_Initialize_Args*) { return nullptr; }

// The versions of StableHLO that the compiler reads: hosts write programs at one of them.
constexpr int64_t kCurrentStableHlo[] = {1, 0, 0};
constexpr int64_t kMinimumStableHlo[] = {0, 9, 0};

PJRT_NamedValue MakeVersion(const char* name, const int64_t* version) {
  PJRT_NamedValue attribute = {};
  attribute.struct_size = sizeof(PJRT_NamedValue);
  attribute.name = name;
  attribute.name_size = std::strlen(name);
  attribute.type = PJRT_NamedValue_kInt64List;
  attribute.int64_array_value = version;
  attribute.value_size = 3;
  return attribute;
}

PJRT_Error* GetPluginAttributes(PJRT_Plugin_Attributes_Args* args) {
  static const PJRT_NamedValue attributes[] = {
      MakeVersion("stablehlo_current_version", kCurrentStableHlo),
      MakeVersion("stablehlo_minimum_version", kMinimumStableHlo),
  };
  if (!HAS_FIELD(args, num_attributes)) {
    return MakeError(PJRT_Error_Code_INVALID_ARGUMENT,
                     "PJRT_Plugin_Attributes_Args ends before num_attributes");
  }
  args->attributes = attributes;
  args->num_attributes = std::size(attributes);
  return nullptr;
}

PJRT_Api MakeTable() {
  PJRT_Api api = MakeStubs();
  api.PJRT_Error_Destroy = DestroyError;
  api.PJRT_Error_Message = GetErrorMessage;
  api.PJRT_Error_GetCode = GetErrorCode;
#if PJRT_API_MAJOR > 0 || PJRT_API_MINOR >= 99
  api.PJRT_Error_ForEachPayload = VisitNoPayload;  // hosts end the process if it is an error
#endif
  api.PJRT_Plugin_Initialize = InitializePlugin;
  api.PJRT_Plugin_Attributes = GetPluginAttributes;
  // Next: api.PJRT_Client_Create = CreateClient;
  return api;
}

}  // namespace
}  // namespace my_chip

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = my_chip::MakeTable();
  return &api;
}
