// SPDX-License-Identifier: Apache-2.0
// Holds the simulator of served models against measured runs, each by its own protocol.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/base/text/enum_names.h"
#include "sim/outcome/serving/served_error.h"
#include "sim/validate/serving/serving_row.h"
#include "workloads/stack/stack.h"

namespace orrery {

// What a row's protocol gives: the row's own statistic of latencies, in seconds.
struct ServedRow {
  const ServingRow* row = nullptr;
  std::string skipped;  // why nothing is predicted, one sentence; empty: it is
  double ttft = 0, tpot = 0, tokens_s_gpu = 0;
  double waits = 0;  // RequestTime::waits()
};

// What a row of a serving table measures.
enum class ServedQuantity : std::uint8_t { ttft, tpot, tokens_s_gpu };
inline constexpr std::array<ServedQuantity, 3> served_quantities = {
    ServedQuantity::ttft, ServedQuantity::tpot, ServedQuantity::tokens_s_gpu};
inline constexpr auto served_quantity_text =
    enum_names<ServedQuantity>({"ttft", "tpot", "tokens_s_gpu"});

// As measured, and as predicted; nullopt where the row does not say, or is not scored by it.
std::optional<double> measured(const ServedRow& row, ServedQuantity quantity);
double predicted(const ServedRow& row, ServedQuantity quantity);

// One measured quantity of a row beside its prediction.
struct ServedFigure {
  ServedQuantity quantity = ServedQuantity::tpot;
  double measured = 0, predicted = 0;
  std::string skipped = {};  // why it is not scored, one sentence; empty: it is
};
std::vector<ServedFigure> served_figures(const ServedRow& row);

// Whether its tokens were guessed ahead.
bool guesses(const ServingRow& row);

// A value of the row's stack, so many deviations from the middle of its prior (set_step_value). No
// name: all as shipped.
struct MovedValue {
  std::string name;
  double deviations = 0;
};

// Serves the row's requests on its deployment. Never throws: what cannot be served says why.
ServedRow serve_row(const ServingRow& row, const MovedValue& moved = {});
// What of a row, and of its prediction, says how well it is predicted.
RunKind run_kind(const ServedRow& row);
// The stack that serves it; nullopt where the row does not say enough.
std::optional<Stack> stack_of(const ServingRow& row);
std::vector<ServedRow> serve_rows(const std::vector<ServingRow>& rows, int threads, bool quiet);

// Errors by machine, engine and precision, over all, and why rows were skipped.
std::string served_text(const std::vector<ServedRow>& rows);
// Appends an entry for each measured quantity of each row, with its 90% range by `error`, and
// groups of errors.
void add_served_json(const std::vector<ServedRow>& rows, const ServedError& error, Json& row_list,
                     Json& group_list);

}  // namespace orrery
