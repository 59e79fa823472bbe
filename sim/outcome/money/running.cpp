// SPDX-License-Identifier: Apache-2.0
// Bills owning a cluster by the year and renting it, and a job's share of both.
#include <fmt/format.h>

#include <cmath>

#include "sim/outcome/money/inputs.h"

namespace orrery {
namespace {

template <class Q>
void add(BillSum<Q>& sum, const BillSum<Q>& more) {
  sum = sum + more;
}

void add_rate(BillPass& pass, RunningGroup group, std::string item,
              const BillSum<DollarsPerSecond>& rate) {
  pass.bill.running.push_back(
      {.group = group, .item = std::move(item), .rate = rate, .basis = pass.inputs.take_basis()});
}

BillSum<double> in_megawatts(const BillSum<Watts>& power) {
  BillSum<double> megawatts = exactly(power.value.si() / 1e6);
  megawatts.unknown = power.unknown;
  return megawatts;
}

// The facility on the average of a year: without work, accelerators idle.
BillSum<Watts> yearly_power(BillPass& pass) {
  const double busy = pass.utilisation().value;
  const Bill& bill = pass.bill;
  if (busy >= 1) return bill.facility_mean;
  const auto efficiency = pass.inputs.read(pass.site_path("power usage effectiveness"),
                                           pass.facts.site.power_usage_effectiveness);
  const auto idle =
      pass.inputs.read(pass.accelerator_path("idle power"), pass.cluster.device.idle_power) *
      static_cast<double>(bill.bought);
  BillSum<Watts> other{};
  for (std::size_t i = 1; i < bill.power.size(); ++i) add(other, bill.power[i].mean);
  return bill.facility_mean * busy + (idle + other) * efficiency * (1 - busy);
}

bool is_machine(CapitalGroup group) {
  return group == CapitalGroup::accelerators || group == CapitalGroup::hosts ||
         group == CapitalGroup::scale_up || group == CapitalGroup::installation;
}

BillSum<Seconds> life_of(BillPass& pass, CapitalGroup group) {
  const Economics& economics = pass.facts.economics;
  if (is_machine(group))
    return pass.inputs.read(pass.economics_path("accelerator life"), economics.accelerator_life);
  if (group == CapitalGroup::storage)
    return pass.inputs.read(pass.economics_path("storage life"), economics.storage_life);
  if (group == CapitalGroup::building)
    return pass.inputs.read(pass.economics_path("building life"), economics.building_life);
  return pass.inputs.read(pass.economics_path("network life"), economics.network_life);
}

void add_depreciation(BillPass& pass) {
  const auto residual =
      pass.inputs.read(pass.economics_path("residual value"), pass.facts.economics.residual_value);
  for (const CapitalLine& line : pass.bill.capital) {
    const bool resold =
        line.group == CapitalGroup::accelerators || line.group == CapitalGroup::hosts;
    const double used = resold ? 1 - residual.value : 1;
    add(pass.bill.depreciation, line.amount * used / life_of(pass, line.group));
  }
}

void add_people(BillPass& pass) {
  const DataCentre& site = pass.facts.site;
  const auto wage = pass.inputs.read(pass.site_path("cost of a person"), site.staff_cost);
  if (pass.question.facility == Facility::build) {
    const auto people =
        in_megawatts(pass.bill.it_peak) *
        pass.inputs.read(pass.site_path("people per megawatt"), site.staff_per_megawatt);
    add_rate(pass, RunningGroup::staff, "people of the building", people * wage);
  }
  const auto operators =
      pass.inputs.read(pass.economics_path("operators per thousand accelerators"),
                       pass.facts.economics.operators_per_thousand_accelerators);
  add_rate(pass, RunningGroup::staff, "people of the systems",
           operators * (static_cast<double>(pass.bill.bought) / 1000) *
               pass.inputs.read(pass.site_path("cost of a person"), site.staff_cost));
}

void add_upkeep(BillPass& pass) {
  const Economics& economics = pass.facts.economics;
  const Bill& bill = pass.bill;
  BillSum<Dollars> equipment{};
  for (const CapitalLine& line : bill.capital)
    if (line.group != CapitalGroup::building && line.group != CapitalGroup::installation)
      add(equipment, line.amount);
  add_rate(pass, RunningGroup::maintenance, "equipment",
           equipment * pass.inputs.read(pass.economics_path("equipment maintenance"),
                                        economics.equipment_maintenance));
  if (pass.question.facility == Facility::build)
    add_rate(pass, RunningGroup::maintenance, "building",
             bill.capital_of(CapitalGroup::building) *
                 pass.inputs.read(pass.economics_path("building maintenance"),
                                  economics.building_maintenance));
  add_rate(pass, RunningGroup::insurance, "insurance and taxes",
           bill.capital_total * pass.inputs.read(pass.economics_path("insurance and taxes"),
                                                 economics.insurance_and_taxes));
  // Capital is paid back evenly over its life: on average half of it is owed.
  add_rate(pass, RunningGroup::interest, "interest on half of the capital",
           bill.capital_total * 0.5 *
               pass.inputs.read(pass.site_path("cost of money"), pass.facts.site.cost_of_money));
}

BillSum<double> litres_per_joule(BillPass& pass) {
  return pass.inputs.read(pass.site_path("water per kilowatt-hour"),
                          pass.facts.site.water_litres_per_kilowatt_hour) *
         (1 / joules_per_kilowatt_hour);
}

BillSum<DollarsPerSecond> water_rate(BillPass& pass) {
  constexpr double litres_per_cubic_metre = 1000;
  const auto price = pass.inputs.read(pass.site_path("price of water"),
                                      pass.facts.site.water_dollars_per_cubic_metre);
  const auto litres = litres_per_joule(pass) * pass.bill.it_mean.value.si();
  return litres * price * exactly(DollarsPerSecond(1 / litres_per_cubic_metre));
}

// Of what is rented: the price by the hour, and storage beside it.
BillSum<DollarsPerSecond> rent_of_one(BillPass& pass) {
  const BillQuestion& q = pass.question;
  const std::string path =
      fmt::format("cloud {}: {}", pass.cluster.device.name, to_text(q.contract));
  if (q.contract == Contract::on_demand) return pass.inputs.read(path, pass.cluster.device.rental);
  if (pass.facts.cloud) return pass.inputs.read(path, pass.facts.cloud->of(q.contract));
  BillSum<DollarsPerSecond> none{};
  none.unknown.push_back(path);
  return none;
}

double years_of(Contract contract) {
  if (contract == Contract::reserved_1y) return 1;
  return contract == Contract::reserved_3y ? 3 : 0;
}

void add_job_lines(BillPass& pass, JobBill& job) {
  const Bill& bill = pass.bill;
  const BillSum<Seconds> time = pass.inputs.read("duration of the job", pass.question.duration);
  const auto used = pass.rents() ? time : time / pass.utilisation();
  if (pass.rents()) {
    job.lines.push_back(
        {.item = fmt::format("accelerators, {}", to_text(pass.question.contract)),
         .amount = bill.renting_per_accelerator * static_cast<double>(bill.bought) * time});
    if (const double years = years_of(pass.question.contract); years > 0) {
      const double term = years * seconds_per_year;
      job.committed = Seconds(std::ceil(time.value.si() / term * (1 - 1e-9)) * term);
      job.commitment =
          bill.renting_per_accelerator * static_cast<double>(bill.bought) * exactly(job.committed);
    }
    const StorageProduct& storage = pass.facts.storage;
    if (const double units = storage_units(pass); units > 0)
      job.lines.push_back(
          {.item = "storage",
           .amount = pass.inputs.read(pass.storage_path("rental"), storage.rental) * units * time});
  } else {
    job.lines.push_back({.item = "depreciation", .amount = bill.depreciation * used});
    for (int g = 0; g < running_group_count; ++g) {
      const auto group = static_cast<RunningGroup>(g);
      BillSum<DollarsPerSecond> rate{};
      bool any = false;
      for (const RunningLine& line : bill.running) {
        if (line.group != group) continue;
        any = true;
        add(rate, line.rate);
      }
      if (any) job.lines.push_back({.item = std::string(to_text(group)), .amount = rate * used});
    }
  }
  for (const JobLine& line : job.lines) add(job.cost, line.amount);
}

void add_job_energy(BillPass& pass, JobBill& job) {
  const Bill& bill = pass.bill;
  const DataCentre& site = pass.facts.site;
  const BillSum<Seconds> time = pass.inputs.read("duration of the job", pass.question.duration);
  job.accelerator_energy = bill.power[0].mean * time;
  job.it_energy = bill.it_mean * time;
  job.facility_energy = bill.facility_mean * time;
  job.operational_carbon =
      job.facility_energy *
      pass.inputs.read(pass.site_path("carbon intensity"), site.carbon_intensity);
  const auto life = pass.inputs.read(pass.economics_path("accelerator life"),
                                     pass.facts.economics.accelerator_life);
  job.embodied_carbon = pass.inputs.read(pass.accelerator_path("embodied carbon"),
                                         pass.cluster.device.embodied_carbon) *
                        static_cast<double>(bill.bought) * (time / life);
  constexpr double litres_per_cubic_metre = 1000;
  job.water_cubic_metres =
      litres_per_joule(pass) * (job.it_energy.value.si() / litres_per_cubic_metre);
}

void add_job_ratios(BillPass& pass, JobBill& job) {
  const double tokens = pass.question.tokens;
  if (tokens <= 0) return;
  const Bill& bill = pass.bill;
  const double time = pass.inputs.read("duration of the job", pass.question.duration).value.si();
  job.tokens_per_second = tokens / time;
  job.dollars_per_million_tokens = job.cost * (1e6 / tokens);
  const auto plain = [](const auto& sum) {
    BillSum<double> number = exactly(in_si(sum.value));
    number.unknown = sum.unknown;
    return number;
  };
  job.tokens_per_dollar = exactly(tokens) / plain(job.cost);
  job.tokens_per_joule = exactly(tokens) / plain(job.facility_energy);
  if (!pass.rents())
    job.tokens_per_second_per_dollar_per_watt =
        exactly(job.tokens_per_second) / plain(bill.capital_total) / plain(bill.facility_mean);
}

}  // namespace

void add_running(BillPass& pass) {
  Bill& bill = pass.bill;
  pass.inputs.take_basis();
  bill.renting_per_accelerator = rent_of_one(pass);
  pass.inputs.take_basis();
  if (pass.rents()) return;
  add_depreciation(pass);
  pass.inputs.take_basis();
  const DataCentre& site = pass.facts.site;
  add_rate(pass, RunningGroup::electricity, "electricity",
           yearly_power(pass) *
               pass.inputs.read(pass.site_path("electricity price"), site.electricity_price));
  if (pass.question.facility == Facility::colocate)
    add_rate(
        pass, RunningGroup::colocation, "space with power and cooling",
        bill.it_peak * pass.inputs.read(pass.site_path("colocation price"), site.colocation_price));
  add_people(pass);
  add_upkeep(pass);
  if (pass.question.facility == Facility::build)
    add_rate(pass, RunningGroup::water, "water", water_rate(pass));
  for (const RunningLine& line : bill.running) add(bill.running_total, line.rate);
  bill.owning_per_accelerator = (bill.depreciation + bill.running_total) *
                                (1 / static_cast<double>(bill.accelerators)) / pass.utilisation();
}

void add_job(BillPass& pass) {
  if (!pass.question.duration.known()) return;
  JobBill job;
  job.duration = pass.question.duration.get();
  add_job_energy(pass, job);
  add_job_lines(pass, job);
  add_job_ratios(pass, job);
  pass.bill.job = std::move(job);
}

}  // namespace orrery
