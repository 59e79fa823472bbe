// SPDX-License-Identifier: Apache-2.0
// Knows what the topology command found, and how it is printed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw_models/device.h"
#include "sim/base/json/tree.h"
#include "sim/outcome/money/network_bill.h"
#include "sim/paper/document.h"
#include "topologies/parts.h"

namespace orrery {

// What was asked for: a fabric, and the accelerator on it where a cluster was named.
struct TopologySubject {
  std::string kind, name, title;
  Fabric fabric;
  std::optional<Device> device;
  std::int64_t gpus_per_host = 1;  // of a cluster
};

// A figure of the wiring with its range; equal ends where it has none.
struct SecondsRange {
  double value = 0, low = 0, high = 0;
};
// How far the network reaches: numbers of DESIGN's "bisection, diameter", from the fabric.
struct NetworkReach {
  std::size_t top_tier = 0;  // the highest that a path at this size passes
  bool scale_out = false, several_sites = false;
  SecondsRange within_domain, under_leaf, longest;  // seconds
};

struct TopologyReport {
  TopologySubject subject;
  std::int64_t accelerators = 0;
  std::string size_note;
  FabricParts parts;
  NetworkReach reach;
  NetworkBill bill;
  std::size_t width = page_width;  // of the text
};

std::string gigabits_text(BytesPerSecond rate);  // "400 Gbit/s"

// What a person reads.
Document topology_document(const TopologyReport& report);
// The whole result: SI units, unknown values as null.
Json topology_report_json(const TopologyReport& report);
// What the figures assume and leave out.
std::vector<std::string> topology_notes(const TopologyReport& report);

}  // namespace orrery
