// SPDX-License-Identifier: Apache-2.0
// Writes the parts that reports share.
#include "sim/app/report/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "sim/base/sorting.h"
#include "sim/base/text/words.h"
#include "sim/explain/explain.h"
#include "sim/outcome/extrapolation.h"
#include "sim/outcome/notes.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

std::string parameters_text(std::int64_t parameters) {
  const auto n = static_cast<double>(parameters);
  if (n >= 999.5e9) return fmt::format("{:.2f}T", n / 1e12);
  return n >= 999.5e6 ? fmt::format("{:.1f}B", n / 1e9) : fmt::format("{:.0f}M", n / 1e6);
}

std::string tokens_text(double tokens) {
  if (tokens >= 999.5e6) return fmt::format("{:.3g}G", tokens / 1e9);
  return tokens >= 999.5e3 ? fmt::format("{:.3g}M", tokens / 1e6) : grouped(tokens);
}

std::string job_text(const Scenario& s) {
  const Job& job = s.job;
  const std::int64_t replicas = s.layout.dp;
  const std::string all = grouped(job.batch * replicas);
  switch (job.task) {
    case Task::prefill:
      return fmt::format("prefill: {} prompts a replica ({} in all), each of {} tokens",
                         grouped(job.batch), all, grouped(job.sequence));
    case Task::decode:
      return fmt::format("decode: {} sequences a replica ({} in all), each with {} tokens before",
                         grouped(job.batch), all, grouped(job.context));
    case Task::pretrain:
    case Task::sft:
    case Task::lora:
      break;
  }
  std::string text(to_text(job.task));
  if (job.task == Task::lora) text += fmt::format(" of rank {}", job.lora_rank);
  if (job.mtp) text += " with multi-token prediction";
  if (job.attention_dropout > 0 || job.hidden_dropout > 0)
    text += fmt::format(" with dropout ({} in attention, {} after it)", job.attention_dropout,
                        job.hidden_dropout);
  return text + fmt::format(": {} of {} tokens a step ({} tokens)",
                            plural(job.global_batch, "sequence"), grouped(job.sequence),
                            tokens_text(tokens_per_step(job, 1)));
}

// What MFU counts of a token.
const char* convention(Task task) {
  switch (task) {
    case Task::decode:
      return "forward, with attention to all tokens before";
    case Task::prefill:
      return "forward, causal attention halved";
    case Task::lora:
      return "2 x forward, causal attention halved, no recompute";
    case Task::pretrain:
    case Task::sft:
      break;
  }
  return "3 x forward, causal attention halved, no recompute";
}

std::string utilisation(const Scenario& s, const Prediction& p) {
  std::string text = fmt::format("MFU {:.1f}%", 100 * p.utilisation.mfu);
  if (p.hfu() > p.utilisation.mfu)
    text += fmt::format(" (HFU {:.1f}% with recompute)", 100 * p.hfu());
  text += fmt::format(" of {}, the dense {} peak", to_text(p.utilisation.peak),
                      p.utilisation.peak_format == Format::bf16 ? "BF16" : "FP16");
  const PrecisionRecipe precision = s.layout.precision;
  return is_sixteen_bit(precision) ? text : text + fmt::format(" (for {} too)", to_text(precision));
}

std::string product_text(const ProductUse& use) {
  return fmt::format("{:.1f}% of {}, the dense {} peak, in which the layers' products run",
                     100 * use.utilisation, to_text(use.peak), format_name(use.format));
}

std::string speed(const Scenario& s, const Prediction& p) {
  std::string text =
      fmt::format("{} tokens/s/GPU, {} tokens/s in all", significant(p.tokens_per_second_per_gpu),
                  significant(p.tokens_per_second));
  if (s.job.task == Task::decode)
    text += fmt::format(", {} tokens/s a sequence", significant(1 / p.step_time.si()));
  return text;
}

std::string energy(const Prediction& p) {
  std::string text =
      fmt::format("{} a step, {:.3g} J a token, {} a GPU", to_text(p.energy_per_step),
                  p.energy_per_token.si(), to_text(p.mean_power_per_gpu));
  if (p.throttle > 1.005)
    text += fmt::format("; the power limit slows compute by {:.0f}%", 100 * (p.throttle - 1));
  return text;
}

std::string money(const Prediction& p) {
  if (p.price.rental_per_gpu.si() <= 0) return "no price known (--gpu-hour-price)";
  return fmt::format("${} per million tokens at ${:.2f} a GPU-hour, {}",
                     dollars_text(p.price.per_million_tokens.si()),
                     p.price.rental_per_gpu.si() * seconds_per_hour, p.price.contract);
}

// What stands before a speed that cannot be had, or may not. Empty: it fits with room to spare.
std::string verdict_text(const MemoryVerdict& m) {
  if (m.standing == MemoryStanding::fits) return "";
  if (m.fits)
    return fmt::format("fits near the limit of memory, with {:.0f}% probability",
                       100 * m.probability);
  const double missing = in_gibibytes(m.needed - m.capacity);
  const std::string size = missing > 0
                               ? fmt::format("{:.1f} GiB short on an accelerator of {:.1f} GiB",
                                             missing, in_gibibytes(m.capacity))
                               : m.reason;
  if (m.standing == MemoryStanding::near_limit)
    return fmt::format("may not fit: {}; it fits with {:.0f}% probability", size,
                       100 * m.probability);
  return fmt::format("does not fit: {}. What follows would be, with memory enough", size);
}

Table headline(const Scenario& s, const Prediction& p) {
  Table table({"", ""}, {Align::left, Align::left});
  if (const std::string verdict = verdict_text(p.memory); !verdict.empty())
    table.add({"verdict", verdict});
  table.add({p.inference() ? std::string(to_text(p.inference()->latency)) : "step time",
             p.range ? fmt::format("{}, 90% range {} to {}", to_text(p.step_time), to_text(p.low),
                                   to_text(p.high))
                     : to_text(p.step_time)});
  table.add({"speed", speed(s, p)});
  table.add({"utilisation", utilisation(s, p)});
  if (const auto use = product_use(s.cluster.device, s.layout.precision, p))
    table.add({"in " + format_name(use->format), product_text(*use)});
  table.add(
      {"MFU counts", fmt::format("{} a token: {}", to_text(p.utilisation.model_flop_per_token),
                                 convention(s.job.task))});
  table.add({"energy", energy(p)});
  table.add({"cost", money(p)});
  table.add(
      {"traffic",
       fmt::format("{} scale-up and {} scale-out sent in a step by a GPU of the busiest stage",
                   to_text(p.scale_up_bytes), to_text(p.scale_out_bytes))});
  return table;
}

void add_breakdown(Document& document, const Prediction& p) {
  const TimeUnit unit = unit_for(p.step_time);
  Table table({"where the time goes", unit.name, "%", ""},
              {Align::left, Align::right, Align::right, Align::left});
  const StageBreakdown& stage = p.stages[static_cast<std::size_t>(p.bottleneck_stage)];
  std::vector<std::pair<Ticks, Label>> rows;
  for (int i = 0; i < label_count; ++i)
    if (stage.label[static_cast<std::size_t>(i)].ps > 0)
      rows.emplace_back(stage.label[static_cast<std::size_t>(i)], static_cast<Label>(i));
  sort_stably(rows, [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto add = [&](std::string_view name, Ticks ticks) {
    const double seconds = to_seconds(ticks).si(), share = seconds / p.step_time.si();
    table.add({std::string(name), fmt::format("{:.{}f}", seconds * unit.per_second, unit.decimals),
               fmt::format("{:.1f}", 100 * share), bar(share, 40)});
  };
  Ticks rest;  // of rows that would show as nothing
  for (const auto& [ticks, label] : rows) {
    if (to_seconds(ticks) / p.step_time < 0.0005)
      rest += ticks;
    else
      add(phrase(label), ticks);
  }
  if (rest.ps > 0) add("everything else", rest);
  if (p.stages.size() > 1)
    document.paragraph(fmt::format(
        "Stage {} of {}, counted from 0, paces the step:", p.bottleneck_stage, p.stages.size()));
  document.table(std::move(table));
}

}  // namespace

std::string memory_sentence(const MemoryVerdict& m) {
  const double left = in_gibibytes(m.capacity - m.needed);
  const bool near = m.standing == MemoryStanding::near_limit;
  std::string text =
      m.fits ? fmt::format("It fits{}: {:.1f} of {:.1f} GiB, {:.1f} GiB to spare.",
                           near ? ", near the limit" : "", in_gibibytes(m.needed),
                           in_gibibytes(m.capacity), left)
             : fmt::format("It {}: {}{}.", near ? "may not fit" : "does not fit",
                           left < 0 ? fmt::format("{:.1f} GiB short; ", -left) : "", m.reason);
  text += fmt::format(" It needs {:.1f} to {:.1f} GiB (90% range)", in_gibibytes(m.needed_low),
                      in_gibibytes(m.needed_high));
  if (near) text += fmt::format(": it fits with {:.0f}% probability", 100 * m.probability);
  return text + ".";
}

namespace {

void add_memory(Document& document, const Prediction& p) {
  const MemoryVerdict& m = p.memory;
  const StageMemory& stage = m.stages[static_cast<std::size_t>(m.worst_stage)];
  Table table({fmt::format("memory of stage {}", m.worst_stage), "GiB", "%", ""},
              {Align::left, Align::right, Align::right, Align::left});
  const auto add = [&](std::string_view name, Bytes bytes, bool with_bar) {
    const double share = bytes / m.capacity;
    table.add({std::string(name), fmt::format("{:.2f}", in_gibibytes(bytes)),
               fmt::format("{:.1f}", 100 * share), with_bar ? bar(share, 40) : ""});
  };
  for (int i = 0; i < memory_category_count; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    if (category != MemoryCategory::fragmentation && in_gibibytes(stage[category]) >= 0.005)
      add(to_text(category), stage[category], true);
  }
  if (in_gibibytes(stage.never_together) >= 0.005)
    add("less what is never held at once", stage.never_together * -1.0, false);
  add("allocated at the peak", m.peak, false);
  add("what its blocks hold beyond", m.reserved - m.peak, true);
  add("reserved by the allocator", m.reserved, false);
  add("context and libraries", m.needed - m.reserved, true);
  add("needed in all", m.needed, false);
  if (stage.offloaded.si() > 0)
    table.add(
        {"in the host's memory besides", fmt::format("{:.2f}", in_gibibytes(stage.offloaded))});
  document.paragraph(memory_sentence(m), "  ").table(std::move(table));
}

// "0.43 (0.2 .. 1)", "2.69 (2.4 .. 10) USD/h": a unit that all three share stands once.
std::string value_and_range(const Assumption& a) {
  const auto unit_of = [](const std::string& text) {
    const std::size_t space = text.find(' ');
    return space == std::string::npos ? std::string() : text.substr(space);
  };
  const std::string unit = unit_of(a.value);
  if (unit.empty() || unit_of(a.low) != unit || unit_of(a.high) != unit)
    return fmt::format("{} ({} .. {})", a.value, a.low, a.high);
  const auto bare = [&](const std::string& text) {
    return text.substr(0, text.size() - unit.size());
  };
  return fmt::format("{} ({} .. {}){}", bare(a.value), bare(a.low), bare(a.high), unit);
}

// "accelerator gb200: calibration.gemm.bf16.cublas" with blanks where a line may break.
std::string readable_path(const std::string& path) {
  const std::size_t colon = path.find(": ");
  if (colon == std::string::npos) return path;
  std::string name = path.substr(colon + 2);
  if (name.starts_with("calibration.")) std::replace(name.begin(), name.end(), '.', ' ');
  return path.substr(0, colon + 2) + name;
}

void add_assumptions(Document& document, const std::vector<Assumption>& assumptions) {
  Table table({"evidence", "value (range)", "step time", "of"},
              {Align::left, Align::left, Align::right, Align::left});
  const std::size_t most = document.full() ? assumptions.size() : 8;
  std::size_t shown = 0;
  for (const Assumption& a : assumptions) {
    const double size = std::max(std::abs(a.effect_low), std::abs(a.effect_high));
    if (shown == most || size < 0.0005) break;  // largest first
    table.add({std::string(to_text(a.evidence)), value_and_range(a),
               signed_percent_figure(a.effect_low) + " " + signed_percent(a.effect_high),
               readable_path(a.path)});
    ++shown;
  }
  if (assumptions.empty()) return;
  document.gap().paragraph(
      "What it rests on that is not a fact, with the change of the step at the range's two ends:");
  if (shown > 0) document.table(std::move(table));
  if (assumptions.size() > shown)
    document.note(fmt::format("and {} more of less effect on time (--json lists all)",
                              assumptions.size() - shown));
}

// What the range is made of, each part as if it were the only one.
std::string range_text(const Prediction& p) {
  const PredictionRange& r = *p.range;
  if (r.below.total() + r.above.total() <= 0) return "";
  std::string parts;
  const auto part = [&parts](const char* name, double below, double above) {
    if (std::max(below, above) < 0.0005) return;
    parts += fmt::format("{}{} -{:.1f} +{:.1f}%", parts.empty() ? "" : ", ", name,
                         -100 * std::expm1(-below), 100 * std::expm1(above));
  };
  part("values that are not facts", r.below.parameters, r.above.parameters);
  part("the model's own error", r.below.model, r.above.model);
  part("run to run", r.below.run_to_run, r.above.run_to_run);
  part("beyond what was measured", r.below.extrapolation, r.above.extrapolation);
  std::string text = "The 90% range joins " + parts + ".";
  if (!r.region.empty())
    text += " The model's error is that of measured runs of: " + r.region + ".";
  for (std::size_t i = 0; i < r.widened.size(); ++i)
    text += (i == 0 ? " Wider for: " : "; ") + r.widened[i];
  if (!r.widened.empty()) text += ".";
  return text;
}

void add_extrapolations(Document& document, const std::vector<Extrapolation>& extrapolations) {
  if (extrapolations.empty()) return;
  document.gap().paragraph("Kernels outside the shapes on which their curves were measured:");
  const std::size_t most = document.full() ? extrapolations.size() : 8;
  const std::size_t shown = std::min(most, extrapolations.size());
  for (std::size_t i = 0; i < shown; ++i) document.item(to_text(extrapolations[i]));
  if (extrapolations.size() > shown)
    document.note(fmt::format("and {} more of less effect (--json lists all)",
                              extrapolations.size() - shown));
}

}  // namespace

std::string format_name(Format format) {
  std::string name(to_text(format));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::optional<ProductUse> product_use(const Device& device, PrecisionRecipe precision,
                                      const Prediction& p) {
  const ResolvedDevice d = device.resolved();
  const Format format = linear_format(precision);
  const FlopPerSecond peak = d.tensor_rate[static_cast<std::size_t>(format)];
  if (is_sixteen_bit(precision) || peak <= FlopPerSecond(0)) return std::nullopt;
  return ProductUse{.format = format,
                    .peak = peak,
                    .utilisation = p.utilisation.mfu * (p.utilisation.peak / peak)};
}

TimeUnit unit_for(Seconds step) {
  if (step.si() >= 1) return {"s", 1, 3};
  return step.si() >= 1e-3 ? TimeUnit{"ms", 1e3, 2} : TimeUnit{"us", 1e6, 1};
}

std::string significant(double v) { return v >= 999.5 ? grouped(v) : fmt::format("{:.3g}", v); }

std::string dollars_text(double v) {
  if (v >= 999.5) return grouped(v);
  const int magnitude = v > 0 ? static_cast<int>(std::floor(std::log10(v))) : 0;
  return fmt::format("{:.{}f}", v, std::clamp(2 - magnitude, 0, 12));
}

void add_subject(Document& document, const Scenario& s) {
  const ParameterCount count = count_parameters(s.model);
  std::string text = fmt::format("{} ({} parameters", s.model.title, parameters_text(count.total));
  if (count.active != count.total)
    text += fmt::format(", {} active", parameters_text(count.active));
  document.title(text + ")");
  document.line(fmt::format("{} x {} on {} ({})", grouped(s.cluster.gpus), s.cluster.device.title,
                            s.cluster.title, s.cluster.name));
  document.line(job_text(s))
      .line(
          fmt::format("{} {}{}", s.stack.title, s.stack.release,
                      s.stack.unscripted ? ", none of whose launch scripts names the model" : ""));
  for (const std::string& note : notes_of(s)) document.paragraph("Note: " + note, "  ");
}

void add_prediction(Document& document, const Scenario& s, const Prediction& p) {
  document.table(headline(s, p)).gap();
  add_breakdown(document, p);
  document.gap();
  add_memory(document, p);
  if (const std::string range = range_text(p); !range.empty())
    document.gap().paragraph(range, "  ");
  add_assumptions(document, p.assumptions);
  add_extrapolations(document, p.extrapolations);
}

}  // namespace orrery
