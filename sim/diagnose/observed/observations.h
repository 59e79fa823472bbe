// SPDX-License-Identifier: Apache-2.0
// Knows how logs, profiles and counters of a run become readings of symptoms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/diagnose/state/symptoms.h"
#include "sim/engine/scenario.h"
#include "sim/observe/collective/nccl_tests.h"
#include "sim/observe/counters/counters.h"
#include "sim/observe/log/run_log.h"
#include "sim/observe/profile/profile.h"

namespace orrery {

// All that is known of one run; none of it is needed.
struct Observations {
  std::optional<double> step_s;  // as the user says
  std::optional<observe::RunLog> log;
  std::vector<observe::Profile> profiles;  // a rank each
  std::vector<observe::CounterLog> counters;
  std::vector<observe::CollectiveTests> tests;  // of the links that the run uses
  std::vector<std::string> notes;               // about files that were left out
  // As the user says, else as the log does.
  std::optional<double> told_step() const;
  // The log's, where the user says otherwise: by more than steps of the log differ.
  std::optional<double> overruled_step() const;
  // Else the longest profiled step, which the profiler itself lengthens.
  std::optional<double> usual_step() const;
};

// The power that the device's maker lets it draw.
std::optional<Watts> makers_limit(const Scenario& scenario);
// Readings of the run, against what is predicted of it without a fault.
Seen seen_of(const Observations& run, const RunState& healthy, const Scenario& scenario);
// The ranks that were seen one by one, by their numbers in the run: at least one. Counters tell no
// more devices apart than the run has GPUs.
std::vector<int> ranks_seen(const Observations& run, std::size_t gpus);

// Parts of seen_of().
void read_log(const observe::RunLog& log, const RunState& healthy, Readings& readings);
void read_profiles(const std::vector<observe::Profile>& profiles, std::optional<double> step_s,
                   const RunState& healthy, const Scenario& scenario, Readings& readings);
// Times of large collectives over those that the links allow.
void read_links(const std::vector<observe::Profile>& profiles, const Scenario& scenario,
                Readings& readings);
// Of the larger of a call's two buffers: a gather's result, a scatter's input.
double bytes_of(const observe::CollectiveRecord& record);
// Of each rank, the threads of kernels whose number follows the batch; in blocks.
std::vector<double> threads_of(const std::vector<observe::Profile>& profiles);
// Whether each says when its host waits for the data loader; true where there is none.
bool name_loader(const std::vector<observe::Profile>& profiles);
// Whether each has steps enough to tell which products lost slices of time.
bool tell_slices_of_products(const std::vector<observe::Profile>& profiles);
// Of the time that ranks wait for one another, the share in which they do nothing else; `judged`
// where no rank waits, and near it where waits are short.
double share_of_wait_exposed(const std::vector<observe::Profile>& profiles,
                             std::optional<double> step_s, const RunState& healthy);
// Seconds of a step in sends and receives between stages of a pipeline, on the rank whose
// communication shows least; nothing where no profile tells them from others.
std::optional<double> exchanged_of(const std::vector<observe::Profile>& profiles,
                                   const Scenario& scenario);
// Whether something runs through whole steps beside the run's own kernels.
bool has_kernel_through_steps(const std::vector<observe::Profile>& profiles);
// Whether hosts run a collective of their own for most of the devices'.
bool has_collectives_on_hosts(const std::vector<observe::Profile>& profiles);
// Whether kernels of attention or of products are mostly those of an older chip than the device.
bool has_older_kernels(const std::vector<observe::Profile>& profiles, observe::KernelClass what,
                       const Scenario& scenario);
// Whether no collective runs beside compute where the prediction has some do so, on devices that
// hosts keep at work: where these are late, or wait, collectives find nothing to run beside.
bool has_collectives_alone(const std::vector<observe::Profile>& profiles,
                           std::optional<double> step_s, const RunState& healthy);
struct NamedTrouble {
  // "port errors", "NVLink errors", "ECC errors", or one of symptoms.h; empty: of no cause
  std::string trouble;
  std::string sentence;  // where and how much
};
// What counters name, series by series; of a run whose NICs have this bandwidth.
std::vector<NamedTrouble> troubles_of(const std::vector<observe::CounterLog>& counters,
                                      BytesPerSecond nic);
void read_counters_of(const std::vector<observe::CounterLog>& counters, std::size_t gpus,
                      const RunState& healthy, Readings& readings);

}  // namespace orrery
