// SPDX-License-Identifier: Apache-2.0
// Reads, tightens and judges gates.
#include "sim/validate/score/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/base/text/words.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

// What is written keeps four digits after the point, rounded upwards.
double rounded(double value) {
  constexpr double digits = 1e4;
  return std::ceil(value * digits) / digits;
}

const double* figure_of(const std::vector<GroupFigures>& today, const std::string& group,
                        const std::string& figure) {
  for (const GroupFigures& g : today) {
    if (g.group != group) continue;
    const auto found = g.figures.find(figure);
    return found == g.figures.end() ? nullptr : &found->second;
  }
  return nullptr;
}

const Gate* gate_of(const GateFile& file, const std::string& group, const std::string& figure) {
  const auto found = std::find_if(file.gates.begin(), file.gates.end(), [&](const Gate& gate) {
    return gate.group == group && gate.figure == figure;
  });
  return found == file.gates.end() ? nullptr : &*found;
}

}  // namespace

GateFile load_gates_or_none(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? load_gates(path) : GateFile{};
}

GateFile load_gates(const std::filesystem::path& path) {
  GateFile file;
  const JsonValue read = JsonValue::load(path);
  read.expect_only({"rule", "relative_margin", "absolute_margin", "gates"});
  file.relative_margin = read.at("relative_margin").number();
  file.absolute_margin = read.at("absolute_margin").number();
  for (const JsonValue& entry : read.at("gates").items()) {
    entry.expect_only({"group", "figure", "at_most", "was", "date"});
    file.gates.push_back({.group = entry.at("group").text(),
                          .figure = entry.at("figure").text(),
                          .at_most = entry.at("at_most").number(),
                          .was = entry.at("was").number(),
                          .date = entry.at("date").text()});
  }
  return file;
}

std::string gates_json(const GateFile& file) {
  Json head = {
      {"rule",
       "How much a figure may be at most, as a share. Gates are only ever tightened: `validate "
       "--write-gates` keeps the tighter of the old and the new. `was`: the figure when set."},
      {"relative_margin", file.relative_margin},
      {"absolute_margin", file.absolute_margin}};
  // One gate a line: changes are read line by line.
  std::string out = head.dump(1);
  out.erase(out.rfind('\n'));
  out += ",\n \"gates\": [\n";
  for (std::size_t i = 0; i < file.gates.size(); ++i) {
    const Gate& gate = file.gates[i];
    const Json line = {{"group", gate.group},
                       {"figure", gate.figure},
                       {"at_most", gate.at_most},
                       {"was", gate.was},
                       {"date", gate.date}};
    out += "  " + line.dump() + (i + 1 < file.gates.size() ? ",\n" : "\n");
  }
  return out + " ]\n}\n";
}

GateFile tightened(const GateFile& before, const std::vector<GroupFigures>& today,
                   const std::string& date) {
  GateFile after{.relative_margin = before.relative_margin,
                 .absolute_margin = before.absolute_margin,
                 .gates = {}};
  for (const GroupFigures& g : today)
    for (const auto& [figure, value] : g.figures) {
      Gate gate{.group = g.group,
                .figure = figure,
                .at_most = rounded(
                    std::max(value * (1 + before.relative_margin), value + before.absolute_margin)),
                .was = rounded(value),
                .date = date};
      const Gate* old = gate_of(before, g.group, figure);
      after.gates.push_back(old != nullptr && old->at_most <= gate.at_most ? *old : gate);
    }
  for (const Gate& old : before.gates)
    if (gate_of(after, old.group, old.figure) == nullptr) after.gates.push_back(old);
  return after;
}

std::vector<GateVerdict> judge(const GateFile& gates, const std::vector<GroupFigures>& today,
                               bool every_group) {
  std::vector<GateVerdict> verdicts;
  for (const Gate& gate : gates.gates) {
    const double* figure = figure_of(today, gate.group, gate.figure);
    if (figure == nullptr && !every_group) continue;
    GateVerdict verdict{.gate = gate, .today = std::nullopt, .passed = false};
    if (figure != nullptr) {
      verdict.today = *figure;
      verdict.passed = *figure <= gate.at_most;
    }
    verdicts.push_back(verdict);
  }
  return verdicts;
}

std::string verdicts_text(const std::vector<GateVerdict>& verdicts) {
  Table table({"group", "figure", "today", "at most", "set", ""}, {Align::left, Align::left});
  std::size_t failed = 0;
  for (const GateVerdict& v : verdicts) {
    if (!v.passed) ++failed;
    std::string group = v.gate.group;
    constexpr std::size_t widest = 44;
    if (columns(group) > widest) {
      // The end tells the GPU: what is cut is the middle of a source's name.
      constexpr std::size_t tail = 18;
      group = group.substr(0, widest - tail - 1) + "…" + group.substr(group.size() - tail);
    }
    table.add({group, v.gate.figure, v.today ? percent(*v.today, 2) : "no rows",
               percent(v.gate.at_most, 2), v.gate.date, v.passed ? "passed" : "FAILED"});
  }
  return table.text() +
         fmt::format("{} gates passed, {} failed\n", verdicts.size() - failed, failed);
}

}  // namespace orrery
