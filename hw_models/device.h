// SPDX-License-Identifier: Apache-2.0
// Knows what an accelerator is: rates, memories, links, power, reliability and price.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/date.h"
#include "sim/base/json/json.h"
#include "sim/base/names.h"
#include "sim/base/units/sourced.h"
#include "sim/base/units/units.h"

namespace orrery {

// Parts that a price or a power already holds: a bill must not count them again. `scale_up` means
// the switches and cables of the scale-up domain.
struct PartsIncluded {
  bool host = false, scale_up = false, nic = false;
};
// Reads ["host", "scale_up", "nic"] at `key`; absent: none.
PartsIncluded read_parts_included(const JsonValue& parent, std::string_view key);

enum class Architecture : std::uint8_t {
  volta,
  ampere,
  ada,
  hopper,
  blackwell,
  blackwell_ultra,
  rubin,
  rubin_ultra,
  feynman,
  cdna2,
  cdna3,
  cdna4,
  cdna5,
  tpu,
  trainium,
  gaudi,
  other,
};
std::string_view to_text(Architecture);

// NVIDIA's tensor-core generations share a tile model; everything else is a generic roofline.
bool has_tile_model(Architecture);

// Plain numbers of one accelerator for the hot path. All present; rates of formats that the chip
// lacks are 0. Built by Device::resolved().
struct ResolvedDevice {
  std::string name;
  Architecture architecture = Architecture::other;
  double sm_count = 0;
  Hertz clock;                                            // boost clock behind the tensor rates
  std::array<FlopPerSecond, format_count> tensor_rate{};  // dense peak by operand format
  FlopPerSecond vector_rate;                              // fp32 FMA units
  double special_function_per_second = 0;                 // exponentials per second
  Bytes l2_capacity;
  BytesPerSecond l2_bandwidth;
  Bytes memory_capacity;  // as the driver reports it
  BytesPerSecond memory_bandwidth;
  BytesPerSecond scale_up_bandwidth;  // per direction, to all peers together
  BytesPerSecond host_bandwidth;      // per direction: C2C where there is, else PCIe
  Bytes host_memory;  // its share of its host's; 0: not known, or not asked of a host
  Watts power_limit, idle_power;
  double board_spread = 0;  // standard deviation of sustained speed between healthy boards
  Hertz failure_rate;       // unrecoverable failures per second
  Dollars price;            // purchase, one accelerator
  DollarsPerSecond rental;  // on demand, in a cloud
  bool tile_model = false;
};

// Names by which schedulers know an accelerator, where a job asks for some.
struct ScheduledAs {
  std::string slurm;       // generic resource: "gpu"; empty: Slurm schedules none
  std::string kubernetes;  // extended resource: "nvidia.com/gpu"
  std::string source;
};

// What programs find on an accelerator: facts of its drivers, libraries and units.
struct DeviceSoftware {
  std::string platform;                  // "cuda", "rocm", "tpu", ...: stacks name theirs
  std::vector<std::string> precisions;   // recipes that train on it: "bf16", "mxfp8"
  std::vector<std::string> dispatchers;  // of expert layers' tokens, beside all-to-all: "deepep"
  // Collectives stay ahead of the products beside them only where one hardware queue launches both.
  bool one_queue = false;
  std::string training_stack, inference_stack;  // that people run on it
  std::optional<ScheduledAs> scheduled_as;      // absent: not known
  std::string source, reason;
};

// One accelerator as the catalogue has it: every value with evidence, source and range.
struct Device {
  // Compiled once: it is long, and units all over the program hold one.
  Device();
  Device(const Device&);
  Device(Device&&) noexcept;
  Device& operator=(const Device&);
  Device& operator=(Device&&) noexcept;
  ~Device();

  std::string name, title, vendor, status;
  Architecture architecture = Architecture::other;
  std::optional<DeviceSoftware> software;  // absent: nothing is known of it, and nothing refused
  // From when it can be had in numbers: volume shipments, for a cloud's own chips general
  // availability. Absent where no date was given (a part that was cancelled).
  std::optional<Sourced<Date>> available;
  Sourced<double> sm_count;
  Sourced<Hertz> clock;
  std::array<Sourced<FlopPerSecond>, format_count> tensor_rate;
  Sourced<FlopPerSecond> vector_rate;
  Sourced<double> special_function_per_second;
  Sourced<Bytes> l2_capacity;
  Sourced<BytesPerSecond> l2_bandwidth;
  std::string memory_type;
  Sourced<Bytes> memory_capacity;  // as sold
  Sourced<Bytes> memory_usable;    // as the driver reports it; absent: capacity
  Sourced<BytesPerSecond> memory_bandwidth;
  std::string scale_up_link;  // part name: "nvlink5"
  Sourced<BytesPerSecond> scale_up_bandwidth;
  Sourced<BytesPerSecond> pcie_bandwidth, c2c_bandwidth;
  Sourced<Watts> power_limit, idle_power;
  Sourced<double> board_spread;  // of sustained speed, a share; may be left out
  Sourced<Hertz> failure_rate;
  Sourced<Dollars> price;
  Sourced<DollarsPerSecond> rental;  // on demand
  PartsIncluded price_includes;      // what the purchase price holds beside the accelerator
  Sourced<Carbon> embodied_carbon;   // of making one; may be left out

  // Error that names the device and the missing value when it has no FLOP/s, no memory or no
  // bandwidth; other absent values become 0.
  ResolvedDevice resolved() const;
};

// Reads hw_models/catalog/accelerators/<name>.json (schema in hw_models/catalog/README.md).
// `based_on` overlays are already merged.
Device read_device(const JsonValue& file);

// Calls visit(path, sourced) on every Sourced value, in a fixed order: for ranges and law 12.
template <class DeviceRef, class Visit>
void visit_device_values(DeviceRef& d, Visit&& visit) {
  visit("compute.sm_count", d.sm_count);
  visit("compute.clock", d.clock);
  for (int f = 0; f < format_count; ++f)
    visit("compute.tensor." + std::string(to_text(static_cast<Format>(f))),
          d.tensor_rate[static_cast<std::size_t>(f)]);
  visit("compute.vector_fp32", d.vector_rate);
  visit("compute.special_function", d.special_function_per_second);
  visit("cache.l2_capacity", d.l2_capacity);
  visit("cache.l2_bandwidth", d.l2_bandwidth);
  visit("memory.capacity", d.memory_capacity);
  visit("memory.usable", d.memory_usable);
  visit("memory.bandwidth", d.memory_bandwidth);
  visit("scale_up.bandwidth", d.scale_up_bandwidth);
  visit("host_link.pcie", d.pcie_bandwidth);
  visit("host_link.c2c", d.c2c_bandwidth);
  visit("power.limit", d.power_limit);
  visit("power.idle", d.idle_power);
  visit("reliability.failure_rate", d.failure_rate);
  visit("reliability.board_spread", d.board_spread);
  visit("price.purchase", d.price);
  visit("price.rental", d.rental);
}

}  // namespace orrery
