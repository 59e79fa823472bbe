// SPDX-License-Identifier: Apache-2.0
// Knows the device by name, its cache, and the clock that it runs at, as its driver says.
#pragma once

#include <dlfcn.h>

#include <cstdio>

#include "backend.cuh"

namespace clocks {

#ifdef __CUDACC__

inline cudaDeviceProp properties() {
  cudaDeviceProp of{};
  device::must(cudaGetDeviceProperties(&of, 0), "properties of the device");
  return of;
}
inline std::size_t l2_bytes() { return static_cast<std::size_t>(properties().l2CacheSize); }
inline void print_device() {
  const cudaDeviceProp of = properties();
  std::printf(
      "{\"event\":\"device\",\"name\":\"%s\",\"processors\":%d,\"l2\":%d,\"memory\":%.0f,"
      "\"capability\":\"%d.%d\"}\n",
      of.name, of.multiProcessorCount, of.l2CacheSize, static_cast<double>(of.totalGlobalMem),
      of.major, of.minor);
  std::fflush(stdout);
}
// NVML comes with the driver; 0 where it is missing.
inline double processor_mhz() {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) return 0;
  const auto begin = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto find = reinterpret_cast<int (*)(const char*, void**)>(
      dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
  const auto clock =
      reinterpret_cast<int (*)(void*, int, unsigned*)>(dlsym(library, "nvmlDeviceGetClockInfo"));
  static void* const gpu = [&]() -> void* {
    char place[32];
    void* found = nullptr;
    if (begin == nullptr || find == nullptr || begin() != 0 ||
        cudaDeviceGetPCIBusId(place, sizeof place, 0) != cudaSuccess || find(place, &found) != 0)
      return nullptr;
    return found;
  }();
  constexpr int of_processors = 1;  // NVML_CLOCK_SM
  unsigned mhz = 0;
  return gpu != nullptr && clock != nullptr && clock(gpu, of_processors, &mhz) == 0 ? mhz : 0;
}

#else

inline std::size_t l2_bytes() { return std::size_t{32} << 20; }
inline void print_device() { std::printf("{\"event\":\"device\",\"name\":\"host\"}\n"); }
inline double processor_mhz() { return 0; }

#endif

}  // namespace clocks
