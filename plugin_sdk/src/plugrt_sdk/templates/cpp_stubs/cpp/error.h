// Errors of the PJRT C API.

#ifndef MY_CHIP_ERROR_H_
#define MY_CHIP_ERROR_H_

#include <cstddef>
#include <string>
#include <type_traits>

#include "pjrt_header.h"

// Whether the argument struct of a host, which may be older, has a field: no other is written to.
#define HAS_FIELD(args, field) \
  ((args)->struct_size >= offsetof(std::remove_pointer_t<decltype(args)>, field) + sizeof((args)->field))

namespace my_chip {

// Returns a new error, which the host destroys.
PJRT_Error* MakeError(PJRT_Error_Code code, std::string message);

// The functions of the table that hosts call with an error.
void DestroyError(PJRT_Error_Destroy_Args* args);
void GetErrorMessage(PJRT_Error_Message_Args* args);
PJRT_Error* GetErrorCode(PJRT_Error_GetCode_Args* args);

}  // namespace my_chip

#endif  // MY_CHIP_ERROR_H_
