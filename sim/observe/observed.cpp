// SPDX-License-Identifier: Apache-2.0
// Tells kinds of files apart by how they begin.
#include "sim/observe/observed.h"

#include "sim/observe/input/lines.h"

namespace orrery::observe {

std::optional<ObservedKind> kind_by_head(const std::filesystem::path& file) {
  // Heads of tables and traces stand at the top; only a log's first step may come late.
  constexpr std::size_t looked_at = std::size_t{1} << 18U;
  const std::string head = first_bytes(file, looked_at);
  if (is_database(head) || is_trace(head)) return ObservedKind::profile;
  if (is_collective_tests(head)) return ObservedKind::collectives;
  if (counter_source(head)) return ObservedKind::counters;
  return std::nullopt;
}

Observed read_observed(const std::filesystem::path& file) {
  constexpr std::size_t signature = 64;  // of a database, at its start
  switch (kind_by_head(file).value_or(ObservedKind::log)) {
    case ObservedKind::profile:
      if (is_database(first_bytes(file, signature))) return read_nsight(file);
      return read_kineto(file);
    case ObservedKind::collectives:
      return read_collective_tests(file);
    case ObservedKind::counters:
      return read_counters(file);
    case ObservedKind::log:
      break;
  }
  return read_run_log(file);
}

bool tells_any_step(const std::filesystem::path& file) {
  LineReader lines(file);
  std::string_view line;
  while (lines.next(line))
    if (tells_a_step(line)) return true;
  return false;
}

}  // namespace orrery::observe
