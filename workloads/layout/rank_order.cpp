// SPDX-License-Identifier: Apache-2.0
// Reads and writes rank orders.
#include "workloads/layout/rank_order.h"

#include <algorithm>
#include <string_view>

#include "sim/base/text/enum_names.h"

namespace orrery {
namespace {

constexpr auto axis_text = enum_names<Parallel>({"tp", "cp", "dp", "pp"});

}  // namespace

std::string to_text(RankOrder order) {
  std::string text;
  for (const Parallel axis : order.axes()) {
    if (!text.empty()) text += '-';
    text += axis_text[axis];
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
    const auto axis = axis_text.find(name);
    if (!axis || (i > 0 && text[3 * i - 1] != '-')) wrong();
    bool& known = seen[static_cast<std::size_t>(*axis)];
    if (known) wrong();
    known = true;
    axes[i] = *axis;
  }
  return RankOrder(axes);
}

}  // namespace orrery
