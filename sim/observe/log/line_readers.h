// SPDX-License-Identifier: Apache-2.0
// Knows what one line of each program's log adds to what is known of the run.
#pragma once

#include <optional>
#include <string_view>

#include "sim/observe/log/run_log.h"

namespace orrery::observe {

// A run while its log is read.
struct LogState {
  RunLog run;
  std::size_t line = 0;
  std::optional<std::int64_t> last_step;
  // Of Megatron-LM's reports of timers: lines that follow the head belong to it.
  bool in_timers = false;
  double timer_scale = 1e-3;  // seconds of the unit that the head names
  bool in_settings = false;
  std::optional<std::string> timer;  // whose ranks follow
  // Programs on Megatron-LM may tell a step's speed in a line before that of the step.
  std::optional<FlopPerSecond> speed;
  // DeepSpeed tells a step's skips in the line before that of the step: the step, and its skips.
  std::optional<std::pair<std::int64_t, std::int64_t>> skips;
  // Of serving engines: prompts ran since the last step, and what vLLM's cache holds.
  bool prompts_since = false;
  std::optional<double> cache_tokens;
};

// Each takes what it knows of a line; a step where the line is one of a step. They throw nothing:
// a number that is none is left out.
std::optional<LoggedStep> megatron_step(std::string_view line);
std::optional<LoggedStep> nemo_step(std::string_view line);
std::optional<LoggedStep> torchtitan_step(std::string_view line);
std::optional<LoggedStep> deepspeed_step(std::string_view line);
std::optional<LoggedStep> maxtext_step(std::string_view line);
std::optional<LoggedStep> vllm_step(std::string_view line);
std::optional<LoggedStep> sglang_step(std::string_view line);
std::optional<LoggedStep> trtllm_step(std::string_view line);

// Lines beside those of steps: timers, settings, memory, checkpoints, evaluations.
void take_megatron(std::string_view line, LogState& state);
void take_torchtitan(std::string_view line, LogState& state);
void take_deepspeed(std::string_view line, LogState& state);
void take_maxtext(std::string_view line, LogState& state);
void take_engines(std::string_view line, LogState& state);
// Saves and evaluations in the words of any of the programs.
void take_event(std::string_view line, LogState& state);

std::optional<TroubleKind> trouble_in(std::string_view line);

// Keeps a setting under its first value; long values are cut.
void keep_setting(RunLog& run, std::string_view name, std::string_view value);

}  // namespace orrery::observe
