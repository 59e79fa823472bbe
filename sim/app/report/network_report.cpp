// SPDX-License-Identifier: Apache-2.0
// Writes what a step's collectives do to the network.
#include "sim/app/report/network_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/answer/answer.h"
#include "sim/app/report/parts.h"
#include "sim/base/text/words.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

constexpr std::size_t most_rows = 8;

// Bytes that the job sends in one step, by the highest layer that they pass; of the stage at hand,
// per GPU.
std::array<double, network_layer_count> layer_bytes(const Prediction& p, double gpus) {
  std::array<double, network_layer_count> sum{};
  for (const NetworkUse& use : p.network) {
    const bool inside = use.price.flows == 0;  // nothing but scale-up ports: no flows were made
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += use.count * use.price.bytes[i] / gpus;
    if (inside) sum[0] += use.count * use.price.time.scale_up_bytes.si();
  }
  return sum;
}

double stretch(const NetworkUse& use) {
  return use.price.undisturbed.si() > 0 ? use.price.time.time / use.price.undisturbed - 1 : 0;
}

std::string name_of(const NetworkUse& use) {
  std::string label(to_text(use.label));
  label = label.substr(0, label.find("_comm"));
  return fmt::format("{} {}", label, to_text(use.collective.kind));
}

// How traffic finds its way: switches of the scale-out network route, a torus or a domain does not.
std::string way_of(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  if (cluster.gpus > fabric.scale_up.domain)
    return fmt::format("{} routing", to_text(fabric.scale_out.routing));
  if (fabric.scale_up.kind == ScaleUpKind::torus)
    return fmt::format("inside a torus of {} axes", fabric.scale_up.torus_axes);
  return "inside one scale-up domain";
}

// What the comparison holds: slow devices count on both sides of it.
std::string losses(const Scenario& s, const Prediction& p) {
  const Conditions& c = s.conditions;
  std::string causes = "shared links";
  if (!c.faults.empty() || !c.scale_up_faults.empty()) causes += ", faults";
  if (!c.background.empty()) causes += ", other traffic";
  if (const std::size_t last = causes.rfind(", "); last != std::string::npos)
    causes.replace(last, 2, " and ");
  const double lost = p.step_time / p.undisturbed - 1;
  const TimeUnit unit = unit_for(p.step_time);
  std::string text = fmt::format("Network: flows on {}, {}. To the step, {} ",
                                 s.cluster.fabric.title, way_of(s.cluster), causes);
  if (std::abs(lost) < 5e-5)
    text += "add nothing that it can feel (below 0.01%)";
  else if (lost < 0)
    text += fmt::format("cost {:.2f}% less than the ideal network expects", -100 * lost);
  else
    text += fmt::format("add {:.2f}%", 100 * lost);
  text += fmt::format("; on the ideal network it takes {:.{}f} {}.",
                      p.undisturbed.si() * unit.per_second, unit.decimals, unit.name);
  if (!c.slow_gpus.empty()) text += " Slow devices are slow in both.";
  return text;
}

// What a person must not conclude from the above.
std::string limits(const Scenario& s) {
  std::string text =
      "Times are those of the slowest group; slower: than alone on the healthy, empty fabric. Not "
      "modelled: lost packets, congestion "
      "control before it settles, jitter, failures during a step.";
  if (s.cluster.fabric.scale_up.kind == ScaleUpKind::torus ||
      s.cluster.fabric.scale_up.kind == ScaleUpKind::mesh)
    text += " Inside a scale-up domain only accelerators' ports are shared, not single links.";
  if (s.cluster.gpus > s.cluster.fabric.scale_up.domain &&
      s.cluster.fabric.scale_out.routing == Routing::ecmp)
    text += " Hashing is one draw: other runs are luckier or not.";
  return text;
}

std::string bytes_sentence(const Scenario& s, const Prediction& p) {
  const auto bytes = layer_bytes(p, static_cast<double>(s.layout.gpus()));
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > 0)
      parts.push_back(fmt::format("{} GB {}", significant(bytes[i] / 1e9),
                                  i == 0 ? "over scale-up ports" : network_layers[i]));
  return fmt::format("A GPU of the stage that sends most moves, per step: {}.",
                     joined(parts, ", "));
}

}  // namespace

void add_network(Document& document, const Scenario& s, const Prediction& p) {
  if (s.network != NetworkMode::flow) return;
  document.gap().paragraph(losses(s, p)).gap();
  if (p.network.empty()) return;
  document.paragraph(bytes_sentence(s, p)).gap();
  Table table(
      {"collective", "ranks", "MB", "a step", "us each", "slower", "busiest link, own share"},
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
       Align::left});
  for (std::size_t i = 0; i < std::min(most_rows, p.network.size()); ++i) {
    const NetworkUse& u = p.network[i];
    const std::string busy = u.price.busiest.empty()
                                 ? "scale-up only"
                                 : fmt::format("{:.0f}% of {}", 100 * u.price.busiest.front().load,
                                               u.price.busiest.front().name);
    table.add({name_of(u), grouped(u.collective.group.size),
               significant(u.collective.bytes.si() / 1e6), significant(u.count),
               significant(u.price.time.time.si() * 1e6),
               stretch(u) > 5e-4 ? fmt::format("{:.1f}%", 100 * stretch(u)) : "", busy});
  }
  document.table(std::move(table));
  if (p.network.size() > most_rows)
    document.note(
        fmt::format("and {} more of less time (--json lists all)", p.network.size() - most_rows));
  document.paragraph(limits(s));
}

Json network_json(const Prediction& p) {
  Json list = Json::array();
  for (const NetworkUse& u : p.network) {
    Json layers = Json::object(), busiest = Json::array();
    for (std::size_t i = 0; i < network_layers.size(); ++i)
      layers[json_key(network_layers[i])] = u.price.bytes[i];
    for (const BusyLink& link : u.price.busiest)
      busiest.push_back({{"link", link.name}, {"load", link.load}, {"links", link.links}});
    list.push_back({{"label", to_text(u.label)},
                    {"collective", to_text(u.collective.kind)},
                    {"algorithm", to_text(u.price.time.algorithm)},
                    {"protocol", to_text(u.price.time.protocol)},
                    {"ranks", u.collective.group.size},
                    {"domains", u.collective.group.domains},
                    {"bytes", u.collective.bytes.si()},
                    {"count", u.count},
                    {"time_s", u.price.time.time.si()},
                    {"time_alone_s", u.price.undisturbed.si()},
                    {"layer_bytes", layers},
                    {"busiest", busiest},
                    {"flows", u.price.flows},
                    {"classes", u.price.classes}});
  }
  return {{"undisturbed_step_time_s", p.undisturbed.si()}, {"collectives", list}};
}

}  // namespace orrery
