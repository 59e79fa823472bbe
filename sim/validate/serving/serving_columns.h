// SPDX-License-Identifier: Apache-2.0
// Knows which columns tables of serving runs have, and reads their cells.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/csv.h"
#include "sim/validate/serving/serving_case.h"
#include "sim/validate/serving/serving_recipes.h"

namespace orrery {

// Told by columns that no other table has, so that a table which lacks one of the others is named
// with it; nullopt: no table of serving runs.
std::optional<ServingTable> serving_table(const CsvTable& table);

// The cells of a table, repairs A6 to A8 and A10 done. Error for a missing column, for what is no
// number, for a size or a time that is not above 0.
ServingCases read_serving_table(const CsvTable& table, const ServingRecipes& recipes);

// Cells as numbers. Blank: nullopt, or 0 where a size is blank.
std::optional<double> positive_cell(const CsvRow& cells, const char* column);
// The same in seconds, of a column that counts thousandths.
std::optional<double> milliseconds(const CsvRow& cells, const char* column);
double required_cell(const CsvRow& cells, const char* column);
std::int64_t size_cell(const CsvRow& cells, const char* column);

// Readers of one row by kind of table; what all kinds have is filled in.
using CellReader = void (*)(ServingCase&, const CsvRow&, const ServingRecipes&);
void read_inferencex(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes);
void read_dashboard(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes);
void read_overview(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes);
void read_batches(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes);
void read_positions(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes);
void read_stages(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes);

// The engine that a table names, and what its tables write in their own way.
void set_engine(ServingCase& c, const std::string& told, const ServingRecipes& recipes);

}  // namespace orrery
