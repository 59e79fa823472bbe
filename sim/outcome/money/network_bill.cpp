// SPDX-License-Identifier: Apache-2.0
// Finds the catalogue entry of each part of a network, and adds up their prices and power.
#include "sim/outcome/money/network_bill.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "hw_models/catalog.h"

namespace orrery {
namespace {

constexpr auto group_text =
    enum_names<BillGroup>({"scale-up switches", "switches", "NICs", "transceivers", "cables"});

template <class T>
Sourced<T> unknown(const std::string& reason) {
  return {.evidence = Evidence::specified, .reason = reason};
}

// What is not in the catalogue is unknown; a broken entry is still an Error.
template <class Load>
auto find_part(const std::string& folder, const std::string& name, Load load)
    -> std::optional<decltype(load(name))> {
  const std::vector<std::string> names = catalog_names(folder);
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".json");
  if (!is_file && !std::binary_search(names.begin(), names.end(), name)) return std::nullopt;
  return load(name);
}
std::optional<Switch> find_switch(const std::string& name) {
  return find_part("hw_models/catalog/switches", name, load_switch);
}

// The switch behind a scale-up link, where the wiring does not name one.
std::string scale_up_part(const ScaleUp& up) {
  if (up.kind != ScaleUpKind::switched || up.link.empty()) return "";
  for (const std::string& name : catalog_names("hw_models/catalog/switches"))
    if (load_switch(name).scale_up_link == up.link) return name;
  return "";
}

std::string why_unnamed(const std::string& part) {
  return part.empty() ? "the wiring does not name the part" : "not in the catalogue";
}

class Biller {
 public:
  Biller(const Fabric& fabric, const FabricParts& parts, const std::vector<Optic>& optics)
      : fabric_(fabric), parts_(parts), optics_(optics) {
    bill_.accelerators = parts.accelerators;
  }

  NetworkBill bill() {
    for (const SwitchCount& count : parts_.switches) add_switches(count);
    add_nics();
    for (const CableRun& run : parts_.cables) add_transceivers(run);
    for (const CableRun& run : parts_.cables) add_cables(run);
    if (any_co_packaged_)
      note(
          "ends in switches with co-packaged optics have no transceivers: the switch's price and "
          "power hold them");
    return std::move(bill_);
  }

 private:
  void note(const std::string& text) { bill_.notes.push_back(text); }

  void add(BillLine line) {
    if (line.count > 0) bill_.lines.push_back(std::move(line));
  }

  void add_switches(const SwitchCount& count) {
    const bool scale_up = !is_scale_out_role(count.role);
    std::string part = count.part;
    if (part.empty() && scale_up) part = scale_up_part(fabric_.scale_up);
    BillLine line{.group = scale_up ? BillGroup::scale_up_switch : BillGroup::switch_,
                  .item = count.role,
                  .part = part,
                  .count = count.count};
    if (const auto known = find_switch(part)) {
      line.title = known->title;
      line.price = known->price;
      line.power = known->power;
      co_packaged_[count.role] = known->co_packaged_optics;
      if (count.ports == 0 && !scale_up) line.count = at_least(count, *known);
    } else {
      line.price = unknown<Dollars>(why_unnamed(part));
      line.power = unknown<Watts>(why_unnamed(part));
    }
    add(std::move(line));
  }

  // Where the wiring states no ports, its switch is as large as it must be: as many real ones as
  // its links fill stand for it.
  std::int64_t at_least(const SwitchCount& count, const Switch& real) {
    if (!real.ports.known() || !real.port_bandwidth.known()) return count.count;
    double rate = 0;
    for (const CableRun& run : parts_.cables)
      for (const std::string& end : {run.from, run.to})
        if (end == count.role) rate += run.rate.si() * static_cast<double>(run.cables);
    const double one = real.port_bandwidth.get().si() * static_cast<double>(real.ports.get());
    // The last bit of a sum must not cost a switch.
    const auto needed = static_cast<std::int64_t>(std::ceil(rate / one * (1 - 1e-9)));
    if (needed <= count.count) return count.count;
    note(
        fmt::format("{} x {} stand for {} of unstated size: the least that its links fill, "
                    "without the cables between them",
                    needed, count.part, count.role));
    return needed;
  }

  void add_nics() {
    const std::string& name = fabric_.scale_out.nic;
    BillLine line{.group = BillGroup::nic, .item = "NIC", .part = name, .count = parts_.nics};
    if (line.count == 0) return;
    if (const auto nic = find_part("hw_models/catalog/nics", name, load_nic)) {
      line.title = nic->title;
      line.price = nic->price;
      line.power = nic->power;
    } else {
      line.price = unknown<Dollars>(why_unnamed(name));
      line.power = unknown<Watts>(why_unnamed(name));
    }
    add(std::move(line));
  }

  static bool between_sites(const CableRun& run) {
    return run.from == "long-haul" || run.to == "long-haul" || run.from == "site";
  }

  void add_optic(const CableRun& run, BillGroup group, OpticKind kind, std::int64_t count) {
    if (count == 0) return;
    const OpticChoice choice = choose_optic(optics_, kind, run.rate);
    BillLine line{.group = group,
                  .item = fmt::format("{} to {}", run.from, run.to),
                  .count = count * choice.count};
    if (choice.optic != nullptr) {
      line.part = choice.optic->name;
      line.title = choice.optic->title;
      line.price = choice.optic->price;
      line.power = choice.optic->power;
    } else {
      const std::string reason = fmt::format("no {} in the catalogue", to_text(kind));
      line.price = unknown<Dollars>(reason);
      line.power = unknown<Watts>(reason);
    }
    add(std::move(line));
  }

  void add_transceivers(const CableRun& run) {
    if (run.medium != Medium::optical) return;
    std::int64_t count = run.transceivers;
    for (const std::string& end : {run.from, run.to}) {
      const auto place = co_packaged_.find(end);
      if (place == co_packaged_.end() || !place->second) continue;
      any_co_packaged_ = true;
      count = std::max<std::int64_t>(0, count - run.cables);
    }
    add_optic(run, BillGroup::transceiver,
              between_sites(run) ? OpticKind::coherent : OpticKind::transceiver, count);
  }

  void add_cables(const CableRun& run) {
    OpticKind kind = OpticKind::backplane;
    if (run.medium == Medium::copper) kind = OpticKind::copper;
    if (run.medium == Medium::optical)
      kind = between_sites(run) ? OpticKind::long_haul_fibre : OpticKind::fibre;
    add_optic(run, BillGroup::cable, kind, run.cables);
  }

  const Fabric& fabric_;
  const FabricParts& parts_;
  const std::vector<Optic>& optics_;
  std::map<std::string, bool> co_packaged_;
  bool any_co_packaged_ = false;
  NetworkBill bill_;
};

template <class Q>
void add_to(BillSum<Q>& sum, const Sourced<Q>& one, const BillLine& line) {
  if (!one.known()) {
    sum.unknown.push_back(line.part.empty() ? line.item : line.part);
    return;
  }
  const auto count = static_cast<double>(line.count);
  sum.value += one.get() * count;
  sum.low += one.low.value_or(one.get()) * count;
  sum.high += one.high.value_or(one.get()) * count;
}

template <class Keep>
BillTotal add_up(const std::vector<BillLine>& lines, Keep keep) {
  BillTotal total;
  for (const BillLine& line : lines) {
    if (!keep(line)) continue;
    add_to(total.price, line.price, line);
    add_to(total.power, line.power, line);
  }
  for (auto* names : {&total.price.unknown, &total.power.unknown}) {
    std::vector<std::string> once;
    for (const std::string& name : *names)
      if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
    *names = once;
  }
  return total;
}

}  // namespace

std::string_view to_text(BillGroup group) { return group_text[group]; }

BillTotal NetworkBill::total() const {
  return add_up(lines, [](const BillLine&) { return true; });
}

BillTotal NetworkBill::total(BillGroup group) const {
  return add_up(lines, [group](const BillLine& line) { return line.group == group; });
}

bool NetworkBill::has(BillGroup group) const {
  return std::any_of(lines.begin(), lines.end(),
                     [group](const BillLine& line) { return line.group == group; });
}

// Roles of switches inside a domain are many ("nvswitch-2", "ocs"), those outside are these.
bool is_scale_out_role(std::string_view role) {
  static constexpr std::array<std::string_view, 4> roles = {"leaf", "spine", "core", "long-haul"};
  return role.starts_with("tier-") || std::find(roles.begin(), roles.end(), role) != roles.end();
}

bool is_scale_up_run(const CableRun& run) {
  for (const std::string& end : {run.from, run.to})
    if (end == "nic" || is_scale_out_role(end)) return false;
  return true;
}

NetworkBill network_bill(const Fabric& fabric, const FabricParts& parts) {
  return network_bill(fabric, parts, load_optics());
}

NetworkBill network_bill(const Fabric& fabric, const FabricParts& parts,
                         const std::vector<Optic>& optics) {
  return Biller(fabric, parts, optics).bill();
}

}  // namespace orrery
