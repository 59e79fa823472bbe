// Writes what a step's collectives do to the network.
#include "sim/app/network_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/report_parts.h"
#include "sim/app/tables.h"

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

std::string losses(const Scenario& s, const Prediction& p) {
  const double lost = p.step_time / p.undisturbed - 1;
  std::string text = fmt::format("Network: flows on {}, {} routing. ", s.cluster.fabric.title,
                                 to_text(s.cluster.fabric.scale_out.routing));
  const TimeUnit unit = unit_for(p.step_time);
  if (std::abs(lost) < 5e-5)
    text += "Shared links cost this step nothing: it takes what it takes on the ideal network.";
  else
    text +=
        fmt::format("Shared links{} cost {:.1f}% of the step, which takes {:.{}f} {} without them.",
                    s.conditions.healthy() ? "" : ", faults and other traffic", 100 * lost,
                    p.undisturbed.si() * unit.per_second, unit.decimals, unit.name);
  return wrap(text, page_width, "", "") + "\n";
}

}  // namespace

std::string network_text(const Scenario& s, const Prediction& p) {
  if (s.network != NetworkMode::flow) return {};
  std::string out = "\n" + losses(s, p);
  if (p.network.empty()) return out;
  const auto bytes = layer_bytes(p, static_cast<double>(s.layout.gpus()));
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > 0)
      parts.push_back(fmt::format("{} {} GB", network_layers[i], significant(bytes[i] / 1e9)));
  out += wrap(fmt::format("A GPU of the stage that sends most moves, per step: {}.",
                          fmt::join(parts, ", ")),
              page_width, "", "") +
         "\n";
  Table table({"collective", "ranks", "MB", "a step", "us each", "alone", "busiest link"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::left});
  for (std::size_t i = 0; i < std::min(most_rows, p.network.size()); ++i) {
    const NetworkUse& u = p.network[i];
    const std::string busy = u.price.busiest.empty()
                                 ? "scale-up only"
                                 : fmt::format("{:.0f}% of {}", 100 * u.price.busiest.front().load,
                                               u.price.busiest.front().name);
    table.add({fmt::format("{} {}", to_text(u.label), to_text(u.collective.kind)),
               grouped(static_cast<double>(u.collective.group.size)),
               significant(u.collective.bytes.si() / 1e6), significant(u.count),
               significant(u.price.time.time.si() * 1e6),
               stretch(u) > 1e-4 ? significant(u.price.undisturbed.si() * 1e6) : "same", busy});
  }
  return out + table.text();
}

nlohmann::ordered_json network_json(const Prediction& p) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const NetworkUse& u : p.network) {
    Json layers = Json::object(), busiest = Json::array();
    for (std::size_t i = 0; i < network_layers.size(); ++i)
      layers[network_layers[i]] = u.price.bytes[i];
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
                    {"alone_s", u.price.undisturbed.si()},
                    {"layer_bytes", layers},
                    {"busiest", busiest},
                    {"flows", u.price.flows},
                    {"classes", u.price.classes}});
  }
  return {{"undisturbed_step_s", p.undisturbed.si()}, {"collectives", list}};
}

}  // namespace orrery
