// SPDX-License-Identifier: Apache-2.0
// Goes through the dimensions of the grid in their order.
#include "sim/advise/space/left_out.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/advise/space/search_options.h"

namespace orrery {
namespace {

bool offers(const SearchSubject& s, Split way) {
  return StackChoices::allows(s.stack.choices.splits, way);
}

void add_sizes(const SearchSubject& s, const SearchLimits& limits, std::vector<std::string>& out) {
  if (!limits.tp && offers(s, Split::tp) && s.gpus > s.fabric.scale_up.domain)
    out.emplace_back("tensor parallelism across scale-up domains");
  if (!limits.cp && offers(s, Split::cp) && s.gpus > 1)
    out.push_back(fmt::format("context ranks of fewer than {} tokens", least_tokens_per_rank));
  if (!limits.micro_batch)
    out.push_back(
        fmt::format("microbatches of more than {} sequences",
                    std::max(most_micro_batch, most_micro_batch_tokens / s.job.sequence)));
}

void add_stages(const SearchSubject& s, const SearchLimits& limits, std::vector<std::string>& out) {
  if (limits.pp == 1 || !offers(s, Split::pp)) return;
  const auto all = all_schedules();
  const bool loops = std::any_of(all.begin(), all.end(), [&](Schedule schedule) {
    return loops_over_chunks(schedule) && s.stack.has(schedule);
  });
  if (!limits.vpp && loops && s.model.layer_count() > most_chunks)
    out.push_back(fmt::format("more than {} chunks a stage", most_chunks));
  if (!limits.stage_layers && s.stack.choices.uneven_stages)
    out.push_back(fmt::format("stages of unequal layers but for up to {} fewer at either end",
                              most_layers_less));
  for (const Schedule schedule : all)
    if (!limits.schedule && traits(schedule).dominated && s.stack.has(schedule))
      out.emplace_back(to_text(schedule));
}

void add_shards(const SearchSubject& s, const SearchLimits& limits, std::vector<std::string>& out) {
  const StackChoices& c = s.stack.choices;
  const bool shards = StackChoices::allows(c.zero_stages, 3);
  if (!limits.zero_stage && limits.pp != 1 && offers(s, Split::pp) && shards &&
      s.stack.defaults.zero_stage != 3)
    out.emplace_back("ZeRO-3 beside pipelines");
  if (!limits.shard_group && shards && limits.zero_stage.value_or(3) == 3)
    out.emplace_back("groups of shards but all ranks and those of one scale-up domain");
  if (!limits.rank_order && c.rank_orders.empty()) out.emplace_back("rank orders with tp outside");
  if (!limits.bucket && c.bucket_size)
    out.emplace_back("gradient buckets but the program's and 12.5 MB doubled up to 1.6 GB");
  if (!limits.offload && c.offload_optimizer && c.offload_part && s.offload_optimizer)
    out.emplace_back("shares of an offloaded optimizer but eighths");
}

}  // namespace

std::vector<std::string> left_out(const SearchSubject& subject, const SearchLimits& limits) {
  std::vector<std::string> out;
  if (!is_training(subject.job.task)) return out;
  add_sizes(subject, limits, out);
  add_stages(subject, limits, out);
  add_shards(subject, limits, out);
  return out;
}

}  // namespace orrery
