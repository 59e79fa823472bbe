// Knows how a prepared row is predicted, with or without other step-level values of its stack.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "sim/app/validate_report.h"

namespace orrery {

// The model's own error by region: 90% of speeds lie within these shares of the prediction.
// validation/model_error.json.
struct ModelError {
  struct Range {
    double below = 0, above = 0;
  };
  Range fallback;
  std::map<std::string, Range> stacks, experts;  // by stack: dense models, models with experts
  // Of the time of one collective: "library, reach, size" ("nccl, one domain, from 1 MiB").
  std::map<std::string, Range> collectives;
  double each_assumption = 0;  // joined in quadrature for every fallback
  double memory = 0;           // share by which the memory model may overstate what a run needs

  // The range of a collective's region; the widest of all where its library has none.
  Range collective(const std::string& library, bool crosses_domains, bool large) const;
};
// "nccl, one domain, from 1 MiB": a row's region in model_error.json and in reports.
std::string collective_region(const std::string& library, bool crosses_domains, bool large);
ModelError load_model_error(const std::filesystem::path& file);

// Chooses the recompute that a row leaves blank: the first recipe that the memory model does not
// reject by more than its own error (the run took place, so it fitted), the last when all are.
// Notes the choice in `assumed`.
void settle_recompute(PreparedRow& row, const ModelError& error);

// Seconds of one step with this stack in place of the row's own.
double predict_step(const PreparedRow& row, const Stack& stack);

RowPrediction predict_row(const PreparedRow& row, const ModelError& error);

// tokens/s/GPU of a step that takes `seconds`.
double tokens_per_second(const PreparedRow& row, double seconds);

}  // namespace orrery
