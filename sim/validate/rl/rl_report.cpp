// SPDX-License-Identifier: Apache-2.0
// Writes errors of RL steps as text, JSON and figures of gates.
#include "sim/validate/rl/rl_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hw_models/catalog.h"
#include "sim/base/append.h"
#include "sim/base/statistics.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

constexpr const char* all_rows = "all";

// Signed errors of each group: a model's, and all.
std::map<std::string, std::vector<double>> errors_of(const std::vector<RlRow>& rows,
                                                     RlQuantity quantity) {
  std::map<std::string, std::vector<double>> errors;
  for (const RlRow& row : rows)
    if (const auto value = measured(row, quantity)) {
      const double error = predicted(row, quantity) / *value - 1;
      errors[row.model].push_back(error);
      errors[all_rows].push_back(error);
    }
  return errors;
}

double of_size(std::vector<double> errors, double percent) {
  for (double& e : errors) e = std::abs(e);
  return percentile(errors, percent);
}

std::string cell(const Seconds& time) { return fmt::format("{:.1f}", time.si()); }

std::string rows_text(const std::vector<RlRow>& rows) {
  Table table({"row", "model", "GPU", "GPUs", "off", "rollout", "log p", "train", "sync", "other",
               "step", "measured", "error"},
              {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right,
               Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  for (const RlRow& row : rows) {
    const auto value = measured(row, RlQuantity::step);
    if (!value) continue;
    const RlStep& s = row.step;
    table.add({row.id, row.model, row.gpu.substr(0, row.gpu.find('-')),
               std::to_string(row.job.cluster.gpus), std::to_string(row.job.steps_off),
               cell(s.rollout.time), cell(s.passes.logprobs), cell(s.passes.training),
               cell(s.sync.time()), cell(s.handover + s.host + s.validation), cell(s.step),
               fmt::format("{:.1f}", *value),
               fmt::format("{:+.0f}%", 100 * (predicted(row, RlQuantity::step) / *value - 1))});
  }
  return table.text();
}

std::string groups_text(const std::vector<RlRow>& rows) {
  Table table({"RL steps", "rows", "step", "p90", "bias", "tok/s", "p90", "bias"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::right});
  const auto steps = errors_of(rows, RlQuantity::step);
  const auto rates = errors_of(rows, RlQuantity::tokens_s_gpu);
  const auto add = [&](const std::string& name) {
    std::vector<std::string> cells{name, std::to_string(steps.at(name).size())};
    for (const auto* errors : {&steps, &rates}) {
      const auto found = errors->find(name);
      for (const double value : {50.0, 90.0})
        cells.push_back(found == errors->end()
                            ? ""
                            : fmt::format("{:.1f}", 100 * of_size(found->second, value)));
      cells.push_back(found == errors->end() ? ""
                                             : fmt::format("{:+.1f}", 100 * median(found->second)));
    }
    table.add(std::move(cells));
  };
  for (const auto& [name, errors] : steps)
    if (name != all_rows) add(name);
  if (steps.count(all_rows) > 0) add(all_rows);
  return table.text();
}

// Pairs, and how many of them are in order.
struct Order {
  int same = 0, same_right = 0, all = 0, right = 0, decided = 0, decided_right = 0;
};
Order order_of(const std::vector<RlPair>& pairs) {
  Order o;
  const auto count = [](bool belongs, bool right, int& all, int& good) {
    all += belongs ? 1 : 0;
    good += belongs && right ? 1 : 0;
  };
  for (const RlPair& pair : pairs) {
    count(true, pair.right, o.all, o.right);
    count(pair.same_gpus, pair.right, o.same, o.same_right);
    count(pair.decided, pair.right, o.decided, o.decided_right);
  }
  return o;
}

std::string order_text(const std::vector<RlPair>& pairs) {
  const Order o = order_of(pairs);
  if (o.all == 0) return "";
  return fmt::format(
      "\nOrder by tokens/s/GPU, in turns against steps off: right in {} of {} pairs on as many\n"
      "GPUs, in {} of all {}. The range of one holds the other in {} pairs, which have no winner;\n"
      "of the other {} the order is right in {}\n",
      o.same_right, o.same, o.right, o.all, o.all - o.decided, o.decided, o.decided_right);
}

bool holds(const RlRange& range, double factor) {
  return range.low <= factor && factor <= range.high;
}

std::string skipped_text(const std::vector<RlRow>& rows) {
  std::string text;
  for (const RlRow& row : rows)
    if (!row.scored()) text += wrap(row.id + ": " + row.skipped, page_width, "  ", "    ");
  return text.empty() ? "" : "\nNot scored:\n" + text;
}

// Values of programs that are no facts.
template <class Program, class Visit>
void visit_uncertain(Program& program, const Visit& visit) {
  const auto one = [&](const char* name, auto& value) {
    if (is_uncertain(value.evidence)) visit(name, value);
  };
  one("shared_sync", program.shared_sync);
  one("split_sync", program.split_sync);
  one("host_copy", program.host_copy);
  one("engine_step", program.engine_step);
  one("engine_ranks", program.engine_ranks);
  one("response", program.response);
}

// Median and 90th percentile of the step's error with the named value at one end of its range.
std::string errors_with(std::vector<RlRow> rows, const std::string& name, bool high, int threads) {
  for (RlRow& row : rows)
    visit_uncertain(row.job.program, [&](const char* key, auto& value) {
      if (name == key) value.value = high ? value.high : value.low;
    });
  predict_rl_rows(rows, threads);
  const auto errors = errors_of(rows, RlQuantity::step);
  const auto& all = errors.at(all_rows);
  return fmt::format("{:.1f}, {:.1f}", 100 * of_size(all, 50), 100 * of_size(all, 90));
}

}  // namespace

std::vector<RlPair> rl_pairs(const std::vector<RlRow>& rows, const std::vector<RlRange>& ranges) {
  std::vector<RlPair> pairs;
  const auto rate = [&](std::size_t i) { return measured(rows[i], RlQuantity::step); };
  for (std::size_t a = 0; a < rows.size(); ++a)
    for (std::size_t b = 0; b < rows.size(); ++b) {
      const RlRow &sync = rows[a], &off = rows[b];
      if (!rate(a) || !rate(b) || sync.job.steps_off > 0 || off.job.steps_off == 0) continue;
      if (sync.model != off.model || sync.gpu != off.gpu || sync.version != off.version ||
          sync.precision != off.precision)
        continue;
      // Tokens of a step are alike: who has more a second and GPU needs less GPU-seconds.
      const auto gpus = [](const RlRow& row) { return static_cast<double>(row.job.cluster.gpus); };
      const bool told = *rate(a) * gpus(sync) < *rate(b) * gpus(off);
      const double ratio = off.step.step.si() * gpus(off) / (sync.step.step.si() * gpus(sync));
      pairs.push_back({.sync = a,
                       .off = b,
                       .same_gpus = sync.job.cluster.gpus == off.job.cluster.gpus,
                       .right = told == (ratio > 1),
                       .decided = !holds(ranges[a], ratio) && !holds(ranges[b], 1 / ratio)});
    }
  return pairs;
}

std::string rl_text(const std::vector<RlRow>& rows, const RlError& error) {
  return "\nSteps of RL post-training in seconds, predicted by phase, and measured\n" +
         rows_text(rows) +
         "\nStep and tokens/s/GPU, predicted against measured, in percent: |error| (median, 90th\n"
         "percentile) and its median with sign. No value is fitted to these rows;\n"
         "they were looked at while the model was built.\n" +
         groups_text(rows) + order_text(rl_pairs(rows, rl_ranges(rows, error))) +
         skipped_text(rows);
}

std::string rl_held_out_text(const std::vector<RlRow>& rows) {
  return rl_blind_text(rows) + order_text(rl_pairs(rows, rl_ranges_of_others(rows)));
}

std::string rl_free_text(const std::vector<RlRow>& rows, int threads) {
  Table table({"value", "is", "low", "high", "error at low", "at high", "source"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::left});
  const auto first =
      std::find_if(rows.begin(), rows.end(), [](const RlRow& r) { return r.scored(); });
  if (first == rows.end()) return "no row is scored\n";
  visit_uncertain(first->job.program, [&](const char* name, const auto& value) {
    table.add({name, to_text(value.get()), to_text(*value.low), to_text(*value.high),
               errors_with(rows, name, false, threads), errors_with(rows, name, true, threads),
               value.source});
  });
  const auto errors = errors_of(rows, RlQuantity::step);
  const auto& all = errors.at(all_rows);
  return fmt::format(
      "Values of {} that are no facts. None is fitted to these rows. Errors of the step, percent:\n"
      "median and 90th percentile, {:.1f}, {:.1f} with all values as they are\n{}",
      first->job.program.title, 100 * of_size(all, 50), 100 * of_size(all, 90), table.text());
}

void add_rl_json(const std::vector<RlRow>& rows, const RlError& error, Json& row_list,
                 Json& group_list) {
  const std::vector<RlRange> ranges = rl_ranges(rows, error);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (const RlQuantity quantity : rl_quantities) {
      const RlRow& row = rows[i];
      const bool time = quantity == RlQuantity::step;
      const auto told = time ? row.step_seconds : row.tokens_s_gpu;
      if (!told) continue;
      const auto or_null = [&](double value) { return row.scored() ? Json(value) : Json(nullptr); };
      const double made = row.scored() ? predicted(row, quantity) : 0;
      row_list.push_back({{"id", row.id},
                          {"quantity", rl_quantity_text[quantity]},
                          {"unit", time ? "s" : "tokens/s/GPU"},
                          {"predicted", or_null(made)},
                          {"measured", *told},
                          {"low", or_null(made * (time ? ranges[i].low : ranges[i].least_rate()))},
                          {"high", or_null(made * (time ? ranges[i].high : ranges[i].most_rate()))},
                          {"skipped", row.scored() ? Json(nullptr) : Json(row.skipped)},
                          {"group", {{"gpu", row.gpu}, {"model", row.model}}}});
    }
  const auto steps = errors_of(rows, RlQuantity::step);
  const auto rates = errors_of(rows, RlQuantity::tokens_s_gpu);
  for (const auto& [name, errors] : steps) {
    Json group = {{"kind", "rl"}, {"name", name}, {"rows", errors.size()}};
    const auto put = [&](const char* key, const std::vector<double>& of) {
      group[key] = {{"median_error", of_size(of, 50)},
                    {"p90_error", of_size(of, 90)},
                    {"bias", median(of)},
                    {"count", of.size()}};
    };
    put("step", errors);
    if (const auto found = rates.find(name); found != rates.end())
      put("tokens_s_gpu", found->second);
    group_list.push_back(std::move(group));
  }
}

std::vector<RlRow> shipped_rl_rows(const Aliases& aliases, int threads) {
  std::vector<RlRow> rows;
  for (const auto& file : csv_files(data_root() / "validation/measurements/rl"))
    append(rows, read_rl_rows(read_csv(file), aliases));
  predict_rl_rows(rows, threads);
  return rows;
}

std::vector<GroupFigures> rl_gate_figures(const std::vector<RlRow>& rows) {
  std::map<std::string, GroupFigures> groups;
  for (const RlQuantity quantity : rl_quantities)
    for (const auto& [name, errors] : errors_of(rows, quantity)) {
      const std::string title = name == all_rows ? "RL steps" : "RL steps, " + name;
      GroupFigures& group = groups[title];
      group.group = title;
      group.rows = std::max(group.rows, static_cast<int>(errors.size()));
      const std::string key(rl_quantity_text[quantity]);
      group.figures[key + "_median"] = of_size(errors, 50);
      group.figures[key + "_p90"] = of_size(errors, 90);
    }
  const std::vector<RlRange> ranges = rl_ranges_of_others(rows);
  const Order o = order_of(rl_pairs(rows, ranges));
  auto& figures = groups["RL steps"].figures;
  const auto put = [&](const char* name, int right, int all) {
    if (all > 0) figures[name] = 1 - static_cast<double>(right) / all;
  };
  put("order_wrong", o.same_right, o.same);
  put("order_wrong_all", o.right, o.all);
  put("order_wrong_decided", o.decided_right, o.decided);
  for (const RlQuantity quantity : rl_quantities)
    figures[std::string(rl_quantity_text[quantity]) + "_not_held"] =
        1 - covered_share(rows, ranges, quantity);
  std::vector<GroupFigures> out;
  for (auto& [name, group] : groups) out.push_back(std::move(group));
  return out;
}

}  // namespace orrery
