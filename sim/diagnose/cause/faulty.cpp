// SPDX-License-Identifier: Apache-2.0
// Does to the state of a healthy run what each fault does.
// Figures without a source beside them are judged: how far a fault reaches into a class of kernels,
// how uneven it makes a step, how often the host waits. They set the shape of a signature; its
// strength is free (docs/design/diagnose.md).
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/diagnose/cause/causes.h"
#include "sim/engine/collectives/collectives.h"
#include "sim/engine/step/step.h"
#include "sim/explain/what_if.h"

namespace orrery {
namespace {

constexpr std::array<double, 6> rates_left = {1, 0.7, 0.5, 0.25, 0.1, 0.04};

// A time on links with 1/(1 + strength) of their rate, between those that were simulated.
double time_on(const std::vector<double>& left, const std::vector<double>& steps, double strength) {
  const double rate = 1 / (1 + strength);
  for (std::size_t i = 1; i < left.size(); ++i)
    if (rate >= left[i]) {
      const double at = (1 / rate - 1 / left[i - 1]) / (1 / left[i] - 1 / left[i - 1]);
      return steps[i - 1] + at * (steps[i] - steps[i - 1]);
    }
  return steps.back() * left.back() / rate;
}

// What was simulated of links at rates that are `left`.
struct OnLinks {
  const std::vector<double>&left, &steps, &kernels;
};

// A cable loses packets by chance. A call that takes longer by x in the mean differs from its like
// by up to x where it loses few, each of which costs much, and by less where it loses many; others'
// traffic comes and goes likewise. So far apart are calls, in shares of what they take longer, and
// so little is it known. Judged.
constexpr double lost_by_chance = 0.5, others_by_chance = 0.3, chance_known = 0.7;

void vary_calls(RunState& s, double strength, double share) {
  s.profiled.call_spread = std::hypot(s.profiled.call_spread, share * strength / (1 + strength));
  s.unknown.call_spread = chance_known;
}

// Losses come in bursts, which hit some calls and spare others: the middle one may take all of what
// calls take longer in the mean, or nothing of it.
void lose_packets(RunState& s, double strength) {
  vary_calls(s, strength, lost_by_chance);
  s.network = 1 + strength / 2;
  s.unknown.network = std::log(1 + strength) / 2;
}

void slow_links(RunState& s, const OnLinks& on, double strength, double& ratio) {
  // Steps were simulated for the prediction; the state may be of a faster or slower program.
  const double whole = on.steps.front();
  const double longer = (time_on(on.left, on.steps, strength) - whole) * s.step_s / whole;
  // Slower links than the slowest that were simulated leave no more beside kernels.
  const double slowest = 1 / on.left.back() - 1;
  const double left_of_kernels =
      time_on(on.left, on.kernels, std::min(strength, slowest)) / on.kernels.front();
  double kernels = 0;
  for (const RankState& r : s.ranks) kernels += r.products_s + r.attention_s + r.memory_bound_s;
  s.unknown.freed_s =
      std::max(0.0, 1 - left_of_kernels) * kernels / static_cast<double>(s.ranks.size());
  ratio = 1 + strength;
  s.expose(longer);
}

// Kernels of one rank, or of all of them, take longer by these shares.
struct Slower {
  double products = 0, attention = 0, memory_bound = 0, optimizer = 0;
};

double slow_kernels(RankState& r, const Slower& by) {
  const double before = r.compute_s();
  r.products_s *= 1 + by.products;
  r.attention_s *= 1 + by.attention;
  r.memory_bound_s *= 1 + by.memory_bound;
  r.optimizer_s *= 1 + by.optimizer;
  return r.compute_s() - before;
}

void slow_rank(RunState& s, std::size_t rank, const Slower& by) {
  s.delay(rank, slow_kernels(s.ranks[rank], by));
}

void slow_all(RunState& s, const Slower& by) {
  double longer = 0;
  for (RankState& r : s.ranks) longer = slow_kernels(r, by);
  s.lengthen(longer);
}

// How much of what all hosts are late one rank has and the other waits for, by chance. Judged:
// ranks meet in every layer, and each time the later one decides.
constexpr double chance = 0.5;

// The host of every rank is late: devices without work, and collectives that wait in turn for one
// rank and the other, each for a part of it.
void idle_all(RunState& s, double share) {
  const double longer = share * s.healthy_s;
  const double waited = s.alone ? 0 : 0.25;
  for (RankState& r : s.ranks) {
    r.idle_s += (1 - waited) * longer;
    r.exposed_s += waited * longer;
  }
  if (!s.alone) s.unknown.uneven_s += chance * longer;
  s.lengthen(longer);
}

// The hosts of all ranks are late together, so that none waits for another's device.
void idle_together(RunState& s, double share) {
  for (RankState& r : s.ranks) r.idle_s += share * s.healthy_s;
  s.lengthen(share * s.healthy_s);
}

// Attention is up to so much slower in 32 bits: 7 and 10 times, forward and backward, of OPT on an
// H200 (validation/faults/blind).
constexpr double fp32_attention = 10;

void faults_of_hosts(RunState& s, CauseKind kind, double x) {
  switch (kind) {
    case CauseKind::busy_host:
      idle_all(s, x);
      s.jitter *= 3;
      s.unknown.jitter = 1;  // some steps have it and some have not
      // Calls that launch are as late as all that the host does; how many there are is the
      // program's.
      s.launching = s.unknown.launching = 0.1 * (1 + x);
      return;
    case CauseKind::forced_sync:
      idle_all(s, x);
      s.host_waits = 2.0 * static_cast<double>(s.layers);
      return;
    case CauseKind::launch_blocking:
      idle_all(s, x);
      s.launching = 1.1;  // a call takes as long as its kernel and what that waits for
      return;
    case CauseKind::checked_calls:
      // A check of each operation reads its result once more, and the host waits for the answer.
      idle_all(s, x);
      s.host_waits = 12.0 * static_cast<double>(s.layers);
      for (RankState& r : s.ranks) r.memory_bound_s *= 1.5;
      return;
    case CauseKind::checked_collectives:
      // TORCH_DISTRIBUTED_DEBUG=DETAIL: hosts exchange a fingerprint of each call, all at once.
      return idle_together(s, x);
    case CauseKind::allocator_retries:
      idle_all(s, x);
      s.allocations = 60;
      return;
    case CauseKind::data_stall:
      s.data_s += x * s.healthy_s;
      if (s.profiled.loader_is_unnamed)
        for (RankState& r : s.ranks) r.idle_s += x * s.healthy_s;
      s.lengthen(x * s.healthy_s);
      return;
    case CauseKind::data_stall_at_times:
      s.occasional_s = x * s.healthy_s;
      s.stalls = 1;
      return;
    case CauseKind::checkpoint:
      s.occasional_s = x * s.healthy_s;
      s.saves = 1;
      return;
    default:
      return;
  }
}

// Another process has the device in turn: kernels lose slices of time, which readings tell apart
// from the rest of their time, but for products of a single step.
void take_turns(RunState& s, double x, std::size_t rank) {
  RankState& r = s.ranks[rank];
  r.suspended = x;
  const double longer = x * r.compute_s();
  if (s.profiled.products_hold_slices) r.products_s *= 1 + x;
  s.delay(rank, longer);
}

// One rank's experts have x more rows than the mean rank's: their products take as much longer, and
// what moves rows to and from them. How much of the other kernels and of all threads that is, is
// not known: none to all.
void uneven_gate(RunState& s, double x, std::size_t rank) {
  RankState& r = s.ranks[rank];
  const double products = x * r.experts_s / std::max(1e-12, r.products_s);
  r.work = 1 + x / 2;
  s.unknown.work = s.unknown.memory_bound = std::log1p(x) / 2;
  slow_rank(s, rank, {products, 0, x / 2, 0});
}

void faults_of_devices(RunState& s, CauseKind kind, double x, std::size_t rank, int form) {
  RankState& r = s.ranks[rank];
  switch (kind) {
    case CauseKind::busy_gpu:
      r.foreign_memory_gb = 0.7;
      s.jitter *= 1.5;
      // Two programs draw more power than one, and a board at its limit lowers its clock.
      r.clock /= 1.05;
      s.unknown.clock = 0.08;
      if (form == 0) return take_turns(s, x, rank);
      return slow_rank(s, rank, {x, x, x, x});
    case CauseKind::few_sms:
      s.jitter *= 3;
      s.unknown.jitter = 1;  // some steps have it and some have not
      if (form == 1) {
        r.alone_s = x * s.healthy_s;
        return s.delay(rank, x * s.healthy_s);
      }
      s.unknown.alone_s = form == 2;
      // Memory is kept busy by half of the processors.
      return slow_rank(s, rank, {x, x, 0.3 * x, 0.1 * x});
    case CauseKind::slow_gpu:
      if (form == 1) return slow_rank(s, rank, {x, x, 0.2 * x, 0.1 * x});
      return slow_rank(s, rank, {x, x, x, x});
    case CauseKind::low_clock:
      r.clock /= 1 + x;
      return slow_rank(s, rank, {x, x, 0.2 * x, 0.1 * x});
    case CauseKind::low_clocks:
      for (RankState& each : s.ranks) each.clock /= 1 + x;
      return slow_all(s, {x, x, 0.2 * x, 0.1 * x});
    case CauseKind::slow_memory:
      return slow_rank(s, rank, {0.1 * x, 0.1 * x, x, x});
    case CauseKind::imbalance:
      if (form == 1) return uneven_gate(s, x, rank);
      r.work = 1 + x;
      return slow_rank(s, rank, {x, x, x, 0});
    default:
      return;
  }
}

void faults_of_programs(RunState& s, CauseKind kind, double x) {
  switch (kind) {
    case CauseKind::fp32_by_mistake:
      s.fp32 = 1;
      // Attention in 32 bits has no fast kernel: products and softmaxes replace it, or a slow one.
      s.unknown.attention = std::log(fp32_attention);
      return slow_all(s, {x, 0, 2, 0});
    case CauseKind::mismatched_attention:
      return slow_all(s, {0, x, 0, 0});
    case CauseKind::mismatched_products:
      return slow_all(s, {x, 0, 0, 0});
    case CauseKind::small_buckets:
      s.call_bytes = std::min(1.0, s.tensor_bytes);
      return s.expose(x * s.healthy_s);
    case CauseKind::one_bucket:
      s.call_bytes = std::max(1.0, s.model_bytes);
      [[fallthrough]];
    case CauseKind::no_overlap:
      return s.expose(x * s.healthy_s);
    default:
      return;
  }
}

// Parts of another run lie a factor of two from those of the predicted, once its step is as long.
// Judged, and wide enough to hide the grid of ratios.
const double other_parts = std::log(2);

// All of a step takes `ratio` times as long.
void be_another(RunState& s, double ratio) {
  s.step_s *= ratio;
  for (RankState& r : s.ranks)
    for (double RankState::*part :
         {&RankState::products_s, &RankState::attention_s, &RankState::memory_bound_s,
          &RankState::optimizer_s, &RankState::exposed_s, &RankState::idle_s})
      r.*part *= ratio;
  s.unknown.parts = other_parts;
}

// Seconds of a gather that all ranks join, of the bytes that the run's collectives have.
double gather_s(const Scenario& s) {
  const std::int64_t ranks = s.cluster.gpus;
  const std::int64_t domain = std::clamp<std::int64_t>(s.cluster.fabric.scale_up.domain, 1,
                                                       std::max<std::int64_t>(1, ranks));
  if (ranks < 2) return 1;
  const Collective gather{.kind = CollectiveKind::all_gather,
                          .group = {.size = ranks,
                                    .per_domain = domain,
                                    .domains = std::max<std::int64_t>(1, ranks / domain),
                                    .span = ranks},
                          .bytes = Bytes(expected_call_bytes(s))};
  return collective_time(gather, s.cluster.fabric, s.cluster.collective_costs).time.si();
}

// A step, and the kernels of passes in it.
void add_step(const Scenario& s, std::vector<double>& steps, std::vector<double>& kernels) {
  const StepResult result = step(step_context(s), s.model, s.job, s.layout, s.stack);
  const StageBreakdown& stage =
      result.stages.at(static_cast<std::size_t>(pacing_stage(result.stages)));
  double seconds = 0;
  for (const LabelRow& row : label_table)
    if (row.kind == LabelKind::useful || row.kind == LabelKind::recompute)
      seconds += to_seconds(stage[row.label]).si();
  steps.push_back(to_seconds(result.step).si());
  kernels.push_back(std::max(1e-12, seconds));
}

}  // namespace

LinkSteps simulate_links(const Scenario& scenario) {
  LinkSteps out;
  const double whole = std::max(1e-12, gather_s(scenario));
  for (const double left : rates_left) {
    out.left.push_back(left);
    const Scenario slower = with(scenario, {.scale_up_bandwidth = left});
    add_step(slower, out.scale_up_s, out.scale_up_kernels_s);
    out.outside_by_scale_up.push_back(gather_s(slower) / whole);
    add_step(with(scenario, {.network_bandwidth = left}), out.network_s, out.network_kernels_s);
  }
  return out;
}

int forms_of(CauseKind kind, const RunState& healthy) {
  switch (kind) {
    case CauseKind::imbalance:
      return healthy.ranks.front().experts_s > 0 ? 2 : 1;
    case CauseKind::few_sms:
      return 3;
    case CauseKind::busy_gpu:
    case CauseKind::slow_gpu:
    case CauseKind::colliding_flows:
      return 2;
    default:
      return 1;
  }
}

bool is_possible(CauseKind kind, const RunState& healthy, const LinkSteps& links) {
  // Links that no step notices are not slow.
  const auto notices = [](const std::vector<double>& steps) {
    return steps.back() > 1.01 * steps.front();
  };
  switch (kind) {
    case CauseKind::straggling_host:
    case CauseKind::imbalance:
      return healthy.ranks.size() > 1;  // one rank is not later than others
    case CauseKind::data_stall:
    case CauseKind::data_stall_at_times:
    case CauseKind::checkpoint:
      return healthy.trains;
    case CauseKind::small_buckets:
    case CauseKind::one_bucket:
      return healthy.trains && !healthy.alone;
    case CauseKind::no_overlap:
    case CauseKind::checked_collectives:
      return !healthy.alone;
    case CauseKind::slow_scale_up:
      return notices(links.scale_up_s);
    case CauseKind::slow_nic:
    case CauseKind::bad_cable:
    case CauseKind::colliding_flows:
      return notices(links.network_s);
    default:
      return true;
  }
}

RunState with_fault(RunState s, CauseKind kind, double x, std::size_t rank, const LinkSteps& links,
                    int form) {
  switch (kind) {
    case CauseKind::healthy:
      break;
    case CauseKind::another_run:
      be_another(s, x);
      break;
    case CauseKind::straggling_host:
      s.ranks[rank].idle_s += x * s.healthy_s;
      s.delay(rank, x * s.healthy_s);
      break;
    case CauseKind::slow_scale_up:
      slow_links(s, {links.left, links.scale_up_s, links.scale_up_kernels_s}, x, s.link);
      // Collectives that leave a domain run over its links, too.
      s.network = time_on(links.left, links.outside_by_scale_up, x);
      break;
    case CauseKind::slow_nic:
    case CauseKind::bad_cable:
    case CauseKind::colliding_flows:
      slow_links(s, {links.left, links.network_s, links.network_kernels_s}, x, s.network);
      if (kind == CauseKind::bad_cable) lose_packets(s, x);
      // Flows of the run itself meet in every call, since their routes are hashed once.
      if (kind == CauseKind::colliding_flows && form == 1) vary_calls(s, x, others_by_chance);
      break;
    default:
      faults_of_hosts(s, kind, x);
      faults_of_devices(s, kind, x, rank, form);
      faults_of_programs(s, kind, x);
  }
  return s;
}

}  // namespace orrery
