// SPDX-License-Identifier: Apache-2.0
// Reads what our own serving engine measured: runs under load, single steps, pools, memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/csv.h"

namespace orrery {

// What a row measured. run: a whole run under load; pair: the same where one GPU prefills and
// another decodes; step: one step; pool: how many blocks an engine found room for; memory: whether
// a pool of so many blocks ran out of memory.
enum class EngineCaseKind : std::uint8_t { run, pair, step, pool, memory };

// Requests of a run in the order in which they were sent. A closed loop has no arrivals.
struct EngineLoad {
  std::int64_t clients = 0;  // of a closed loop
  std::vector<std::int64_t> arrivals_us, prompts, outputs;
  std::int64_t unfinished = 0;  // when the run was cut off
};

// Measured, in seconds; p99 where 1,000 requests finished. Of a pair TTFT ends with the prefill,
// which makes the first token; from there on transfer lasts until keys and values are in the other
// pool.
struct EngineLatencies {
  double ttft_mean = 0, tpot_mean = 0;
  std::optional<double> ttft_p99, transfer_mean;
};

// Decodes of equal contexts, and a part of a prompt behind as long a history.
struct EngineStep {
  std::int64_t decodes = 0, chunk = 0, context = 0;
  std::int64_t graph = 0;     // the batch that was captured; 0: launched kernel by kernel
  double device_seconds = 0;  // of the device alone
};

struct EngineCase {
  EngineCaseKind kind = EngineCaseKind::run;
  std::string id, gpu, cluster, stack, model;
  std::int64_t tp = 1;  // GPUs over which the model is cut
  bool held = false;    // never fitted
  std::optional<std::int64_t> token_budget, max_sequences;
  std::int64_t blocks = 0;  // of the pool; of a pair each GPU's
  EngineLoad load;          // of runs and pairs, with what they measured
  EngineLatencies latencies;
  EngineStep step;
  double beside_bytes = 0;  // of memory: that another process holds
  bool out_of_memory = false;

  std::int64_t gpus() const { return kind == EngineCaseKind::pair ? 2 : tp; }
};

// Told by columns that no other table has; nullopt: another table.
std::optional<EngineCaseKind> engine_case_kind(const CsvTable& table);

// Every row. Error for a missing column, for what is no number, for lists of different lengths and
// arrivals out of order.
std::vector<EngineCase> read_engine_cases(const CsvTable& table);

}  // namespace orrery
