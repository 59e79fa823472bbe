// SPDX-License-Identifier: Apache-2.0
// Names tasks and counts their tokens.
#include "workloads/layout/job.h"

namespace orrery {

std::string_view to_text(Task task) {
  switch (task) {
    case Task::pretrain:
      return "pretrain";
    case Task::sft:
      return "sft";
    case Task::lora:
      return "lora";
    case Task::prefill:
      return "prefill";
    case Task::decode:
      return "decode";
  }
  return "";
}

std::optional<Task> task_from(std::string_view text) {
  for (Task t : {Task::pretrain, Task::sft, Task::lora, Task::prefill, Task::decode}) {
    if (to_text(t) == text) return t;
  }
  return std::nullopt;
}

double tokens_per_step(const Job& job, std::int64_t replicas) {
  if (is_training(job.task)) return static_cast<double>(job.global_batch * job.sequence);
  const double sequences = static_cast<double>(replicas) * static_cast<double>(job.batch);
  return job.task == Task::prefill ? sequences * static_cast<double>(job.sequence) : sequences;
}

}  // namespace orrery
