// SPDX-License-Identifier: Apache-2.0
// Lists what a layout decides, once: the key, the flag's help and where the value lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/text/enum_names.h"
#include "workloads/layout/layout.h"

namespace orrery {

// What counts as one change. DP follows from the sizes. A schedule comes with its chunks, ZeRO with
// its shard group, ranks' order with the accelerators used of a domain.
enum class Decision : std::uint8_t {
  tp,
  cp,
  pp,
  ep,
  etp,
  schedule,
  micro_batch,
  zero,
  recompute,
  offload,
  rows,  // sequence parallelism
  context,
  ranks,
  bucket,
  stages,
  precision,
  optimizer,
};
inline constexpr auto decision_text =
    enum_names<Decision>({"TP", "CP", "PP", "EP", "expert TP", "schedule", "microbatch", "ZeRO",
                          "recompute", "offload", "sequence parallelism", "context exchange",
                          "rank order", "bucket", "stages", "precision", "optimizer"});
inline constexpr int decision_count = decision_text.count;
constexpr std::string_view to_text(Decision d) { return decision_text[d]; }

enum class LayoutGroup : std::uint8_t { work, memory, software };  // headings of the help

struct LayoutField {
  const char* key;  // in JSON; the flag has '-' for '_'
  std::optional<Decision> decision;
  LayoutGroup group;
  const char* help;
  const char* words = "";  // that a shell offers
  std::int64_t least = 1;  // of a size
  // A finer setting of its decision, which a search leaves open where only the shape is given.
  bool finer = false;
  bool rare = false;  // in JSON only where it is not zero
};

// Where a value lies. `of` gives the value of a layout, `set` changes it. `limit` gives the place
// of the same name in the limits of a search, std::optional of the value; it is asked of what is
// `searched` alone.
template <bool is_searched, class Of, class Set, class Limit>
struct LayoutValue {
  static constexpr bool searched = is_searched;
  Of of;
  Set set;
  Limit limit;
};
template <bool searched = true, class Member>
constexpr auto layout_member(Member member) {
  const auto set = [member](Layout& l, auto value) { member(l) = std::move(value); };
  return LayoutValue<searched, Member, decltype(set), Member>{member, set, member};
}
template <class Of, class Set, class Limit>
constexpr auto layout_value(Of of, Set set, Limit limit) {
  return LayoutValue<true, Of, Set, Limit>{of, set, limit};
}

template <class Visit>
void visit_work(Visit&& visit) {
  using enum Decision;
  constexpr LayoutGroup work = LayoutGroup::work;
  visit(LayoutField{"tp", tp, work, "tensor parallel ranks"},
        layout_member([](auto& l) -> auto& { return l.tp; }));
  visit(LayoutField{"pp", pp, work, "pipeline stages"},
        layout_member([](auto& l) -> auto& { return l.pp; }));
  visit(LayoutField{"vpp", schedule, work, "chunks per stage (interleaved schedules)"},
        layout_member([](auto& l) -> auto& { return l.vpp; }));
  visit(LayoutField{"dp", std::nullopt, work, "data parallel ranks (default: what is left)"},
        layout_member([](auto& l) -> auto& { return l.dp; }));
  visit(LayoutField{"cp", cp, work, "context parallel ranks"},
        layout_member([](auto& l) -> auto& { return l.cp; }));
  visit(LayoutField{"ep", ep, work, "expert parallel ranks"},
        layout_member([](auto& l) -> auto& { return l.ep; }));
  visit(LayoutField{"etp", etp, work, "tensor parallel ranks inside experts"},
        layout_member([](auto& l) -> auto& { return l.etp; }));
  visit(LayoutField{"expert_replicas", std::nullopt, work,
                    "inference: copies of experts beyond one of each (redundant experts)", "", 0,
                    false, true},
        layout_member<false>([](auto& l) -> auto& { return l.redundant_experts; }));
  visit(LayoutField{"micro_batch", micro_batch, work, "sequences per microbatch"},
        layout_member([](auto& l) -> auto& { return l.micro_batch; }));
  visit(LayoutField{"schedule", schedule, work, schedule_words(), schedule_words()},
        layout_member([](auto& l) -> auto& { return l.schedule; }));
  visit(LayoutField{"sequence_parallel", rows, work, "default: as the stack does"},
        layout_member([](auto& l) -> auto& { return l.sequence_parallel; }));
  visit(
      LayoutField{"context_parallel", context, work, "ring, all-gather, all-to-all or hierarchical",
                  "ring all-gather all-to-all hierarchical"},
      layout_member([](auto& l) -> auto& { return l.context; }));
  visit(LayoutField{"context_inner", context, work, "hierarchical: ranks that trade rows for heads",
                    "", 0},
        layout_member([](auto& l) -> auto& { return l.context_inner; }));
  visit(LayoutField{"stage_layers", stages, work, "layers of each pipeline position", "", 0, true},
        layout_member([](auto& l) -> auto& { return l.stage_layers; }));
  visit(
      LayoutField{"rank_order", ranks, work, "innermost first (default tp-cp-dp-pp)", "", 0, true},
      layout_member([](auto& l) -> auto& { return l.rank_order; }));
  visit(LayoutField{"per_domain", ranks, work, "accelerators used of a scale-up domain (64 of 72)",
                    "", 0, true},
        layout_member([](auto& l) -> auto& { return l.per_domain; }));
}

template <class Visit>
void visit_memory(Visit&& visit) {
  using enum Decision;
  constexpr LayoutGroup memory = LayoutGroup::memory;
  visit(LayoutField{"zero", zero, memory, "ZeRO stage 0 to 3 (3: FSDP)", "0 1 2 3"},
        layout_member([](auto& l) -> auto& { return l.zero_stage; }));
  visit(LayoutField{"shard_group", zero, memory, "hybrid sharding: ranks that shard", "", 0, true},
        layout_member([](auto& l) -> auto& { return l.shard_group; }));
  visit(LayoutField{"recompute", recompute, memory,
                    "none, selective, full or modules (\"moe_act,layernorm\")",
                    "none selective full"},
        layout_value([](const Layout& l) { return l.recompute_choice(); },
                     [](Layout& l, RecomputeChoice choice) { l.set(choice); },
                     [](auto& l) -> auto& { return l.recompute; }));
  visit(LayoutField{"recompute_layers", recompute, memory,
                    "full recompute of this many layers of each chunk of a stage", "", 0, true},
        layout_member([](auto& l) -> auto& { return l.recompute_layers; }));
  visit(LayoutField{"offload", offload, memory, "to host memory: weights,optimizer,activations",
                    "weights optimizer activations"},
        layout_value([](const Layout& l) { return offload_of(l); },
                     [](Layout& l, const Offload& o) { l.set(o); },
                     [](auto& l) -> auto& { return l.offload; }));
  visit(LayoutField{"optimizer_offload_fraction", offload, memory,
                    "of an offloaded optimizer (default 1)"},
        layout_member<false>([](auto& l) -> auto& { return l.optimizer_offload_fraction; }));
  visit(LayoutField{"bucket", bucket, memory, "gradients that are reduced together (\"40 MB\")", "",
                    0, true},
        layout_member([](auto& l) -> auto& { return l.bucket; }));
}

template <class Visit>
void visit_software(Visit&& visit) {
  using enum Decision;
  constexpr LayoutGroup software = LayoutGroup::software;
  visit(LayoutField{"precision", precision, software,
                    "bf16 fp16 fp8[-delayed,-current,-blockwise] mxfp8 nvfp4; advise: any",
                    "bf16 fp16 fp8 fp8-delayed fp8-current fp8-blockwise mxfp8 nvfp4"},
        layout_member<false>([](auto& l) -> auto& { return l.precision; }));
  visit(LayoutField{"optimizer", optimizer, software,
                    "adam, adam-bf16, adam-8bit, muon, ...; advise: also several, or any",
                    "adam adam-bf16 adam-8bit muon"},
        layout_member<false>([](auto& l) -> auto& { return l.optimizer; }));
}

// Calls visit(LayoutField, LayoutValue) for each, in the order of layout_keys().
template <class Visit>
void visit_layout(Visit&& visit) {
  visit_work(visit);
  visit_memory(visit);
  visit_software(visit);
}

}  // namespace orrery
