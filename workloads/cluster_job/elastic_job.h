// SPDX-License-Identifier: Apache-2.0
// Knows jobs whose number of accelerators may change while they train, and how fast they are then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/units/fleet_time.h"

namespace orrery {

// Steps to the target at one batch size: that falls as the batch grows, but not in proportion.
struct BatchSteps {
  std::int64_t batch = 1;
  std::int64_t steps = 1;
};

// A measured step of an application, of `micro` passes: all but the last one without a reduction.
struct PlacedStep {
  std::int32_t gpus = 1, nodes = 1;
  std::int64_t batch = 1, micro = 1;
  std::int64_t pass_ps = 1;  // the pass with the reduction
  std::int64_t sync_ps = 0;  // of this, what the reduction adds
};

// How an application of a cluster runs: a step = (pass - sync) * micro + sync.
class ElasticApplication {
 public:
  // Error, with `file`: no samples, none on one node, a batch without steps, figures out of order.
  ElasticApplication(std::string name, std::vector<BatchSteps> batches,
                     std::vector<PlacedStep> samples, const std::string& file);

  const std::string& name() const { return name_; }
  // Batch sizes that a free choice is made of, ascending: the measured ones, and three between
  // each two.
  const std::vector<std::int64_t>& batches() const { return choices_; }
  // From the smallest to the largest measured batch; between two, a straight line of logarithms.
  bool has_batch(std::int64_t batch) const;
  std::int64_t steps_to_target(std::int64_t batch) const;
  // GPUs of which each has its share of the batch: no more than were measured, and no share below
  // the smallest measured one.
  std::int32_t most_gpus(std::int64_t batch) const;
  // Picoseconds of a step on so many GPUs of so many nodes. Between measured placements the times
  // of a pass and of its reduction are read on straight lines: first over the share of the batch,
  // then over GPUs, among placements that, as this one, lie on one node or on several. Whether
  // there are two nodes or more makes no difference. Below the fewest GPUs that were measured
  // there, those stand in.
  std::int64_t step_ps(std::int32_t gpus, std::int32_t nodes, std::int64_t batch) const;

 private:
  struct LocalPass {
    std::int64_t local = 1;  // share of the batch in a pass
    double compute_ps = 0, sync_ps = 0;
  };
  struct MeasuredPlace {
    std::int32_t gpus = 1;
    std::vector<LocalPass> passes;  // by share
  };
  using MeasuredPlaces = std::vector<MeasuredPlace>;  // by GPUs
  static void add(MeasuredPlaces& places, const PlacedStep& sample);
  static LocalPass pass_at(const MeasuredPlace& place, std::int64_t local);
  static LocalPass pass_at(const MeasuredPlaces& places, std::int32_t gpus, std::int64_t local);
  void check_steps(const std::string& file) const;

  std::string name_;
  std::vector<BatchSteps> measured_;  // by batch
  std::vector<std::int64_t> choices_;
  MeasuredPlaces inside_, across_;  // one node, several
  std::int64_t least_local_ = INT64_MAX, most_local_ = 1;
  std::int32_t most_gpus_ = 1;
};

// A training job. Where `least` = `most` = `gpus` and the batch is fixed it is a gang as any other.
struct ElasticJob {
  FleetTime submit;
  std::uint32_t application = 0;         // its place in the list of them
  std::int32_t gpus = 1;                 // that it asks for, for policies that do not size
  std::int32_t least = 1, most = 1;      // between which others size it
  std::vector<std::int32_t> sizes = {};  // which of these, ascending; empty: all
  std::int64_t batch = 1;                // asked for
  bool free_batch = false;               // it may take any batch of the application
  std::string id = {};
};

// What a share of a job's work is counted in: a step at batch b is worth elastic_work / steps(b),
// rounded up, so that a fixed batch takes exactly its steps.
inline constexpr std::int64_t elastic_work = INT64_C(1'000'000'000'000'000);
std::int64_t step_worth(const ElasticApplication& application, std::int64_t batch);

// Columns application, gpus, nodes, batch_size, micro_steps, pass_s, sync_s, steps_to_target;
// others are not looked at. Errors name line and column.
std::vector<ElasticApplication> read_elastic_speeds(const std::filesystem::path& file);

// Columns job, submit_s, application, gpus, batch_size, and perhaps workload: rows of another one
// are left out. In order of submission, those of one instant as they stand. Jobs are rigid: least =
// most = gpus. Errors name line and column: also an id twice, an application or a batch that was
// not measured, more GPUs than were, no jobs.
std::vector<ElasticJob> read_elastic_jobs(const std::filesystem::path& file,
                                          const std::string& workload,
                                          const std::vector<ElasticApplication>& applications);

// Lets all be sized from 1 GPU to what their batch allows, `most` at most; with `free_batch` they
// choose it as well. Jobs that ask for one GPU stay as they are: those were tuned to run on one.
void free_sizes(std::vector<ElasticJob>& jobs, const std::vector<ElasticApplication>& applications,
                std::int32_t most, bool free_batch);

}  // namespace orrery
