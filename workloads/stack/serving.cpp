// SPDX-License-Identifier: Apache-2.0
// Finds the graph that a batch runs in, and what a request passes before it.
#include "workloads/stack/serving.h"

#include <algorithm>

namespace orrery {

std::int64_t graph_size(const StackServing& serving, std::int64_t rows) {
  for (const GraphSizes& sizes : serving.graphs) {
    const std::int64_t by = std::max<std::int64_t>(1, sizes.by);
    if (rows <= sizes.to) return std::min(sizes.to, (rows + by - 1) / by * by);
  }
  return 0;
}

void set_front(EnginePolicy& policy, const ServingHost& host, Frontend frontend) {
  const bool dynamo = frontend == Frontend::dynamo;
  policy.front = to_ticks((dynamo ? host.dynamo_front : host.request_front).get());
  policy.front_token = to_ticks(host.tokeniser.get());
}

bool fuses_norm(const StackServing& serving, std::int64_t ranks, double bytes) {
  return std::any_of(serving.kernels.fused_norms.begin(), serving.kernels.fused_norms.end(),
                     [&](const RankLimit& limit) {
                       return limit.ranks == ranks && bytes <= static_cast<double>(limit.bytes);
                     });
}

}  // namespace orrery
