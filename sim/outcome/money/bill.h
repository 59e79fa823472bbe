// SPDX-License-Identifier: Apache-2.0
// Bills a cluster and a job on it: capital, running costs, power, energy and carbon.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/price/economics.h"
#include "sim/base/text/enum_names.h"
#include "sim/engine/cluster.h"
#include "sim/outcome/money/network_bill.h"

namespace orrery {

enum class Ownership : std::uint8_t { buy, rent };
inline constexpr auto ownership_text = enum_names<Ownership>({"buy", "rent"});
enum class Facility : std::uint8_t { build, colocate };  // who pays for shell, power and cooling
inline constexpr auto facility_text = enum_names<Facility>({"build", "colocate"});

// What is known of the place and the market. Values, so that a plan can change any of them.
struct BillFacts {
  DataCentre site;
  Economics economics;
  std::optional<CloudPrices> cloud;  // of the cluster's accelerator
  StorageProduct storage;
  std::vector<Optic> optics;  // as load_optics() gives them
};

// Empty names: the site is that of the cluster itself (its efficiency and electricity price, all
// else "unspecified"), economics is "standard", storage "parallel-flash", or "cloud-lustre" for
// what is rented. A named site replaces the cluster's. Errors name what is unknown.
struct BillNames {
  static constexpr const char* no_site = "unspecified";
  std::string site, economics, storage;
};
BillFacts load_bill_facts(const Cluster& cluster, const BillNames& names,
                          Ownership ownership = Ownership::buy);

struct BillQuestion {
  std::int64_t accelerators = 0;  // of the job and its spares; whole hosts and racks are bought
  std::int64_t spares = 0;        // of them, kept idle
  Sourced<Watts> accelerator_power = {};  // mean of one in training; absent: a share of its limit
  Sourced<Seconds> duration = {};         // of the job by the wall clock; absent: no costs of a job
  double goodput = 1;                     // share of it in which steps run that count
  double tokens = 0;                      // trained; 0: nothing is known per token
  std::optional<double> utilisation = {};  // share of owned time that has work; absent: facts'
  Ownership ownership = Ownership::buy;
  Facility facility = Facility::build;
  Contract contract = Contract::on_demand;  // where machines are rented
  Bytes storage_bytes;
  BytesPerSecond storage_read, storage_write;
  // Of a job: storage holds besides as many of these as the facts say are kept, and the data set
  // of all tokens. 0: neither.
  Bytes checkpoint;
  bool ranges = true;  // false: low and high are the values; a hundred times faster
};

// A prediction's mean power as an input of a bill. Its range, 8% to both sides, is how far 90% of
// the nodes lie whose power was logged (bill.cpp names them).
Sourced<Watts> predicted_power(Watts mean_power_per_accelerator);

// What an amount rests on: the least sure evidence, and the ids of the sources, of the inputs that
// it reads itself (not of the amounts that it is a share of).
struct Basis {
  Evidence evidence = Evidence::measured;
  std::vector<std::string> sources;
};

enum class CapitalGroup : std::uint8_t {
  accelerators,
  hosts,
  scale_up,
  switches,
  nics,
  transceivers,
  cables,
  front_end,
  storage,
  installation,
  building,
};
inline constexpr int capital_group_count = enumerator_count<CapitalGroup>();
std::string_view to_text(CapitalGroup);

enum class RunningGroup : std::uint8_t {
  electricity,
  colocation,
  staff,
  maintenance,
  insurance,
  water,
  interest,
};
inline constexpr int running_group_count = enumerator_count<RunningGroup>();
std::string_view to_text(RunningGroup);

// Equal things bought. `price` is of one; what has none says why, and its amount is unknown.
struct CapitalLine {
  CapitalGroup group = CapitalGroup::accelerators;
  std::string item;  // what it is there for
  std::string part;  // name in the catalogue, or empty
  double count = 0;
  BillSum<Dollars> amount;
  Basis basis;
};
struct RunningLine {
  RunningGroup group = RunningGroup::electricity;
  std::string item;
  BillSum<DollarsPerSecond> rate;  // on the average of a year
  Basis basis;
};
struct PowerLine {
  std::string item, part;
  double count = 0;
  BillSum<Watts> peak;  // that must be provided for: limits and rated powers
  BillSum<Watts> mean;  // while the job runs, restarts and idle spares among it
  Basis basis;
};

// Floor that the machines need. Racks of accelerators, network and storage.
struct FloorBill {
  BillSum<double> racks, white_square_metres, building_square_metres;
};

struct JobLine {
  std::string item;
  BillSum<Dollars> amount;
};
// The share of one job. Ratios of tokens are those of the job: tokens per dollar is also tokens per
// second over dollars per second, tokens per joule tokens per second over watts of the facility.
struct JobBill {
  Seconds duration;
  BillSum<Joules> accelerator_energy, it_energy, facility_energy;
  BillSum<Carbon> operational_carbon;  // of the grid at the site, location based
  BillSum<Carbon> embodied_carbon;     // of the accelerators alone, by their share of life
  BillSum<double> water_cubic_metres;
  std::vector<JobLine> lines;
  BillSum<Dollars> cost;
  // What a reservation binds, whole terms of it, whether the job uses them or not; 0: no term. The
  // job's cost holds its own time alone: the rest is taken as used by others or sold again.
  Seconds committed;
  BillSum<Dollars> commitment;
  double tokens_per_second = 0;                 // by the wall clock; 0: tokens are not known
  BillSum<Dollars> dollars_per_million_tokens;  // these three are 0 without tokens
  BillSum<double> tokens_per_dollar, tokens_per_joule;
  // Tokens per second over dollars of capital and mean watts of the facility. 0 for what is rented.
  BillSum<double> tokens_per_second_per_dollar_per_watt;
};

// An input that is not a fact, with what it does to the job's cost (to the yearly cost of owning
// where there is no job): relative changes at its low and its high end.
struct BillDriver {
  std::string path;                     // "accelerator h100-sxm: price"
  double value = 0, low = 0, high = 0;  // SI
  double effect_low = 0, effect_high = 0;
  Evidence evidence = Evidence::assumed;
  std::string source;
};

// How ranges are made: every input with a range is moved alone to both its ends, and what that does
// to an amount joins in quadrature, each side for itself. Inputs are so taken as independent; an
// input that many lines share moves all of them together. Nothing unknown counts as 0 in silence:
// amounts name what they leave out, and are then the known part.
struct Bill {
  Ownership ownership = Ownership::buy;
  std::int64_t accelerators = 0;     // asked for
  std::int64_t bought = 0;           // in whole hosts, racks where racks are sold whole
  std::vector<CapitalLine> capital;  // empty where machines are rented
  std::vector<RunningLine> running;  // the same
  std::vector<PowerLine> power;      // accelerators first, then hosts, then the rest
  std::array<BillSum<Dollars>, capital_group_count> capital_by_group;
  BillSum<Dollars> capital_total;
  BillSum<DollarsPerSecond> depreciation;  // straight line, less the residual value
  BillSum<DollarsPerSecond> running_total;
  BillSum<Watts> it_peak, it_mean, facility_peak, facility_mean;
  FloorBill floor;
  const BillSum<Dollars>& capital_of(CapitalGroup group) const {
    return capital_by_group[static_cast<std::size_t>(group)];
  }
  // Depreciation and running costs of one accelerator asked for, per second that has work; 0 where
  // machines are rented.
  BillSum<DollarsPerSecond> owning_per_accelerator;
  BillSum<DollarsPerSecond> renting_per_accelerator;  // at the question's contract
  std::optional<JobBill> job;
  std::vector<BillDriver> drivers;  // the strongest first; empty without ranges
  std::vector<std::string> notes;   // what was left out or assumed, as sentences
};

// Errors for numbers that make no sense and for fabrics that cannot join so many accelerators. The
// time does not depend on the number of accelerators.
Bill bill(const Cluster& cluster, const BillFacts& facts, const BillQuestion& question);

// The first of an amount's unknown parts without which it says nothing: of the accelerators, of a
// cloud's price, of the site or of the owner's assumptions. A switch, a NIC or a host without a
// published figure leaves a known part that is nearly all of a machine. Empty: there is none.
std::string first_essential(const std::vector<std::string>& unknown);

// How many accelerators a limit allows: the most, in whole hosts or racks, whose bill stays within
// it. `count` is by the values, `low` and `high` by the ends of the amount's range. Of the question
// all but the accelerators is used; its spares stay the same share, a job's duration stays. Of an
// amount the known part is held against the limit, as a plan's verdicts hold it; an Error where
// that is no amount (first_essential).
struct AffordableCount {
  std::int64_t count = 0, low = 0, high = 0;  // 0: not even one host or rack
  bool fabric_limit = false;                  // the limit allows more than the fabric joins
};
enum class PowerLimit : std::uint8_t { facility_peak, facility_mean, it_peak };
AffordableCount accelerators_for_power(const Cluster& cluster, const BillFacts& facts,
                                       const BillQuestion& question, Watts limit,
                                       PowerLimit kind = PowerLimit::facility_peak);
enum class MoneyLimit : std::uint8_t { capital, job };
AffordableCount accelerators_for_money(const Cluster& cluster, const BillFacts& facts,
                                       const BillQuestion& question, Dollars limit,
                                       MoneyLimit kind = MoneyLimit::capital);
AffordableCount accelerators_for_racks(const Cluster& cluster, const BillFacts& facts,
                                       const BillQuestion& question, double racks);
AffordableCount accelerators_for_floor(const Cluster& cluster, const BillFacts& facts,
                                       const BillQuestion& question, double white_square_metres);

}  // namespace orrery
