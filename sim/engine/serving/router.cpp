// SPDX-License-Identifier: Apache-2.0
// Routes requests by number, load or the texts that were sent before.
#include "sim/engine/serving/router.h"

#include <algorithm>

#include "sim/base/random.h"

namespace orrery {

RequestRouter::RequestRouter(const RouterPolicy& policy, const RequestList& requests,
                             std::size_t engines, std::uint64_t seed)
    : policy_(policy), requests_(requests), seed_(seed), loads_(engines, 0) {}

bool RequestRouter::is_fixed(RouterKind kind) {
  return kind == RouterKind::random || kind == RouterKind::round_robin ||
         kind == RouterKind::session || kind == RouterKind::by_class;
}

std::int64_t RequestRouter::weight(const Request& r) const {
  return policy_.kind == RouterKind::least_tokens ? r.prompt : 1;
}

std::size_t RequestRouter::choose(std::uint32_t request) {
  const Request& r = requests_.requests[request];
  const std::size_t engine = pick(request, r);
  loads_.set(engine, loads_[engine] + weight(r));
  return engine;
}

void RequestRouter::ended(std::size_t engine, std::uint32_t request) {
  loads_.set(engine, loads_[engine] - weight(requests_.requests[request]));
}

std::size_t RequestRouter::pick(std::uint32_t request, const Request& r) {
  const std::uint64_t engines = loads_.size();
  RandomStream random(seed_, request);
  switch (policy_.kind) {
    case RouterKind::round_robin:
      return turn_++ % engines;
    case RouterKind::least_requests:
    case RouterKind::least_tokens:
      return least();
    case RouterKind::power_of_two: {
      const std::size_t a = random.below(engines), b = random.below(engines);
      return loads_[b] < loads_[a] ? b : a;
    }
    case RouterKind::prefix:
      return by_prefix(r);
    case RouterKind::session:
      if (r.session >= 0)
        return RandomStream(seed_, static_cast<std::uint64_t>(r.session)).below(engines);
      break;
    case RouterKind::by_class:
      return static_cast<std::size_t>(r.class_index) % engines;
    case RouterKind::random:
      break;
  }
  return random.below(engines);
}

std::size_t RequestRouter::by_prefix(const Request& r) {
  const auto text = requests_.hashes_of(r);
  // Units are sent with all before them, so that the known ones are the first.
  std::size_t known = 0, unknown = text.size() + 1;
  while (unknown - known > 1) {
    const std::size_t middle = (known + unknown) / 2;
    (sent_.find(text[middle - 1]) == UnitMap::none ? unknown : known) = middle;
  }
  std::size_t engine = least();
  if (known > 0 &&
      static_cast<double>(known) >= policy_.least_share * static_cast<double>(text.size())) {
    const std::size_t there = sent_.find(text[known - 1]);
    const double least_load = static_cast<double>(loads_.least());
    const bool too_much = loads_[there] > loads_.least() + policy_.more_by &&
                          static_cast<double>(loads_[there]) > policy_.more_times * least_load;
    if (!too_much) engine = there;
  }
  for (std::size_t i = 0; i < text.size(); ++i)
    i < known ? sent_.set(text[i], static_cast<std::uint32_t>(engine))
              : sent_.insert(text[i], static_cast<std::uint32_t>(engine));
  return engine;
}

}  // namespace orrery
