// Writes tables of layouts: the best, and the front of speed against memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "sim/app/report_advice.h"
#include "sim/app/report_parts.h"

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
  const double per_speed = winner.mfu / winner.tokens_per_second_per_gpu;
  std::vector<Row> rows;
  for (const Candidate& c : list)
    rows.push_back({.candidate = c,
                    .mfu = per_speed * c.tokens_per_second_per_gpu,
                    .dollars = winner.rental_per_gpu.si() * c.step_time.si() *
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
struct Decision {
  const char* header;
  Align align;
  std::function<std::string(const Layout&)> cell;
  std::function<std::string(const Layout&)> common;  // empty text: goes without saying
};

Decision size_of(const char* header, std::int64_t Layout::*size) {
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

std::string offload_text(const Layout& l) {
  const std::vector<std::string> parts = offloaded(l);
  return parts.empty() ? "-" : fmt::to_string(fmt::join(parts, ","));
}

std::vector<Decision> optional_decisions() {
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
      {"offload", Align::left, [](const Layout& l) { return offload_text(l); },
       [](const Layout& l) {
         return offload_text(l) == "-" ? std::string()
                                       : fmt::format("{} offloaded", offload_text(l));
       }},
      {"precision", Align::left, [](const Layout& l) { return std::string(to_text(l.precision)); },
       [](const Layout& l) { return std::string(to_text(l.precision)); }},
      {"optimizer", Align::left, [](const Layout& l) { return std::string(to_text(l.optimizer)); },
       [](const Layout& l) { return fmt::format("{} optimizer", to_text(l.optimizer)); }}};
}

// Splits the decisions into those with a column and a line of what is common to all rows.
std::vector<Decision> differing(const std::vector<Row>& rows, std::string& common) {
  std::vector<Decision> columns;
  std::vector<std::string> shared;
  // One search has one answer to this, and it means nothing where TP is 1.
  for (const Row& row : rows)
    if (const Layout& l = row.candidate.layout; l.tp > 1 && shared.empty())
      shared.emplace_back(l.sequence_parallel ? "sequence parallelism" : "no sequence parallelism");
  const Layout& first = rows.front().candidate.layout;
  for (Decision& decision : optional_decisions()) {
    std::set<std::string> texts;
    for (const Row& row : rows) texts.insert(decision.cell(row.candidate.layout));
    if (texts.size() > 1)
      columns.push_back(std::move(decision));
    else if (const std::string text = decision.common(first); !text.empty())
      shared.push_back(text);
  }
  common = fmt::to_string(fmt::join(shared, ", "));
  return columns;
}

// Measures of a layout, in columns.
struct Measure {
  std::string header;
  std::function<std::string(const Row&)> cell;
};

std::vector<Measure> measures(const TimeUnit& unit) {
  return {{fmt::format("step {}", unit.name),
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
}

Table rows_table(const std::vector<Row>& rows, bool numbered,
                 const std::vector<Decision>& decisions, const std::vector<Measure>& measured) {
  std::vector<std::string> header = {"TP", "PP", "DP", "MB"};
  std::vector<Align> align(header.size(), Align::right);
  for (const Decision& decision : decisions) {
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
    for (const Decision& decision : decisions) cells.push_back(decision.cell(layout));
    for (const Measure& measure : measured) cells.push_back(measure.cell(row));
    table.add(std::move(cells));
  }
  return table;
}

// A page that is too narrow for all columns leaves out dollars, then MFU: both follow
// from the speed.
void add_rows(Document& document, const std::vector<Row>& rows, bool numbered) {
  std::string common;
  const std::vector<Decision> decisions = differing(rows, common);
  std::vector<Measure> measured = measures(unit_for(rows.front().candidate.step_time));
  Table table = rows_table(rows, numbered, decisions, measured);
  while (!document.full() && table.width() > page_width && measured.size() > 3) {
    measured.erase(measured.size() > 4 ? measured.end() - 1 : measured.begin() + 2);
    table = rows_table(rows, numbered, decisions, measured);
  }
  const char* all = rows.size() > 1 ? "All with " : "With ";
  document.paragraph(all + common + ":", "  ").table(std::move(table), "");
}

}  // namespace

void add_candidates(Document& document, const Question& q, const Advice& a) {
  add_rows(document, rows_of(a.best, q, a.winner), true);
}

// The front, thinned to steps that save memory worth a row.
void add_front(Document& document, const Question& q, const Advice& a) {
  if (a.pareto.empty()) return;
  const std::vector<Row> front = rows_of(a.pareto, q, a.winner);
  std::vector<Row> rows;
  for (double saving : {1.0, 0.95, 0.9, 0.8, 0.7}) {
    rows.clear();
    for (const Row& row : front)
      if (rows.empty() || row.candidate.peak_memory < rows.back().candidate.peak_memory * saving)
        rows.push_back(row);
    if (document.full() || rows.size() <= longest_front) break;
  }
  std::string text = "Speed against memory: nothing is faster with less.";
  if (rows.size() < front.size())
    text += fmt::format(" {} of {} points (--json lists all).", rows.size(), front.size());
  document.gap().label(text);
  add_rows(document, rows, false);
}

}  // namespace orrery
