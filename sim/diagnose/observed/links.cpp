// SPDX-License-Identifier: Apache-2.0
// Reads off collectives how fast links are, whatever ranks wait for one another.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/base/statistics.h"
#include "sim/diagnose/observed/observations.h"
#include "sim/diagnose/observed/ratios.h"
#include "sim/engine/collectives/collectives.h"

namespace orrery {
namespace {

using observe::CollectiveRecord;
using observe::Profile;

GroupShape group_of(int ranks, const Scenario& s) {
  const std::int64_t domain = std::min<std::int64_t>(ranks, s.cluster.fabric.scale_up.domain);
  return {.size = ranks,
          .per_domain = domain,
          .domains = std::max<std::int64_t>(1, ranks / std::max<std::int64_t>(1, domain)),
          .span = ranks};
}

// One kind of call, the same on every rank of its group.
using CallKey = std::tuple<std::string, std::string, std::string, double, int>;
using Calls = std::map<CallKey, std::vector<const CollectiveRecord*>>;

Calls large_calls(const std::vector<Profile>& profiles, const Scenario& s) {
  Calls calls;
  for (const Profile& p : profiles)
    for (const CollectiveRecord& record : p.collectives) {
      if (!record.kind || !record.ranks || *record.ranks < 2 || record.least <= Seconds{}) continue;
      const double bytes = bytes_of(record);
      if (bytes < large_collective || *record.ranks > s.cluster.gpus) continue;
      calls[{record.name, record.group, record.type, bytes, *record.ranks}].push_back(&record);
    }
  return calls;
}

// Seconds that calls moved data. All ranks of a call end together, and the last of them to come
// waits for none: of each call the least time over ranks. A rank alone does not tell waits from the
// rest: of its calls the least. So it is where ranks have other calls than one another.
std::vector<double> moving(const std::vector<const CollectiveRecord*>& ranks) {
  const auto as_many = [&](const CollectiveRecord* r) {
    return r->each.size() == ranks.front()->each.size();
  };
  if (ranks.size() < 2 || !std::all_of(ranks.begin(), ranks.end(), as_many)) {
    double least = ranks.front()->least.si();
    for (const CollectiveRecord* r : ranks) least = std::min(least, r->least.si());
    return {least};
  }
  std::vector<double> seconds;
  for (std::size_t i = 0; i < ranks.front()->each.size(); ++i) {
    double least = ranks.front()->each[i].si();
    for (const CollectiveRecord* r : ranks) least = std::min(least, r->each[i].si());
    seconds.push_back(least);
  }
  return seconds;
}

// How far calls lie from the middle one of their kind, over all kinds: by the median of what they
// differ, as a few calls that wait for a late rank say nothing of links.
class CallSpread {
 public:
  void add(const std::vector<double>& seconds) {
    constexpr std::size_t fewest = 4;  // of a kind
    if (seconds.size() < fewest) return;
    const double middle = median(seconds);
    for (const double s : seconds) apart_.push_back(std::abs(s / middle - 1));
  }
  std::optional<Reading> reading() const {
    constexpr std::size_t fewest = 16;
    if (apart_.size() < fewest) return std::nullopt;
    constexpr double of_median = 1.4826;  // a normal distribution's deviation over this median
    constexpr double least = 0.002;       // of clocks
    return Reading{.symptom = Symptom::call_spread,
                   .value = std::log(std::max(least, of_median * median(apart_))),
                   .noise = 1 / std::sqrt(static_cast<double>(apart_.size()))};
  }

 private:
  std::vector<double> apart_;
};

}  // namespace

void read_links(const std::vector<Profile>& profiles, const Scenario& s, Readings& readings) {
  Ratios inside, outside;
  CallSpread spread;
  for (const auto& [key, ranks] : large_calls(profiles, s)) {
    const Collective collective{.kind = *ranks.front()->kind,
                                .group = group_of(*ranks.front()->ranks, s),
                                .bytes = Bytes(bytes_of(*ranks.front()))};
    const double predicted =
        collective_time(collective, s.cluster.fabric, s.cluster.collective_costs).time.si();
    if (predicted <= 0) continue;
    const std::vector<double> calls = moving(ranks);
    const double each =
        predicted * static_cast<double>(ranks.front()->count) / static_cast<double>(calls.size());
    if (collective.group.domains > 1) spread.add(calls);
    for (const double seconds : calls)
      (collective.group.domains > 1 ? outside : inside).add(seconds / predicted, each);
  }
  const auto add = [&](Symptom symptom, std::optional<double> ratio) {
    if (ratio) readings.push_back({.symptom = symptom, .value = std::log(*ratio)});
  };
  add(Symptom::link, inside.middle());
  add(Symptom::network, outside.middle());
  if (const auto reading = spread.reading()) readings.push_back(*reading);
}

}  // namespace orrery
