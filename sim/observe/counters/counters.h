// SPDX-License-Identifier: Apache-2.0
// Knows what GPUs and network ports counted while a run ran: clocks, power, activity, errors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"

namespace orrery::observe {

enum class CounterSource : std::uint8_t {
  smi_dmon,         // nvidia-smi dmon, as text or with --format csv
  smi_query,        // nvidia-smi --query-gpu=... --format=csv
  dcgmi_dmon,       // dcgmi dmon
  prometheus_text,  // what an exporter shows, once or several times
  prometheus_csv,   // ranges of a query as a table
};
inline constexpr auto counter_source_text =
    enum_names<CounterSource>({"nvidia-smi dmon", "nvidia-smi --query-gpu", "dcgmi dmon",
                               "metrics of Prometheus", "table of Prometheus"});

// A quantity. Values are in the unit that counter_unit() tells.
enum class Counter : std::uint8_t {
  sm_clock,
  memory_clock,
  most_sm_clock,
  power,
  power_limit,
  energy,
  temperature,
  memory_temperature,
  gpu_utilisation,     // share of time in which some kernel ran
  memory_utilisation,  // share of time in which memory was read or written
  graphics_active,
  sm_active,
  sm_occupancy,
  tensor_active,
  dram_active,
  fp64_active,
  fp32_active,
  fp16_active,
  memory_used,
  memory_free,
  nvlink_sent,
  nvlink_received,
  pcie_sent,
  pcie_received,
  pcie_generation,
  pcie_width,
  pcie_replays,
  throttle_reasons,   // bits of NVML: see is_throttled_by()
  throttled,          // 1: clocks are held down, for a reason that the instance names
  power_violation,    // time held down by power: dmon tells a share, DCGM a sum
  thermal_violation,  // the same by heat: dmon tells 0 or 1, DCGM a sum
  ecc_corrected,
  ecc_uncorrected,
  remapped_corrected,
  remapped_uncorrected,
  remap_failed,  // 1: rows could not be remapped
  remap_pending,
  retired_pages,
  last_xid,
  nvlink_crc_errors,
  nvlink_replays,
  nvlink_recoveries,
  port_sent,      // bytes since the port was reset
  port_received,  // the same
  port_symbol_errors,
  port_receive_errors,
  port_link_downed,
  port_link_recoveries,
  port_discards,
  port_wait,  // ticks with data and no credit
  port_out_of_order,
  port_retransmits,
  port_congestion_marks,
  port_rate,  // at which its link was trained
  performance_state,
};
inline constexpr auto counter_text = enum_names<Counter>({"SM clock",
                                                          "memory clock",
                                                          "highest SM clock",
                                                          "power",
                                                          "power limit",
                                                          "energy",
                                                          "temperature",
                                                          "memory temperature",
                                                          "GPU utilisation",
                                                          "memory utilisation",
                                                          "graphics active",
                                                          "SM active",
                                                          "SM occupancy",
                                                          "tensor active",
                                                          "DRAM active",
                                                          "FP64 active",
                                                          "FP32 active",
                                                          "FP16 active",
                                                          "memory used",
                                                          "memory free",
                                                          "NVLink sent",
                                                          "NVLink received",
                                                          "PCIe sent",
                                                          "PCIe received",
                                                          "PCIe generation",
                                                          "PCIe width",
                                                          "PCIe replays",
                                                          "throttle reasons",
                                                          "throttled",
                                                          "power violation",
                                                          "thermal violation",
                                                          "ECC corrected",
                                                          "ECC uncorrected",
                                                          "rows remapped after corrected errors",
                                                          "rows remapped after uncorrected errors",
                                                          "row remapping failed",
                                                          "row remapping pending",
                                                          "retired pages",
                                                          "last Xid",
                                                          "NVLink CRC errors",
                                                          "NVLink replays",
                                                          "NVLink recoveries",
                                                          "port sent",
                                                          "port received",
                                                          "port symbol errors",
                                                          "port receive errors",
                                                          "port link downed",
                                                          "port link recoveries",
                                                          "port discards",
                                                          "port wait",
                                                          "port out of order",
                                                          "port retransmits",
                                                          "port congestion marks",
                                                          "port rate",
                                                          "performance state"});
// "Hz", "W", "J", "C", "share" (0 to 1), "B", "B/s", "count", "bits", "number", "ticks", "as told".
std::string_view counter_unit(Counter counter);
// Whether values only rise: a fault is the rise between the first and the last.
bool counter_rises(Counter counter);

// Bits of Counter::throttle_reasons, as NVML counts them.
enum class ThrottleReason : std::uint64_t {
  idle = 0x1,
  application_clocks = 0x2,
  power_cap = 0x4,  // software keeps the board at its power limit
  hardware = 0x8,
  sync_boost = 0x10,
  software_thermal = 0x20,
  hardware_thermal = 0x40,
  power_brake = 0x80,
  display = 0x100,
};
// Whether the bits that a reading holds name the reason.
bool is_throttled_by(double reading, ThrottleReason reason);

struct Reading {
  double time_s = 0;  // since 1970, or since the first reading: CounterLog::has_clock
  double value = 0;
};

// One quantity of one device over time.
struct CounterSeries {
  Counter counter = Counter::sm_clock;
  std::string host;      // empty where the file names none
  std::string device;    // "0" of a GPU, "mlx5_0/1" of a port
  std::string instance;  // which of several: a link, a reason; mostly empty
  std::vector<Reading> readings;
  std::size_t missing = 0;  // cells that held no value ("[N/A]", "-", NaN)
};

struct CounterDevice {
  std::string host, device;
  std::optional<std::string> name, uuid;  // as the driver tells them
};

struct CounterLog {
  std::string file;
  CounterSource source = CounterSource::smi_dmon;
  bool has_clock = false;  // else times count samples: 0, 1, 2, ...
  std::vector<CounterDevice> devices;
  std::vector<CounterSeries> series;  // sorted by host, device, counter and instance
  std::vector<std::string> unknown;   // columns or metrics that were not taken
  std::vector<std::string> notes;     // one sentence each, about what was left out or assumed

  // The series of a counter, of all devices.
  std::vector<const CounterSeries*> of(Counter counter) const;
};

// Reads counters. Errors: none of the forms, rows of another width than the header, a cell that is
// no value of its column, no reading at all.
CounterLog read_counters(const std::filesystem::path& file);
// The form of a text that starts so, or nothing. Texts without a header have none.
std::optional<CounterSource> counter_source(std::string_view first_bytes);

}  // namespace orrery::observe
