// SPDX-License-Identifier: Apache-2.0
// Knows how long a sample of the microbenchmarks should take: by a calibration, by a specification.
#pragma once

#include <optional>
#include <string>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/calibrate/log/measured_log.h"
#include "sim/calibrate/log/measurement.h"
#include "sim/engine/collectives/collectives.h"

namespace orrery {

// A GPU as the model knows it, with the links to its neighbours in one host.
struct Machine {
  ResolvedDevice device, cold;  // cold: as operands find it that are not in its L2
  Calibration calibration;
  bool has_links = false;  // fabric and costs are known
  Fabric fabric;
  CollectiveCosts costs;
};

// The catalogue's device with its calibration and the smallest wiring of the catalogue that it
// comes in. `multicast`: the wiring may reduce in its switches (NVLS); false where NCCL was told
// not to. Error for an unknown device.
Machine load_machine(const std::string& device, bool multicast);
// The same with a calibration of the caller's.
Machine load_machine(const std::string& device, const Calibration& calibration, bool multicast);

// Bytes that cross the memory at least; 0 for what is no work.
double bytes_moved(const Sample& sample);

// What the model expects of a measured row, by the curve of its own kernel where there is one.
Seconds expected_time(const OperatorRow& row, const Machine& machine);

// What the model expects; nullopt for questions that it does not answer (host times, copies between
// peers, collectives of libraries or protocols that it does not know).
std::optional<Seconds> expected_time(const Sample& sample, const Machine& machine);

// The least time that the datasheet allows: tensor peak, memory, link or host bandwidth alone.
std::optional<Seconds> specified_time(const Sample& sample, const ResolvedDevice& device);

// Bytes that one rank's links carry at least in one direction: NCCL's bus bytes.
double bus_bytes(const Sample& sample);

}  // namespace orrery
