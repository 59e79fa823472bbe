// SPDX-License-Identifier: Apache-2.0
// Prints what the topology command found as tables.
#include "sim/app/topology/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/report/parts.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

std::string range_text(const SecondsRange& r) {
  std::string text = to_text(Seconds(r.value));
  if (r.low < r.value || r.high > r.value)
    text += fmt::format(" ({} to {})", to_text(Seconds(r.low)), to_text(Seconds(r.high)));
  return text;
}

void add_head(Document& document, const TopologyReport& report) {
  const FabricParts& parts = report.parts;
  const ScaleOut& out = report.subject.fabric.scale_out;
  const std::string& name = report.subject.name;
  const std::string wiring =
      report.subject.kind == "cluster" ? ", wiring " + report.subject.fabric.name : "";
  document.paragraph(fmt::format("{} ({}{})", report.subject.title, name, wiring), "  ");
  std::string line =
      fmt::format("{} accelerators in {} of {}", grouped(parts.accelerators),
                  plural(parts.domains, "domain"), grouped(report.subject.fabric.scale_up.domain));
  const ScaleUp& up = report.subject.fabric.scale_up;
  if (up.kind == ScaleUpKind::torus)
    line += fmt::format(", a torus of {} axes", up.torus_axes);
  else if (up.kind == ScaleUpKind::mesh)
    line += ", a mesh";
  if (out.kind == ScaleOutKind::none)
    line += ", no scale-out network";
  else if (parts.domains == 1)
    line += ", no scale-out network in use";
  else
    line += fmt::format(", {} NICs, {}, {}, {}, routing {}", grouped(parts.nics),
                        plural(parts.planes, "plane"), plural(parts.rails, "rail"),
                        to_text(out.kind), to_text(out.routing));
  document.paragraph(line, "  ");
}

void add_switches(Document& document, const FabricParts& parts) {
  document.gap();
  if (parts.switches.empty()) {
    document.line("No switches.");
    return;
  }
  Table table({"switches", "part", "count", "ports used", "of"},
              {Align::left, Align::left, Align::right, Align::right, Align::right});
  for (const SwitchCount& s : parts.switches)
    table.add({s.role, s.part.empty() ? "not named" : s.part, grouped(s.count),
               s.ports_used == 0 ? "unknown" : grouped(s.ports_used),
               s.ports == 0 ? "unknown" : grouped(s.ports)});
  document.table(std::move(table), "");
}

void add_cables(Document& document, const FabricParts& parts) {
  if (parts.cables.empty()) return;
  document.gap();
  Table table({"cables from", "to", "medium", "rate", "cables", "transceivers"},
              {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right});
  for (const CableRun& run : parts.cables)
    table.add({run.from, run.to, std::string(to_text(run.medium)), gigabits_text(run.rate),
               grouped(run.cables), grouped(run.transceivers)});
  document.table(std::move(table), "");
}

void add_reach(Document& document, const TopologyReport& report) {
  const FabricParts& parts = report.parts;
  const Fabric& fabric = report.subject.fabric;
  Table table({"", "scale-up", "scale-out"}, {Align::left, Align::right, Align::right});
  const auto rate_or_none = [&](BytesPerSecond rate, bool there) {
    return there ? to_text(rate) : std::string("-");
  };
  const double in_domain =
      static_cast<double>(std::min(parts.accelerators, fabric.scale_up.domain));
  const double all = static_cast<double>(parts.accelerators);
  const bool out = report.reach.scale_out, up = parts.scale_up_bisection.si() > 0;
  table.add({"bisection, per direction", rate_or_none(parts.scale_up_bisection, up),
             rate_or_none(parts.scale_out_bisection, out)});
  table.add({"  per accelerator", rate_or_none(parts.scale_up_bisection / in_domain, up),
             rate_or_none(parts.scale_out_bisection / all, out)});
  const auto hops = [](int n, bool torus) {
    if (n == 0) return std::string("direct");
    return torus ? plural(n, "hop") : fmt::format("{} switch{}", n, n == 1 ? "" : "es");
  };
  table.add({"diameter", hops(parts.scale_up_diameter, fabric.scale_up.kind == ScaleUpKind::torus),
             out ? hops(parts.scale_out_diameter, false) : "-"});
  document.gap().table(std::move(table), "");
  const auto say = [&](const char* label, const std::string& value) {
    document.line(fmt::format("{:28}  {}", label, value));
  };
  say("latency within a domain", range_text(report.reach.within_domain));
  if (out) {
    say("latency under one leaf", range_text(report.reach.under_leaf));
    say("latency of the longest path", range_text(report.reach.longest));
    const bool dragonfly = fabric.scale_out.kind == ScaleOutKind::dragonfly_plus;
    const auto upper = [&](std::size_t tier) {
      return dragonfly && tier == 2 ? std::string("other groups") : tier_role(tier);
    };
    for (std::size_t i = 0; i < report.reach.top_tier; ++i)
      say("oversubscription", fmt::format("{} to {}: {:g} to 1", tier_role(i), upper(i + 1),
                                          fabric.scale_out.tiers[i].oversubscription.get()));
  }
}

template <class Q>
std::string number_or_unknown(const Sourced<Q>& one, double times) {
  return one.known() ? significant(one.get().si() * times) : "unknown";
}

template <class Q>
std::string sum_text(const BillSum<Q>& sum) {
  std::string text = to_text(sum.value);
  if (sum.low < sum.value || sum.high > sum.value)
    text += fmt::format(" ({} to {})", to_text(sum.low), to_text(sum.high));
  return text;
}

Table bill_table(const NetworkBill& bill, const BillTotal& total) {
  Table table({"network", "part", "count", "USD each", "USD in all", "share", "W each", "W in all"},
              {Align::left, Align::left});
  for (const BillLine& line : bill.lines) {
    const auto count = static_cast<double>(line.count);
    const bool priced = line.price.known() && total.price.value.si() > 0;
    const double share = priced ? line.price.get().si() * count / total.price.value.si() : 0;
    table.add({line.item, line.part.empty() ? "not named" : line.part, grouped(line.count),
               number_or_unknown(line.price, 1), number_or_unknown(line.price, count),
               priced ? percent(share) : "", number_or_unknown(line.power, 1),
               number_or_unknown(line.power, count)});
  }
  return table;
}

// "nvswitch-gen3: part of the base board; ..." for what the sums leave out.
void add_unknown(Document& document, const NetworkBill& bill) {
  std::vector<std::string> seen;
  const auto name = [&](const BillLine& line, const char* what, const std::string& reason) {
    const std::string text =
        fmt::format("{} of {}: {}", what, line.part.empty() ? line.item : line.part,
                    reason.empty() ? "not published" : reason);
    if (std::find(seen.begin(), seen.end(), text) == seen.end()) seen.push_back(text);
  };
  for (const BillLine& line : bill.lines) {
    if (!line.price.known()) name(line, "price", line.price.reason);
    if (!line.power.known()) name(line, "power", line.power.reason);
  }
  if (seen.empty()) return;
  document.label("unknown, not in the sums:");
  for (const std::string& one : seen) document.item(one, "-");
}

// The network beside the accelerators themselves, where a cluster was named.
template <class Q>
std::string beside_devices(const BillSum<Q>& sum, const Sourced<Q>& device, double accelerators) {
  if (!device.known() || !(device.get().si() > 0)) return "";
  return fmt::format(", {} of the accelerators' own",
                     percent(sum.value.si() / (device.get().si() * accelerators)));
}

void add_bill(Document& document, const TopologyReport& report) {
  const NetworkBill& bill = report.bill;
  document.gap();
  if (bill.lines.empty()) {
    document.line("Nothing of this network has a price of its own.");
    return;
  }
  const BillTotal total = bill.total();
  const auto all = static_cast<double>(report.accelerators);
  document.table(bill_table(bill, total), "");
  Sourced<Dollars> price;
  Sourced<Watts> power;
  if (report.subject.device) {
    price = report.subject.device->price;
    power = report.subject.device->power_limit;
  }
  document.line(fmt::format("price   {}, {} an accelerator{}", sum_text(total.price),
                            to_text(total.price.value / all),
                            beside_devices(total.price, price, all)));
  document.line(fmt::format("power   {}, {} an accelerator{}", sum_text(total.power),
                            to_text(total.power.value / all),
                            beside_devices(total.power, power, all)));
  std::string shares;
  for (int g = 0; g < bill_group_count; ++g) {
    const auto group = static_cast<BillGroup>(g);
    if (!bill.has(group) || !(total.price.value.si() > 0)) continue;
    const BillTotal part = bill.total(group);
    if (!(part.price.value.si() > 0)) continue;  // unknown, said below
    shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", to_text(group),
                          percent(part.price.value / total.price.value));
  }
  if (!shares.empty()) document.paragraph("shares of the price: " + shares, "  ");
  add_unknown(document, bill);
}

}  // namespace

std::string gigabits_text(BytesPerSecond rate) {
  const double gigabits = rate.si() * 8e-9;
  if (gigabits >= 1e4) return fmt::format("{:.4g} Tbit/s", gigabits / 1e3);
  return fmt::format("{:.4g} Gbit/s", gigabits);
}

std::vector<std::string> topology_notes(const TopologyReport& report) {
  std::vector<std::string> notes;
  if (!report.size_note.empty()) notes.push_back(report.size_note);
  notes.insert(notes.end(), report.parts.notes.begin(), report.parts.notes.end());
  notes.insert(notes.end(), report.bill.notes.begin(), report.bill.notes.end());
  notes.emplace_back(
      "a transceiver is counted per port: a twin-port module counts as two of half its rate");
  notes.emplace_back(
      "low and high add all lows and all highs; a switch's high power may hold its optics");
  notes.emplace_back(
      "not modelled: storage and management networks, hosts, racks, patch panels, spares, labour, "
      "discounts, cooling");
  return notes;
}

Document topology_document(const TopologyReport& report) {
  Document document(true, report.width);
  add_head(document, report);
  add_switches(document, report.parts);
  add_cables(document, report.parts);
  add_reach(document, report);
  add_bill(document, report);
  document.gap().label("Notes:");
  for (const std::string& note : topology_notes(report)) document.item(note, "-");
  return document;
}

}  // namespace orrery
