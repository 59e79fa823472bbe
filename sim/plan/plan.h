// SPDX-License-Identifier: Apache-2.0
// Makes plans: machines and counts that compete for a training run, and the best.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/advisor.h"
#include "sim/advise/counts_to_try.h"
#include "sim/base/tasks/tasks.h"
#include "sim/base/text/enum_names.h"
#include "sim/explain/what_if.h"
#include "sim/launch/flags.h"
#include "sim/outcome/money/bill.h"
#include "sim/outcome/months/job.h"
#include "sim/outcome/months/remedies.h"

namespace orrery {

enum class PlanObjective : std::uint8_t { time, cost, energy, carbon, gpus };
inline constexpr auto plan_objective_text =
    enum_names<PlanObjective>({"time", "cost", "energy", "carbon", "gpus"});
std::string_view to_text(PlanObjective);  // "least time", "least cost", ...

// What is to be reached. Limits of 0 do not exist.
struct PlanGoal {
  double tokens = 0;
  Flop flop;         // that the tokens were counted from; 0: tokens were given
  Seconds allowed;   // from the start to the deadline
  Dollars budget;    // for the job: its share of owning, or its rent
  Dollars capital;   // for everything that is bought; no limit of what is rented
  Watts power;       // that the facility may be provided with
  double racks = 0;  // floor that the machines may take: racks, white space
  double square_metres = 0;
  PlanObjective objective = PlanObjective::time;
};

// How machines are run and paid.
struct PlanTerms {
  BillFacts facts;
  Ownership ownership = Ownership::buy;
  Facility facility = Facility::build;
  Contract contract = Contract::on_demand;
  ReliabilityProfile reliability;
  std::optional<std::int64_t> spare_gpus;  // absent: usual_spare_probability
  std::string remedy;                      // against failures (remedy_names); empty: none
  std::vector<StorageTier> storage = {StorageTier{}};
  Seconds wait;  // from the start until the machines can be had
};

// One combination of a question's values.
struct PlanChoice {
  std::vector<std::string> values;  // texts, one of each name in Plan::varied
  Question question;                // its cluster is changed as `edit` says already
  WhatIf edit;                      // what is hypothetical, for texts
  bool any_count = false;           // the cluster's count is to be found
  PlanGoal goal;
  PlanTerms terms;
  std::string step_key;  // of choices with equal ones, steps on as many accelerators are equal
};
struct Plan {
  std::vector<std::string> varied;  // names of what has several values
  std::vector<PlanChoice> choices;
  double memory_reserve = usual_memory_reserve;
  std::uint64_t seed = 1;  // of the draws that make the range of what counts (goodput_range)
};

// The fastest step that was found on a count of accelerators.
struct PlanStep {
  bool fits = false;
  bool runs = true;     // the stack runs on the machine, in the precision
  std::string why_not;  // sentence, where nothing fits
  std::string lacks;    // the same in a word or two: "memory", "sizes that divide"; may be empty
  Candidate best;
  Stack stack;                   // of its precision
  double mfu = 0;                // of the dense BF16 peak
  std::int64_t domain_gpus = 0;  // accelerators that it uses of a scale-up domain
  std::int64_t batches = 0;      // of parts that a search of all layouts split, ended or not
};

// One limit against what a point needs.
struct PlanVerdict {
  std::string name;                // "deadline", "budget", "capital", "power", "racks", "floor"
  double allowed = 0, needed = 0;  // SI
  bool met() const { return needed <= allowed; }
  bool of_size() const;  // of the machine, whatever runs on it: all but the deadline and the budget
};

// One machine of one size, with everything that the job costs on it.
struct PlanPoint {
  std::size_t choice = 0;
  std::int64_t gpus = 0;    // that compute
  std::int64_t bought = 0;  // with spares and what racks hold besides, in whole hosts or racks
  PlanStep step;
  double tokens_per_second = 0;  // undisturbed
  double effective = 0;          // share of the time that counts
  Seconds duration;              // by the wall clock
  Seconds finish;                // from the start: duration and wait
  std::int64_t spares = 0;
  // Of the job, and of the machines. Absent prices leave costs at their known part and are named.
  double cost = 0, capital = 0, running_per_year = 0, dollars_per_million_tokens = 0;  // USD
  std::vector<std::string> unknown_costs, unknown_power, unknown_carbon;
  bool cost_known() const;                      // all that it says nothing without
  bool stalls() const;                          // failures leave under a hundredth of the time
  bool ends() const;                            // it does not stall, and takes less than a century
  double energy = 0, carbon = 0;                // J of the facility, kg
  double facility_peak = 0, facility_mean = 0;  // W
  double racks = 0, square_metres = 0;
  std::string site_misfit;  // why racks of the site cannot hold it (rack_misfit); empty: they can
  std::vector<PlanVerdict> verdicts;
  bool feasible = false;  // it fits and meets every limit
  std::string binding;    // of a count that was searched: what keeps it from being better
  // Of a count that was searched: the most accelerators, in whole hosts, that the limits of size
  // and the wiring allow with the spares of so many, and which of them ends there ("power",
  // "wiring"). No name: none does below plan_most_gpus.
  std::int64_t allowed = 0;
  std::string allowed_by;
  bool largest_tried = false;   // of a count that was searched: plan_most_gpus ended the search
  bool fully_searched = false;  // all layouts, not only those of the sweep (see plan_step)
};

// Work on layouts beyond those of a sweep, where nobody says otherwise: about 20 s of two cores.
inline constexpr std::int64_t usual_full_batches = 400;

// What an objective minimises; infinite where nothing fits, and where it is not known. Of an amount
// with unknown parts the known one.
double plan_score(const PlanPoint& point, PlanObjective objective);
// Names of what is missing in the objective's amount.
const std::vector<std::string>& plan_unknown(const PlanPoint& point, PlanObjective objective);
// The order of points by an objective, least first. What is unknown never wins "least": points of
// which the whole amount is known come first, whatever the known parts of others are.
struct PlanRank {
  bool unknown = false;
  double score = 0;
  auto operator<=>(const PlanRank&) const = default;
};
PlanRank plan_rank(const PlanPoint& point, PlanObjective objective);
// Whether two points are one machine under two names: as many accelerators, and time, money,
// energy, power and racks within same_speed (sim/outcome/noise.h). Not for points that do not fit
// or never end.
bool same_machine(const PlanPoint& a, const PlanPoint& b);
// How far the point misses its limits: the largest of needed over allowed. 1 or less: not at all.
double plan_excess(const PlanPoint& point);
// Whether a misses fewer limits than b, or as many by less.
bool misses_less(const PlanPoint& a, const PlanPoint& b);

struct PlanResult {
  // Of each choice in order. Of one whose count is searched, the best that meets all limits, else
  // the one that misses them least.
  std::vector<PlanPoint> points;
  std::vector<std::vector<PlanPoint>> tried;  // counts that were looked at, by count; else empty
  std::optional<std::size_t> best;  // in `points`: by objective, feasible, first of equals
  std::vector<PlanPoint> front;     // least time against least cost over all points, fastest first
  // Of each part of the search (machines whose steps are the same, then what follows them all) the
  // places that it passed before Ctrl-C (StopPoint); none: it came to its end.
  std::vector<std::optional<std::int64_t>> stopped_after;
  bool stopped_early() const;  // points without an answer say so in why_not
};

// Whether a point meets all limits (`fits`), also where none is the least by what is known; why
// none does, and whether any runs at all.
Verdict verdict_of(const PlanResult& result);
// The point that is told in full: the best, or the one that misses the limits least.
std::optional<std::size_t> detailed_point(const PlanResult& result);

struct PlanOptions {
  int threads = 0;  // 0: all cores
  // Batches of parts (SearchOptions::most_batches) for all layouts of the best points, together; 0:
  // the sweep's layouts only. Some tens of seconds on a few cores.
  std::int64_t full_batches = usual_full_batches;
  // PlanResult::stopped_after of the plan that is repeated; empty: all. Error where this plan has
  // other parts.
  std::vector<std::optional<std::int64_t>> stop_after;
  std::function<void(std::int64_t done, std::int64_t all)> progress;  // from any thread
  // Where processes share the searches: those of machines whose steps are the same are one task,
  // and what follows them all another. After a part of the tasks the result says nothing.
  Tasks* tasks = nullptr;
};

// The same result on any number of threads. Equal steps are searched once.
PlanResult plan(const Plan& question, const PlanOptions& options);

// What the plan would gain from one change of the machine, its software or how it is run.
struct PlanLever {
  std::string name, note;
  double faster = 0;             // steps per second, less one; 0 for remedies of failures
  double days = 0, dollars = 0;  // saved; dollars without what the change costs
};
// A job of which failures take nearly all of the time.
struct PlanStall {
  Seconds between_failures;
  Seconds recovery;  // of one failure, detection among it
  Seconds interval;  // between the saves of the tier that saves most often; infinite: it never pays
  struct Way {
    std::string remedy, how;
    double effective = 0;
    Seconds duration;
  };
  // Remedies that alone make it end, the weakest first; where none does all of them together, and
  // where that does not either, nothing.
  std::vector<Way> ways;
};
// Nothing where the point does not fit, or does not stall.
std::optional<PlanStall> plan_stall(const Plan& question, const PlanPoint& point);

// What would bring a job that misses its deadline to it.
struct PlanNeed {
  Seconds allowed;
  Seconds undisturbed;  // of the steps alone: what is left if nothing fails and nothing waits
  struct Way {
    double effective = 0;       // share of the time that counts
    double faster = 0;          // steps per second over those of now
    GoodputRequirement losses;  // what alone brings the present share to this one; factors
  };
  std::vector<Way> ways;  // the present share first, then higher ones
  double all_levers = 0;  // steps per second over those of now with all machine levers at once
};
// Everything about one point.
struct PlanDetail {
  Scenario scenario;  // the point as simulate takes it
  Prediction prediction;
  LaunchFlags flags;
  std::string why;
  GoodputCase goodput_case;
  Goodput goodput;
  GoodputRange range;
  Seconds low, high;  // of the wall-clock time: of the step's range and of goodput's, together
  Bill bill;
  std::vector<PlanLever> levers;    // of the machine
  std::vector<PlanLever> remedies;  // against failures
  std::optional<PlanNeed> need;     // where it misses a deadline
};
PlanDetail plan_detail(const Plan& question, const PlanPoint& point, const ModelError* error);

}  // namespace orrery
