// SPDX-License-Identifier: Apache-2.0
// Says in text what rows of serving tables have in common.
#include "sim/validate/serving/serving_case.h"

#include <fmt/format.h>

namespace orrery {

std::string layout_key(const ServingCase& c) {
  const auto text = [](const ToldWorkers& w) {
    return fmt::format("{}x tp{} pp{} dp{} etp{} ep{}", w.count, w.tp, w.pp, w.attention_dp,
                       w.moe_tp, w.moe_ep);
  };
  return c.row.disaggregated ? text(c.engine) + " after " + text(c.prefill) : text(c.engine);
}

std::string deployment_key(const ServingCase& c) {
  return fmt::format("{}, {}, {}, {}, {}, {}, {}, {}", c.row.gpu, c.row.family, c.row.precision,
                     c.engine_name, c.row.software.release, c.row.disaggregated,
                     serving_speculation_text[c.row.software.speculation], layout_key(c));
}

std::string lengths_key(const ServingCase& c) {
  return fmt::format("{}, {}", c.row.load.prompt_tokens, c.row.load.output_tokens);
}

}  // namespace orrery
