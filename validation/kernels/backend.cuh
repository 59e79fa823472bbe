// SPDX-License-Identifier: Apache-2.0
// Knows the device of judge and worker: CUDA, or the host, whose "device memory" is a file in
// memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#ifdef __CUDACC__
#include <cuda_runtime.h>

namespace device {

constexpr bool is_host = false;
inline bool worked(cudaError_t code, const char* what) {
  if (code != cudaSuccess) std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  return code == cudaSuccess;
}
inline void must(cudaError_t code, const char* what) {
  if (!worked(code, what)) std::exit(4);
}
inline bool present() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0 && cudaSetDevice(0) == cudaSuccess;
}

// Memory that a worker can open by `name`.
struct Shared {
  unsigned char* data = nullptr;
  std::string name;
};
inline Shared make_shared(std::size_t bytes) {
  Shared out;
  must(cudaMalloc(&out.data, bytes), "memory of the device");
  cudaIpcMemHandle_t handle;
  must(cudaIpcGetMemHandle(&handle, out.data), "a handle of memory");
  for (const char byte : handle.reserved) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    out.name += two;
  }
  return out;
}
inline unsigned char* open_shared(const std::string& name, std::size_t) {
  cudaIpcMemHandle_t handle;
  for (std::size_t i = 0; i < sizeof handle.reserved && 2 * i + 1 < name.size(); ++i)
    handle.reserved[i] = static_cast<char>(std::stoi(name.substr(2 * i, 2), nullptr, 16));
  void* data = nullptr;
  if (!worked(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess), "the memory"))
    return nullptr;
  return static_cast<unsigned char*>(data);
}

template <class F>
__global__ void each_kernel(long long count, F f) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += step)
    f(i);
}
template <class F>
void each(long long count, F f) {
  if (count <= 0) return;
  const long long blocks = (count + 127) / 128;
  each_kernel<<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 128>>>(count, f);
  must(cudaGetLastError(), "a kernel of the judge");
}
__device__ inline void count_one(unsigned long long* to) { atomicAdd(to, 1ull); }
inline void synchronise() { must(cudaDeviceSynchronize(), "the device"); }
inline bool synchronised() { return worked(cudaDeviceSynchronize(), "the device"); }
template <class T>
T* make(std::size_t count) {
  T* data = nullptr;
  must(cudaMalloc(&data, count * sizeof(T)), "memory of the device");
  return data;
}
template <class T>
void fetch(T* to, const T* from, std::size_t count) {
  must(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyDeviceToHost), "a copy");
}
template <class T>
void put(T* to, const T* from, std::size_t count) {
  must(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyHostToDevice), "a copy");
}
inline void set_bytes(void* to, int value, std::size_t count) {
  must(cudaMemset(to, value, count), "a fill");
}
inline void copy(void* to, const void* from, std::size_t count) {
  must(cudaMemcpy(to, from, count, cudaMemcpyDeviceToDevice), "a copy");
}
inline std::size_t free_bytes() {
  std::size_t left = 0, all = 0;
  must(cudaMemGetInfo(&left, &all), "memory of the device");
  return left;
}

}  // namespace device

#define ON_DEVICE __device__
#else

#include <algorithm>
#include <cstring>
#include <thread>

namespace device {

constexpr bool is_host = true;
inline bool present() { return true; }

struct Shared {
  unsigned char* data = nullptr;
  std::string name;
};
inline Shared make_shared(std::size_t bytes) {
  const int file = memfd_create("tensors", 0);  // the worker inherits it
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) std::exit(4);
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) std::exit(4);
  return {static_cast<unsigned char*>(data), std::to_string(file)};
}
inline unsigned char* open_shared(const std::string& name, std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, std::atoi(name.c_str()), 0);
  return data == MAP_FAILED ? nullptr : static_cast<unsigned char*>(data);
}

// On two threads where there is much: counts are of a few million at most.
template <class F>
void each(long long count, F f) {
  constexpr long long few = 4096;
  if (count < few) {
    for (long long i = 0; i < count; ++i) f(i);
    return;
  }
  std::thread second([&] {
    for (long long i = count / 2; i < count; ++i) f(i);
  });
  for (long long i = 0; i < count / 2; ++i) f(i);
  second.join();
}
inline void count_one(unsigned long long* to) { __atomic_fetch_add(to, 1, __ATOMIC_RELAXED); }
inline void synchronise() {}
inline bool synchronised() { return true; }
template <class T>
T* make(std::size_t count) {
  return static_cast<T*>(std::calloc(count, sizeof(T)));
}
template <class T>
void fetch(T* to, const T* from, std::size_t count) {
  std::memcpy(to, from, count * sizeof(T));
}
template <class T>
void put(T* to, const T* from, std::size_t count) {
  std::memcpy(to, from, count * sizeof(T));
}
inline void set_bytes(void* to, int value, std::size_t count) { std::memset(to, value, count); }
inline void copy(void* to, const void* from, std::size_t count) { std::memcpy(to, from, count); }
inline std::size_t free_bytes() { return std::size_t{1} << 30; }

}  // namespace device

#define ON_DEVICE
#endif
