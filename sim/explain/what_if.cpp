// SPDX-License-Identifier: Apache-2.0
// Changes the values of a cluster and a stack that an edit touches.
#include "sim/explain/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hw_models/changed_device.h"
#include "sim/engine/step/step.h"

namespace orrery {
namespace {

constexpr std::string_view product_group = "products", attention_group = "attention",
                           memory_group = "memory-bound";

bool in_group(std::string_view group, WorkKind kind) {
  if (group == product_group) return is_product(kind);
  if (group == attention_group) return is_attention(kind);
  return group == memory_group && !is_product(kind) && !is_attention(kind) &&
         kind != WorkKind::host_copy;
}

using Factors = std::array<double, work_kind_count>;

Factors factors_of(const std::vector<KernelSpeedup>& kernels) {
  Factors factors;
  factors.fill(1);
  for (const bool single : {false, true})
    for (const KernelSpeedup& k : kernels) {
      const auto kind = work_kind_text.find(k.name);
      if (kind.has_value() != single) continue;
      for (int i = 0; i < work_kind_count; ++i)
        if (single ? static_cast<int>(*kind) == i : in_group(k.name, static_cast<WorkKind>(i)))
          factors[static_cast<std::size_t>(i)] = k.factor;
    }
  return factors;
}

template <class T>
void scale(Sourced<T>& value, double factor) {
  if (factor == 1) return;
  for (auto* part : {&value.value, &value.low, &value.high})
    if (*part) **part = **part * factor;
}

void scale_curve(Curve& curve, double faster, double energy) {
  scale(curve.scale, 1 / faster);
  curve.scale.reason = fmt::format("what if: {:.3g} times as fast", faster);
  curve.energy_factor *= energy;
}

void check_factor(double factor, std::string_view name) {
  if (factor > 0 && std::isfinite(factor)) return;
  throw Error({.file = std::string(name),
               .found = fmt::format("{}", factor),
               .expected = "a factor above 0"});
}

void check_factors(const WhatIf& e) {
  for (const KernelSpeedup& k : e.kernels) check_factor(k.factor, k.name);
  check_factor(e.tensor_rate, "tensor rate");
  check_factor(e.unit_rate, "rate of vector units");
  check_factor(e.memory_bandwidth, "memory bandwidth");
  check_factor(e.memory_capacity, "memory capacity");
  check_factor(e.scale_up_bandwidth, "scale-up bandwidth");
  check_factor(e.scale_up_domain, "scale-up domain");
  check_factor(e.network_bandwidth, "network bandwidth");
  check_factor(e.host_speed, "host speed");
}

void limit_power(Device& device, Watts limit) {
  if (limit == device.power_limit.value) return;
  if (!device.power_limit.known() || !device.idle_power.known())
    throw Error({.file = device.name,
                 .path = "power.limit",
                 .found = "no published value",
                 .expected = "a power limit and an idle power that a cap can start from"});
  const double before = (device.power_limit.get() - device.idle_power.get()).si();
  const double after = (limit - device.idle_power.get()).si();
  if (!(after > 0) || !(before > 0))
    throw Error({.file = "power limit",
                 .found = to_text(limit),
                 .expected = fmt::format("more than the {} that an idle {} draws",
                                         to_text(device.idle_power.get()), device.name)});
  device.power_limit = {.value = limit,
                        .low = limit,
                        .high = limit,
                        .evidence = Evidence::assumed,
                        .source = device.power_limit.source,
                        .reason = "what if"};
}

// Curves serve slots of their own kind and of others that have none. A curve whose slots all change
// alike is changed where it is; else the changed slots get one of their own.
void speed_up(Cluster& cluster, const WhatIf& edit) {
  Calibration& calibration = cluster.calibration;
  const Factors factors = factors_of(edit.kernels);
  constexpr std::size_t per_kind = std::size_t{format_count} * library_count;
  std::map<std::pair<std::uint16_t, double>, std::uint16_t> faster;
  std::vector<std::vector<double>> served(calibration.curves.size());
  for (std::size_t slot = 0; slot < calibration.index.size(); ++slot) {
    std::vector<double>& all = served[calibration.index[slot]];
    const double factor = factors[slot / per_kind];
    if (std::find(all.begin(), all.end(), factor) == all.end()) all.push_back(factor);
  }
  for (std::size_t slot = 0; slot < calibration.index.size(); ++slot) {
    const double factor = factors[slot / per_kind];
    const std::uint16_t curve = calibration.index[slot];
    if (factor == 1) continue;
    const auto [at, added] = faster.try_emplace({curve, factor}, curve);
    if (added) {
      if (served[curve].size() > 1) {
        at->second = static_cast<std::uint16_t>(calibration.curves.size());
        calibration.curves.push_back(calibration.curves[curve]);
      }
      Curve& changed = calibration.curves[at->second];
      const double energy =
          edit.kernel_energy == SpeedupEnergy::with_time
              ? 1 / factor
              : faster_work_energy(cluster.device, calibration, changed.format,
                                   changed.tensor_efficiency * changed.energy_factor, factor);
      scale_curve(changed, factor, energy);
    }
    calibration.index[slot] = at->second;
  }
}

void widen_domain(ScaleUp& up, double factor) {
  if (factor == 1) return;
  const double wanted = std::round(static_cast<double>(up.domain) * factor);
  const std::int64_t before = up.domain;
  up.domain = std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted));
  // Chips of as many ports as now: a smaller domain needs fewer (wider ones need larger chips or
  // more levels, of which nothing is known here).
  if (up.domain >= before || up.levels.size() != 1) return;
  Sourced<std::int64_t>& chips = up.levels[0].switches;
  if (chips.known()) chips.value = (chips.get() * up.domain + before - 1) / before;
}

void speed_network(Fabric& fabric, double factor) {
  scale(fabric.scale_out.nic_bandwidth, factor);
  for (Tier& tier : fabric.scale_out.tiers) scale(tier.uplink_bandwidth, factor);
  scale(fabric.sites.bandwidth, factor);
}

}  // namespace

std::vector<std::string> speedup_names() {
  std::vector<std::string> names = work_kind_text.names();
  for (const std::string_view group : {product_group, attention_group, memory_group})
    names.emplace_back(group);
  return names;
}

std::vector<KernelSpeedup> kernel_speedups_from(std::string_view text) {
  constexpr double most_factor = 1e6;  // as of every other hypothetical part
  const std::vector<std::string> names = speedup_names();
  std::vector<KernelSpeedup> kernels;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    const std::string name(item.substr(0, equals));
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error({.found = in_quotes(name),
                   .expected = "a kind of kernel and its speedup, such as gemm=1.15",
                   .nearest = nearest_name(name, names)});
    for (const KernelSpeedup& k : kernels)
      if (k.name == name)
        throw Error({.found = fmt::format("{} twice", name), .expected = "each kind once"});
    const std::string number(equals == std::string_view::npos ? "" : item.substr(equals + 1));
    std::size_t used = 0;
    double factor = 0;
    try {
      factor = std::stod(number, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != number.size() || !(factor > 0) || !(factor <= most_factor))
      throw Error({.path = name,
                   .found = in_quotes(number),
                   .expected = "a factor above 0, at most a million"});
    kernels.push_back({name, factor});
  }
  if (kernels.empty())
    throw Error({.found = "nothing", .expected = "kinds of kernels, such as gemm=1.15"});
  return kernels;
}

namespace {

void change(Cluster& c, const WhatIf& edit) {
  check_factors(edit);
  const Device before = c.device;
  if (!edit.kernels.empty()) speed_up(c, edit);
  for (auto& rate : c.device.tensor_rate) scale(rate, edit.tensor_rate);
  scale(c.device.vector_rate, edit.unit_rate);
  scale(c.device.special_function_per_second, edit.unit_rate);
  scale(c.device.l2_bandwidth, edit.unit_rate);
  scale(c.device.memory_bandwidth, edit.memory_bandwidth);
  scale(c.device.memory_capacity, edit.memory_capacity);
  scale(c.device.memory_usable, edit.memory_capacity);
  scale(c.device.scale_up_bandwidth, edit.scale_up_bandwidth);
  scale(c.fabric.scale_up.bandwidth, edit.scale_up_bandwidth);
  for (auto& axis : c.fabric.scale_up.axis_links) scale(axis, edit.scale_up_bandwidth);
  widen_domain(c.fabric.scale_up, edit.scale_up_domain);
  if (edit.network_bandwidth != 1) speed_network(c.fabric, edit.network_bandwidth);
  if (edit.power_limit) limit_power(c.device, *edit.power_limit);
  follow_device(c.calibration, before, c.device);
}

void change(Stack& s, const WhatIf& edit) {
  check_factor(edit.host_speed, "host speed");
  for (auto* time :
       {&s.host.dispatch, &s.host.moe_sync, &s.host.softmax_fallback, &s.host.layer_sync,
        &s.host.step_overhead, &s.host.debug.per_rank, &s.host.debug.per_remote_rank})
    scale(*time, 1 / edit.host_speed);
  if (!edit.whole_graphs) return;
  s.host.launch = LaunchMode::full_graph;
  s.host.blocking_launches = false;
  for (auto* time : {&s.host.moe_sync, &s.host.layer_sync}) *time = unstated(Seconds(0));
  s.host.sync_exposed = unstated(0.0);
}

}  // namespace

void change(Scenario& scenario, const WhatIf& edit) {
  change(scenario.cluster, edit);
  change(scenario.stack, edit);
}

Scenario with(Scenario scenario, const WhatIf& edit) {
  change(scenario, edit);
  return scenario;
}
Cluster with(Cluster cluster, const WhatIf& edit) {
  change(cluster, edit);
  return cluster;
}
Stack with(Stack stack, const WhatIf& edit) {
  change(stack, edit);
  return stack;
}

std::vector<std::string> premises(const WhatIf& e) {
  std::vector<std::string> texts;
  if (!e.kernels.empty())
    texts.emplace_back(e.kernel_energy == SpeedupEnergy::as_before
                           ? "Faster kernels do the same operations for the same energy at the "
                             "same clock, so that "
                             "at the board's power limit the clock falls and they gain less."
                           : "Faster kernels need as much less energy as they need less time, as "
                             "products with fewer operations do.");
  if (e.tensor_rate != 1)
    texts.emplace_back(
        "An operation costs at full clocks what it cost, whatever the peak; at the board's power "
        "limit wider units run at a lower clock.");
  if (e.scale_up_domain != 1)
    texts.emplace_back("A link of the scale-up domain is as fast and as near in the other domain.");
  if (e.network_bandwidth != 1)
    texts.emplace_back(
        "Switches and links between sites are faster with the NICs; latencies stay.");
  if (e.memory_capacity != 1)
    texts.emplace_back(
        "The layout stays as it is: capacity pays through layouts that did not fit.");
  if (e.power_limit)
    texts.emplace_back(
        "Under another power limit tensor work runs at the clock that the limit sustains, its "
        "energy with the clock squared down to half the limit; kernels that wait for memory keep "
        "their speed.");
  if (e.whole_graphs)
    texts.emplace_back(
        "The whole iteration is one CUDA graph that reads nothing back to the host: at most this, "
        "since dropless experts must be routed on the device for it.");
  return texts;
}

Seconds step_time(const Scenario& s) {
  return to_seconds(step(step_context(s), s.model, s.job, s.layout, s.stack).step);
}

}  // namespace orrery
