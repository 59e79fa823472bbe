// SPDX-License-Identifier: Apache-2.0
// Makes random applications and elastic jobs for tests.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/random.h"
#include "sim/engine/elastic/elastic_run.h"
#include "sim/engine/elastic/round_policy.h"

namespace orrery {

inline const std::vector<RoundRule>& all_round_rules() {
  static const std::vector<RoundRule> rules = {
      RoundRule::las, RoundRule::optimus, RoundRule::max_min, RoundRule::fair, RoundRule::goodput};
  return rules;
}

// Batches of 32, 64, 128; steps that fall less than they grow; 1 to 16 GPUs, four a node.
inline ElasticApplication random_application(RandomStream& random, const std::string& name) {
  std::vector<BatchSteps> batches;
  std::int64_t steps = static_cast<std::int64_t>(200 + random.below(2000));
  for (const std::int64_t batch : {32, 64, 128}) {
    batches.push_back({batch, steps});
    steps = static_cast<std::int64_t>(static_cast<double>(steps) * (0.5 + 0.4 * random.uniform()));
  }
  const double fixed_s = 0.02 * random.uniform(), sample_s = 0.002 + 0.02 * random.uniform();
  const double inside_s = 0.02 * random.uniform(), across_s = inside_s + 0.3 * random.uniform();
  std::vector<PlacedStep> samples;
  for (const std::int32_t gpus : {1, 2, 4, 8, 16})
    for (const std::int64_t batch : {32, 64, 128}) {
      const double compute = fixed_s + sample_s * static_cast<double>(batch / gpus);
      const double sync = gpus == 1 ? 0 : gpus <= 4 ? inside_s : across_s;
      samples.push_back({gpus, (gpus + 3) / 4, batch, 1, std::llround(1e12 * (compute + sync)),
                         std::llround(1e12 * sync)});
    }
  return {name, batches, samples, "test"};
}

inline std::vector<ElasticApplication> random_applications(std::uint64_t seed, int count) {
  RandomStream random(seed, 7);
  std::vector<ElasticApplication> out;
  for (int i = 0; i < count; ++i)
    out.push_back(random_application(random, "app " + std::to_string(i)));
  return out;
}

// Jobs that ask for 1 to 16 GPUs, in ranges around that or (`rigid`) none.
inline std::vector<ElasticJob> random_elastic_jobs(
    std::uint64_t seed, std::size_t count, const std::vector<ElasticApplication>& applications,
    bool rigid = false) {
  RandomStream random(seed, 8);
  std::vector<ElasticJob> out;
  FleetTime at;
  for (std::size_t i = 0; i < count; ++i) {
    at.us += static_cast<std::int64_t>(random.below(90)) * 1'000'000;
    ElasticJob job{.submit = at, .id = std::to_string(i)};
    job.application = static_cast<std::uint32_t>(random.below(applications.size()));
    job.batch = std::int64_t{32} << random.below(3);
    job.gpus = static_cast<std::int32_t>(1 + random.below(random.below(4) == 0 ? 16 : 4));
    job.least = job.most = job.gpus;
    if (!rigid && random.below(5) != 0) {
      job.least = static_cast<std::int32_t>(1 + random.below(static_cast<std::uint64_t>(job.gpus)));
      job.most = static_cast<std::int32_t>(
          job.gpus + static_cast<std::int32_t>(random.below(17 - static_cast<unsigned>(job.gpus))));
      job.free_batch = random.below(2) == 0;
    }
    out.push_back(job);
  }
  return out;
}

// All that a run says, as text.
inline std::string record_text(const ElasticRecord& record) {
  std::string out;
  const auto add = [&](GpuPicos value) {
    out += std::to_string(static_cast<std::int64_t>(value / 1'000'000'000)) + "." +
           std::to_string(static_cast<std::int64_t>(value % 1'000'000'000)) + " ";
  };
  for (const ElasticJobRecord& job : record.jobs)
    for (const GpuPicos value :
         {GpuPicos{job.start.us}, GpuPicos{job.end.us}, GpuPicos{job.restarts}, job.held})
      add(value);
  const ElasticGpuTime& time = record.gpu_time;
  for (const GpuPicos value :
       {time.all, time.useful, time.slowed, time.restart, time.lost, time.idle})
    add(value);
  return out;
}

}  // namespace orrery
