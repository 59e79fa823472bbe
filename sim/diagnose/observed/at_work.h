// SPDX-License-Identifier: Apache-2.0
// Knows which devices of a tool's list a run uses, and when these worked.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/observe/counters/counters.h"

namespace orrery {

// As a person finds the device: its host where one is named, and its number or port.
std::string place_of(const observe::CounterSeries& series);

class AtWork {
 public:
  // A tool lists all devices of a host, also those that a run of so many GPUs does not use: these
  // draw least.
  AtWork(const observe::CounterLog& log, std::size_t gpus);
  // Those of a counter of the devices that the run uses, in the order of hosts and devices.
  std::vector<const observe::CounterSeries*> of(observe::Counter counter) const;
  // Whether the device worked then; yes where its power is not told.
  bool worked(const observe::CounterSeries& series, double time_s) const;

 private:
  using Watts = std::map<double, double>;  // by time
  const observe::CounterLog& log_;
  std::map<std::string, Watts> power_;  // by device
  std::map<std::string, double> most_;  // watts of each
  std::set<std::string> used_;          // empty: no clock tells devices apart
};

}  // namespace orrery
