// SPDX-License-Identifier: Apache-2.0
// Prints what the topology command found as JSON.
#include <algorithm>

#include "sim/app/answer/answer.h"
#include "sim/app/topology/report.h"
#include "sim/base/json/tree.h"

namespace orrery {
namespace {

Json range_json(const SecondsRange& r) {
  return {{"value", r.value}, {"low", r.low}, {"high", r.high}};
}

template <class Q>
Json sourced_json(const Sourced<Q>& one) {
  Json json = {{"value", nullptr}};
  if (one.known()) {
    json["value"] = one.get().si();
    if (one.low && one.high) {
      json["low"] = one.low->si();
      json["high"] = one.high->si();
    }
  }
  json["evidence"] = to_text(one.evidence);
  json["source"] = one.source;
  if (!one.reason.empty()) json["reason"] = one.reason;
  return json;
}

template <class Q>
Json sum_json(const BillSum<Q>& sum, double accelerators) {
  return {{"value", sum.value.si()},
          {"low", sum.low.si()},
          {"high", sum.high.si()},
          {"per_accelerator", sum.value.si() / accelerators},
          {"unknown", sum.unknown}};
}

Json bill_json(const NetworkBill& bill) {
  const BillTotal total = bill.total();
  const auto all = static_cast<double>(bill.accelerators);
  Json lines = Json::array(), groups = Json::object();
  for (const BillLine& line : bill.lines)
    lines.push_back({{"group", to_text(line.group)},
                     {"item", line.item},
                     {"part", line.part},
                     {"title", line.title},
                     {"count", line.count},
                     {"price_usd", sourced_json(line.price)},
                     {"power_w", sourced_json(line.power)}});
  for (int g = 0; g < bill_group_count; ++g) {
    const auto group = static_cast<BillGroup>(g);
    if (!bill.has(group)) continue;
    const BillTotal part = bill.total(group);
    groups[json_key(to_text(group))] = {{"price_usd", sum_json(part.price, all)},
                                        {"power_w", sum_json(part.power, all)}};
  }
  return {{"lines", lines},
          {"groups", groups},
          {"price_usd", sum_json(total.price, all)},
          {"power_w", sum_json(total.power, all)}};
}

Json reach_json(const TopologyReport& report) {
  const FabricParts& parts = report.parts;
  const Fabric& fabric = report.subject.fabric;
  const bool out = report.reach.scale_out;
  const double in_domain =
      static_cast<double>(std::min(parts.accelerators, fabric.scale_up.domain));
  Json tapers = Json::array();
  for (std::size_t i = 0; out && i < report.reach.top_tier; ++i)
    tapers.push_back(fabric.scale_out.tiers[i].oversubscription.get());
  Json json = {
      {"scale_up_bisection_bytes_per_s", parts.scale_up_bisection.si()},
      {"scale_up_bisection_per_accelerator_bytes_per_s", parts.scale_up_bisection.si() / in_domain},
      {"scale_up_diameter", parts.scale_up_diameter},
      {"latency_within_domain_s", range_json(report.reach.within_domain)},
      {"scale_out_bisection_bytes_per_s", nullptr},
      {"scale_out_bisection_per_accelerator_bytes_per_s", nullptr},
      {"scale_out_diameter", nullptr},
      {"latency_under_leaf_s", nullptr},
      {"latency_longest_s", range_json(report.reach.longest)},
      {"oversubscription", tapers}};
  if (!out) return json;
  json["scale_out_bisection_bytes_per_s"] = parts.scale_out_bisection.si();
  json["scale_out_bisection_per_accelerator_bytes_per_s"] =
      parts.scale_out_bisection.si() / static_cast<double>(parts.accelerators);
  json["scale_out_diameter"] = parts.scale_out_diameter;
  json["latency_under_leaf_s"] = range_json(report.reach.under_leaf);
  return json;
}

}  // namespace

Json topology_report_json(const TopologyReport& report) {
  const FabricParts& parts = report.parts;
  Json switches = Json::array(), cables = Json::array();
  for (const SwitchCount& s : parts.switches) {
    Json one = {{"role", s.role}, {"part", s.part}, {"count", s.count}};
    one["ports_used"] = s.ports_used == 0 ? Json() : Json(s.ports_used);
    one["ports"] = s.ports == 0 ? Json() : Json(s.ports);
    switches.push_back(one);
  }
  for (const CableRun& run : parts.cables)
    cables.push_back({{"from", run.from},
                      {"to", run.to},
                      {"medium", to_text(run.medium)},
                      {"rate_bytes_per_s", run.rate.si()},
                      {"cables", run.cables},
                      {"transceivers", run.transceivers}});
  return {{report.subject.kind, report.subject.name},
          {"wiring", report.subject.fabric.name},
          {"title", report.subject.title},
          {"accelerators", parts.accelerators},
          {"domains", parts.domains},
          {"nics", parts.nics},
          {"planes", parts.planes},
          {"rails", parts.rails},
          {"scale_up_kind", to_text(report.subject.fabric.scale_up.kind)},
          {"kind", to_text(report.subject.fabric.scale_out.kind)},
          {"routing", to_text(report.subject.fabric.scale_out.routing)},
          {"switches", switches},
          {"cables", cables},
          {"reach", reach_json(report)},
          {"bill", bill_json(report.bill)},
          {"notes", topology_notes(report)}};
}

}  // namespace orrery
