// SPDX-License-Identifier: Apache-2.0
// Puts groups that were left out, the model's error and its ranges on one page or in one answer.
#include "sim/app/validate/left_out.h"

#include <cmath>

#include "sim/app/validate/json.h"
#include "sim/base/json/tree.h"
#include "sim/base/output_file.h"
#include "sim/validate/fit/fit.h"
#include "sim/validate/fit/ranges.h"
#include "sim/validate/nested/groups.h"
#include "sim/validate/nested/report.h"
#include "sim/validate/nested/transfer.h"
#include "sim/validate/served/served_nested.h"

namespace orrery {
namespace {

// `met_as`: as what the row's model or program was predicted.
void add_rows(Json& list, const std::vector<BlindRow>& rows, const std::string& met_as) {
  for (const BlindRow& b : rows)
    list.push_back({{"id", b.row->row->id}, {"met_as", met_as}, {"error", b.speed_error}});
}

void write_nested(const NestedErrors& errors, const ValidateOptions& options) {
  if (!options.write_nested.empty())
    write_file(options.write_nested, nested_json(errors).dump(1) + "\n");
}

}  // namespace

std::string left_out_report(const std::vector<ScoredRow>& rows, const ValidateOptions& options) {
  FoldFits fits(rows, options.leave_out);
  const std::vector<BlindRow> rows_left_out = predict_blind(
      fits, {.threads = options.threads, .quiet = options.quiet, .tasks = options.tasks});
  if (!goes_on(options.tasks)) return "";
  const auto groups = left_out_groups(rows_left_out, options.leave_out);
  const auto blind =
      options.leave_out == "blind" ? blind_error(rows_left_out, options.threads) : std::nullopt;
  if (!blind)
    return options.json
               ? answer_text(validate_head(options), {}, left_out_json(groups, options.leave_out))
               : left_out_text(groups, options.leave_out);
  if (!options.json)
    return left_out_text(groups, "source") + blind_rules_text(rows_left_out) +
           ranges_text(blind->groups) + error_text(blind->fitted);
  Json out = left_out_json(groups, options.leave_out);
  out["ranges"] = ranges_json(blind->groups);
  out["rows"] = Json::array();
  for (const BlindRow& b : rows_left_out)
    out["rows"].push_back({{"id", b.row->row->id},
                           {"left_out", b.fold},
                           {"error", b.speed_error},
                           {"shipped", *b.row->speed_error},
                           {"below", b.row->prediction.stated.below.total()},
                           {"above", b.row->prediction.stated.above.total()}});
  return answer_text(validate_head(options), {}, out);
}

std::string nested_report(const UnseenRows& rows, const ModelError& error,
                          const ValidateOptions& options) {
  const FitRun run{.threads = options.threads, .quiet = options.quiet, .tasks = options.tasks};
  FoldFits nested(rows.known, "nested"), by_source(rows.known, "blind");
  const std::vector<BlindRow> left_out = predict_blind(nested, run, &rows.new_models);
  const std::vector<BlindRow> unscripted =
      unscripted_rows(nested, rows.unscripted, rows.new_models, run);
  const std::vector<BlindRow> stand_ins = stand_in_rows(nested, rows.new_programs, run);
  const std::vector<BlindRow> other_values =
      other_values_rows(nested, rows.new_programs, rows.new_models, run);
  const std::vector<BlindRow> blind = predict_blind(by_source, run);
  if (!goes_on(options.tasks)) {
    for (const Transfer& kind : transfer_kinds())
      static_cast<void>(predict_transfer(rows.known, kind, run));
    return "";
  }
  const std::vector<BlindRow> evidence = joined(joined(left_out, unscripted), stand_ins);
  const ModelError fitted = nested_error(evidence, blind, error, options.threads);
  if (!options.model_error.empty()) write_file(options.model_error, to_json_text(fitted));
  const NestedErrors errors = nested_errors(
      nested_points(left_out, evidence, fitted),
      transfer_lines(rows.known, left_out, unscripted, other_values, stand_ins, fitted, run));
  write_nested(errors, options);
  if (options.json) {
    Json out = nested_json(errors);
    out["rows"] = Json::array();
    add_rows(out["rows"], left_out, "new");
    add_rows(out["rows"], unscripted, "without_script");
    add_rows(out["rows"], other_values, "other_values");
    add_rows(out["rows"], stand_ins, "stand_in");
    return answer_text(validate_head(options), {}, out);
  }
  return nested_text(errors) + error_text(fitted);
}

std::string served_nested_report(const std::vector<ServingRow>& rows,
                                 const ValidateOptions& options) {
  const FitRun run{.threads = options.threads, .quiet = options.quiet, .tasks = options.tasks};
  const ServedModel model = served_model(rows, run);
  if (!goes_on(options.tasks)) return "";
  const std::vector<ServedBlind> blind = predict_served_blind(model, run);
  const ServedError fitted = served_error(blind, options.threads);
  if (!options.model_error.empty()) write_file(options.model_error, to_json_text(fitted));
  const NestedErrors errors = served_nested(blind, fitted);
  write_nested(errors, options);
  if (!options.json) return served_nested_text(errors);
  Json out = nested_json(errors);
  out["rows"] = Json::array();
  for (const ServedBlind& b : blind)
    out["rows"].push_back({{"id", b.row->shipped.row->id},
                           {"met_as", served_quantity_text[b.quantity]},
                           {"error", std::expm1(b.log_error)}});
  return answer_text(validate_head(options), {}, out);
}

}  // namespace orrery
