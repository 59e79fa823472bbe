// SPDX-License-Identifier: Apache-2.0
// Knows how a search runs beside the server, as a program of its own: it can be stopped, ends with
// what it has, and takes its memory with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/answer/exit_code.h"
#include "sim/app/web/reply.h"
#include "sim/app/web/view.h"
#include "sim/base/child.h"

namespace orrery {

// The line that makes this program a worker: it reads one question on stdin and answers it.
bool is_worker_line(const std::vector<std::string>& words);
ExitCode run_worker();

// A worker seen from the server. MachineFailed where none can be started.
class Search {
 public:
  explicit Search(const ViewAsked& asked);

  struct Progress {
    double share = 0;
    std::int64_t count = 0;
  };
  // What came since it was asked last: the latest progress. Never waits.
  std::optional<Progress> progress();
  // Its reply, once it ended.
  const std::optional<WebReply>& reply() const { return reply_; }
  void stop();  // it ends with what it knows

 private:
  void take(const std::string& line);

  Child child_;
  std::string printed_;
  std::optional<Progress> latest_;
  std::optional<WebReply> reply_;
};

}  // namespace orrery
