// SPDX-License-Identifier: Apache-2.0
// Knows what the bill of a network must do: add up, keep unknowns apart, take the right optics.
#include "sim/outcome/money/network_bill.h"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "hw_models/catalog.h"
#include "hw_models/price/optics.h"
#include "sim/engine/cluster.h"

using namespace orrery;

namespace {

const BillLine* find_line(const NetworkBill& bill, BillGroup group, const std::string& item) {
  for (const BillLine& line : bill.lines)
    if (line.group == group && line.item == item) return &line;
  return nullptr;
}

// A small fat tree: eight accelerators, one leaf, two spines, all optical.
FabricParts small_parts(const std::string& leaf) {
  FabricParts parts;
  parts.accelerators = parts.nics = 8;
  parts.domains = 1;
  parts.switches = {{.role = "leaf", .part = leaf, .count = 1, .ports_used = 16, .ports = 64},
                    {.role = "spine", .part = "q3400", .count = 2, .ports_used = 4, .ports = 64}};
  const BytesPerSecond rate = parse<BytesPerSecond>("800 Gbit/s");
  parts.cables = {{.from = "nic",
                   .to = "leaf",
                   .medium = Medium::optical,
                   .rate = rate,
                   .cables = 8,
                   .transceivers = 16},
                  {.from = "leaf",
                   .to = "spine",
                   .medium = Medium::optical,
                   .rate = rate,
                   .cables = 8,
                   .transceivers = 16}};
  return parts;
}

}  // namespace

TEST_CASE("optics: every entry is read, its sources are known, kinds hold together") {
  const auto sources = load_sources();
  std::set<OpticKind> kinds;
  std::set<double> transceiver_rates;
  for (const Optic& optic : load_optics()) {
    INFO(optic.name);
    kinds.insert(optic.kind);
    CHECK(sources.contains(optic.price.source));
    CHECK(sources.contains(optic.power.source));
    CHECK(sources.contains(optic.reach_metres.source));
    CHECK(load_optic(optic.name).title == optic.title);
    if (optic.kind == OpticKind::transceiver) transceiver_rates.insert(optic.rate.get().si());
  }
  CHECK(kinds.size() == 6);
  for (const double gigabits : {100, 200, 400, 800, 1600})
    CHECK(transceiver_rates.contains(gigabits * 1e9 / 8));
}

TEST_CASE("optics: the slowest that carries a link is taken, or several of the fastest") {
  const std::vector<Optic> optics = load_optics();
  const auto taken = [&](OpticKind kind, const char* rate) {
    return choose_optic(optics, kind, parse<BytesPerSecond>(rate));
  };
  CHECK(taken(OpticKind::transceiver, "50 Gbit/s").optic->name == "optical-100g");
  CHECK(taken(OpticKind::transceiver, "400 Gbit/s").optic->name == "optical-400g");
  CHECK(taken(OpticKind::transceiver, "401 Gbit/s").optic->name == "optical-800g");
  const OpticChoice many = taken(OpticKind::transceiver, "6400 Gbit/s");
  CHECK(many.optic->name == "optical-1600g");
  CHECK(many.count == 4);
  CHECK(taken(OpticKind::fibre, "6400 Gbit/s").count == 1);
  CHECK(choose_optic({}, OpticKind::fibre, BytesPerSecond(1)).optic == nullptr);
  rc::check("enough rate, and never one module more than needed", [&] {
    const double rate = static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 2'000'000)) * 1e6;
    const OpticChoice choice = choose_optic(optics, OpticKind::copper, BytesPerSecond(rate));
    const double one = choice.optic->rate.get().si();
    RC_ASSERT(one * static_cast<double>(choice.count) >= rate * (1 - 1e-6));
    RC_ASSERT(choice.count == 1 || one * static_cast<double>(choice.count - 1) < rate);
  });
}

TEST_CASE("the bill adds up line by line and group by group") {
  for (const std::string& name : fabric_names()) {
    const Fabric fabric = load_fabric(name);
    const NetworkBill bill = network_bill(fabric, fabric_parts(fabric, fabric.scale_up.domain));
    const BillTotal total = bill.total();
    double dollars = 0, watts = 0, groups = 0;
    for (const BillLine& line : bill.lines) {
      INFO(name << ": " << line.item << " " << line.part);
      CHECK(line.count > 0);
      if (line.price.known())
        dollars += line.price.get().si() * static_cast<double>(line.count);
      else
        CHECK(!line.price.reason.empty());
      if (line.power.known())
        watts += line.power.get().si() * static_cast<double>(line.count);
      else
        CHECK(!line.power.reason.empty());
    }
    for (int g = 0; g < bill_group_count; ++g)
      groups += bill.total(static_cast<BillGroup>(g)).price.value.si();
    INFO(name);
    CHECK(total.price.value.si() == Approx(dollars));
    CHECK(total.power.value.si() == Approx(watts));
    CHECK(groups == Approx(dollars));
    CHECK(total.price.low.si() <= total.price.value.si());
    CHECK(total.price.high.si() >= total.price.value.si());
    CHECK(total.power.low.si() <= total.power.value.si());
    CHECK(total.power.high.si() >= total.power.value.si());
  }
}

TEST_CASE("where a wiring names no switch, the catalogue says which stands behind its links") {
  std::set<std::string> links;
  for (const std::string& name : catalog_names("hw_models/catalog/switches")) {
    const std::string link = load_switch(name).scale_up_link;
    INFO(name << ": " << link);
    if (!link.empty()) CHECK(links.insert(link).second);  // one switch for a link
  }
  CHECK(links.contains("nvlink5"));
  Fabric fabric = load_fabric("nvlink5-xdr");
  const std::string named = fabric.scale_up.levels.front().switch_name;
  const auto part_of = [&] {
    const NetworkBill bill = network_bill(fabric, fabric_parts(fabric, 8));
    for (const BillLine& line : bill.lines)
      if (line.group == BillGroup::scale_up_switch) return line.part;
    return std::string("none");
  };
  CHECK(part_of() == named);
  fabric.scale_up.levels.clear();
  fabric.scale_up.links = {};
  CHECK(part_of() == named);
  fabric.scale_up.link = "someone's own";
  CHECK(part_of().empty());
}

TEST_CASE("what has no price is unknown, never 0") {
  const Fabric fabric = load_fabric("nvlink4-ndr");
  const NetworkBill bill = network_bill(fabric, fabric_parts(fabric, 8));
  const BillLine* chips = find_line(bill, BillGroup::scale_up_switch, "nvswitch");
  REQUIRE(chips != nullptr);
  CHECK(!chips->price.known());
  const std::vector<std::string>& unknown = bill.total().price.unknown;
  CHECK(std::find(unknown.begin(), unknown.end(), "nvswitch-gen3") != unknown.end());

  FabricParts made_up = small_parts("a-switch-that-nobody-sells");
  const NetworkBill strange = network_bill(fabric, made_up);
  const BillLine* leaf = find_line(strange, BillGroup::switch_, "leaf");
  REQUIRE(leaf != nullptr);
  CHECK(!leaf->price.known());
  CHECK(leaf->price.reason == "not in the catalogue");
}

TEST_CASE("co-packaged ends have no transceivers") {
  const Fabric fabric = load_fabric("nvl72-xdr");
  const NetworkBill pluggable = network_bill(fabric, small_parts("q3400"));
  const NetworkBill co_packaged = network_bill(fabric, small_parts("q3450"));
  CHECK(find_line(pluggable, BillGroup::transceiver, "nic to leaf")->count == 16);
  CHECK(find_line(co_packaged, BillGroup::transceiver, "nic to leaf")->count == 8);
  CHECK(find_line(co_packaged, BillGroup::transceiver, "leaf to spine")->count == 8);
  CHECK(!co_packaged.notes.empty());
  CHECK(load_switch("sn6800").co_packaged_optics);
  CHECK(!load_switch("sn5600").co_packaged_optics);
}

TEST_CASE("a switch of unstated size is billed by what its links fill") {
  const Fabric fabric = load_fabric("nvlink4-ndr");
  FabricParts parts = small_parts("qm9700");
  parts.switches[0].ports = 0;
  parts.cables[0].cables = 640;  // at 800 Gbit/s: twenty times 64 x 400 Gbit/s
  parts.cables[1].cables = 0;
  CHECK(find_line(network_bill(fabric, parts), BillGroup::switch_, "leaf")->count == 20);
  parts.switches[0].ports = 640;
  CHECK(find_line(network_bill(fabric, parts), BillGroup::switch_, "leaf")->count == 1);
}

TEST_CASE("a two-tier tree of NDR costs what has been published for one") {
  // DeepSeek-V3's table: 4.39 thousand USD an endpoint of a full two-tier tree of 64-port
  // switches, without the adapters.
  const Fabric fabric = load_fabric("nvlink4-ndr");
  const NetworkBill bill = network_bill(fabric, fabric_parts(fabric, 2048));
  double low = 0, high = 0;
  for (const BillGroup group : {BillGroup::switch_, BillGroup::transceiver, BillGroup::cable}) {
    low += bill.total(group).price.low.si() / 2048;
    high += bill.total(group).price.high.si() / 2048;
  }
  CHECK(low < 4390);
  CHECK(high > 4390);
}
