// SPDX-License-Identifier: Apache-2.0
// Prices segments and joins streams.
#include "sim/engine/step/segment_time.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "hw_models/kernel/kernel_time.h"
#include "hw_models/power.h"
#include "sim/engine/step/overlap.h"

namespace orrery {
namespace {

std::size_t slot(Label label) { return static_cast<std::size_t>(label); }

Seconds stream_time(const PhaseTime& phase) {
  Seconds sum;
  for (Seconds s : phase.time) sum += s;
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
      t.body *= context.kernel_age;
      t.energy *= context.kernel_age;
      t.tensor *= context.kernel_age;
      break;
    default:
      break;
  }
  return t;
}

// Of a kernel that is no clocked work: what processors do. Memory and links have their own clocks.
Seconds paced_time(const KernelTime& t, Seconds gap) {
  if (t.tensor > Joules(0) || t.limit == Limit::host_link) return Seconds(0);
  return gap + (t.limit == Limit::memory ? t.time - t.body : t.time);
}

// What an operation adds, by what it is.
void price(const Operation& o, const Kernel& kernel, const PriceContext& context, PhaseTime& out) {
  const KernelTime t = aged_time(kernel, context);
  (o.side_kernel ? out.side_data : out.time[slot(o.label)]) +=
      o.count * (t.time + context.kernel_gap);
  out.energy += o.count * t.energy;
  if (!o.side_kernel) out.paced += o.count * paced_time(t, context.kernel_gap);
  if (t.tensor > Joules(0))
    out.clocked.push_back({.time = o.count * (t.time + context.kernel_gap),
                           .energy = o.count * t.tensor,
                           .hides = o.label == Label::gemm || o.label == Label::recompute});
}

void price(const Operation& o, const CollectiveOperation& own, const PriceContext& context,
           PhaseTime& out) {
  const auto collective = collective_of(own, context.placement);
  if (!collective) return;
  out.host += o.count * context.debug.of(collective->group);
  const CollectiveTime& t = context.network.price(*collective, context.stage);
  if (!own.told_again) {
    out.scale_up_bytes += o.count * t.scale_up_bytes;
    out.scale_out_bytes += o.count * t.scale_out_bytes;
  }
  const Seconds time = o.count * (t.time * own.exposed + own.rank_wait);
  if (own.group == GroupKind::tensor) out.outlasts_products += o.count * (1 - own.exposed) * t.time;
  if (own.beside_passes) {
    const Seconds whole = o.count * t.time;
    out.beside_passes += whole;
    out.hidden_by_passes += whole * (1 - own.exposed);
  }
  if (!own.beside_compute)
    out.time[slot(o.label)] += time;
  else if (o.label == Label::context_comm)
    out.side_context += time;
  else
    out.side_data += time;
}

void price(const Operation& o, const HostWait& wait, const PriceContext&, PhaseTime& out) {
  out.time[slot(Label::host)] += o.count * wait.time;
  out.host += o.count * wait.time;
}

// What the segment's side traffic and its own collectives cost each other beyond what each takes
// alone.
void add_contention(const Segment& segment, const PriceContext& context, PhaseTime& out) {
  std::vector<StreamItem> side;
  Seconds* side_time = &out.side_data;
  const Operation* waits = nullptr;  // the first collective that the compute stream waits for
  for (const Operation& o : segment.operations) {
    // What runs once in several microbatches meets nothing in most of them.
    const CollectiveOperation* own = o.collective();
    if (!own || std::round(o.count) < 1) continue;
    const auto collective = collective_of(*own, context.placement);
    if (!collective) continue;
    if (!own->beside_compute) {
      if (!waits) waits = &o;
      continue;
    }
    if (o.label == Label::context_comm) side_time = &out.side_context;
    for (std::int64_t left = std::llround(o.count); left > 0; --left)
      side.push_back({.collective = collective});
  }
  if (side.empty() || !waits) return;
  const TwoStreams run = run_streams(main_stream(segment, context), side, *context.flow);
  out.time[slot(waits->label)] += run.main_delay();
  *side_time += run.side_delay();
}

void price_all(std::span<const Operation> operations, const PriceContext& context, PhaseTime& out) {
  for (const Operation& o : operations)
    std::visit([&](const auto& work) { price(o, work, context, out); }, o.work);
}

// What a second stream adds to `beside`, the time of what it runs beside. Its starts and waits for
// memory pass meanwhile; units that work for it do not work for the first. It may end last, too.
PhaseTime shown_of(const SecondStream& second, Seconds beside, const PriceContext& context) {
  PhaseTime own;
  price_all(second.operations, context, own);
  if (!context.in_graph) return own;
  Seconds work;
  for (const Operation& o : second.operations)
    if (const Kernel* kernel = o.kernel()) work += o.count * aged_time(*kernel, context).body;
  const Seconds alone = total_time(own);
  const double share = std::min(1.0, std::max(work, alone - beside) / alone);
  for (Seconds& part : own.time) part *= share;
  own.paced *= share;
  for (ClockedWork& part : own.clocked) part.time *= share;
  return own;
}

// Tensor-parallel traffic hides beside the segment's products.
void hide_tensor(PhaseTime& out) {
  const Seconds products = out.time[slot(Label::gemm)] + out.time[slot(Label::recompute)];
  out.outlasts_products = std::max(Seconds(0), out.outlasts_products - products);
}

}  // namespace

Seconds total_time(const PhaseTime& phase) {
  Seconds sum;
  for (const Seconds& part : phase.time) sum += part;
  return sum;
}

Seconds compute_time(const PhaseTime& phase) {
  Seconds sum;
  for (Label label : compute_labels) sum += phase.time[slot(label)];
  return sum;
}

void cap_hidden_exchange(PhaseTime& phase, Seconds partner_compute) {
  if (phase.hidden_by_passes <= Seconds(0)) return;
  const double share = phase.hidden_by_passes / phase.beside_passes;
  const Seconds shown = share * std::max(Seconds(0), phase.beside_passes - partner_compute);
  phase.time[slot(Label::expert_comm)] += shown;
  phase.hidden_by_passes -= shown;
}

void PhaseTime::add(const PhaseTime& other, double times) {
  for (std::size_t i = 0; i < time.size(); ++i) time[i] += times * other.time[i];
  host += times * other.host;
  side_data += times * other.side_data;
  side_context += times * other.side_context;
  side_host += times * other.side_host;
  beside_passes += times * other.beside_passes;
  hidden_by_passes += times * other.hidden_by_passes;
  outlasts_products += times * other.outlasts_products;
  paced += times * other.paced;
  energy += times * other.energy;
  const std::size_t size = clocked.size() + other.clocked.size();
  if (size > clocked.capacity()) clocked.reserve(std::max(size, 2 * clocked.capacity()));
  for (const ClockedWork& work : other.clocked)
    clocked.push_back({times * work.time, times * work.energy, work.hides});
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
    case GroupKind::expert_ranks:
      return p.expert_ranks;
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

Bytes deduplicated_bytes(Bytes bytes, const TokenExchange& exchange, const GroupShape& group) {
  const double targets = static_cast<double>(group.domains > 1 ? group.domains : group.size);
  const auto copies = static_cast<double>(exchange.experts);
  return bytes * std::min(1.0, places_reached(exchange, targets) / copies);
}

std::optional<Collective> collective_of(const CollectiveOperation& o, const Placement& placement) {
  const GroupShape& group = group_shape(placement, o.group);
  if (group.size <= 1 || o.bytes <= Bytes(0)) return std::nullopt;
  Collective c{
      .kind = o.kind, .group = group, .bytes = o.bytes, .library = o.library, .skew = o.skew};
  // Libraries that are told of tokens know by themselves which copies are one.
  if (knows_tokens(o.library))
    c.exchange = o.exchange;
  else if (o.deduplicated)
    c.bytes = deduplicated_bytes(o.bytes, o.exchange, group);
  return c;
}

std::vector<StreamItem> main_stream(const Segment& segment, const PriceContext& context) {
  std::vector<StreamItem> items;
  Seconds compute;
  for (const Operation& o : segment.operations) {
    if (o.side_kernel) continue;
    if (const Kernel* kernel = o.kernel()) {
      compute += o.count * (aged_time(*kernel, context).time + context.kernel_gap);
    } else if (const HostWait* wait = o.host_wait()) {
      compute += o.count * wait->time;
    } else if (const CollectiveOperation* own = o.collective();
               own && !own->beside_compute && own->exposed > 0) {
      const auto collective = collective_of(*own, context.placement);
      if (!collective) continue;
      for (std::int64_t left = std::llround(o.count); left > 0; --left) {
        compute += own->rank_wait;
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
  out.host = segment.host_time;
  const std::span<const Operation> all(segment.operations);
  const SecondStream& second = segment.second;
  price_all(all.first(second.to), context, out);
  if (!second.operations.empty()) {
    PhaseTime before;
    price_all(all.first(second.from), context, before);
    out.add(shown_of(second, total_time(out) - total_time(before), context), 1);
  }
  price_all(all.subspan(second.to), context, out);
  hide_tensor(out);
  if (context.flow) add_contention(segment, context, out);
  return out;
}

PassTicks close_pass(PhaseTime p, const ResolvedDevice& device, double overlap_cost,
                     const HostPace& pace) {
  const Seconds compute = compute_time(p);
  // Context-parallel blocks move under the attention of the blocks already there.
  Seconds& context = p.time[slot(Label::context_comm)];
  context +=
      beside_attention(p.side_context, p.time[slot(Label::attention)], context, overlap_cost);
  const Seconds stream = stream_time(p);
  const auto shown_tensor = [&](Seconds hiding) {
    return std::max(Seconds(0), p.outlasts_products - hiding);
  };
  const auto with_side = [&](Seconds kernels, Seconds hiding) {
    return joined(kernels + shown_tensor(hiding), p.side_data, overlap_cost);
  };
  // Nothing of a training pass is paced: its small kernels were measured between large products.
  const SustainedPass under_limit =
      sustained_pass(stream, Seconds(0), p.energy, p.clocked, device, with_side);
  const Seconds tensor = shown_tensor(under_limit.hiding), kernels = stream + tensor;
  p.time[slot(Label::tensor_comm)] += tensor;
  const Seconds burst = joined(kernels, p.side_data, overlap_cost);
  p.time[slot(Label::data_comm)] += burst - kernels;
  const Seconds sustained = std::max(burst, under_limit.time);
  PassTicks out;
  if (sustained > burst && compute > Seconds(0)) {
    out.throttle = (compute + sustained - burst) / compute;
    for (Label label : compute_labels) p.time[slot(label)] *= out.throttle;
  }
  const Seconds whole = std::max(paced_by_hosts(sustained, p.host, pace), p.side_host);
  p.time[slot(Label::host)] += whole - sustained;
  out.energy = under_limit.energy;
  // The whole is rounded once, so that a faster part never makes it a picosecond longer; the
  // largest label takes what rounding the parts leaves.
  out.total = to_ticks(whole);
  Ticks rest = out.total;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < p.time.size(); ++i) {
    out.label[i] = to_ticks(p.time[i]);
    rest -= out.label[i];
    if (out.label[i] > out.label[largest]) largest = i;
  }
  out.label[largest] += rest;
  return out;
}

}  // namespace orrery
