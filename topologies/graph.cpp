// SPDX-License-Identifier: Apache-2.0
// Knows how the parts of a wiring are joined one by one.
#include "topologies/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/base/whole.h"
#include "topologies/scale_up.h"
#include "topologies/torus.h"

namespace orrery {
namespace {

class Builder {
 public:
  Builder(const Fabric& fabric, std::int64_t n)
      : fabric_(fabric), n_(n), shape_(bought_shape(fabric, n)) {}

  FabricGraph build() {
    for (std::int64_t a = 0; a < n_; ++a) vertex("accelerator", "");
    const std::int64_t domain = fabric_.scale_up.domain;
    for (std::int64_t first = 0; first < n_; first += domain)
      add_domain(first, std::min(domain, n_ - first));
    if (!shape_.tiers.empty()) {
      add_tiers();
      add_leaf_links();
      for (std::size_t t = 0; t + 1 < shape_.tiers.size(); ++t) add_links_up(t);
      if (shape_.direct && shape_.tiers.back().up > 0) add_pairs();
      if (shape_.sites) add_long_haul();
    }
    return graph_;
  }

 private:
  using Vertex = std::int64_t;

  Vertex vertex(std::string role, std::string part) {
    return static_cast<Vertex>(
        boost::add_vertex({.role = std::move(role), .part = std::move(part)}, graph_));
  }
  void join(Vertex a, Vertex b, std::int64_t links, BytesPerSecond rate, FabricEdge edge = {}) {
    if (links == 0) return;
    edge.links = links;
    edge.rate = rate;
    edge.capacity = rate * static_cast<double>(links);
    boost::add_edge(static_cast<std::size_t>(a), static_cast<std::size_t>(b), edge, graph_);
  }

  void add_domain(Vertex first, std::int64_t members) {
    const ScaleUp& up = fabric_.scale_up;
    switch (up.kind) {
      case ScaleUpKind::torus:
        return add_torus(first, members);
      case ScaleUpKind::none: {
        const Vertex host = vertex("host", "");
        for (Vertex a = first; a < first + members; ++a)
          join(a, host, 1, up.bandwidth.get(), {.scale_up = true, .cable = false});
        return;
      }
      case ScaleUpKind::switched:
      case ScaleUpKind::mesh:
        break;
    }
    const ScaleUpShape shape = scale_up_shape(up, members);
    if (shape.direct)
      add_mesh(first, shape);
    else
      add_switches(first, shape);
  }

  void add_mesh(Vertex first, const ScaleUpShape& shape) {
    if (fabric_.scale_up.domain < 2) return;
    const std::int64_t links =
        std::max<std::int64_t>(1, shape.links / (fabric_.scale_up.domain - 1));
    const BytesPerSecond pair =
        fabric_.scale_up.bandwidth.get() / static_cast<double>(fabric_.scale_up.domain - 1);
    for (Vertex a = first; a < first + shape.members; ++a)
      for (Vertex b = a + 1; b < first + shape.members; ++b)
        join(a, b, links, pair / static_cast<double>(links),
             {.scale_up = true, .medium = Medium::backplane});
  }

  void add_switches(Vertex first, const ScaleUpShape& shape) {
    std::vector<std::vector<Vertex>> chips;  // of each level, group after group
    for (const ScaleUpLevelShape& level : shape.levels) {
      chips.emplace_back();
      for (std::int64_t i = 0; i < level.groups * level.switches; ++i)
        chips.back().push_back(vertex(level.role, level.part));
    }
    if (shape.levels.empty()) return;
    const ScaleUpLevelShape& near = shape.levels[0];
    for (std::int64_t m = 0; m < shape.members; ++m)
      for (std::int64_t c = 0; c < near.switches; ++c)
        join(first + m, chips[0][index(m / near.reach * near.switches + c)],
             links_to_chip(shape.links, near.switches, c), shape.link,
             {.scale_up = true, .medium = Medium::backplane});
    for (std::size_t l = 0; l + 1 < shape.levels.size(); ++l) {
      const ScaleUpLevelShape& low = shape.levels[l];
      const ScaleUpLevelShape& high = shape.levels[l + 1];
      for (std::int64_t i = 0; i < low.groups * low.switches; ++i) {
        const std::int64_t group = i / low.switches * low.reach / high.reach;
        const std::int64_t up = links_to_chip(low.up, low.switches, i % low.switches);
        for (std::int64_t c = 0; c < high.switches; ++c)
          join(chips[l][index(i)], chips[l + 1][index(group * high.switches + c)],
               links_to_chip(up, high.switches, c), shape.link,
               {.scale_up = true, .medium = Medium::optical});
      }
    }
  }

  // Point x + X (y + Y z) of the slice is the accelerator of that number, so that a cut across the
  // last axis of more than one parts the first half from the last.
  void add_torus(Vertex first, std::int64_t members) {
    const TorusShape slice = torus_slice(fabric_.scale_up, members);
    std::vector<Vertex> points;
    for (std::int64_t i = 0; i < slice.points(); ++i)
      points.push_back(i < members ? first + i : vertex("spare", ""));
    const bool cubes = slice.cubes() > 0;
    std::int64_t stride = 1;
    for (const TorusAxis& axis : slice.axes) {
      for (std::int64_t i = 0; i < slice.points(); ++i) {
        const std::int64_t at = i / stride % axis.size;
        if (at + 1 == axis.size && !axis.ring) continue;
        const std::int64_t next = at + 1 == axis.size ? i - at * stride : i + stride;
        // Links between cubes, and those that close a ring, run over a circuit switch.
        const bool optical = cubes && (at + 1) % slice.cube == 0;
        join(points[index(i)], points[index(next)], 1, axis.link,
             {.scale_up = true, .medium = optical ? Medium::optical : Medium::copper});
      }
      stride *= axis.size;
    }
  }

  void add_tiers() {
    const LeafPlan plan(fabric_, shape_);
    for (std::int64_t plane = 0; plane < shape_.planes; ++plane) {
      planes_.emplace_back();
      for (std::size_t t = 0; t < shape_.tiers.size(); ++t) {
        const ClosTier& tier = shape_.tiers[t];
        auto& groups = planes_.back().emplace_back(index(tier.groups));
        for (std::int64_t g = 0; g < tier.groups; ++g) {
          const std::int64_t count = t == 0 ? plan.leaves_of_rail(g) * shape_.rails : tier.switches;
          for (std::int64_t i = 0; i < count; ++i)
            groups[index(g)].push_back(
                vertex(tier_role(t), fabric_.scale_out.tiers[t].switch_name));
        }
      }
    }
  }

  void add_leaf_links() {
    const LeafPlan plan(fabric_, shape_);
    const ScaleOut& out = fabric_.scale_out;
    const std::int64_t nics = ports_of(shape_, n_);
    const double each = shape_.ports_per_accelerator;
    // Accelerators [users(nic), users(nic + 1)) share a NIC; with several NICs each it has one
    // owner.
    const auto users = [&](std::int64_t nic) {
      return static_cast<Vertex>(std::ceil(static_cast<double>(nic) / each - 1e-6));
    };
    const auto owner = [&](std::int64_t nic) {
      return static_cast<Vertex>(static_cast<double>(nic) / each + 1e-6);
    };
    const FabricEdge inside = {.cable = false};
    for (std::int64_t nic = 0; nic < nics; ++nic) {
      const Vertex port = vertex("nic", out.nic);
      const Vertex first = each < 1 ? users(nic) : std::min(n_ - 1, owner(nic));
      const Vertex last = each < 1 ? std::min(n_, users(nic + 1)) : first + 1;
      for (Vertex a = first; a < last; ++a) join(a, port, 1, out.nic_bandwidth.get(), inside);
      const LeafPlan::Place place = plan.of(first);
      const std::int64_t leaf = place.rail * plan.leaves_of_rail(place.group) + place.leaf;
      for (const auto& tiers : planes_)
        join(port, tiers[0][index(place.group)][index(leaf)], 1, link_below(out, 0),
             {.medium = Medium::optical});
    }
  }

  void add_links_up(std::size_t t) {
    const ClosTier& low = shape_.tiers[t];
    const ClosTier& high = shape_.tiers[t + 1];
    const bool apart = fabric_.scale_out.kind == ScaleOutKind::rail_only;
    const BytesPerSecond rate = link_below(fabric_.scale_out, t + 1);
    for (const auto& tiers : planes_) {
      for (std::int64_t g = 0; g < low.groups; ++g) {
        const std::vector<Vertex>& from = tiers[t][index(g)];
        const std::vector<Vertex>& to = tiers[t + 1][index(g * low.reach / high.reach)];
        const std::int64_t below = std::ssize(from), above = std::ssize(to);
        for (std::int64_t i = 0; i < below; ++i) {
          // Leaves reach all spines, of their rail where rails stay apart; higher up, column i.
          std::int64_t share = above, start = 0;
          if (t > 0) {
            share = above / below;
            start = i * share;
          } else if (apart) {
            share = above / shape_.rails;
            start = i / (below / shape_.rails) * share;
          }
          for (std::int64_t c = start; c < start + share; ++c)
            join(from[index(i)], to[index(c)], low.parallel, rate, {.medium = Medium::optical});
        }
      }
    }
  }

  // Dragonfly+: `parallel` links between every two groups of a site.
  void add_pairs() {
    const std::size_t t = shape_.tiers.size() - 1;
    const ClosTier& tier = shape_.tiers[t];
    const std::int64_t joined =
        shape_.sites ? fabric_.sites.accelerators / tier.reach : tier.groups;
    const BytesPerSecond rate = link_below(fabric_.scale_out, t + 1);
    const auto spine = [&](std::int64_t group, std::int64_t peer, std::int64_t k) {
      const std::int64_t turn = peer < group ? peer : peer - 1;
      return index((turn * tier.parallel + k) % tier.switches);
    };
    for (const auto& tiers : planes_)
      for (std::int64_t g = 0; g < tier.groups; ++g)
        for (std::int64_t h = g + 1; h < std::min(tier.groups, (g / joined + 1) * joined); ++h)
          for (std::int64_t k = 0; k < tier.parallel; ++k)
            join(tiers[t][index(g)][spine(g % joined, h % joined, k)],
                 tiers[t][index(h)][spine(h % joined, g % joined, k)], 1, rate,
                 {.medium = Medium::optical});
  }

  // A gateway per site, joined to the switches of the top tier without limit.
  void add_long_haul() {
    const std::int64_t sites = ceil_div(n_, fabric_.sites.accelerators);
    const std::size_t top = shape_.tiers.size() - 1;
    const BytesPerSecond pair = fabric_.sites.bandwidth.get() / static_cast<double>(sites - 1);
    std::vector<Vertex> gateways;
    for (std::int64_t s = 0; s < sites; ++s) gateways.push_back(vertex("long-haul", ""));
    for (const auto& tiers : planes_)
      for (std::int64_t g = 0; g < std::ssize(tiers[top]); ++g)
        for (const Vertex sw : tiers[top][index(g)])
          join(sw, gateways[index(g * shape_.tiers[top].reach / fabric_.sites.accelerators)], 1,
               fabric_.sites.bandwidth.get() * static_cast<double>(sites), {.cable = false});
    for (std::size_t a = 0; a < gateways.size(); ++a)
      for (std::size_t b = a + 1; b < gateways.size(); ++b)
        join(gateways[a], gateways[b], 1, pair, {.medium = Medium::optical});
  }

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  const Fabric& fabric_;
  std::int64_t n_;
  ClosShape shape_;
  FabricGraph graph_;
  std::vector<std::vector<std::vector<std::vector<Vertex>>>> planes_;  // tier, group, switch
};

}  // namespace

FabricGraph full_graph(const Fabric& fabric, std::int64_t accelerators) {
  const FabricParts parts = fabric_parts(fabric, accelerators);
  std::int64_t vertices = accelerators + parts.nics;
  for (const SwitchCount& count : parts.switches) vertices += count.count;
  if (vertices > largest_full_graph)
    throw Error(
        {.file = fabric.name,
         .found = fmt::format("{} accelerators, NICs and switches", vertices),
         .expected = fmt::format("at most {} for a graph of all of them", largest_full_graph)});
  return Builder(fabric, accelerators).build();
}

FabricGraph scheme_graph(const Fabric& fabric, std::int64_t accelerators) {
  const FabricParts parts = fabric_parts(fabric, accelerators);
  FabricGraph graph;
  std::vector<std::string> roles;
  const auto vertex = [&](const std::string& role, const std::string& part, std::int64_t count) {
    const auto found = std::find(roles.begin(), roles.end(), role);
    if (found != roles.end()) {
      const auto at = static_cast<std::size_t>(found - roles.begin());
      graph[at].count += count;
      return at;
    }
    roles.push_back(role);
    return static_cast<std::size_t>(
        boost::add_vertex({.role = role, .part = part, .count = count}, graph));
  };
  const std::size_t accelerator = vertex("accelerator", "", accelerators);
  for (const SwitchCount& item : parts.switches) vertex(item.role, item.part, item.count);
  if (parts.nics > 0) {
    const std::size_t nic = vertex("nic", fabric.scale_out.nic, parts.nics);
    const BytesPerSecond rate = fabric.scale_out.nic_bandwidth.get();
    const std::int64_t links = std::max(accelerators, parts.nics);
    boost::add_edge(accelerator, nic,
                    {.links = links,
                     .rate = rate,
                     .capacity = rate * static_cast<double>(links),
                     .cable = false},
                    graph);
  }
  for (const CableRun& run : parts.cables) {
    const bool scale_up = run.from == "accelerator" || run.from.find("switch") != run.from.npos;
    boost::add_edge(vertex(run.from, "", 0), vertex(run.to, "", 0),
                    {.links = run.cables,
                     .rate = run.rate,
                     .capacity = run.rate * static_cast<double>(run.cables),
                     .scale_up = scale_up,
                     .medium = run.medium},
                    graph);
  }
  return graph;
}

}  // namespace orrery
