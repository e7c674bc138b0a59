#include "error.h"

#include <utility>

namespace my_chip {
namespace {

// From API 0.107 on the first word of an error is the address of a table of functions.
struct Error {
  const void* table;
  PJRT_Error_Code code;
  std::string message;
};

const Error* From(const PJRT_Error* error) {
  return reinterpret_cast<const Error*>(error);
}

#if PJRT_API_MAJOR == 0 && PJRT_API_MINOR < 107
constexpr const void* kTable = nullptr;
#else
void Destroy(PJRT_Error* error) { delete reinterpret_cast<Error*>(error); }

void Message(const PJRT_Error* error, const char** message, size_t* size) {
  *message = From(error)->message.data();
  *size = From(error)->message.size();
}

PJRT_Error_Code Code(const PJRT_Error* error) { return From(error)->code; }

void ForEachPayload(const PJRT_Error*, PJRT_Error_PayloadVisitor, void*) {}

constexpr PJRT_Error_FunctionTable kFunctions = {
    sizeof(PJRT_Error_FunctionTable), sizeof(Error), nullptr, Destroy, Message, Code, ForEachPayload,
};
constexpr const void* kTable = &kFunctions;
#endif

}  // namespace

PJRT_Error* MakeError(PJRT_Error_Code code, std::string message) {
  return reinterpret_cast<PJRT_Error*>(new Error{kTable, code, std::move(message)});
}

void DestroyError(PJRT_Error_Destroy_Args* args) {
  delete reinterpret_cast<Error*>(args->error);  // hosts destroy NULL as well
}

void GetErrorMessage(PJRT_Error_Message_Args* args) {
  if (!HAS_FIELD(args, message_size)) return;
  args->message = From(args->error)->message.data();
  args->message_size = From(args->error)->message.size();
}

PJRT_Error* GetErrorCode(PJRT_Error_GetCode_Args* args) {
  if (HAS_FIELD(args, code)) args->code = From(args->error)->code;
  return nullptr;
}

}  // namespace my_chip
