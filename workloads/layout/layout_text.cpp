// SPDX-License-Identifier: Apache-2.0
// Knows how layouts and the names in them are written and read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "sim/base/json/tree.h"
#include "workloads/layout/layout.h"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 8> schedule_names = {
    "gpipe", "1f1b", "interleaved", "zero-bubble", "dualpipe", "zb-v", "dualpipe-v", "zb-h1"};
constexpr std::array<std::string_view, 3> recompute_names = {"none", "selective", "full"};
constexpr std::array<std::string_view, recompute_module_count> module_names = {
    "core_attn", "mlp", "moe", "moe_act", "layernorm", "mla_up_proj", "shared_experts"};
constexpr std::array<std::string_view, 7> precision_names = {
    "bf16", "fp16", "fp8-delayed", "fp8-current", "fp8-blockwise", "mxfp8", "nvfp4"};
constexpr std::array<std::string_view, 9> optimizer_names = {
    "adam",    "adam-bf16", "adam-bf16-moments", "adam-8bit", "muon", "adafactor",
    "shampoo", "sgd",       "rotating-adam"};
// Ours, and then Megatron-Core's words for the same.
constexpr std::array<std::string_view, 8> context_names = {
    "ring", "all-gather", "all-to-all", "hierarchical", "p2p", "allgather", "a2a", "a2a+p2p"};
constexpr std::array<std::string_view, 3> offload_names = {"weights", "optimizer", "activations"};

template <std::size_t N>
std::size_t index_in(const std::array<std::string_view, N>& names, const JsonValue& at) {
  return at.index_in({names.begin(), names.end()});
}

void read_offload(const JsonValue& at, Layout& layout) {
  const std::vector<JsonValue> parts = at.listed();
  layout.offload_nothing();
  for (const JsonValue& part : parts) {
    switch (index_in(offload_names, part)) {
      case 0:
        layout.offload_weights = true;
        break;
      case 1:
        layout.offload_optimizer = true;
        break;
      default:
        layout.offload_activations = true;
    }
  }
}

// Sizes and switches of a layout, under the keys that they have in JSON.
void read_sizes(const JsonValue& object, Layout& layout) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const auto size = [&](std::string_view key, std::int64_t low, std::int64_t& value) {
    if (const auto found = object.find(key)) value = found->integer(low, most);
  };
  size("tp", 1, layout.tp);
  size("pp", 1, layout.pp);
  size("vpp", 1, layout.vpp);
  size("dp", 1, layout.dp);
  size("cp", 1, layout.cp);
  size("ep", 1, layout.ep);
  size("etp", 1, layout.etp);
  size("micro_batch", 1, layout.micro_batch);
  size("context_inner", 0, layout.context_inner);
  size("shard_group", 0, layout.shard_group);
  size("recompute_layers", 0, layout.recompute_layers);
  size("per_domain", 0, layout.per_domain);
  if (const auto zero = object.find("zero"))
    layout.zero_stage = static_cast<int>(zero->integer(0, 3));
  if (const auto sp = object.find("sequence_parallel")) layout.sequence_parallel = sp->boolean();
  if (const auto stages = object.find("stage_layers")) {
    layout.stage_layers.clear();
    for (const JsonValue& n : stages->items()) layout.stage_layers.push_back(n.integer(0, most));
  }
}

constexpr std::string_view precision_title(PrecisionRecipe precision) {
  constexpr std::array<std::string_view, 7> titles = {
      "BF16", "FP16", "FP8-delayed", "FP8-current", "FP8-blockwise", "MXFP8", "NVFP4"};
  return titles[static_cast<std::size_t>(precision)];
}

}  // namespace

std::vector<std::string> offloaded(const Layout& layout) {
  std::vector<std::string> parts;
  if (layout.offload_weights) parts.emplace_back(offload_names[0]);
  if (layout.offload_optimizer) parts.emplace_back(offload_names[1]);
  if (layout.offload_activations) parts.emplace_back(offload_names[2]);
  return parts;
}

std::string offload_text(const Layout& layout) {
  std::vector<std::string> parts = offloaded(layout);
  for (std::string& part : parts)
    if (part == offload_names[1] && layout.optimizer_offload_fraction < 1)
      part += fmt::format("({:.4g})", layout.optimizer_offload_fraction);
  return fmt::to_string(fmt::join(parts, ","));
}

std::string_view to_text(Schedule v) { return schedule_names[static_cast<std::size_t>(v)]; }
std::string_view to_text(Recompute v) { return recompute_names[static_cast<std::size_t>(v)]; }
std::string_view to_text(PrecisionRecipe v) { return precision_names[static_cast<std::size_t>(v)]; }
std::string_view to_text(Optimizer v) { return optimizer_names[static_cast<std::size_t>(v)]; }
std::string_view to_text(ContextKind v) { return context_names[static_cast<std::size_t>(v)]; }

std::string_view to_text(RecomputeModule v) { return module_names[static_cast<std::size_t>(v)]; }

std::string to_text(RecomputeChoice v) {
  if (v.recompute != Recompute::selective || v.modules == core_attention_only)
    return std::string(to_text(v.recompute));
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < module_names.size(); ++i)
    if (v.modules.has(static_cast<RecomputeModule>(i))) names.push_back(module_names[i]);
  return fmt::format("{}", fmt::join(names, ","));
}

Schedule schedule_from(const JsonValue& at) {
  for (const char* name : {"interleaved-zero-bubble", "zero-bubble-interleaved", "zb-vpp"})
    if (at.is_string() && at.text() == name)
      at.fail(
          "a schedule that is modelled, such as zero-bubble, zb-v or interleaved",
          fmt::format("\"{}\", zero bubbles over several chunks a stage: not modelled yet", name));
  const std::size_t index = index_in(schedule_names, at);
  return index + 1 == schedule_names.size() ? Schedule::zero_bubble : static_cast<Schedule>(index);
}

RecomputeChoice recompute_from(const JsonValue& at) {
  if (at.is_string()) {
    const std::string text = at.text();
    for (std::size_t i = 0; i < recompute_names.size(); ++i)
      if (text == recompute_names[i]) return {.recompute = static_cast<Recompute>(i)};
  }
  const std::vector<JsonValue> parts = at.listed();
  if (parts.empty()) at.fail("none, selective, full or a list of modules");
  // A single word may be meant as any of the names, a list holds modules only.
  if (at.is_string() && parts.size() == 1) {
    std::vector<std::string> names(recompute_names.begin(), recompute_names.end());
    names.insert(names.end(), module_names.begin(), module_names.end());
    static_cast<void>(at.one_of(names));
  }
  RecomputeChoice choice{.recompute = Recompute::selective, .modules = {}};
  for (const JsonValue& part : parts)
    choice.modules.add(static_cast<RecomputeModule>(index_in(module_names, part)));
  return choice;
}
RecomputeModule recompute_module_from(const JsonValue& at) {
  return static_cast<RecomputeModule>(index_in(module_names, at));
}
PrecisionRecipe precision_from(const JsonValue& at) {
  if (at.is_string() && at.text() == "fp8") return PrecisionRecipe::fp8_delayed;
  return static_cast<PrecisionRecipe>(index_in(precision_names, at));
}
Optimizer optimizer_from(const JsonValue& at) {
  return static_cast<Optimizer>(index_in(optimizer_names, at));
}
ContextKind context_kind_from(const JsonValue& at) {
  return static_cast<ContextKind>(index_in(context_names, at) % 4);
}

namespace {
const std::initializer_list<std::string_view> keys_of_layouts = {"tp",
                                                                 "pp",
                                                                 "vpp",
                                                                 "dp",
                                                                 "cp",
                                                                 "ep",
                                                                 "etp",
                                                                 "micro_batch",
                                                                 "sequence_parallel",
                                                                 "zero",
                                                                 "shard_group",
                                                                 "schedule",
                                                                 "recompute",
                                                                 "recompute_layers",
                                                                 "precision",
                                                                 "optimizer",
                                                                 "context_parallel",
                                                                 "context_inner",
                                                                 "offload",
                                                                 "optimizer_offload_fraction",
                                                                 "stage_layers",
                                                                 "rank_order",
                                                                 "per_domain",
                                                                 "bucket"};
// "1-3x26-1": of equal neighbours one and how many.
std::string runs_of(const std::vector<std::int64_t>& counts) {
  std::vector<std::string> parts;
  for (std::size_t i = 0, next = 0; i < counts.size(); i = next) {
    while (next < counts.size() && counts[next] == counts[i]) ++next;
    parts.push_back(next - i > 1 ? fmt::format("{}x{}", counts[i], next - i)
                                 : fmt::to_string(counts[i]));
  }
  return fmt::to_string(fmt::join(parts, "-"));
}

}  // namespace

const std::vector<std::string>& layout_keys() {
  static const std::vector<std::string> keys(keys_of_layouts.begin(), keys_of_layouts.end());
  return keys;
}

Layout read_layout_over(const JsonValue& object, const Layout& base) {
  Layout layout = base;
  read_sizes(object, layout);
  if (const auto v = object.find("schedule")) {
    layout.schedule = schedule_from(*v);
    if (is_v_shaped(layout.schedule) && !object.find("vpp")) layout.vpp = 2;
  } else if (layout.vpp > 1 && layout.schedule == Schedule::one_f_one_b) {
    layout.schedule = Schedule::interleaved;
  } else if (layout.vpp == 1 && layout.schedule == Schedule::interleaved) {
    layout.schedule = Schedule::one_f_one_b;
  }
  if (const auto v = object.find("recompute")) layout.set(recompute_from(*v));
  if (const auto v = object.find("precision")) layout.precision = precision_from(*v);
  if (const auto v = object.find("optimizer")) layout.optimizer = optimizer_from(*v);
  if (const auto v = object.find("context_parallel")) layout.context = context_kind_from(*v);
  if (const auto v = object.find("offload")) read_offload(*v, layout);
  if (const auto v = object.find("optimizer_offload_fraction")) {
    layout.optimizer_offload_fraction = v->number();
    if (!(layout.optimizer_offload_fraction > 0 && layout.optimizer_offload_fraction <= 1))
      v->fail("a share above 0 and up to 1");
    if (!layout.offload_optimizer && layout.optimizer_offload_fraction < 1)
      v->fail("1, or \"optimizer\" in offload");
  }
  if (const auto v = object.find("rank_order")) layout.rank_order = rank_order_from(*v);
  if (const auto v = object.find("bucket")) layout.bucket = v->quantity<Bytes>();
  return layout;
}

Layout read_layout(const JsonValue& object) {
  object.expect_only(keys_of_layouts);
  return read_layout_over(object, {});
}

SortedJson to_json(const Layout& layout) {
  return {
      {"tp", layout.tp},
      {"pp", layout.pp},
      {"vpp", layout.vpp},
      {"dp", layout.dp},
      {"cp", layout.cp},
      {"ep", layout.ep},
      {"etp", layout.etp},
      {"micro_batch", layout.micro_batch},
      {"sequence_parallel", layout.sequence_parallel},
      {"zero", layout.zero_stage},
      {"shard_group", layout.shard_group},
      {"schedule", to_text(layout.schedule)},
      {"recompute", to_text(layout.recompute_choice())},
      {"recompute_layers", layout.recompute_layers},
      {"precision", to_text(layout.precision)},
      {"optimizer", to_text(layout.optimizer)},
      {"context_parallel", to_text(layout.context)},
      {"context_inner", layout.context_inner},
      {"offload", offloaded(layout)},
      {"optimizer_offload_fraction", layout.optimizer_offload_fraction},
      {"stage_layers", layout.stage_layers},
      {"rank_order", to_text(layout.rank_order)},
      {"per_domain", layout.per_domain},
      {"bucket", layout.bucket > Bytes(0) ? SortedJson(fmt::format("{:.0f} B", layout.bucket.si()))
                                          : SortedJson()}};
}

std::string to_json_text(const Layout& layout) { return to_json(layout).dump(); }

std::string to_text(const Layout& l) {
  std::vector<std::string> words;
  const auto add = [&](std::string_view name, std::int64_t size, std::int64_t above) {
    if (size > above) words.push_back(fmt::format("{}{}", name, size));
  };
  add("TP", l.tp, 0);
  if (l.tp > 1 && !l.sequence_parallel) words.emplace_back("no-SP");
  add("PP", l.pp, 0);
  add("VPP", l.vpp, is_v_shaped(l.schedule) ? 2 : 1);  // a V has two chunks
  add("DP", l.dp, 0);
  add("CP", l.cp, 1);
  if (l.cp > 1 && l.context == ContextKind::hierarchical)
    words.back() += fmt::format("(all-to-all {})", l.context_inner);
  else if (l.cp > 1 && l.context != ContextKind::ring)
    words.back() += fmt::format("({})", to_text(l.context));
  add("EP", l.ep, 1);
  add("ETP", l.etp, 1);
  add("MB", l.micro_batch, 0);
  words.push_back(fmt::format("ZeRO-{}", l.zero_stage));
  if (l.shard_group > 0) words.back() += fmt::format("/{}", l.shard_group);
  // 1F1B, and interleaved where VPP says it already, go without saying.
  if (l.schedule != Schedule::one_f_one_b && l.schedule != Schedule::interleaved) {
    words.emplace_back(to_text(l.schedule));
  }
  if (l.recompute == Recompute::selective) words.push_back(to_text(l.recompute_choice()));
  if (l.recompute == Recompute::full) {
    words.push_back(l.recompute_layers > 0 ? fmt::format("full({})", l.recompute_layers) : "full");
  }
  words.emplace_back(precision_title(l.precision));
  if (l.optimizer != Optimizer::adam_fp32) words.emplace_back(to_text(l.optimizer));
  if (const std::string away = offload_text(l); !away.empty())
    words.push_back(fmt::format("offload:{}", away));
  if (!l.stage_layers.empty()) {
    words.push_back(fmt::format("stages:{}", runs_of(l.stage_layers)));
  }
  if (!l.rank_order.is_default()) words.push_back(fmt::format("order:{}", to_text(l.rank_order)));
  if (l.per_domain > 0) words.push_back(fmt::format("per-domain:{}", l.per_domain));
  if (l.bucket > Bytes(0)) words.push_back(fmt::format("bucket:{}", to_text(l.bucket)));
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace orrery
