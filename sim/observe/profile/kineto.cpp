// SPDX-License-Identifier: Apache-2.0
// Reads a trace of PyTorch's profiler: one batch is cut while the one before is read.
#include <fmt/format.h>

#include <array>

#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/observe/profile/event_reader.h"
#include "sim/observe/profile/summary.h"
#include "sim/observe/profile/trace_cutter.h"

namespace orrery::observe {
namespace {

constexpr std::size_t batch_size = std::size_t{2} << 20U;

// Unpacks and cuts on one thread and reads on the other, in turns.
void read_events(TraceCutter& cutter, EventReader& reader) {
  std::array<EventBatch, 2> batches;
  std::size_t ready = 0;
  bool more = cutter.fill(batches[ready], batch_size);
  while (more) {
    bool next = false;
    parallel_for(2, 2, [&](std::size_t part) {
      if (part == 0)
        next = cutter.fill(batches[1 - ready], batch_size);
      else
        reader.take(batches[ready]);
    });
    more = next;
    ready = 1 - ready;
  }
}

}  // namespace

Profile read_kineto(const std::filesystem::path& file) {
  ByteStream stream(file);
  TraceCutter cutter(stream);
  Profile profile{.file = file.string(), .source = ProfileSource::kineto};
  Timeline timeline;
  EventReader reader(profile.file, timeline);
  read_events(cutter, reader);
  if (!cutter.found_events())
    throw Error({.file = profile.file,
                 .found = "JSON without \"traceEvents\"",
                 .expected = "a trace of PyTorch's profiler (export_chrome_trace)"});
  if (timeline.events == reader.broken())
    throw Error({.file = profile.file,
                 .found = "a trace without a whole event",
                 .expected = "a trace of PyTorch's profiler (export_chrome_trace)"});
  if (cutter.is_cut() || stream.is_cut())
    profile.notes.push_back(fmt::format(
        "The trace ends in the middle of an event: the {} whole events before it are taken.",
        timeline.events));
  if (reader.broken() > 0)
    profile.notes.push_back(
        fmt::format("{} events that are no JSON were left out.", reader.broken()));
  summarise(timeline, profile.file, profile);
  read_head(cutter.head(), profile);
  return profile;
}

bool is_trace(std::string_view first_bytes) {
  const std::size_t at = first_bytes.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos) return false;
  if (first_bytes[at] == '{') return true;
  const std::size_t next = first_bytes.find_first_not_of(" \t\r\n", at + 1);
  return first_bytes[at] == '[' && next != std::string_view::npos && first_bytes[next] == '{';
}

}  // namespace orrery::observe
