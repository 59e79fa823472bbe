// SPDX-License-Identifier: Apache-2.0
// Reads lines of MaxText's log: steps, its configuration, memory after its parameters are made.
#include <string>

#include "sim/observe/input/words.h"
#include "sim/observe/log/line_readers.h"

namespace orrery::observe {

std::optional<LoggedStep> maxtext_step(std::string_view line) {
  const auto step = whole_number_after(line, "completed step:");
  const auto time = number_after(line, ", seconds:");
  if (!step || *step < 0 || !time || *time <= 0) return std::nullopt;
  LoggedStep found{.step = *step, .time = seconds(*time), .clock_s = clock_in(line)};
  auto tera = number_after(line, "TFLOP/s/device:");
  if (!tera) tera = number_after(line, "TFLOP/s:");
  if (tera && *tera > 0) found.per_gpu = flop_per_second(*tera * 1e12);
  if (const auto tokens = number_after(line, "Tokens/s/device:"); tokens && *tokens > 0)
    found.tokens_per_gpu = TokensPerSecond(*tokens);
  found.loss = number_after(line, " loss:");
  found.loss_is_nan = line.find(" loss: nan") != std::string_view::npos;
  return found;
}

void take_maxtext(std::string_view line, LogState& state) {
  RunLog& run = state.run;
  if (const std::size_t at = line.find("Config param "); at != std::string_view::npos) {
    const std::string_view rest = line.substr(at + 13);
    const std::size_t colon = rest.find(": ");
    if (colon == std::string_view::npos) return;
    const std::string_view name = rest.substr(0, colon), value = trimmed(rest.substr(colon + 2));
    keep_setting(run, name, value);
    if (name == "max_target_length" && !run.sequence) run.sequence = whole_number_in(value);
    if (name == "steps" && !run.total_steps) run.total_steps = whole_number_in(value);
  }
  if (const auto devices = whole_number_after(line, "Num_devices:"); devices && !run.world_size)
    run.world_size = devices;
  // "	Using (GB) 5.1 / 79.1 (6.4%) on cuda:0": decimal gigabytes.
  if (const std::size_t at = line.find("Using (GB) "); at != std::string_view::npos)
    if (const auto used = number_after(line, "Using (GB) "))
      keep_setting(run, "memory after initialisation (GB)", std::to_string(*used));
}

}  // namespace orrery::observe
