// Writes reports for people: headline, where the time goes, memory, money, what it rests on.
#include "sim/app/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/app/tables.h"

namespace orrery {
namespace {

constexpr int width = 100;

std::string grouped(double v) {
  std::string digits = fmt::format("{:.0f}", v);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), ",");
  return digits;
}

std::string significant(double v) {
  return v >= 1000 ? grouped(v) : fmt::format("{:.3g}", v);
}

std::string job_text(const Job& job) {
  switch (job.task) {
    case Task::prefill:
      return fmt::format("prefill of {} prompts of {} tokens", job.batch, grouped(static_cast<double>(job.sequence)));
    case Task::decode:
      return fmt::format("decode of {} sequences over {} tokens", job.batch,
                         grouped(static_cast<double>(job.context)));
    default:
      return fmt::format("{}, {} sequences of {} tokens a step", to_text(job.task), grouped(static_cast<double>(job.global_batch)),
                         grouped(static_cast<double>(job.sequence)));
  }
}

std::string subject(const Model& model, const Cluster& cluster, const Job& job,
                    const Stack& stack) {
  const ParameterCount count = count_parameters(model);
  std::string text = fmt::format("{} ({:.1f}B parameters", model.title,
                                 static_cast<double>(count.total) / 1e9);
  if (count.active != count.total)
    text += fmt::format(", {:.1f}B active", static_cast<double>(count.active) / 1e9);
  return text + fmt::format(")\n{} x {} on {}\n{}\n{} {}\n", grouped(static_cast<double>(cluster.gpus)),
                            cluster.device.title, cluster.title, job_text(job), stack.title,
                            stack.release);
}

std::string breakdown_table(const Prediction& p) {
  Table table({"where the time goes", "ms", "%", ""},
              {Align::left, Align::right, Align::right, Align::left});
  const StageBreakdown& stage = p.stages[static_cast<std::size_t>(p.bottleneck_stage)];
  std::vector<std::pair<Ticks, Label>> rows;
  for (int i = 0; i < label_count; ++i)
    if (stage.label[static_cast<std::size_t>(i)].ps > 0)
      rows.emplace_back(stage.label[static_cast<std::size_t>(i)], static_cast<Label>(i));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [ticks, label] : rows) {
    const double share = to_seconds(ticks) / p.step_time;
    table.add({std::string(to_text(label)), fmt::format("{:.2f}", in_milliseconds(to_seconds(ticks))),
               fmt::format("{:.1f}", 100 * share), bar(share, 40)});
  }
  return fmt::format("Stage {} of {} paces the step:\n", p.bottleneck_stage, p.stages.size()) +
         table.text();
}

std::string memory_table(const Prediction& p) {
  const MemoryVerdict& m = p.memory;
  Table table({"memory of stage " + std::to_string(m.worst_stage), "GiB"}, {Align::left});
  const StageMemory& stage = m.stages[static_cast<std::size_t>(m.worst_stage)];
  for (int i = 0; i < memory_category_count; ++i) {
    const Bytes b = stage.bytes[static_cast<std::size_t>(i)];
    if (in_gibibytes(b) >= 0.005)
      table.add({std::string(to_text(static_cast<MemoryCategory>(i))),
                 fmt::format("{:.2f}", in_gibibytes(b))});
  }
  table.add({"allocated at the peak", fmt::format("{:.2f}", in_gibibytes(m.peak))});
  table.add({"reserved with rounding and context", fmt::format("{:.2f}", in_gibibytes(m.reserved))});
  table.add({"of the device", fmt::format("{:.2f}", in_gibibytes(m.capacity))});
  const std::string verdict =
      m.fits ? fmt::format("It fits with a margin of {:.0f}%.\n", 100 * m.margin)
             : wrap("It does not fit: " + m.reason, width, "", "");
  return verdict + table.text();
}

std::string assumptions_table(const std::vector<Assumption>& assumptions) {
  if (assumptions.empty()) return "";
  const std::size_t shown = std::min<std::size_t>(8, assumptions.size());
  Table table({"not a fact, but used", "value", "range", "evidence", "step time"},
              {Align::left, Align::right, Align::right, Align::left, Align::right});
  for (std::size_t i = 0; i < shown; ++i) {
    const Assumption& a = assumptions[i];
    table.add({a.path, a.value, a.low + " .. " + a.high, std::string(to_text(a.evidence)),
               fmt::format("{:+.1f}/{:+.1f}%", 100 * a.effect_low, 100 * a.effect_high)});
  }
  std::string text = table.text();
  if (assumptions.size() > shown)
    text += fmt::format("  and {} more of less effect (--json lists all)\n",
                        assumptions.size() - shown);
  return text;
}

std::string money(const Prediction& p) {
  if (p.rental_per_gpu.si() <= 0) return "no price known (--gpu-hour-price)";
  return fmt::format("${:.3g} per million tokens at ${:.2f} a GPU-hour",
                     p.dollars_per_million_tokens.si(), p.rental_per_gpu.si() * 3600);
}

std::string headline(const Prediction& p) {
  const bool training = p.ttft_or_tpot.empty();
  Table table({"", ""}, {Align::left, Align::left});
  table.add({training ? "step time" : p.ttft_or_tpot,
             fmt::format("{}  (90% range {} to {})", to_text(p.step_time), to_text(p.low),
                         to_text(p.high))});
  table.add({"speed", fmt::format("{} tokens/s/GPU, {} tokens/s in all",
                                  significant(p.tokens_per_second_per_gpu),
                                  significant(p.tokens_per_second))});
  table.add({"utilisation", fmt::format("MFU {:.1f}% of dense BF16 peak{}", 100 * p.mfu,
                                        p.hfu > p.mfu ? fmt::format(" (HFU {:.1f}%)", 100 * p.hfu)
                                                      : "")});
  table.add({"energy", fmt::format("{} a step, {:.3g} J a token, {} a GPU{}",
                                   to_text(p.energy_per_step), p.energy_per_token.si(),
                                   to_text(p.mean_power_per_gpu),
                                   p.throttle > 1.005
                                       ? fmt::format(", power limit slows compute by {:.0f}%",
                                                     100 * (p.throttle - 1))
                                       : "")});
  table.add({"cost", money(p)});
  table.add({"traffic", fmt::format("{} scale-up and {} scale-out sent per GPU and step",
                                    to_text(p.scale_up_bytes), to_text(p.scale_out_bytes))});
  const std::string text = table.text();
  return text.substr(text.find('\n') + 1);
}

std::string detail(const Prediction& p) {
  std::string text = headline(p) + "\n" + breakdown_table(p) + "\n" + memory_table(p);
  const std::string assumed = assumptions_table(p.assumptions);
  return assumed.empty() ? text : text + "\n" + assumed;
}

std::string candidates_table(const std::vector<Candidate>& list, const Question& q,
                             const Prediction& winner, bool numbered) {
  Table table({numbered ? "#" : "", "TP", "PP", "VPP", "DP", "CP", "EP", "MB", "ZeRO", "schedule",
               "recompute", "step", "tok/s/GPU", "MFU%", "GiB", "$/Mtok"},
              {});
  int rank = 0;
  const double tokens = static_cast<double>(q.job.global_batch * q.job.sequence);
  for (const Candidate& c : list) {
    const Layout& l = c.layout;
    const double mfu = winner.tokens_per_second_per_gpu > 0
                           ? winner.mfu * c.tokens_per_second_per_gpu / winner.tokens_per_second_per_gpu
                           : 0;
    const double dollars = winner.rental_per_gpu.si() * c.step_time.si() *
                           static_cast<double>(l.gpus()) / tokens * 1e6;
    table.add({numbered ? std::to_string(++rank) : "", std::to_string(l.tp), std::to_string(l.pp),
               std::to_string(l.vpp), std::to_string(l.dp), std::to_string(l.cp),
               std::to_string(l.ep), std::to_string(l.micro_batch),
               std::to_string(l.zero_stage) + (l.shard_group > 0 ? fmt::format("/{}", l.shard_group) : ""),
               std::string(to_text(l.schedule)), std::string(to_text(l.recompute)),
               to_text(c.step_time), significant(c.tokens_per_second_per_gpu),
               fmt::format("{:.1f}", 100 * mfu), fmt::format("{:.1f}", in_gibibytes(c.peak_memory)),
               dollars > 0 ? fmt::format("{:.3g}", dollars) : "-"});
  }
  return table.text("");
}

std::string counts(const Advice& a) {
  std::string text = fmt::format(
      "{} valid layouts considered ({} grid points were not valid): {} rejected for memory, {} "
      "simulated, {} ruled out by a lower bound on their time.",
      grouped(static_cast<double>(a.considered)), grouped(static_cast<double>(a.invalid)),
      grouped(static_cast<double>(a.rejected_for_memory)), grouped(static_cast<double>(a.simulated)),
      grouped(static_cast<double>(a.pruned)));
  if (a.stopped_early) text += " The search was stopped early: this is the best so far.";
  return wrap(text, width, "", "");
}

std::string rejections(const Advice& a) {
  if (a.rejections.empty()) return "";
  std::string text = "Rejected for memory, by family (nearest miss of each):\n";
  const std::size_t shown = std::min<std::size_t>(6, a.rejections.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Rejection& r = a.rejections[i];
    text += wrap(fmt::format("{} ({} layouts): {}", r.family, grouped(static_cast<double>(r.layouts)), r.reason),
                 width, "  ", "    ");
  }
  if (a.rejections.size() > shown)
    text += fmt::format("  and {} more families\n", a.rejections.size() - shown);
  return text;
}

}  // namespace

std::string prediction_report(const Scenario& s, const Prediction& p) {
  return subject(s.model, s.cluster, s.job, s.stack) + to_text(s.layout) + "\n\n" + detail(p);
}

std::string advice_report(const Question& q, const Advice& a) {
  std::string text = subject(q.model, q.cluster, q.job, a.stack) + "\n";
  if (a.best.empty())
    return text + wrap(a.why, width, "", "") + "\n" + rejections(a) + "\n" + counts(a);
  text += candidates_table(a.best, q, a.winner, true);
  text += "\nWhy the first: " + wrap(a.why, width - 15, "", "  ") + "\n";
  text += "The first in detail: " + to_text(a.best.front().layout) + "\n" + detail(a.winner) + "\n";
  if (!a.differences.empty()) text += "What the next ones do differently:\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(4, a.differences.size()); ++i)
    text += wrap(fmt::format("{}. {}", i + 2, a.differences[i]), width, "  ", "     ");
  if (!a.pareto.empty())
    text += "\nSpeed against memory (nothing is faster with less):\n" +
            candidates_table(a.pareto, q, a.winner, false);
  return text + "\n" + rejections(a) + "\n" + counts(a);
}

}  // namespace orrery
