// SPDX-License-Identifier: Apache-2.0
// Collects the figures of everything that is measured, and holds them against gates.
#include "sim/app/validate/gates.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "hw_models/catalog.h"
#include "hw_models/catalogue_hash.h"
#include "sim/app/validate/json.h"
#include "sim/base/append.h"
#include "sim/base/output_file.h"
#include "sim/validate/fit/ranges.h"
#include "sim/validate/nested/report.h"
#include "sim/validate/page/page.h"
#include "sim/validate/replayed/engine_gates.h"
#include "sim/validate/replayed/engine_replay.h"
#include "sim/validate/rl/rl_report.h"
#include "sim/validate/score/choices.h"
#include "sim/validate/score/odd_rows.h"
#include "sim/validate/score/ranking.h"
#include "sim/validate/served/served_gates.h"

namespace orrery {
namespace {

NestedErrors shipped_nested() { return load_nested(data_root() / "validation/nested.json"); }
NestedErrors shipped_served_nested() {
  return load_nested(data_root() / "validation/served_nested.json");
}

void warn_of_age(const NestedErrors& errors, const std::string& file) {
  if (errors.catalogue == catalogue_hash()) return;
  fmt::print(stderr,
             "orrery: validation/{} was made with other catalogues; validate --leave-out nested "
             "computes it anew\n",
             file);
}

// Of training runs: what a page shows beside its charts.
WholeAnswer whole_answer(const std::vector<ScoredRow>& scored,
                         const std::vector<GateVerdict>& verdicts, const ValidateOptions& options) {
  return {{.json = answer_json(validate_head(options), {}, report_json(scored))},
          validation_document(scored, verdicts,
                              {{"90% ranges", ranges_text(range_groups(scored))},
                               {"Order of layouts", ranking_text(scored) + choices_text(scored)},
                               {"Rows that are known to be odd", odd_rows_text(scored)}})};
}

std::string today() { return fmt::format("{:%Y-%m-%d}", std::chrono::system_clock::now()); }

}  // namespace

GateFiles prepare_files(const ValidateOptions& options) {
  GateFiles files;
  if (!options.gates.empty()) files.judged = load_gates(options.gates);
  if (!options.write_gates.empty()) {
    check_writable_file(options.write_gates);
    files.before = load_gates_or_none(options.write_gates);
  }
  for (const std::string* file : {&options.model_error, &options.write_nested})
    if (!file->empty()) check_writable_file(*file);
  if (!options.looks.html.empty()) check_writable_file(options.looks.html);
  if (!options.looks.plots.empty()) check_writable_folder(options.looks.plots);
  return files;
}

std::optional<Printed> gates_and_report(const std::vector<ScoredRow>& scored,
                                        const Aliases& aliases, const GateFiles& files,
                                        const ValidateOptions& options) {
  if (options.gates.empty() && options.write_gates.empty() && !options.looks.any())
    return std::nullopt;
  auto figures = group_figures(scored);
  if (options.files.empty()) {
    append(figures, nested_figures(shipped_nested()));
    append(figures, nested_figures(shipped_served_nested()));
    append(figures, engine_gate_figures(replay_engine(shipped_engine_cases(), options.threads)));
    append(figures, rl_gate_figures(shipped_rl_rows(aliases, options.threads)));
    const std::vector<ServingRow> rows = shipped_serving_rows(aliases);
    append(figures, served_gate_figures(serve_rows(rows, options.threads, options.quiet)));
  }
  std::vector<GateVerdict> verdicts;
  if (!options.gates.empty()) verdicts = judge(files.judged, figures, options.files.empty());
  if (options.looks.any()) write_looks(options.looks, whole_answer(scored, verdicts, options));
  if (!options.write_gates.empty())
    write_file(options.write_gates, gates_json(tightened(files.before, figures, today())));
  const bool passed =
      std::all_of(verdicts.begin(), verdicts.end(), [](const auto& v) { return v.passed; });
  return Printed{options.gates.empty() ? "" : verdicts_text(verdicts),
                 passed ? ExitCode::answer : ExitCode::check_failed};
}

Printed nested_as_shipped(const ValidateOptions& options) {
  const NestedErrors errors = shipped_nested(), served = shipped_served_nested();
  warn_of_age(errors, "nested.json");
  warn_of_age(served, "served_nested.json");
  Json both = nested_json(errors);
  both["served"] = nested_json(served);
  return {options.json ? answer_text(validate_head(options), {}, both)
                       : nested_text(errors) + "\n" + served_nested_text(served)};
}

}  // namespace orrery
