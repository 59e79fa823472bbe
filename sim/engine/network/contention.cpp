// SPDX-License-Identifier: Apache-2.0
// Finds what two streams of a rank cost each other when their collectives meet on the network.
#include "sim/engine/network/contention.h"

#include <algorithm>
#include <vector>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// A stream at its place: the item that runs, and when its next collective starts.
struct Walk {
  std::span<const StreamItem> items;
  std::size_t next = 0;
  Ticks ready;             // when the next collective can start, or the stream has ended
  CollectiveId waits_for;  // -1: for none
};

// Compute up to the next collective.
void skip_compute(Walk& w) {
  while (w.next < w.items.size()) {
    w.ready += to_ticks(w.items[w.next].compute);
    if (w.items[w.next].collective) return;
    ++w.next;
  }
}

// When every stream ends, from the network's present on.
std::vector<Seconds> run(std::vector<Walk> walks, FlowNetwork& network) {
  const Ticks begin = network.now();
  std::size_t running = 0;
  // A start may lie in the network's future, so each stream hands over its next collective as soon
  // as it knows when.
  const auto go_on = [&](Walk& w) {
    skip_compute(w);
    if (w.next == w.items.size()) return;
    w.waits_for = network.start(*w.items[w.next++].collective, w.ready);
    ++running;
  };
  for (Walk& w : walks) {
    w.ready = begin;
    go_on(w);
  }
  while (running > 0) {
    const auto completion = network.next_completion();
    CHECK_THAT(completion.has_value(), "a stream waits for a collective that does not run");
    for (Walk& w : walks) {
      if (w.waits_for != completion->id) continue;
      --running;
      w.waits_for = {};
      w.ready = completion->time;
      go_on(w);
    }
  }
  std::vector<Seconds> ends;
  for (const Walk& w : walks) ends.push_back(to_seconds(w.ready - begin));
  return ends;
}

}  // namespace

TwoStreams run_streams(std::span<const StreamItem> main, std::span<const StreamItem> side,
                       FlowNetwork& network) {
  if (const TwoStreams* known = network.known(main, side)) return *known;
  TwoStreams streams;
  network.guess_limits();
  do {
    const std::vector<Seconds> both = run({{.items = main}, {.items = side}}, network);
    streams = {.main = both[0],
               .side = both[1],
               .main_alone = run({{.items = main}}, network)[0],
               .side_alone = run({{.items = side}}, network)[0]};
  } while (network.missed_limits());
  // A collective here ends when its slowest group has. Where one group's links are broken, busy or
  // longer, the others' streams drift apart by its delay, meet less and would seem to gain by it.
  if (FlowNetwork* better = network.better()) {
    const TwoStreams least = run_streams(main, side, *better);
    streams.main = std::max(streams.main, streams.main_alone + least.main_delay());
    streams.side = std::max(streams.side, streams.side_alone + least.side_delay());
  }
  network.remember(main, side, streams);
  return streams;
}

}  // namespace orrery
