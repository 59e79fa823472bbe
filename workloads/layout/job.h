// SPDX-License-Identifier: Apache-2.0
// Describes what is to be done with a model: a training run's batch, or one inference step.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/units.h"

namespace orrery {

class JsonValue;

enum class Task : std::uint8_t { pretrain, sft, lora, prefill, decode };
inline constexpr auto task_text =
    enum_names<Task>({"pretrain", "sft", "lora", "prefill", "decode"});
constexpr std::string_view to_text(Task t) { return task_text[t]; }
constexpr bool is_training(Task t) {
  return t == Task::pretrain || t == Task::sft || t == Task::lora;
}

struct Job {
  Task task = Task::pretrain;
  std::int64_t sequence = 0;       // training: tokens per sequence; prefill: prompt tokens
  std::int64_t global_batch = 0;   // training: sequences per step
  std::int64_t mean_document = 0;  // packed fine-tuning: mean tokens of a document; 0: not packed
  std::int64_t lora_rank = 16;     // lora: of adapters on the stack's adapter_sites
  // Inference: sequences in the batch of one replica, tokens of KV history (decode).
  std::int64_t batch = 0, context = 0;
  // Rates at which training drops attention's scores, and what attention and the feed-forward add
  // to the residual. Any rate costs the same.
  double attention_dropout = 0, hidden_dropout = 0;
  bool mtp = false;               // train the model's MTP modules too
  double expert_imbalance = 1.0;  // busiest expert rank's tokens over the mean
  // A benchmark's gate that deals experts out in turn: those of a token are neighbours, on few
  // ranks. Else they are anywhere.
  bool experts_in_turn = false;
};

// A rate of dropout: from 0 (none) to below 1, else an Error.
double dropout_from(const JsonValue& at);

// Tokens that one step works on: training the batch's, inference those of all replicas (decode: one
// of each sequence).
double tokens_per_step(const Job& job, std::int64_t replicas);

}  // namespace orrery
