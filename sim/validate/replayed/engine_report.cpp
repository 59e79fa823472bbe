// SPDX-License-Identifier: Apache-2.0
// Writes errors of replayed runs of the serving engine as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/statistics.h"
#include "sim/paper/tables.h"
#include "sim/validate/replayed/engine_replay.h"

namespace orrery {
namespace {

constexpr const char* oom = "oom";

const char* half_of(const EngineCase& c) { return c.held ? "held" : "fitted"; }

std::vector<std::string> groups_of(const EngineCase& c) {
  std::string model = fmt::format("{} {}", c.gpu, c.model);
  if (c.kind == EngineCaseKind::pair) model += " pair";
  if (c.tp > 1) model += fmt::format(" tp{}", c.tp);
  return {fmt::format("{} {}", model, half_of(c)),
          fmt::format("{} {}", c.gpus() > 1 ? "~several GPUs," : "~all", half_of(c))};
}

std::string shown(const std::string& group) { return group[0] == '~' ? group.substr(1) : group; }

double absolute(const std::vector<double>& errors, double percent) {
  std::vector<double> values;
  for (const double e : errors) values.push_back(std::abs(e));
  return percentile(values, percent);
}

EngineErrors summed(const std::string& name, const std::string& quantity,
                    const std::vector<double>& errors) {
  EngineErrors e{
      .name = shown(name), .quantity = quantity, .rows = static_cast<int>(errors.size())};
  if (quantity == oom) {
    const auto wrong = std::count_if(errors.begin(), errors.end(), [](double v) { return v != 0; });
    e.median = static_cast<double>(wrong) / static_cast<double>(errors.size());
    return e;
  }
  e.median = absolute(errors, 50);
  e.p90 = absolute(errors, 90);
  e.bias = percentile(errors, 50);
  return e;
}

double error_of(const EngineFigure& f) {
  return std::string(f.quantity) == oom ? f.predicted - f.measured : f.predicted / f.measured - 1;
}

void add_cells(std::vector<std::string>& row, const std::map<std::string, EngineErrors>& found,
               const char* quantity, int cells) {
  const auto at = found.find(quantity);
  if (at == found.end()) {
    row.insert(row.end(), static_cast<std::size_t>(cells), "");
    return;
  }
  const EngineErrors& e = at->second;
  row.push_back(fmt::format("{:.1f}", 100 * e.median));
  if (cells > 1) row.push_back(fmt::format("{:.1f}", 100 * e.p90));
  if (cells > 2) row.push_back(fmt::format("{:+.1f}", 100 * e.bias));
}

std::string rows_text(const std::vector<EngineFigure>& figures) {
  Table table({"case", "quantity", "predicted", "measured", "error"},
              {Align::left, Align::left, Align::right, Align::right, Align::right});
  for (const EngineFigure& f : figures) {
    const bool seconds = std::string(f.unit) == "s";
    const auto number = [&](double v) {
      return seconds ? fmt::format("{:.3f} ms", 1e3 * v) : fmt::format("{:.0f}", v);
    };
    if (!f.skipped.empty())
      table.add({f.from->id, f.quantity, "", number(f.measured), f.skipped});
    else
      table.add({f.from->id, f.quantity, number(f.predicted), number(f.measured),
                 std::string(f.quantity) == oom ? (f.predicted == f.measured ? "" : "wrong")
                                                : fmt::format("{:+.1f}%", 100 * error_of(f))});
  }
  return "\n" + table.text();
}

}  // namespace

std::vector<EngineErrors> engine_errors(const std::vector<EngineFigure>& figures) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (const EngineFigure& f : figures)
    if (f.skipped.empty())
      for (const std::string& group : groups_of(*f.from))
        errors[{group, f.quantity}].push_back(error_of(f));
  std::vector<EngineErrors> all;
  for (const auto& [key, values] : errors) all.push_back(summed(key.first, key.second, values));
  return all;
}

std::string engine_text(const std::vector<EngineFigure>& figures, bool each_row) {
  std::map<std::string, std::map<std::string, EngineErrors>> groups;
  std::vector<std::string> order;
  for (const EngineErrors& e : engine_errors(figures)) {
    if (!groups.contains(e.name)) order.push_back(e.name);
    groups[e.name][e.quantity] = e;
  }
  Table table({"our engine", "runs", "TPOT", "p90", "bias", "TTFT", "p90", "bias", "p99", "sent",
               "step", "p90", "bias", "blocks", "OOM wrong"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::right, Align::right});
  for (const std::string& name : order) {
    const auto& found = groups[name];
    const auto runs = found.find("tpot");
    std::vector<std::string> row{name,
                                 runs == found.end() ? "" : std::to_string(runs->second.rows)};
    add_cells(row, found, "tpot", 3);
    add_cells(row, found, "ttft", 3);
    add_cells(row, found, "ttft_p99", 1);
    add_cells(row, found, "transfer", 1);
    add_cells(row, found, "device_step", 3);
    add_cells(row, found, "kv_blocks", 1);
    const auto memory = found.find(oom);
    row.push_back(memory == found.end()
                      ? ""
                      : fmt::format("{:.0f} of {}", memory->second.median * memory->second.rows,
                                    memory->second.rows));
    table.add(row);
  }
  const auto skipped = std::count_if(figures.begin(), figures.end(),
                                     [](const EngineFigure& f) { return !f.skipped.empty(); });
  std::string text =
      "\nOur own serving engine replayed, in percent: |error| (median, 90th percentile) and its\n"
      "median with sign; TTFT means, p99 their 99th percentile; sent: from the end of a prefill "
      "to\n"
      "keys and values on another GPU; step: the device's time of one; all: runs on one GPU\n" +
      table.text();
  if (skipped > 0)
    text +=
        fmt::format("  {} figures are not predicted (--json has each one's sentence)\n", skipped);
  return each_row ? text + rows_text(figures) : text;
}

void add_engine_json(const std::vector<EngineFigure>& figures, Json& row_list, Json& group_list) {
  for (const EngineFigure& f : figures) {
    const bool predicted = f.skipped.empty();
    row_list.push_back({{"id", f.from->id},
                        {"quantity", f.quantity},
                        {"unit", f.unit},
                        {"predicted", predicted ? Json(f.predicted) : Json(nullptr)},
                        {"measured", f.measured},
                        {"low", nullptr},
                        {"high", nullptr},
                        {"skipped", predicted ? Json(nullptr) : Json(f.skipped)},
                        {"group",
                         {{"gpu", f.from->gpu},
                          {"framework", f.from->stack},
                          {"model", f.from->model},
                          {"precision", "bf16"},
                          {"mode", f.from->kind == EngineCaseKind::pair ? "disagg" : "agg"},
                          {"held", f.from->held}}}});
  }
  for (const EngineErrors& e : engine_errors(figures))
    group_list.push_back({{"kind", "replayed"},
                          {"name", e.name},
                          {"quantity", e.quantity},
                          {"rows", e.rows},
                          {"median_error", e.median},
                          {"p90_error", e.p90},
                          {"bias", e.bias}});
}

}  // namespace orrery
