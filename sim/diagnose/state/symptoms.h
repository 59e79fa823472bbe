// SPDX-License-Identifier: Apache-2.0
// Knows the figures by which faults are told apart, and reads them off a run as it is predicted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/diagnose/state/run_state.h"

namespace orrery {

// What a run shows. "log": a natural logarithm of a ratio; "share": of the healthy step. Those of
// ranks come twice: the mean over the ranks that were seen, and each rank's difference to it. Those
// of each rank (is_of_each_rank) come as they are, once a rank.
enum class Symptom : std::uint8_t {
  step,         // log: usual step over the predicted one
  occasional,   // share: mean step beyond the usual one
  saves,        // 0 to 1: of that, on steps that save
  stalls,       // 0 to 1: of that, waiting for data
  data,         // share: waiting for data in a usual step
  jitter,       // log: relative deviation of steps
  link,         // log: time of large collectives in a domain over the predicted
  network,      // log: the same of those that leave it
  call_spread,  // log: relative deviation of the latter among their like
  call_bytes,   // log: bytes of a collective over what the buckets say
  fp32,         // 0 to 1: of the products' time
  host_waits,   // log: calls in which the host waits
  allocations,  // log: calls to the driver for memory, and one
  launching,    // seconds in launches over those of kernels
  exposed,      // share: collectives that nothing hides, on the rank that has fewest
  products,     // log, of ranks
  attention,
  memory_bound,
  optimizer,
  clock,
  wait,             // share, of ranks
  late,             // share: collectives that nothing hides, beyond the rank with fewest
  idle,             // share, of each rank
  forward,          // share: the forward pass
  work,             // log
  foreign_memory,   // 1e9 bytes
  suspended,        // of each rank: slices of time that kernels lost, over the rest of their time
  alone,            // share, of each rank: a kernel beside the run's own has the device alone
  optimizer_timer,  // log: the optimizer as the log times it
};
inline constexpr auto symptom_text = enum_names<Symptom>(
    {"step",        "occasional",     "saves",       "stalls",     "data",           "jitter",
     "link",        "network",        "call-spread", "call-bytes", "fp32",           "host-waits",
     "allocations", "launching",      "exposed",     "products",   "attention",      "memory-bound",
     "optimizer",   "clock",          "wait",        "late",       "idle",           "forward",
     "work",        "foreign-memory", "suspended",   "alone",      "optimizer-timer"});
inline constexpr std::size_t symptom_count = symptom_text.count;
constexpr std::string_view to_text(Symptom s) { return symptom_text[s]; }

// Symptoms that are times of a class of kernels, and where a rank's state holds these.
struct KernelClass {
  Symptom symptom;
  double RankState::*seconds;
};
inline constexpr std::array<KernelClass, 4> kernel_classes = {{
    {Symptom::products, &RankState::products_s},
    {Symptom::attention, &RankState::attention_s},
    {Symptom::memory_bound, &RankState::memory_bound_s},
    {Symptom::optimizer, &RankState::optimizer_s},
}};
constexpr bool is_kernel_time(Symptom s) {
  return s >= kernel_classes.front().symptom && s <= kernel_classes.back().symptom;
}

// Whether each rank's own value is read. A rank that is late leaves the others' devices at work or
// in collectives: only its own is idle, which differences to a mean would not say.
constexpr bool is_of_each_rank(Symptom s) {
  return s == Symptom::idle || s == Symptom::suspended || s == Symptom::alone;
}

// One figure; `rank` below 0: of the whole run, or the mean over ranks.
struct Reading {
  Symptom symptom = Symptom::step;
  int rank = -1;
  double value = 0;
  double noise = 0;  // of this reading, beside the symptom's own: 0 mostly
  double slice = 0;  // of `suspended`: by how much one slice of time moves it
};

// Places of readings in a fixed order: whole-run symptoms and means first, then rank by rank.
// Readings that were not taken are left out.
using Readings = std::vector<Reading>;

// Trouble that a profile names: a kernel that runs through steps beside the run's own.
inline constexpr const char* kernel_through_steps = "kernel through steps";
// And collectives of hosts in every layer, as checks of the devices' collectives make them.
inline constexpr const char* collectives_on_hosts = "collectives on hosts";

// And collectives that never run beside compute, where they should.
inline constexpr const char* collectives_alone = "collectives alone";

// And kernels of attention, or of products in 16 bits and fewer, whose names tell an older chip.
inline constexpr const char* older_attention = "attention of an older chip";
inline constexpr const char* older_products = "products of an older chip";

// Trouble that counters of a port name: what rises only where something is wrong, and more wrong
// symbols than any link is allowed.
inline constexpr const char* port_errors = "port errors";
inline constexpr const char* port_beyond_allowed = "port errors beyond what is allowed";
// A rate below that of its like, or none of their traffic; and marks of congestion.
inline constexpr const char* port_is_slow = "slow port";
inline constexpr const char* port_is_congested = "port congestion";

// Clocks that somebody holds down: a limit of power below the maker's, a clock setting, the brake.
inline constexpr const char* clocks_are_held = "clocks held";

// What was seen of a run.
struct Seen {
  Readings readings;
  // What the files name: kinds of lines of the log, each once, and the troubles above.
  std::vector<std::string> troubles;
  std::vector<std::string> told;   // which counter of what says so, and by how much
  bool can_name = false;           // else no log and no counter could
  bool profiles_can_name = false;  // else no profile could
  void name(const char* trouble) { troubles.emplace_back(trouble); }
  std::vector<int> ranks = {0};  // seen one by one, by their numbers in the run
};

// How much readings differ from run to run where nothing differs: of the mean over ranks or the
// whole run, and of one rank's difference. Standard deviations, in the symptom's unit.
struct SymptomNoise {
  std::string title;  // "time of products"
  double base = 0, rank = 0;
  double relative = 0;  // of the expected value, besides: how well a fault's strength tells it
};

// Of every symptom, by the number of it: sim/diagnose/catalog/symptoms.json.
const std::vector<SymptomNoise>& symptom_noise();

// The value that the state shows.
double expected(const RunState& state, Symptom symptom, int rank);

// Standard deviation of a reading in such a state. `added`: what a cause adds to the reading is
// known to a share of it; `healthy`: what a run without fault shows is, to half of that share.
double deviation_of(const Reading& reading, double added, double healthy, const RunState& state);

// Takes a figure of each rank and gives the mean and the differences to it, or the figures.
void add_of_ranks(Readings& readings, Symptom symptom,
                  const std::vector<std::optional<double>>& values);

}  // namespace orrery
