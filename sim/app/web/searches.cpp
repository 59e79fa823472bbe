// SPDX-License-Identifier: Apache-2.0
// Keeps the list of searches.
#include "sim/app/web/searches.h"

namespace orrery {

std::optional<WebReply> Searches::begin(const std::string& client) {
  if (all_.contains(client))
    return refusal_reply(429, "Orrery-Client", "a search of this client that still runs",
                         "one at a time: POST /api/v1/stop ends it");
  if (all_.size() >= most_searches)
    return refusal_reply(429, "server", "as many searches as it takes", "another try later");
  all_[client] = {};
  return std::nullopt;
}

void Searches::end(const std::string& client) {
  const auto at = all_.find(client);
  if (at == all_.end()) return;
  if (at->second.running) --running_;
  all_.erase(at);
}

bool Searches::may_run(const std::string& client) {
  State& state = all_.at(client);
  if (!state.running && running_ < most_running_searches) {
    state.running = true;
    ++running_;
  }
  return state.running;
}

bool Searches::stop(const std::string& client) {
  const auto at = all_.find(client);
  if (at == all_.end()) return false;
  at->second.stopped = true;
  return true;
}

bool Searches::stopped(const std::string& client) const {
  const auto at = all_.find(client);
  return at != all_.end() && at->second.stopped;
}

}  // namespace orrery
