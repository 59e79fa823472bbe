// SPDX-License-Identifier: Apache-2.0
// Knows the part that this process has in the tasks of a question.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/app/answer/exit_code.h"
#include "sim/app/shards/results_folder.h"
#include "sim/app/shards/shared_run.h"
#include "sim/base/tasks/tasks.h"

namespace orrery {

// How many tasks have a result, and which shards those without one belong to.
struct SharedStatus {
  struct Of {
    std::int64_t shard = 0;  // of as many as `shards`
    std::int64_t points = 0, done = 0, failed = 0;
    std::int64_t missing() const { return points - done - failed; }
  };
  Of all;
  double seconds = 0;        // of one thread, that results took
  std::int64_t shards = 0;   // 0: files are of several numbers of shards, or there are none
  std::vector<Of> by_shard;  // where there are `shards`
};

class SharedWork : public Tasks {
 public:
  enum class Mode {
    part,   // does what its shard has and nobody did
    list,   // does nothing: asks which tasks there are
    whole,  // takes all results, and does what is missing
  };
  // `run`: as the folder holds it.
  SharedWork(const std::filesystem::path& folder, const SharedRun& run, Mode mode,
             Shard shard = {});

  bool wants(std::uint64_t task) override;
  std::optional<std::string> result(
      std::uint64_t task, const std::function<std::optional<std::string>()>& make) override;
  bool does_part() const { return mode_ == Mode::part; }
  bool whole() const override { return mode_ == Mode::whole; }

  // Called now and then, from any thread, with the tasks of this part that were done.
  void when_done(std::function<void(std::int64_t done)> call) { when_done_ = std::move(call); }

  void flush() { folder_.flush(); }
  std::string summary() const;  // one line: what a part had to do and did
  SharedStatus status() const;  // once all tasks were asked for
  // From here on all results are taken, and what is missing is done.
  void take_all() { mode_ = Mode::whole; }

  const std::filesystem::path& folder() const { return path_; }

 private:
  std::vector<std::uint64_t> seen() const;  // each once
  bool takes(std::uint64_t task);           // no other thread of this process has it

  std::filesystem::path path_;
  ResultsFolder folder_;
  Mode mode_;
  Shard shard_;
  std::function<void(std::int64_t)> when_done_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> seen_;
  std::unordered_set<std::uint64_t> taken_;
  std::atomic<std::int64_t> done_ = 0, failed_ = 0;
};

}  // namespace orrery
