// SPDX-License-Identifier: Apache-2.0
// Reads the log of a run line by line and joins what its lines say of one step.
#include "sim/observe/log/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/base/errors/check.h"
#include "sim/base/statistics.h"
#include "sim/observe/input/lines.h"
#include "sim/observe/input/words.h"
#include "sim/observe/log/line_readers.h"
#include "sim/observe/log/marks.h"

namespace orrery::observe {
namespace {

constexpr std::size_t most_steps = 2'000'000, most_phases = 4'000'000, most_troubles = 100;

struct StepReader {
  Program program;
  std::optional<LoggedStep> (*read)(std::string_view line);
};
constexpr std::array<StepReader, 8> step_readers = {{{Program::megatron, megatron_step},
                                                     {Program::nemo, nemo_step},
                                                     {Program::torchtitan, torchtitan_step},
                                                     {Program::maxtext, maxtext_step},
                                                     {Program::deepspeed, deepspeed_step},
                                                     {Program::vllm, vllm_step},
                                                     {Program::sglang, sglang_step},
                                                     {Program::trtllm, trtllm_step}}};

template <class T>
void fill(std::optional<T>& to, const std::optional<T>& from) {
  if (!to) to = from;
}

// What another line says of the same step: it fills what is blank.
void join(LoggedStep& step, const LoggedStep& more) {
  if (!step.time && more.time) {
    step.time = more.time;
    step.time_source = more.time_source;
  }
  fill(step.clock_s, more.clock_s);
  fill(step.tokens_per_gpu, more.tokens_per_gpu);
  fill(step.tokens_of_job, more.tokens_of_job);
  fill(step.samples_per_s, more.samples_per_s);
  fill(step.per_gpu, more.per_gpu);
  fill(step.mfu, more.mfu);
  fill(step.loss, more.loss);
  fill(step.loss_scale, more.loss_scale);
  fill(step.gradient_norm, more.gradient_norm);
  step.loss_is_nan = step.loss_is_nan || more.loss_is_nan;
  fill(step.global_batch, more.global_batch);
  fill(step.skipped, more.skipped);
  fill(step.nan_steps, more.nan_steps);
  fill(step.allocator_retries, more.allocator_retries);
  fill(step.memory.allocated, more.memory.allocated);
  fill(step.memory.most_allocated, more.memory.most_allocated);
  fill(step.memory.reserved, more.memory.reserved);
  fill(step.memory.most_reserved, more.memory.most_reserved);
  fill(step.memory.most_share, more.memory.most_share);
}

class Reader {
 public:
  void take(std::string_view line, std::size_t number);
  RunLog finish(const std::string& file, bool cut);

 private:
  void take_step(LoggedStep step, Program program);
  bool seen(std::int64_t step) const;
  void take_trouble(TroubleKind kind, std::string_view line);
  void name_program();
  void take_settings();
  void time_saves();
  void time_steps();
  void take_batch();

  LogState state_;
  std::map<Program, std::size_t> lines_of_;
  std::map<TroubleKind, std::vector<std::size_t>> troubles_of_;
  Program last_program_ = Program::megatron;
  std::size_t repeated_ = 0;
};

void Reader::take(std::string_view line, std::size_t number) {
  state_.line = number;
  for (const StepReader& reader : step_readers)
    if (auto step = reader.read(line)) {
      take_step(*step, reader.program);
      return;
    }
  take_megatron(line, state_);
  take_torchtitan(line, state_);
  take_deepspeed(line, state_);
  take_maxtext(line, state_);
  take_engines(line, state_);
  take_event(line, state_);
  if (const auto kind = trouble_in(line)) take_trouble(*kind, line);
  if (state_.run.phases.size() > most_phases) state_.run.phases.resize(most_phases);
}

RunLog Reader::finish(const std::string& file, bool cut) {
  RunLog& run = state_.run;
  run.file = file;
  if (run.steps.empty())
    throw Error({.file = file,
                 .found = "no line that tells a step",
                 .expected = "a log of Megatron-LM, NeMo, TorchTitan, DeepSpeed, MaxText, vLLM, "
                             "SGLang or TensorRT-LLM"});
  name_program();
  take_settings();
  time_saves();
  time_steps();
  if (cut) run.notes.push_back("The packed file ends early: its last lines are missing.");
  if (repeated_ > 0)
    run.notes.push_back(
        fmt::format("{} more lines tell of steps that were told before (other ranks): the first "
                    "line of a step counts.",
                    repeated_));
  for (const LoggedEvent& event : run.events)
    if (event.kind == LoggedEvent::Kind::restart)
      run.notes.push_back(fmt::format("The steps begin again in line {}: a restart.", event.line));
  mark_steps(run);
  take_batch();
  return std::move(run);
}

void Reader::take_step(LoggedStep step, Program program) {
  ++lines_of_[program];
  step.line = state_.line;
  state_.in_timers = state_.in_settings = false;
  std::vector<LoggedStep>& steps = state_.run.steps;
  if (step.step < 0) step.step = static_cast<std::int64_t>(steps.size()) + 1;
  if (program == Program::sglang && state_.prompts_since) {
    step.with_prompts = true;
    step.time.reset();
  }
  state_.prompts_since = false;
  if (!steps.empty() && steps.back().step == step.step) {
    if (program == last_program_)
      ++repeated_;
    else
      join(steps.back(), step);
    return;
  }
  // Lines of other ranks lag by a step or two; further back the run has begun again.
  constexpr std::int64_t lag = 2;
  if (!steps.empty() && step.step < steps.back().step) {
    if (steps.back().step - step.step <= lag && steps.size() > 1 && seen(step.step)) {
      ++repeated_;
      return;
    }
    state_.run.events.push_back(
        {.kind = LoggedEvent::Kind::restart, .line = state_.line, .step = step.step, .time = {}});
  }
  if (state_.skips && state_.skips->first == step.step && !step.skipped)
    step.skipped = state_.skips->second;
  if (!step.per_gpu) step.per_gpu = state_.speed;
  state_.speed.reset();
  last_program_ = program;
  state_.last_step = step.step;
  if (steps.size() < most_steps) steps.push_back(step);
}

bool Reader::seen(std::int64_t step) const {
  const std::vector<LoggedStep>& steps = state_.run.steps;
  for (std::size_t back = 1; back <= 4 && back <= steps.size(); ++back)
    if (steps[steps.size() - back].step == step) return true;
  return false;
}

void Reader::take_trouble(TroubleKind kind, std::string_view line) {
  constexpr std::size_t shown = 240;
  std::vector<std::size_t>& kept = troubles_of_[kind];
  std::vector<Trouble>& troubles = state_.run.troubles;
  if (kept.size() >= most_troubles) {
    ++troubles[kept.front()].more;
    return;
  }
  kept.push_back(troubles.size());
  troubles.push_back({.kind = kind,
                      .line = state_.line,
                      .step = state_.last_step,
                      .text = std::string(trimmed(line).substr(0, shown))});
}

// DeepSpeed's lines stand in the logs of programs that use it.
void Reader::name_program() {
  std::size_t most = 0;
  for (const StepReader& reader : step_readers) {
    const auto found = lines_of_.find(reader.program);
    if (found == lines_of_.end()) continue;
    const std::size_t weight = reader.program == Program::deepspeed ? 1 : 2 * found->second;
    if (weight > most) {
      most = weight;
      state_.run.program = reader.program;
    }
  }
}

void Reader::take_settings() {
  RunLog& run = state_.run;
  const auto take = [&run](std::optional<std::int64_t>& to, std::string_view name) {
    if (to) return;
    if (const auto value = run.setting(name)) to = whole_number_in(*value);
  };
  take(run.world_size, "world_size");
  take(run.tensor, "tensor_model_parallel_size");
  take(run.pipeline, "pipeline_model_parallel_size");
  take(run.context, "context_parallel_size");
  take(run.expert, "expert_model_parallel_size");
  take(run.data, "data_parallel_size");
  take(run.sequence, "seq_length");
  take(run.total_steps, "train_iters");
}

// Megatron-LM times saves and evaluations with its timers.
void Reader::time_saves() {
  for (LoggedEvent& event : state_.run.events) {
    const std::string_view timer = event.kind == LoggedEvent::Kind::checkpoint   ? "save-checkpoint"
                                   : event.kind == LoggedEvent::Kind::evaluation ? "evaluate"
                                                                                 : "";
    if (timer.empty() || event.time) continue;
    for (const LoggedPhase& phase : state_.run.phases)
      if (phase.name.starts_with(timer) && phase.step == event.step && phase.most)
        event.time = phase.most;
  }
}

// Where no time is printed: from tokens, which are exact, or from clocks, which are not.
void Reader::time_steps() {
  RunLog& run = state_.run;
  const auto number = [&run](std::string_view name) -> std::optional<double> {
    const auto value = run.setting(name);
    return value ? number_in(*value) : std::nullopt;
  };
  const auto batch = number("global batch size");
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    LoggedStep& step = run.steps[i];
    if (step.time || step.sequences || step.with_prompts) continue;
    const LoggedStep* before = i > 0 ? &run.steps[i - 1] : nullptr;
    if (step.tokens_per_gpu && batch && run.sequence && run.world_size && *run.world_size > 0) {
      const double tokens =
          *batch * static_cast<double>(*run.sequence) / static_cast<double>(*run.world_size);
      step.time = seconds(tokens / step.tokens_per_gpu->si());
      step.time_source = TimeSource::speed;
    } else if (before != nullptr && before->clock_s && step.clock_s && step.step > before->step &&
               *step.clock_s > *before->clock_s) {
      step.time = seconds((*step.clock_s - *before->clock_s) /
                          static_cast<double>(step.step - before->step));
      step.time_source = TimeSource::between;
    }
    if (step.time && !(step.time->si() > 0 && step.time->si() < 1e9)) step.time.reset();
  }
}

// What an engine's usual steps of decodes have in common.
void Reader::take_batch() {
  RunLog& run = state_.run;
  std::vector<double> sequences, history;
  std::size_t with_prompts = 0;
  for (const LoggedStep& step : run.steps) {
    with_prompts += step.with_prompts ? 1 : 0;
    if (step.mark != StepMark::usual || !step.sequences) continue;
    sequences.push_back(*step.sequences);
    if (step.history)
      history.push_back(*step.history);
    else if (step.cache_share && state_.cache_tokens)
      history.push_back(*step.cache_share * *state_.cache_tokens / *step.sequences);
  }
  if (!sequences.empty()) run.sequences = std::max(1L, std::lround(median(sequences)));
  if (!history.empty()) run.history = std::max(1L, std::lround(median(history)));
  if (with_prompts > 0)
    run.notes.push_back(
        fmt::format("{} of {} logged steps had prompts among them: only steps of "
                    "decodes alone are timed.",
                    with_prompts, run.steps.size()));
}

}  // namespace

std::optional<std::string_view> RunLog::setting(std::string_view name) const {
  for (const auto& [key, value] : settings)
    if (key == name) return value;
  return std::nullopt;
}

RunLog read_run_log(const std::filesystem::path& file) {
  LineReader lines(file);
  Reader reader;
  std::string_view line;
  while (lines.next(line)) reader.take(line, lines.number());
  return reader.finish(lines.file(), lines.is_cut());
}

bool tells_a_step(std::string_view line) {
  return std::any_of(step_readers.begin(), step_readers.end(),
                     [line](const StepReader& reader) { return reader.read(line).has_value(); });
}

}  // namespace orrery::observe
