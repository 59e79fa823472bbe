// SPDX-License-Identifier: Apache-2.0
// Makes traces of a predicted step and writes them.
#include "sim/chakra/step_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/errors/check.h"
#include "sim/base/output_file.h"
#include "sim/chakra/stage_passes.h"
#include "sim/chakra/stage_tail.h"
#include "sim/chakra/trace_file.h"
#include "sim/engine/step/step.h"

namespace orrery {
namespace {

constexpr const char* flag = "--chakra-out";
constexpr const char* trace_name = "step";

void check_ranks(const Scenario& s) {
  if (s.layout.gpus() > most_trace_ranks)
    throw Error({.file = flag,
                 .found = fmt::format("{} ranks", s.layout.gpus()),
                 .expected = fmt::format("at most {}, a file each", most_trace_ranks)});
}

void check_nodes(std::int64_t nodes) {
  if (nodes > most_trace_nodes)
    throw Error(
        {.file = flag,
         .found = fmt::format("{} nodes or more", nodes),
         .expected = fmt::format("at most {}: use a smaller global batch", most_trace_nodes)});
}

constexpr int group_slots = 2 * step_group_count;
int slot_of(StepGroup group, bool aside) {
  return static_cast<int>(group) + (aside ? step_group_count : 0);
}

// Groups of all ranks, named by numbers from 1 on: ASTRA-sim reads names as such. Those of traffic
// aside only where there is some.
void add_groups(StepTraces& out, const std::vector<bool>& wanted) {
  const Layout& layout = out.layout;
  std::map<std::pair<int, std::vector<std::int64_t>>, std::int32_t> known;
  for (std::int64_t rank = 0; rank < layout.gpus(); ++rank) {
    auto& own = out.group_of.emplace_back(group_slots, -1);
    for (int slot = 0; slot < group_slots; ++slot) {
      if (!wanted[static_cast<std::size_t>(slot)]) continue;
      const auto group = static_cast<StepGroup>(slot % step_group_count);
      std::vector<std::int64_t> ranks = group_ranks(layout, group, rank);
      if (ranks.size() < 2) continue;
      const auto next = static_cast<std::int32_t>(out.groups.size());
      const auto [at, added] = known.try_emplace({slot, ranks}, next);
      if (added)
        out.groups.push_back({.name = fmt::format("{}", next + 1), .ranks = std::move(ranks)});
      own[static_cast<std::size_t>(slot)] = at->second;
    }
  }
}

// All groups of layers, whether they are used or not: how many there are says who shares NICs.
std::vector<bool> wanted_groups(const std::vector<StageTrace>& stages) {
  std::vector<bool> wanted(group_slots, false);
  std::fill_n(wanted.begin(), step_group_count, true);
  for (const StageTrace& stage : stages)
    for (const StageNode& node : stage.nodes())
      if (node.type == TraceNodeType::collective)
        wanted[static_cast<std::size_t>(slot_of(node.group, node.aside))] = true;
  return wanted;
}

// What a reader of the groups' file adds, and the group of all ranks that it knows besides.
void add_to_ground(const Layout& layout, TraceGround& ground) {
  std::vector<std::int64_t> all;
  for (std::int64_t rank = 0; rank < layout.gpus(); ++rank) {
    all.push_back(rank);
    for (int g = 0; g < step_group_count; ++g)
      ground.add_group(group_ranks(layout, static_cast<StepGroup>(g), rank));
  }
  ground.add_group(all);
}

std::filesystem::path file_of(const std::filesystem::path& folder, std::int64_t rank) {
  return folder / fmt::format("{}.{}.et", trace_name, rank);
}

// A reader takes all traces of a folder.
void check_folder(const Scenario& s, const std::filesystem::path& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() != ".et") continue;
    bool own = false;
    for (std::int64_t rank = 0; rank < s.layout.gpus() && !own; ++rank)
      own = entry.path().filename() == file_of(folder, rank).filename();
    if (!own)
      throw Error({.file = folder.string(),
                   .found = entry.path().filename().string(),
                   .expected = "a folder without traces of another step"});
  }
}

}  // namespace

StepTraces step_traces(const Scenario& s) {
  check_ranks(s);
  const StepContext context = step_context(s);
  const StepCase asked{context, s.model, s.job, s.layout, s.stack};
  const PricedLayers layers = price_layers(asked);
  KnownChunks known;
  const PricedStep step{asked, layers, PricedChunks(asked, layers, layers.program->chunks, known)};
  const StepPipeline pipeline = step_pipeline(step);
  const StepResult result = asked.training() ? run_training(step) : run_inference(step);
  StepTraces out{.layout = s.layout, .ranks_per_domain = layers.placement.ranks_per_domain};
  TraceGround ground(s.cluster, s.layout.gpus(), out.ranks_per_domain);
  add_to_ground(s.layout, ground);
  TracePrices prices(out.layout, ground);
  const auto passes = step_passes(step, pipeline);
  std::int64_t nodes = 0;
  for (std::int64_t stage = 0; stage < s.layout.pp; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    check_nodes(nodes +
                static_cast<std::int64_t>(passes[at].size()) * s.layout.gpus() / s.layout.pp);
    StageTrace trace;
    PassTraces pass_traces(step, prices, stage, trace);
    std::optional<StageTail> tail;
    if (asked.training()) tail.emplace(step, result.stages[at], prices, stage);
    if (tail) tail->begin(trace);
    const StagePasses ended =
        add_passes(step, pipeline, passes[at], prices, pass_traces, stage, trace);
    if (tail) tail->end(ended, trace);
    nodes += static_cast<std::int64_t>(trace.nodes().size()) * s.layout.gpus() / s.layout.pp;
    check_nodes(nodes);
    out.stages.push_back(std::move(trace));
  }
  add_groups(out, wanted_groups(out.stages));
  return out;
}

std::vector<TraceNode> rank_nodes(const StepTraces& traces, std::int64_t rank) {
  const std::int64_t stride = traces.layout.stride(Parallel::pp);
  const std::int64_t stage = rank / stride % traces.layout.pp;
  const auto& groups = traces.group_of[static_cast<std::size_t>(rank)];
  std::vector<TraceNode> nodes;
  for (const StageNode& from : traces.stages[static_cast<std::size_t>(stage)].nodes()) {
    TraceNode node{.id = nodes.size(),
                   .name = from.name,
                   .type = from.type,
                   .after = {from.after.begin(), from.after.end()},
                   .micros = from.micros,
                   .on_host = from.on_host,
                   .collective = from.collective,
                   .bytes = from.bytes,
                   .tag = from.tag};
    if (from.type == TraceNodeType::collective) {
      const std::int32_t group = groups[static_cast<std::size_t>(slot_of(from.group, from.aside))];
      CHECK_THAT(group >= 0, "a collective of one rank");
      node.group = traces.groups[static_cast<std::size_t>(group)].name;
    } else if (from.type != TraceNodeType::compute) {
      node.peer = rank + (from.peer_stage - stage) * stride;
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

void check_step_traces(const Scenario& scenario, const std::filesystem::path& folder) {
  check_ranks(scenario);
  check_writable_folder(folder);
  check_folder(scenario, folder);
}

void write_step_traces(const Scenario& scenario, const std::filesystem::path& folder) {
  check_step_traces(scenario, folder);
  const StepTraces traces = step_traces(scenario);
  make_folder(folder);
  for (std::int64_t rank = 0; rank < scenario.layout.gpus(); ++rank)
    write_file(file_of(folder, rank),
               trace_bytes(rank_nodes(traces, rank), traces.ranks_per_domain));
  write_file(folder / trace_groups_name, trace_groups_text(traces.groups));
}

}  // namespace orrery
