// Knows how to time work in a stream that the host fills while the device is held back.
#pragma once

#include <functional>

#include "bench.cuh"

namespace bench {

// One thread that keeps its stream busy for a number of nanoseconds.
__global__ void hold_kernel(unsigned long long nanoseconds) {
  unsigned long long start = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

// Time of one of `calls` calls in a stream when the device never waits for the host: they are
// enqueued behind a kernel that runs until the host is done. `enqueue` may use other streams, if it
// orders them after `stream` and `stream` after them.
inline Timing chain(const Gpu& gpu, const std::function<void(cudaStream_t, int)>& enqueue,
                    int calls, int repeats = 7) {
  using Clock = std::chrono::steady_clock;
  Timing t;
  t.calls = calls;
  t.clock_before_mhz = gpu.nvml.sm_clock_mhz();
  std::vector<double> times;
  Events events;
  double hold_us = 500;
  for (int i = 0; i < 3; ++i) enqueue(gpu.stream, i);
  CUDA_OK(cudaStreamSynchronize(gpu.stream));
  for (int attempt = 0; attempt < 4 * repeats && static_cast<int>(times.size()) < repeats;
       ++attempt) {
    hold_kernel<<<1, 1, 0, gpu.stream>>>(static_cast<unsigned long long>(1e3 * hold_us));
    const auto start = Clock::now();
    events.begin(gpu.stream);
    for (int i = 0; i < calls; ++i) enqueue(gpu.stream, i);
    events.end(gpu.stream);
    const double host_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    const double us = events.microseconds() / calls;
    // A first attempt warms; an attempt that the host did not finish in time is no measurement.
    const bool in_time = host_us < 0.9 * hold_us;
    if (!in_time) hold_us = std::min(2e5, 1.5 * host_us + 200);
    if (in_time && attempt > 0) times.push_back(us);
    // Where the queue is shorter than the chain the host can never be ahead: take what there is.
    if (attempt == 4 * repeats - 1 && times.empty()) times.push_back(us);
  }
  t.clock_after_mhz = gpu.nvml.sm_clock_mhz();
  t.power_w = gpu.nvml.power_w();
  t.temperature_c = gpu.nvml.temperature_c();
  summarise(times, t);
  return t;
}

}  // namespace bench
