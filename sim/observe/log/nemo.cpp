// SPDX-License-Identifier: Apache-2.0
// Reads lines of NeMo's log: progress bars of release 1 and lines of steps of release 2.
#include <cmath>

#include "sim/observe/input/words.h"
#include "sim/observe/log/line_readers.h"

namespace orrery::observe {
namespace {

// "global_step=9.000" and "global_step: 9".
std::optional<double> value_of(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    const std::string_view rest = line.substr(at + key.size());
    if (rest.starts_with('=') || rest.starts_with(':'))
      return leading_number(trimmed(rest.substr(1)));
  }
  return std::nullopt;
}

std::optional<double> positive(std::optional<double> value) {
  return value && *value > 0 ? value : std::nullopt;
}

}  // namespace

std::optional<LoggedStep> nemo_step(std::string_view line) {
  const auto time = value_of(line, "train_step_timing in s");
  if (!time || *time <= 0) return std::nullopt;
  auto step = whole_part(value_of(line, "global_step"));
  if (!step) step = whole_number_after(line, ", iteration ");
  if (!step || *step < 0) return std::nullopt;
  LoggedStep found{.step = *step};
  found.time = seconds(*time);
  found.clock_s = clock_in(line);
  found.loss = value_of(line, "reduced_train_loss");
  found.loss_is_nan = line.find("reduced_train_loss: nan") != std::string_view::npos ||
                      line.find("reduced_train_loss=nan") != std::string_view::npos;
  found.gradient_norm = value_of(line, "grad_norm");
  found.global_batch = whole_part(value_of(line, "global_batch_size"));
  if (const auto tera = positive(value_of(line, "TFLOPS_per_GPU")))
    found.per_gpu = flop_per_second(*tera * 1e12);
  if (const auto tokens = positive(value_of(line, "tokens_per_sec_per_gpu")))
    found.tokens_per_gpu = TokensPerSecond(*tokens);
  if (const auto tokens = positive(value_of(line, "tokens_per_sec")))
    found.tokens_of_job = TokensPerSecond(*tokens);
  // Both in bytes (torch.cuda.max_memory_reserved and memory_allocated).
  if (const auto bytes_used = positive(value_of(line, "peak_memory_usage")))
    found.memory.most_reserved = bytes(*bytes_used);
  if (const auto bytes_used = positive(value_of(line, "memory_allocated")))
    found.memory.allocated = bytes(*bytes_used);
  return found;
}

}  // namespace orrery::observe
