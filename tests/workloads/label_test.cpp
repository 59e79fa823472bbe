// SPDX-License-Identifier: Apache-2.0
// Tests the table of labels: keys and words differ, and each label is of the kind that it says.
#include "workloads/operations/label.h"

#include <catch2/catch.hpp>

#include <set>

namespace orrery {
namespace {

TEST_CASE("every label has a key and words of its own") {
  std::set<std::string_view> keys, words;
  for (const LabelRow& row : label_table) {
    keys.insert(to_text(row.label));
    words.insert(phrase(row.label));
  }
  CHECK(keys.size() == label_table.size());
  CHECK(words.size() == label_table.size());
  CHECK(phrase(Label::tensor_comm) == "exposed tensor-parallel communication");
}

TEST_CASE("labels are of one kind each") {
  std::size_t useful = 0, communication = 0;
  for (const LabelRow& row : label_table) {
    useful += is_useful(row.label) ? 1 : 0;
    communication += is_communication(row.label) ? 1 : 0;
    CHECK(is_communication(row.label) == (to_text(row.label).find("_comm") != std::string::npos));
  }
  CHECK(useful == 6);
  CHECK(communication == 5);
  CHECK(std::set<Label>(compute_labels.begin(), compute_labels.end()) ==
        std::set<Label>{Label::gemm, Label::attention, Label::elementwise, Label::quantise,
                        Label::expert, Label::loss, Label::recompute});
}

}  // namespace
}  // namespace orrery
