// Kernels, by name: the operation, then the types that it depends on, as in "add.float32".

#ifndef MY_CHIP_KERNELS_H_
#define MY_CHIP_KERNELS_H_

#include <cstdint>
#include <string>
#include <unordered_map>

namespace my_chip {

// The arrays are row-major. Each kernel's comment describes its numbers.
using Kernel = void (*)(void* result, void* const* arguments, const int64_t* numbers);

const std::unordered_map<std::string, Kernel>& Kernels();

}  // namespace my_chip

#endif  // MY_CHIP_KERNELS_H_
