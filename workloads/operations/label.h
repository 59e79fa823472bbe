// SPDX-License-Identifier: Apache-2.0
// Labels time: each instant of each stage's compute stream has one label (law 13).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/text/enum_names.h"

namespace orrery {

enum class Label : std::uint8_t {
  gemm,
  attention,
  elementwise,
  quantise,
  expert,
  loss,
  recompute,
  optimizer,
  tensor_comm,
  context_comm,
  expert_comm,
  data_comm,
  pipeline_comm,
  host,    // the device waits for the host
  bubble,  // the stage waits for another stage
};
inline constexpr int label_count = enumerator_count<Label>();

enum class LabelKind : std::uint8_t {
  useful,         // what the model itself needs, whatever the layout
  recompute,      // compute that the layout adds
  optimizer,      // the optimizer step
  communication,  // exposed: it hides under nothing
  waiting,
};

struct LabelRow {
  Label label;
  std::string_view key;    // in JSON
  std::string_view words;  // in sentences and tables
  LabelKind kind;
};

// In the order of the labels.
inline constexpr std::array<LabelRow, label_count> label_table = {{
    {Label::gemm, "gemm", "matrix products", LabelKind::useful},
    {Label::attention, "attention", "attention", LabelKind::useful},
    {Label::elementwise, "elementwise", "element-wise kernels", LabelKind::useful},
    {Label::quantise, "quantise", "quantisation", LabelKind::useful},
    {Label::expert, "expert", "expert products", LabelKind::useful},
    {Label::loss, "loss", "head and loss", LabelKind::useful},
    {Label::recompute, "recompute", "recompute", LabelKind::recompute},
    {Label::optimizer, "optimizer", "optimizer step", LabelKind::optimizer},
    {Label::tensor_comm, "tensor_comm", "exposed tensor-parallel communication",
     LabelKind::communication},
    {Label::context_comm, "context_comm", "exposed context-parallel communication",
     LabelKind::communication},
    {Label::expert_comm, "expert_comm", "exposed expert all-to-all", LabelKind::communication},
    {Label::data_comm, "data_comm", "exposed data-parallel communication",
     LabelKind::communication},
    {Label::pipeline_comm, "pipeline_comm", "exposed pipeline messages", LabelKind::communication},
    {Label::host, "host", "waiting for the host", LabelKind::waiting},
    {Label::bubble, "bubble", "pipeline bubble", LabelKind::waiting},
}};
static_assert([] {
  for (std::size_t i = 0; i < label_table.size(); ++i)
    if (label_table[i].label != static_cast<Label>(i) || label_table[i].key.empty()) return false;
  return true;
}());

constexpr const LabelRow& label_row(Label label) {
  return label_table[static_cast<std::size_t>(label)];
}
constexpr std::string_view to_text(Label label) { return label_row(label).key; }
constexpr std::string_view phrase(Label label) { return label_row(label).words; }
constexpr bool is_useful(Label label) { return label_row(label).kind == LabelKind::useful; }
constexpr bool is_communication(Label label) {
  return label_row(label).kind == LabelKind::communication;
}
// Kernels of the model, once or again.
constexpr bool is_compute(Label label) {
  return is_useful(label) || label_row(label).kind == LabelKind::recompute;
}
inline constexpr auto compute_labels = [] {
  std::array<Label, std::count_if(label_table.begin(), label_table.end(),
                                  [](const LabelRow& r) { return is_compute(r.label); })>
      some{};
  std::size_t next = 0;
  for (const LabelRow& row : label_table)
    if (is_compute(row.label)) some[next++] = row.label;
  return some;
}();

}  // namespace orrery
