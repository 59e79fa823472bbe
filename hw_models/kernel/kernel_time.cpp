// SPDX-License-Identifier: Apache-2.0
// Times one kernel on one device: picks the formula, joins the limits, adds energy.
#include "hw_models/kernel/kernel_time.h"

#include <algorithm>

#include "hw_models/kernel/kernel_parts.h"
#include "hw_models/kernel/l2.h"
#include "sim/base/text/enum_names.h"

namespace orrery {

std::string_view to_text(Limit limit) {
  constexpr auto texts =
      enum_names<Limit>({"tensor", "vector", "special-function", "memory", "latency", "host-link"});
  return texts[limit];
}

namespace {

UnitTimes unit_times(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  switch (work.kind) {
    case WorkKind::gemm:
      return gemm_times(work, curve, device);
    case WorkKind::grouped_gemm:
      return grouped_gemm_times(work, curve, device);
    case WorkKind::attention_forward:
    case WorkKind::attention_backward:
      return attention_times(work, curve, device);
    case WorkKind::attention_decode:
      return decode_times(work, curve, device);
    case WorkKind::norm:
    case WorkKind::softmax:
    case WorkKind::elementwise:
    case WorkKind::rotary:
    case WorkKind::cross_entropy:
    case WorkKind::embedding:
    case WorkKind::router:
    case WorkKind::permute:
    case WorkKind::quantise:
    case WorkKind::optimizer:
    case WorkKind::copy:
    case WorkKind::host_copy:
      break;
  }
  return stream_times(work, curve, device);
}

// The expert layer without grouped kernels: one product after the other, each with its own start.
double starts(const Kernel& kernel) {
  if (kernel.library != Library::sequential_gemm) return 1;
  return static_cast<double>(std::max<std::int64_t>(1, kernel.work.groups));
}

Limit longest(const UnitTimes& t, double body, double fixed) {
  if (fixed > body) return Limit::latency;
  const double top = std::max({t.tensor, t.special, t.vector, t.memory});
  if (t.tensor >= top) return Limit::tensor;
  if (t.special >= top) return Limit::special_function;
  return t.vector >= top ? Limit::vector : Limit::memory;
}

// A format whose energy nobody measured costs what bf16 costs.
double energy_per_flop(const Calibration& calibration, Format format) {
  const auto& own = calibration.tensor_energy[static_cast<std::size_t>(format)];
  const auto& bf16 = calibration.tensor_energy[static_cast<std::size_t>(Format::bf16)];
  return own.value.value_or(bf16.value.value_or(JoulesPerFlop())).si();
}

// Rows that tensor cores multiply over those that there are.
double filling(const Work& work) {
  if (work.filled_m <= 0 || work.m <= 0) return 1;
  return static_cast<double>(work.filled_m) / static_cast<double>(work.m);
}

KernelTime host_copy_time(const Work& work, const Curve& curve, const ResolvedDevice& device,
                          const Calibration& calibration) {
  const double bytes = work.bytes_read + work.bytes_written;
  const double rate = device.host_bandwidth.si() * curve.memory_efficiency;
  const double body = rate > 0 ? (bytes + curve.saturation_bytes) / rate : 0;
  const double scale = *curve.scale.value;
  return {.time = Seconds((body + curve.fixed_seconds) * scale),
          .body = Seconds(body * scale),
          .limit = Limit::host_link,
          .energy = Joules(bytes * calibration.memory_energy.value.value_or(JoulesPerByte()).si())};
}

}  // namespace

// Norms, element-wise and the like: traffic over HBM (or L2 while it is small) and vector work.
// Little's law: until its first bytes arrive a kernel has what a full pipe holds left to fetch, of
// the memory or of the nearer L2. Where rows are known and each is one block's, few of them do not
// fill the pipe.
UnitTimes stream_times(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  UnitTimes t;
  const double bytes = work.bytes_read + work.bytes_written;
  const double slow = 1 / (device.memory_bandwidth.si() * curve.memory_efficiency);
  double per_byte = slow;
  if (curve.l2_efficiency > 0 && device.l2_bandwidth.si() > 0) {
    const double fast = std::min(slow, 1 / (device.l2_bandwidth.si() * curve.l2_efficiency));
    const double share = l2_share(Bytes(bytes), device.l2_capacity);
    per_byte = share * fast + (1 - share) * slow;
  }
  t.latency = curve.saturation_bytes * per_byte;
  t.latency += static_cast<double>(work.m) * curve.block_seconds;
  t.memory = bytes * per_byte;
  if (work.m > 0 && curve.stream_width > 0 && device.sm_count > 0) {
    const double filling = curve.stream_width * device.sm_count;  // rows that fill the pipe
    t.memory = combine(t.memory, t.memory * filling / static_cast<double>(work.m));
  }
  if (work.vector_flop > 0 && device.vector_rate.si() > 0)
    t.vector = work.vector_flop / (device.vector_rate.si() * curve.vector_efficiency);
  t.memory_work = bytes;
  return t;
}

// Watts above idle of processors that run anything; 0 where the board's limit is not known.
static double busy_power(const ResolvedDevice& device, const Calibration& calibration) {
  const double budget = device.power_limit.si() - device.idle_power.si();
  return std::max(0.0, budget) * calibration.busy_share.value.value_or(0.0);
}

KernelTime kernel_time(const Kernel& kernel, const ResolvedDevice& device,
                       const Calibration& calibration) {
  const Work& work = kernel.work;
  const Curve& curve = calibration.curve(work.kind, work.input, kernel.library);
  if (work.kind == WorkKind::host_copy) return host_copy_time(work, curve, device, calibration);
  const UnitTimes t = unit_times(work, curve, device);
  double body = combine(t.tensor, t.memory);
  if (t.special > 0) body = combine(body, t.special);
  if (t.vector > 0) body = combine(body, t.vector);
  body += t.exposed;
  const double fixed = curve.fixed_seconds * starts(kernel) + t.latency;
  const double tensor_energy = energy_per_flop(calibration, work.input) * curve.energy_factor;
  const double memory_energy = calibration.memory_energy.value.value_or(JoulesPerByte()).si();
  const double seconds = (body + fixed) * *curve.scale.value;
  // Tensor work at full rate draws more than busy processors do; a kernel that starves them does
  // not draw less.
  const double busy = seconds * busy_power(device, calibration);
  const double tensor = t.tensor_work * filling(work) * tensor_energy;
  const double streamed = t.memory_work * memory_energy;
  // At the limit tiles that are not full read weights as fast as their clock lets them.
  const double clocked = work.filled_m > 0 ? tensor + streamed : tensor;
  return {.time = Seconds(seconds),
          .body = Seconds(body * *curve.scale.value),
          .limit = longest(t, body, fixed),
          .energy = Joules(std::max(tensor, busy) + streamed),
          .tensor = Joules(tensor > busy ? clocked : 0)};
}

}  // namespace orrery
