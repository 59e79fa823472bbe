// SPDX-License-Identifier: Apache-2.0
// Writes tables of layouts: the best, and the front of speed against memory.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "sim/app/report/advice.h"
#include "sim/app/report/parts.h"
#include "sim/base/text/words.h"
#include "sim/outcome/host_power.h"

namespace orrery {
namespace {

constexpr std::size_t longest_front = 12;

// A layout and the numbers that the tables show of it.
struct Row {
  const Candidate& candidate;
  double mfu = 0, dollars = 0;  // dollars per million tokens; 0: no price known
};

std::vector<Row> rows_of(const std::vector<Candidate>& list, const Question& q,
                         const Prediction& winner) {
  const double tokens = tokens_per_step(q.job, 1);
  const double per_speed = winner.utilisation.mfu / winner.tokens_per_second_per_gpu;
  std::vector<Row> rows;
  for (const Candidate& c : list)
    rows.push_back({.candidate = c,
                    .mfu = per_speed * c.tokens_per_second_per_gpu,
                    .dollars = winner.price.rental_per_gpu.si() * c.step_time.si() *
                               static_cast<double>(c.layout.gpus()) / tokens * 1e6});
  return rows;
}

std::string sharding(const Layout& l) {
  return l.shard_group > 0 ? fmt::format("{}/{}", l.zero_stage, l.shard_group)
                           : std::to_string(l.zero_stage);
}

std::string context_text(const Layout& l) {
  if (l.cp == 1) return "1";
  switch (l.context) {
    case ContextKind::ring:
      return fmt::format("{} ring", l.cp);
    case ContextKind::all_gather:
      return fmt::format("{} gather", l.cp);
    case ContextKind::all_to_all:
      return fmt::format("{} a2a", l.cp);
    case ContextKind::hierarchical:
      return fmt::format("{} a2a/{}", l.cp, l.context_inner);
  }
  return {};
}

// A decision that has a column where the listed layouts differ in it, and a place in the line above
// the table (`common`) where they do not.
struct DecisionColumn {
  const char* header;
  Align align;
  std::function<std::string(const Layout&)> cell;
  std::function<std::string(const Layout&)> common;  // empty text: goes without saying
};

DecisionColumn size_of(const char* header, std::int64_t Layout::*size) {
  return {.header = header,
          .align = Align::right,
          .cell = [=](const Layout& l) { return std::to_string(l.*size); },
          .common =
              [=](const Layout& l) {
                return l.*size > 1 ? fmt::format("{} {}", header, l.*size) : std::string();
              }};
}

// The first module and how many more: the layout in detail has all.
std::string short_recompute(const Layout& l) {
  if (l.recompute == Recompute::full && l.recompute_layers > 0)
    return fmt::format("full ({})", l.recompute_layers);
  const std::string text = to_text(l.recompute_choice());
  const auto more = std::count(text.begin(), text.end(), ',');
  return more < 1 ? text : fmt::format("{} +{}", text.substr(0, text.find(',')), more);
}

std::string offload_column(const Layout& l) {
  std::string text = offload_text(l);
  return text.empty() ? "-" : text;
}

std::vector<DecisionColumn> optional_decisions() {
  return {
      size_of("VPP", &Layout::vpp),
      {"CP", Align::left, context_text,
       [](const Layout& l) { return l.cp > 1 ? "CP " + context_text(l) : ""; }},
      size_of("EP", &Layout::ep),
      size_of("ETP", &Layout::etp),
      {"ZeRO", Align::right, sharding, [](const Layout& l) { return "ZeRO-" + sharding(l); }},
      {"schedule", Align::left, [](const Layout& l) { return std::string(to_text(l.schedule)); },
       [](const Layout& l) {
         return l.pp > 1 ? fmt::format("{} schedule", to_text(l.schedule)) : std::string();
       }},
      {"recompute", Align::left, [](const Layout& l) { return short_recompute(l); },
       [](const Layout& l) {
         return fmt::format("{} recompute",
                            l.recompute == Recompute::none ? "no" : to_text(l.recompute_choice()));
       }},
      {"order", Align::left, [](const Layout& l) { return to_text(l.rank_order); },
       [](const Layout& l) {
         return l.rank_order.is_default() ? std::string()
                                          : fmt::format("ranks {}", to_text(l.rank_order));
       }},
      {"offload", Align::left, [](const Layout& l) { return offload_column(l); },
       [](const Layout& l) {
         const std::string text = offload_text(l);
         return text.empty() ? text : fmt::format("{} offloaded", text);
       }},
      {"precision", Align::left, [](const Layout& l) { return std::string(to_text(l.precision)); },
       [](const Layout& l) { return std::string(to_text(l.precision)); }},
      {"optimizer", Align::left, [](const Layout& l) { return std::string(to_text(l.optimizer)); },
       [](const Layout& l) { return fmt::format("{} optimizer", to_text(l.optimizer)); }}};
}

// Splits the decisions into those with a column and a line of what is common to all rows.
std::vector<DecisionColumn> differing(const std::vector<Row>& rows, std::string& common) {
  std::vector<DecisionColumn> columns;
  std::vector<std::string> shared;
  // One search has one answer to this, and it means nothing where TP is 1.
  const bool mixed = std::any_of(rows.begin(), rows.end(),
                                 [](const Row& row) { return row.candidate.layout.tp == 1; });
  for (const Row& row : rows)
    if (const Layout& l = row.candidate.layout; l.tp > 1 && shared.empty())
      shared.push_back(fmt::format("{}sequence parallelism{}", l.sequence_parallel ? "" : "no ",
                                   mixed ? " where TP is above 1" : ""));
  const Layout& first = rows.front().candidate.layout;
  for (DecisionColumn& decision : optional_decisions()) {
    std::set<std::string> texts;
    for (const Row& row : rows) texts.insert(decision.cell(row.candidate.layout));
    if (texts.size() > 1)
      columns.push_back(std::move(decision));
    else if (const std::string text = decision.common(first); !text.empty())
      shared.push_back(text);
  }
  common = joined(shared, ", ");
  return columns;
}

// Measures of a layout, in columns.
struct Measure {
  std::string header;
  std::function<std::string(const Row&)> cell;
};

// Whether what accelerators draw is a column.
enum class Shown : std::uint8_t { plain, energy };

std::vector<Measure> measures(const TimeUnit& unit, Shown shown) {
  std::vector<Measure> all = {
      {fmt::format("step {}", unit.name),
       [=](const Row& row) {
         return fmt::format("{:.{}f}", row.candidate.step_time.si() * unit.per_second,
                            unit.decimals);
       }},
      {"tok/s/GPU",
       [](const Row& row) { return significant(row.candidate.tokens_per_second_per_gpu); }},
      {"MFU%", [](const Row& row) { return fmt::format("{:.1f}", 100 * row.mfu); }},
      {"GiB",
       [](const Row& row) {
         return fmt::format("{:.1f}", in_gibibytes(row.candidate.peak_memory));
       }},
      {"$/Mtok", [](const Row& row) {
         return row.dollars > 0 ? dollars_text(row.dollars) : std::string("-");
       }}};
  if (shown == Shown::energy)
    all.insert(all.begin() + 1, {"GPU MJ", [](const Row& row) {
                                   return fmt::format("{:.4g}",
                                                      row.candidate.energy_per_step.si() / 1e6);
                                 }});
  return all;
}

Table rows_table(const std::vector<Row>& rows, bool numbered,
                 const std::vector<DecisionColumn>& decisions,
                 const std::vector<Measure>& measured) {
  std::vector<std::string> header = {"TP", "PP", "DP", "MB"};
  std::vector<Align> align(header.size(), Align::right);
  for (const DecisionColumn& decision : decisions) {
    header.emplace_back(decision.header);
    align.push_back(decision.align);
  }
  for (const Measure& measure : measured) header.push_back(measure.header);
  align.resize(header.size(), Align::right);
  if (numbered) {
    header.insert(header.begin(), "#");
    align.insert(align.begin(), Align::right);
  }
  Table table(header, align);
  int rank = 0;
  for (const Row& row : rows) {
    const Layout& layout = row.candidate.layout;
    std::vector<std::string> cells;
    if (numbered) cells.push_back(std::to_string(++rank));
    for (std::int64_t size : {layout.tp, layout.pp, layout.dp, layout.micro_batch})
      cells.push_back(std::to_string(size));
    for (const DecisionColumn& decision : decisions) cells.push_back(decision.cell(layout));
    for (const Measure& measure : measured) cells.push_back(measure.cell(row));
    table.add(std::move(cells));
  }
  return table;
}

// A page that is too narrow for all columns leaves out dollars, then MFU, then the speed: all of
// them follow from the step.
void add_rows(Document& document, const std::vector<Row>& rows, bool numbered, Shown shown) {
  std::string common;
  const std::vector<DecisionColumn> decisions = differing(rows, common);
  std::vector<Measure> measured = measures(unit_for(rows.front().candidate.step_time), shown);
  Table table = rows_table(rows, numbered, decisions, measured);
  for (const char* left_out : {"$/Mtok", "MFU%", "tok/s/GPU"}) {
    if (document.full() || table.width() <= document.width()) break;
    std::erase_if(measured, [&](const Measure& m) { return m.header == left_out; });
    table = rows_table(rows, numbered, decisions, measured);
  }
  const char* all = rows.size() > 1 ? "All with " : "With ";
  document.paragraph(all + common + ":", "  ").table(std::move(table), "");
}

// "0.05%": what a setting gains, to the hundredth.
std::string small_percent(double share) { return share < 0.00005 ? "nothing" : percent(share, 2); }

// Of the first, each setting that was taken back and what it would gain.
std::string left_of_first(const Simplified& first) {
  std::vector<std::string> parts;
  for (const LeftAtDefault& l : first.left)
    parts.push_back(l.gain < 0 ? fmt::format("{} is no longer needed", l.setting)
                               : fmt::format("{} would gain {}", l.setting, small_percent(l.gain)));
  return joined(parts, ", ");
}

// "2 to 6, 9": rows of the table.
std::string rows_text(const std::vector<std::size_t>& rows) {
  std::vector<std::string> parts;
  for (std::size_t i = 0, last = 0; i < rows.size(); i = last + 1) {
    last = i;
    while (last + 1 < rows.size() && rows[last + 1] == rows[last] + 1) ++last;
    parts.push_back(last > i ? fmt::format("{} to {}", rows[i], rows[last])
                             : std::to_string(rows[i]));
  }
  return joined(parts, ", ");
}

// Of the others, by setting: in which layouts, and from how much to how much it would gain.
std::string left_of_others(const std::vector<Simplified>& all) {
  std::vector<std::string> parts;
  for (int k = 0; k < knob_count; ++k) {
    std::vector<std::size_t> in;
    double least = 1, most = 0;
    for (std::size_t i = 1; i < all.size(); ++i)
      for (const LeftAtDefault& l : all[i].left) {
        if (l.knob != static_cast<Knob>(k)) continue;
        in.push_back(i + 1);
        least = std::min(least, l.gain);
        most = std::max(most, l.gain);
      }
    if (in.empty()) continue;
    const std::string low = small_percent(least), high = small_percent(most);
    parts.push_back(fmt::format("{} in {} ({})", to_text(static_cast<Knob>(k)), rows_text(in),
                                low == high ? high : fmt::format("{} to {}", low, high)));
  }
  return joined(parts, "; ");
}

// Why the first leads where another is faster.
std::string leading_text(const Advice& a) {
  const double first = a.simplified.front().shown.score;
  double least = first;
  for (const Simplified& s : a.simplified) least = std::min(least, s.shown.score);
  if (least >= first) return "";
  return fmt::format("; the first leads with fewer special settings than what is {} ahead of it",
                     small_percent(first / least - 1));
}

void add_left_at_defaults(Document& document, const Advice& a) {
  if (a.simplified.empty()) return;
  const std::string first = left_of_first(a.simplified.front());
  const std::string others = left_of_others(a.simplified);
  const std::string leading = leading_text(a);
  if (first.empty() && others.empty() && leading.empty()) return;
  std::string text = fmt::format(
      "Settings stay at the stack's defaults where all of a layout's would gain no more than "
      "{:.2g}% together, less than reruns of one job differ by",
      100 * tie_tolerance);
  if (!first.empty()) text += ": in the first " + first;
  if (!others.empty())
    text += fmt::format("{}{}", first.empty() ? ": " : "; of the others ", others);
  text += leading;
  document.gap().paragraph(text + ". All others gain more, or it would not fit without them.",
                           "  ");
}

// In 8 or 4 bits MFU can pass 100% without an error.
void add_narrow_note(Document& document, const Question& q, const Advice& a) {
  const PrecisionRecipe precision = a.best.front().layout.precision;
  const auto use = product_use(q.cluster.device, precision, a.winner);
  if (!use) return;
  document.paragraph(
      fmt::format(
          "MFU counts by the dense {} peak in every precision, so that it can pass 100%; of "
          "the {} peak, {}, the first has {:.1f}%.",
          format_name(a.winner.utilisation.peak_format), format_name(use->format),
          to_text(use->peak), 100 * use->utilisation),
      "  ");
}

// A recipe that is faster may need more tokens, or diverge.
void add_recipes_note(Document& document, const Question& q) {
  if (q.precisions.size() < 2 && q.optimizers.size() < 2) return;
  document.paragraph(
      "Precision recipes and optimizers compete by speed and memory alone: what they do to the "
      "loss is not modelled.",
      "  ");
}

// Energy ranks accelerators with their hosts, where those are known.
void add_hosts_note(Document& document, const Question& q) {
  if (q.objective != Objective::energy) return;
  if (host_power_known(q.cluster)) {
    const Watts hosts = host_power_per_accelerator(q.cluster);
    document.paragraph(
        fmt::format("Ranked by the energy of accelerators, which the column shows, and of their "
                    "hosts besides: {} an accelerator for as long as the step takes.",
                    to_text(hosts)),
        "  ");
    return;
  }
  document.paragraph("Host power not known: not counted. The energy is that of accelerators alone.",
                     "  ");
}

}  // namespace

void add_candidates(Document& document, const Question& q, const Advice& a) {
  add_rows(document, rows_of(a.best, q, a.winner), true,
           q.objective == Objective::energy ? Shown::energy : Shown::plain);
  add_narrow_note(document, q, a);
  add_recipes_note(document, q);
  add_hosts_note(document, q);
  add_left_at_defaults(document, a);
}

// The front, thinned to steps that save something worth a row.
void add_front(Document& document, const Question& q, const Advice& a) {
  if (a.pareto.empty()) return;
  const bool energy = a.front == Front::Axis::energy;
  const auto other = [&](const Row& row) {
    return energy ? row.candidate.energy_per_step.si() : row.candidate.peak_memory.si();
  };
  const std::vector<Row> front = rows_of(a.pareto, q, a.winner);
  std::vector<Row> rows;
  for (double saving : {1.0, 0.999, 0.995, 0.99, 0.95, 0.9, 0.8, 0.7}) {
    rows.clear();
    for (const Row& row : front)
      if (rows.empty() || other(row) < other(rows.back()) * saving) rows.push_back(row);
    if (document.full() || rows.size() <= longest_front) break;
  }
  std::string text = energy ? "Speed against the energy of the accelerators: nothing is faster "
                              "with less."
                            : "Speed against memory: nothing is faster with less.";
  if (rows.size() < front.size())
    text += fmt::format(" {} of {} points (--json lists all).", rows.size(), front.size());
  document.gap().label(text);
  add_rows(document, rows, false, energy ? Shown::energy : Shown::plain);
}

}  // namespace orrery
