// SPDX-License-Identifier: Apache-2.0
// Says whether requests whose ends are known all find room until they end.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

// SGLang's add_one_req_ignore_eos (managers/schedule_policy.py): requests end in the order of the
// tokens that they have yet to emit, and each then gives back all that it holds. Tokens, as if
// pages were filled to the last.
class KnownEnds {
 public:
  struct Running {
    std::int64_t left = 0, held = 0;  // tokens that it has yet to emit, and that it holds now
  };
  explicit KnownEnds(std::vector<Running> running);
  void add(Running one);
  // With so many tokens free now: whether more than one for each request is free at every end.
  bool fit(std::int64_t free) const;

 private:
  std::vector<Running> running_;  // by what is left
};

}  // namespace orrery
