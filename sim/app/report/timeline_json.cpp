// SPDX-License-Identifier: Apache-2.0
// Writes the passes of a pipeline for machines.
#include "sim/app/answer/answer.h"
#include "sim/app/report/report.h"
#include "sim/outcome/timeline.h"

namespace orrery {
Json timeline_json(const Timeline& timeline) {
  Json passes = Json::array();
  for (const TimelinePass& p : timeline.passes)
    passes.push_back({{"stage", p.stage},
                      {"kind", json_key(to_text(p.pass.kind))},
                      {"microbatch", p.pass.microbatch},
                      {"chunk", p.pass.chunk},
                      {"start_s", p.start.si()},
                      {"end_s", p.end.si()}});
  return {{"microbatches", timeline.microbatches},
          {"of", timeline.of},
          {"end_s", timeline.end.si()},
          {"idle", timeline.idle},
          {"passes", passes}};
}

}  // namespace orrery
