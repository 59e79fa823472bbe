// SPDX-License-Identifier: Apache-2.0
// Knows who searches: one search of a client at a time, and how many of all.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/app/web/reply.h"

namespace orrery {

inline constexpr std::size_t most_searches = 32;  // that are asked for, streams of events too
inline constexpr std::size_t most_running_searches = 4;  // others wait for their turn

// Clients name themselves; those without a name are one client.
class Searches {
 public:
  // Why it may not begin. Else it is there until end().
  std::optional<WebReply> begin(const std::string& client);
  void end(const std::string& client);
  // Whether it may run now: earlier ones that ran have ended.
  bool may_run(const std::string& client);
  // Asks the client's search to end with what it has. Whether there is one.
  bool stop(const std::string& client);
  bool stopped(const std::string& client) const;

 private:
  struct State {
    bool running = false, stopped = false;
  };
  std::map<std::string, State> all_;
  std::size_t running_ = 0;
};

}  // namespace orrery
