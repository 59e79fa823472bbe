// SPDX-License-Identifier: Apache-2.0
// Knows the flat columns of answers, one value a cell: of spreadsheets and of data frames.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"

namespace orrery {

enum class ColumnKind : std::uint8_t { whole, number, truth, text };

struct FlatColumn {
  std::string name;
  std::string place;  // of the value: in the answer, or ("row/...") in the row's own part of it
  ColumnKind kind = ColumnKind::number;
};

// Of the rows of a command's answers ("simulate", "advise" or "plan").
std::vector<FlatColumn> flat_columns(const std::string& command);

// Shows the answer for each of its rows: a prediction, each of the best layouts, each point; once
// where there are none. The row's own part stands at "row", its number from 1 at "rank".
void for_each_row(const std::string& command, const Json& answer,
                  const std::function<void(const Json& row)>& take);

// Null where the row has none.
Json flat_value(const FlatColumn& column, const Json& row);
// A value as text: parts of lists with commas, members of objects with semicolons.
std::string flat_text(const Json& value);

// What an answer that is an error says, in one sentence.
std::string error_sentence(const Json& error_answer);

}  // namespace orrery
