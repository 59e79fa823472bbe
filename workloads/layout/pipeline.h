// SPDX-License-Identifier: Apache-2.0
// Knows pipeline schedules: the fixed order of passes on every stage.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "workloads/layout/layout.h"

namespace orrery {

// forward; backward = input and weight gradients together; split schedules use the latter two.
enum class PassKind : std::uint8_t { forward, backward, input_gradient, weight_gradient };
inline constexpr auto pass_kind_text =
    enum_names<PassKind>({"forward", "backward", "input gradient", "weight gradient"});
constexpr std::string_view to_text(PassKind kind) { return pass_kind_text[kind]; }

struct Pass {
  PassKind kind = PassKind::forward;
  std::int32_t chunk = 0;  // model chunk on this stage, 0 .. vpp - 1
  std::int64_t microbatch = 0;
  bool paired = false;  // dual_pipe: a forward that runs together with the backward after it
  bool operator==(const Pass&) const = default;
};

// What a schedule needs to know of a layout. dual_pipe: stage s also holds stage pp - 1 - s of the
// other direction (chunk 1), microbatches are shared between both directions: the first half enters
// at stage 0, the second half at the last stage. one_f_one_b with chunks > 1 means interleaved, and
// interleaved with one chunk means one_f_one_b, as in Megatron-Core.
struct PipelineShape {
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t stages = 1, chunks = 1, microbatches = 1;
};

// Why no such schedule exists, in one sentence; nullopt when it does. gpipe and zero_bubble have
// one chunk, the V-shaped schedules have two and need twice as many microbatches as stages.
// interleaved_zero_bubble needs the stages to divide the microbatches, and with one chunk means
// zero_bubble.
// dual_pipe needs an even number of stages and of microbatches, and at least twice as many
// microbatches as stages. Megatron-Core also refuses interleaving when the stages do not divide the
// microbatches; here such a last group is run as if it were full, its missing passes left out.
std::optional<std::string> invalid_shape(const PipelineShape& shape);

// The schedule with the two equivalences above resolved.
Schedule effective_schedule(const PipelineShape& shape);

// Model chunks that a stage holds: `chunks`, but 2 for dual_pipe.
std::int64_t chunks_per_stage(const PipelineShape& shape);

// The order of passes of one stage: length 2 * chunks * microbatches (3 * for the zero-bubble
// schedules; dual_pipe and dual_pipe_v split some backwards only). GPipe (Huang et al.
// 2019): all forwards, then all backwards in the same order. 1F1B (PipeDream-Flush): min(stages -
// stage - 1, microbatches) warm-up forwards, then alternating, then backwards. Interleaved:
// Megatron-Core's order (groups of `stages` microbatches per chunk, (stages - stage - 1)
// * 2 + (chunks - 1) * stages warm-up forwards).
// Interleaved zero-bubble: the same forwards, and input gradients in the order of its backwards,
// with weight gradients `stage` virtual microbatches late (PyTorch's
// ScheduleInterleavedZeroBubble). Zero-bubble: ZB-H1 (Qi et al. 2023): 1F1B with weight gradients
// `stage` microbatches late, which holds as many activations on every stage as 1F1B on the first.
// DualPipe (DeepSeek-V3 report, section 3.2.1): the order of DeepSeek's published implementation.
// ZB-V (Qi et al. 2023, section 6): two chunks a stage in a V, as much memory as 1F1B's first stage
// on every stage and, with forward, input and weight gradient of equal length, no idle time between
// a stage's first and last pass; the order of PyTorch's implementation. DualPipeV: DualPipe cut in
// half (Hu et al. 2025), its second direction the way back of the first.
std::vector<Pass> stage_order(const PipelineShape& shape, std::int64_t stage);

// Activations that a stage of a two-chunk schedule (dual_pipe or a V) holds at its worst moments,
// by chunk: the sums of both moments are peak_in_flight.
struct ChunksHeld {
  std::int64_t first = 0, second = 0;
};
std::array<ChunksHeld, 2> worst_held(const PipelineShape& shape, std::int64_t stage);

// Greatest number of (microbatch, chunk) activations that a stage holds at once. An activation is
// held until its weight gradient is done; dual_pipe and dual_pipe_v count it until its input
// gradient is done, as DualPipe's report does.
std::int64_t peak_in_flight(const PipelineShape& shape, std::int64_t stage);

// Microbatches whose logits wait for their backward where the head lies in this chunk of a stage:
// one on the last position, as many as the stage has warm-up forwards elsewhere (nanotron's late
// positions can be empty), and all in GPipe.
std::int64_t waiting_heads(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk);

}  // namespace orrery
