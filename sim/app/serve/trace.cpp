// SPDX-License-Identifier: Apache-2.0
// Writes steps as slices and requests as counters.
#include "sim/app/serve/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/outcome/trace_events.h"
#include "sim/question/serve/engine_text.h"

namespace orrery {
namespace {

const char* kind_of(const StepRecord& r) {
  if (r.prompt_tokens == 0) return "decode";
  return r.decodes > 0 ? "mixed" : "prefill";
}

std::string name_of(const StepRecord& r) {
  std::string name = kind_of(r);
  if (r.decodes > 0) name += fmt::format(" {}", r.decodes);
  if (r.prompt_tokens > 0) name += fmt::format(" +{} tokens", r.prompt_tokens);
  if (r.steps > 1) name += fmt::format(", {} steps", r.steps);
  return name;
}

void name_tracks(TraceEvents& events, const ServiceCase& asked) {
  const auto add = [&](const EngineGroup& group, std::int64_t first, const char* what) {
    for (std::int64_t i = 0; i < group.replicas; ++i) {
      events.name_process(first + i, fmt::format("{} {}, {}", what, i, to_text(group.layout)));
      for (std::int64_t lane = 0; lane < group.layout.pp; ++lane)
        events.name_track(first + i, lane,
                          group.layout.pp > 1 ? fmt::format("batch {}", lane) : "steps");
    }
  };
  add(asked.engines, 0, asked.decode ? "prefill engine" : "engine");
  if (asked.decode) add(*asked.decode, asked.engines.replicas, "decode engine");
}

// Who runs and waits on an engine, at each change.
struct Level {
  Ticks at;
  std::int32_t replica = 0, lane = 0;
  std::int64_t running = 0, queued = 0;
};

std::vector<Level> levels_of(const StepLog& log) {
  std::vector<Level> levels;
  for (const StepRecord& r : log.steps) {
    levels.push_back({r.start, r.replica, r.lane, r.running, r.queued});
    levels.push_back({r.end, r.replica, r.lane, r.running_after, r.queued_after});
  }
  // What holds after a step comes before what the next one begins with.
  std::stable_sort(levels.begin(), levels.end(), [](const Level& a, const Level& b) {
    return std::pair(a.at, a.replica) < std::pair(b.at, b.replica);
  });
  return levels;
}

// Counters add up the batches of an engine; at one time the last value alone is written.
class Counters {
 public:
  explicit Counters(const StepLog& log) : levels_(levels_of(log)) {}
  // All up to `now`.
  void write(TraceEvents& events, Ticks now) {
    for (; next_ < levels_.size(); ++next_) {
      const Level& level = levels_[next_];
      if (level.at > now) return;
      take(events, level);
    }
  }

 private:
  void take(TraceEvents& events, const Level& level) {
    auto& lanes = of_[level.replica];
    lanes[level.lane] = {level.running, level.queued};
    const bool again = next_ + 1 < levels_.size() && levels_[next_ + 1].at == level.at &&
                       levels_[next_ + 1].replica == level.replica;
    if (again) return;
    std::int64_t running = 0, queued = 0;
    for (const auto& [lane, counts] : lanes) {
      running += counts.first;
      queued += counts.second;
    }
    if (const auto old = shown_.find(level.replica);
        old != shown_.end() && old->second == std::pair(running, queued))
      return;
    shown_[level.replica] = {running, queued};
    events.counter("requests", level.replica, level.at, {{"running", running}, {"queued", queued}});
  }

  using Counts = std::pair<std::int64_t, std::int64_t>;
  std::vector<Level> levels_;
  std::size_t next_ = 0;
  std::map<std::int32_t, std::map<std::int32_t, Counts>> of_;
  std::map<std::int32_t, Counts> shown_;
};

}  // namespace

std::string service_trace(const ServiceCase& asked, const StepLog& log) {
  std::vector<StepRecord> steps = log.steps;
  std::stable_sort(steps.begin(), steps.end(),
                   [](const StepRecord& a, const StepRecord& b) { return a.start < b.start; });
  TraceEvents events;
  name_tracks(events, asked);
  Counters counters(log);
  for (const StepRecord& r : steps) {
    counters.write(events, r.start);
    events.slice(name_of(r), kind_of(r), r.replica, r.lane, r.start, r.end - r.start,
                 {{"steps", r.steps},
                  {"sequences", r.decodes},
                  {"prompt_tokens", r.prompt_tokens},
                  {"running", r.running},
                  {"queued", r.queued}});
  }
  if (!steps.empty()) counters.write(events, Ticks{INT64_MAX});
  return events.text();
}

}  // namespace orrery
