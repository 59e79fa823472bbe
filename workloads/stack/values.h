// SPDX-License-Identifier: Apache-2.0
// Lists the values of a stack that have evidence and a range, each with its key in files.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "workloads/stack/stack.h"

namespace orrery {

// Those of a serving engine alone: a StackServing or a const one.
template <class ServingRef, class Visit>
void visit_serving_values(ServingRef& s, Visit&& visit) {
  visit("host_step", s.host.step);
  visit("host_sequence", s.host.sequence);
  visit("host_chunk", s.host.chunk);
  visit("host_ranks", s.host.ranks);
  visit("host_answer", s.host.answer);
  visit("between_steps", s.host.between_steps);
  visit("index_choice", s.kernels.index_choice);
  visit("expert_skew", s.kernels.expert_skew);
  visit("eager_step", s.host.eager_step);
  visit("eager_launch", s.host.eager_launch);
  visit("eager_collective", s.host.eager_collective);
  visit("compiled_launch", s.host.compiled_launch);
  visit("uncompiled_launch", s.host.uncompiled_launch);
  visit("first_prompts", s.host.first_prompts);
  visit("stall_share", s.host.stall_share);
  visit("stall", s.host.stall);
  visit("request_front", s.host.request_front);
  visit("dynamo_front", s.host.dynamo_front);
  visit("tokeniser", s.host.tokeniser);
  visit("outside", s.memory.outside);
  visit("workspace_rounding", s.memory.workspace_rounding);
}

// visit(key, value) for each; `stack` is a Stack or a const one.
template <class StackRef, class Visit>
void visit_stack_values(StackRef& s, Visit&& visit) {
  visit("elementwise_passes", s.kernels.elementwise_passes);
  visit("loss_bytes_per_logit", s.kernels.loss_bytes_per_logit);
  visit("quantise_passes", s.kernels.quantise_passes);
  visit("permute_passes", s.kernels.permute_passes);
  visit("expert_bias_passes", s.kernels.expert_bias_passes);
  visit("biased_activation_passes", s.kernels.biased_activation_passes);
  visit("scan_forward_channel", s.kernels.scan.forward.channel);
  visit("scan_forward_state", s.kernels.scan.forward.state);
  visit("scan_forward_group", s.kernels.scan.forward.group);
  visit("scan_backward_channel", s.kernels.scan.backward.channel);
  visit("scan_backward_state", s.kernels.scan.backward.state);
  visit("scan_backward_group", s.kernels.scan.backward.group);
  visit("scan_convolution", s.kernels.scan.convolution);
  visit("scan_convolution_backward", s.kernels.scan.convolution_backward);
  visit("scan_norm_backward", s.kernels.scan.norm_backward);
  visit("delta_rule", s.kernels.scan.delta_rule);
  visit("score_dropout_forward", s.dropout.score_forward);
  visit("score_dropout_backward", s.dropout.score_backward);
  visit("flash_dropout_forward", s.dropout.flash_forward);
  visit("flash_dropout_backward", s.dropout.flash_backward);
  visit("hidden_dropout_forward", s.dropout.hidden_forward);
  visit("hidden_dropout_backward", s.dropout.hidden_backward);
  visit("optimizer_passes", s.kernels.update.passes);
  visit("optimizer_passes_16_bit", s.kernels.update.passes_16_bit);
  visit("adapter_passes", s.kernels.adapter_passes);
  visit("kernel_age", s.kernels.kernel_age);
  visit_serving_values(s.serving, visit);
  visit("small_kernels_forward", s.kernels.small_kernels_forward);
  visit("small_kernels_backward", s.kernels.small_kernels_backward);
  visit("dispatch", s.host.dispatch);
  visit("operations.layer_forward", s.host.operations.layer_forward);
  visit("operations.layer_backward", s.host.operations.layer_backward);
  visit("operations.moe_forward", s.host.operations.moe_forward);
  visit("operations.moe_backward", s.host.operations.moe_backward);
  visit("operations.expert_forward", s.host.operations.expert_forward);
  visit("operations.expert_backward", s.host.operations.expert_backward);
  visit("operations.head", s.host.operations.head);
  visit("operations.collective", s.host.operations.collective);
  visit("moe_sync", s.host.moe_sync);
  visit("sync_exposed", s.host.sync_exposed);
  visit("softmax_fallback", s.host.softmax_fallback);
  visit("layer_sync", s.host.layer_sync);
  visit("rank_wait", s.host.rank_wait);
  visit("host_spread", s.host.spread);
  visit("accumulate_passes", s.kernels.accumulate_passes);
  visit("gradient_touches", s.kernels.update.gradient_touches);
  visit("debug_per_rank", s.host.debug.per_rank);
  visit("debug_per_remote_rank", s.host.debug.per_remote_rank);
  visit("slow_hosts", s.host.debug.slow_hosts);
  visit("slow_host_cost", s.host.debug.slow_cost);
  visit("step_overhead", s.host.step_overhead);
  visit("tensor_exposed", s.communication.tensor_exposed);
  visit("expert_exposed", s.communication.expert_exposed);
  visit("overlapped_expert_exposed", s.communication.overlapped_expert_exposed);
  visit("context_exposed", s.communication.context_exposed);
  visit("data_overlap_window", s.communication.data_overlap_window);
  visit("overlap_cost", s.communication.overlap_cost);
  visit("host_update_share", s.host.update_share);
  visit("bucket", s.sharding.bucket);
  visit("bucket_per_rank", s.sharding.bucket_per_rank);
  visit("gathered_copy_passes", s.sharding.copies.gathered);
  visit("reduced_copy_passes", s.sharding.copies.reduced);
  visit("widened_copy_passes", s.sharding.copies.widened);
  visit("shard_copy_passes", s.sharding.copies.shard);
  visit("allocator_rounding", s.memory.allocator_rounding);
  visit("context", s.memory.context);
  visit("sequence_buffers", s.memory.sequence_buffers);
}

// Whether the value of that key is a share of something, of time, of bytes or of machines: at
// most 1.
inline bool is_share(std::string_view name) {
  constexpr std::array<std::string_view, 9> shares = {
      "tensor_exposed",  "expert_exposed",      "overlapped_expert_exposed",
      "context_exposed", "data_overlap_window", "sync_exposed",
      "slow_hosts",      "host_update_share",   "stall_share"};
  return std::find(shares.begin(), shares.end(), name) != shares.end();
}

}  // namespace orrery
