// SPDX-License-Identifier: Apache-2.0
// Tests what a calibration becomes for a device with other peaks or another power limit.
#include "hw_models/changed_device.h"

#include <catch2/catch.hpp>
#include <random>

#include "hw_models/catalog.h"

using namespace orrery;

namespace {

double bf16_energy(const Calibration& c) {
  return c.tensor_energy[static_cast<std::size_t>(Format::bf16)].get().si();
}

Device faster(Device device, double factor) {
  for (auto& rate : device.tensor_rate)
    if (rate.known()) rate.value = rate.get() * factor;
  return device;
}

Device limited(Device device, double share) {
  device.power_limit.value =
      device.idle_power.get() + (device.power_limit.get() - device.idle_power.get()) * share;
  return device;
}

}  // namespace

TEST_CASE("the same device keeps its calibration to the bit") {
  for (const char* name : {"h100-sxm", "b200-sxm", "mi300x", "tpu-v5p"}) {
    const Device device = load_device(name);
    const Calibration before = load_calibration(device);
    Calibration after = before;
    follow_device(after, device, device);
    for (std::size_t f = 0; f < format_count; ++f)
      CHECK(after.tensor_energy[f].value == before.tensor_energy[f].value);
    CHECK(after.busy_share.value == before.busy_share.value);
    CHECK(bf16_energy(load_calibration(std::string(name), device)) == bf16_energy(before));
  }
}

TEST_CASE("wider units cost an operation no more than they did, and less power less") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> factor(1, 4), share(0.4, 1);
  for (const char* name : {"h100-sxm", "h200-sxm", "b200-sxm", "a100-sxm4-80gb"}) {
    const Device device = load_device(name);
    const Calibration today = load_calibration(device);
    for (int i = 0; i < 50; ++i) {
      const double f = factor(random), s = share(random);
      Calibration wide = today, low = today;
      follow_device(wide, device, faster(device, f));
      follow_device(low, device, limited(device, s));
      INFO(name << " " << f << " times, " << s << " of the power");
      CHECK(bf16_energy(wide) <= bf16_energy(today));
      // At a fixed limit the wider one is never slower: its energy does not rise.
      CHECK(bf16_energy(low) <= bf16_energy(today));
      CHECK(bf16_energy(low) >= 0.5 * bf16_energy(today));
    }
  }
}

TEST_CASE("half of a device is a device of half the peaks and half the power") {
  for (const char* name : {"h100-sxm", "b200-sxm", "mi300x"}) {
    const Device device = load_device(name);
    Device half = limited(faster(device, 0.5), 0.5);
    Calibration c = load_calibration(device);
    const double before = bf16_energy(c);
    follow_device(c, device, half);
    // Within what full clocks and those of the limit differ where tensor work hardly exceeds it.
    CHECK(bf16_energy(c) / before == Approx(1).epsilon(0.06));
  }
}

TEST_CASE("a changed device of the catalogue keeps what was measured on it") {
  Device changed = faster(load_device("h100-sxm"), 1.5);
  const Calibration c = load_calibration("h100-sxm", changed);
  CHECK(c.borrowed_from == load_calibration(load_device("h100-sxm")).borrowed_from);
  CHECK(c.device == "h100-sxm");
  CHECK(bf16_energy(c) < bf16_energy(load_calibration(load_device("h100-sxm"))));
}
