// SPDX-License-Identifier: Apache-2.0
// Reads lines of DeepSpeed's log: throughput, steps of its pipelines, its timers.
#include <algorithm>
#include <string>

#include "sim/observe/input/words.h"
#include "sim/observe/log/line_readers.h"

namespace orrery::observe {
namespace {

// Binary gigabytes, as DeepSpeed counts them (it divides by 1024 three times).
std::optional<Bytes> gigabytes_after(std::string_view line, std::string_view key) {
  const auto value = number_after(line, key);
  return value && *value >= 0 ? std::optional(gibibytes(*value)) : std::nullopt;
}

}  // namespace

std::optional<LoggedStep> deepspeed_step(std::string_view line) {
  // Of pipelines: "steps: 10 loss: 2.3456 iter time (s): 1.234 samples/sec: 12.3".
  if (has(line, "iter time (s):")) {
    const auto step = whole_number_after(line, "steps:");
    const auto time = number_after(line, "iter time (s):");
    if (!step || *step < 0 || !time || *time <= 0) return std::nullopt;
    LoggedStep found{.step = *step, .time = seconds(*time), .clock_s = clock_in(line)};
    found.loss = number_after(line, "loss:");
    found.samples_per_s = number_after(line, "samples/sec:");
    return found;
  }
  if (!has(line, "CurrSamplesPerSec=")) return std::nullopt;
  const auto step = whole_number_after(line, "global_step=");
  if (!step || *step < 0) return std::nullopt;
  LoggedStep found{.step = *step, .clock_s = clock_in(line)};
  found.samples_per_s = number_after(line, "CurrSamplesPerSec=");
  found.memory.allocated = gigabytes_after(line, ", MemAllocated=");
  found.memory.most_allocated = gigabytes_after(line, "MaxMemAllocated=");
  return found;
}

void take_deepspeed(std::string_view line, LogState& state) {
  // "time (ms) | fwd_microstep: 5.54 | bwd_microstep: 22.35 | step_microstep: 0.06".
  if (const std::size_t at = line.find("time (ms) | "); at != std::string_view::npos) {
    for (const std::string_view cell : cells_of(line.substr(at + 12), '|')) {
      const std::size_t colon = cell.rfind(": ");
      if (colon > 80) continue;  // a long name, or no colon at all
      const auto value = number_in(cell.substr(colon + 2));
      if (!value || *value < 0) continue;
      state.run.phases.push_back({.name = std::string(trimmed(cell.substr(0, colon))),
                                  .line = state.line,
                                  .step = state.last_step,
                                  .most = milliseconds(*value)});
    }
  }
  if (has(line, "skipped=")) {
    const auto step = whole_number_after(line, " step="),
               skipped = whole_number_after(line, "skipped=");
    if (step && skipped) state.skips = {*step, *skipped};
  }
  if (has(line, "pytorch allocator cache flushes since last step") && !state.run.steps.empty()) {
    const std::size_t at = line.find(" pytorch allocator cache flushes");
    const std::size_t start = line.rfind(' ', at == 0 ? 0 : at - 1);
    if (start != std::string_view::npos)
      state.run.steps.back().allocator_retries = whole_number_after(line.substr(start), " ");
  }
  // "[config.py:1001:print]   world_size ................... 8".
  if (const std::size_t dots = line.find(" ..");
      has(line, "[config.py") && dots != std::string_view::npos) {
    std::string_view name = trimmed(line.substr(0, dots));
    name = name.substr(name.rfind(' ') == std::string_view::npos ? 0 : name.rfind(' ') + 1);
    std::string_view value = line.substr(dots + 1);
    value = trimmed(value.substr(std::min(value.find_first_not_of('.'), value.size())));
    keep_setting(state.run, name, value);
    if (name == "world_size" && !state.run.world_size)
      state.run.world_size = whole_number_in(value);
  }
}

}  // namespace orrery::observe
