// SPDX-License-Identifier: Apache-2.0
// Knows the two backends of parallel_for: oneTBB, and std::thread where TBB cannot be sanitised.
#include "sim/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#ifdef ORRERY_STD_THREAD
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>
#else
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace orrery {
namespace {

#ifdef ORRERY_STD_THREAD

void run(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::exception_ptr first;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(guard);
        if (!first) first = std::current_exception();
        next = count;  // nothing new starts
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int t = 1; t < threads; ++t) workers.emplace_back(work);
    work();
  }
  if (first) std::rethrow_exception(first);
}

#else

void run(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  // More threads than cores gain nothing, and oneTBB complains about them on stderr.
  tbb::task_arena arena(std::min(threads, hardware_threads()));
  arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, count),
                      [&](const tbb::blocked_range<std::size_t>& range) {
                        for (std::size_t i = range.begin(); i != range.end(); ++i) body(i);
                      });
  });
}

#endif

}  // namespace

int hardware_threads() {
  // std::thread counts the machine's cores; a process may be pinned to fewer.
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  std::size_t used = static_cast<std::size_t>(threads > 0 ? threads : hardware_threads());
  used = std::min(used, count);
  if (used <= 1) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  run(count, static_cast<int>(used), body);
}

}  // namespace orrery
