// The device: here it is memory and kernels of the host. Replace the functions' bodies by calls to your own.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>

#include "kernels.h"
#include "runtime.h"

namespace {

constexpr int kMostDevices = 64;
constexpr int64_t kAlignment = 64;

// What stands before each piece of memory.
struct alignas(kAlignment) Header {
  int device;
  int64_t bytes;
};

struct Device {
  std::mutex mutex;
  runtime_counters counters = {};
};

// Never destroyed: Python may free arrays while the process ends.
Device& At(int device) {
  static auto* devices = new std::array<Device, kMostDevices>;
  return devices->at(device);
}

thread_local std::string last_error;

int Fail(std::string message) {
  last_error = std::move(message);
  return 1;
}

void Count(int device, int64_t runtime_counters::* counter) {
  Device& found = At(device);
  std::lock_guard<std::mutex> lock(found.mutex);
  ++(found.counters.*counter);
}

}  // namespace

int runtime_most_devices(void) { return kMostDevices; }

void* runtime_allocate(int device, int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX - 2 * kAlignment) return nullptr;
  const int64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment + sizeof(Header);
  void* memory = std::aligned_alloc(kAlignment, whole);
  if (memory == nullptr) return nullptr;
  auto* header = new (memory) Header{device, bytes};
  Device& found = At(device);
  std::lock_guard<std::mutex> lock(found.mutex);
  runtime_counters& counters = found.counters;
  ++counters.allocations;
  counters.bytes_in_use += bytes;
  counters.peak_bytes_in_use = std::max(counters.peak_bytes_in_use, counters.bytes_in_use);
  return header + 1;
}

void runtime_free(void* memory) {
  if (memory == nullptr) return;
  Header* header = static_cast<Header*>(memory) - 1;
  {
    Device& found = At(header->device);
    std::lock_guard<std::mutex> lock(found.mutex);
    --found.counters.allocations;
    found.counters.bytes_in_use -= header->bytes;
  }
  std::free(header);
}

int runtime_copy_in(int device, void* target, const void* host, int64_t bytes) {
  Count(device, &runtime_counters::copies_in);
  std::memcpy(target, host, bytes);
  return 0;
}

int runtime_copy_out(int device, void* host, const void* source, int64_t bytes) {
  Count(device, &runtime_counters::copies_out);
  std::memcpy(host, source, bytes);
  return 0;
}

int runtime_copy(int, void* target, const void* source, int64_t bytes) {
  std::memcpy(target, source, bytes);
  return 0;
}

int runtime_has_kernel(const char* kernel) { return my_chip::Kernels().count(kernel); }

int runtime_launch(int device, const char* kernel, void* result, void* const* arguments, const int64_t* numbers) {
  try {
    const auto found = my_chip::Kernels().find(kernel);
    if (found == my_chip::Kernels().end()) return Fail(std::string("there is no kernel ") + kernel);
    Count(device, &runtime_counters::launches);
    found->second(result, arguments, numbers);
    return 0;
  } catch (const std::exception& error) {  // an exception in C ends the process
    return Fail(std::string(kernel) + ": " + error.what());
  }
}

int runtime_wait(int) { return 0; }

const char* runtime_last_error(void) { return last_error.c_str(); }

void runtime_read_counters(int device, runtime_counters* counters) {
  Device& found = At(device);
  std::lock_guard<std::mutex> lock(found.mutex);
  *counters = found.counters;
}
