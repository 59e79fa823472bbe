// SPDX-License-Identifier: Apache-2.0
// Computes the alpha-beta cost of every collective algorithm, and picks the least as NCCL does.
#include "sim/engine/collectives/collectives.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "sim/engine/collectives/domain_edges.h"

namespace orrery {
namespace {

constexpr BytesPerSecond any_rate(infinite);

template <class T>
T or_else(const Sourced<T>& s, std::type_identity_t<T> otherwise) {
  return s.value.value_or(otherwise);
}
template <class T>
T or_nothing(const Sourced<T>& s) {
  return s.value.value_or(T{});
}

// The group on its fabric.
struct Ground {
  double ranks, inside, domains;          // n ranks: q in each of k scale-up domains
  Bytes size;                             // as NCCL counts them
  BytesPerSecond scale_up;                // of one rank to its domain's other ranks
  BytesPerSecond domain_nics = any_rate;  // of the NICs that the group uses in one domain
  BytesPerSecond rank_nic = any_rate;     // of one rank's own share of NICs
  Seconds path;                           // latency of one network step outside the library
  double levels = 0;                      // of a binary tree over domains
  Seconds host;                           // of one network step, where messages pass the host
};

Ground ground_of(const Collective& c, const Fabric& fabric, const CollectiveCosts& costs) {
  const GroupShape& group = c.group;
  Ground g{.ranks = static_cast<double>(group.size),
           .inside = static_cast<double>(group.per_domain),
           .domains = static_cast<double>(group.domains),
           .size = c.bytes,
           .scale_up = scale_up_share(fabric.scale_up, group.per_domain)};
  if (group.domains <= 1) return g;
  const PathCost path = nic_path(fabric, group.span);
  const BytesPerSecond rate = path.bandwidth;
  const double nics = fabric.scale_out.nics_per_accelerator.get();
  const double domain = static_cast<double>(fabric.scale_up.domain);
  // A rank drives its own NICs, or the one that it shares with a neighbour; all groups of the kind
  // together have what the domain has.
  const double own =
      std::min(g.inside * std::max(1.0, nics), domain * nics / static_cast<double>(group.sharing));
  g.rank_nic = own / g.inside * rate;
  g.domain_nics = std::min(own, or_else(costs.network_ranks, infinite) * nics) * rate;
  g.path = path.latency;
  if (fabric.scale_out.technology == FabricTechnology::efa) g.host = or_nothing(costs.efa_hop);
  g.levels = std::ceil(std::log2(g.domains));
  return g;
}

struct Cost {
  Seconds time = Seconds(infinite);
  Bytes up, out;     // that one rank sends inside its domain and over its NICs
  Seconds transfer;  // of it, in which bytes move
  double sms = 0;
};

// A pipelined ring's step takes the longer of its latency and its transfer; the knee is rounded as
// measured tables round it (the cube fits A100 to GB200, 2 to 8 ranks).
Seconds smooth_max(Seconds one, Seconds other) {
  const double a = one.si(), b = other.si();
  return Seconds(std::cbrt(a * a * a + b * b * b));
}

// Time to fill a pipeline of `window` bytes, as far as the message has them.
Seconds fill(Bytes window, Bytes bytes, BytesPerSecond rate) {
  if (window <= Bytes(0) || bytes <= Bytes(0)) return {};
  return bytes * window / (bytes + window) / rate;
}

// The same at the rate at which the message moves.
Seconds pipeline_fill(Bytes window, Bytes bytes, Seconds volume) {
  return bytes > Bytes(0) ? fill(window, bytes, bytes / volume) : Seconds(0);
}

Seconds hop(const StepCosts& s) { return or_nothing(s.hop); }
Seconds network_hop(const StepCosts& s, const Ground& g) {
  return or_nothing(s.network_hop) + g.path + g.host;
}
BytesPerSecond up_rate(const StepCosts& s, const Ground& g) {
  return g.inside > 1 ? or_else(s.share, 1) * g.scale_up : any_rate;
}

// What the threads of a ring's channels add to the latency of its steps. A message gets one more
// channel for each s.channel bytes of a rank's part, so that small ones have a single channel that
// is not full. LL's threads wait for a flag with every line: what does not fit into one pass waits
// again, and costs a whole one. In the other protocols later lines follow without waiting.
Seconds filling(CollectiveKind kind, CollectiveProtocol protocol, const StepCosts& s,
                const Ground& g, double steps) {
  const Bytes full = or_nothing(s.channel);
  if (full <= Bytes(0)) return {};
  const Bytes part = g.size / g.ranks;
  const double channels = std::clamp(std::floor(part / full), 1.0, or_else(s.channels, 1));
  const auto rounds = [&](double of_full) {
    if (of_full <= 1 || protocol != CollectiveProtocol::ll) return std::min(of_full, 1.0);
    return std::ceil(of_full - 0.01);  // a written size is rounded
  };
  // Every rank also acts once before the first step. A broadcast's ranks hand on all of it, in
  // turns that overlap.
  if (kind == CollectiveKind::broadcast) {
    const double all = g.size / channels / full;
    return or_nothing(s.pass) * (rounds(all) + steps * std::min(all, 1.0));
  }
  return or_nothing(s.pass) * rounds(part / channels / full) * (steps + 1);
}

Cost ring(CollectiveKind kind, CollectiveProtocol protocol, const StepCosts& s, const Ground& g) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const Bytes wire =
      kind == CollectiveKind::broadcast ? g.size : passes * (g.ranks - 1) / g.ranks * g.size;
  const double steps = passes * (g.ranks - 1);
  const double network_steps = g.inside > 1 ? passes * (g.domains - 1) : steps;
  // One edge in q of each channel's ring leaves the domain, and spares its links.
  const double stay = g.domains > 1 ? 1 - 1 / g.inside : 1;
  const BytesPerSecond rate =
      std::min(up_rate(s, g) / stay, or_else(s.network_share, 1) * g.domain_nics);
  const bool leaves = g.domains > 1;
  Seconds latency = (steps - network_steps) * (leaves ? or_else(s.far_hop, hop(s)) : hop(s));
  if (leaves) latency += network_steps * network_hop(s, g);
  latency += filling(kind, protocol, s, g, steps);
  // The rank's own part also moves from the one buffer to the other.
  const Seconds copy =
      kind == CollectiveKind::broadcast ? Seconds(0) : g.size / g.ranks / or_else(s.copy, any_rate);
  const Seconds moving = wire / rate + copy;
  // Inside a domain steps hide behind transfers; a proxy thread at each NIC keeps them apart.
  return {.time = s.base.get() + (leaves ? latency + moving : smooth_max(latency, moving)) +
                  fill(or_nothing(s.window), wire, rate),
          .up = wire * stay,
          .out = leaves ? wire / g.inside : Bytes(0),
          .transfer = wire / rate};
}

// What the busiest domain of a double binary tree sends: two buffers from four domains on, though
// the mean is 2 (k - 1) / k. On four hosts that is a third more: EFA's 37 GB/s of mean traffic a
// NIC is 49 GB/s on the busiest one.
Bytes busiest_tree_bytes(const Ground& g) {
  return double_tree_copies(static_cast<std::int64_t>(g.domains)) / 2 * g.size;
}

// A chain inside each domain, a double binary tree across them.
Cost tree(const StepCosts& s, const Ground& g) {
  const Bytes over_network = busiest_tree_bytes(g);
  const BytesPerSecond nics = or_else(s.network_share, 1) * g.domain_nics;
  const Seconds inside = g.inside > 1 ? 2 * g.size / up_rate(s, g) : Seconds(0);
  const Seconds latency = 2 * ((g.inside - 1) * hop(s) + g.levels * network_hop(s, g));
  const Seconds volume = std::max(inside, over_network / nics);
  const double depth = (g.inside - 1) / 7 + g.levels;  // a chain of eight counts as one level
  return {.time = s.base.get() + latency + volume +
                  pipeline_fill(or_nothing(s.window) * depth, g.size, volume),
          .up = g.inside > 1 ? 2 * g.size : Bytes(0),
          .out = over_network / g.inside,
          .transfer = volume};
}

// NVLS: the switches read every rank's part and write the sum back: S (1 + 1/q) on each link.
// Across domains a tree (NVLS tree) or the network's switches (collnet) join what each domain
// reduced.
Cost nvls(CollectiveAlgorithm algorithm, const StepCosts& s, const Ground& g) {
  const double crowd = std::pow(std::max(1.0, g.inside / 8), or_else(s.rank_exponent, 0));
  const Bytes inside = g.size * (1 + 1 / g.inside);
  Seconds volume = inside * crowd / (or_else(s.share, 1) * g.scale_up);
  Seconds latency;
  Bytes over_network;
  double depth = 1;
  if (algorithm == CollectiveAlgorithm::nvls_tree) {
    over_network = busiest_tree_bytes(g);
    latency = 2 * g.levels * network_hop(s, g);
    depth = 1 + g.levels;
  } else if (algorithm == CollectiveAlgorithm::collnet) {
    over_network = g.size;
    latency = 2 * (g.inside - 1) * hop(s) + 2 * network_hop(s, g);
  }
  // Two domains swap what they have: nothing waits for a third.
  const bool pair = algorithm == CollectiveAlgorithm::nvls_tree && g.domains == 2;
  const double network_share = pair ? 1 : or_else(s.network_share, 1);
  if (over_network > Bytes(0))
    volume = std::max(volume, over_network / (network_share * g.domain_nics));
  const Bytes window = or_nothing(s.window) * g.inside * depth;
  return {.time = s.base.get() + latency + volume + pipeline_fill(window, g.size, volume),
          .up = inside,
          .out = over_network / g.inside,
          .transfer = volume};
}

// Parallel aggregated trees: a logarithm of network steps, a small term for each rank.
Cost pat(const StepCosts& s, const Ground& g) {
  const Bytes wire = (g.ranks - 1) / g.ranks * g.size;
  const Seconds latency = g.levels * network_hop(s, g) + g.ranks * hop(s);
  const Seconds copy = g.size / g.ranks / or_else(s.copy, any_rate);
  const Seconds volume = wire / (or_else(s.network_share, 1) * g.domain_nics);
  return {
      .time = s.base.get() + latency + copy + volume, .up = {}, .out = wire, .transfer = volume};
}

// Every rank to every rank; peers in the domain and beyond it at once. NICs do not add up: a rank
// has its own. In a torus a message passes several links, so that the bisection limits.
Cost all_to_all(const StepCosts& s, const Ground& g, const Fabric& fabric) {
  const Bytes part = g.size / g.ranks;
  const Bytes inside = (g.inside - 1) * part, outside = (g.ranks - g.inside) * part;
  BytesPerSecond rate = or_else(s.share, 1) * g.scale_up;
  if (fabric.scale_up.kind == ScaleUpKind::torus && g.inside > 4) {
    const auto used = static_cast<double>(
        torus_axes_spanned(fabric.scale_up, static_cast<std::int64_t>(g.inside)));
    rate = rate / std::max(1.0, used * std::pow(g.inside, 1 / used) / 4);
  }
  const Seconds volume =
      std::max(inside / rate, outside / (or_else(s.network_share, 1) * g.rank_nic));
  const Seconds copy = part / or_else(s.copy, any_rate);
  Seconds latency = (g.ranks - 1) * hop(s);
  if (g.domains > 1) latency += network_hop(s, g);
  return {.time = s.base.get() + latency + volume + copy + fill(or_nothing(s.window), inside, rate),
          .up = inside,
          .out = outside,
          .transfer = volume};
}

// The copies of one rank's tokens that an exchange sends: in all, over its domain's links, and over
// the NICs, where one copy serves all ranks of a domain (the rank on the rail forwards it).
struct Copies {
  double all = 0, inside = 0, network = 0;
  double domains = 0;  // one for every domain, the own one included: what forwarding ranks handle
};

// `each`: one copy for every expert; else one for every rank that has some of the token's experts.
Copies copies_of(const TokenExchange& e, const Ground& g, bool each) {
  const auto tokens = static_cast<double>(e.tokens), experts = static_cast<double>(e.experts);
  if (each) {
    const double rows = tokens * experts;
    return {.all = rows,
            .inside = rows * (g.inside - 1) / g.ranks,
            .network = rows * (g.ranks - g.inside) / g.ranks,
            .domains = g.domains > 1 ? rows : 0};
  }
  const double limit = e.most_domains > 0 ? static_cast<double>(e.most_domains) : g.domains;
  const double domains = std::min(g.domains, limit);
  const double rows = tokens * (e.reaches > 0 ? e.reaches : places_reached(e, domains * g.inside));
  return {.all = rows,
          .inside = rows * (g.inside - 1) / g.inside,
          .network = tokens * places_reached(e, domains) * (g.domains - 1) / g.domains,
          .domains = g.domains > 1 ? tokens * places_reached(e, domains) : 0};
}

// All wait for the rank that receives most, which gets so many times the mean.
double skew_of(const Collective& c) {
  return c.kind == CollectiveKind::all_to_all ? std::max(1.0, c.skew) : 1;
}

// An exchange of tokens in one kernel: SMs pack rows while links carry them. Before DeepEP's, ranks
// tell each other how much comes (a step per doubling of domains).
Cost exchange(const Collective& c, CollectiveProtocol protocol, const StepCosts& s,
              const Ground& g) {
  const TokenExchange& e = c.exchange;
  const Bytes part = g.size / g.ranks;
  Bytes inside = (g.inside - 1) * part, outside = (g.ranks - g.inside) * part;
  Seconds work;
  Seconds latency = g.levels * network_hop(s, g) + std::log2(g.inside) * or_nothing(s.far_hop) +
                    static_cast<double>(e.pool) * hop(s);
  if (e.phase == ExchangePhase::prepare) inside = outside = {};  // counts alone
  if (e.tokens > 0 && e.experts > 0) {
    const bool each = c.library == CollectiveLibrary::deepep && protocol == CollectiveProtocol::ll;
    const Copies rows = copies_of(e, g, each);
    const Bytes row = g.size / (static_cast<double>(e.tokens) * static_cast<double>(e.experts));
    if (e.phase != ExchangePhase::prepare) {
      inside = rows.inside * row;
      outside = rows.network * row;
    }
    const double sms = e.sms > 0 ? static_cast<double>(e.sms) : or_else(s.sms, 1);
    work = (static_cast<double>(e.tokens) * or_nothing(s.token) + rows.all * or_nothing(s.row) +
            rows.all * row / or_else(s.sm_rate, any_rate) +
            rows.domains * row / or_else(s.network_sm_rate, any_rate)) /
           sms;
    // The last row still passes through its warp when all others are there.
    latency += row / or_else(s.copy, any_rate);
  }
  const Seconds volume =
      skew_of(c) * std::max(inside / (or_else(s.share, 1) * g.scale_up),
                            outside / (or_else(s.network_share, 1) * g.rank_nic));
  return {.time = s.base.get() + latency + smooth_max(work, volume),
          .up = inside,
          .out = outside,
          .transfer = volume};
}

// Reduce or gather inside the domain first and only the rank's own part across, as XLA does.
Cost hierarchical(CollectiveKind kind, const StepCosts& s, const Ground& g) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const Bytes inside = passes * (g.inside - 1) / g.inside * g.size;
  const Bytes outside = passes * (g.domains - 1) / g.domains * g.size / g.inside;
  const Seconds within = inside / up_rate(s, g);
  const Seconds across = outside / (or_else(s.network_share, 1) * g.rank_nic);
  return {.time = s.base.get() + smooth_max(passes * (g.inside - 1) * hop(s), within) +
                  smooth_max(passes * (g.domains - 1) * network_hop(s, g), across),
          .up = inside,
          .out = outside,
          .transfer = within + across};
}

// One-shot (ll): every rank reads all others' buffers. Two-shot (simple): scatter, then gather.
Cost custom(CollectiveProtocol protocol, const StepCosts& s, const Ground& g) {
  const Bytes wire = protocol == CollectiveProtocol::ll ? (g.ranks - 1) * g.size
                                                        : 2 * (g.ranks - 1) / g.ranks * g.size;
  const Seconds volume = wire / (or_else(s.share, 1) * g.scale_up);
  return {.time = s.base.get() + (g.ranks - 1) * hop(s) + volume,
          .up = wire,
          .out = {},
          .transfer = volume};
}

Cost send(const StepCosts& s, const Ground& g) {
  const bool crosses = g.domains > 1;
  const BytesPerSecond rate =
      crosses ? or_else(s.network_share, 1) * g.rank_nic : or_else(s.share, 1) * g.scale_up;
  const Seconds step = crosses ? network_hop(s, g) : hop(s);
  const Seconds volume = g.size / rate;
  return {.time = s.base.get() + step + volume + fill(or_nothing(s.window), g.size, rate),
          .up = crosses ? Bytes(0) : g.size,
          .out = crosses ? g.size : Bytes(0),
          .transfer = volume};
}

bool reduces(CollectiveKind k) { return k == CollectiveKind::all_reduce; }
bool halves(CollectiveKind k) {
  return k == CollectiveKind::all_gather || k == CollectiveKind::reduce_scatter;
}

bool all_reduces_itself(CollectiveLibrary l) {
  return l == CollectiveLibrary::custom || l == CollectiveLibrary::vllm;
}

bool allowed(CollectiveAlgorithm algorithm, CollectiveProtocol protocol, const StepCosts& s,
             const Collective& c, const Fabric& fabric) {
  const GroupShape& g = c.group;
  const bool crosses = g.domains > 1;
  // LL and LL128 need stores that arrive in order, which EFA does not promise.
  if (crosses && fabric.scale_out.technology == FabricTechnology::efa &&
      protocol != CollectiveProtocol::simple && algorithm != CollectiveAlgorithm::deepep)
    return false;
  const bool nvlink_reduces = fabric.scale_up.in_network_reduction && reduces(c.kind) &&
                              static_cast<double>(g.per_domain) >= or_else(s.least_ranks, 2);
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return reduces(c.kind) || halves(c.kind) || c.kind == CollectiveKind::broadcast;
    // Inside one domain NCCL's tree is a chain, which a ring always beats.
    case CollectiveAlgorithm::tree:
      return reduces(c.kind) && crosses;
    case CollectiveAlgorithm::nvls:
      return nvlink_reduces && !crosses;
    case CollectiveAlgorithm::nvls_tree:
      return nvlink_reduces && crosses;
    case CollectiveAlgorithm::collnet:
      return nvlink_reduces && crosses && fabric.scale_out.in_network_reduction;
    // NCCL runs it with one rank per node only.
    case CollectiveAlgorithm::pat:
      return halves(c.kind) && crosses && g.per_domain == 1;
    case CollectiveAlgorithm::direct:
      return c.kind == CollectiveKind::all_to_all || c.kind == CollectiveKind::send_receive;
    case CollectiveAlgorithm::hierarchical:
      return (reduces(c.kind) || halves(c.kind)) && crosses;
    case CollectiveAlgorithm::custom_all_reduce:
      return all_reduces_itself(c.library) && reduces(c.kind) && !crosses;
    case CollectiveAlgorithm::deepep:
      return c.library == CollectiveLibrary::deepep && c.kind == CollectiveKind::all_to_all;
  }
  return false;
}

// The constants of one algorithm as the collective's library runs it.
struct Candidate {
  const StepCosts* steps = nullptr;
  bool own = false;  // the library's, not the algorithm's default
};

Candidate candidate_of(const CollectiveCosts& costs, const Collective& c,
                       CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
  if (c.kind == CollectiveKind::send_receive && algorithm == CollectiveAlgorithm::direct)
    return {.steps = &costs.send[static_cast<int>(protocol)]};
  const auto own = costs.libraries.find({.library = c.library,
                                         .phase = c.exchange.phase,
                                         .algorithm = algorithm,
                                         .protocol = protocol});
  const Bytes part = c.bytes / static_cast<double>(c.group.size);
  // Beyond its limit an all-reduce leaves the message to NCCL; an exchange has nobody to leave it
  // to.
  if (own != costs.libraries.end() &&
      (knows_tokens(c.library) || part <= or_else(own->second.largest, Bytes(infinite))))
    return {.steps = &own->second, .own = true};
  const auto kind =
      costs.kinds.find({.kind = c.kind, .algorithm = algorithm, .protocol = protocol});
  if (kind != costs.kinds.end()) return {.steps = &kind->second};
  return {.steps = &costs.of(algorithm, protocol)};
}

// What a plain exchange takes more where one rank receives more than others.
Cost skewed(Cost cost, const Collective& c) {
  cost.time += (skew_of(c) - 1) * cost.transfer;
  cost.transfer *= skew_of(c);
  return cost;
}

Cost cost_alone(CollectiveAlgorithm algorithm, CollectiveProtocol protocol,
                const Candidate& candidate, const Collective& c, const Ground& g,
                const Fabric& fabric) {
  const StepCosts& s = *candidate.steps;
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return ring(c.kind, protocol, s, g);
    case CollectiveAlgorithm::tree:
      return tree(s, g);
    case CollectiveAlgorithm::nvls:
    case CollectiveAlgorithm::nvls_tree:
    case CollectiveAlgorithm::collnet:
      return nvls(algorithm, s, g);
    case CollectiveAlgorithm::pat:
      return pat(s, g);
    case CollectiveAlgorithm::direct:
      if (c.kind == CollectiveKind::send_receive) return send(s, g);
      if (candidate.own && knows_tokens(c.library)) return exchange(c, protocol, s, g);
      return skewed(all_to_all(s, g, fabric), c);
    case CollectiveAlgorithm::hierarchical:
      return hierarchical(c.kind, s, g);
    case CollectiveAlgorithm::custom_all_reduce:
      return custom(protocol, s, g);
    case CollectiveAlgorithm::deepep:
      return exchange(c, protocol, s, g);
  }
  return {};
}

Cost cost_of(CollectiveAlgorithm algorithm, CollectiveProtocol protocol, const Candidate& candidate,
             const Collective& c, const Ground& g, const Fabric& fabric) {
  Cost cost = cost_alone(algorithm, protocol, candidate, c, g, fabric);
  const bool told = knows_tokens(c.library) && c.exchange.sms > 0;
  cost.sms = told ? static_cast<double>(c.exchange.sms) : or_else(candidate.steps->sms, 0);
  return cost;
}

CollectiveTime timed(const Cost& cost, CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
  return {.time = cost.time,
          .algorithm = algorithm,
          .protocol = protocol,
          .scale_up_bytes = cost.up,
          .scale_out_bytes = cost.out,
          .transfer = cost.transfer,
          .sms = cost.sms};
}

}  // namespace

CollectiveTime collective_time(const Collective& c, const Fabric& fabric,
                               const CollectiveCosts& costs) {
  if (c.group.size <= 1) return {};
  const Ground g = ground_of(c, fabric, costs);
  Cost best;
  auto algorithm = CollectiveAlgorithm::ring;
  auto protocol = CollectiveProtocol::simple;
  for (int a = 0; a < collective_algorithm_count; ++a) {
    for (int p = 0; p < collective_protocol_count; ++p) {
      const auto candidate = static_cast<CollectiveAlgorithm>(a);
      const auto with = static_cast<CollectiveProtocol>(p);
      const Candidate of = candidate_of(costs, c, candidate, with);
      if (!of.steps->present || !allowed(candidate, with, *of.steps, c, fabric)) continue;
      if (g.size / g.ranks > or_else(of.steps->largest, Bytes(infinite))) continue;
      const Cost cost = cost_of(candidate, with, of, c, g, fabric);
      // DeepEP is what the stack calls; nothing else competes with it.
      const bool takes_over =
          candidate == CollectiveAlgorithm::deepep && algorithm != CollectiveAlgorithm::deepep;
      if (cost.time >= best.time && !takes_over) continue;
      best = cost;
      algorithm = candidate;
      protocol = with;
    }
  }
  CHECK_THAT(best.time < Seconds(infinite), "no algorithm for this collective in " + costs.name);
  return timed(best, algorithm, protocol);
}

std::optional<CollectiveTime> collective_time_with(const Collective& c, const Fabric& fabric,
                                                   const CollectiveCosts& costs,
                                                   CollectiveAlgorithm algorithm,
                                                   CollectiveProtocol protocol) {
  if (c.group.size <= 1) return CollectiveTime{};
  const Candidate of = candidate_of(costs, c, algorithm, protocol);
  if (!of.steps->present || !allowed(algorithm, protocol, *of.steps, c, fabric))
    return std::nullopt;
  const Ground g = ground_of(c, fabric, costs);
  return timed(cost_of(algorithm, protocol, of, c, g, fabric), algorithm, protocol);
}

}  // namespace orrery
