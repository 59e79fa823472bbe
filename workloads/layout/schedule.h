// SPDX-License-Identifier: Apache-2.0
// Lists the pipeline schedules and what tells them apart.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/text/enum_names.h"

namespace orrery {

enum class Schedule : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  zero_bubble,  // ZB-H1
  dual_pipe,
  zero_bubble_v,  // ZB-V
  dual_pipe_v,    // DualPipe cut in half
  interleaved_zero_bubble,
};

// Names in JSON and on the command line.
inline constexpr auto schedule_text =
    enum_names<Schedule>({"gpipe", "1f1b", "interleaved", "zero-bubble", "dualpipe", "zb-v",
                          "dualpipe-v", "interleaved-zero-bubble"},
                         {{"zb-h1", Schedule::zero_bubble},
                          {"zero-bubble-interleaved", Schedule::interleaved_zero_bubble}});
constexpr std::string_view to_text(Schedule s) { return schedule_text[s]; }

// Which parts of the model a stage holds.
enum class StageChunks : std::uint8_t {
  one,     // the part at its own place
  loops,   // vpp of them: chunk c of stage s is position c pp + s
  v,       // two, the second on the model's way back: positions s and 2 pp - 1 - s
  copies,  // two: its own and that of stage pp - 1 - s, for microbatches that enter at the far end
};

// One row for each schedule, in the order of the enumerators. What a schedule's passes are, and how
// many of them wait, stands in pipeline.cpp in a row of the same order.
struct ScheduleTraits {
  StageChunks chunks = StageChunks::one;
  bool splits_backward = false;   // input and weight gradients are passes of their own
  bool pairs_directions = false;  // passes of two directions run beside each other and hide each
                                  // other's exchanges
  bool dominated = false;  // another schedule is as fast and holds less: not searched unasked
};
inline constexpr auto schedule_traits = std::to_array<ScheduleTraits>({
    {.dominated = true},             // gpipe
    {},                              // 1f1b
    {.chunks = StageChunks::loops},  // interleaved
    {.splits_backward = true},       // zero-bubble
    {.chunks = StageChunks::copies, .splits_backward = true, .pairs_directions = true},  // dualpipe
    {.chunks = StageChunks::v, .splits_backward = true},                                 // zb-v
    {.chunks = StageChunks::v, .splits_backward = true, .pairs_directions = true},  // dualpipe-v
    {.chunks = StageChunks::loops, .splits_backward = true},  // interleaved-zero-bubble
});
static_assert(schedule_traits.size() == schedule_text.count);

constexpr const ScheduleTraits& traits(Schedule s) {
  return schedule_traits[static_cast<std::size_t>(s)];
}
constexpr std::array<Schedule, schedule_traits.size()> all_schedules() {
  std::array<Schedule, schedule_traits.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Schedule>(i);
  return all;
}

constexpr bool is_v_shaped(Schedule s) { return traits(s).chunks == StageChunks::v; }
constexpr bool pairs_directions(Schedule s) { return traits(s).pairs_directions; }
constexpr bool splits_backward(Schedule s) { return traits(s).splits_backward; }
// Each stage also holds the part of the stage at the other end, and half of the microbatches enter
// there.
constexpr bool enters_at_both_ends(Schedule s) { return traits(s).chunks == StageChunks::copies; }
// Of a step's microbatches those that pass each chunk.
constexpr std::int64_t microbatches_a_chunk(Schedule s, std::int64_t microbatches) {
  return enters_at_both_ends(s) ? microbatches / 2 : microbatches;
}
// The stage's chunks are vpp of the layout.
constexpr bool loops_over_chunks(Schedule s) { return traits(s).chunks == StageChunks::loops; }
// A stage holds two chunks whatever vpp says, and needs two microbatches a stage.
constexpr bool holds_two_chunks(Schedule s) { return is_v_shaped(s) || enters_at_both_ends(s); }

}  // namespace orrery
