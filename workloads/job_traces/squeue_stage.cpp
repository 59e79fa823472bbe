// SPDX-License-Identifier: Apache-2.0
// Lists states and reasons of Slurm's jobs.
#include "workloads/job_traces/squeue_stage.h"

#include <algorithm>

namespace orrery {
namespace {

struct StageOf {
  std::string_view word;
  SqueueStage stage;
};

using enum SqueueStage;

constexpr StageOf stage_of_state[] = {
    {"RUNNING", runs},      {"CONFIGURING", runs},   {"RESIZING", runs},
    {"SIGNALING", runs},    {"STOPPED", runs},       {"SUSPENDED", suspended},
    {"PENDING", waits},     {"REQUEUED", waits},     {"REQUEUE_FED", waits},
    {"REQUEUE_HOLD", held}, {"RESV_DEL_HOLD", held}, {"SPECIAL_EXIT", held},
    {"COMPLETING", ends},   {"STAGE_OUT", ends},     {"COMPLETED", ends},
    {"FAILED", ends},       {"TIMEOUT", ends},       {"OUT_OF_MEMORY", ends},
    {"DEADLINE", ends},     {"CANCELLED", ends},     {"REVOKED", ends},
    {"NODE_FAIL", ends},    {"BOOT_FAIL", ends},     {"PREEMPTED", ends}};

// All others wait for room, as Resources and Priority do.
constexpr StageOf stage_of_reason[] = {{"JobHeldUser", held},
                                       {"JobHeldAdmin", held},
                                       {"JobHoldMaxRequeue", held},
                                       {"Dependency", depends},
                                       {"DependencyNeverSatisfied", depends},
                                       {"BeginTime", later},
                                       {"Reservation", later},
                                       {"ReservationDeleted", later},
                                       {"BadConstraints", never},
                                       {"InvalidAccount", never},
                                       {"InvalidQOS", never},
                                       {"AccountNotAllowed", never},
                                       {"QOSNotAllowed", never},
                                       {"PartitionDown", never},
                                       {"PartitionInactive", never},
                                       {"PartitionNodeLimit", never},
                                       {"PartitionTimeLimit", never},
                                       {"JobArrayTaskLimit", limited}};

// AssocGrpGRES, QOSMaxJobsPerUserLimit and many more.
std::optional<SqueueStage> stage_of_limit(std::string_view reason) {
  if (!reason.starts_with("Assoc") && !reason.starts_with("QOS")) return std::nullopt;
  const auto has = [&](std::string_view part) {
    return reason.find(part) != std::string_view::npos;
  };
  return has("PerJob") || has("PerNode") ? never : limited;
}

template <std::size_t n>
std::optional<SqueueStage> found(const StageOf (&list)[n], std::string_view word) {
  const auto* at =
      std::find_if(std::begin(list), std::end(list), [&](const auto& s) { return s.word == word; });
  return at == std::end(list) ? std::nullopt : std::optional(at->stage);
}

}  // namespace

std::optional<SqueueStage> squeue_stage(std::string_view state, std::string_view reason) {
  const auto stage = found(stage_of_state, state);
  if (stage != waits) return stage;
  // Of "ReqNodeNotAvail,_UnavailableNodes:node1", what stands in front.
  reason = reason.substr(0, reason.find(','));
  if (const auto known = found(stage_of_reason, reason)) return known;
  return stage_of_limit(reason).value_or(waits);
}

}  // namespace orrery
