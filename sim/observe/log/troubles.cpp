// SPDX-License-Identifier: Apache-2.0
// Knows the words by which logs name trouble, saves and evaluations.
#include <array>
#include <string>

#include "sim/observe/input/words.h"
#include "sim/observe/log/line_readers.h"

namespace orrery::observe {
namespace {

// A line of this kind holds both words; the second may be empty. The first row that fits counts.
struct TroubleWord {
  TroubleKind kind;
  std::string_view word, also = {};
};
constexpr std::array trouble_words = {
    TroubleWord{TroubleKind::nccl_timeout, "Watchdog caught collective operation timeout"},
    TroubleWord{TroubleKind::nccl_timeout, "collective operation timeout"},
    TroubleWord{TroubleKind::nccl_timeout, "ProcessGroupNCCL", "Timeout("},
    TroubleWord{TroubleKind::nccl_timeout, "Timeout waiting for", "NCCL"},
    TroubleWord{TroubleKind::nccl_warning, "NCCL WARN"},
    TroubleWord{TroubleKind::nccl_debug, "NCCL INFO"},
    TroubleWord{TroubleKind::nccl_debug, "NCCL TRACE"},
    TroubleWord{TroubleKind::nccl_debug, "NCCL_DEBUG=INFO"},
    TroubleWord{TroubleKind::nccl_debug, "NCCL_DEBUG=TRACE"},
    TroubleWord{TroubleKind::out_of_memory, "CUDA out of memory"},
    TroubleWord{TroubleKind::out_of_memory, "torch.cuda.OutOfMemoryError"},
    TroubleWord{TroubleKind::out_of_memory, "torch.OutOfMemoryError"},
    TroubleWord{TroubleKind::out_of_memory, "CUDA OOM errors"},
    TroubleWord{TroubleKind::out_of_memory, "RESOURCE_EXHAUSTED", "memory"},
    TroubleWord{TroubleKind::allocator_retry, "allocator cache flushes since last step"},
    TroubleWord{TroubleKind::allocator_retry, "CUDA memory allocation retries"},
    TroubleWord{TroubleKind::launch_blocking, "CUDA_LAUNCH_BLOCKING=1"},
    TroubleWord{TroubleKind::launch_blocking, "CUDA_LAUNCH_BLOCKING", "is set"},
    TroubleWord{TroubleKind::launch_blocking, "CUDA_LAUNCH_BLOCKING: 1"},
    TroubleWord{TroubleKind::anomaly_detection, "Anomaly Detection has been enabled"},
    TroubleWord{TroubleKind::anomaly_detection, "detect_anomaly", "rue"},
    TroubleWord{TroubleKind::anomaly_detection, "Anomaly mode"},
    TroubleWord{TroubleKind::distributed_debug, "TORCH_DISTRIBUTED_DEBUG=DETAIL"},
    TroubleWord{TroubleKind::distributed_debug, "TORCH_DISTRIBUTED_DEBUG", "DETAIL"},
    TroubleWord{TroubleKind::distributed_debug, "TORCH_NCCL_BLOCKING_WAIT=1"},
    TroubleWord{TroubleKind::distributed_debug, "NCCL_BLOCKING_WAIT is enabled"},
    TroubleWord{TroubleKind::not_a_number, "found NaN in"},
    TroubleWord{TroubleKind::not_a_number, "Unexpected result nan"},
    TroubleWord{TroubleKind::not_a_number, "Loss is NaN"},
    TroubleWord{TroubleKind::not_a_number, "loss is nan"},
    TroubleWord{TroubleKind::loss_overflow, "OVERFLOW!", "loss scale"},
    TroubleWord{TroubleKind::loss_overflow, "Grad overflow on iteration"},
    TroubleWord{TroubleKind::loss_overflow, "Gradient overflow"},
    TroubleWord{TroubleKind::cuda_error, "CUDA error:"},
    TroubleWord{TroubleKind::cuda_error, "NVRM: Xid"},
    TroubleWord{TroubleKind::cuda_error, "uncorrectable ECC"},
    TroubleWord{TroubleKind::straggler, "straggler"},
    TroubleWord{TroubleKind::straggler, "Straggler"},
    TroubleWord{TroubleKind::connections, "CUDA_DEVICE_MAX_CONNECTIONS", "recommended"},
};

void keep_event(LogState& state, LoggedEvent::Kind kind, std::optional<Seconds> time) {
  std::vector<LoggedEvent>& events = state.run.events;
  // A save says that it begins, that it ended and how long it took: one event.
  if (!events.empty() && events.back().kind == kind && events.back().step == state.last_step) {
    if (time) events.back().time = time;
    return;
  }
  events.push_back({.kind = kind, .line = state.line, .step = state.last_step, .time = time});
}

}  // namespace

std::optional<TroubleKind> trouble_in(std::string_view line) {
  for (const TroubleWord& word : trouble_words)
    if (has(line, word.word) && (word.also.empty() || has(line, word.also))) return word.kind;
  return std::nullopt;
}

void take_event(std::string_view line, LogState& state) {
  constexpr std::array save_words = {
      std::string_view("saving checkpoint at iteration"),
      std::string_view("successfully saved checkpoint"),
      std::string_view("Saving the checkpoint"),
      std::string_view("Finished saving the checkpoint"),
      std::string_view("saved a checkpoint at step"),
      std::string_view("[Torch] Saved"),
      std::string_view("Saving model checkpoint to"),
  };
  constexpr std::array evaluation_words = {
      std::string_view("validation loss at iteration"), std::string_view("Evaluating iter"),
      std::string_view("Evaluating on "), std::string_view("eval metrics after step:"),
      std::string_view("validate step:")};
  for (const std::string_view word : save_words)
    if (has(line, word)) {
      // "Finished saving the checkpoint (or staging if async is enabled)in 12.34 seconds."
      const auto time = has(line, "Finished saving") ? number_after(line, "enabled)in ")
                                                     : std::optional<double>();
      keep_event(state, LoggedEvent::Kind::checkpoint,
                 time && *time >= 0 ? std::optional(seconds(*time)) : std::nullopt);
    }
  for (const std::string_view word : evaluation_words)
    if (has(line, word)) keep_event(state, LoggedEvent::Kind::evaluation, std::nullopt);
}

void keep_setting(RunLog& run, std::string_view name, std::string_view value) {
  constexpr std::size_t most_settings = 4000, longest = 1000;
  if (name.empty() || run.settings.size() >= most_settings || run.setting(name)) return;
  run.settings.emplace_back(std::string(name.substr(0, longest)),
                            std::string(value.substr(0, longest)));
}

}  // namespace orrery::observe
