// SPDX-License-Identifier: Apache-2.0
// Writes the events and the trace of a run.
#include "sim/app/schedule/run_files.h"

#include <fmt/format.h>

#include <cstdio>

#include "sim/app/ask/lines_command.h"
#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "sim/question/schedule/settings.h"

namespace orrery {
namespace {

constexpr const char *events_flag = "--events-out", *trace_flag = "--trace-out",
                     *from_flag = "--trace-from", *to_flag = "--trace-to";
constexpr std::size_t most_slices = 250'000;  // of a trace: some 60 MB

// Of a flag that says when.
FleetTime time_of(const Given& given, const char* flag, FleetTime otherwise) {
  if (!given.has(flag)) return otherwise;
  if (!given.has(trace_flag))
    throw Error({.file = flag, .found = "no --trace-out", .expected = "both: the file, and when"});
  return read_fleet_time(JsonValue::from(SortedJson(given.text(flag)), flag), Seconds{},
                         "a time of 0 or more, such as \"2 day\"");
}

}  // namespace

std::vector<Flag> run_file_flags() {
  return {{events_flag, "FILE", output_group,
           "a row for each start, stop and end of a job and each host that breaks, as CSV", "file"},
          {trace_flag, "FILE", output_group,
           "write a trace for Perfetto: jobs on each leaf group, who waits, curves", "file"},
          {from_flag, "TIME", output_group, "the trace begins then (\"2 day\")"},
          {to_flag, "TIME", output_group, "the trace ends then"}};
}

RunFiles::RunFiles(const Given& given) {
  const FleetTime from = time_of(given, from_flag, FleetTime{}),
                  to = time_of(given, to_flag, fleet_never);
  if (!(from < to))
    throw Error({.file = to_flag,
                 .found = in_quotes(given.text(to_flag)),
                 .expected = "a time after that of --trace-from"});
  if (given.has(trace_flag)) {
    flag_ = trace_flag;
    trace_file_ = given.place(trace_flag);
    check_writable_file(trace_file_);
    trace_ = std::make_unique<FleetTrace>(from, to, most_slices);
  }
  if (!given.has(events_flag)) return;
  flag_ = events_flag;
  rows_ = std::make_unique<EventRows>(given.place(events_flag));
}

void RunFiles::refuse_beside_lines(const Given& given) {
  for (const char* flag : {events_flag, trace_flag})
    if (given.has(flag))
      throw Error({.file = lines_flag,
                   .found = std::string(flag) + " too",
                   .expected = "one of the two: what is written is of one run"});
}

void RunFiles::begin(const Scheduled& asked) {
  if (asked.points.size() != 1)
    throw Error({.file = flag_,
                 .found = "several points",
                 .expected = "one point: what is written is of one run"});
  if (rows_) rows_->begin(asked);
  if (trace_) trace_->begin(asked);
}

void RunFiles::take(const FleetEvent& event) {
  if (rows_) rows_->take(event);
  if (trace_) trace_->take(event);
}

void RunFiles::finish(bool quiet) {
  if (rows_) rows_->finish();
  if (!trace_) return;
  write_file(trace_file_, trace_->text());
  if (const auto at = trace_->ended_early(); at && !quiet)
    fmt::print(stderr,
               "orrery: {}: the trace ends after {}, at its first {} slices; --trace-from and "
               "--trace-to take a part of the run\n",
               trace_file_, to_text(to_seconds(*at)), grouped(most_slices));
}

}  // namespace orrery
