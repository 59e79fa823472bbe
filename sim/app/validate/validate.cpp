// SPDX-License-Identifier: Apache-2.0
// Runs validate: finds the tables, predicts their rows in parallel and tells the scores.
#include "sim/app/validate/validate.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/app/validate/gates.h"
#include "sim/app/validate/json.h"
#include "sim/app/validate/left_out.h"
#include "sim/base/append.h"
#include "sim/base/errors/check.h"
#include "sim/base/output_file.h"
#include "sim/base/parallel.h"
#include "sim/validate/advice.h"
#include "sim/validate/fit/fit.h"
#include "sim/validate/fit/ranges.h"
#include "sim/validate/nested/free_values.h"
#include "sim/validate/parts/collectives.h"
#include "sim/validate/parts/collectives_report.h"
#include "sim/validate/parts/kernels.h"
#include "sim/validate/replayed/engine_replay.h"
#include "sim/validate/rl/rl_report.h"
#include "sim/validate/rows/step_table.h"
#include "sim/validate/rows/training_columns.h"
#include "sim/validate/score/causes.h"
#include "sim/validate/score/choices.h"
#include "sim/validate/score/odd_rows.h"
#include "sim/validate/score/predict.h"
#include "sim/validate/score/ranking.h"
#include "sim/validate/score/residuals.h"
#include "sim/validate/served/served_fit.h"
#include "sim/validate/served/served_rows.h"
#include "sim/validate/serving/serving_rows.h"

namespace orrery {
namespace {

bool has_all(const CsvTable& table, const std::vector<std::string>& columns) {
  return std::all_of(columns.begin(), columns.end(),
                     [&table](const std::string& column) { return table.has(column); });
}

enum class TableKind { training, inference, collectives };

// A table is told by its columns. One that is nearly a training table is read as one, so that the
// missing column is named.
TableKind kind_of(const CsvTable& table) {
  if (has_all(table, inference_columns()) || (table.has("mode") && table.has("ctx")))
    return TableKind::inference;
  const auto half = [&table](const std::vector<std::string>& wanted) {
    const auto known = std::count_if(wanted.begin(), wanted.end(),
                                     [&](const std::string& column) { return table.has(column); });
    return static_cast<std::size_t>(known) * 2 >= wanted.size();
  };
  if (table.has("collective") && half(collective_columns())) return TableKind::collectives;
  if (is_training_table(table)) return TableKind::training;
  throw Error({.file = table.file,
               .path = "line 1",
               .found = "columns of no supported table",
               .expected = "training runs (at least model, gpu, n_gpus, seq, tp, tokens_s_gpu), "
                           "training steps (id, gpus, mbs, nm, wrap, step_s, ...), inference steps "
                           "(id, mode, batch, ctx, tp, step_s, ...), collectives "
                           "(id, gpu, library, collective, ranks, bytes, time_us, ...), steps of "
                           "RL (id, steps_off, response_tokens, gen_batch, ...), operator "
                           "tables by name (<gpu>_gemm_<framework>_<format>.csv) or lines of "
                           "calibrate measure (*.jsonl)"});
}

std::vector<std::filesystem::path> table_files(const ValidateOptions& options) {
  std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
  if (!files.empty() || options.kernels) return files;
  const auto folder = data_root() / "validation/measurements";
  for (const auto& part : {folder, folder / "training", folder / "collectives"})
    append(files, csv_files(part));
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw Error(
        {.file = folder.string(), .found = "no tables", .expected = "measured runs (.csv)"});
  return files;
}

// Tables that only people read.
void refuse_json(const ValidateOptions& options) {
  for (const auto& [flag, given] : {std::pair{"--gates", !options.gates.empty()},
                                    {"--fit", options.fit},
                                    {"--advise", options.advise}})
    if (given && options.json)
      throw Error({.file = flag, .found = "--json", .expected = "no --json: it prints a table"});
}

void check_options(const ValidateOptions& options) {
  const std::vector<std::string>& kinds = leave_out_kinds();
  if (!options.leave_out.empty() &&
      std::find(kinds.begin(), kinds.end(), options.leave_out) == kinds.end())
    throw Error({.file = "--leave-out",
                 .found = in_quotes(options.leave_out),
                 .expected = "source, model, release, blind or nested",
                 .nearest = nearest_name(options.leave_out, kinds)});
  for (const auto& [flag, value] : {std::pair{"--model-error", &options.model_error},
                                    {"--write-nested", &options.write_nested}})
    if (!value->empty() && options.leave_out != "nested")
      throw Error({.file = flag,
                   .found = "no --leave-out nested",
                   .expected = "both: the model's error is that of rows that no fit saw"});
  std::string mode;
  for (const auto& [flag, given] : {std::pair{"--nested", options.nested},
                                    {"--leave-out", !options.leave_out.empty()},
                                    {"--free", options.free},
                                    {"--fit", options.fit},
                                    {"--advise", options.advise}}) {
    if (given && !mode.empty())
      throw Error({.file = flag, .found = mode, .expected = "one of the two"});
    if (given) mode = flag;
  }
  if (options.nested && !options.files.empty())
    throw Error({.file = "--nested",
                 .found = options.files.front(),
                 .expected = "no files: it prints what was computed of our own measurements"});
  for (const auto& [flag, value] : {std::pair{"--gates", &options.gates},
                                    {"--write-gates", &options.write_gates},
                                    {"--html", &options.looks.html},
                                    {"--plots", &options.looks.plots}})
    if (!mode.empty() && mode != "--advise" && !value->empty())
      throw Error({.file = flag,
                   .found = mode,
                   .expected = "one of the two: gates and pages are of shipped values"});
  refuse_json(options);
}

// Which predictions need a range, which takes most of the time.
enum class Ranged { none, scored, all };
Ranged ranged(const ValidateOptions& options) {
  // Fits, which are all that a part of a shared question does, and the advisor start from
  // predictions alone; answers for machines state every range.
  if (options.free || options.fit || options.advise || !goes_on(options.tasks)) return Ranged::none;
  return options.json && options.leave_out.empty() ? Ranged::all : Ranged::scored;
}

std::vector<ScoredRow> predict_all(std::vector<PreparedRow>& rows, const ModelError& error,
                                   const ValidateOptions& options) {
  const Ranged needed = ranged(options);
  std::vector<ScoredRow> scored(rows.size());
  std::atomic<std::size_t> done{0};
  parallel_for(rows.size(), options.threads, [&](std::size_t i) {
    settle_recompute(rows[i], error);
    try {
      scored[i] = score_row(rows[i], predict_speed(rows[i]));
      if (needed == Ranged::all || (needed == Ranged::scored && scored[i].speed_error))
        add_range(scored[i].prediction, rows[i], error);
    } catch (const Error& failure) {
      rows[i].skipped = failure.message();
      scored[i] = score_row(rows[i], {});
    }
    constexpr std::size_t step = 1000;
    const std::size_t count = ++done;
    if (!options.quiet && count % step == 0)
      fmt::print(stderr, "{} of {} rows predicted\n", count, rows.size());
  });
  return scored;
}

std::string details_text(const std::vector<ScoredRow>& scored) {
  constexpr std::size_t count = 25, of_source = 4;
  return worst_text(worst_rows(scored, count, of_source)) +
         "\nErrors of published runs, percent\n" + residuals_text(residual_tables(scored, false)) +
         "\nErrors of sweeps, percent\n" + residuals_text(residual_tables(scored, true));
}

// What the tables hold.
struct Tables {
  std::vector<PreparedRow> rows;
  // The same as runs of models, or of models and programs, that no stack knows, if asked for.
  std::vector<PreparedRow> new_models, unscripted, new_programs;
  std::vector<MeasuredCollective> calls;
  std::vector<std::filesystem::path> kernel_files;
  std::vector<ServingRow> serving;
  std::vector<EngineCase> own_engine;
  std::vector<RlRow> rl;
};

// Rows and calls point into the clusters of their readers.
struct Readers {
  RowReader rows, new_models, unscripted, new_programs;
  CollectiveReader calls;
  bool with_unseen = false;
};

Tables read_tables(const ValidateOptions& options, const Aliases& aliases, Readers& readers) {
  Tables tables;
  if (options.files.empty()) tables.kernel_files = shipped_kernel_files();
  std::vector<CsvTable> serving;
  for (const auto& file : table_files(options)) {
    if (is_kernel_file(file)) {
      tables.kernel_files.push_back(file);
      continue;
    }
    CsvTable table = read_csv(file);
    if (is_serving_table(table) || is_speculation_labels(table)) {
      serving.push_back(std::move(table));
      continue;
    }
    if (is_rl_table(table)) {
      append(tables.rl, read_rl_rows(table, aliases));
      continue;
    }
    if (engine_case_kind(table)) {
      append(tables.own_engine, read_engine_cases(table));
      continue;
    }
    if (is_step_table(table)) table = training_runs_of(table, aliases);
    const TableKind kind = kind_of(table);
    const auto rows_of = [&](RowReader& with) {
      return kind == TableKind::training ? with.read_training(table) : with.read_inference(table);
    };
    if (kind == TableKind::collectives) {
      append(tables.calls, readers.calls.read(table));
      continue;
    }
    append(tables.rows, rows_of(readers.rows));
    if (!readers.with_unseen) continue;
    append(tables.new_models, rows_of(readers.new_models));
    append(tables.unscripted, rows_of(readers.unscripted));
    append(tables.new_programs, rows_of(readers.new_programs));
  }
  if (!serving.empty()) tables.serving = ServingReader(aliases).read(serving);
  const auto odd = load_odd_rows(data_root() / "validation/odd_rows.json");
  for (auto* rows : {&tables.rows, &tables.new_models, &tables.unscripted, &tables.new_programs})
    mark_odd_rows(*rows, odd);
  return tables;
}

std::string free_answer(const std::vector<FreeValue>& values, const ValidateOptions& options) {
  return options.json ? answer_text(validate_head(options), {}, free_values_json(values))
                      : free_values_text(values);
}

// What fits say of served runs, which stand alone: their values are those of serving engines.
std::string served_answer(const std::vector<ServingRow>& serving,
                          const std::vector<ScoredRow>& others, const ValidateOptions& options) {
  if (!others.empty())
    throw Error({.file = "validate",
                 .found = "runs of training beside served ones",
                 .expected = "one of the two: each has fits of its own"});
  if (!options.leave_out.empty() && options.leave_out != "nested")
    throw Error(
        {.file = "--leave-out",
         .found = in_quotes(options.leave_out),
         .expected = "nested: of served runs a family and a campaign are left out together"});
  if (!options.leave_out.empty()) return served_nested_report(serving, options);
  const FitRun run{.threads = options.threads, .quiet = options.quiet};
  const ServedModel model = served_model(serving, run);
  if (options.fit) return served_fit_text(model, run);
  return free_answer(served_free_values(model, run), options);
}

// Nothing is fitted to RL steps: their values come from other runs. Their errors make ranges.
std::string rl_answer(const std::vector<RlRow>& rows, const ValidateOptions& options) {
  if (options.free) return rl_free_text(rows, options.threads);
  if (options.leave_out != "nested" || !options.write_nested.empty())
    throw Error({.file = options.fit                    ? "--fit"
                         : options.write_nested.empty() ? "--leave-out"
                                                        : "--write-nested",
                 .found = "steps of RL post-training",
                 .expected = "other tables, or --leave-out nested alone: no value is fitted to "
                             "these, ranges are made of other models' errors"});
  if (options.json)
    throw Error({.file = "--leave-out",
                 .found = "--json",
                 .expected = "no --json: of steps of RL it prints a table"});
  std::string text = rl_held_out_text(rows);
  const auto error = rl_error(rows);
  if (!options.model_error.empty() && error) write_file(options.model_error, to_json_text(*error));
  return text;
}

// What fits say of training runs, where the options ask for it.
std::optional<std::string> fitted_answer(const std::vector<ScoredRow>& scored,
                                         const ValidateOptions& options) {
  if (!options.leave_out.empty()) return left_out_report(scored, options);
  if (options.fit) return fit_text(scored, {.threads = options.threads, .quiet = options.quiet});
  if (!options.free) return std::nullopt;
  std::vector<FreeValue> values = free_values(scored);
  compare_with_fit(values, scored, {.threads = options.threads, .quiet = true});
  return free_answer(values, options);
}

}  // namespace

Printed validate_tables(const ValidateOptions& options) {
  check_options(options);
  if (options.nested) return nested_as_shipped(options);
  const GateFiles gates = prepare_files(options);
  const auto folder = data_root() / "validation";
  const ModelError error = load_model_error(folder / "model_error.json");
  const Aliases aliases = load_aliases(folder / "aliases.json");
  const bool nested = options.leave_out == "nested";
  Readers readers{.rows = RowReader(aliases),
                  .new_models = RowReader(aliases, Unknown::model),
                  .unscripted = RowReader(aliases, Unknown::script),
                  .new_programs = RowReader(aliases, Unknown::program),
                  .calls = CollectiveReader(aliases),
                  .with_unseen = nested};
  auto [rows, new_models, unscripted, new_programs, calls, kernel_files, serving, own_engine, rl] =
      read_tables(options, aliases, readers);
  check_looks(options.looks);  // once the tables are known to be good
  const std::vector<ScoredRow> scored = predict_all(rows, error, options);
  std::vector<ScoredCollective> scored_calls;
  for (const MeasuredCollective& call : calls)
    scored_calls.push_back(score_collective(call, error));
  if (!serving.empty() && (!options.leave_out.empty() || options.free || options.fit))
    return {served_answer(serving, scored, options)};
  if (!rl.empty()) predict_rl_rows(rl, options.threads);
  if (!rl.empty() && (!options.leave_out.empty() || options.free || options.fit))
    return {rl_answer(rl, options)};
  if (nested)
    return {nested_report({.known = scored,
                           .new_models = predict_all(new_models, error, options),
                           .unscripted = predict_all(unscripted, error, options),
                           .new_programs = predict_all(new_programs, error, options)},
                          error, options)};
  if (const auto text = fitted_answer(scored, options)) return {*text};
  if (options.advise)
    return {advice_text(advise_published(scored, error, options.threads, options.quiet))};
  if (const auto judged = gates_and_report(scored, aliases, gates, options)) return *judged;
  const std::vector<ScoredKernel> kernels = score_kernels(kernel_files);
  const std::vector<ServedRow> served = serve_rows(serving, options.threads, options.quiet);
  const std::vector<EngineFigure> replayed = replay_engine(own_engine, options.threads);
  if (options.json) {
    Json report = report_json(scored, scored_calls, kernels);
    add_served_json(served, load_served_error(folder / "served_error.json"), report["rows"],
                    report["groups"]);
    add_engine_json(replayed, report["rows"], report["groups"]);
    if (!rl.empty())
      add_rl_json(rl, load_rl_error(folder / "rl_error.json"), report["rows"], report["groups"]);
    return {answer_text(validate_head(options), {}, std::move(report))};
  }
  std::string text;
  if (!served.empty()) text += served_text(served);
  if (!replayed.empty()) text += engine_text(replayed, options.rows);
  if (!rl.empty()) text += rl_text(rl, load_rl_error(folder / "rl_error.json"));
  const bool others = !(calls.empty() && kernels.empty() && served.empty() && replayed.empty());
  if (!scored.empty() || (!others && rl.empty()))
    text += report_text(scored, options.rows) + ranges_text(range_groups(scored)) +
            ranking_text(scored) + odd_rows_text(scored);
  if (options.details) text += choices_text(scored) + details_text(scored);
  if (!kernels.empty()) text += kernels_text(kernels, options.rows, options.regions);
  if (!calls.empty()) text += collectives_text(scored_calls, options.rows, !options.files.empty());
  return {text};
}

}  // namespace orrery
