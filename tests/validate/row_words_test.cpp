// SPDX-License-Identifier: Apache-2.0
// Tests the words in which sources state precision, recompute, task and schedule.
#include <catch2/catch.hpp>

#include "sim/validate/rows/row_words.h"

namespace orrery {

TEST_CASE("precisions are read however they are written") {
  const auto recipe = [](const char* text) { return precision_from_words(text)->recipe; };
  CHECK(recipe("BF16") == PrecisionRecipe::bf16);
  CHECK(recipe("bfloat16 mixed") == PrecisionRecipe::bf16);
  CHECK(recipe("FP16") == PrecisionRecipe::fp16);
  CHECK(recipe("FP16 AMP") == PrecisionRecipe::fp16);
  CHECK(recipe("FP8-CS") == PrecisionRecipe::fp8_current);
  CHECK(recipe("float8 rowwise") == PrecisionRecipe::fp8_current);
  CHECK(recipe("FP8-blockwise") == PrecisionRecipe::fp8_blockwise);
  CHECK(recipe("FP8-SC") == PrecisionRecipe::fp8_blockwise);
  CHECK(recipe("FP8-DS") == PrecisionRecipe::fp8_delayed);
  CHECK(recipe("MXFP8") == PrecisionRecipe::mxfp8);
  CHECK(recipe("FP8-MX") == PrecisionRecipe::mxfp8);
  CHECK(recipe("NVFP4") == PrecisionRecipe::nvfp4);
  CHECK(precision_from_words("FP8")->plain_fp8);
  CHECK_FALSE(precision_from_words("FP8-DS")->plain_fp8);
  CHECK_FALSE(precision_from_words("BF16/INT8").has_value());
  CHECK_FALSE(precision_from_words("").has_value());
  CHECK_FALSE(precision_from_words("fp32").has_value());
}

TEST_CASE("recompute is none, full, or modules") {
  CHECK_FALSE(recompute_from_words("").has_value());
  CHECK(recompute_from_words("none")->recompute == Recompute::none);
  CHECK(recompute_from_words("no")->recompute == Recompute::none);
  CHECK(recompute_from_words("full")->recompute == Recompute::full);
  CHECK(recompute_from_words("full (uniform, 1)")->recompute == Recompute::full);
  const auto plain = recompute_from_words("selective");
  CHECK(plain->recompute == Recompute::selective);
  CHECK(plain->modules == core_attention_only);
  const auto parts = recompute_from_words("selective (RMSNorm, MLA up-proj)");
  CHECK(parts->modules ==
        RecomputeModules{RecomputeModule::layernorm, RecomputeModule::mla_up_proj});
}

TEST_CASE("tasks and schedules are read however they are written") {
  CHECK(task_from_words("") == Task::pretrain);
  CHECK(task_from_words("pre-training") == Task::pretrain);
  CHECK(task_from_words("Full fine-tuning") == Task::sft);
  CHECK(task_from_words("sft") == Task::sft);
  CHECK(task_from_words("QLoRA") == Task::lora);
  CHECK_FALSE(task_from_words("inference").has_value());
  CHECK_FALSE(schedule_from_words("").has_value());
  CHECK_FALSE(schedule_from_words("1f1b").has_value());
  CHECK(schedule_from_words("GPipe") == Schedule::gpipe);
  CHECK(schedule_from_words("DualPipe") == Schedule::dual_pipe);
  CHECK(schedule_from_words("DualPipeV") == Schedule::dual_pipe_v);
  CHECK(schedule_from_words("ZB-H1") == Schedule::zero_bubble);
  CHECK(schedule_from_words("ZB-V") == Schedule::zero_bubble_v);
  CHECK(number_after("FSDP=64; x", "FSDP") == 64);
  CHECK(number_after("no number", "FSDP") == 0);
  CHECK(watts_told("H100-SXM 96GB HBM2e 500W") == 500);
  CHECK(watts_told("B200 (1000 W)") == 1000);
  CHECK(watts_told("H100-SXM5-80GB") == 0);
  CHECK(watts_told("GB300 NVL72, 2024 Wiwynn") == 0);
}

}  // namespace orrery
