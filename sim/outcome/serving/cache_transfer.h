// SPDX-License-Identifier: Apache-2.0
// What sending a prompt's keys and values to the engine that decodes takes.
#pragma once

#include "sim/engine/cluster.h"
#include "sim/engine/serving/fleet.h"
#include "workloads/inference/engine_layout.h"

namespace orrery {

// One side of a transfer: how its engine is laid out, and what a token takes on each of its GPUs.
struct CacheHolder {
  EngineLayout layout;
  Bytes token;
};

// Each GPU that decodes gets what it keeps of a prompt from the GPUs that computed it: those of one
// attention rank, all at once. Latents are kept whole on each GPU of a tensor group, so that a rank
// with attention of its own sends as many copies as the decoding group has GPUs. Copies go over the
// network interfaces, or over the scale-up domain where it holds all engines and the stack has its
// caches in memory that the domain shares. (vLLM: kv_connector/v1/nixl_connector.py, each rank
// reads. SGLang: disaggregation/common/conn.py, target ranks of a prefill rank. TensorRT-LLM:
// batch_manager/mlaCacheFormatter.cpp.)
class CacheTransfer : public TransferPrices {
 public:
  CacheTransfer(const Cluster& cluster, const CacheHolder& from, const CacheHolder& to,
                bool in_domain);
  // Attention ranks of an engine have interfaces of their own: its links take turns in the mean.
  Ticks on_link(std::int64_t tokens) const override;
  Ticks latency(std::int64_t tokens) const override;

 private:
  Seconds alone(std::int64_t tokens) const;
  BytesPerSecond rate_;  // of a GPU
  Bytes token_;          // that the busiest GPU sends or gets
  double ranks_;         // that send at once
  Seconds latency_;
};

}  // namespace orrery
