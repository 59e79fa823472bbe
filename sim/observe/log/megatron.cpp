// SPDX-License-Identifier: Apache-2.0
// Reads lines of Megatron-LM's log (and of programs that stand on it): steps, timers, memory,
// settings.
#include <algorithm>
#include <array>
#include <string>

#include "sim/observe/input/words.h"
#include "sim/observe/log/line_readers.h"

namespace orrery::observe {
namespace {

// Words of the same meaning in Megatron-LM ("elapsed time per iteration (ms): 1.0") and in
// Megatron-DeepSpeed's newer loggers ("elapsed_time_per_iteration_ms=1.0").
std::optional<double> value_of(std::string_view line,
                               std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const auto value = number_after(line, key)) return value;
  return std::nullopt;
}

// A timer's line: its name, dots, a colon, and "(1.0, 2.0)" or "1.0" or nothing.
struct TimerLine {
  std::string_view name, value;
};

std::optional<TimerLine> timer_line(std::string_view line) {
  const std::size_t dots = line.find(" ..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::size_t colon = line.find(':', dots);
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view between = line.substr(dots + 1, colon - dots - 1);
  if (between.find_first_not_of('.') != std::string_view::npos) return std::nullopt;
  std::string_view name = trimmed(line.substr(0, dots));
  // Launchers put "0: " or "[rank0]:" before a line.
  if (const std::size_t blank = name.rfind(' '); blank != std::string_view::npos)
    name = name.substr(blank + 1);
  if (name.empty() || name.size() > 80) return std::nullopt;
  return TimerLine{name, trimmed(line.substr(colon + 1))};
}

void take_timer(std::string_view line, LogState& state) {
  const auto in_seconds = [&](double value) { return seconds(value * state.timer_scale); };
  if (const std::size_t rank = line.find("rank "); state.timer && rank != std::string_view::npos) {
    std::string_view rest;
    const auto number = leading_number(trimmed(line.substr(rank + 5)), &rest);
    rest = trimmed(rest);
    if (number && *number >= 0 && *number < 1e7 && rest.starts_with(':'))
      if (const auto value = number_in(rest.substr(1)); value && *value >= 0) {
        LoggedPhase& phase = state.run.phases.back();
        phase.ranks.emplace_back(static_cast<int>(*number), in_seconds(*value));
        const Seconds time = phase.ranks.back().second;
        phase.least = phase.least ? std::min(*phase.least, time) : time;
        phase.most = phase.most ? std::max(*phase.most, time) : time;
        return;
      }
  }
  const auto keep = [&](std::string_view name) -> LoggedPhase& {
    return state.run.phases.emplace_back(
        LoggedPhase{.name = std::string(name), .line = state.line, .step = state.last_step});
  };
  if (const auto timer = timer_line(line)) {
    if (timer->value.starts_with('(')) {
      std::string_view rest;
      const auto least = leading_number(trimmed(timer->value.substr(1)), &rest);
      rest = trimmed(rest);
      const auto most =
          rest.starts_with(',') ? leading_number(trimmed(rest.substr(1))) : std::optional<double>();
      if (!least || !most || *least < 0 || *most < *least) return;
      LoggedPhase& phase = keep(timer->name);
      phase.least = in_seconds(*least);
      phase.most = in_seconds(*most);
    } else if (const auto most = number_in(timer->value); most && *most >= 0) {
      keep(timer->name).most = in_seconds(*most);
    }
    return;
  }
  // "  forward-compute:" before its ranks.
  const std::string_view name = trimmed(line);
  if (name.ends_with(':') && name.size() > 1 && name.size() < 80 &&
      name.find(' ') == std::string_view::npos) {
    keep(name.substr(0, name.size() - 1));
    state.timer = std::string(name);
    return;
  }
  state.in_timers = false;
  state.timer.reset();
}

// "  num_layers ............. 32" between the lines that name the list.
void take_setting(std::string_view line, LogState& state) {
  const std::size_t dots = line.find(" ..");
  if (dots == std::string_view::npos) return;
  std::size_t end = dots + 1;
  while (end < line.size() && line[end] == '.') ++end;
  if (end < line.size() && line[end] != ' ') return;
  std::string_view name = trimmed(line.substr(0, dots));
  if (const std::size_t blank = name.rfind(' '); blank != std::string_view::npos)
    name = name.substr(blank + 1);
  keep_setting(state.run, name, trimmed(line.substr(end)));
}

void take_sizes(std::string_view line, RunLog& run) {
  if (!has(line, "using world size:")) return;
  const auto take = [line](std::optional<std::int64_t>& to, std::string_view key) {
    if (!to) to = whole_number_after(line, key);
  };
  take(run.world_size, "using world size:");
  take(run.data, "data-parallel size:");
  take(run.data, "data-parallel-size:");
  take(run.context, ", context-parallel size:");
  take(run.tensor, "tensor-model-parallel size:");
  take(run.tensor, "tensor-model-parallel-size:");
  take(run.pipeline, "pipeline-model-parallel size:");
  take(run.pipeline, "pipeline-model-parallel-size:");
}

// "[Rank 0] (after 2 iterations) memory (MB) | allocated: 1.0 | max allocated: ...". Megatron-LM
// divides by 1024 twice.
void take_memory(std::string_view line, RunLog& run) {
  if (!has(line, "memory (MB)") || run.steps.empty()) return;
  LoggedMemory& memory = run.steps.back().memory;
  const auto take = [line](std::optional<Bytes>& to, std::string_view key) {
    const auto value = number_after(line, key);
    if (value && *value >= 0) to = gibibytes(*value / 1024);
  };
  take(memory.allocated, "| allocated:");
  take(memory.most_allocated, "max allocated:");
  take(memory.reserved, "| reserved:");
  take(memory.most_reserved, "max reserved:");
}

}  // namespace

std::optional<LoggedStep> megatron_step(std::string_view line) {
  const bool plain = has(line, "elapsed time per iteration");
  if (!plain && !has(line, "elapsed_time_per_iteration")) return std::nullopt;
  const std::size_t at = line.find("iteration");
  std::string_view number = trimmed(line.substr(at + 9));
  if (number.starts_with('=')) number = trimmed(number.substr(1));
  const auto told = leading_number(number);
  const auto step = whole_part(told);
  if (!step || *told < 0) return std::nullopt;
  LoggedStep found{.step = *step};
  auto time =
      value_of(line, {"elapsed time per iteration (ms):", "elapsed_time_per_iteration_ms="});
  if (time) *time *= 1e-3;
  if (!time) time = number_after(line, "elapsed time per iteration (s):");
  if (!time || *time <= 0) return std::nullopt;
  found.time = seconds(*time);
  found.clock_s = clock_in(line);
  const auto tera =
      value_of(line, {"throughput per GPU (TFLOP/s/GPU):", "| TFLOPs:", "[LM]TFLOPs="});
  if (tera) found.per_gpu = flop_per_second(*tera * 1e12);
  const auto tokens = value_of(
      line,
      {"tokens per gpu per second (tgs):", "tokens/sec/gpu:", "tokens_per_gpu_per_second_tgs="});
  if (tokens) found.tokens_per_gpu = TokensPerSecond(*tokens);
  found.samples_per_s = value_of(line, {"samples per second:", "samples_per_second="});
  found.loss = value_of(line, {"lm loss:", "lm loss=", "lm_loss="});
  found.loss_is_nan =
      has(line, "lm loss: NAN") || has(line, "lm loss: nan") || has(line, "lm loss=nan");
  found.loss_scale = value_of(line, {"loss scale:", "loss_scale="});
  found.gradient_norm = value_of(line, {"grad norm:", "grad_norm="});
  found.global_batch = whole_part(value_of(line, {"global batch size:", "global_batch_size="}));
  found.skipped = whole_part(
      value_of(line, {"number of skipped iterations:", "number_of_skipped_iterations="}));
  found.nan_steps =
      whole_part(value_of(line, {"number of nan iterations:", "number_of_nan_iterations="}));
  return found;
}

void take_megatron(std::string_view line, LogState& state) {
  if (has(line, "time across ranks (") || has(line, "times across ranks (")) {
    state.in_timers = true;
    state.timer_scale = has(line, "across ranks (s)") ? 1 : 1e-3;
    state.timer.reset();
    // A save prints its timer on the same line in some launchers' logs.
    const std::size_t colon = line.find("):");
    if (colon != std::string_view::npos && timer_line(line.substr(colon + 2)))
      take_timer(line.substr(colon + 2), state);
    return;
  }
  if (state.in_timers) take_timer(line, state);
  if (has(line, "- end of arguments -")) state.in_settings = false;
  if (state.in_settings) take_setting(line, state);
  if (has(line, "- arguments -")) state.in_settings = true;
  take_sizes(line, state.run);
  take_memory(line, state.run);
  // "Step Time : 12.30s GPU utilization: 400.5MODEL_TFLOP/s/GPU".
  if (has(line, "MODEL_TFLOP/s/GPU"))
    if (const auto tera = number_after(line, "GPU utilization:"); tera && *tera > 0)
      state.speed = flop_per_second(*tera * 1e12);
}

}  // namespace orrery::observe
