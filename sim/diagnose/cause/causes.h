// SPDX-License-Identifier: Apache-2.0
// Knows what can be wrong with a run: how often, how badly, what it does to a step, what to do.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/sourced.h"
#include "sim/diagnose/state/run_state.h"
#include "sim/engine/scenario.h"

namespace orrery {

enum class CauseKind : std::uint8_t {
  healthy,
  straggling_host,       // one rank's host is late in every step
  busy_host,             // the hosts of all ranks are slow
  busy_gpu,              // another process computes on a rank's device
  few_sms,               // something holds processors of a rank's device
  slow_gpu,              // a rank's device is slow at its clock
  low_clock,             // a rank's device runs at a lower clock
  low_clocks,            // all do: a power cap, a clock limit, heat
  slow_memory,           // a rank's device memory is slow: remapped rows, retries
  forced_sync,           // the program waits for the device again and again
  launch_blocking,       // every launch waits for its kernel
  checked_calls,         // debug settings look at the result of every operation
  checked_collectives,   // hosts compare every collective before it starts
  data_stall,            // every batch comes late
  data_stall_at_times,   // some do
  checkpoint,            // saving stops the steps
  imbalance,             // one rank has more to compute
  fp32_by_mistake,       // products run in 32 bits
  allocator_retries,     // memory is asked for and given back in every step
  mismatched_attention,  // an attention kernel that is not the chip's
  mismatched_products,   // products that are not the chip's
  slow_scale_up,         // links inside the domain
  slow_nic,              // a NIC between hosts is down or at a lower rate
  bad_cable,             // a cable between hosts loses packets, which are sent again
  colliding_flows,       // flows meet on links between hosts: hashed routes, other jobs
  small_buckets,         // many small collectives
  no_overlap,            // collectives do not run beside compute
  one_bucket,            // one bucket, or one unit of sharding, holds the model
  another_run,           // none: what was measured is not what was predicted
};
inline constexpr auto cause_text = enum_names<CauseKind>({"healthy",
                                                          "straggling-host",
                                                          "busy-host",
                                                          "busy-gpu",
                                                          "few-sms",
                                                          "slow-gpu",
                                                          "low-clock",
                                                          "low-clocks",
                                                          "slow-memory",
                                                          "forced-sync",
                                                          "launch-blocking",
                                                          "checked-calls",
                                                          "checked-collectives",
                                                          "data-stall",
                                                          "data-stall-at-times",
                                                          "checkpoint",
                                                          "imbalance",
                                                          "fp32-by-mistake",
                                                          "allocator-retries",
                                                          "mismatched-attention",
                                                          "mismatched-products",
                                                          "slow-scale-up",
                                                          "slow-nic",
                                                          "bad-cable",
                                                          "colliding-flows",
                                                          "small-buckets",
                                                          "no-overlap",
                                                          "one-bucket",
                                                          "another-run"});
inline constexpr std::size_t cause_count = cause_text.count;
// Whether something is wrong with the run: not with what was asked, and not nothing.
constexpr bool is_fault(CauseKind kind) {
  return kind != CauseKind::healthy && kind != CauseKind::another_run;
}

// An entry of sim/diagnose/catalog/causes.json.
struct Cause {
  CauseKind kind = CauseKind::healthy;
  std::string title;    // "another process computes on the GPU of rank {rank}"
  std::string action;   // what to do, in one sentence
  std::string measure;  // what would tell it from its like
  // The change in the words of a program, by its launcher ("megatron-lm").
  std::map<std::string, std::string> settings;
  // Share of runs that somebody asks about, beside that of `parts` (priors.h); one may be unknown.
  Sourced<double> prior;
  std::vector<std::string> parts;  // failures of the reliability catalogue: "nic", "hbm"
  // Strength: how much longer the part that it touches takes, over the healthy step or over itself.
  double least = 0.02, most = 4;
  bool of_rank = false;               // one rank has it
  std::vector<std::string> troubles;  // lines of logs that name it (observe::TroubleKind, in words)
};
// All of them, in the order of the kinds.
const std::vector<Cause>& causes();

// What steps take on a machine whose links are slower, by the part of their rate that is left:
// simulated once for a run.
struct LinkSteps {
  std::vector<double> left;                   // 1, 0.7, 0.5, ...
  std::vector<double> scale_up_s, network_s;  // step times
  // Seconds of passes' kernels: collectives that take longer than these run beside none of them in
  // the end, and leave them processors and memory.
  std::vector<double> scale_up_kernels_s, network_kernels_s;
  // A large collective of all ranks on slower links inside domains, over its time on whole ones.
  std::vector<double> outside_by_scale_up;
};
LinkSteps simulate_links(const Scenario& scenario);

// A cause can show itself in more than one way, each as probable as the other: another process has
// the device in turn or beside the run (MPS); a kernel that waits takes processors or the whole
// device; a GPU is slow in all it does or where processors decide; flows meet always or at times;
// one rank has more of all work, or more rows of experts.
int forms_of(CauseKind kind, const RunState& healthy);
// Whether such a run can have it at all: one GPU waits for none, decoding reads no batches.
bool is_possible(CauseKind kind, const RunState& healthy, const LinkSteps& links);
// The healthy state with the fault of that strength, at that rank where one has it.
RunState with_fault(RunState healthy, CauseKind kind, double strength, std::size_t rank,
                    const LinkSteps& links, int form = 0);

}  // namespace orrery
