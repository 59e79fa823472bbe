// SPDX-License-Identifier: Apache-2.0
// Knows how work is cut into tasks, so that processes share it and none does what another has done.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace orrery {

// Who does which tasks of one question, and what is known of them. Any thread may ask. A task is
// named by a hash (content_hash) that depends on nothing but the question: not on how many
// processes there are, nor on which of them asks.
class Tasks {
 public:
  virtual ~Tasks() = default;

  // Whether result() has something to say of the task, or to do. Else its input is not needed.
  virtual bool wants(std::uint64_t task) = 0;

  // JSON on one line: what is known of the task, or what `make` finds here and now, which is kept.
  // Nothing where another process does it, or where `make` found nothing (it was interrupted).
  virtual std::optional<std::string> result(
      std::uint64_t task, const std::function<std::optional<std::string>()>& make) = 0;

  // Whether the results of all tasks are had, so that what follows from them is work for this
  // process. Else it ends once it has gone through the tasks.
  virtual bool whole() const = 0;
};

// The same where nobody shares: `make` finds it.
inline std::optional<std::string> task_result(
    Tasks* tasks, std::uint64_t task, const std::function<std::optional<std::string>()>& make) {
  return tasks == nullptr ? make() : tasks->result(task, make);
}
inline bool goes_on(const Tasks* tasks) { return tasks == nullptr || tasks->whole(); }

}  // namespace orrery
