// SPDX-License-Identifier: Apache-2.0
// Takes results that are there, makes those that are this process's, and counts both.
#include "sim/app/shards/shared_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "sim/app/answer/answer.h"
#include "sim/app/answer/version.h"
#include "sim/base/text/words.h"

namespace orrery {

SharedWork::SharedWork(const std::filesystem::path& folder, const SharedRun& run, Mode mode,
                       Shard shard)
    : path_(folder),
      folder_(folder, {run.hash(), program_version(), run.catalogue},
              mode == Mode::part ? std::optional(shard) : std::nullopt),
      mode_(mode),
      shard_(shard) {
  folder_.read(mode == Mode::part);
}

bool SharedWork::takes(std::uint64_t task) {
  const std::scoped_lock lock(mutex_);
  return taken_.insert(task).second;
}

std::vector<std::uint64_t> SharedWork::seen() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::uint64_t> tasks = seen_;
  std::sort(tasks.begin(), tasks.end());
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  return tasks;
}

bool SharedWork::wants(std::uint64_t task) {
  if (mode_ == Mode::whole) return true;
  {
    const std::scoped_lock lock(mutex_);
    seen_.push_back(task);
  }
  return mode_ == Mode::part && shard_.has(task) && !folder_.find(task);
}

std::optional<std::string> SharedWork::result(
    std::uint64_t task, const std::function<std::optional<std::string>()>& make) {
  if (!wants(task)) return std::nullopt;
  if (const auto kept = folder_.find(task)) return std::string(kept->text);
  // A part has a point once, however often the question names it.
  if (mode_ == Mode::part && !takes(task)) return std::nullopt;
  const auto start = std::chrono::steady_clock::now();
  std::optional<std::string> made = make();
  const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start;
  if (!made) return std::nullopt;
  const bool failed = is_error_text(*made);
  folder_.keep(task, *made, failed, used.count());
  ++(failed ? failed_ : done_);
  if (when_done_) when_done_(done_ + failed_);
  return made;
}

std::string SharedWork::summary() const {
  const std::vector<std::uint64_t> tasks = seen();
  std::int64_t own = 0, there = 0;
  for (const std::uint64_t task : tasks) {
    own += shard_.has(task) ? 1 : 0;
    there += shard_.has(task) && folder_.find(task) ? 1 : 0;
  }
  const std::int64_t made = done_ + failed_;
  std::string text =
      fmt::format("shard {}: {} of {}: {} there before, {} done now", to_text(shard_), grouped(own),
                  plural(tasks.size(), "point"), grouped(there), grouped(made));
  if (failed_ > 0) text += fmt::format(" ({} failed)", grouped(failed_.load()));
  const std::int64_t missing = own - there - made;
  if (missing > 0) text += fmt::format(", {} left", grouped(missing));
  return text;
}

SharedStatus SharedWork::status() const {
  SharedStatus status;
  const std::vector<std::int64_t> counts = folder_.shard_counts();
  if (counts.size() == 1) status.shards = counts.front();
  for (std::int64_t i = 0; i < status.shards; ++i) status.by_shard.push_back({.shard = i});
  for (const std::uint64_t task : seen()) {
    const auto kept = folder_.find(task);
    const auto count = [&](SharedStatus::Of& of) {
      ++of.points;
      if (kept) ++(kept->failed ? of.failed : of.done);
    };
    count(status.all);
    if (kept) status.seconds += kept->seconds;
    if (status.shards > 0) count(status.by_shard[task % static_cast<std::uint64_t>(status.shards)]);
  }
  return status;
}

}  // namespace orrery
