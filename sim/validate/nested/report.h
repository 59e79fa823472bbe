// SPDX-License-Identifier: Apache-2.0
// Knows nested errors as they are printed and kept in a file: a line for each set of runs, then for
// each group, the worst first.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/validate/nested/transfer.h"
#include "sim/validate/score/groups.h"

namespace orrery {

// One line of the first table.
struct NestedLine {
  std::string set;  // "all published", "Blackwell"
  NestedNumbers numbers;
};

// What all points say, and the catalogue that predicted them.
struct NestedErrors {
  std::string catalogue;  // catalogue_hash()
  std::vector<NestedLine> sets;
  std::vector<NestedGroup> groups;
  std::vector<TransferLine> transfers;
};
NestedErrors nested_errors(const std::vector<NestedPoint>& points,
                           std::vector<TransferLine> transfers);

std::string nested_text(const NestedErrors& errors);
// Of served runs, which have no transfers.
std::string served_nested_text(const NestedErrors& errors);
Json nested_json(const NestedErrors& errors);

// validation/nested.json, which `--write-nested` makes. Error for a file that is missing or does
// not have this shape.
NestedErrors load_nested(const std::filesystem::path& file);

// What gates hold of them: a group "nested, SET" for each set, with the figures nested_median,
// nested_p90 and nested_not_covered; "transfer, NAME" with transfer_median and transfer_over_nested
// (the ratio of both medians).
std::vector<GroupFigures> nested_figures(const NestedErrors& errors);

}  // namespace orrery
