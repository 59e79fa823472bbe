// SPDX-License-Identifier: Apache-2.0
// Tells kinds of files apart by how they begin.
#include "sim/observe/observed.h"

#include "sim/observe/input/byte_stream.h"

namespace orrery::observe {

Observed read_observed(const std::filesystem::path& file) {
  // Heads of tables and traces stand at the top; only a log's first step may come late.
  constexpr std::size_t looked_at = std::size_t{1} << 18U;
  const std::string head = first_bytes(file, looked_at);
  if (is_database(head)) return read_nsight(file);
  if (is_trace(head)) return read_kineto(file);
  if (is_collective_tests(head)) return read_collective_tests(file);
  if (counter_source(head)) return read_counters(file);
  return read_run_log(file);
}

}  // namespace orrery::observe
