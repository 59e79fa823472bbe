// SPDX-License-Identifier: Apache-2.0
// Reads tables as commands of Slurm print them, with '|' between fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/csv.h"

namespace orrery {

// Those of `columns` that the first line has; fields lose the blanks around them. `header` is what
// errors say of a line with another number of fields than the first one.
CsvTable slurm_table(std::string_view text, const std::string& file,
                     const std::vector<std::string>& columns,
                     const std::string& header = "as in the header");

// GPUs of "cpu=64,gres/gpu=8,gres/gpu:h100=8": the total, or where there is none the sum of kinds.
std::int64_t tres_gpus(const CsvRow& row, const std::string& column);

// GPUs of "gres:gpu:4", "gres/gpu:h100:4" or "gres/gpu=4", as options of sbatch ask for them: the
// sum of kinds; a kind without a number is one.
std::int64_t asked_gpus(const CsvRow& row, const std::string& column);

// Whether the text names a limit: neither blank nor UNLIMITED, Partition_Limit, NOT_SET, INVALID.
bool is_slurm_limit(const std::string& text);

}  // namespace orrery
