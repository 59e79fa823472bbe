// SPDX-License-Identifier: Apache-2.0
// Holds the requests of a served model as flat arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/base/units/ticks.h"

namespace orrery {

inline constexpr std::int64_t most_request_tokens = 1'000'000'000;

struct Request {
  Ticks arrival;  // of one that follows another: the time between that one's end and its arrival
  std::int32_t prompt = 1, output = 1;         // tokens, each at least one
  std::uint32_t first_hash = 0, hashes = 0;    // its part of RequestList::hashes
  std::int32_t after = -1;                     // the request whose end it follows; -1: none
  std::int32_t session = -1, class_index = 0;  // class_index counts RequestList::classes
};

// Requests in order of arrival; those that follow another stand behind it.
struct RequestList {
  std::vector<Request> requests;
  // One number for each `hash_tokens` tokens of a text: equal numbers are equal texts up to there.
  // A request's part covers full units of its prompt, and of its output where a later request of
  // its session repeats it.
  std::shared_ptr<const std::vector<std::uint32_t>> hashes;
  std::int64_t hash_tokens = 0;
  std::int64_t concurrency = 0;  // of a closed loop: requests under way at once; arrivals are 0
  std::int64_t warmup = 0;       // the first so many are served and not counted
  std::vector<std::string> classes = {"default"};

  std::span<const std::uint32_t> hashes_of(const Request& r) const {
    if (r.hashes == 0) return {};
    return std::span(*hashes).subspan(r.first_hash, r.hashes);
  }
};

}  // namespace orrery
