// Knows what two streams of a rank cost each other when their collectives meet on the network.
#include "sim/engine/contention.h"

#include "sim/base/check.h"

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

Seconds alone(std::span<const StreamItem> items, FlowNetwork& network) {
  Seconds sum;
  for (const StreamItem& item : items) {
    sum += item.compute;
    if (item.collective) sum += network.price(*item.collective).time;
  }
  return sum;
}

}  // namespace

TwoStreams run_streams(std::span<const StreamItem> main, std::span<const StreamItem> side,
                       FlowNetwork& network) {
  const Ticks begin = network.now();
  Walk walks[] = {{.items = main, .ready = begin}, {.items = side, .ready = begin}};
  // A start may lie in the network's future, so each stream hands over its next collective as soon
  // as it knows when.
  const auto go_on = [&](Walk& w) {
    skip_compute(w);
    if (w.next < w.items.size())
      w.waits_for = network.start(*w.items[w.next++].collective, w.ready);
  };
  for (Walk& w : walks) go_on(w);
  while (walks[0].waits_for.value >= 0 || walks[1].waits_for.value >= 0) {
    const auto completion = network.next_completion();
    CHECK_THAT(completion.has_value(), "a stream waits for a collective that does not run");
    for (Walk& w : walks) {
      if (w.waits_for != completion->id) continue;
      w.waits_for = {};
      w.ready = completion->time;
      go_on(w);
    }
  }
  const Ticks ends[] = {walks[0].ready, walks[1].ready};
  return {.main = to_seconds(ends[0] - begin),
          .side = to_seconds(ends[1] - begin),
          .main_alone = alone(main, network),
          .side_alone = alone(side, network)};
}

}  // namespace orrery
