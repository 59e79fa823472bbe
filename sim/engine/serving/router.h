// SPDX-License-Identifier: Apache-2.0
// Chooses the engine that a request goes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/text/enum_names.h"
#include "sim/engine/serving/unit_map.h"
#include "sim/engine/serving/winner_tree.h"
#include "workloads/traffic/request.h"

namespace orrery {

// Loads are of requests sent and not ended, least_tokens': of the tokens of their prompts.
// power_of_two: the less loaded of two that are drawn. prefix: where most of the prompt was sent
// before, unless that engine has too much to do. session, class: by its number.
enum class RouterKind {
  random,
  round_robin,
  least_requests,
  least_tokens,
  power_of_two,
  prefix,
  session,
  by_class
};
inline constexpr auto router_kind_text =
    enum_names<RouterKind>({"random", "round-robin", "least-requests", "least-tokens",
                            "power-of-two", "prefix", "session", "class"});
constexpr std::string_view to_text(RouterKind k) { return router_kind_text[k]; }

// The last three are of `prefix`, and the defaults of SGLang's router (sgl-router,
// src/policies/cache_aware.rs).
struct RouterPolicy {
  RouterKind kind = RouterKind::round_robin;
  double least_share = 0.5;   // of the prompt that must have been there
  std::int64_t more_by = 64;  // too much to do: so many requests more than the least loaded has,
  double more_times = 1.5;    // and so many times as many
};

class RequestRouter {
 public:
  RequestRouter(const RouterPolicy& policy, const RequestList& requests, std::size_t engines,
                std::uint64_t seed);

  std::size_t choose(std::uint32_t request);  // and counts it as sent
  void ended(std::size_t engine, std::uint32_t request);

  // Whether the choice depends on nothing but the request's number, session or class.
  static bool is_fixed(RouterKind kind);

 private:
  std::size_t least() const { return loads_.best(); }
  std::size_t pick(std::uint32_t request, const Request& r);
  std::size_t by_prefix(const Request& r);
  std::int64_t weight(const Request& r) const;

  RouterPolicy policy_;
  const RequestList& requests_;
  std::uint64_t seed_;
  WinnerTree<std::int64_t> loads_;
  UnitMap sent_;  // the engine that a unit of text was sent to last
  std::size_t turn_ = 0;
};

}  // namespace orrery
