// SPDX-License-Identifier: Apache-2.0
// Knows the words in which sources state precision, recompute, task and blanks, and what they mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/layout/layout.h"

namespace orrery {

// Whether `part` occurs in the text, without regard to case.
bool mentions(const std::string& text, const std::string& part);

// Digits with or without a point; infinity where they are too many.
double decimal(const std::string& digits);
// A whole number that follows `word` in the text ("FSDP=64", "rank 16"); 0: none. `word` is a
// regular expression.
std::int64_t number_after(const std::string& text, const std::string& word);
// The watts of a board that a GPU's name tells ("H100-SXM 96GB 500W"); 0: none.
std::int64_t watts_told(const std::string& gpu);

struct PrecisionWords {
  PrecisionRecipe recipe = PrecisionRecipe::bf16;
  bool plain_fp8 = false;  // which of the FP8 recipes is not said: the stack's own
};
// "BF16", "bfloat16", "FP16 mixed", "FP8", "FP8-CS", "FP8 blockwise", "MXFP8", "NVFP4", ... nullopt
// for what no recipe stands for (integers, fp32).
std::optional<PrecisionWords> precision_from_words(const std::string& text);

// nullopt where the text is blank. Parts in parentheses or with commas are modules.
std::optional<RecomputeChoice> recompute_from_words(const std::string& text);

// "pretrain" (also for a blank), "sft", "fine-tuning", "LoRA", "QLoRA", "PEFT"; nullopt otherwise.
std::optional<Task> task_from_words(const std::string& text);

// A schedule that the text names; nullopt: blank, or plain 1F1B.
std::optional<Schedule> schedule_from_words(const std::string& text);

// Why a row that is predicted has nothing to be scored by, from the figures that its source tells
// in place of a speed, a step time or memory.
std::string unscored_reason(bool tells_flops, const std::string& metric);

}  // namespace orrery
