// SPDX-License-Identifier: Apache-2.0
// Counts the bytes that the busiest interface of a transfer carries.
#include "sim/outcome/serving/cache_transfer.h"

#include <algorithm>

namespace orrery {

CacheTransfer::CacheTransfer(const Cluster& cluster, const CacheHolder& from, const CacheHolder& to,
                             bool in_domain)
    : ranks_(static_cast<double>(from.layout.attention_dp)) {
  const ScaleUp& domain = cluster.fabric.scale_up;
  const ScaleOut& network = cluster.fabric.scale_out;
  rate_ = in_domain ? domain.bandwidth.get()
                    : network.nic_bandwidth.get() * network.nics_per_accelerator.get() *
                          network.efficiency.get();
  latency_ = in_domain ? domain.latency.get() : network.nic_latency.get();
  const auto holders = [](const EngineLayout& l) { return static_cast<double>(l.tp * l.pp); };
  token_ = std::max(to.token, to.token * (holders(to.layout) / holders(from.layout)));
}

Seconds CacheTransfer::alone(std::int64_t tokens) const {
  return token_ * static_cast<double>(tokens) / rate_;
}

Ticks CacheTransfer::on_link(std::int64_t tokens) const { return to_ticks(alone(tokens) / ranks_); }

Ticks CacheTransfer::latency(std::int64_t tokens) const {
  return to_ticks(latency_ + alone(tokens) - alone(tokens) / ranks_);
}

}  // namespace orrery
