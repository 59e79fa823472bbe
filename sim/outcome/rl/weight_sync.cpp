// SPDX-License-Identifier: Apache-2.0
// Prices the collectives that carry weights from training to generation.
#include "sim/outcome/rl/weight_sync.h"

#include "sim/engine/collectives/collectives.h"
#include "sim/engine/placement.h"

namespace orrery {
namespace {

constexpr double weight_bytes = 2;  // bfloat16

// Ranks that lie one behind the other.
GroupShape all_ranks(const Cluster& cluster) {
  const std::int64_t size = cluster.gpus;
  const std::int64_t per_domain = std::min(size, cluster.fabric.scale_up.domain);
  return {.size = size,
          .per_domain = per_domain,
          .domains = (size + per_domain - 1) / per_domain,
          .span = size};
}

// One rank of each stage.
GroupShape stage_ranks(const Layout& layout, const Placement& placement) {
  const std::int64_t stride = layout.stride(Parallel::pp);
  const std::int64_t per_domain =
      std::clamp<std::int64_t>(placement.ranks_per_domain / stride, 1, layout.pp);
  return {.size = layout.pp,
          .per_domain = per_domain,
          .domains = (layout.pp + per_domain - 1) / per_domain,
          .span = stride * (layout.pp - 1) + 1,
          .sharing = std::min(stride, placement.ranks_per_domain)};
}

}  // namespace

WeightSync predict_weight_sync(const RlJob& job) {
  const Layout& layout = job.training.layout;
  const Fabric& fabric = job.cluster.fabric;
  const Placement placement = place(layout, fabric);
  double experts = 0;
  for (std::int64_t i = 0; i < job.model.layer_count(); ++i)
    experts += static_cast<double>(layer_parameters(job.model, job.model.layer(i)).experts);
  const double dense = static_cast<double>(count_parameters(job.model).total) - experts;
  const auto time = [&](CollectiveKind kind, const GroupShape& group, double parameters) {
    if (group.size == 1 || parameters == 0) return Seconds(0);
    return collective_time(
               {.kind = kind, .group = group, .bytes = Bytes(parameters * weight_bytes)}, fabric,
               job.cluster.collective_costs)
        .time;
  };
  const auto tp = static_cast<double>(layout.tp);
  const auto ep = static_cast<double>(layout.ep * layout.etp);
  WeightSync out;
  out.weights = Bytes((dense + experts) * weight_bytes);
  out.gather =
      time(CollectiveKind::broadcast, stage_ranks(layout, placement), dense / tp + experts / ep) +
      time(CollectiveKind::all_gather, placement.tensor, dense) +
      time(CollectiveKind::all_gather, placement.expert_ranks, experts);
  if (job.split())
    out.send = time(CollectiveKind::broadcast, all_ranks(job.cluster), dense + experts);
  out.program =
      out.weights / (job.split() ? job.program.split_sync : job.program.shared_sync).get();
  return out;
}

}  // namespace orrery
