// SPDX-License-Identifier: Apache-2.0
// Holds results of tasks as lines of JSON in a folder that many processes write into.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/app/shards/mapped_file.h"
#include "sim/app/shards/shard.h"

namespace orrery {

// What a line says beside its result: lines of one folder agree in it.
struct ResultKey {
  std::string question, version, catalogue;
};

// A process writes into a file of its own, part-I-of-N-HOST-PID-T.jsonl, or
// part-all-HOST-PID-T.jsonl where it does all that is left; no line is ever changed.
// {"point": its hash, "question": .., "version": .., "catalogue": .., "seconds": .., "result": ..},
// or "error" in place of "result". A last line without its break is not there: its process died.
class ResultsFolder {
 public:
  ResultsFolder(std::filesystem::path folder, ResultKey key, std::optional<Shard> shard);
  ResultsFolder(const ResultsFolder&) = delete;
  ResultsFolder& operator=(const ResultsFolder&) = delete;
  ~ResultsFolder();  // what flush() did not write is lost: nobody hears of errors here

  // Looks at what is there. `own`: not at what other shards wrote, where all files are of as many
  // shards. Error for a line of another question, version or catalogue, for one that is no
  // result, and for two results of a point that differ.
  void read(bool own);

  // Any thread may ask. `text`: the result or the error, as JSON.
  struct Kept {
    std::string_view text;
    bool failed = false;
    double seconds = 0;
  };
  std::optional<Kept> find(std::uint64_t task) const;

  // Any thread may. A later result of a task that is there is dropped. What is kept is written
  // within a second or so, in whole lines. MachineFailed: the disk takes no more.
  void keep(std::uint64_t task, const std::string& text, bool failed, double seconds);
  void flush();

  // Numbers of shards that files name; empty: there are none.
  std::vector<std::int64_t> shard_counts() const;

 private:
  void read_file(const std::filesystem::path& file);
  void take_line(std::string_view line, const std::filesystem::path& file);
  void write_out();
  void open_own();

  std::filesystem::path folder_;
  ResultKey key_;
  std::optional<Shard> shard_;
  std::string middle_;  // of a line: after its point
  std::vector<MappedFile> files_;
  std::unordered_map<std::uint64_t, Kept> known_;

  mutable std::mutex mutex_;
  std::unordered_set<std::uint64_t> new_;  // tasks that this process kept
  std::filesystem::path own_;
  int descriptor_ = -1;
  std::int64_t written_ = 0;  // bytes
  std::string waiting_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace orrery
