// SPDX-License-Identifier: Apache-2.0
// Reads one point of a question to schedule: a machine, a policy, what breaks, its jobs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/engine/fleet/fleet_question.h"
#include "sim/engine/prices/place_prices.h"
#include "sim/outcome/fleet/energy_bill.h"
#include "sim/question/losses/thresholds_entry.h"
#include "sim/question/rules/policy_entry.h"
#include "sim/question/schedule/cap_curves.h"
#include "sim/question/schedule/fleet_jobs.h"

namespace orrery {

// Accelerators that run something draw 305 W (Kalos) and 278 W (Seren) of 400 W in the mean: those
// above 100 W in Acme's distributions of August 2023 (Hu et al., NSDI 2024; InternLM/AcmeTrace).
inline constexpr double recorded_power_share = 0.73;

struct PointCase {
  Cluster cluster;
  SlotShape shape;
  std::string policy, place;
  std::optional<PolicyPreset> preset;  // of the catalogue
  std::string reliability;             // title of the profile; empty: nothing fails
  std::shared_ptr<const FleetJobs> jobs;
  std::shared_ptr<const EnergyPrices> prices;
  std::shared_ptr<const std::vector<WorkCaps>> caps;  // where a limit moves clocks
  std::optional<AskedThresholds> thresholds;          // likewise, in steps
  double scatter_cost = 1;                            // of recorded jobs
  std::optional<StoreRates> store;                    // that all jobs share
  DeviceShare sharing = DeviceShare::time_slices;     // of GPUs, where it matters
  FleetQuestion question;                             // without seed, prices and quotas
};

// Reads jobs that several points share once, and prices their steps once.
class PointReader {
 public:
  // All must outlive it; `question` has the jobs.
  PointReader(Catalogues& catalogues, int threads, const JsonValue& question)
      : catalogues_(catalogues), threads_(threads), question_(question) {}
  // `settings` of one point, with or without the jobs. Errors: names that are not known, a cluster
  // of no accelerators, what means nothing beside the rest.
  PointCase read(const JsonValue& settings);
  PlacePrices& prices(const PointCase& point);
  std::size_t priced_classes() const;

 private:
  std::shared_ptr<const FleetJobs> jobs_of(const JsonValue& settings, const FleetJobsCase& with);
  void read_caps(const JsonValue& settings, PointCase& out);

  Catalogues& catalogues_;
  int threads_;
  const JsonValue& question_;
  std::map<std::string, std::shared_ptr<const FleetJobs>> jobs_;  // by what they depend on
  // By jobs, what caps do to recorded ones, and whether they stand for clocks.
  std::map<std::tuple<const FleetJobs*, CapResponse, bool>,
           std::shared_ptr<const std::vector<WorkCaps>>>
      caps_;
  ServedReplicas replicas_;
  // By jobs, and by accelerators and the cost of scattered jobs.
  std::map<std::pair<const FleetJobs*, std::string>, std::unique_ptr<StepPlacePrices>> prices_;
};

// Quotas by the queues of a list; empty where no queue has one.
std::vector<QueueQuota> read_quotas(const JsonValue& settings, const ClusterJobs& list);

}  // namespace orrery
