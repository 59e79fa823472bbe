// SPDX-License-Identifier: Apache-2.0
// Appends events as JSON, one after the other.
#include "sim/outcome/trace_events.h"

namespace orrery {
namespace {

double microseconds_of(Ticks t) { return static_cast<double>(t.ps) * 1e-6; }

}  // namespace

void TraceEvents::add(const Json& event) {
  if (!events_.empty()) events_ += ',';
  events_ += event.dump();
}

void TraceEvents::name_process(std::int64_t process, const std::string& name) {
  add({{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"args", {{"name", name}}}});
}

void TraceEvents::name_track(std::int64_t process, std::int64_t track, const std::string& name) {
  add({{"name", "thread_name"},
       {"ph", "M"},
       {"pid", process},
       {"tid", track},
       {"args", {{"name", name}}}});
}

void TraceEvents::slice(const std::string& name, const std::string& category, std::int64_t process,
                        std::int64_t track, Ticks start, Ticks length, const Json& details) {
  add_slice(name, category, process, track, microseconds_of(start), microseconds_of(length),
            details);
}

void TraceEvents::slice(const std::string& name, const std::string& category, std::int64_t process,
                        std::int64_t track, FleetTime start, FleetTime length,
                        const Json& details) {
  add_slice(name, category, process, track, start.us, length.us, details);
}

void TraceEvents::add_slice(const std::string& name, const std::string& category,
                            std::int64_t process, std::int64_t track, const Json& start,
                            const Json& length, const Json& details) {
  Json event = {{"name", name}, {"cat", category}, {"ph", "X"},    {"pid", process},
                {"tid", track}, {"ts", start},     {"dur", length}};
  if (!details.is_null()) event["args"] = details;
  add(event);
}

void TraceEvents::counter(const std::string& name, std::int64_t process, Ticks at,
                          const Json& values) {
  add({{"name", name},
       {"ph", "C"},
       {"pid", process},
       {"ts", microseconds_of(at)},
       {"args", values}});
}

void TraceEvents::counter(const std::string& name, std::int64_t process, FleetTime at,
                          const Json& values) {
  add({{"name", name}, {"ph", "C"}, {"pid", process}, {"ts", at.us}, {"args", values}});
}

void TraceEvents::add_arrow(const char* end, std::int64_t arrow, std::int64_t process,
                            std::int64_t track, FleetTime at) {
  Json event = {{"name", "wait"}, {"cat", "wait"}, {"ph", end},  {"id", arrow},
                {"pid", process}, {"tid", track},  {"ts", at.us}};
  // Without it the arrow ends at the next slice that begins.
  if (*end == 'f') event["bp"] = "e";
  add(event);
}

void TraceEvents::arrow_from(std::int64_t arrow, std::int64_t process, std::int64_t track,
                             FleetTime at) {
  add_arrow("s", arrow, process, track, at);
}

void TraceEvents::arrow_to(std::int64_t arrow, std::int64_t process, std::int64_t track,
                           FleetTime at) {
  add_arrow("f", arrow, process, track, at);
}

std::string TraceEvents::text() const {
  return "{\"traceEvents\":[" + events_ + "],\"displayTimeUnit\":\"ms\"}\n";
}

}  // namespace orrery
