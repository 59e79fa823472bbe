// SPDX-License-Identifier: Apache-2.0
// Knows what a run does in a step, rank by rank: as it is predicted, and as a fault makes of it.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/engine/scenario.h"
#include "sim/outcome/prediction.h"

namespace orrery {

// One rank's part of a usual step. Seconds of kernels are sums; what collectives wait for others is
// in them.
struct RankState {
  double products_s = 0, attention_s = 0;
  double experts_s = 0;       // of products_s, as predicted: those of experts
  double memory_bound_s = 0;  // norms, element-wise work, losses, indexing, quantisation
  double optimizer_s = 0;
  double wait_s = 0;             // in collectives, beyond the rank that spends least in them
  double exposed_s = 0;          // collectives that no compute of the rank hides
  double idle_s = 0;             // nothing runs on the device
  double bubble_s = 0;           // it waits for another stage; in exposed_s where profiles show it
  double exchange_s = 0;         // of exposed_s: messages between stages
  double work = 1;               // threads launched, over those of the mean rank
  double forward_s = 0;          // its forward pass, beyond the mean rank's
  double clock = 1;              // of its processors, over what the device sustains under such work
  double foreign_memory_gb = 0;  // 1e9 bytes that the run does not hold
  double suspended = 0;          // slices of time that kernels lost, over the rest of their time
  double alone_s = 0;            // a kernel beside the run's own has the device alone
  double compute_s() const { return products_s + attention_s + memory_bound_s + optimizer_s; }
};

// What profiles of the run can show.
struct Profiled {
  // Of the time by which a rank comes late, so much finds the others without work; the rest passes
  // while they still compute. Judged where no profile tells it.
  double exposed_wait = 0.7;
  // One that does not name the data loader shows waits for it as idle time.
  bool loader_is_unnamed = false;
  // Relative deviation of large collectives over the network among their like.
  double call_spread = 0.05;
  // Times of products hold slices of time that they lost; those of other kernels were freed of
  // them.
  bool products_hold_slices = true;
};

// How little a state says of its figures, beside the noise that each symptom has.
struct Uncertain {
  // By chance one rank or the other is the one that waits, for so much of what all are late.
  double uneven_s = 0;
  // Where the host decides the step, how fast it is decides how long the device is idle: its share
  // of the step is known to this.
  double host = 0;
  bool alone_s = false;     // how long a kernel has the device alone is not the cause's to say
  double jitter = 0;        // as a logarithm
  double call_spread = 0;   // as a logarithm
  double network = 0;       // the middle one of calls that leave a domain, as a logarithm
  double clock = 0;         // ranks differ by so much, as a logarithm
  double attention = 0;     // its time, as a logarithm
  double memory_bound = 0;  // the same of these kernels, of one rank
  double work = 0;          // of one rank
  double launching = 0;     // calls that launch, over the kernels' time
  // Another run has other parts: each lies so far from the predicted, as a logarithm, and so far in
  // shares of the step.
  double parts = 0;
  // Kernels may be shorter by as much as is predicted, as slow collectives run beside fewer.
  double freed_s = 0;
};

struct RunState {
  double healthy_s = 0;     // predicted usual step of a run without a fault
  double step_s = 0;        // usual step
  double occasional_s = 0;  // by which the mean step is longer than the usual one
  double saves = 0;         // share of that which falls on steps that save a checkpoint
  double stalls = 0;        // share of that which waits for data
  double data_s = 0;        // a usual step waits so long for its data
  double jitter = 0.01;     // relative deviation of usual steps
  double link = 1;          // time of large collectives inside a domain, over the predicted
  double network = 1;       // the same of those that leave it
  double call_bytes = 1;    // bytes of a collective, over what the layout's buckets say
  double tensor_bytes = 1;  // the same of one tensor of parameters, the smallest that is sent
  double model_bytes = 1;   // the same of a rank's whole model, the largest
  double fp32 = 0;          // share of the products' time that runs in 32 bits
  double host_waits = 3;    // calls in which the host waits for the device, of a step
  double allocations = 0;   // calls to the driver for memory, of a step
  double launching = 0;     // seconds in calls that launch, beyond usual, over those of kernels
  double clock_hz = 0;      // of the device's processors, under the power that such work draws
  bool alone = false;       // one rank, which waits for none
  bool trains = true;       // else it infers: no batches of data, no gradients, nothing to save
  // Whether ranks meet in collectives of the forward pass, so that its time is the same for all.
  bool meets_in_forward = true;
  // The same of the optimizer: it reduces or gathers what others hold.
  bool meets_in_optimizer = true;
  Profiled profiled;
  Uncertain unknown;
  std::size_t layers = 1;  // of a stage
  std::vector<RankState> ranks;

  // The rank comes so much later in every step than the others, which wait for it in collectives.
  // Where kernels of a collective wait beside compute, they take processors from it.
  void delay(std::size_t rank, double seconds);
  // Every rank takes so much longer.
  void lengthen(double seconds) { step_s += seconds; }
  // The same, in collectives that nothing hides.
  void expose(double seconds);
};

// What is predicted of `ranks` ranks of a run without faults, those of the pacing stage.
RunState healthy_state(const Scenario& scenario, const Prediction& prediction, std::size_t ranks);

// Bytes of one of its collectives, mean over those of data parallelism.
double expected_call_bytes(const Scenario& scenario);

}  // namespace orrery
