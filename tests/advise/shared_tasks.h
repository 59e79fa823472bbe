// SPDX-License-Identifier: Apache-2.0
// Knows tasks that parts of a test share in memory, as processes share a folder.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/base/tasks/tasks.h"

namespace orrery {

// Part `index` of `count`; with a count of 0 the one that takes everything and does what is left.
class TasksInMemory : public Tasks {
 public:
  TasksInMemory(std::map<std::uint64_t, std::string>& known, std::uint64_t index,
                std::uint64_t count)
      : known_(known), index_(index), count_(count) {}

  bool wants(std::uint64_t task) override {
    return count_ == 0 || (task % count_ == index_ && !known_.contains(task));
  }
  std::optional<std::string> result(
      std::uint64_t task, const std::function<std::optional<std::string>()>& make) override {
    if (!wants(task)) return std::nullopt;
    if (const auto at = known_.find(task); at != known_.end()) return at->second;
    const auto made = make();
    if (!made) return std::nullopt;
    ++made_;
    known_[task] = *made;
    return made;
  }
  bool whole() const override { return count_ == 0; }
  int made() const { return made_; }

 private:
  std::map<std::uint64_t, std::string>& known_;
  std::uint64_t index_, count_;
  int made_ = 0;
};

}  // namespace orrery
