// SPDX-License-Identifier: Apache-2.0
// Knows what a cluster is made of for its bill: power, floor and capital, each part counted once.
#include <fmt/format.h>

#include <cmath>

#include "sim/outcome/money/inputs.h"

namespace orrery {
namespace {

std::string line_path(const BillLine& line, const char* what) {
  return fmt::format("{}: {}", line.part.empty() ? line.item : line.part, what);
}

// Cables name the two places that they join.
bool is_scale_up_line(const BillLine& line) {
  if (line.group == BillGroup::scale_up_switch) return true;
  if (line.group != BillGroup::cable && line.group != BillGroup::transceiver) return false;
  const std::size_t to = line.item.find(" to ");
  if (to == std::string::npos) return false;
  return is_scale_up_run({.from = line.item.substr(0, to), .to = line.item.substr(to + 4)});
}

// A board's or a rack's own traces have no price of their own anywhere.
bool is_backplane(const BillLine& line) { return line.part == "backplane"; }

bool held(const PartsIncluded& parts, const BillLine& line) {
  return (parts.nic && line.group == BillGroup::nic) || (parts.scale_up && is_scale_up_line(line));
}

CapitalGroup capital_group(const BillLine& line) {
  if (is_scale_up_line(line)) return CapitalGroup::scale_up;
  switch (line.group) {
    case BillGroup::scale_up_switch:
      return CapitalGroup::scale_up;
    case BillGroup::switch_:
      return CapitalGroup::switches;
    case BillGroup::nic:
      return CapitalGroup::nics;
    case BillGroup::transceiver:
      return CapitalGroup::transceivers;
    case BillGroup::cable:
      return CapitalGroup::cables;
  }
  return CapitalGroup::cables;
}

void add_line(BillPass& pass, PowerLine line) { pass.bill.power.push_back(std::move(line)); }

// Mean power in training, of one accelerator.
BillSum<Watts> training_power(BillPass& pass) {
  const Device& device = pass.cluster.device;
  if (pass.question.accelerator_power.known())
    return pass.inputs.read(pass.accelerator_path("mean power in training"),
                            pass.question.accelerator_power);
  return pass.inputs.read(pass.accelerator_path("power limit"), device.power_limit) *
         pass.inputs.read(pass.economics_path("accelerator load"),
                          pass.facts.economics.accelerator_load);
}

void add_accelerator_power(BillPass& pass) {
  const Device& device = pass.cluster.device;
  const auto limit = pass.inputs.read(pass.accelerator_path("power limit"), device.power_limit);
  const auto idle = pass.inputs.read(pass.accelerator_path("idle power"), device.idle_power);
  const auto training = training_power(pass);
  const auto idle_share = pass.inputs.read(pass.economics_path("power in time that does not count"),
                                           pass.facts.economics.idle_share);
  const double good = pass.question.goodput;
  // Between idle and training: waiting, and work that is done twice.
  const auto other = idle * (1 - idle_share.value) + training * idle_share.value;
  const auto spares =
      static_cast<double>(pass.bill.bought - pass.bill.accelerators + pass.question.spares);
  const double working = static_cast<double>(pass.bill.bought) - spares;
  PowerLine line{
      .item = "accelerators", .part = device.name, .count = static_cast<double>(pass.bill.bought)};
  line.peak = limit * line.count;
  line.mean = (training * good + other * (1 - good)) * working + idle * spares;
  line.basis = pass.inputs.take_basis();
  add_line(pass, std::move(line));
}

void add_rated(BillPass& pass, PowerLine line, const BillSum<Watts>& rated,
               const BillSum<double>& load) {
  line.peak = rated * line.count;
  line.mean = line.peak * load;
  line.basis = pass.inputs.take_basis();
  add_line(pass, std::move(line));
}

BillSum<Watts> sum_of(const std::vector<PowerLine>& lines, BillSum<Watts> PowerLine::*which) {
  BillSum<Watts> sum{};
  for (const PowerLine& line : lines) sum = sum + line.*which;
  return sum;
}

void add_capital_line(BillPass& pass, CapitalLine line, const BillSum<Dollars>& price) {
  line.amount = price * line.count;
  line.basis = pass.inputs.take_basis();
  pass.bill.capital.push_back(std::move(line));
}

void add_machines(BillPass& pass) {
  const Device& device = pass.cluster.device;
  const auto bought = static_cast<double>(pass.bill.bought);
  add_capital_line(
      pass,
      {.group = CapitalGroup::accelerators,
       .item = device.price_includes.host ? "accelerators with their racks" : "accelerators",
       .part = device.name,
       .count = bought},
      pass.inputs.read(pass.accelerator_path("price"), device.price));
  if (!device.price_includes.host)
    add_capital_line(pass,
                     {.group = CapitalGroup::hosts,
                      .item = "hosts",
                      .part = pass.cluster.host.name,
                      .count = pass.hosts()},
                     pass.inputs.read(pass.host_path("price"), pass.cluster.host.price));
  for (const BillLine& line : pass.network.lines) {
    if (held(device.price_includes, line) || held(pass.cluster.host.includes, line) ||
        is_backplane(line))
      continue;
    add_capital_line(pass,
                     {.group = capital_group(line),
                      .item = line.item,
                      .part = line.part,
                      .count = static_cast<double>(line.count)},
                     pass.inputs.read(line_path(line, "price"), line.price));
  }
}

Sourced<double> as_number(const Sourced<std::int64_t>& count) {
  const auto number = [](const std::optional<std::int64_t>& v) {
    return v ? std::optional(static_cast<double>(*v)) : std::nullopt;
  };
  return {.value = number(count.value),
          .low = number(count.low),
          .high = number(count.high),
          .evidence = count.evidence,
          .source = count.source,
          .reason = count.reason};
}

// Racks are sold whole with the domain that they hold. Smaller domains share one: as many as it has
// trays for (of a host whose rack is not known, one) and as the site's racks have power for.
double racks_of_domains(BillPass& pass, Watts machines, Watts limit) {
  const std::int64_t domain = pass.cluster.fabric.scale_up.domain;
  const double trays =
      pass.inputs
          .read(pass.host_path("hosts of a rack"), as_number(pass.cluster.host.hosts_per_rack))
          .value;
  const double holds = std::floor(trays * static_cast<double>(pass.cluster.gpus_per_host) /
                                  static_cast<double>(domain));
  const double domains = static_cast<double>(pass.bill.bought) / static_cast<double>(domain);
  if (holds < 2) return domains;
  const double powered = std::floor(limit.si() / (machines.si() / domains));
  return domains / std::clamp(powered, 1.0, holds);
}

}  // namespace

double storage_units(BillPass& pass) {
  const StorageProduct& product = pass.facts.storage;
  const BillQuestion& q = pass.question;
  double units = 0;
  const auto need = [&](double wanted, double one) {
    // The last bit of a quotient must not buy a unit.
    if (wanted > 0 && one > 0) units = std::max(units, std::ceil(wanted / one * (1 - 1e-9)));
  };
  double held = q.storage_bytes.si();
  if (q.checkpoint > Bytes{}) {
    const Economics& economics = pass.facts.economics;
    const auto kept =
        pass.inputs.read(pass.economics_path("checkpoints kept"), economics.checkpoints_kept);
    const auto token = pass.inputs.read(pass.economics_path("data set bytes per token"),
                                        economics.dataset_bytes_per_token);
    held += kept.value * q.checkpoint.si() + token.value.si() * q.tokens;
  }
  need(held, pass.inputs.read(pass.storage_path("capacity"), product.capacity).value.si());
  need(q.storage_read.si(),
       pass.inputs.read(pass.storage_path("read"), product.read_bandwidth).value.si());
  need(q.storage_write.si(),
       pass.inputs.read(pass.storage_path("write"), product.write_bandwidth).value.si());
  return units;
}

void add_power(BillPass& pass) {
  const Economics& economics = pass.facts.economics;
  const Host& host = pass.cluster.host;
  add_accelerator_power(pass);
  const auto host_load = pass.inputs.read(pass.economics_path("host load"), economics.host_load);
  add_rated(pass, {.item = "hosts", .part = host.name, .count = pass.hosts()},
            pass.inputs.read(pass.host_path("power"), host.power), host_load);
  const auto network_load =
      pass.inputs.read(pass.economics_path("network load"), economics.network_load);
  for (const BillLine& line : pass.network.lines) {
    // What a NIC or a board's switch draws may stand in the host's power.
    if (held(host.includes, line) || is_backplane(line)) continue;
    if (line.power.known() && line.power.get() == Watts(0)) continue;
    add_rated(pass,
              {.item = line.item, .part = line.part, .count = static_cast<double>(line.count)},
              pass.inputs.read(line_path(line, "power"), line.power), network_load);
  }
  if (!pass.rents())
    add_rated(pass, {.item = "front-end network", .part = "", .count = pass.hosts()},
              pass.inputs.read(pass.economics_path("front-end power"), economics.frontend_power),
              network_load);
  const double units = storage_units(pass);
  const StorageProduct& storage = pass.facts.storage;
  if (units > 0 && !pass.rents())
    add_rated(pass, {.item = "storage", .part = storage.name, .count = units},
              pass.inputs.read(pass.storage_path("power"), storage.power), exactly(1.0));
  Bill& bill = pass.bill;
  const auto efficiency = pass.inputs.read(pass.site_path("power usage effectiveness"),
                                           pass.facts.site.power_usage_effectiveness);
  bill.it_peak = sum_of(bill.power, &PowerLine::peak);
  bill.it_mean = sum_of(bill.power, &PowerLine::mean);
  bill.facility_peak = bill.it_peak * efficiency;
  bill.facility_mean = bill.it_mean * efficiency;
}

void add_floor(BillPass& pass) {
  Bill& bill = pass.bill;
  const DataCentre& site = pass.facts.site;
  const auto limit = pass.inputs.read(pass.site_path("rack power"), site.rack_power);
  bill.floor.racks.unknown = joined(bill.it_peak.unknown, limit.unknown);
  if (limit.value > Watts(0)) {
    const Watts machines = bill.power[0].peak.value + bill.power[1].peak.value;
    // The last bit of a quotient must not take a rack.
    const auto whole = [](double racks) { return std::ceil(racks * (1 - 1e-9)); };
    double racks = whole((bill.it_peak.value - machines) / limit.value);
    if (BillPass::whole_racks_of(pass.cluster)) {
      racks += whole(racks_of_domains(pass, machines, limit.value));
    } else {
      const double per_rack = std::floor(limit.value / machines * pass.hosts());
      racks += whole(pass.hosts() / std::max(1.0, per_rack));
    }
    bill.floor.racks.value = bill.floor.racks.low = bill.floor.racks.high = racks;
  }
  bill.floor.white_square_metres =
      bill.floor.racks *
      pass.inputs.read(pass.site_path("area of a rack"), site.rack_square_metres);
  bill.floor.building_square_metres =
      pass.inputs.read(pass.site_path("area of a megawatt"), site.megawatt_square_metres) *
      (bill.it_peak.value.si() / 1e6);
  bill.floor.building_square_metres.unknown = bill.it_peak.unknown;
}

void add_capital(BillPass& pass) {
  Bill& bill = pass.bill;
  const Economics& economics = pass.facts.economics;
  pass.inputs.take_basis();
  if (pass.rents()) return;
  add_machines(pass);
  add_capital_line(
      pass,
      {.group = CapitalGroup::front_end,
       .item = "storage and management network of the hosts",
       .part = "",
       .count = pass.hosts()},
      pass.inputs.read(pass.economics_path("front-end price"), economics.frontend_price));
  const StorageProduct& storage = pass.facts.storage;
  if (const double units = storage_units(pass); units > 0)
    add_capital_line(
        pass,
        {.group = CapitalGroup::storage, .item = "storage", .part = storage.name, .count = units},
        pass.inputs.read(pass.storage_path("price"), storage.price));
  BillSum<Dollars> equipment{};
  for (const CapitalLine& line : bill.capital) equipment = equipment + line.amount;
  add_capital_line(
      pass,
      {.group = CapitalGroup::installation,
       .item = "freight, cabling and tests",
       .part = "",
       .count = 1},
      equipment * pass.inputs.read(pass.economics_path("installation"), economics.installation));
  if (pass.question.facility == Facility::build)
    add_capital_line(pass,
                     {.group = CapitalGroup::building,
                      .item = "building, power and cooling",
                      .part = pass.facts.site.name,
                      .count = 1},
                     bill.it_peak * pass.inputs.read(pass.site_path("building price"),
                                                     pass.facts.site.building_price));
  for (const CapitalLine& line : bill.capital) {
    auto& group = bill.capital_by_group[static_cast<std::size_t>(line.group)];
    group = group + line.amount;
    bill.capital_total = bill.capital_total + line.amount;
  }
}

}  // namespace orrery
