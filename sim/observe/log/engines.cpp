// SPDX-License-Identifier: Apache-2.0
// Reads lines of serving engines: vLLM's means of ten seconds, SGLang's decode batches, iterations
// of TensorRT-LLM (print_iter_log). A step's time is that of decodes alone.
#include <cmath>

#include "sim/observe/input/words.h"
#include "sim/observe/log/line_readers.h"

namespace orrery::observe {
namespace {

constexpr std::int64_t unnumbered = -1;  // the reader counts such steps

std::optional<double> positive_after(std::string_view line, std::string_view key) {
  const auto value = number_after(line, key);
  return value && *value > 0 ? value : std::nullopt;
}

}  // namespace

// "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5221.1 tokens/s,
// Running: 64 reqs, Waiting: 0 reqs, GPU KV cache usage: 7.9%, ..."
std::optional<LoggedStep> vllm_step(std::string_view line) {
  const auto prompts = number_after(line, "Avg prompt throughput:");
  const auto speed = number_after(line, "Avg generation throughput:");
  const auto running = number_after(line, "Running:");
  if (!prompts || !speed || !running) return std::nullopt;
  LoggedStep found{.step = unnumbered, .clock_s = clock_in(line)};
  found.with_prompts = *prompts > 0;
  if (!(*running > 0 && *speed > 0)) return found;
  found.sequences = *running;
  if (const auto usage = positive_after(line, "GPU KV cache usage:"))
    found.cache_share = *usage / 100;
  if (!found.with_prompts) found.time = seconds(*running / *speed);
  found.time_source = TimeSource::speed;
  return found;
}

// "Decode batch. #running-req: 64, #token: 70000, token usage: 0.12, cuda graph: True, gen
// throughput (token/s): 3000.12, #queue-req: 0": of the batches since the line before.
std::optional<LoggedStep> sglang_step(std::string_view line) {
  if (line.find("Decode batch") == std::string_view::npos) return std::nullopt;
  const auto running = positive_after(line, "#running-req:");
  const auto speed = positive_after(line, "gen throughput (token/s):");
  if (!running || !speed) return std::nullopt;
  LoggedStep found{.step = unnumbered, .clock_s = clock_in(line)};
  found.sequences = *running;
  if (const auto tokens = positive_after(line, "#token:")) found.history = *tokens / *running;
  found.time = seconds(*running / *speed);
  found.time_source = TimeSource::speed;
  return found;
}

// "iter = 9, global_rank = 0, rank = 0, num_scheduled_requests = 64, ..., host_step_time = 7.4ms,
// prev_device_step_time = 7.1ms, ..., states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0,
// 'num_generation_tokens': 64}"
std::optional<LoggedStep> trtllm_step(std::string_view line) {
  const auto time = positive_after(line, "host_step_time =");
  const auto number = whole_number_after(line, "iter =");
  if (!time || !number || *number < 0) return std::nullopt;
  LoggedStep found{.step = *number, .clock_s = clock_in(line)};
  auto requests = positive_after(line, "num_scheduled_requests =");
  if (!requests) requests = positive_after(line, "num_scheduled_requests:");
  const auto prompts = number_after(line, "'num_ctx_requests':");
  found.with_prompts = prompts && *prompts > 0;
  if (!requests || found.with_prompts) return found;
  found.sequences = *requests;
  found.time = seconds(1e-3 * *time);
  return found;
}

// SGLang tells its decodes' mean over all time since its line before, prompts between them too.
void take_engines(std::string_view line, LogState& state) {
  if (line.find("Prefill batch") != std::string_view::npos) state.prompts_since = true;
  // vLLM: "GPU KV cache size: 892,336 tokens".
  if (const auto tokens = positive_after(line, "GPU KV cache size:"))
    state.cache_tokens = state.cache_tokens.value_or(*tokens);
}

}  // namespace orrery::observe
