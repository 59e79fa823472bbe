// SPDX-License-Identifier: Apache-2.0
// Knows the shipped catalogue of machines: accelerators with calibrations, NICs, switches, hosts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/base/json/tree.h"

namespace orrery {

struct Nic {
  std::string name, title;
  Sourced<BytesPerSecond> bandwidth;  // per direction
  Sourced<Seconds> latency;           // one message, NIC to NIC through one switch
  Sourced<double> efficiency;         // achievable share of the line rate for large messages
  Sourced<Watts> power;
  Sourced<Dollars> price;
};
struct Switch {
  std::string name, title;
  Sourced<std::int64_t> ports;
  Sourced<BytesPerSecond> port_bandwidth;
  Sourced<Seconds> latency;
  Sourced<Watts> power;
  Sourced<Dollars> price;
  bool in_network_reduction = false;
  bool co_packaged_optics = false;  // fibre plugs into the switch: its price and power hold optics
  std::string scale_up_link;        // "nvlink4": it stands behind such links where a wiring names
                                    // no switch; empty: behind none
};
struct Host {
  std::string name, title;
  Sourced<Bytes> memory;
  Sourced<BytesPerSecond> memory_bandwidth;
  Sourced<Watts> power;    // host without accelerators
  Sourced<Dollars> price;  // the same
  Sourced<Hertz> failure_rate;
  PartsIncluded includes;  // what its power and its price hold: the switches and NICs of a DGX
  // What a thread takes to launch the same operations, over what a DGX H100's Xeon does.
  Sourced<double> launch_time;
  Sourced<std::int64_t> hosts_per_rack;  // that its maker's rack has trays for; absent: it is no
                                         // tray of a rack that is sold whole
};

// Where figures come from: an entry of hw_models/catalog/sources/*.json.
struct Source {
  std::string id, title;
  std::string address;    // empty: no page (an estimate, a device at hand, something recalled)
  std::string date_read;  // "2026-11-20"; empty: a figure was recalled, the page not opened
  // Terms under which what was taken stands here: an SPDX id where tables or texts were copied,
  // "facts only" where single figures were, "terms unknown" where the owner names none.
  std::string licence;
};

// Root folder that holds hw_models/catalog and the other catalogues: $ORRERY_DATA, else data/
// beside the Python extension, else <binary>/../share/orrery, else the source tree that the binary
// was built from.
std::filesystem::path data_root();

// Names in a catalogue folder (relative to data_root()), sorted: file stems of *.json.
std::vector<std::string> catalog_names(const std::string& folder);

// `name` is a catalogue name, a path to a file of the same shape (it contains '/' or ends in
// ".json") or the JSON of an entry (JsonValue::reference). Merges "based_on" overlays: RFC 7396
// merge patches, but a sourced value (an object with "value") replaces the older one whole, so that
// no stale evidence stays behind. `kind` is what the entry is called in messages ("accelerator").
// An unknown name is an Error with the nearest.
JsonValue load_catalog_entry(const std::string& folder, const std::string& kind,
                             const std::string& name);

inline constexpr const char* accelerator_folder = "hw_models/catalog/accelerators";

// What the entry is based on, as a name or a path that loads it; empty: it is an entry of its own.
std::string catalog_base(const std::string& folder, const std::string& kind,
                         const std::string& name);

// What a source's licence may be.
std::vector<std::string> licence_names();

// All sources of the project, sorted by id: hw_models/catalog/sources/*.json together. An id may
// stand in several files as long as they agree.
std::map<std::string, Source> load_sources();

Nic read_nic(const JsonValue& file);
Switch read_switch(const JsonValue& file);
Host read_host(const JsonValue& file);

// Lays `patch` over `target` (RFC 7396), except that a patch object with "value" replaces the old
// leaf whole: evidence and range of another value must not survive it.
void merge_overlay(SortedJson& target, const SortedJson& patch);

Device load_device(const std::string& name);
Nic load_nic(const std::string& name);
Switch load_switch(const std::string& name);
Host load_host(const std::string& name);

// The device's own calibration, or one borrowed from the nearest measured architecture: scaled by
// peaks, evidence estimated with a range. Never fails for a resolvable device.
Calibration load_calibration(const Device& device, Kernels kernels = Kernels::named);

// The same of an accelerator of which a cluster changes values: `entry` is its name or file, and
// `device` what became of it. A changed device, and an entry that is based on another and has no
// calibration or loan of its own, are their originals with other peaks and limits (follow_device):
// one change of hardware has one answer, however it is written.
Calibration load_calibration(const std::string& entry, const Device& device,
                             Kernels kernels = Kernels::named);

}  // namespace orrery
