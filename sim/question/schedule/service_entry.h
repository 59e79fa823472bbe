// SPDX-License-Identifier: Apache-2.0
// Reads jobs that serve a model: replicas that follow a load, and requests that wait for nobody.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/reliability.h"
#include "sim/base/json/json.h"
#include "sim/engine/jobs/job_work.h"
#include "sim/outcome/fleet/service_measures.h"
#include "sim/question/losses/store_entry.h"
#include "sim/question/settings/catalogues.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// A replica of a served model, and what it can do where it always has work.
struct ServedReplica {
  ServiceCase asked;
  std::string deployment;  // "Llama 3 70B, vLLM, TP4"
  SaturatedService saturated;
  Bytes weights;     // of all of its accelerators
  double hosts = 1;  // that it needs
  // By the variation of gaps between requests.
  std::map<double, std::shared_ptr<const ServiceTable>> tables;
};

// Replicas and their tables, each made once for all points of a question.
class ServedReplicas {
 public:
  // `settings`: those of serve, without who asks when. Errors: as serve; CannotExist where nothing
  // can be served.
  ServedReplica& of(const JsonValue& settings, Catalogues& catalogues);
  static const std::shared_ptr<const ServiceTable>& table(ServedReplica& replica, double variation,
                                                          int threads);

 private:
  std::map<std::string, ServedReplica> known_;
};

// What entries of a question share.
struct ServedCase {
  const SortedJson& cluster;  // as settings name it
  const std::optional<ReliabilityProfile>& profile;
  const std::optional<StoreRates>& store;
  ReplicaScale scale = ReplicaScale::expected;
  std::optional<FleetTime> end;  // of the horizon, else of the days
  ServedReplicas& replicas;
  Catalogues& catalogues;
  int threads = 0;
};

// A model that is served for as long as the question lasts.
struct FleetServedModel {
  FleetService service;
  std::string deployment, promises;
  double target = 0;              // share of requests that is to keep all promises
  std::int64_t for_the_peak = 0;  // replicas, whatever `most` says
  JobWork work;
  std::vector<ReplicaLife> lives;
  std::vector<std::string> notes;
};

// Keys: id, serve (settings of serve but for who asks when), load ("12/s", "daily:8h:2/s:16h:12/s",
// or {"peak": "12/s", "by_hour": [24], "by_weekday": [7] or "like": a mix}), perhaps target, least,
// most, headroom, check_every, start, variation. Errors: of settings, a question without an end;
// CannotExist where the promises cannot be kept by the target, at whatever load.
FleetServedModel read_served_model(const JsonValue& entry, const ServedCase& with);

// Requests that wait, on engines that are as busy as they can be.
struct BatchInference {
  std::string id, deployment;
  double requests = 0;
  std::int64_t replicas = 1, chunk = 1;
  double rate = 0, tokens = 0;  // a second, of all replicas
  JobWork work;
  ClusterJob job;
};

// Keys: id, batch (settings of serve but for who asks when), requests, perhaps replicas or gpus,
// submit, chunk (requests that are handed in together: one that is stopped begins its chunk again),
// start. Errors: as above.
BatchInference read_batch(const JsonValue& entry, const ServedCase& with);

}  // namespace orrery
