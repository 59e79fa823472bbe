// Runs validate: finds the tables, predicts their rows in parallel and prints the scores.
#include "sim/app/validate.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/app/validate_fit.h"
#include "sim/app/validate_predict.h"
#include "sim/base/check.h"
#include "sim/base/parallel.h"

namespace orrery {
namespace {

bool has_all(const CsvTable& table, const std::vector<std::string>& columns) {
  return std::all_of(columns.begin(), columns.end(),
                     [&table](const std::string& column) { return table.has(column); });
}

enum class TableKind { training, inference };

// A table is told by its columns. One that is nearly a training table is read as one, so that the
// missing column is named.
TableKind kind_of(const CsvTable& table) {
  if (has_all(table, inference_columns()) || (table.has("mode") && table.has("ctx")))
    return TableKind::inference;
  const auto& wanted = training_columns();
  const auto known = std::count_if(wanted.begin(), wanted.end(),
                                   [&](const std::string& column) { return table.has(column); });
  if (static_cast<std::size_t>(known) * 2 >= wanted.size()) return TableKind::training;
  throw Error({.file = table.file,
               .path = "line 1",
               .found = "columns of no supported table",
               .expected = "training runs (id, source, gpu, n_gpus, model, tp, pp, dp, ...) or "
                           "inference steps (id, mode, batch, ctx, tp, step_s, ...); tables of "
                           "operators go to \"orrery calibrate\", collectives are not read yet"});
}

std::vector<std::filesystem::path> table_files(const ValidateOptions& options) {
  std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
  if (!files.empty()) return files;
  const auto folder = data_root() / "validation/measurements";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw Error(
        {.file = folder.string(), .found = "no tables", .expected = "measured runs (.csv)"});
  return files;
}

void check_options(const ValidateOptions& options) {
  const std::vector<std::string> kinds = {"source", "model", "release"};
  if (!options.leave_out.empty() &&
      std::find(kinds.begin(), kinds.end(), options.leave_out) == kinds.end())
    throw Error({.file = "--leave-out",
                 .found = in_quotes(options.leave_out),
                 .expected = "source, model or release",
                 .nearest = nearest_name(options.leave_out, kinds)});
}

std::vector<ScoredRow> predict_all(std::vector<PreparedRow>& rows, const ModelError& error,
                                   const ValidateOptions& options) {
  std::vector<ScoredRow> scored(rows.size());
  std::atomic<std::size_t> done{0};
  parallel_for(rows.size(), options.threads, [&](std::size_t i) {
    settle_recompute(rows[i], error);
    RowPrediction prediction;
    try {
      prediction = predict_row(rows[i], error);
    } catch (const Error& failure) {
      rows[i].skipped = failure.message();
    }
    scored[i] = score_row(rows[i], prediction);
    constexpr std::size_t step = 1000;
    const std::size_t count = ++done;
    if (!options.quiet && count % step == 0)
      fmt::print(stderr, "{} of {} rows predicted\n", count, rows.size());
  });
  return scored;
}

}  // namespace

int validate_command(const ValidateOptions& options) {
  check_options(options);
  const auto folder = data_root() / "validation";
  const ModelError error = load_model_error(folder / "model_error.json");
  RowReader reader(load_aliases(folder / "aliases.json"));
  std::vector<PreparedRow> rows;
  for (const auto& file : table_files(options)) {
    const CsvTable table = read_csv(file);
    auto read = kind_of(table) == TableKind::training ? reader.read_training(table)
                                                      : reader.read_inference(table);
    std::move(read.begin(), read.end(), std::back_inserter(rows));
  }
  const std::vector<ScoredRow> scored = predict_all(rows, error, options);
  if (!options.leave_out.empty()) {
    const auto groups = leave_out_groups(scored, options.leave_out, options);
    fmt::print("{}", options.json ? left_out_json(groups, options.leave_out)
                                  : left_out_text(groups, options.leave_out));
    return 0;
  }
  if (options.fit) {
    fmt::print("{}", fit_text(scored, options));
    return 0;
  }
  fmt::print("{}", options.json ? report_json(scored) : report_text(scored, options.rows));
  return 0;
}

}  // namespace orrery
