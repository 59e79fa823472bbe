// Knows the alpha-beta cost of every collective algorithm, and picks the least as NCCL does.
#include "sim/engine/collectives.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orrery {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double or_else(const Sourced<double>& s, double otherwise) { return s.value.value_or(otherwise); }
template <class Q>
double or_else(const Sourced<Q>& s, double otherwise) {
  return s.value ? s.value->si() : otherwise;
}

// The group on its fabric in plain numbers.
struct Ground {
  double ranks, inside, domains;  // n ranks: q in each of k scale-up domains
  double size;                    // bytes as NCCL counts them
  double scale_up;                // B/s of one rank to its domain's other ranks
  double domain_nics = infinity;  // B/s of the NICs that the group uses in one domain
  double rank_nic = infinity;     // B/s of one rank's own share of NICs
  double path = 0;                // latency of one network step outside the library
  double levels = 0;              // of a binary tree over domains
};

Ground ground_of(const Collective& c, const Fabric& fabric, const CollectiveCosts& costs) {
  const GroupShape& group = c.group;
  Ground g{.ranks = static_cast<double>(group.size),
           .inside = static_cast<double>(group.per_domain),
           .domains = static_cast<double>(group.domains),
           .size = c.bytes.si(),
           .scale_up = scale_up_share(fabric.scale_up, group.per_domain).si()};
  if (group.domains <= 1) return g;
  const PathCost path = nic_path(fabric, group.span);
  const double rate = path.bandwidth.si();
  const double nics = fabric.scale_out.nics_per_accelerator.get();
  const double domain = static_cast<double>(fabric.scale_up.domain);
  // A rank drives its own NICs, or the one that it shares with a neighbour; all groups of the kind
  // together have what the domain has.
  const double own =
      std::min(g.inside * std::max(1.0, nics), domain * nics / static_cast<double>(group.sharing));
  g.rank_nic = own / g.inside * rate;
  g.domain_nics = std::min(own, or_else(costs.network_ranks, infinity) * nics) * rate;
  g.path = path.latency.si();
  g.levels = std::ceil(std::log2(g.domains));
  return g;
}

struct Cost {
  double seconds = infinity;
  double up = 0, out = 0;  // bytes that one rank sends inside its domain and over its NICs
};

// A pipelined ring's step takes the longer of its latency and its transfer; the knee is rounded as
// measured tables round it (the cube fits A100 to GB200, 2 to 8 ranks).
double smooth_max(double a, double b) { return std::cbrt(a * a * a + b * b * b); }

// Time to fill a pipeline of `window` bytes, as far as the message has them.
double fill(double window, double bytes, double rate) {
  return window > 0 && bytes > 0 ? bytes * window / (bytes + window) / rate : 0;
}

double hop(const StepCosts& s) { return or_else(s.hop, 0); }
double network_hop(const StepCosts& s, const Ground& g) {
  return or_else(s.network_hop, 0) + g.path;
}
double up_rate(const StepCosts& s, const Ground& g) {
  return g.inside > 1 ? or_else(s.share, 1) * g.scale_up : infinity;
}

Cost ring(CollectiveKind kind, const StepCosts& s, const Ground& g) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double wire =
      kind == CollectiveKind::broadcast ? g.size : passes * (g.ranks - 1) / g.ranks * g.size;
  const double steps = passes * (g.ranks - 1);
  const double network_steps = g.inside > 1 ? passes * (g.domains - 1) : steps;
  const double rate = std::min(up_rate(s, g), or_else(s.network_share, 1) * g.domain_nics);
  double latency = (steps - network_steps) * hop(s);
  if (g.domains > 1) latency += network_steps * network_hop(s, g);
  // Gather and scatter also move the rank's own part between the two buffers.
  const bool own_part =
      kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  const double copy = own_part ? g.size / g.ranks / or_else(s.copy, infinity) : 0;
  return {.seconds = s.base.get().si() + smooth_max(latency, wire / rate + copy) +
                     fill(or_else(s.window, 0), wire, rate),
          // One edge in q of each channel's ring leaves the domain.
          .up = g.domains > 1 ? wire * (1 - 1 / g.inside) : wire,
          .out = g.domains > 1 ? wire / g.inside : 0};
}

// A chain inside each domain, a double binary tree across them.
Cost tree(const StepCosts& s, const Ground& g) {
  const double over_network = 2 * (g.domains - 1) / g.domains * g.size;
  const double nics = or_else(s.network_share, 1) * g.domain_nics;
  const double inside = g.inside > 1 ? 2 * g.size / up_rate(s, g) : 0;
  const double latency = 2 * ((g.inside - 1) * hop(s) + g.levels * network_hop(s, g));
  const double volume = std::max(inside, over_network / nics);
  const double depth = (g.inside - 1) / 7 + g.levels;  // a chain of eight counts as one level
  return {.seconds = s.base.get().si() + latency + volume +
                     (g.size > 0 ? fill(or_else(s.window, 0) * depth, g.size, g.size / volume) : 0),
          .up = g.inside > 1 ? 2 * g.size : 0,
          .out = over_network / g.inside};
}

// NVLS: the switches read every rank's part and write the sum back: S (1 + 1/q) on each link.
// Across domains a tree (NVLS tree) or the network's switches (collnet) join what each domain
// reduced.
Cost nvls(CollectiveAlgorithm algorithm, const StepCosts& s, const Ground& g) {
  const double crowd = std::pow(std::max(1.0, g.inside / 8), or_else(s.rank_exponent, 0));
  const double inside = g.size * (1 + 1 / g.inside);
  double volume = inside * crowd / (or_else(s.share, 1) * g.scale_up);
  double latency = 0, over_network = 0, depth = 1;
  if (algorithm == CollectiveAlgorithm::nvls_tree) {
    over_network = 2 * (g.domains - 1) / g.domains * g.size;
    latency = 2 * g.levels * network_hop(s, g);
    depth = 1 + g.levels;
  } else if (algorithm == CollectiveAlgorithm::collnet) {
    over_network = g.size;
    latency = 2 * (g.inside - 1) * hop(s) + 2 * network_hop(s, g);
  }
  if (over_network > 0)
    volume = std::max(volume, over_network / (or_else(s.network_share, 1) * g.domain_nics));
  const double window = or_else(s.window, 0) * g.inside * depth;
  return {.seconds = s.base.get().si() + latency + volume +
                     (g.size > 0 ? fill(window, g.size, g.size / volume) : 0),
          .up = inside,
          .out = over_network / g.inside};
}

// Parallel aggregated trees: a logarithm of network steps, a small term for each rank.
Cost pat(const StepCosts& s, const Ground& g) {
  const double wire = (g.ranks - 1) / g.ranks * g.size;
  const double latency = g.levels * network_hop(s, g) + g.ranks * hop(s);
  const double copy = g.size / g.ranks / or_else(s.copy, infinity);
  return {.seconds = s.base.get().si() + latency + copy +
                     wire / (or_else(s.network_share, 1) * g.domain_nics),
          .up = 0,
          .out = wire};
}

// Every rank to every rank; peers in the domain and beyond it at once. NICs do not add up: a rank
// has its own. In a torus a message passes several links, so that the bisection limits.
Cost all_to_all(const StepCosts& s, const Ground& g, const Fabric& fabric) {
  const double part = g.size / g.ranks;
  const double inside = (g.inside - 1) * part, outside = (g.ranks - g.inside) * part;
  double rate = or_else(s.share, 1) * g.scale_up;
  if (fabric.scale_up.kind == ScaleUpKind::torus && g.inside > 4) {
    const double axes = g.inside < 16 ? 1 : g.inside < 64 ? 2 : 3;
    const double used = std::min(axes, static_cast<double>(fabric.scale_up.torus_axes));
    rate /= std::max(1.0, used * std::pow(g.inside, 1 / used) / 4);
  }
  const double volume =
      std::max(inside / rate, outside / (or_else(s.network_share, 1) * g.rank_nic)) +
      part / or_else(s.copy, infinity);
  double latency = (g.ranks - 1) * hop(s);
  if (g.domains > 1) latency += network_hop(s, g);
  return {
      .seconds = s.base.get().si() + latency + volume + fill(or_else(s.window, 0), inside, rate),
      .up = inside,
      .out = outside};
}

// DeepEP: one kernel; before it, ranks tell each other how much comes (a step per doubling).
Cost deepep(const StepCosts& s, const Ground& g) {
  const double part = g.size / g.ranks;
  const double inside = (g.inside - 1) * part, outside = (g.ranks - g.inside) * part;
  const double volume = std::max(inside / (or_else(s.share, 1) * g.scale_up),
                                 outside / (or_else(s.network_share, 1) * g.rank_nic));
  const double latency = g.levels * (or_else(s.network_hop, 0) + g.path);
  return {.seconds = s.base.get().si() + latency + volume, .up = inside, .out = outside};
}

// Reduce or gather inside the domain first and only the rank's own part across, as XLA does.
Cost hierarchical(CollectiveKind kind, const StepCosts& s, const Ground& g) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double inside = passes * (g.inside - 1) / g.inside * g.size;
  const double outside = passes * (g.domains - 1) / g.domains * g.size / g.inside;
  return {.seconds = s.base.get().si() +
                     smooth_max(passes * (g.inside - 1) * hop(s), inside / up_rate(s, g)) +
                     smooth_max(passes * (g.domains - 1) * network_hop(s, g),
                                outside / (or_else(s.network_share, 1) * g.rank_nic)),
          .up = inside,
          .out = outside};
}

// One-shot (ll): every rank reads all others' buffers. Two-shot (simple): scatter, then gather.
Cost custom(CollectiveProtocol protocol, const StepCosts& s, const Ground& g) {
  const double wire = protocol == CollectiveProtocol::ll ? (g.ranks - 1) * g.size
                                                         : 2 * (g.ranks - 1) / g.ranks * g.size;
  return {.seconds = s.base.get().si() + (g.ranks - 1) * hop(s) +
                     wire / (or_else(s.share, 1) * g.scale_up),
          .up = wire,
          .out = 0};
}

Cost send(const StepCosts& s, const Ground& g) {
  if (g.domains > 1) {
    const double rate = or_else(s.network_share, 1) * g.rank_nic;
    return {.seconds = s.base.get().si() + network_hop(s, g) + g.size / rate +
                       fill(or_else(s.window, 0), g.size, rate),
            .up = 0,
            .out = g.size};
  }
  const double rate = or_else(s.share, 1) * g.scale_up;
  return {.seconds =
              s.base.get().si() + hop(s) + g.size / rate + fill(or_else(s.window, 0), g.size, rate),
          .up = g.size,
          .out = 0};
}

bool reduces(CollectiveKind k) { return k == CollectiveKind::all_reduce; }
bool halves(CollectiveKind k) {
  return k == CollectiveKind::all_gather || k == CollectiveKind::reduce_scatter;
}

bool allowed(CollectiveAlgorithm algorithm, const StepCosts& s, const Collective& c,
             const Fabric& fabric) {
  const GroupShape& g = c.group;
  const bool crosses = g.domains > 1;
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
      return c.library == CollectiveLibrary::custom && reduces(c.kind) && !crosses;
    case CollectiveAlgorithm::deepep:
      return c.library == CollectiveLibrary::deepep && c.kind == CollectiveKind::all_to_all;
  }
  return false;
}

Cost cost_of(CollectiveAlgorithm algorithm, CollectiveProtocol protocol, const StepCosts& s,
             const Collective& c, const Ground& g, const Fabric& fabric) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return ring(c.kind, s, g);
    case CollectiveAlgorithm::tree:
      return tree(s, g);
    case CollectiveAlgorithm::nvls:
    case CollectiveAlgorithm::nvls_tree:
    case CollectiveAlgorithm::collnet:
      return nvls(algorithm, s, g);
    case CollectiveAlgorithm::pat:
      return pat(s, g);
    case CollectiveAlgorithm::direct:
      return c.kind == CollectiveKind::send_receive ? send(s, g) : all_to_all(s, g, fabric);
    case CollectiveAlgorithm::hierarchical:
      return hierarchical(c.kind, s, g);
    case CollectiveAlgorithm::custom_all_reduce:
      return custom(protocol, s, g);
    case CollectiveAlgorithm::deepep:
      return deepep(s, g);
  }
  return {};
}

const StepCosts& steps_of(const CollectiveCosts& costs, const Collective& c,
                          CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
  if (c.kind == CollectiveKind::send_receive && algorithm == CollectiveAlgorithm::direct)
    return costs.send[static_cast<int>(protocol)];
  return costs.of(algorithm, protocol);
}

CollectiveTime timed(const Cost& cost, CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
  return {.time = Seconds(cost.seconds),
          .algorithm = algorithm,
          .protocol = protocol,
          .scale_up_bytes = Bytes(cost.up),
          .scale_out_bytes = Bytes(cost.out)};
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
      const StepCosts& s = steps_of(costs, c, candidate, with);
      if (!s.present || !allowed(candidate, s, c, fabric)) continue;
      if (g.size / g.ranks > or_else(s.largest, infinity)) continue;
      const Cost cost = cost_of(candidate, with, s, c, g, fabric);
      // DeepEP is what the stack calls; nothing else competes with it.
      const bool takes_over =
          candidate == CollectiveAlgorithm::deepep && algorithm != CollectiveAlgorithm::deepep;
      if (cost.seconds >= best.seconds && !takes_over) continue;
      best = cost;
      algorithm = candidate;
      protocol = with;
    }
  }
  CHECK_THAT(best.seconds < infinity, "no algorithm for this collective in " + costs.name);
  return timed(best, algorithm, protocol);
}

std::optional<CollectiveTime> collective_time_with(const Collective& c, const Fabric& fabric,
                                                   const CollectiveCosts& costs,
                                                   CollectiveAlgorithm algorithm,
                                                   CollectiveProtocol protocol) {
  if (c.group.size <= 1) return CollectiveTime{};
  const StepCosts& s = steps_of(costs, c, algorithm, protocol);
  if (!s.present || !allowed(algorithm, s, c, fabric)) return std::nullopt;
  const Ground g = ground_of(c, fabric, costs);
  return timed(cost_of(algorithm, protocol, s, c, g, fabric), algorithm, protocol);
}

}  // namespace orrery
