// SPDX-License-Identifier: Apache-2.0
// Knows why clocks of devices were held down, as their drivers tell it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/units.h"
#include "sim/observe/counters/counters.h"

namespace orrery {

// What holds a clock down, by the bits of NVML (nvmlClocksEventReasons) or their like. `hardware`:
// the board protects itself, and no bit beside it says from what.
enum class ClockHolder : std::uint8_t { power_brake, heat, hardware, power_cap, set_clocks };
inline constexpr auto clock_holder_text = enum_names<ClockHolder>(
    {"the power brake", "heat", "the board's own protection", "a power cap", "a clock setting"});

// A device that the run uses: of the samples in which it worked, the shares in which each holds it.
struct HeldDevice {
  std::string place;  // "0", "host1 0"
  std::array<double, clock_holder_text.count> share{};
  std::optional<Watts> power_limit;
  double share_of(ClockHolder holder) const { return share[static_cast<std::size_t>(holder)]; }
};
// Of all devices that the run uses, in the order of hosts and devices; empty where no file tells.
std::vector<HeldDevice> held_devices(const std::vector<observe::CounterLog>& logs,
                                     std::size_t gpus);
// A sentence for each that holds some device, and for power limits below the maker's.
std::vector<std::string> held_sentences(const std::vector<HeldDevice>& devices,
                                        std::optional<Watts> makers_limit);

// Whether some device has a limit of power below the maker's, or a clock setting or the brake holds
// its clock in most samples. A power cap alone holds clocks of most healthy runs.
bool are_held(const std::vector<HeldDevice>& devices, std::optional<Watts> makers_limit);

// Why clocks are low, and what to do.
struct ClockReason {
  std::string words, action;
};
// Of one device, or of all; nothing where none is held.
std::optional<ClockReason> reason_of(const std::vector<HeldDevice>& devices,
                                     std::optional<Watts> makers_limit);

}  // namespace orrery
