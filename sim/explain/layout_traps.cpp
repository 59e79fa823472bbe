// SPDX-License-Identifier: Apache-2.0
// Finds traps of layouts: needless recompute, split groups, idle accelerators, shapes that do not
// fill tiles, formats that do not pay.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw_models/kernel/kernel_parts.h"
#include "sim/base/text/words.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/kernels.h"
#include "sim/explain/trap_rules.h"
#include "workloads/parameters/weight_split.h"

namespace orrery {
namespace {

// The best of some layouts.
struct Better {
  Layout layout;
  double gain = 0;
};

std::optional<Better> best_of(const TrapSearch& search, const std::vector<Layout>& layouts) {
  std::optional<Better> best;
  for (const Layout& layout : layouts) {
    Scenario other = search.scenario();
    other.layout = layout;
    const auto gain = search.gain(other);
    if (gain && (!best || *gain > best->gain)) best = {layout, *gain};
  }
  return best;
}

void needless_recompute(TrapSearch& search) {
  const Scenario& s = search.scenario();
  if (!is_training(s.job.task) || s.layout.recompute == Recompute::none) return;
  Layout none = s.layout, core = s.layout;
  none.set({.recompute = Recompute::none});
  none.recompute_layers = core.recompute_layers = 0;
  core.set({.recompute = Recompute::selective});
  std::vector<Layout> less = {none};
  if (!(core == s.layout)) less.push_back(core);
  if (s.layout.recompute == Recompute::full) {
    const std::int64_t most = s.model.layer_count() / s.layout.pp;
    const std::int64_t now = s.layout.recompute_layers > 0 ? s.layout.recompute_layers : most;
    for (const std::int64_t layers : {now / 4, now / 2, now * 3 / 4}) {
      if (layers < 1 || layers >= now) continue;
      less.push_back(s.layout);
      less.back().recompute_layers = layers;
    }
  }
  const auto best = best_of(search, less);
  if (!best || !search.worth(best->gain)) return;
  std::string remedy = to_text(best->layout.recompute_choice()) + " recompute";
  if (best->layout.recompute == Recompute::none) remedy = "no recompute";
  if (best->layout.recompute_layers > 0)
    remedy = fmt::format("full recompute of {} layers a stage", best->layout.recompute_layers);
  search.add(
      {.id = "needless-recompute",
       .sentence = fmt::format("Memory has room for less recompute: {} in place of {}: {}.", remedy,
                               to_text(s.layout.recompute_choice()), faster_text(best->gain)),
       .remedy = remedy,
       .gain = best->gain,
       .evidence = fmt::format("both simulated; memory keeps {} free",
                               short_percent(search.options().memory_reserve))});
}

// Norms inside linear layers cannot run again alone: the program skips them without a word.
void recompute_without_effect(TrapSearch& search) {
  const Scenario& s = search.scenario();
  if (!is_training(s.job.task) || !s.layout.recomputes(RecomputeModule::layernorm)) return;
  for (const LayerClass& layer : s.model.classes) {
    const NormModules own = norm_modules(s.stack, s.layout, layer);
    if (own.mixer || own.ffn) return;
  }
  search.add({.id = "recompute-without-effect",
              .sentence = fmt::format("Recompute of layernorm saves nothing here: {} makes every "
                                      "norm of this model part of the linear layer behind it and "
                                      "runs none of them again.",
                                      s.stack.framework),
              .remedy = "recompute of other modules",
              .evidence = "megatron-gpt-layer-specs"});
}

void tensor_parallel_over_domains(TrapSearch& search) {
  const Scenario& s = search.scenario();
  const Placement placement = place(s.layout, s.cluster.fabric);
  if (placement.tensor.domains <= 1) return;
  std::vector<Layout> others;
  for (std::int64_t by = 2; by <= s.layout.tp; ++by) {
    if (s.layout.tp % by != 0) continue;
    Layout data = s.layout;
    data.tp /= by;
    data.dp *= by;
    Layout pipeline = s.layout;
    pipeline.tp /= by;
    pipeline.pp *= by;
    pipeline.stage_layers.clear();
    for (const Layout& other : {data, pipeline}) {
      if (unplaceable_reason(other, s.cluster.fabric)) continue;
      if (place(other, s.cluster.fabric).tensor.domains == 1) others.push_back(other);
    }
  }
  const auto best = best_of(search, others);
  std::string sentence = fmt::format(
      "TP{} crosses {} scale-up domains of {} accelerators: every layer's collectives "
      "go over the network",
      s.layout.tp, placement.tensor.domains, s.cluster.fabric.scale_up.domain);
  const bool faster = best && search.worth(best->gain);
  // A slower remedy is none: then the layout is what memory leaves.
  if (best && !faster) return;
  if (faster)
    sentence += fmt::format("; TP{} PP{} DP{}: {}", best->layout.tp, best->layout.pp,
                            best->layout.dp, faster_text(best->gain));
  search.add({.id = "tensor-parallel-over-domains",
              .sentence = sentence + ".",
              .remedy = faster ? to_text(best->layout) : "a smaller TP",
              .gain = faster ? std::optional(best->gain) : std::nullopt,
              .evidence = faster ? "both simulated"
                                 : "from the placement; no smaller TP that fits was found"});
}

void idle_in_domains(TrapSearch& search) {
  const Scenario& s = search.scenario();
  const std::int64_t domain = s.cluster.fabric.scale_up.domain;
  const std::int64_t used = place(s.layout, s.cluster.fabric).ranks_per_domain;
  if (s.layout.gpus() <= domain || used >= domain) return;
  const double gain = static_cast<double>(domain) / static_cast<double>(used) - 1;
  search.add({.id = "idle-in-domains",
              .sentence = fmt::format(
                  "{} of {} accelerators of each scale-up domain are used, {} idle as spares: a "
                  "layout whose groups fill {} does at most {} more on the same racks.",
                  used, domain, domain - used, domain, short_percent(gain)),
              .remedy = fmt::format("groups that divide {}", domain),
              .gain = gain,
              .at_most = true,
              .evidence = "counted: accelerators of a domain over those in use"});
}

void slow_precision(TrapSearch& search) {
  const Scenario& s = search.scenario();
  const ResolvedDevice device = s.cluster.device.resolved();
  const Format format = linear_format(s.layout.precision);
  const bool has = device.tensor_rate[static_cast<std::size_t>(format)].si() > 0;
  Layout plain = s.layout;
  plain.precision = PrecisionRecipe::bf16;
  const bool has_bf16 = device.tensor_rate[static_cast<std::size_t>(Format::bf16)].si() > 0;
  if (is_sixteen_bit(s.layout.precision)) {
    if (has || s.layout.precision == PrecisionRecipe::fp16) return;
    plain.precision = PrecisionRecipe::fp16;
  } else if (!has_bf16) {
    return;
  }
  Scenario other = s;
  other.layout = plain;
  if (auto stack = search.stack(s.stack.name, s.stack.release, plain.precision))
    other.stack = *stack;
  const auto gain = search.gain(other);
  if (has && (!gain || *gain < 0)) return;  // it pays: nothing to say
  const bool small = s.model.hidden < 4096;
  std::string why = has ? "costs more in quantise kernels than its products gain"
                        : fmt::format(
                              "has no units on {}, which runs it at the rate of a wider "
                              "format",
                              device.name);
  if (has && small) why += fmt::format(" (hidden size {})", s.model.hidden);
  std::string sentence = fmt::format("{} {}", to_text(s.layout.precision), why);
  const std::string remedy(to_text(plain.precision));
  if (search.worth(gain))
    sentence += fmt::format("; {} is {}", remedy, faster_text(*gain));
  else if (has)
    sentence += fmt::format("; {} is as fast", remedy);
  search.add(
      {.id = has ? "precision-does-not-pay" : "precision-without-units",
       .sentence = sentence + ".",
       .remedy = remedy,
       .gain = search.worth(gain) ? gain : std::nullopt,
       .evidence = has ? "both simulated" : "the accelerator's catalogue entry; both simulated"});
}

std::int64_t up_to(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Rows of 128 bytes and more than that a rank: 64 elements of 16 bits.
void off_multiples(TrapSearch& search) {
  const Scenario& s = search.scenario();
  constexpr std::int64_t grid = 64;
  Scenario padded = s;
  std::vector<std::string> changes;
  const std::int64_t vocab = up_to(s.model.vocab, grid * vocabulary_ways(s.stack, s.layout));
  // Programs that fill the table up themselves leave nothing to gain.
  if (local_vocabulary(s.model, s.stack, s.layout) % grid != 0 && vocab != s.model.vocab &&
      static_cast<double>(vocab) < 1.02 * static_cast<double>(s.model.vocab)) {
    changes.push_back(fmt::format("vocabulary {} to {}", s.model.vocab, vocab));
    padded.model.vocab = vocab;
  }
  for (LayerClass& layer : padded.model.classes) {
    if (layer.ffn.kind == FfnKind::none || layer.ffn.width <= 0) continue;
    const std::int64_t ranks = layer.ffn.kind == FfnKind::moe ? s.layout.etp : s.layout.tp;
    const std::int64_t width = up_to(layer.ffn.width, grid * ranks);
    if (width == layer.ffn.width ||
        static_cast<double>(width) > 1.05 * static_cast<double>(layer.ffn.width))
      continue;
    changes.push_back(fmt::format("feed-forward width {} to {}", layer.ffn.width, width));
    layer.ffn.width = width;
  }
  if (changes.empty()) return;
  const auto gain = search.gain(padded);
  if (!search.worth(gain)) return;
  std::string list = changes.front();
  for (std::size_t i = 1; i < changes.size(); ++i) list += ", " + changes[i];
  search.add({.id = "off-multiples",
              .sentence = fmt::format("Dimensions off the 64-element grid take slower kernels; "
                                      "padded ({}): {} in spite of the added work.",
                                      list, faster_text(*gain)),
              .remedy = "padding: " + list,
              .gain = gain,
              .evidence = "both simulated; measured products off the 16- and 64-byte grids"});
}

// Rows of an expert's product, the fewest of the step's; 0: no grouped products.
std::pair<double, Format> rows_of_experts(const Scenario& s) {
  const StepContext context = step_context(s);
  double rows = 0;
  Format format = Format::bf16;
  for (const UsedKernel& used : step_kernels(context, s.model, s.job, s.layout, s.stack)) {
    const Work& w = used.kernel.work;
    if (w.kind != WorkKind::grouped_gemm || w.role != GemmRole::forward || w.m <= 0) continue;
    if (rows > 0 && static_cast<double>(w.m) >= rows) continue;
    rows = static_cast<double>(w.m);
    format = w.input;
  }
  return {rows, format};
}

void few_tokens_per_expert(TrapSearch& search) {
  const Scenario& s = search.scenario();
  if (!is_training(s.job.task) || !s.model.has_experts()) return;
  const auto [rows, format] = rows_of_experts(s);
  if (rows <= 0) return;
  const ResolvedDevice device = s.cluster.device.resolved();
  // Below this an expert's weights take longer to read than its rows to multiply.
  const double ridge =
      tensor_rate(device, format) * bytes_per_element(format) / (2 * device.memory_bandwidth.si());
  if (rows >= ridge) return;
  std::vector<Layout> others;
  for (const std::int64_t by : {2, 4}) {
    Layout more = s.layout, wider = s.layout;
    more.micro_batch *= by;
    wider.ep *= by;
    others.insert(others.end(), {more, wider});
  }
  const auto best = best_of(search, others);
  const bool faster = best && search.worth(best->gain);
  if (!faster && search.share(Label::expert) < 0.05) return;
  std::string sentence = fmt::format(
      "An expert's product has {:.0f} rows; below {:.0f} its weights take longer to read than its "
      "rows to multiply on {}",
      rows, ridge, device.name);
  std::string remedy = "more tokens a microbatch";
  if (faster) {
    remedy = best->layout.ep != s.layout.ep
                 ? fmt::format("EP{}", best->layout.ep)
                 : fmt::format("micro batch {}", best->layout.micro_batch);
    sentence += fmt::format("; {}: {}", remedy, faster_text(best->gain));
  }
  search.add({.id = "few-tokens-per-expert",
              .sentence = sentence + ".",
              .remedy = remedy,
              .gain = faster ? std::optional(best->gain) : std::nullopt,
              .evidence = faster ? "both simulated; tensor rate over memory bandwidth"
                                 : "tensor rate over memory bandwidth"});
}

}  // namespace

void find_layout_traps(TrapSearch& search) {
  needless_recompute(search);
  recompute_without_effect(search);
  tensor_parallel_over_domains(search);
  idle_in_domains(search);
  slow_precision(search);
  off_multiples(search);
  few_tokens_per_expert(search);
}

}  // namespace orrery
