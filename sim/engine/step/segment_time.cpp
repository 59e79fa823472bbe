// SPDX-License-Identifier: Apache-2.0
// Prices segments and joins streams.
#include "sim/engine/step/segment_time.h"

#include <algorithm>
#include <cmath>

#include "hw_models/kernel/kernel_time.h"
#include "hw_models/power.h"
#include "sim/engine/step/overlap.h"

namespace orrery {
namespace {

std::size_t slot(Label label) { return static_cast<std::size_t>(label); }

double stream_seconds(const PhaseTime& phase) {
  double sum = 0;
  for (double s : phase.seconds) sum += s;
  return sum;
}

// Products and attention come from libraries, which a stack's release pins. A slower kernel keeps
// the processors busy for longer: its energy grows with its time.
KernelTime aged_time(const Kernel& kernel, const PriceContext& context) {
  KernelTime t = kernel_time(kernel, context.device, context.step.calibration);
  switch (kernel.work.kind) {
    case WorkKind::gemm:
    case WorkKind::grouped_gemm:
    case WorkKind::attention_forward:
    case WorkKind::attention_backward:
      t.time *= context.kernel_age;
      t.energy *= context.kernel_age;
      t.tensor *= context.kernel_age;
      break;
    default:
      break;
  }
  return t;
}

void price_kernel(const Operation& o, const PriceContext& context, PhaseTime& out) {
  const KernelTime t = aged_time(o.kernel, context);
  out.seconds[slot(o.label)] += o.count * (t.time.si() + context.kernel_gap);
  out.energy += o.count * t.energy.si();
  if (t.tensor > Joules(0))
    out.clocked.push_back({o.count * (t.time + Seconds(context.kernel_gap)), o.count * t.tensor});
}

void price_collective(const Operation& o, const PriceContext& context, PhaseTime& out) {
  const auto collective = collective_of(o, context.placement);
  if (!collective) return;
  out.host += o.count * context.debug.of(collective->group);
  const CollectiveTime& t = context.network.price(*collective, context.stage);
  if (!o.told_again) {
    out.scale_up_bytes += o.count * t.scale_up_bytes.si();
    out.scale_out_bytes += o.count * t.scale_out_bytes.si();
  }
  const double seconds = o.count * (t.time.si() * o.exposed + o.seconds);
  if (o.beside_passes) {
    const double whole = o.count * t.time.si();
    out.beside_passes += whole;
    out.hidden_by_passes += whole * (1 - o.exposed);
  }
  if (!o.beside_compute)
    out.seconds[slot(o.label)] += seconds;
  else if (o.label == Label::context_comm)
    out.side_context += seconds;
  else
    out.side_data += seconds;
}

// What the segment's side traffic and its own collectives cost each other beyond what each takes
// alone.
void add_contention(const Segment& segment, const PriceContext& context, PhaseTime& out) {
  std::vector<StreamItem> side;
  double* side_seconds = &out.side_data;
  const Operation* waits = nullptr;  // the first collective that the compute stream waits for
  for (const Operation& o : segment.operations) {
    // What runs once in several microbatches meets nothing in most of them.
    if (o.kind != OperationKind::collective || std::round(o.count) < 1) continue;
    const auto collective = collective_of(o, context.placement);
    if (!collective) continue;
    if (!o.beside_compute) {
      if (!waits) waits = &o;
      continue;
    }
    if (o.label == Label::context_comm) side_seconds = &out.side_context;
    for (double left = std::round(o.count); left > 0; --left)
      side.push_back({.collective = collective});
  }
  if (side.empty() || !waits) return;
  const TwoStreams run = run_streams(main_stream(segment, context), side, *context.flow);
  out.seconds[slot(waits->label)] += run.main_delay().si();
  *side_seconds += run.side_delay().si();
}

}  // namespace

double compute_seconds(const PhaseTime& phase) {
  double sum = 0;
  for (Label label : compute_labels) sum += phase.seconds[slot(label)];
  return sum;
}

void cap_hidden_exchange(PhaseTime& phase, double partner_compute) {
  if (phase.hidden_by_passes <= 0) return;
  const double share = phase.hidden_by_passes / phase.beside_passes;
  const double shown = share * std::max(0.0, phase.beside_passes - partner_compute);
  phase.seconds[slot(Label::expert_comm)] += shown;
  phase.hidden_by_passes -= shown;
}

void PhaseTime::add(const PhaseTime& other, double times) {
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += times * other.seconds[i];
  host += times * other.host;
  side_data += times * other.side_data;
  side_context += times * other.side_context;
  side_host += times * other.side_host;
  beside_passes += times * other.beside_passes;
  hidden_by_passes += times * other.hidden_by_passes;
  energy += times * other.energy;
  for (const ClockedWork& work : other.clocked)
    clocked.push_back({times * work.time, times * work.energy});
  scale_up_bytes += times * other.scale_up_bytes;
  scale_out_bytes += times * other.scale_out_bytes;
}

const GroupShape& group_shape(const Placement& p, GroupKind group) {
  switch (group) {
    case GroupKind::tensor:
      return p.tensor;
    case GroupKind::context:
      return p.context;
    case GroupKind::context_heads:
      return p.context_heads;
    case GroupKind::context_rings:
      return p.context_rings;
    case GroupKind::expert:
      return p.expert;
    case GroupKind::expert_tensor:
      return p.expert_tensor;
    case GroupKind::shard:
      return p.shard;
    case GroupKind::expert_shard:
      return p.expert_shard;
    case GroupKind::shard_replica:
      return p.shard_replica;
    case GroupKind::expert_shard_replica:
      return p.expert_shard_replica;
  }
  return p.tensor;
}

double deduplicated_bytes(double bytes, const TokenExchange& exchange, const GroupShape& group) {
  const double targets = static_cast<double>(group.domains > 1 ? group.domains : group.size);
  const auto copies = static_cast<double>(exchange.experts);
  return bytes * std::min(1.0, places_reached(exchange, targets) / copies);
}

std::optional<Collective> collective_of(const Operation& o, const Placement& placement) {
  const GroupShape& group = group_shape(placement, o.group);
  if (group.size <= 1 || o.bytes <= 0) return std::nullopt;
  Collective c{.kind = o.collective,
               .group = group,
               .bytes = Bytes(o.bytes),
               .library = o.collective_library,
               .skew = o.skew};
  // Libraries that are told of tokens know by themselves which copies are one.
  if (knows_tokens(o.collective_library))
    c.exchange = o.exchange;
  else if (o.deduplicated)
    c.bytes = Bytes(deduplicated_bytes(o.bytes, o.exchange, group));
  return c;
}

std::vector<StreamItem> main_stream(const Segment& segment, const PriceContext& context) {
  std::vector<StreamItem> items;
  Seconds compute;
  for (const Operation& o : segment.operations) {
    if (o.kind == OperationKind::kernel) {
      const KernelTime t = aged_time(o.kernel, context);
      compute += o.count * (t.time + Seconds(context.kernel_gap));
    } else if (o.kind == OperationKind::host_wait) {
      compute += Seconds(o.count * o.seconds);
    } else if (const auto collective = collective_of(o, context.placement);
               collective && !o.beside_compute && o.exposed > 0) {
      for (double left = std::round(o.count); left > 0; --left) {
        compute += Seconds(o.seconds);
        items.push_back({.compute = compute, .collective = collective});
        compute = {};
      }
    }
  }
  items.push_back({.compute = compute, .collective = std::nullopt});
  return items;
}

PhaseTime price_segment(const Segment& segment, const PriceContext& context) {
  PhaseTime out;
  out.host = segment.host_seconds;
  for (const Operation& o : segment.operations) {
    switch (o.kind) {
      case OperationKind::kernel:
        price_kernel(o, context, out);
        break;
      case OperationKind::collective:
        price_collective(o, context, out);
        break;
      case OperationKind::host_wait:
        out.seconds[slot(Label::host)] += o.count * o.seconds;
        out.host += o.count * o.seconds;
        break;
    }
  }
  if (context.flow) add_contention(segment, context, out);
  return out;
}

PassTicks close_pass(const PhaseTime& phase, const ResolvedDevice& device, double overlap_cost) {
  PhaseTime p = phase;
  const double compute = compute_seconds(p);
  // Context-parallel blocks move under the attention of the blocks already there.
  double& context = p.seconds[slot(Label::context_comm)];
  context += beside_attention(Seconds(p.side_context), Seconds(p.seconds[slot(Label::attention)]),
                              Seconds(context), overlap_cost)
                 .si();
  const double stream = stream_seconds(p);
  const auto with_side = [&](Seconds kernels) {
    return joined(kernels, Seconds(p.side_data), overlap_cost);
  };
  const double burst = with_side(Seconds(stream)).si();
  p.seconds[slot(Label::data_comm)] += burst - stream;
  const SustainedPass under_limit =
      sustained_pass(Seconds(stream), Joules(p.energy), p.clocked, device, with_side);
  const double sustained = std::max(burst, under_limit.time.si());
  PassTicks out;
  if (sustained > burst && compute > 0) {
    out.throttle = (compute + sustained - burst) / compute;
    for (Label label : compute_labels) p.seconds[slot(label)] *= out.throttle;
  }
  const double whole = std::max({sustained, p.host, p.side_host});
  p.seconds[slot(Label::host)] += whole - sustained;
  out.energy = under_limit.energy.si();
  // The whole is rounded once, so that a faster part never makes it a picosecond longer; the
  // largest label takes what rounding the parts leaves.
  out.total = to_ticks(Seconds(whole));
  Ticks rest = out.total;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < p.seconds.size(); ++i) {
    out.label[i] = to_ticks(Seconds(p.seconds[i]));
    rest -= out.label[i];
    if (out.label[i] > out.label[largest]) largest = i;
  }
  out.label[largest] += rest;
  return out;
}

}  // namespace orrery
