// SPDX-License-Identifier: Apache-2.0
// Knows how to use the cores: the only place that names oneTBB (or std::thread for TSan builds).
#pragma once

#include <cstddef>
#include <functional>

namespace orrery {

// Calls body(i) for i in [0, count) on up to `threads` threads (0: all cores). Each i is called
// once; order is unspecified, so bodies write to their own slot. The first exception is rethrown
// on the calling thread after all running bodies ended.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

// Number of cores that this process may use.
int hardware_threads();

}  // namespace orrery
