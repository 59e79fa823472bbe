// SPDX-License-Identifier: Apache-2.0
// Scores predictions of measured runs and writes the tables that people read.
#include "sim/validate/score/report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/json/tree.h"
#include "sim/base/statistics.h"
#include "sim/base/text/words.h"
#include "sim/outcome/extrapolation.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

std::optional<double> relative(double predicted, const std::optional<double>& measured) {
  if (!measured || *measured <= 0) return std::nullopt;
  return predicted / *measured - 1;
}

// Rows with the same kind of reason are counted together: numbers in it do not matter.
std::string reason_kind(const std::string& reason) {
  for (const char* kind : {"layout not valid", "INCONSISTENT"})
    if (reason.starts_with(kind)) return kind;
  return reason;
}

std::string shortened(const std::string& text, std::size_t width) {
  return columns(text) <= width ? text : text.substr(0, width - 1) + "…";
}

// "A100-80GB" for "A100-SXM4-80GB": the board's socket is no news to a reader.
std::string short_gpu(const std::string& gpu) {
  const std::size_t socket = gpu.find("-SXM");
  if (socket == std::string::npos) return shortened(gpu, 10);
  const std::size_t size = gpu.find('-', socket + 1);
  return gpu.substr(0, socket) + (size == std::string::npos ? "" : gpu.substr(size));
}

std::vector<std::string> group_cells(const GroupScore& g) {
  const auto speed = speed_numbers(g), peak = numbers(g.peak), reserved = numbers(g.reserved),
             fixed = numbers(g.static_memory);
  const auto share = [](double ratio) { return fmt::format("{:.1f}", 100 * ratio); };
  const int verdicts = g.oom_found + g.fit_found;
  const int all_verdicts = verdicts + g.oom_missed + g.oom_false;
  return {shortened(g.source, 26),
          short_gpu(g.gpu),
          fmt::format("{}/{}", g.speed.size(), g.rows),
          speed ? share(speed->median) : "",
          speed ? share(speed->p90) : "",
          speed ? fmt::format("{:+.1f}", 100 * speed->bias) : "",
          peak ? share(peak->median) : "",
          reserved ? share(reserved->median) : "",
          fixed ? share(fixed->median) : "",
          all_verdicts > 0 ? fmt::format("{}/{}", verdicts, all_verdicts) : ""};
}

Table group_table() {
  return Table(
      {"source", "GPU", "scored", "median", "p90", "bias", "alloc", "reserved", "static", "OOM"},
      {Align::left, Align::left});
}

// Every reason with the number of rows and the sources that they are of, most frequent first.
std::string reasons_text(const std::vector<GroupScore>& groups, const SkippedShare& share) {
  std::map<std::string, std::map<std::string, int>> sources;
  for (const GroupScore& g : groups)
    for (const auto& [reason, count] : g.skipped) sources[reason][g.source] += count;
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [reason, counts] : sources) {
    int total = 0;
    std::string of;
    for (const auto& [source, count] : counts) {
      total += count;
      of += fmt::format("{}{} {}", of.empty() ? "" : ", ", shortened(source, 40), count);
    }
    sorted.emplace_back(-total, reason + " (" + of + ")");
  }
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return "";
  std::string out = fmt::format(
      "\nNot scored, and why (not predicted: {} of {} rows with a whole layout on a catalogued\n"
      "accelerator, {:.1f}%)\n",
      share.skipped, share.rows, 100 * share.share());
  for (const auto& [count, reason] : sorted)
    out += wrap(fmt::format("{}  {}", -count, reason), 100, "  ", "        ");
  return out;
}

std::string confusion_text(const GroupScore& all) {
  if (all.oom_found + all.oom_missed + all.oom_false + all.fit_found == 0) return "";
  Table table({"memory verdict", "ran out", "ran"}, {Align::left});
  table.add(
      {"predicted to run out", fmt::format("{}", all.oom_found), fmt::format("{}", all.oom_false)});
  table.add(
      {"predicted to fit", fmt::format("{}", all.oom_missed), fmt::format("{}", all.fit_found)});
  return "\n" + table.text();
}

// The largest parts of the pacing stage in milliseconds.
std::string label_text(const StageBreakdown& stage, int count) {
  std::array<std::pair<std::int64_t, Label>, label_count> parts;
  for (int i = 0; i < label_count; ++i) {
    const auto label = static_cast<Label>(i);
    parts[static_cast<std::size_t>(i)] = {-stage[label].ps, label};
  }
  std::sort(parts.begin(), parts.end());
  std::string out;
  for (int i = 0; i < count; ++i) {
    const auto& [time, label] = parts[static_cast<std::size_t>(i)];
    if (time == 0) break;
    out += fmt::format("{}{} {:.0f}", out.empty() ? "" : ", ", to_text(label),
                       in_milliseconds(to_seconds(Ticks{-time})));
  }
  return out;
}

std::string row_line(const ScoredRow& s) {
  const PreparedRow& r = *s.row;
  if (!r.skipped.empty()) return fmt::format("{:<28} skipped: {}\n", r.id, r.skipped);
  std::string out = fmt::format("{:<28} {:>8} {:<22} ", r.id,
                                s.speed_error ? signed_percent(*s.speed_error) : "-", r.release);
  if (r.measured.step_seconds)
    out += fmt::format("{:.3f} ms for {:.3f}", 1e3 * s.prediction.step_seconds,
                       1e3 * *r.measured.step_seconds);
  else
    out += fmt::format("{:.0f} tok/s/GPU for {:.0f}", s.prediction.tokens_per_second_per_gpu,
                       r.measured.tokens_per_second_per_gpu.value_or(0));
  out += fmt::format(" | {} | {} | {} | step {:.0f}: {}", r.gpu, r.model.name, to_text(r.layout),
                     1e3 * s.prediction.step_seconds, label_text(s.prediction.stage, 7));
  if (s.peak_error) out += " | allocated " + signed_percent(*s.peak_error);
  if (s.reserved_error) out += " | reserved " + signed_percent(*s.reserved_error);
  if (s.static_error) out += " | static " + signed_percent(*s.static_error);
  if (r.measured.out_of_memory)
    out += fmt::format(" | OOM {} for {}", s.prediction.out_of_memory ? 1 : 0,
                       *r.measured.out_of_memory ? 1 : 0);
  out += '\n';
  for (const Extrapolation& e : s.prediction.extrapolations)
    out += wrap("outside " + to_text(e), 100, "      ", "        ");
  return out;
}

// Which curves the rows use outside of what was measured, and where that is worst.
std::string extrapolations_text(const std::vector<ScoredRow>& rows) {
  struct Curve {
    int rows = 0;
    Extrapolation worst;
    std::string id;
  };
  std::map<std::string, Curve> curves;  // by device and curve
  for (const ScoredRow& s : rows)
    for (const Extrapolation& e : s.prediction.extrapolations) {
      Curve& curve = curves[s.row->gpu + " " + e.curve];
      if (curve.rows++ > 0 && e.growth <= curve.worst.growth) continue;
      curve.worst = e;
      curve.id = s.row->id;
    }
  std::string out;
  for (const auto& [name, curve] : curves)
    out += wrap(fmt::format("{}, {} rows, widest in {}: {}", shortened(name, 60), curve.rows,
                            curve.id, to_text(curve.worst)),
                100, "  ", "        ");
  return out.empty() ? "" : "\nOutside the shapes on which curves were measured\n" + out;
}

}  // namespace

ScoredRow score_row(const PreparedRow& row, const RowPrediction& prediction) {
  ScoredRow scored{.row = &row, .prediction = prediction};
  if (!prediction.made) return scored;
  const MeasuredRun& m = row.measured;
  if (row.unfit_for_time.empty()) {
    scored.speed_error =
        relative(prediction.tokens_per_second_per_gpu, m.tokens_per_second_per_gpu);
    if (m.step_seconds) scored.speed_error = relative(prediction.step_seconds, m.step_seconds);
  }
  scored.peak_error = relative(prediction.peak_gibibytes, m.peak_gibibytes);
  scored.reserved_error = relative(prediction.reserved_gibibytes, m.reserved_gibibytes);
  scored.static_error = relative(prediction.static_gibibytes, m.static_gibibytes);
  return scored;
}

bool is_scored(const ScoredRow& scored) {
  return scored.speed_error && scored.row->full_config && is_training(scored.row->job.task);
}

void add_row(GroupScore& g, const ScoredRow& s) {
  const PreparedRow& row = *s.row;
  ++g.rows;
  if (!row.skipped.empty()) {
    ++g.skipped[reason_kind(row.skipped)];
    return;
  }
  ++g.predicted;
  const MeasuredRun& m = row.measured;
  if (s.speed_error && row.outside.empty()) g.ordinary_speed.push_back(*s.speed_error);
  if (s.speed_error)
    g.speed.push_back(*s.speed_error);
  else if (m.tokens_per_second_per_gpu && !row.unfit_for_time.empty())
    ++g.skipped["time only: " + row.unfit_for_time];
  else if (!m.out_of_memory && !s.peak_error && !s.reserved_error && !s.static_error)
    ++g.skipped[row.unscored.empty() ? "predicted, but nothing of it can be scored" : row.unscored];
  if (s.peak_error) g.peak.push_back(*s.peak_error);
  if (s.reserved_error) g.reserved.push_back(*s.reserved_error);
  if (s.static_error) g.static_memory.push_back(*s.static_error);
  if (!m.out_of_memory) return;
  if (*m.out_of_memory)
    ++(s.prediction.out_of_memory ? g.oom_found : g.oom_missed);
  else
    ++(s.prediction.out_of_memory ? g.oom_false : g.fit_found);
}

SkippedShare skipped_share(const std::vector<ScoredRow>& rows) {
  SkippedShare counts;
  for (const ScoredRow& s : rows) {
    if (!s.row->full_config || !s.row->catalogued) continue;
    ++counts.rows;
    if (!s.row->skipped.empty()) ++counts.skipped;
  }
  return counts;
}

std::vector<GroupScore> group_rows(const std::vector<ScoredRow>& rows) {
  std::vector<GroupScore> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> index;
  for (const ScoredRow& s : rows) {
    if (!s.row->full_config) continue;
    const auto [at, added] = index.emplace(std::pair{s.row->source, s.row->gpu}, groups.size());
    if (added) groups.push_back({.source = s.row->source, .gpu = s.row->gpu});
    add_row(groups[at->second], s);
  }
  return groups;
}

std::vector<GroupScore> overall_groups(const std::vector<ScoredRow>& rows) {
  std::vector<GroupScore> groups = {{.source = "all"},
                                    {.source = "published (without sweeps)"},
                                    {.source = "experts (MoE)"},
                                    {.source = "1,024 GPUs and more"},
                                    {.source = "layout not wholly told"}};
  for (const ScoredRow& s : rows) {
    if (!s.row->full_config) {
      add_row(groups[4], s);
      continue;
    }
    add_row(groups[0], s);
    if (!s.row->sweep) add_row(groups[1], s);
    if (s.row->model.has_experts()) add_row(groups[2], s);
    if (!s.row->sweep && s.row->layout.gpus() >= 1024) add_row(groups[3], s);
  }
  return groups;
}

std::optional<GroupNumbers> numbers(const std::vector<double>& errors) {
  if (errors.empty()) return std::nullopt;
  std::vector<double> size;
  for (const double e : errors) size.push_back(std::abs(e));
  return GroupNumbers{.median = median(size), .p90 = percentile(size, 90), .bias = median(errors)};
}

std::optional<GroupNumbers> speed_numbers(const GroupScore& group) {
  auto all = numbers(group.speed);
  const auto ordinary = numbers(group.ordinary_speed);
  if (all && ordinary) all->p90 = ordinary->p90;
  return all;
}

std::string report_text(const std::vector<ScoredRow>& rows, bool each_row) {
  std::string out;
  if (each_row)
    for (const ScoredRow& s : rows) out += row_line(s);
  const auto groups = group_rows(rows), overall = overall_groups(rows);
  Table table = group_table();
  for (const GroupScore& g : groups)
    if (g.predicted > 0 &&
        !(g.speed.empty() && g.peak.empty() && g.reserved.empty() && g.static_memory.empty()))
      table.add(group_cells(g));
  out +=
      "\nPredicted against measured, in percent: |error| of tokens/s/GPU (median, 90th "
      "percentile)\nand its median with sign (bias: above 0 is too fast), median |error| of peaks "
      "of allocated\n(alloc) and of reserved memory, of static memory; memory verdicts that are "
      "right\n";
  out += table.text();
  Table totals = group_table();
  for (const GroupScore& g : overall)
    if (g.rows > 0) totals.add(group_cells(g));
  out += "\n" + totals.text();
  out += confusion_text(overall[0]);
  std::vector<GroupScore> incomplete;
  for (const ScoredRow& s : rows) {
    if (s.row->full_config) continue;
    incomplete.push_back({.source = s.row->source});
    add_row(incomplete.back(), s);
  }
  std::vector<GroupScore> everything = groups;
  everything.insert(everything.end(), incomplete.begin(), incomplete.end());
  return out + extrapolations_text(rows) + reasons_text(everything, skipped_share(rows));
}

std::string left_out_text(const std::vector<LeftOut>& groups, const std::string& kind) {
  Table table({kind + " left out", "rows", "median", "p90", "bias", "as shipped", "p90"},
              {Align::left});
  std::vector<double> shipped, without;
  const auto add = [&table](const std::string& name, int rows, const std::vector<double>& left,
                            const std::vector<double>& base) {
    const auto a = numbers(left), b = numbers(base);
    if (!a || !b) return;
    table.add({shortened(name, 46), fmt::format("{}", rows),
               fmt::format("{:.1f}%", 100 * a->median), fmt::format("{:.1f}%", 100 * a->p90),
               signed_percent(a->bias), fmt::format("{:.1f}%", 100 * b->median),
               fmt::format("{:.1f}%", 100 * b->p90)});
  };
  for (const LeftOut& g : groups) {
    if (g.subtotal) continue;
    add(g.group, g.rows, g.without, g.shipped);
    shipped.insert(shipped.end(), g.shipped.begin(), g.shipped.end());
    without.insert(without.end(), g.without.begin(), g.without.end());
  }
  add("all", static_cast<int>(without.size()), without, shipped);
  for (const LeftOut& g : groups)
    if (g.subtotal) add(g.group, g.rows, g.without, g.shipped);
  return fmt::format("\nEach {} predicted with step-level values fitted on the others\n", kind) +
         table.text();
}

Json numbers_json(const std::vector<double>& errors) {
  const auto n = numbers(errors);
  if (!n) return nullptr;
  return {{"rows", errors.size()},
          {"median_absolute_error", n->median},
          {"p90_absolute_error", n->p90},
          {"bias", n->bias}};
}

}  // namespace orrery
