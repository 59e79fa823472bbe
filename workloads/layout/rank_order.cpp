// SPDX-License-Identifier: Apache-2.0
// Reads and writes rank orders.
#include "workloads/layout/rank_order.h"

#include <algorithm>
#include <string_view>

namespace orrery {
namespace {

constexpr std::array<std::string_view, 4> axis_names = {"tp", "cp", "dp", "pp"};

}  // namespace

std::string to_text(RankOrder order) {
  std::string text;
  for (const Parallel axis : order.axes()) {
    if (!text.empty()) text += '-';
    text += axis_names[static_cast<std::size_t>(axis)];
  }
  return text;
}

RankOrder rank_order_from(const JsonValue& at) {
  const auto wrong = [&] { at.fail("tp, cp, dp and pp once each, as in \"tp-cp-dp-pp\""); };
  const std::string text = at.text();
  std::array<Parallel, 4> axes{};
  std::array<bool, 4> seen{};
  if (text.size() != 11) wrong();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::string_view name = std::string_view(text).substr(3 * i, 2);
    const auto found = std::find(axis_names.begin(), axis_names.end(), name);
    if (found == axis_names.end() || (i > 0 && text[3 * i - 1] != '-')) wrong();
    const auto index = static_cast<std::size_t>(found - axis_names.begin());
    if (seen[index]) wrong();
    seen[index] = true;
    axes[i] = static_cast<Parallel>(index);
  }
  return RankOrder(axes);
}

}  // namespace orrery
