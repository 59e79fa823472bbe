// SPDX-License-Identifier: Apache-2.0
// Writes a layout in words: which layers, ranks, sequences and gradients go where.
#include <fmt/format.h>

#include <algorithm>

#include "sim/app/report/advice.h"
#include "sim/app/report/parts.h"
#include "sim/base/text/words.h"
#include "sim/engine/placement.h"

namespace orrery {
namespace {

std::string layers_text(std::int64_t n) {
  if (n == 0) return "no layer";
  return fmt::format("{} {}", n, n == 1 ? "layer" : "layers");
}

// Neighbours with equally many layers.
struct Run {
  std::size_t first = 0, last = 0;
  std::int64_t layers = 0;
};

std::vector<Run> runs_of(const std::vector<std::int64_t>& layers) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (runs.empty() || runs.back().layers != layers[i]) runs.push_back({i, i, layers[i]});
    runs.back().last = i;
  }
  return runs;
}

// "stages 0 to 13 hold 8 layers each, 14 and 15 7". Many runs are cut: --json has the layout.
std::string runs_text(const char* what, const std::vector<std::int64_t>& layers) {
  const std::vector<Run> runs = runs_of(layers);
  if (runs.size() == 1)
    return fmt::format("every {} holds {}", what, layers_text(runs.front().layers));
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, runs.size()); ++i) {
    const Run& run = runs[i];
    const bool one = run.first == run.last;
    text += i == 0 ? fmt::format("{}{} ", what, one ? "" : "s") : ", ";
    text += one ? std::to_string(run.first)
                : fmt::format("{} {} {}", run.first, run.last == run.first + 1 ? "and" : "to",
                              run.last);
    text += fmt::format(" {} {}", one ? "holds" : "hold", layers_text(run.layers));
    if (!one && run.layers > 0) text += " each";
  }
  return runs.size() > most ? text + ", and so on" : text;
}

std::string stages_text(const Scenario& s) {
  const Layout& l = s.layout;
  const std::string all = layers_text(s.model.layer_count());
  if (l.pp == 1) return fmt::format("All {} on one stage.", all);
  std::vector<std::int64_t> positions, stages(static_cast<std::size_t>(l.pp));
  for (const Position& p : partition_layers(s.model, l, s.stack.sharding.partition))
    positions.push_back(p.layers);
  for (std::int64_t stage = 0; stage < l.pp; ++stage)
    for (std::int64_t chunk = 0; chunk < l.vpp; ++chunk)
      stages[static_cast<std::size_t>(stage)] +=
          positions[static_cast<std::size_t>(l.position(stage, chunk))];
  std::string text = fmt::format("{} over {} stages", all, l.pp);
  if (l.vpp > 1) text += fmt::format(" of {} chunks", l.vpp);
  text += fmt::format(": {}", runs_text("stage", stages));
  if (l.vpp > 1) {
    text += runs_of(positions).size() == 1
                ? fmt::format(", every chunk {}", layers_text(positions.front()))
                : fmt::format("; of the {} chunks in the model's order, {}", l.pp * l.vpp,
                              runs_text("chunk", positions));
    text += is_v_shaped(l.schedule)
                ? fmt::format(". Stage s holds chunks s and {} - s", 2 * l.pp - 1)
                : fmt::format(". Stage s holds chunks s, s + {}{}", l.pp,
                              l.vpp > 2 ? fmt::format(", s + {} and so on", 2 * l.pp) : "");
  }
  const bool v = is_v_shaped(l.schedule);
  return text +
         fmt::format(". The embedding is on stage 0, the head on stage {}.", v ? 0 : l.pp - 1);
}

std::string where_text(const GroupShape& g) {
  if (g.domains <= 1) return "inside one scale-up domain";
  if (g.per_domain <= 1) return fmt::format("over {} domains, one in each", g.domains);
  return fmt::format("over {} domains, {} in each", g.domains, g.per_domain);
}

std::string ranks_text(const Scenario& s) {
  const Layout& l = s.layout;
  const Placement p = place(l, s.cluster.fabric);
  std::vector<std::string> groups;
  const auto add = [&](const char* name, std::int64_t size, const GroupShape& g) {
    if (size > 1) groups.push_back(fmt::format("{}{} {}", name, size, where_text(g)));
  };
  add("TP", l.tp, p.tensor);
  add("CP", l.cp, p.context);
  add("DP", l.dp, p.data);
  add("EP", l.ep, p.expert);
  add("ETP", l.etp, p.expert_tensor);
  std::string text = fmt::format("Ranks count {}, the innermost first", to_text(l.rank_order));
  if (!groups.empty()) text += fmt::format(": {}", joined(groups, "; "));
  if (l.pp > 1)
    text +=
        fmt::format("; neighbouring stages are {} ranks apart", grouped(l.stride(Parallel::pp)));
  text += ".";
  const std::int64_t domain = s.cluster.fabric.scale_up.domain;
  if (l.gpus() > domain && p.ranks_per_domain < domain)
    text += fmt::format(" Of each scale-up domain {} of {} accelerators are used.",
                        p.ranks_per_domain, domain);
  return text;
}

std::string batch_text(const Scenario& s) {
  const Layout& l = s.layout;
  const std::int64_t count = l.microbatches(s.job);
  const std::string all = fmt::format("{} {} of {} {} a step.", grouped(count),
                                      count == 1 ? "microbatch" : "microbatches", l.micro_batch,
                                      l.micro_batch == 1 ? "sequence" : "sequences");
  if (l.dp == 1) return "The one replica runs " + all;
  return fmt::format("Each of {} data-parallel replicas runs {}", grouped(l.dp), all);
}

std::string gradients_text(const Scenario& s) {
  const Layout& l = s.layout;
  const std::int64_t ranks = l.dense_replicas();
  if (ranks <= 1) return "Gradients stay where they are: there is one replica.";
  if (l.zero_stage == 3)
    return fmt::format(
        "Parameters, gradients and optimizer are sharded over {} ranks, gathered "
        "and reduced layer by layer.",
        grouped(l.shard_group > 0 ? l.shard_group : ranks));
  const Bytes bucket =
      l.bucket > Bytes(0)
          ? l.bucket
          : std::max(s.stack.sharding.bucket.get(),
                     s.stack.sharding.bucket_per_rank.get() * static_cast<double>(ranks));
  constexpr const char* sharded[] = {"", ", which shard the optimizer,",
                                     ", which shard optimizer and gradients,"};
  std::string text = fmt::format("Gradients are reduced over {} ranks", grouped(ranks));
  if (l.cp > 1) text += fmt::format(" (DP {} x CP {})", l.dp, l.cp);
  text += sharded[l.zero_stage];
  return text + (s.stack.sharding.sharded_at_once && l.zero_stage > 0
                     ? " in one call."
                     : fmt::format(" in buckets of {}.", to_text(bucket)));
}

// Empty for dense models.
std::string experts_text(const Scenario& s) {
  std::int64_t experts = 0;
  for (const LayerClass& layer : s.model.classes) experts = std::max(experts, layer.ffn.experts);
  if (experts == 0) return "";
  const Layout& l = s.layout;
  const std::int64_t ranks = l.expert_replicas();
  std::string text =
      fmt::format("A rank holds {} of {} experts", (experts + l.redundant_experts) / l.ep, experts);
  if (l.redundant_experts > 0) text += fmt::format(" and {} copies", l.redundant_experts);
  if (l.etp > 1) text += fmt::format(", each split over {} ranks", l.etp);
  return text + (ranks > 1
                     ? fmt::format("; their gradients are reduced over {} ranks.", grouped(ranks))
                     : "; no other rank holds the same.");
}

// What is given up for memory; empty where nothing is.
std::string savings_text(const Scenario& s) {
  const Layout& l = s.layout;
  std::string text;
  if (l.recompute == Recompute::full)
    text = l.recompute_layers > 0 ? fmt::format("Of each stage {} run again backward.",
                                                layers_text(l.recompute_layers))
                                  : std::string("All layers run again backward.");
  else if (l.recompute == Recompute::selective)
    text = fmt::format("Run again backward: {}.", l.recompute_modules == core_attention_only
                                                      ? "core_attn"
                                                      : to_text(l.recompute_choice()));
  std::vector<std::string> away;
  if (l.offload_weights) away.emplace_back("weights");
  if (l.offload_optimizer)
    away.emplace_back(
        l.optimizer_offload_fraction < 1
            ? fmt::format("{:.3g}% of the optimizer's states", 100 * l.optimizer_offload_fraction)
            : "optimizer");
  if (l.offload_activations) away.emplace_back("activations");
  if (!away.empty())
    text += fmt::format("{}In host memory: {}.", text.empty() ? "" : " ", joined(away, ", "));
  return text;
}

}  // namespace

void add_plan(Document& document, const Scenario& s) {
  document.item(stages_text(s)).item(ranks_text(s));
  document.item(batch_text(s) + " " + gradients_text(s));
  for (const std::string& text : {experts_text(s), savings_text(s)})
    if (!text.empty()) document.item(text);
}

}  // namespace orrery
