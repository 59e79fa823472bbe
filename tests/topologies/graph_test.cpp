// SPDX-License-Identifier: Apache-2.0
// Knows what graphs must agree with: the closed forms for counts, diameters and bisections.
#include "topologies/graph.h"

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 sees uninitialised iterators in Boost's flow algorithm.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <fmt/format.h>
#include <rapidcheck.h>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/connected_components.hpp>
#include <catch2/catch.hpp>

#include <deque>
#include <filesystem>
#include <map>
#include <numeric>

#include "topologies/torus.h"

namespace orrery {
namespace {

const std::filesystem::path folder =
    std::filesystem::path(ORRERY_SOURCE_DIR) / "topologies/catalog";

bool is_switch(const FabricVertex& v) {
  return v.role != "accelerator" && v.role != "nic" && v.role != "spare";
}

// The least capacity between the vertices marked 0 and those marked 1 (any other mark: neither), in
// bytes per second. `scale_up` says which links count.
double max_flow(const FabricGraph& graph, const std::vector<int>& side, bool scale_up) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Edge = Traits::edge_descriptor;
  using Flow = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS,
      boost::property<
          boost::vertex_index_t, std::size_t,
          boost::property<boost::vertex_color_t, boost::default_color_type,
                          boost::property<boost::vertex_distance_t, long,
                                          boost::property<boost::vertex_predecessor_t, Edge>>>>,
      boost::property<boost::edge_capacity_t, std::int64_t,
                      boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                      boost::property<boost::edge_reverse_t, Edge>>>>;
  const std::size_t n = boost::num_vertices(graph);
  Flow flow(n + 2);
  constexpr std::int64_t unlimited = INT64_C(1) << 50;  // kB/s: more than any wiring has
  const auto capacity = boost::get(boost::edge_capacity, flow);
  const auto reverse = boost::get(boost::edge_reverse, flow);
  const auto join = [&](std::size_t a, std::size_t b, std::int64_t there, std::int64_t back) {
    const Edge e = boost::add_edge(a, b, flow).first, f = boost::add_edge(b, a, flow).first;
    capacity[e] = there;
    capacity[f] = back;
    reverse[e] = f;
    reverse[f] = e;
  };
  for (const auto edge : boost::make_iterator_range(boost::edges(graph))) {
    // A NIC belongs to the accelerator: nothing outside a domain passes through another one.
    if (graph[edge].scale_up != scale_up) continue;
    const std::int64_t c = std::llround(graph[edge].capacity.si() / 1e3);
    join(boost::source(edge, graph), boost::target(edge, graph), c, c);
  }
  for (std::size_t v = 0; v < n; ++v) {
    if (side[v] == 0) join(n, v, unlimited, 0);
    if (side[v] == 1) join(v, n + 1, unlimited, 0);
  }
  return 1e3 * static_cast<double>(boost::boykov_kolmogorov_max_flow(flow, n, n + 1));
}

// Switches (or, in a torus, hops) on the shortest paths from `from` to every vertex.
std::vector<int> distances(const FabricGraph& graph, std::size_t from, bool inside, bool outside,
                           bool hops) {
  std::vector<int> out(boost::num_vertices(graph), INT32_MAX);
  std::deque<std::size_t> queue = {from};
  out[from] = 0;
  while (!queue.empty()) {
    const std::size_t v = queue.front();
    queue.pop_front();
    for (const auto edge : boost::make_iterator_range(boost::out_edges(v, graph))) {
      if (graph[edge].scale_up ? !inside : !outside) continue;
      const std::size_t to = boost::target(edge, graph);
      const int cost = hops || is_switch(graph[to]) ? 1 : 0;
      if (out[v] + cost >= out[to]) continue;
      out[to] = out[v] + cost;
      if (cost == 0)
        queue.push_front(to);
      else
        queue.push_back(to);
    }
  }
  return out;
}

struct Measured {
  int scale_up_diameter = 0, scale_out_diameter = 0;
  double scale_up = 0, scale_out = 0;
};

// From every accelerator where there are few; else from some that differ in place.
std::vector<std::size_t> starts(std::int64_t n) {
  std::vector<std::size_t> out;
  const std::int64_t step = n <= 64 ? 1 : n / 24;
  for (std::int64_t a = 0; a < n; a += step) out.push_back(static_cast<std::size_t>(a));
  out.push_back(static_cast<std::size_t>(n - 1));
  return out;
}

Measured measure(const Fabric& fabric, const FabricGraph& graph, std::int64_t n) {
  Measured out;
  const std::int64_t domain = fabric.scale_up.domain, first = std::min(n, domain);
  const std::int64_t domains = (n + domain - 1) / domain;
  const bool torus = fabric.scale_up.kind == ScaleUpKind::torus;
  const bool forward = fabric.scale_out.kind == ScaleOutKind::rail_only;
  std::vector<int> side(boost::num_vertices(graph), 2);
  for (std::int64_t a = 0; a < first; ++a)
    side[static_cast<std::size_t>(a)] = a < first / 2 ? 0 : 1;
  out.scale_up = first < 2 ? 0 : max_flow(graph, side, true);
  for (std::int64_t a = 0; a < n; ++a)
    side[static_cast<std::size_t>(a)] = a < domains / 2 * domain ? 0 : 1;
  out.scale_out = domains < 2 ? 0 : max_flow(graph, side, false);
  for (const std::size_t from : starts(first)) {
    const auto inside = distances(graph, from, true, false, torus);
    for (std::int64_t a = 0; a < first; ++a)
      out.scale_up_diameter = std::max(out.scale_up_diameter, inside[static_cast<std::size_t>(a)]);
  }
  if (domains < 2) return out;
  for (const std::size_t from : starts(n)) {
    const auto outside = distances(graph, from, forward, true, false);
    for (std::int64_t a = 0; a < n; ++a)
      out.scale_out_diameter =
          std::max(out.scale_out_diameter, outside[static_cast<std::size_t>(a)]);
  }
  return out;
}

using Pair = std::pair<std::string, std::string>;

// Vertices by role and cables by pair of roles.
void check_counts(const FabricGraph& graph, const FabricParts& parts) {
  std::map<std::string, std::int64_t> vertices;
  for (const auto v : boost::make_iterator_range(boost::vertices(graph)))
    vertices[graph[v].role] += graph[v].count;
  CHECK(vertices["accelerator"] == parts.accelerators);
  CHECK(vertices["nic"] == parts.nics);
  for (const SwitchCount& item : parts.switches)
    if (item.role != "ocs") CHECK(vertices[item.role] == parts.switch_count(item.role));
  std::map<Pair, std::int64_t> edges;
  std::int64_t optical_circuits = 0;
  for (const auto edge : boost::make_iterator_range(boost::edges(graph))) {
    if (!graph[edge].cable) continue;
    std::string a = graph[boost::source(edge, graph)].role;
    std::string b = graph[boost::target(edge, graph)].role;
    if (a == "spare") a = "accelerator";
    if (b == "spare") b = "accelerator";
    const bool circuit = a == b && a == "accelerator" && graph[edge].medium == Medium::optical;
    if (circuit)
      ++optical_circuits;
    else
      edges[std::minmax(a, b)] += graph[edge].links;
  }
  CHECK(parts.cable_count("accelerator", "ocs") == 2 * optical_circuits);
  std::map<Pair, std::int64_t> runs;
  for (const CableRun& run : parts.cables)
    if (run.to != "ocs") runs[std::minmax(run.from, run.to)] += run.cables;
  CHECK(edges == runs);
}

// All accelerators and NICs; a switch without any below it may stand alone.
bool connected(const FabricGraph& graph) {
  std::vector<int> component(boost::num_vertices(graph));
  boost::connected_components(graph, component.data());
  for (const auto v : boost::make_iterator_range(boost::vertices(graph)))
    if (!is_switch(graph[v]) && component[v] != component[0]) return false;
  return true;
}

TEST_CASE("the graph of every shipped wiring has its counts, bisections and diameters", "[graph]") {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const Fabric fabric = read_fabric(JsonValue::load(entry.path()));
    const std::int64_t domain = fabric.scale_up.domain;
    const bool torus = fabric.scale_up.kind == ScaleUpKind::torus;
    const bool alone = fabric.scale_out.kind == ScaleOutKind::none;
    std::vector<std::int64_t> sizes = {1, std::min<std::int64_t>(domain, 256)};
    if (domain > 256) sizes = {1, 8, 32, 64, 128, 512};
    if (!alone && domain <= 256)
      for (const std::int64_t more : {2, 4, 8, 32})
        if (more * domain <= 600) sizes.push_back(more * domain);
    for (const std::int64_t n : sizes) {
      INFO(fabric.name << " at " << n);
      const FabricParts parts = fabric_parts(fabric, n);
      const FabricGraph graph = full_graph(fabric, n);
      check_counts(graph, parts);
      CHECK(connected(graph));
      const Measured found = measure(fabric, graph, n);
      CHECK(found.scale_up_diameter == parts.scale_up_diameter);
      CHECK(found.scale_out_diameter == parts.scale_out_diameter);
      CHECK(found.scale_up == Approx(parts.scale_up_bisection.si()).epsilon(1e-6));
      CHECK(found.scale_out == Approx(parts.scale_out_bisection.si()).epsilon(1e-6));
      if (torus) CHECK(torus_slice(fabric.scale_up, std::min(n, domain)).points() >= n % domain);
    }
  }
}

Sourced<double> number(double v) { return {.value = v}; }
template <class Q>
Sourced<Q> rate(double v) {
  return {.value = Q(v)};
}

// A small wiring whose groups hold whole domains and whose domains are spread evenly over rails.
Fabric random_fabric() {
  const auto one_of = [](std::initializer_list<std::int64_t> list) {
    return *rc::gen::elementOf(std::vector<std::int64_t>(list));
  };
  Fabric f;
  f.name = "random";
  f.scale_up.kind = *rc::gen::element(ScaleUpKind::switched, ScaleUpKind::mesh, ScaleUpKind::none);
  f.scale_up.link = "nvlink4";
  f.scale_up.domain = one_of({1, 2, 4, 8});
  f.scale_up.bandwidth =
      rate<BytesPerSecond>(1e9 * static_cast<double>(f.scale_up.domain * one_of({56, 84, 168})));
  f.scale_up.latency = rate<Seconds>(1e-6);
  if (f.scale_up.kind == ScaleUpKind::switched && *rc::gen::arbitrary<bool>()) {
    f.scale_up.links.value = one_of({2, 6, 18});
    f.scale_up.levels.push_back({.switch_name = "chip"});
    f.scale_up.levels[0].switches.value = one_of({1, 2, 4});
  }
  ScaleOut& out = f.scale_out;
  out.kind = *rc::gen::element(ScaleOutKind::fat_tree, ScaleOutKind::rail_optimised,
                               ScaleOutKind::rail_only, ScaleOutKind::dragonfly_plus);
  const bool railed =
      out.kind == ScaleOutKind::rail_only || out.kind == ScaleOutKind::rail_optimised;
  out.nics_per_accelerator = number(f.scale_up.domain % 2 == 0 && *rc::gen::inRange(0, 4) == 0
                                        ? 0.5
                                        : static_cast<double>(one_of({1, 1, 2})));
  const auto attached = static_cast<std::int64_t>(static_cast<double>(f.scale_up.domain) *
                                                  std::min(1.0, out.nics_per_accelerator.get()));
  out.rails = railed ? attached : 1;
  out.planes = one_of({1, 1, 2});
  out.nic_bandwidth = rate<BytesPerSecond>(50e9);
  out.nic_latency = rate<Seconds>(1e-6);
  out.efficiency = number(0.9);
  const std::int64_t radix = one_of({4, 8, 16});
  const auto tiers = out.kind == ScaleOutKind::dragonfly_plus ? 3 : one_of({2, 3});
  std::int64_t reach = f.scale_up.domain * one_of({1, 2, 4});
  for (std::int64_t t = 0; t < tiers; ++t) {
    Tier tier{.switch_name = "switch", .reach = t + 1 < tiers ? reach : 0, .radix = radix};
    tier.oversubscription = number(static_cast<double>(one_of({1, 1, 2, 3})));
    if (out.kind == ScaleOutKind::dragonfly_plus) tier.oversubscription = number(1);
    tier.latency = rate<Seconds>(1e-6);
    if (t == 0 && *rc::gen::inRange(0, 5) == 0)
      tier.uplink_bandwidth = rate<BytesPerSecond>(2 * 50e9 / static_cast<double>(out.planes));
    out.tiers.push_back(tier);
    reach *= one_of({2, 4});
  }
  return f;
}

std::string describe(const Fabric& fabric, std::int64_t n) {
  const ScaleOut& out = fabric.scale_out;
  std::string text =
      fmt::format("{} of {} ({}), {} with {} rails, {} planes, {} NICs each;", n,
                  fabric.scale_up.domain, to_text(fabric.scale_up.kind), to_text(out.kind),
                  out.rails, out.planes, out.nics_per_accelerator.get());
  for (const ClosTier& t : bought_shape(fabric, n).tiers)
    text += fmt::format(" [reach {} groups {} switches {} down {} up {} parallel {}]", t.reach,
                        t.groups, t.switches, t.down, t.up, t.parallel);
  return text;
}

// Whether the closed form is exact: full groups, or what is left of one spread evenly.
bool exact(const Fabric& fabric, const ClosShape& shape) {
  if (shape.tiers.empty()) return true;
  if (shape.direct && shape.accelerators % (2 * shape.tiers.back().reach) != 0) return false;
  return shape.tiers[0].reach % fabric.scale_up.domain == 0 || shape.tiers[0].groups == 1;
}

TEST_CASE("graphs of random wirings agree with the closed forms", "[graph]") {
  int checked = 0, equal = 0;
  const bool holds = rc::check([&] {
    const Fabric fabric = random_fabric();
    const std::int64_t n = fabric.scale_up.domain * *rc::gen::inRange(1, 40);
    std::optional<FabricParts> parts;
    try {
      parts = fabric_parts(fabric, n);
    } catch (const Error&) {
      RC_DISCARD("more accelerators than the ports join");
    }
    // All NICs of an accelerator are on one leaf: where ports do not come out even, no rule is
    // right.
    const double each = std::max(1.0, fabric.scale_out.nics_per_accelerator.get());
    const ClosShape shape = bought_shape(fabric, n);
    if (!shape.tiers.empty()) RC_PRE(shape.tiers[0].down % static_cast<std::int64_t>(each) == 0);
    const FabricGraph graph = full_graph(fabric, n);
    RC_LOG() << describe(fabric, n);
    check_counts(graph, *parts);
    RC_ASSERT(connected(graph));
    const Measured found = measure(fabric, graph, n);
    RC_ASSERT(found.scale_up_diameter == parts->scale_up_diameter);
    RC_ASSERT(found.scale_out_diameter == parts->scale_out_diameter);
    RC_ASSERT(std::abs(found.scale_up / parts->scale_up_bisection.si() - 1) < 1e-6 ||
              found.scale_up == parts->scale_up_bisection.si());
    // The closed form is the capacity of a cut, so never below the least one.
    RC_ASSERT(found.scale_out <= parts->scale_out_bisection.si() * (1 + 1e-6));
    ++checked;
    if (!exact(fabric, shape)) return;
    ++equal;
    RC_ASSERT(found.scale_out >= parts->scale_out_bisection.si() * (1 - 1e-6));
  });
  CHECK(holds);
  CHECK(checked >= 50);
  CHECK(equal >= checked / 3);
}

TEST_CASE("no halves of whole domains have less than the bisection", "[graph]") {
  for (const char* name : {"nvlink4-ndr", "nvlink4-h800-multiplane", "nvlink5-800g-dual-plane"}) {
    const Fabric fabric = read_fabric(JsonValue::load(folder / (std::string(name) + ".json")));
    const std::int64_t n = 512, domains = n / 8;
    const FabricGraph graph = full_graph(fabric, n);
    const double least = fabric_parts(fabric, n).scale_out_bisection.si();
    const bool holds = rc::check(name, [&] {
      std::vector<int> half(static_cast<std::size_t>(domains));
      for (std::size_t d = 0; d < half.size(); ++d) half[d] = static_cast<int>(d % 2);
      for (std::size_t d = half.size() - 1; d > 0; --d)
        std::swap(
            half[d],
            half[static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(d) + 1))]);
      std::vector<int> side(boost::num_vertices(graph), 2);
      for (std::size_t a = 0; a < static_cast<std::size_t>(n); ++a) side[a] = half[a / 8];
      RC_ASSERT(max_flow(graph, side, false) >= least * (1 - 1e-6));
    });
    CHECK(holds);
  }
}

TEST_CASE("several sites are joined by a gateway each", "[graph]") {
  Fabric fabric = read_fabric(JsonValue::load(folder / "nvlink4-ndr.json"));
  fabric.scale_out.tiers.pop_back();
  fabric.scale_out.tiers.back().reach = 0;
  for (const std::int64_t sites : {2, 3, 4}) {
    fabric.sites.accelerators = 256;
    fabric.sites.bandwidth = rate<BytesPerSecond>(600e9);
    const std::int64_t n = 256 * sites;
    const FabricParts parts = fabric_parts(fabric, n);
    const FabricGraph graph = full_graph(fabric, n);
    INFO(sites);
    check_counts(graph, parts);
    CHECK(connected(graph));
    CHECK(parts.switch_count("long-haul") == sites);
    CHECK(parts.cable_count("long-haul", "long-haul") == sites * (sites - 1) / 2);
    const Measured found = measure(fabric, graph, n);
    CHECK(found.scale_out == Approx(parts.scale_out_bisection.si()).epsilon(1e-6));
    CHECK(found.scale_out_diameter == parts.scale_out_diameter);
    CHECK(parts.scale_out_diameter == 6);
  }
}

TEST_CASE("a graph of everything is refused where it would be too large", "[graph]") {
  const Fabric fabric = read_fabric(JsonValue::load(folder / "nvlink4-ndr.json"));
  CHECK_THROWS_AS(full_graph(fabric, 16384), Error);
  CHECK_NOTHROW(scheme_graph(fabric, 16384));
}

TEST_CASE("the scheme of a wiring holds all its parts at any size", "[graph]") {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const Fabric fabric = read_fabric(JsonValue::load(entry.path()));
    const std::int64_t n = std::min<std::int64_t>(fabric.scale_up.domain, 8);
    INFO(fabric.name);
    const FabricParts parts = fabric_parts(fabric, n);
    const FabricGraph graph = scheme_graph(fabric, n);
    std::int64_t cables = 0, drawn = 0, switches = 0, vertices = 0;
    for (const CableRun& run : parts.cables) cables += run.cables;
    for (const SwitchCount& item : parts.switches) switches += item.count;
    for (const auto edge : boost::make_iterator_range(boost::edges(graph)))
      if (graph[edge].cable) drawn += graph[edge].links;
    for (const auto v : boost::make_iterator_range(boost::vertices(graph)))
      if (is_switch(graph[v])) vertices += graph[v].count;
    CHECK(drawn == cables);
    CHECK(vertices == switches);
    if (fabric.scale_up.kind != ScaleUpKind::none || parts.nics > 0) CHECK(connected(graph));
    CHECK(boost::num_vertices(graph) <= 8);
  }
}

}  // namespace
}  // namespace orrery
