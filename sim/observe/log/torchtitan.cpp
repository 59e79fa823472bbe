// SPDX-License-Identifier: Apache-2.0
// Reads lines of TorchTitan's log: steps with memory and speed, and what it says when it starts.
#include "sim/observe/input/words.h"
#include "sim/observe/log/line_readers.h"

namespace orrery::observe {
namespace {}  // namespace

std::optional<LoggedStep> torchtitan_step(std::string_view line) {
  const std::size_t at = line.find("step:");
  if (at == std::string_view::npos || !has(line, "loss:")) return std::nullopt;
  // Tokens (once: words) per second of one device.
  auto tokens = number_after(line, " tps:");
  if (!tokens) tokens = number_after(line, " wps:");
  const auto step = whole_number_after(line, "step:");
  if (!tokens || *tokens <= 0 || !step || *step < 0) return std::nullopt;
  LoggedStep found{.step = *step};
  found.clock_s = clock_in(line);
  found.tokens_per_gpu = TokensPerSecond(*tokens);
  found.loss = number_after(line, "loss:");
  found.loss_is_nan =
      has(line, "loss:     nan") || has(line, "loss: nan") || has(line, "loss:  nan");
  found.gradient_norm = number_after(line, "grad_norm:");
  if (const auto tera = number_after(line, "tflops:"); tera && *tera > 0)
    found.per_gpu = flop_per_second(*tera * 1e12);
  if (const auto share = number_after(line, "mfu:"); share && *share >= 0) found.mfu = *share / 100;
  // The most that was reserved since the line before.
  if (const auto most = number_after(line, "memory:"); most && *most >= 0) {
    found.memory.most_reserved = gibibytes(*most);
    const std::size_t open = line.find('(', line.find("memory:"));
    if (open != std::string_view::npos)
      if (const auto share = leading_number(line.substr(open + 1)); share && *share >= 0)
        found.memory.most_share = *share / 100;
  }
  return found;
}

void take_torchtitan(std::string_view line, LogState& state) {
  RunLog& run = state.run;
  if (const std::size_t at = line.find("CUDA capacity: "); at != std::string_view::npos) {
    const std::string_view rest = line.substr(at + 15);
    if (const std::size_t end = rest.find(" with "); end != std::string_view::npos && !run.device)
      run.device = std::string(rest.substr(0, end));
  }
  if (has(line, "sequence length ")) {
    if (!run.sequence) run.sequence = whole_number_after(line, "sequence length ");
    for (const std::string_view name :
         {"local batch size", "global batch size", "gradient accumulation steps", "total steps"})
      if (const auto value = whole_number_after(line, std::string(name) + " "))
        keep_setting(run, name, std::to_string(*value));
    if (!run.total_steps) run.total_steps = whole_number_after(line, "total steps ");
  }
  // "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=1".
  if (const std::size_t at = line.find("with parallelism:"); at != std::string_view::npos) {
    const std::string_view mesh = line.substr(at);
    run.pipeline = whole_number_after(mesh, "pp=");
    run.context = whole_number_after(mesh, "cp=");
    run.tensor = whole_number_after(mesh, " tp=");
    run.expert = whole_number_after(mesh, "ep=");
    const auto copies = whole_number_after(mesh, "dp_replicate="),
               shards = whole_number_after(mesh, "dp_shard=");
    if (copies && shards && *copies > 0 && *shards > 0 && *copies < 1 << 24 && *shards < 1 << 24)
      run.data = *copies * *shards;
  }
  // "2 CUDA memory allocation retries.": since the run began.
  if (const std::size_t at = line.find(" CUDA memory allocation retries");
      at != std::string_view::npos && at > 0 && !run.steps.empty()) {
    const std::size_t start = line.rfind(' ', at - 1);
    const std::string_view count =
        line.substr(start == std::string_view::npos ? 0 : start + 1, at - start - 1);
    run.steps.back().allocator_retries = whole_number_in(count);
  }
}

}  // namespace orrery::observe
