// SPDX-License-Identifier: Apache-2.0
// Tells what became of a cluster's jobs: for people, for machines, a row a job.
#pragma once

#include <string>

#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

Document schedule_document(const Scheduled& scheduled, bool full, std::size_t width);
Json schedule_json(const Scheduled& scheduled);
// policy, place, id, queue, gpus, submit_s, wait_s, length_s, start_s, end_s, hosts, groups, stops:
// blank where a job did not start, and where hosts do not count. Of the first seed.
std::string schedule_rows(const Scheduled& scheduled);

}  // namespace orrery
