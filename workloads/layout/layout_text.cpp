// SPDX-License-Identifier: Apache-2.0
// Writes and reads layouts and the names in them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "sim/base/json/tree.h"
#include "sim/base/text/enum_names.h"
#include "sim/base/text/words.h"
#include "workloads/layout/decisions.h"
#include "workloads/layout/layout.h"

namespace orrery {
namespace {

constexpr auto module_text = enum_names<RecomputeModule>(
    {"core_attn", "mlp", "moe", "moe_act", "layernorm", "mla_up_proj", "shared_experts"});
constexpr auto precision_text =
    enum_names<PrecisionRecipe>({"bf16", "fp16", "fp8-delayed", "fp8-current", "fp8-blockwise",
                                 "mxfp8", "nvfp4", "mxfp4", "int4", "int8"});
constexpr auto optimizer_text =
    enum_names<Optimizer>({"adam", "adam-bf16", "adam-bf16-moments", "adam-8bit", "muon",
                           "adafactor", "shampoo", "sgd", "rotating-adam"});
// Ours, and then Megatron-Core's words for the same.
constexpr auto context_text = enum_names<ContextKind>(
    {"ring", "all-gather", "all-to-all", "hierarchical"}, {{"p2p", ContextKind::ring},
                                                           {"allgather", ContextKind::all_gather},
                                                           {"a2a", ContextKind::all_to_all},
                                                           {"a2a+p2p", ContextKind::hierarchical}});
constexpr std::array<std::string_view, 3> offload_names = {"weights", "optimizer", "activations"};

Offload read_offload(const JsonValue& at) {
  Offload offload;
  for (const JsonValue& part : at.listed()) {
    const std::size_t which = part.index_in({offload_names.begin(), offload_names.end()});
    (which == 0 ? offload.weights : which == 1 ? offload.optimizer : offload.activations) = true;
  }
  return offload;
}

// The value of one field as JSON has it, checked by its type.
constexpr std::int64_t most_of_a_size = std::int64_t{1} << 40;
void read_value(const JsonValue& at, const LayoutField& field, std::int64_t& value) {
  value = at.integer(field.least, most_of_a_size);
}
void read_value(const JsonValue& at, const LayoutField&, int& value) {
  value = static_cast<int>(at.integer(0, 3));
}
void read_value(const JsonValue& at, const LayoutField&, bool& value) { value = at.boolean(); }
void read_value(const JsonValue& at, const LayoutField&, double& value) {
  value = at.number();
  if (!(value > 0 && value <= 1)) at.fail("a share above 0 and up to 1");
}
void read_value(const JsonValue& at, const LayoutField&, Bytes& value) {
  value = at.quantity<Bytes>();
}
void read_value(const JsonValue& at, const LayoutField&, std::vector<std::int64_t>& value) {
  value.clear();
  for (const JsonValue& n : at.items()) value.push_back(n.integer(0, most_of_a_size));
}
void read_value(const JsonValue& at, const LayoutField&, Schedule& value) {
  value = schedule_from(at);
}
void read_value(const JsonValue& at, const LayoutField&, RecomputeChoice& value) {
  value = recompute_from(at);
}
void read_value(const JsonValue& at, const LayoutField&, PrecisionRecipe& value) {
  value = precision_from(at);
}
void read_value(const JsonValue& at, const LayoutField&, Optimizer& value) {
  value = optimizer_from(at);
}
void read_value(const JsonValue& at, const LayoutField&, ContextKind& value) {
  value = context_kind_from(at);
}
void read_value(const JsonValue& at, const LayoutField&, Offload& value) {
  value = read_offload(at);
}
void read_value(const JsonValue& at, const LayoutField&, RankOrder& value) {
  value = rank_order_from(at);
}

template <class T>
SortedJson json_of(const T& value) {
  if constexpr (std::is_enum_v<T> || std::is_same_v<T, RankOrder> ||
                std::is_same_v<T, RecomputeChoice>)
    return to_text(value);
  else
    return value;
}
SortedJson json_of(const Bytes& bytes) {
  return bytes > Bytes(0) ? SortedJson(fmt::format("{:.0f} B", bytes.si())) : SortedJson();
}
SortedJson json_of(const Offload& offload) {
  Layout one;
  one.set(offload);
  return offloaded(one);
}

constexpr std::string_view precision_title(PrecisionRecipe precision) {
  constexpr std::array<std::string_view, 10> titles = {
      "BF16",  "FP16",  "FP8-delayed", "FP8-current", "FP8-blockwise",
      "MXFP8", "NVFP4", "MXFP4",       "INT4",        "INT8"};
  return titles[static_cast<std::size_t>(precision)];
}

}  // namespace

Offload offload_of(const Layout& l) {
  return {.weights = l.offload_weights,
          .optimizer = l.offload_optimizer,
          .activations = l.offload_activations,
          .fraction = l.optimizer_offload_fraction};
}

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
  return joined(parts, ",");
}

std::string_view to_text(Recompute v) { return recompute_kind_text[v]; }
std::string_view to_text(PrecisionRecipe v) { return precision_text[v]; }
std::string_view to_text(Optimizer v) { return optimizer_text[v]; }
std::string_view to_text(ContextKind v) { return context_text[v]; }
std::string_view to_text(RecomputeModule v) { return module_text[v]; }

std::string to_text(RecomputeChoice v) {
  if (v.recompute != Recompute::selective || v.modules == core_attention_only)
    return std::string(to_text(v.recompute));
  std::vector<std::string_view> names;
  for (int i = 0; i < recompute_module_count; ++i)
    if (const auto module = static_cast<RecomputeModule>(i); v.modules.has(module))
      names.push_back(to_text(module));
  return joined(names, ",");
}

Schedule schedule_from(const JsonValue& at) { return schedule_text.from(at); }

RecomputeChoice recompute_from(const JsonValue& at) {
  if (at.is_string())
    if (const auto recompute = recompute_kind_text.find(at.text()))
      return {.recompute = *recompute};
  const std::vector<JsonValue> parts = at.listed();
  if (parts.empty()) at.fail("none, selective, full or a list of modules");
  // A single word may be meant as any of the names, a list holds modules only.
  if (at.is_string() && parts.size() == 1) {
    std::vector<std::string> names = recompute_kind_text.names();
    for (std::string& module : module_text.names()) names.push_back(std::move(module));
    static_cast<void>(at.one_of(names));
  }
  RecomputeChoice choice{.recompute = Recompute::selective, .modules = {}};
  for (const JsonValue& part : parts) choice.modules.add(module_text.from(part));
  return choice;
}
RecomputeModule recompute_module_from(const JsonValue& at) { return module_text.from(at); }
PrecisionRecipe precision_from(const JsonValue& at) {
  if (at.is_string() && at.text() == "fp8") return PrecisionRecipe::fp8_delayed;
  return precision_text.from(at);
}
Optimizer optimizer_from(const JsonValue& at) { return optimizer_text.from(at); }
ContextKind context_kind_from(const JsonValue& at) { return context_text.from(at); }

namespace {
// "1-3x26-1": of equal neighbours one and how many.
std::string runs_of(const std::vector<std::int64_t>& counts) {
  std::vector<std::string> parts;
  for (std::size_t i = 0, next = 0; i < counts.size(); i = next) {
    while (next < counts.size() && counts[next] == counts[i]) ++next;
    parts.push_back(next - i > 1 ? fmt::format("{}x{}", counts[i], next - i)
                                 : fmt::to_string(counts[i]));
  }
  return joined(parts, "-");
}

}  // namespace

const std::vector<std::string>& layout_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    visit_layout([&](const LayoutField& field, const auto&) { all.emplace_back(field.key); });
    return all;
  }();
  return keys;
}

const char* schedule_words() {
  static const std::string words = joined(schedule_text.names(), " ");
  return words.c_str();
}

Layout read_layout_over(const JsonValue& object, const Layout& base) {
  Layout layout = base;
  visit_layout([&](const LayoutField& field, const auto& member) {
    const auto found = object.find(field.key);
    if (!found) return;
    auto value = member.of(std::as_const(layout));
    read_value(*found, field, value);
    member.set(layout, value);
  });
  if (object.find("schedule")) {
    if (is_v_shaped(layout.schedule) && !object.find("vpp")) layout.vpp = 2;
  } else if (layout.vpp > 1 && layout.schedule == Schedule::one_f_one_b) {
    layout.schedule = Schedule::interleaved;
  } else if (layout.vpp == 1 && layout.schedule == Schedule::interleaved) {
    layout.schedule = Schedule::one_f_one_b;
  }
  const auto share = object.find("optimizer_offload_fraction");
  if (share && !layout.offload_optimizer && layout.optimizer_offload_fraction < 1)
    share->fail("1, or \"optimizer\" in offload");
  return layout;
}

Layout read_layout(const JsonValue& object) {
  object.expect_only(layout_keys(), fmt::format("one of {}", joined(layout_keys(), ", ")));
  return read_layout_over(object, {});
}

SortedJson to_json(const Layout& layout) {
  SortedJson json = SortedJson::object();
  visit_layout([&](const LayoutField& field, const auto& member) {
    SortedJson value = json_of(member.of(layout));
    if (!field.rare || value != 0) json[field.key] = std::move(value);
  });
  return json;
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
  if (l.redundant_experts > 0) words.back() += fmt::format("+{}", l.redundant_experts);
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
  return joined(words, " ");
}

}  // namespace orrery
