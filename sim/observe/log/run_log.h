// SPDX-License-Identifier: Apache-2.0
// Knows what the log of a run says: its steps, its phases, its settings and its troubles.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/units.h"

namespace orrery::observe {

// The program whose lines were found. A log of Megatron-DeepSpeed has lines of both: Megatron-LM.
enum class Program : std::uint8_t {
  megatron,
  nemo,
  torchtitan,
  deepspeed,
  maxtext,
  vllm,
  sglang,
  trtllm,
};
inline constexpr auto program_text =
    enum_names<Program>({"Megatron-LM", "NeMo", "TorchTitan", "DeepSpeed", "MaxText", "vLLM",
                         "SGLang", "TensorRT-LLM"});

// Why a step is unlike the rest. Statistics of a run take the usual ones.
enum class StepMark : std::uint8_t {
  usual,
  warm_up,     // at the start, or after a restart, and far from the rest
  checkpoint,  // it holds, or follows, the saving of a checkpoint
  evaluation,  // it follows an evaluation
  outlier,     // none of these, but far from the median
  no_time,     // the log tells no time of it
};
inline constexpr auto step_mark_text =
    enum_names<StepMark>({"usual", "warm-up", "checkpoint", "evaluation", "outlier", "no time"});

// How the time of a step is known. `between`: from the clocks of two lines, over the steps between
// them. `speed`: from tokens per second and the tokens of a step that the log tells.
enum class TimeSource : std::uint8_t { printed, between, speed };
inline constexpr auto time_source_text =
    enum_names<TimeSource>({"printed", "clocks of lines", "tokens per second"});

// Memory of one GPU as the program's allocator counts it.
struct LoggedMemory {
  std::optional<Bytes> allocated, most_allocated, reserved, most_reserved;
  std::optional<double> most_share;  // of the GPU's memory, 0 to 1
};

struct LoggedStep {
  std::int64_t step = 0;  // as the program counts, from 0 or 1
  std::size_t line = 0;
  StepMark mark = StepMark::no_time;
  std::optional<Seconds> time;  // wall time of one step: a mean where several are logged at once
  TimeSource time_source = TimeSource::printed;
  std::optional<double> clock_s;                                 // since 1970, of its line
  std::optional<TokensPerSecond> tokens_per_gpu, tokens_of_job;  // per second
  std::optional<double> samples_per_s;                           // of the job
  std::optional<FlopPerSecond> per_gpu;  // model's operations a second, on one GPU
  std::optional<double> mfu;             // 0 to 1, as printed
  std::optional<double> loss, loss_scale, gradient_norm;
  bool loss_is_nan = false;
  std::optional<std::int64_t> global_batch;  // samples of the step
  // Steps skipped: since the line before (Megatron-LM), or since the run began (DeepSpeed).
  std::optional<std::int64_t> skipped, nan_steps;
  // As told: since the step before (DeepSpeed), or since the run began (TorchTitan).
  std::optional<std::int64_t> allocator_retries;
  LoggedMemory memory;
  // Of serving engines, a step of decodes: how many sequences, tokens before in each, and what
  // share of its cache is in use. Steps with prompts among them have no time.
  bool with_prompts = false;
  std::optional<double> sequences, history, cache_share;
};

// One timer, in one report. `least` and `most` are over ranks where the log tells both; `ranks`
// holds each rank's time where it tells all.
struct LoggedPhase {
  std::string name;  // as printed: "forward-compute", "bwd_allreduce_microstep"
  std::size_t line = 0;
  std::optional<std::int64_t> step;  // the step whose line came last before it, or comes with it
  std::optional<Seconds> least, most;
  std::vector<std::pair<int, Seconds>> ranks;
};

enum class TroubleKind : std::uint8_t {
  nccl_warning,
  nccl_timeout,
  nccl_debug,  // NCCL_DEBUG prints more than warnings: the log grows, setup is slow
  out_of_memory,
  allocator_retry,
  launch_blocking,  // CUDA_LAUNCH_BLOCKING: each kernel waits for the one before
  anomaly_detection,
  distributed_debug,  // TORCH_DISTRIBUTED_DEBUG=DETAIL and the like
  not_a_number,
  loss_overflow,  // a step is skipped and the loss scale falls
  cuda_error,     // illegal access, ECC, Xid
  straggler,      // the program itself reports a slow rank
  connections,    // CUDA_DEVICE_MAX_CONNECTIONS is not what the program wants
};
inline constexpr auto trouble_text = enum_names<TroubleKind>(
    {"NCCL warning", "NCCL timeout", "NCCL_DEBUG", "out of memory", "allocator retry",
     "CUDA_LAUNCH_BLOCKING", "anomaly detection", "distributed debug", "not a number",
     "loss overflow", "CUDA error", "straggler", "CUDA_DEVICE_MAX_CONNECTIONS"});

// A line that names trouble. The same kind is kept at most a hundred times; `more` counts the rest.
struct Trouble {
  TroubleKind kind = TroubleKind::nccl_warning;
  std::size_t line = 0;
  std::optional<std::int64_t> step;  // the step whose line came last
  std::string text;                  // at most 240 bytes of it
  std::size_t more = 0;              // at the first of its kind: lines that were not kept
};

struct LoggedEvent {
  enum class Kind : std::uint8_t { checkpoint, evaluation, restart };
  Kind kind = Kind::checkpoint;
  std::size_t line = 0;
  std::optional<std::int64_t> step;
  std::optional<Seconds> time;  // that training stood still for it, where the log tells it
};

// Of usual steps. `deviation` is 1.4826 times the median absolute deviation.
struct StepStatistics {
  std::size_t steps = 0;
  Seconds median, deviation, p90, least, most;
};

struct RunLog {
  std::string file;
  Program program = Program::megatron;
  std::optional<std::int64_t> world_size, sequence, total_steps;
  std::optional<std::int64_t> tensor, pipeline, context, expert, data;  // ways of parallelism
  std::optional<std::string> device;                                    // as the driver names it
  std::vector<LoggedStep> steps;                                        // in the order of the log
  std::vector<LoggedPhase> phases;
  std::vector<Trouble> troubles;
  std::vector<LoggedEvent> events;
  // Settings that the program printed, as it printed them, in order; the first of a name.
  std::vector<std::pair<std::string, std::string>> settings;
  StepStatistics usual;
  // Of serving engines, the median usual step's.
  std::optional<std::int64_t> sequences, history;
  // One sentence each, about what was left out or assumed: steps that are not usual, lines of other
  // ranks, a restart, a file that ends early.
  std::vector<std::string> notes;

  // The value of a printed setting, or nothing.
  std::optional<std::string_view> setting(std::string_view name) const;
};

// Reads the log of one run, plain or packed. Error where no line tells a step.
RunLog read_run_log(const std::filesystem::path& file);
// Whether the line is one of a log that read_run_log() takes steps from.
bool tells_a_step(std::string_view line);

}  // namespace orrery::observe
