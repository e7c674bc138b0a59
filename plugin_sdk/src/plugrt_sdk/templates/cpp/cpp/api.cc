// The table of functions: every one is a stub until its line is written here.

#include "error.h"
#include "stubs.h"

namespace my_chip {
namespace {

#if PJRT_API_MAJOR > 0 || PJRT_API_MINOR >= 99
PJRT_Error* VisitNoPayload(PJRT_Error_ForEachPayload_Args*) { return nullptr; }
#endif

PJRT_Error* InitializePlugin(PJRT_Plugin_Initialize_Args*) { return nullptr; }

PJRT_Error* GetPluginAttributes(PJRT_Plugin_Attributes_Args* args) {
  args->attributes = nullptr;  // such as stablehlo_current_version, which hosts write programs for
  args->num_attributes = 0;
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
