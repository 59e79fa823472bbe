// SPDX-License-Identifier: Apache-2.0
// Tests that a cluster of one job loses what the closed form of goodput says.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/engine/cluster/fleet_run.h"
#include "sim/outcome/fleet/job_months.h"
#include "sim/outcome/months/job.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

class FixedPrice final : public PlacePrices {
 public:
  explicit FixedPrice(std::int64_t ps) : ps_(ps) {}
  PlacePrice price(std::uint16_t, const Grants&) override { return {.step_ps = ps_}; }

 private:
  std::int64_t ps_;
};

struct Mean {
  double mean = 0, error = 0;
  explicit Mean(const std::vector<double>& values) {
    for (const double v : values) mean += v / static_cast<double>(values.size());
    for (const double v : values) error += (v - mean) * (v - mean);
    error = std::sqrt(error / static_cast<double>(values.size() - 1) /
                      static_cast<double>(values.size()));
  }
};

// Both know the same failures, saves, recoveries, repairs and spares.
TEST_CASE("law: one job on its cluster loses what goodput says", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (const std::int64_t gpus : {1024, 16'384}) {
    for (const std::int64_t spare_hosts : {1, 20}) {
      const ReliabilityProfile profile = load_reliability("llama3-h100");
      const std::int64_t step_ps = 5'000'000'000'000;
      const GoodputCase months = goodput_case(load_cluster("dgx-h100", gpus), profile,
                                              {.step = seconds(5),
                                               .tokens_per_step = 1.6e7,
                                               .checkpoint = bytes(5.67e12),
                                               .spare_gpus = 8 * spare_hosts});
      const Goodput closed = goodput(months);

      const Cluster cluster = load_cluster("dgx-h100", gpus + 8 * spare_hosts);
      FixedPrice price(std::llround(static_cast<double>(step_ps) * slower_steps(months)));
      FleetQuestion question;
      question.shape = slot_shape(cluster.fabric, cluster.gpus, 8);
      question.works = {JobWork{}, month_work(months, step_ps)};
      question.works[1].priced = true;
      question.prices = &price;
      question.breakdowns = breakdown_plan(cluster, profile);
      question.breakdowns.spare_hosts = static_cast<std::int32_t>(spare_hosts);
      ClusterJobs list;
      list.jobs = {{.length = {INT64_C(86'400'000'000) * 60}, .gpus = static_cast<int>(gpus)}};
      list.jobs[0].limit = list.jobs[0].length;
      list.jobs[0].work = 1;
      std::vector<double> useful, saving, lost, starting;
      for (std::uint64_t run = 0; run < 24; ++run) {
        question.seed = seed + run;
        const FleetRecord record = run_fleet(list, question);
        const double all =
            1e6 * static_cast<double>(record.last_end.us) * static_cast<double>(gpus);
        useful.push_back(static_cast<double>(record.use.work.useful) / all);
        saving.push_back(static_cast<double>(record.use.work.saving) / all);
        lost.push_back(static_cast<double>(record.use.work.lost) / all);
        starting.push_back(static_cast<double>(record.use.work.starting) / all);
      }
      const auto share = [&](std::initializer_list<TimeShare> parts) {
        double sum = 0;
        for (const TimeShare part : parts) sum += share_of(closed.shares, part);
        return sum;
      };
      const auto check = [&](const char* what, const Mean& found, double said) {
        INFO(gpus << " GPUs, " << spare_hosts << " spare: " << what << " " << found.mean << " +- "
                  << found.error << ", goodput " << said);
        CHECK(std::abs(found.mean - said) < 3 * found.error + 0.002);
      };
      check("effective", Mean(useful), closed.effective);
      check("saves", Mean(saving), share({TimeShare::checkpoint, TimeShare::checkpoint_traffic}));
      check("lost", Mean(lost), share({TimeShare::lost_work, TimeShare::silent_corruption}));
      // Planned stops count as starting here. Those of a job that waits are none here.
      if (spare_hosts == 1) continue;
      check("starting", Mean(starting),
            share({TimeShare::detection, TimeShare::diagnosis, TimeShare::outage,
                   TimeShare::restart, TimeShare::warm_up, TimeShare::maintenance}));
    }
  }
}

}  // namespace
}  // namespace orrery
