// SPDX-License-Identifier: Apache-2.0
// Knows what a bill must do: add up, count each part once, name unknowns, scale, and refuse
// nonsense.
#include "sim/outcome/money/bill.h"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "hw_models/catalog.h"

using namespace orrery;

namespace {

constexpr double day = 86400;

Sourced<Seconds> days(double n) {
  return {.value = Seconds(n * day), .evidence = Evidence::measured};
}

BillQuestion question_for(std::int64_t accelerators) {
  return {.accelerators = accelerators, .duration = days(30), .goodput = 0.9, .tokens = 1e12};
}

struct Owned {
  Cluster cluster;
  BillFacts facts;
  explicit Owned(const std::string& name, const BillNames& names = {},
                 Ownership ownership = Ownership::buy)
      : cluster(load_cluster(name, 8)), facts(load_bill_facts(cluster, names, ownership)) {}
  Bill bill(const BillQuestion& question) const { return orrery::bill(cluster, facts, question); }
};

template <class Q>
double si(const Q& q) {
  if constexpr (std::is_same_v<Q, double>)
    return q;
  else
    return q.si();
}

template <class Q>
void check_range(const BillSum<Q>& sum) {
  CHECK(si(sum.low) <= si(sum.value) * (1 + 1e-12));
  CHECK(si(sum.high) >= si(sum.value) * (1 - 1e-12));
  CHECK(si(sum.low) >= 0);
}

bool names(const std::vector<std::string>& unknown, const std::string& what) {
  return std::any_of(unknown.begin(), unknown.end(),
                     [&](const std::string& name) { return name.find(what) != std::string::npos; });
}

const PowerLine* find_power(const Bill& bill, const std::string& part) {
  for (const PowerLine& line : bill.power)
    if (line.part == part) return &line;
  return nullptr;
}

}  // namespace

TEST_CASE("sites, storage, owners' assumptions and cloud prices are read, with known sources") {
  const auto sources = load_sources();
  for (const std::string& name : catalog_names("hw_models/catalog/sites")) {
    INFO(name);
    const DataCentre site = load_site(name);
    CHECK(site.name == name);
    REQUIRE(site.power_usage_effectiveness.known());
    REQUIRE(site.electricity_price.known());
    REQUIRE(site.carbon_intensity.known());
    CHECK(sources.contains(site.power_usage_effectiveness.source));
    CHECK(sources.contains(site.electricity_price.source));
    CHECK(sources.contains(site.carbon_intensity.source));
    // From hydro power to Singapore's; a slip of a unit is far outside.
    CHECK(site.electricity_price.get().si() * 3.6e6 > 0.02);
    CHECK(site.electricity_price.get().si() * 3.6e6 < 0.4);
    CHECK(site.carbon_intensity.get().si() * 3.6e6 < 1);
  }
  for (const std::string& name : catalog_names("hw_models/catalog/storage"))
    CHECK(load_storage(name).name == name);
  for (const std::string& name : catalog_names("hw_models/catalog/economics"))
    CHECK(load_economics(name).name == name);
  const auto accelerators = catalog_names("hw_models/catalog/accelerators");
  for (const std::string& name : catalog_names("hw_models/catalog/cloud")) {
    INFO(name);
    const auto prices = find_cloud_prices(name);
    REQUIRE(prices);
    CHECK(prices->name == name);
    CHECK(std::binary_search(accelerators.begin(), accelerators.end(), name));
    const auto& on_demand = load_device(name).rental;
    double last = on_demand.known() ? on_demand.get().si() : 1e9;
    for (const Contract contract : {Contract::reserved_1y, Contract::reserved_3y, Contract::spot}) {
      const auto& price = prices->of(contract);
      if (!price.known()) continue;
      CHECK(price.get().si() <= last);
      last = price.get().si();
    }
  }
  CHECK(!find_cloud_prices("feynman"));
}

TEST_CASE("the bill of every cluster adds up, and ranges hold their values") {
  for (const std::string& name : cluster_names()) {
    INFO(name);
    const Owned owned(name);
    BillQuestion question = question_for(owned.cluster.gpus_per_host);
    question.storage_bytes = Bytes(1e15);
    const Bill bill = owned.bill(question);
    double capital = 0, groups = 0, running = 0, peak = 0, mean = 0, job = 0;
    for (const CapitalLine& line : bill.capital) capital += line.amount.value.si();
    for (const auto& group : bill.capital_by_group) groups += group.value.si();
    for (const RunningLine& line : bill.running) running += line.rate.value.si();
    for (const PowerLine& line : bill.power) {
      peak += line.peak.value.si();
      mean += line.mean.value.si();
      check_range(line.peak);
      check_range(line.mean);
    }
    REQUIRE(bill.job);
    for (const JobLine& line : bill.job->lines) job += line.amount.value.si();
    CHECK(bill.capital_total.value.si() == Approx(capital));
    CHECK(groups == Approx(capital));
    CHECK(bill.running_total.value.si() == Approx(running));
    CHECK(bill.it_peak.value.si() == Approx(peak));
    CHECK(bill.it_mean.value.si() == Approx(mean));
    CHECK(bill.job->cost.value.si() == Approx(job));
    check_range(bill.capital_total);
    check_range(bill.running_total);
    check_range(bill.facility_peak);
    check_range(bill.owning_per_accelerator);
    check_range(bill.job->cost);
    check_range(bill.job->facility_energy);
    CHECK(bill.bought >= bill.accelerators);
    // What has no price is unknown by name, never 0 in silence.
    const Device& device = owned.cluster.device;
    CHECK(names(bill.capital_total.unknown, device.name + ": price") == !device.price.known());
    CHECK(names(bill.job->cost.unknown, device.name + ": price") == !device.price.known());
  }
}

TEST_CASE("a rack that is sold whole is paid once and bought whole") {
  const Owned owned("gb200-nvl72");
  const Bill bill = owned.bill(question_for(8));
  CHECK(bill.bought == 72);
  CHECK(bill.capital_of(CapitalGroup::accelerators).value.si() ==
        Approx(72 * owned.cluster.device.price.get().si()));
  for (const CapitalGroup group : {CapitalGroup::hosts, CapitalGroup::scale_up, CapitalGroup::nics})
    CHECK(bill.capital_of(group).value.si() == 0);
  CHECK(bill.capital_total.unknown.empty());
  // Power is another matter: the chip's limit holds neither tray nor switches.
  REQUIRE(find_power(bill, "gb200-tray") != nullptr);
  REQUIRE(find_power(bill, "nvswitch-gen4") != nullptr);
  CHECK(find_power(bill, "nvswitch-gen4")->count == 18);
  CHECK(bill.floor.racks.value >= 1);
  CHECK(names(bill.notes, "not counted again"));
  Owned parts = owned;
  parts.cluster.device.price_includes = {};
  const Bill apart = parts.bill(question_for(8));
  CHECK(apart.bought == 8);
  CHECK(apart.capital_of(CapitalGroup::hosts).value.si() > 0);
}

TEST_CASE("small domains share racks and have the switch chips that their ports need") {
  const auto racks = [](std::int64_t domain, double kilowatts) {
    Owned owned("gb200-nvl72");
    owned.cluster.fabric.scale_up.domain = domain;
    owned.facts.site.rack_power.value = Watts(kilowatts * 1e3);
    BillQuestion question = question_for(1080);
    question.ranges = false;
    const Bill bill = owned.bill(question);
    // Without the racks of the network, which draw what is not accelerators and hosts.
    const double rest =
        (bill.it_peak.value - bill.power[0].peak.value - bill.power[1].peak.value).si();
    return bill.floor.racks.value - std::ceil(rest / (kilowatts * 1e3));
  };
  // A rack of 72 is what is sold, whatever the site.
  CHECK(racks(72, 60) == 15);
  CHECK(racks(72, 140) == 15);
  // Eight draw 2 x 1.9 kW of hosts and 8 x 1.2 kW: 13.4 kW. 60 kW hold four of 135 such domains,
  // 20 kW one, 140 kW would hold ten, for nine of which a rack has trays.
  CHECK(racks(8, 60) == 34);
  CHECK(racks(8, 20) == 135);
  CHECK(racks(8, 140) == 15);
  CHECK(racks(36, 140) == 15);
  CHECK(racks(36, 60) == 30);
}

TEST_CASE("how many trays a rack has is its host's fact, not every maker's") {
  const auto racks = [](std::optional<std::int64_t> trays) {
    Owned owned("gb200-nvl72");
    owned.cluster.fabric.scale_up.domain = 8;
    owned.facts.site.rack_power.value = Watts(500e3);
    if (owned.cluster.host.hosts_per_rack.value != trays)
      owned.cluster.host.hosts_per_rack = {.value = trays, .evidence = Evidence::specified};
    BillQuestion question = question_for(1440);
    question.ranges = false;
    return owned.bill(question).floor.racks.value;
  };
  CHECK(load_host("gb200-tray").hosts_per_rack.get() == 18);
  CHECK(load_host("rubin-ultra-tray").hosts_per_rack.get() == 36);
  CHECK_FALSE(load_host("dgx-h100").hosts_per_rack.known());
  // 180 domains of two trays: nine in a rack of 18, 18 in one of 36; a rack for each where nobody
  // says how many trays it has.
  CHECK(racks(18) - racks(36) == 10);
  CHECK(racks(std::nullopt) - racks(18) == 160);
}

TEST_CASE("a job's checkpoints and data are stored, and storage is on the bill") {
  for (const Ownership ownership : {Ownership::buy, Ownership::rent}) {
    const Owned owned("dgx-h100", {}, ownership);
    BillQuestion question = question_for(1024);
    question.ownership = ownership;
    question.ranges = false;
    const double none = owned.bill(question).job->cost.value.si();
    question.tokens = 1e12;
    question.checkpoint = Bytes(100e12);
    const Bill bill = owned.bill(question);
    CHECK(bill.job->cost.value.si() > none);
    // Ten checkpoints and 4 B a token: 1,004 TB, in units of 500 TB or of a tebibyte.
    const double units = ownership == Ownership::buy ? 3 : std::ceil(1004e12 / 1099511627776.0);
    if (ownership == Ownership::buy) {
      CHECK(find_power(bill, "parallel-flash")->count == units);
      CHECK(bill.capital_of(CapitalGroup::storage).value.si() ==
            Approx(units * owned.facts.storage.price.get().si()));
    } else {
      const auto& line = bill.job->lines.back();
      CHECK(line.item == "storage");
      CHECK(line.amount.value.si() ==
            Approx(units * owned.facts.storage.rental.get().si() * 30 * day));
    }
    CHECK(names(bill.notes, "10 checkpoints"));
    // Rates ask for more of them than bytes do.
    question.storage_write = BytesPerSecond(2e12);
    CHECK(owned.bill(question).job->cost.value > bill.job->cost.value);
  }
}

TEST_CASE("owned machines are idle for a part of their life, reservations bind for whole terms") {
  const Owned owned("dgx-h100");
  BillQuestion question = question_for(1024);
  const Bill usual = owned.bill(question);
  question.utilisation = 1;
  const Bill busy = owned.bill(question);
  CHECK(usual.job->cost.value.si() > 1.05 * busy.job->cost.value.si());
  CHECK(usual.job->cost.value.si() < 1.12 * busy.job->cost.value.si());
  CHECK(std::any_of(usual.drivers.begin(), usual.drivers.end(), [](const BillDriver& d) {
    return d.path == "economics standard: utilisation" && d.effect_low > 0 && d.effect_high < 0;
  }));
  CHECK(names(usual.notes, "90% of their life"));

  const Owned rented("dgx-h100", {}, Ownership::rent);
  BillQuestion term = question_for(1024);
  term.ownership = Ownership::rent;
  CHECK(rented.bill(term).job->committed == Seconds{});
  term.contract = Contract::reserved_1y;
  const Bill year = rented.bill(term);
  const double a_day = year.renting_per_accelerator.value.si() * 1024 * day;
  CHECK(year.job->commitment.value.si() == Approx(365.25 * a_day));
  CHECK(year.job->cost.value.si() == Approx(30 * a_day));
  CHECK(names(year.notes, "the contract commits 1024"));
  term.duration = days(400);
  CHECK(rented.bill(term).job->commitment.value.si() == Approx(2 * 365.25 * a_day));
}

TEST_CASE("what a host's power and price hold is not counted beside it") {
  const Owned owned("dgx-h100");
  const Bill bill = owned.bill(question_for(64));
  CHECK(find_power(bill, "connectx-7") == nullptr);
  CHECK(find_power(bill, "nvswitch-gen3") == nullptr);
  CHECK(bill.capital_of(CapitalGroup::nics).value.si() == 0);
  CHECK(bill.capital_total.unknown.empty());
  Owned apart = owned;
  apart.cluster.host.includes = {};
  const Bill more = apart.bill(question_for(64));
  CHECK(find_power(more, "connectx-7") != nullptr);
  CHECK(find_power(more, "nvswitch-gen3") != nullptr);
  CHECK(more.capital_of(CapitalGroup::nics).value.si() > 0);
  CHECK(more.it_peak.value.si() > bill.it_peak.value.si());
}

TEST_CASE("a named site replaces the cluster's, an unnamed one takes it") {
  const Owned own("dgx-h100");
  CHECK(own.facts.site.power_usage_effectiveness.get() ==
        own.cluster.site.power_usage_effectiveness.get());
  CHECK(own.facts.site.electricity_price.get().si() ==
        own.cluster.site.electricity_per_watt.get().si());
  const Owned norway("dgx-h100", {.site = "norway"});
  const Bill here = own.bill(question_for(64)), there = norway.bill(question_for(64));
  CHECK(there.job->operational_carbon.value.si() < 0.2 * here.job->operational_carbon.value.si());
  CHECK(there.job->it_energy.value.si() == Approx(here.job->it_energy.value.si()));
  CHECK_THROWS_AS(load_bill_facts(own.cluster, {.site = "norwai"}), Error);
}

TEST_CASE("renting is the price by the hour, without capital") {
  const Owned rented("dgx-h100", {}, Ownership::rent);
  BillQuestion question = question_for(60);  // whole hosts: 64
  question.ownership = Ownership::rent;
  question.contract = Contract::reserved_1y;
  question.storage_bytes = Bytes(1e14);
  const Bill bill = rented.bill(question);
  CHECK(bill.capital.empty());
  CHECK(bill.running.empty());
  const double price = rented.facts.cloud->reserved_1y.get().si();
  CHECK(bill.job->lines[0].amount.value.si() == Approx(64 * price * 30 * day));
  REQUIRE(bill.job->lines.size() == 2);
  const double units = std::ceil(1e14 / rented.facts.storage.capacity.get().si());
  CHECK(bill.job->lines[1].amount.value.si() ==
        Approx(units * rented.facts.storage.rental.get().si() * 30 * day));
  CHECK(bill.job->facility_energy.value.si() > 0);
  // A contract that nobody offers is unknown.
  const Owned chips("tpu-v4", {}, Ownership::rent);
  question.contract = Contract::spot;
  CHECK(names(chips.bill(question).job->cost.unknown, "cloud tpu-v4"));
  // Storage that is only sold cannot be rented in silence.
  const Owned wrong("dgx-h100", {.storage = "parallel-flash"}, Ownership::rent);
  CHECK(names(wrong.bill(question).job->cost.unknown, "parallel-flash"));
}

TEST_CASE("laws of a bill over random questions") {
  const Owned owned("dgx-h100", {.site = "us-hyperscale"});
  const auto asked = [] {
    BillQuestion question = question_for(*rc::gen::inRange<std::int64_t>(1, 30'000));
    question.goodput = *rc::gen::inRange(10, 101) / 100.0;
    question.utilisation = *rc::gen::inRange(10, 101) / 100.0;
    question.spares = *rc::gen::inRange<std::int64_t>(0, question.accelerators);
    question.storage_bytes = Bytes(1e12 * *rc::gen::inRange(0, 100'000));
    question.facility = *rc::gen::element(Facility::build, Facility::colocate);
    question.ranges = false;
    return question;
  };
  rc::check("more is never cheaper, never draws less", [&] {
    BillQuestion question = asked();
    const Bill small = owned.bill(question);
    question.accelerators += *rc::gen::inRange(0, 10'000);
    const Bill large = owned.bill(question);
    RC_ASSERT(large.capital_total.value >= small.capital_total.value);
    RC_ASSERT(large.it_peak.value >= small.it_peak.value);
    RC_ASSERT(large.floor.racks.value >= small.floor.racks.value);
    RC_ASSERT(large.job->cost.value >= small.job->cost.value);
  });
  rc::check("twice the time costs and burns twice as much", [&] {
    BillQuestion question = asked();
    const Bill once = owned.bill(question);
    question.duration = days(60);
    const Bill twice = owned.bill(question);
    const auto doubled = [](double a, double b) { return std::abs(b / a - 2) < 1e-9; };
    RC_ASSERT(doubled(once.job->cost.value.si(), twice.job->cost.value.si()));
    RC_ASSERT(doubled(once.job->facility_energy.value.si(), twice.job->facility_energy.value.si()));
    RC_ASSERT(
        doubled(once.job->operational_carbon.value.si(), twice.job->operational_carbon.value.si()));
  });
  rc::check("power lies between idle and peak; efficiency and carbon follow it", [&] {
    const BillQuestion question = asked();
    const Bill bill = owned.bill(question);
    RC_ASSERT(bill.it_mean.value <= bill.it_peak.value);
    const double idle = owned.cluster.device.idle_power.get().si();
    RC_ASSERT(bill.power[0].mean.value.si() >=
              idle * static_cast<double>(bill.bought) * (1 - 1e-9));
    const double pue = owned.facts.site.power_usage_effectiveness.get();
    RC_ASSERT(std::abs(bill.facility_mean.value.si() / bill.it_mean.value.si() / pue - 1) < 1e-9);
    const double carbon = owned.facts.site.carbon_intensity.get().si();
    RC_ASSERT(std::abs(bill.job->operational_carbon.value.si() /
                           bill.job->facility_energy.value.si() / carbon -
                       1) < 1e-9);
  });
  rc::check("owned time without work makes the rest dearer", [&] {
    BillQuestion question = asked();
    const Bill part = owned.bill(question);
    question.utilisation = 1;
    const Bill whole = owned.bill(question);
    RC_ASSERT(part.owning_per_accelerator.value.si() >=
              whole.owning_per_accelerator.value.si() * (1 - 1e-9));
  });
}

TEST_CASE("ranges move every input, and drivers say what each does") {
  const Owned owned("dgx-h100", {.site = "us-hyperscale"});
  const BillQuestion question = question_for(1024);
  const Bill bill = owned.bill(question);
  BillQuestion plain = question;
  plain.ranges = false;
  const Bill middle = owned.bill(plain);
  CHECK(middle.capital_total.value.si() == bill.capital_total.value.si());
  CHECK(middle.capital_total.low.si() == middle.capital_total.value.si());
  CHECK(middle.drivers.empty());
  REQUIRE(bill.drivers.size() > 10);
  double above = 0, below = 0;
  for (std::size_t i = 0; i < bill.drivers.size(); ++i) {
    const BillDriver& driver = bill.drivers[i];
    const double up = std::max({driver.effect_low, driver.effect_high, 0.0});
    const double down = std::min({driver.effect_low, driver.effect_high, 0.0});
    above += up * up;
    below += down * down;
    CHECK(driver.low <= driver.value);
    CHECK(driver.high >= driver.value);
  }
  const double cost = bill.job->cost.value.si();
  CHECK(bill.job->cost.high.si() == Approx(cost * (1 + std::sqrt(above))));
  CHECK(bill.job->cost.low.si() == Approx(cost * (1 - std::sqrt(below))));
  // A driver's effect is what a bill with that price says.
  const auto price = std::find_if(bill.drivers.begin(), bill.drivers.end(), [](const auto& d) {
    return d.path == "accelerator h100-sxm: price";
  });
  REQUIRE(price != bill.drivers.end());
  Owned dearer = owned;
  dearer.cluster.device.price.value = dearer.cluster.device.price.high;
  CHECK(dearer.bill(plain).job->cost.value.si() == Approx(cost * (1 + price->effect_high)));
}

TEST_CASE("limits of power, money and floor are filled and not passed") {
  const Owned owned("dgx-h100", {.site = "us-hyperscale"});
  BillQuestion question = question_for(8);
  const auto of = [&](std::int64_t accelerators) {
    BillQuestion plain = question;
    plain.ranges = false;
    plain.accelerators = accelerators;
    return owned.bill(plain);
  };
  const AffordableCount power =
      accelerators_for_power(owned.cluster, owned.facts, question, Watts(10e6));
  CHECK(power.count % 8 == 0);
  CHECK(of(power.count).facility_peak.value.si() <= 10e6);
  CHECK(of(power.count + 8).facility_peak.value.si() > 10e6);
  CHECK(power.low <= power.count);
  CHECK(power.high >= power.count);
  const AffordableCount money =
      accelerators_for_money(owned.cluster, owned.facts, question, Dollars(100e6));
  CHECK(of(money.count).capital_total.value.si() <= 100e6);
  CHECK(of(money.count + 8).capital_total.value.si() > 100e6);
  CHECK(money.low < money.count);
  CHECK(money.high > money.count);
  const AffordableCount job =
      accelerators_for_money(owned.cluster, owned.facts, question, Dollars(1e6), MoneyLimit::job);
  CHECK(of(job.count).job->cost.value.si() <= 1e6);
  CHECK(of(job.count + 8).job->cost.value.si() > 1e6);
  const AffordableCount racks = accelerators_for_racks(owned.cluster, owned.facts, question, 100);
  CHECK(of(racks.count).floor.racks.value <= 100);
  CHECK(of(racks.count + 8).floor.racks.value > 100);
  CHECK(accelerators_for_floor(owned.cluster, owned.facts, question, 300).count > 0);
  CHECK(accelerators_for_power(owned.cluster, owned.facts, question, Watts(1)).count == 0);
  CHECK(accelerators_for_power(owned.cluster, owned.facts, question, Watts(1e9)).fabric_limit);
  CHECK_THROWS_AS(accelerators_for_power(owned.cluster, owned.facts, question, Watts(0)), Error);
  question.ownership = Ownership::rent;
  CHECK_THROWS_AS(accelerators_for_money(owned.cluster, owned.facts, question, Dollars(1e6)),
                  Error);
  // A price that nobody knows buys no number of accelerators.
  const Owned unsold("tpu-8t");
  CHECK_THROWS_AS(
      accelerators_for_money(unsold.cluster, unsold.facts, question_for(8), Dollars(1e9)), Error);
}

TEST_CASE("a million accelerators have a bill as short as that of a thousand") {
  const Owned owned("gb300-4plane", {.site = "us-liquid-ai"});
  const Bill large = owned.bill(question_for(1'048'576)), small = owned.bill(question_for(4608));
  CHECK(large.bought >= 1'048'576);
  CHECK(large.capital.size() <= small.capital.size() + 8);
  CHECK(large.power.size() <= small.power.size() + 8);
  CHECK(large.facility_peak.value.si() > 1.5e9);
  CHECK(large.facility_peak.value.si() < 4e9);
}

TEST_CASE("questions that make no sense are refused by name") {
  const Owned owned("dgx-h100");
  const auto refused = [&](auto change) {
    BillQuestion question = question_for(64);
    change(question);
    CHECK_THROWS_AS(owned.bill(question), Error);
  };
  refused([](BillQuestion& q) { q.accelerators = 0; });
  refused([](BillQuestion& q) { q.spares = 64; });
  refused([](BillQuestion& q) { q.spares = -1; });
  refused([](BillQuestion& q) { q.goodput = 0; });
  refused([](BillQuestion& q) { q.goodput = 1.01; });
  refused([](BillQuestion& q) { q.utilisation = -0.5; });
  refused([](BillQuestion& q) { q.duration = days(0); });
  refused([](BillQuestion& q) { q.tokens = -1; });
  refused([](BillQuestion& q) { q.storage_bytes = Bytes(-1); });
  refused([](BillQuestion& q) {
    q.accelerator_power = {.value = Watts(70000), .evidence = Evidence::measured};
  });
  refused([](BillQuestion& q) { q.accelerators = 1'000'000'000; });
  BillQuestion open = question_for(64);
  open.duration = {};
  CHECK(!owned.bill(open).job);

  const auto broken = [](const char* key, const char* value) {
    const JsonValue entry = load_catalog_entry("hw_models/catalog/sites", "site", "norway");
    SortedJson raw = entry.raw();
    raw[key] = SortedJson::parse(value);
    CHECK_THROWS_AS(read_site(JsonValue::from(raw, "site.json")), Error);
  };
  broken("power_usage_effectiveness",
         R"({"value": 0.9, "evidence": "specified", "source": "dcd-pue"})");
  broken("electricity_price",
         R"({"value": "-1 USD/kWh", "evidence": "specified", "source": "dcd-pue"})");
  broken("cost_of_money", R"({"value": "8 %", "evidence": "specified", "source": "dcd-pue"})");
  broken("rack_power", R"({"value": "0 kW", "evidence": "specified", "source": "dcd-pue"})");
}
