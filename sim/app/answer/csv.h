// SPDX-License-Identifier: Apache-2.0
// Knows an answer's flat columns, for spreadsheets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"

namespace orrery {

// A cell of a row, in quotes where it holds a comma, a quote or a break.
std::string csv_cell(const std::string& text);

// Names of the columns of a command's rows ("simulate", "advise", "plan"), as one line; with the
// number of the line that asked where there are many.
std::string csv_header(const std::string& command, bool lines);

// A row for a prediction, for each of the best layouts, or for each point; for an error one that
// says it. What an answer does not have is left empty.
std::string csv_rows(const std::string& command, const Json& answer,
                     std::optional<std::int64_t> line);

// The same rows, one text each, without the line's number: what csv_rows puts it before.
std::vector<std::string> csv_row_texts(const std::string& command, const Json& answer);
std::string csv_numbered(const std::string& row, std::int64_t line);

}  // namespace orrery
