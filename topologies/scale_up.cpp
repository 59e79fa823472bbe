// SPDX-License-Identifier: Apache-2.0
// Knows how the switch chips and links of a scale-up domain are counted.
#include "topologies/scale_up.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/whole.h"
#include "topologies/torus.h"

namespace orrery {
namespace {

std::string role_of(const std::string& link, std::size_t level) {
  const std::string base = link.starts_with("nvlink") ? "nvswitch" : "scale-up-switch";
  return level == 0 ? base : fmt::format("{}-{}", base, level + 1);
}

// Pairs of members, halves that differ by at most one.
double halves(std::int64_t members) {
  return static_cast<double>((members / 2) * (members - members / 2));
}

void add_direct(const ScaleUp& up, const ScaleUpShape& shape, DomainParts& out) {
  const std::int64_t m = shape.members;
  if (up.domain < 2) return;
  const BytesPerSecond pair = up.bandwidth.get() / static_cast<double>(up.domain - 1);
  // Each pair has its share of the links; what does not divide is counted where it is, in all.
  const std::int64_t cables = shape.links * m * (m - 1) / (2 * (up.domain - 1));
  const std::int64_t bundles = m * (m - 1) / 2;
  const bool counted = up.links.known();
  if (bundles > 0)
    out.cables.push_back({.from = "accelerator",
                          .to = "accelerator",
                          .medium = Medium::backplane,
                          .rate = counted ? shape.link : pair,
                          .cables = counted ? cables : bundles});
  if (!counted) out.notes.push_back("the links of a pair in the scale-up mesh are counted as one");
  out.bisection = pair * halves(m);
}

void add_switched(const ScaleUp& up, const ScaleUpShape& shape, DomainParts& out) {
  std::int64_t from_below = shape.members * shape.links;
  std::string below = "accelerator";
  for (std::size_t i = 0; i < shape.levels.size(); ++i) {
    const ScaleUpLevelShape& level = shape.levels[i];
    const std::int64_t groups = level.groups;
    const std::int64_t full = std::min(level.reach, shape.members) * shape.links;
    SwitchCount count{.role = level.role, .part = level.part, .count = groups * level.switches};
    // The fullest chip: as many of each accelerator's links as the outermost chip gets.
    count.ports_used = i == 0 ? std::min(level.reach, shape.members) *
                                    links_to_chip(shape.links, level.switches, 0)
                              : ceil_div(full, level.switches);
    count.ports_used += ceil_div(level.up, level.switches);
    out.switches.push_back(count);
    // Beyond the first level cables leave the rack.
    const Medium medium = i == 0 ? Medium::backplane : Medium::optical;
    out.cables.push_back({.from = below,
                          .to = level.role,
                          .medium = medium,
                          .rate = shape.link,
                          .cables = from_below,
                          .transceivers = i == 0 ? 0 : 2 * from_below});
    from_below = groups * level.up;
    below = level.role;
  }
  if (!up.links.known())
    out.notes.push_back(
        "switch chips and links of the scale-up domain are not published: one switch and one link "
        "of an accelerator stand for them");
  if (shape.levels.size() > 1)
    out.notes.push_back(
        "levels of scale-up switches beyond the first taken as non-blocking, on "
        "optical cables");
  out.bisection = up.bandwidth.get() * static_cast<double>(shape.members / 2);
  for (const ScaleUpLevelShape& level : shape.levels) {
    if (shape.members == 1) break;
    out.diameter += level.groups > 1 ? 2 : 1;
    if (level.groups == 1) break;
  }
}

void add_torus(const ScaleUp& up, std::int64_t members, DomainParts& out) {
  const TorusShape shape = torus_slice(up, members);
  const std::int64_t optical = shape.optical_links();
  const std::int64_t copper = shape.links() - optical / 2;
  // Lines of one rate are one run; axes of unequal links are one run each.
  for (std::size_t i = 0; i < shape.axes.size(); ++i) {
    const bool merged = up.axis_links.empty();
    if (merged && i > 0) break;
    const std::int64_t cables = merged ? copper : shape.links_on(i);
    if (cables > 0)
      out.cables.push_back({.from = "accelerator",
                            .to = "accelerator",
                            .medium = Medium::copper,
                            .rate = shape.axes[i].link,
                            .cables = cables});
  }
  if (optical > 0) {
    // The circuit switch is a mirror: only the accelerator's end has a transceiver.
    out.cables.push_back({.from = "accelerator",
                          .to = "ocs",
                          .medium = Medium::optical,
                          .rate = shape.axes[0].link,
                          .cables = optical,
                          .transceivers = optical});
    out.switches.push_back({.role = "ocs",
                            .part = up.circuit_switch,
                            .count = shape.circuit_switches(),
                            .ports_used = 2 * shape.cubes()});
    if (up.circuit_switch.empty())
      out.notes.push_back(
          fmt::format("optical circuit switches not published; counted as units of {} ports",
                      2 * shape.cubes()));
  }
  std::string text;
  bool equal = true;
  for (const TorusAxis& axis : shape.axes) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " x ", axis.size, axis.ring ? "" : " (open)");
    equal = equal && axis.size == shape.axes[0].size;
  }
  out.notes.push_back(
      shape.points() == members
          ? fmt::format("torus of {}", text)
          : fmt::format("torus of {}: the least slice that holds {}", text, members));
  if (!equal && optical > 0)
    out.notes.push_back(
        "a twisted torus raises all-to-all of unequal axes, up to 1.63 times as published for TPU "
        "v4; the bisection here is that of the plain one");
  out.bisection = shape.bisection();
  out.diameter = shape.diameter();
}

}  // namespace

std::int64_t links_to_chip(std::int64_t links, std::int64_t chips, std::int64_t chip) {
  const std::int64_t inward = std::min(chip, chips - 1 - chip);
  // Chips in the order 0, last, 1, last - 1, ...: the first of them take the remainder.
  const std::int64_t rank = 2 * inward + (chip > chips - 1 - chip ? 1 : 0);
  return links / chips + (rank < links % chips ? 1 : 0);
}

ScaleUpShape scale_up_shape(const ScaleUp& up, std::int64_t members) {
  ScaleUpShape shape{.members = std::min(members, up.domain)};
  if (up.links.known()) shape.links = up.links.get();
  shape.link = up.bandwidth.get() / static_cast<double>(shape.links);
  shape.direct = up.kind == ScaleUpKind::mesh ||
                 (up.kind == ScaleUpKind::switched && up.links.known() && up.levels.empty());
  if (up.kind != ScaleUpKind::switched || shape.direct || up.domain < 2) return shape;
  if (up.levels.empty()) {
    shape.levels.push_back(
        {.role = role_of(up.link, 0), .reach = up.domain, .groups = 1, .switches = 1});
    return shape;
  }
  for (std::size_t i = 0; i < up.levels.size(); ++i) {
    const ScaleUpLevel& level = up.levels[i];
    const std::int64_t reach = level.reach == 0 ? up.domain : level.reach;
    const bool last = i + 1 == up.levels.size();
    shape.levels.push_back({.role = role_of(up.link, i),
                            .part = level.switch_name,
                            .reach = reach,
                            .groups = ceil_div(shape.members, reach),
                            .switches = level.switches.get(),
                            .up = last ? 0 : reach * shape.links});
  }
  return shape;
}

DomainParts domain_parts(const ScaleUp& up, std::int64_t members) {
  DomainParts out;
  switch (up.kind) {
    case ScaleUpKind::switched:
    case ScaleUpKind::mesh: {
      const ScaleUpShape shape = scale_up_shape(up, members);
      if (shape.direct)
        add_direct(up, shape, out);
      else
        add_switched(up, shape, out);
      break;
    }
    case ScaleUpKind::torus:
      add_torus(up, std::min(members, up.domain), out);
      break;
    case ScaleUpKind::none:
      // PCIe to the host: neither switch nor cable of the wiring.
      out.bisection = up.bandwidth.get() * static_cast<double>(std::min(members, up.domain) / 2);
      out.diameter = members > 1 ? 1 : 0;
      out.notes.push_back("accelerators of a host meet at its PCIe root; not counted as a switch");
      break;
  }
  return out;
}

}  // namespace orrery
