// SPDX-License-Identifier: Apache-2.0
// Knows how a row of a table of measured collectives becomes a call on a fabric, and its
// prediction.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/csv.h"
#include "sim/engine/cluster.h"
#include "sim/engine/collectives/collectives.h"
#include "sim/validate/rows/aliases.h"
#include "sim/validate/score/predict.h"

namespace orrery {

// One measured call, or the reason why it cannot be predicted.
struct MeasuredCollective {
  std::string id, source, gpu;
  std::string library;             // as the row names it: "nccl", "vllm", "trtllm-alltoall"
  std::string collective;          // likewise: "all_reduce", "dispatch"
  std::string mode;                // blank: the library's own choice
  bool held_out = true;            // no constant may be fitted to it
  std::optional<double> measured;  // seconds
  std::string skipped;
  std::vector<std::string> assumed;
  const Cluster* cluster = nullptr;
  Collective call;
  // The row says which algorithm ran; otherwise the library chooses.
  std::optional<CollectiveAlgorithm> algorithm;
  std::optional<CollectiveProtocol> protocol;

  bool crosses() const { return call.group.domains > 1; }
  bool large() const { return call.bytes.si() >= 1024.0 * 1024; }
};

struct ScoredCollective {
  const MeasuredCollective* row = nullptr;
  std::string skipped;  // why nothing is predicted; empty: predicted
  std::optional<CollectiveTime> prediction;
  double low = 0, high = 0;     // seconds, 90% range
  std::optional<double> error;  // predicted / measured - 1
};

// Columns that a table of collectives must have: id, gpu, library, collective, ranks, time_us, and
// `bytes` or `tokens`.
const std::vector<std::string>& collective_columns();

// Reads tables in the columns of validation/README.md. Rows point into the reader, which loads each
// cluster once.
class CollectiveReader {
 public:
  explicit CollectiveReader(Aliases aliases);
  // Error for cells that do not parse or contradict each other (a domain that does not divide the
  // ranks); a row for a machine that is not known has its reason in `skipped`.
  std::vector<MeasuredCollective> read(const CsvTable& table);

 private:
  void place(MeasuredCollective& row, const CsvRow& cells, std::int64_t ranks);
  const Cluster* cluster(const ClusterChoice& choice, std::int64_t gpus);

  Aliases aliases_;
  WiringTable wirings_;
  std::map<std::string, std::unique_ptr<Cluster>> clusters_;
};

ScoredCollective score_collective(const MeasuredCollective& row, const ModelError& error);

}  // namespace orrery
