// SPDX-License-Identifier: Apache-2.0
// Reads the words of rows.
#include "sim/validate/rows/row_words.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>

#include <fmt/format.h>

#include "sim/base/text/lower_case.h"

namespace orrery {
namespace {

// Capital letters, digits and points: "FP8 (block-wise)" becomes "FP8BLOCKWISE".
std::string capitals(const std::string& text) {
  std::string bare;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0) bare += static_cast<char>(std::toupper(u));
  }
  return bare;
}

bool has_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&text](const char* part) { return text.find(part) != std::string::npos; });
}

}  // namespace

bool mentions(const std::string& text, const std::string& part) {
  const auto same = [](char a, char b) { return lower_case(a) == lower_case(b); };
  return part.empty() ||
         std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

double decimal(const std::string& digits) { return std::strtod(digits.c_str(), nullptr); }

std::int64_t number_after(const std::string& text, const std::string& word) {
  const std::regex form(word + R"([ =]+(\d{1,9}))", std::regex::icase);
  std::smatch found;
  return std::regex_search(text, found, form) ? std::stoll(found[1]) : 0;
}

std::int64_t watts_told(const std::string& gpu) {
  static const std::regex form(R"((^|[^\d.])(\d{1,18}) ?W\b)");
  std::smatch found;
  return std::regex_search(gpu, found, form) ? std::stoll(found[2]) : 0;
}

std::optional<PrecisionWords> precision_from_words(const std::string& text) {
  const std::string t = capitals(text);
  if (has_any(t, {"INT8", "INT4", "FP6"})) return std::nullopt;
  if (has_any(t, {"NVFP4", "FP4"})) return PrecisionWords{PrecisionRecipe::nvfp4};
  if (has_any(t, {"MXFP8", "FP8MX"})) return PrecisionWords{PrecisionRecipe::mxfp8};
  if (has_any(t, {"FP8", "FLOAT8"})) {
    if (has_any(t, {"BLOCK", "FP8SC", "SUBCHANNEL"}))
      return PrecisionWords{PrecisionRecipe::fp8_blockwise};
    if (has_any(t, {"FP8CS", "FP8TW", "CURRENT", "TENSORWISE", "ROWWISE"}))
      return PrecisionWords{PrecisionRecipe::fp8_current};
    const bool delayed = has_any(t, {"FP8DS", "DELAYED"});
    return PrecisionWords{PrecisionRecipe::fp8_delayed, !delayed};
  }
  if (has_any(t, {"BF16", "BFLOAT16"})) return PrecisionWords{PrecisionRecipe::bf16};
  if (has_any(t, {"FP16", "FLOAT16", "AMP"})) return PrecisionWords{PrecisionRecipe::fp16};
  return std::nullopt;
}

std::optional<RecomputeChoice> recompute_from_words(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::string t = capitals(text);
  for (const char* none : {"NONE", "NO", "OFF", "FALSE", "0"})
    if (t == none) return RecomputeChoice{};
  for (const char* full : {"YES", "ON", "TRUE", "1", "BLOCK", "UNIFORM", "ALL"})
    if (t == full) return RecomputeChoice{.recompute = Recompute::full};
  if (t.starts_with("FULL")) return RecomputeChoice{.recompute = Recompute::full};
  struct Name {
    const char* text;
    RecomputeModule module;
  };
  static constexpr Name names[] = {{"core_attn", RecomputeModule::core_attn},
                                   {"core attention", RecomputeModule::core_attn},
                                   {"moe_act", RecomputeModule::moe_act},
                                   {"layernorm", RecomputeModule::layernorm},
                                   {"RMSNorm", RecomputeModule::layernorm},
                                   {"mla_up_proj", RecomputeModule::mla_up_proj},
                                   {"MLA up-proj", RecomputeModule::mla_up_proj},
                                   {"shared_experts", RecomputeModule::shared_experts},
                                   {"mlp", RecomputeModule::mlp}};
  RecomputeChoice choice{.recompute = Recompute::selective, .modules = {}};
  for (const Name& name : names)
    if (mentions(text, name.text)) choice.modules.add(name.module);
  if (choice.modules.empty()) choice.modules = core_attention_only;
  return choice;
}

std::optional<Task> task_from_words(const std::string& text) {
  const std::string t = capitals(text);
  if (has_any(t, {"LORA", "PEFT", "ADAPTER"})) return Task::lora;
  if (has_any(t, {"SFT", "FINETUN", "INSTRUCT"})) return Task::sft;
  if (t.empty() || has_any(t, {"PRETRAIN", "TRAIN"})) return Task::pretrain;
  return std::nullopt;
}

std::optional<Schedule> schedule_from_words(const std::string& text) {
  const std::string t = capitals(text);
  if (has_any(t, {"GPIPE", "ALLFORWARD", "AFAB"})) return Schedule::gpipe;
  if (has_any(t, {"DUALPIPEV"})) return Schedule::dual_pipe_v;
  if (has_any(t, {"DUAL"})) return Schedule::dual_pipe;
  if (has_any(t, {"ZBV", "ZEROBUBBLEV"})) return Schedule::zero_bubble_v;
  if (has_any(t, {"ZERO", "ZBH1", "ZB"})) return Schedule::zero_bubble;
  return std::nullopt;
}

std::string unscored_reason(bool tells_flops, const std::string& metric) {
  std::string figure = "nothing";
  if (metric == "time_to_train")
    figure = "the minutes to a quality, without steps";
  else if (tells_flops)
    figure = "FLOP/s or MFU by its own count, which is not compared";
  else if (!metric.empty())
    figure = metric;
  return fmt::format("predicted, but the source tells {}", figure);
}

}  // namespace orrery
