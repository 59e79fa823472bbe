// Knows the names of tasks.
#include "workloads/job.h"

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

}  // namespace orrery
