// SPDX-License-Identifier: Apache-2.0
// Knows how a study draws its traffic, and adds up what meets on every link.
#include "sim/engine/traffic/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/base/random.h"
#include "sim/base/statistics.h"
#include "sim/engine/flows/solver.h"
#include "sim/engine/traffic/link_loads.h"
#include "topologies/routing/hashing.h"
#include "topologies/routing/routing.h"

namespace orrery {
namespace {

constexpr std::size_t layers = 5;
constexpr double just_above = 1e-6;  // sums of shares round by less
// Hashed parts of flows: in one solve (some 350 bytes each), and in all rounds of a study together.
constexpr std::int64_t most_solved = INT64_C(1) << 17, most_routed = INT64_C(1) << 23;
// Rounds that are solved for the mean rate; of many flows, it hardly differs between hashes.
constexpr std::int64_t most_solves = 4, most_solves_of_many = 2;

double count(std::int64_t n) { return static_cast<double>(n); }

// What the links up of a leaf or spine get, by counting: a switch gets the same number of parts on
// average wherever it stands, and parts of one flow are as good as flows. Every plane is a fabric
// of its own.
struct Uplinks {
  std::int64_t parts = 0;             // of flows that one switch sends up in its plane
  double parts_of_link = 1;           // as much as a link carries
  std::int64_t up = 1, loads_of = 1;  // links up of a switch, switches whose loads are independent
  double spread() const { return count(parts) / (count(up) * parts_of_link); }
};

class Study {
 public:
  Study(const Fabric& fabric, const TrafficOptions& options);
  std::int64_t rounds() const { return out_.options.rounds; }
  std::int64_t paths() const { return out_.options.paths_per_flow; }
  Router router(std::int64_t round) const { return {fabric_, shape_, routing(round)}; }
  // One round of studies that differ in their queue pairs alone, fewest first: what links get, and
  // what flows get. Neither waits for the other.
  static void offer(std::vector<Study>& studies, std::int64_t round);
  static void solve(std::vector<Study>& studies, std::int64_t round);
  TrafficStudy result();

 private:
  Senders senders(std::int64_t domains) const {
    return {out_.options.pattern, domains, leaf_step_, out_.options.group / domain_};
  }
  RoutingOptions routing(std::int64_t round) const;
  void set_group();
  void set_paths();
  void set_rounds();
  void size_layers();
  // What one round's draw of hashes and shifts shows.
  struct Round {
    std::array<double, layers> crossing{}, solved_crossing{};  // parts by highest layer
    std::array<LoadCounts, layers> loads;
    std::optional<double> mean;
    double most() const;
  };
  template <class Visit>
  void each_flow(const Senders& from, std::int64_t domains, std::int64_t round,
                 Visit&& visit) const;
  bool counted() const { return out_.options.folded && out_.options.routing == Routing::ecmp; }
  void offer_routed(const Router& router, std::int64_t round, Round& out) const;
  void offer_counted(std::int64_t round, std::int64_t first, TrunkLoads& trunks, Round& out) const;
  void offer_nics(const Router& router, std::int64_t round, Round& out) const;
  void solve(const Router& router, std::int64_t round, Round& out) const;
  void merge(const Round& round);
  bool same_crossing() const;
  void load_layers();
  void closed_forms();
  Uplinks uplinks(std::size_t tier) const;

  const Fabric& fabric_;
  ClosShape shape_;
  TrafficStudy out_;
  std::int64_t domain_, domains_ = 0, leaf_step_ = 1, calls_ = 1, solved_domains_ = 0;
  double line_ = 0;       // B/s of one accelerator
  double part_rate_ = 0;  // B/s of one routed part when all NICs send at their rate
  std::array<double, layers> solved_crossing_{};   // parts in all solves by highest layer
  std::array<LoadCounts, layers> loads_;           // of all rounds
  std::array<std::vector<double>, layers> worst_;  // by round
  std::vector<double> worst_of_all_, means_;
  std::array<double, layers> links_{};
  std::vector<Round> done_;
};

Study::Study(const Fabric& fabric, const TrafficOptions& options)
    : fabric_(fabric), domain_(fabric.scale_up.domain) {
  const ScaleOutKind kind = fabric.scale_out.kind;
  if (kind == ScaleOutKind::none || kind == ScaleOutKind::torus)
    throw Error({.file = fabric.name,
                 .path = "scale_out.kind",
                 .found = in_quotes(to_text(kind)),
                 .expected = "switches outside the scale-up domain, for traffic to be routed"});
  domains_ = options.accelerators / domain_;
  if (domains_ < 2)
    throw Error({.file = fabric.name,
                 .found = fmt::format("{} accelerators", options.accelerators),
                 .expected = fmt::format("at least two scale-up domains of {}", domain_)});
  shape_ = clos_shape(fabric, domains_ * domain_);
  out_.options = options;
  out_.options.accelerators = domains_ * domain_;
  out_.efficiency = fabric.scale_out.efficiency.get();
  line_ = fabric.scale_out.nic_bandwidth.get().si() * fabric.scale_out.nics_per_accelerator.get();
  if (!shape_.tiers.empty())
    leaf_step_ = std::max<std::int64_t>(1, shape_.tiers[0].reach / domain_);
  set_group();
  set_paths();
  set_rounds();
  size_layers();
  done_.resize(static_cast<std::size_t>(out_.options.rounds));
}

void Study::set_group() {
  std::int64_t& group = out_.options.group;
  if (group == 0) group = std::max<std::int64_t>(2, (64 + domain_ - 1) / domain_) * domain_;
  const bool used = out_.options.pattern == TrafficPattern::all_to_all ||
                    out_.options.pattern == TrafficPattern::spread_all_to_all;
  const bool whole = group % domain_ == 0 && group >= 2 * domain_;
  if (used && (!whole || group > domains_ * domain_))
    throw Error({.file = fabric_.name,
                 .found = fmt::format("groups of {} accelerators", group),
                 .expected = fmt::format("two or more whole scale-up domains of {}, at most {}",
                                         domain_, domains_ * domain_)});
}

// Routes are drawn for one queue pair on every port at a time, so that the parts of a flow stay
// apart: each has its own max-min rate.
void Study::set_paths() {
  const std::int64_t ports =
      shape_.planes * static_cast<std::int64_t>(std::max(1.0, shape_.ports_per_accelerator) + 1e-9);
  CHECK_THAT(out_.options.paths_per_flow >= 1, "a flow has a queue pair");
  if (out_.options.routing == Routing::ecmp)
    calls_ = (out_.options.paths_per_flow + ports - 1) / ports;
  out_.options.paths_per_flow = calls_ * ports;
}

void Study::set_rounds() {
  const Senders all = senders(domains_);
  const std::int64_t of_domain = domain_ * all.peers() * calls_;
  const std::int64_t parts = all.domains() * of_domain;
  out_.sending = all.domains() * domain_;
  out_.peers = count(all.peers());
  part_rate_ = line_ * out_.efficiency / (out_.peers * count(calls_));
  std::int64_t& rounds = out_.options.rounds;
  const bool random = out_.options.routing == Routing::ecmp ||
                      out_.options.pattern == TrafficPattern::all_to_all_all;
  if (!random) rounds = 1;
  const std::int64_t routes = parts * out_.options.paths_per_flow / calls_;  // one on every port
  const std::int64_t least = routes > most_routed / 2 ? 2 : 4;
  if (rounds == 0) rounds = std::clamp<std::int64_t>(most_routed / routes, least, 16);
  // The mean over flows settles fast: where they are too many for one solve, the first domains do.
  // Whole leaf groups, and groups of an all-to-all.
  solved_domains_ = std::min(domains_, std::max<std::int64_t>(2, most_solved / of_domain));
  if (solved_domains_ == domains_) return;
  const std::int64_t group = out_.options.group / domain_;
  for (const std::int64_t whole : {leaf_step_, group})
    if (solved_domains_ > whole) solved_domains_ -= solved_domains_ % whole;
}

void Study::size_layers() {
  const double both = 2;
  const std::size_t tiers = shape_.tiers.size();
  links_[1] = both * count(shape_.planes) *
              std::ceil(count(shape_.accelerators) * shape_.ports_per_accelerator - 1e-9);
  if (tiers > 1) links_[2] = both * count(shape_.links_up(0));
  if (tiers > 2 || (tiers == 2 && shape_.direct)) links_[3] = both * count(shape_.links_up(1));
  if (shape_.sites && fabric_.sites.accelerators < shape_.accelerators)
    links_[4] = both * std::ceil(count(shape_.accelerators) / count(fabric_.sites.accelerators));
}

RoutingOptions Study::routing(std::int64_t round) const {
  const RandomStream hashes(out_.options.seed, 1);
  return {.routing = out_.options.routing,
          .paths_per_flow = 1,
          .seed = hashes.bits(static_cast<std::uint64_t>(round))};
}

// Calls visit(from, to) for every flow that the first domains send.
template <class Visit>
void Study::each_flow(const Senders& from, std::int64_t domains, std::int64_t round,
                      Visit&& visit) const {
  RandomStream shifts(out_.options.seed, 2 + static_cast<std::uint64_t>(round));
  const std::int64_t shift =
      1 + static_cast<std::int64_t>(shifts.below(static_cast<std::uint64_t>(from.domains() - 1)));
  for (std::int64_t d = 0; d < domains; ++d)
    for (std::int64_t i = 0; i < from.peers(); ++i) {
      const std::int64_t to = from.peer(d, i, shift);
      for (std::int64_t p = 0; p < domain_; ++p) visit(d * domain_ + p, to * domain_ + p);
    }
}

std::size_t highest_layer(const std::vector<RouteLink>& route) {
  std::size_t highest = 1;
  for (const RouteLink& r : route) highest = std::max(highest, layer_of(r.link));
  return highest;
}

// NICs of the first domain: every other domain sends and receives what it does.
void Study::offer_nics(const Router& router, std::int64_t round, Round& out) const {
  const Senders from = senders(domains_);
  LinkLoads loads(router);
  std::vector<RouteLink> route;
  each_flow(from, 1, round, [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t call = 0; call < calls_; ++call) {
      route.clear();
      router.route(a, b, static_cast<std::uint64_t>(call), route);
      std::erase_if(route, [](const RouteLink& r) { return r.link.kind != LinkKind::nic_out; });
      loads.add(route);
    }
  });
  const double both_ways = 2;
  loads.take(part_rate_, both_ways * count(from.domains()), out.loads);
}

// Loads of all links while every NIC sends at its rate.
void Study::offer_routed(const Router& router, std::int64_t round, Round& out) const {
  const Senders from = senders(domains_);
  LinkLoads loads(router);
  std::vector<RouteLink> route;
  each_flow(from, from.domains(), round, [&](std::int64_t a, std::int64_t b) {
    route.clear();
    if (!out_.options.folded || router.tier_between(a, b) > 1) {
      for (std::int64_t call = 0; call < calls_; ++call)
        router.route(a, b, static_cast<std::uint64_t>(call), route);
      if (out_.options.folded)
        std::erase_if(route, [](const RouteLink& r) { return is_nic(r.link); });
    }
    out.crossing[highest_layer(route)] += count(calls_);
    loads.add(route);
  });
  loads.take(part_rate_, 1, out.loads);
}

// The same of hashed flows between switches, whose first labels are counted already.
void Study::offer_counted(std::int64_t round, std::int64_t first, TrunkLoads& trunks,
                          Round& out) const {
  const Senders from = senders(domains_);
  each_flow(from, from.domains(), round, [&](std::int64_t a, std::int64_t b) {
    const int layer = trunks.add(a, b, first, calls_);
    out.crossing[static_cast<std::size_t>(layer)] += count(calls_);
  });
  trunks.count(part_rate_, out.loads);
}

// Mean share of the line rate that accelerators get when every part takes its max-min rate. All
// parts have equal bytes, so that none is faster than it must be for its NIC to be busy. A part
// over several planes is one on each.
void Study::solve(const Router& router, std::int64_t round, Round& out) const {
  const Senders from = senders(solved_domains_);
  FlowTable table;
  std::vector<double> share;
  std::vector<LinkIndex> local(static_cast<std::size_t>(router.links()), UINT32_MAX);
  std::vector<RouteLink> route;
  std::vector<FlowUse> uses;
  each_flow(from, from.domains(), round, [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t call = 0; call < calls_; ++call) {
      route.clear();
      router.route(a, b, static_cast<std::uint64_t>(call), route);
      out.solved_crossing[highest_layer(route)] += 1;
      for (auto r = route.begin(); r != route.end();) {
        const std::uint16_t plane = r->link.plane;
        double of_plane = 0;
        uses.clear();
        for (; r != route.end() && r->link.plane == plane; ++r) {
          LinkIndex& link = local[static_cast<std::size_t>(router.number(r->link))];
          if (link == UINT32_MAX) link = table.add_link(router.size(r->link).capacity);
          uses.push_back({.link = link, .weight = r->share});
          if (r->link.kind == LinkKind::nic_out)
            of_plane += r->share * count(router.size(r->link).links);
        }
        table.add_flow({.cap = part_rate_}, uses);
        share.push_back(of_plane);
      }
    }
  });
  FlowSolver solver(table);
  for (FlowIndex f = 0; f < table.flows.size(); ++f) solver.start(f);
  table = {};
  solver.solve();
  double rate = 0;
  for (FlowIndex f = 0; f < share.size(); ++f) rate += share[f] * solver.rate(f);
  out.mean = rate / (count(from.domains() * domain_) * line_);
}

void Study::offer(std::vector<Study>& studies, std::int64_t round) {
  const Router router = studies.front().router(round);
  std::optional<TrunkLoads> trunks;
  std::int64_t labels = 0;
  for (Study& study : studies) {
    if (round >= study.rounds()) continue;
    Round& out = study.done_[static_cast<std::size_t>(round)];
    if (study.out_.options.folded) study.offer_nics(router, round, out);
    if (study.counted()) {
      if (!trunks) trunks.emplace(router);
      study.offer_counted(round, std::exchange(labels, study.calls_), *trunks, out);
    } else {
      study.offer_routed(router, round, out);
    }
  }
}

void Study::solve(std::vector<Study>& studies, std::int64_t round) {
  for (Study& study : studies) {
    const std::int64_t solves =
        study.solved_domains_ == study.domains_ ? most_solves : most_solves_of_many;
    const bool differ = study.out_.options.pattern == TrafficPattern::all_to_all_all;
    if (round < (differ ? study.rounds() : std::min(study.rounds(), solves)))
      study.solve(study.router(round), round, study.done_[static_cast<std::size_t>(round)]);
  }
}

double Study::Round::most() const {
  double worst = 0;
  for (const LoadCounts& of_layer : loads)
    if (!of_layer.empty()) worst = std::max(worst, of_layer.rbegin()->first);
  return worst;
}

void Study::merge(const Round& round) {
  for (std::size_t layer = 0; layer < layers; ++layer) {
    out_.crossing[layer] += round.crossing[layer];
    solved_crossing_[layer] += round.solved_crossing[layer];
    for (const auto& [load, links] : round.loads[layer]) loads_[layer][load] += links;
    if (layer > 0)
      worst_[layer].push_back(round.loads[layer].empty() ? 0 : round.loads[layer].rbegin()->first);
  }
  worst_of_all_.push_back(round.most());
  if (round.mean) means_.push_back(*round.mean);
}

// A mean with its standard error.
SampledShare sampled(const std::vector<double>& values) {
  const double middle = mean(values);
  if (values.size() < 2) return {.value = middle};
  double squares = 0;
  for (const double v : values) squares += (v - middle) * (v - middle);
  const double n = static_cast<double>(values.size());
  return {.value = middle, .error = std::sqrt(squares / (n - 1) / n)};
}

void Study::load_layers() {
  const double rounds = count(out_.options.rounds);
  for (std::size_t layer = 1; layer < layers; ++layer) {
    LoadCounts& loads = loads_[layer];
    double used = 0, sum = 0, over = 0;
    for (const auto& [load, links] : loads) {
      used += links;  // whole numbers: exact
      sum += load * links;
      if (load > 1 + just_above) over += links;
    }
    const double all = std::max(links_[layer] * rounds, used);
    if (all == 0) continue;
    LayerLoad made{.layer = static_cast<int>(layer),
                   .links = all / rounds,
                   .mean = sum / all,
                   .most = mean(worst_[layer]),
                   .idle = (all - used) / rounds,
                   .overloaded = over / rounds};
    if (all > used) loads[0.0] += all - used;
    double below = 0;
    auto at = loads.begin();
    for (std::size_t i = 0; i < made.deciles.size(); ++i) {
      const double goal = all * static_cast<double>(i) / 10;
      while (std::next(at) != loads.end() && below + at->second < goal) below += (at++)->second;
      made.deciles[i] = at->first;
    }
    out_.layers.push_back(made);
  }
}

Uplinks Study::uplinks(std::size_t tier) const {
  const double crossing =
      out_.crossing[3] + out_.crossing[4] + (tier == 0 ? out_.crossing[2] : 0.0);
  const double ports = shape_.ports_per_accelerator;
  const std::int64_t switches = shape_.switches(tier);
  const double parts = count(out_.sending) * crossing * out_.peers *
                       count(out_.options.paths_per_flow) / count(switches);
  const double faster =
      link_below(fabric_.scale_out, tier + 1).si() / link_below(fabric_.scale_out, 0).si();
  // Where all flows of a leaf go on to one other leaf, the same meet on the way down.
  const bool same = out_.options.pattern == TrafficPattern::crossing_ring && tier == 0 &&
                    shape_.tiers[tier].parallel == 1;
  return {.parts = std::llround(parts),
          .parts_of_link = out_.peers * count(calls_) * faster / std::min(1.0, ports),
          .up = shape_.tiers[tier].up,
          .loads_of = std::max<std::int64_t>(1, switches / (same ? 2 : 1))};
}

void Study::closed_forms() {
  const bool hashed = out_.options.routing == Routing::ecmp;
  double worst = 1;
  for (std::size_t tier = 0; tier + 1 < shape_.tiers.size(); ++tier) {
    const Uplinks u = uplinks(tier);
    if (u.parts == 0) continue;
    worst = std::max(worst, hashed ? ecmp_worst_load(u.parts, u.up, 1, u.loads_of) / u.parts_of_link
                                   : u.spread());
  }
  ClosedForm& closed = out_.closed;
  closed.synchronised = out_.efficiency / worst;
  const double inside = out_.crossing[1];
  if (!hashed || inside > 1 - just_above) {
    closed.mean_low = closed.mean_high =
        out_.efficiency * (inside + (1 - inside) * closed.synchronised / out_.efficiency);
    return;
  }
  // Rounds of different shifts cross in different parts: no mean of them says what one gets.
  if (out_.options.pattern == TrafficPattern::all_to_all_all && inside > 0.05) return;
  const Uplinks u = uplinks(0);
  const std::int64_t pairs = std::llround(u.parts_of_link);
  const auto flows = std::llround(count(u.parts) / count(pairs));
  if (std::abs(u.parts_of_link - count(pairs)) > just_above || flows == 0) return;
  const EcmpAverage average = ecmp_average_share(flows, u.up, pairs);
  const double spread = std::min(1.0, 1 / u.spread());
  closed.mean_high = out_.efficiency * (inside + (1 - inside) * spread * average.high);
  if (inside + out_.crossing[2] > 1 - just_above)
    closed.mean_low = out_.efficiency * (inside + (1 - inside) * spread * average.low);
}

bool Study::same_crossing() const {
  double parts = 0;
  for (const double p : solved_crossing_) parts += p;
  bool same = true;
  for (std::size_t layer = 0; layer < layers; ++layer)
    same &= std::abs(solved_crossing_[layer] / parts - out_.crossing[layer]) < 0.02;
  return same || solved_domains_ == domains_;
}

TrafficStudy Study::result() {
  for (const Round& round : done_) merge(round);
  double flows = 0;
  for (const double parts : out_.crossing) flows += parts;
  for (double& share : out_.crossing) share /= flows;
  out_.mean_of = senders(solved_domains_).domains() * domain_;
  load_layers();
  closed_forms();
  // Times of rounds add up, so the share is that of the mean time.
  const SampledShare time = sampled(worst_of_all_);
  out_.synchronised = {.value = out_.efficiency / time.value,
                       .error = out_.efficiency / time.value * (time.error / time.value)};
  if (same_crossing()) out_.mean = sampled(means_);
  return std::move(out_);
}

}  // namespace

std::vector<TrafficStudy> traffic_studies(const Fabric& fabric, TrafficOptions options,
                                          const std::vector<std::int64_t>& paths_per_flow) {
  CHECK_THAT(std::is_sorted(paths_per_flow.begin(), paths_per_flow.end()), "fewest first");
  std::vector<Study> studies;
  std::vector<std::size_t> wanted;  // a NIC of many ports has no fewer queue pairs: several are one
  std::int64_t rounds = 0;
  for (const std::int64_t paths : paths_per_flow) {
    options.paths_per_flow = paths;
    Study study(fabric, options);
    if (studies.empty() || studies.back().paths() != study.paths())
      studies.push_back(std::move(study));
    rounds = std::max(rounds, studies.back().rounds());
    wanted.push_back(studies.size() - 1);
  }
  parallel_for(static_cast<std::size_t>(2 * rounds), 0, [&](std::size_t i) {
    const auto part = static_cast<std::int64_t>(i);
    part % 2 == 0 ? Study::offer(studies, part / 2) : Study::solve(studies, part / 2);
  });
  std::vector<TrafficStudy> results, out;
  for (Study& study : studies) results.push_back(study.result());
  for (const std::size_t i : wanted) out.push_back(results[i]);
  return out;
}

TrafficStudy traffic_study(const Fabric& fabric, const TrafficOptions& options) {
  return traffic_studies(fabric, options, {options.paths_per_flow}).front();
}

}  // namespace orrery
