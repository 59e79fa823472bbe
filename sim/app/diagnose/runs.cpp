// SPDX-License-Identifier: Apache-2.0
// Diagnoses a folder of runs and counts what was found.
#include "sim/app/diagnose/runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "sim/base/json/json.h"
#include "sim/base/statistics.h"
#include "sim/base/text/words.h"
#include "sim/question/diagnosed.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// A fault that costs less than reruns differ by did nothing to the run: nobody could find it by its
// cost, and it is counted apart.
constexpr double least_cost = 0.03;

// Times of steps where the program prints no log.
std::vector<double> steps_of(const JsonValue& run) {
  std::vector<double> steps;
  if (const auto times = run.find("steps_s"))
    for (const JsonValue& time : times->items()) steps.push_back(time.number());
  return steps;
}

// The step without the fault, where the maker of the run knows it.
std::optional<double> healthy_of(const JsonValue& run) {
  const auto healthy = run.find("healthy_step_s");
  return healthy ? std::optional(healthy->number()) : std::nullopt;
}

std::string truth_of(const std::string& text) {
  return text.empty() ? std::string(cause_text[CauseKind::healthy]) : text;
}

std::vector<FaultRun> runs_of(const fs::path& folder) {
  std::vector<FaultRun> runs;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const fs::path file = entry.path() / "run.json";
    if (!fs::exists(file)) continue;
    const JsonValue run = JsonValue::load(file);
    runs.push_back({.id = run.at("id").text(),
                    .program = run.at("program").text(),
                    .truth = truth_of(run.at("truth").text()),
                    .held = run.at("held").boolean(),
                    .steps_s = steps_of(run),
                    .healthy_s = healthy_of(run),
                    .folder = entry.path()});
  }
  if (runs.empty())
    throw Error({.file = folder.string(),
                 .found = "no run",
                 .expected = "folders of runs, each with a run.json and its files"});
  std::sort(runs.begin(), runs.end(),
            [](const FaultRun& a, const FaultRun& b) { return a.id < b.id; });
  return runs;
}

std::vector<RunFile> files_of(const fs::path& folder) {
  std::vector<RunFile> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename() != "run.json") files.push_back({entry.path().string()});
  std::sort(files.begin(), files.end(),
            [](const RunFile& a, const RunFile& b) { return a.name < b.name; });
  return files;
}

void ask(FaultRun& run, const Simulated& program) {
  std::vector<std::string> kinds;
  Observations seen = read_observations({.files = files_of(run.folder)}, kinds);
  if (!run.steps_s.empty()) seen.step_s = median(run.steps_s);
  const Diagnosis d = diagnose(program.scenario, program.prediction, seen);
  run.found = cause_text[d.first().kind];
  run.step_s = d.gap.measured_s;
  // What the cause costs, as its action says it: a share of the step that was measured.
  run.explained_s = run.step_s * (1 - d.first().healthy_s / d.first().faulty_s);
  for (const Finding& f : d.findings) {
    if (run.top.size() < 3) run.top.emplace_back(cause_text[f.kind]);
    if (cause_text[f.kind] == run.truth) run.probability = f.probability;
  }
}

// Against the same run without the fault where that is known, else the median of the program's
// healthy runs.
void add_costs(std::vector<FaultRun>& runs) {
  std::map<std::string, std::vector<double>> healthy;
  for (const FaultRun& run : runs)
    if (run.healthy()) healthy[run.program].push_back(run.step_s);
  for (FaultRun& run : runs) {
    const auto& like = healthy[run.program];
    if (like.empty() && !run.healthy_s) continue;
    const double without = run.healthy_s ? *run.healthy_s : median(like);
    run.cost_s = run.step_s - without;
    run.cost = run.step_s / without - 1;
    if (!run.healthy() && run.cost < least_cost)
      run.other = fmt::format("costs {}", percent(run.cost));
  }
}

struct Count {
  int runs = 0, first = 0, three = 0, near = 0;
};

// Of n trials, k: the 90% interval of the share (Wilson).
std::string share_text(int k, int n) {
  if (n == 0) return "-";
  const double p = static_cast<double>(k) / n, z = normal_95, d = 1 + z * z / n;
  const double middle = (p + z * z / (2 * n)) / d;
  const double half = z / d * std::sqrt(p * (1 - p) / n + z * z / (4.0 * n * n));
  return fmt::format("{} of {}: {} ({} to {})", k, n, percent(p, 0),
                     percent(std::max(0.0, middle - half), 0),
                     percent(std::min(1.0, middle + half), 0));
}

bool is_near(const FaultRun& run) {
  return std::abs(run.explained_s - run.cost_s) <= 0.05 * run.step_s;
}

Count count(const std::vector<FaultRun>& runs, bool held, bool healthy) {
  Count out;
  for (const FaultRun& run : runs) {
    if (run.held != held || run.healthy() != healthy || !run.counted()) continue;
    ++out.runs;
    out.first += run.found == run.truth;
    out.three += std::find(run.top.begin(), run.top.end(), run.truth) != run.top.end();
    out.near += is_near(run);
  }
  return out;
}

Table scores(const std::vector<FaultRun>& runs) {
  Table table({"runs", "set by", "held out"}, {Align::left, Align::left, Align::left});
  const Count a = count(runs, false, false), b = count(runs, true, false);
  const Count c = count(runs, false, true), d = count(runs, true, true);
  table.add({"right cause first", share_text(a.first, a.runs), share_text(b.first, b.runs)});
  table.add({"right cause in three", share_text(a.three, a.runs), share_text(b.three, b.runs)});
  table.add({"gap within 5 points", share_text(a.near, a.runs), share_text(b.near, b.runs)});
  table.add({"alarms without a fault", share_text(c.runs - c.first, c.runs),
             share_text(d.runs - d.first, d.runs)});
  return table;
}

Table confusion(const std::vector<FaultRun>& runs) {
  std::map<std::pair<std::string, std::string>, int> cells;
  for (const FaultRun& run : runs)
    if (run.counted()) ++cells[{run.truth, run.found}];
  Table table({"made", "found", "runs"}, {Align::left, Align::left});
  for (const auto& [pair, n] : cells) table.add({pair.first, pair.second, std::to_string(n)});
  return table;
}

Table every_run(const std::vector<FaultRun>& runs) {
  Table table({"run", "held", "step ms", "cost %", "explained %", "truth", "found", "P(truth) %"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left,
               Align::left});
  for (const FaultRun& run : runs)
    table.add({run.id, run.held ? "yes" : "", fmt::format("{:.1f}", 1e3 * run.step_s),
               percent_figure(run.cost_s / run.step_s),
               percent_figure(run.explained_s / run.step_s),
               run.truth + (run.counted() ? "" : " (no cost)"), run.found,
               percent_figure(run.probability, 0)});
  return table;
}

}  // namespace

std::vector<FaultRun> diagnose_runs(const fs::path& folder, const AskedWith& with) {
  std::vector<FaultRun> runs = runs_of(folder);
  std::map<std::string, std::unique_ptr<Simulated>> programs;
  for (FaultRun& run : runs) {
    auto& program = programs[run.program];
    if (!program) {
      const fs::path file = folder.parent_path() / "programs" / (run.program + ".json");
      program = std::make_unique<Simulated>(simulate_settings(JsonValue::load(file), with));
    }
    ask(run, *program);
    if (with.progress)
      with.progress(static_cast<double>(&run - runs.data() + 1) / static_cast<double>(runs.size()),
                    &run - runs.data() + 1);
  }
  add_costs(runs);
  return runs;
}

Document runs_document(const std::vector<FaultRun>& runs, bool full, std::size_t width) {
  Document document(full, width);
  document.title(fmt::format("{} runs with faults made on purpose, and without", runs.size()));
  document.table(scores(runs));
  document.note(
      "Intervals of 90% (Wilson). Faults that cost less than 3% of a step are not counted.");
  document.heading("Made and found");
  document.table(confusion(runs));
  document.heading("Every run");
  document.table(every_run(runs));
  return document;
}

Json runs_json(const std::vector<FaultRun>& runs) {
  Json rows = Json::array();
  for (const FaultRun& run : runs)
    rows.push_back({{"id", run.id},
                    {"program", run.program},
                    {"truth", run.truth},
                    {"held", run.held},
                    {"counted", run.counted()},
                    {"found", run.found},
                    {"first_three", run.top},
                    {"probability", run.probability},
                    {"step_s", run.step_s},
                    {"cost_s", run.cost_s},
                    {"explained_s", run.explained_s}});
  return {{"runs", std::move(rows)}};
}

}  // namespace orrery
