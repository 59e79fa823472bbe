// SPDX-License-Identifier: Apache-2.0
// Measures the event queue: events per second with many pending.
#include <benchmark/benchmark.h>

#include "sim/base/random.h"
#include "sim/engine/event_queue.h"

namespace {

using namespace orrery;

// The hold model: each popped event pushes one at a random later time, so that as many stay
// pending.
void hold(benchmark::State& state) {
  RandomStream random(9, 0);
  std::vector<std::int64_t> delays(1 << 16);
  for (std::int64_t& delay : delays) delay = static_cast<std::int64_t>(random.below(1000000));
  EventQueue queue;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    queue.push({delays[next++ % delays.size()]}, {0, i, 0});
  Ticks time;
  Event event;
  for (auto _ : state) {
    queue.pop(time, event);
    queue.push(time + Ticks{delays[next++ % delays.size()]}, event);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(hold)->Arg(100)->Arg(10000)->Arg(1000000);

// As above, and each event is cancelled and pushed again once before it leaves, as a flow whose
// rate changed.
void hold_and_move(benchmark::State& state) {
  RandomStream random(10, 0);
  std::vector<std::int64_t> delays(1 << 16);
  for (std::int64_t& delay : delays) delay = static_cast<std::int64_t>(random.below(1000000));
  EventQueue queue;
  std::vector<EventHandle> handles;
  std::size_t next = 0;
  const auto push = [&](std::int64_t i) {
    const Ticks time = queue.now() + Ticks{delays[next++ % delays.size()]};
    return queue.push(time, {0, i, 0});
  };
  for (std::int64_t i = 0; i < state.range(0); ++i) handles.push_back(push(i));
  Ticks time;
  Event event;
  std::size_t moved = 0;
  for (auto _ : state) {
    queue.pop(time, event);
    handles[static_cast<std::size_t>(event.a)] = push(event.a);
    moved = (moved + 1) % handles.size();
    queue.cancel(handles[moved]);
    handles[moved] = push(static_cast<std::int64_t>(moved));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(hold_and_move)->Arg(10000);

}  // namespace
