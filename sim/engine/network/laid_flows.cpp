// SPDX-License-Identifier: Apache-2.0
// Lays out flows of groups, or tunes those that lie there already.
#include "sim/engine/network/laid_flows.h"

#include <utility>

namespace orrery {
namespace {

constexpr std::size_t most_kept = 8;  // a job has fewer kinds of groups that cross domains
constexpr std::size_t most_uses = std::size_t{1} << 22;  // of links, of those kept: 100 MB

}  // namespace

LaidFlows::LaidFlows(const Fabric& fabric, JobGround job, Conditions conditions,
                     const FlowOptions& options)
    : fabric_(fabric),
      job_(std::move(job)),
      conditions_(std::move(conditions)),
      options_(options) {}

const LaidFlows::Laid& LaidFlows::of(const Collective& collective, const CollectiveTime& alone) {
  const Way way{.message = collective.kind == CollectiveKind::send_receive,
                .algorithm = alone.algorithm,
                .domains = collective.group.domains,
                .domain_step = collective.group.domain_step};
  for (Kept& kept : kept_)
    if (kept.way == way && kept.laid.ground.retune(alone, kept.laid.range)) return kept.laid;
  FlowGround ground(fabric_, job_, conditions_, options_);
  const FlowRange range = ground.add(collective, alone);
  uses_ += ground.table().uses.size();
  while (!kept_.empty() && (kept_.size() == most_kept || uses_ > most_uses)) {
    uses_ -= kept_.back().laid.ground.table().uses.size();
    kept_.pop_back();
  }
  kept_.push_front({way, {std::move(ground), range}});
  return kept_.front().laid;
}

}  // namespace orrery
