// SPDX-License-Identifier: Apache-2.0
// Reads what command lines of vLLM, SGLang and TensorRT-LLM's servers have in common.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/launch/programs/served/served_reader.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

// What checkpoints are named after their model, by their format.
struct Suffix {
  const char* text;
  const char* precision;  // empty: several formats go by that name
};
constexpr Suffix suffixes[] = {{"-nvfp4", "nvfp4"},    {"-fp4", "nvfp4"},  {"-awq", "int4"},
                               {"-gptq-int4", "int4"}, {"-w4a16", "int4"}, {"-gptq", "int4"},
                               {"-fp8-dynamic", ""},   {"-fp8", ""},       {"-w8a8", "int8"},
                               {"-gptq-int8", "int8"}};

}  // namespace

std::string flag_key(const std::string& name) {
  std::string plain = name.starts_with("--") ? name.substr(2) : name;
  std::replace(plain.begin(), plain.end(), '-', '_');
  return plain;
}
void ServedReader::read_model(const Said& said) {
  const std::string name = text_of(said);
  std::string lower = name, precision;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::optional<std::string> entry = model_of_name(name);
  for (const Suffix& suffix : suffixes) {
    if (!lower.ends_with(suffix.text)) continue;
    precision = suffix.precision;
    if (!entry)
      entry = model_of_name(name.substr(0, name.size() - std::string_view(suffix.text).size()));
    break;
  }
  if (!entry)
    return reading_.not_understood(
        said, "no model of the catalogue has this name: name one with --model");
  reading_.set(said, "model", *entry);
  if (!precision.empty()) reading_.set(said, "precision", precision, "by the checkpoint's name");
}

void ServedReader::read_quantization(const Said& said) {
  if (is_nothing(said)) return reading_.without_effect(said, "it is not set");
  const std::string kind = text_of(said);
  if (kind == "fp8" || kind == "w8a8_fp8")
    reading_.set(said, "precision", "fp8-current");
  else if (kind == "modelopt_fp4")
    reading_.set(said, "precision", "nvfp4");
  else if (kind == "mxfp4")
    reading_.set(said, "precision", "mxfp4");
  else if (kind.starts_with("awq") || kind.starts_with("gptq"))
    reading_.set(said, "precision", "int4");
  else if (kind == "w8a8_int8")
    reading_.set(said, "precision", "int8");
  else
    reading_.not_understood(said, "the checkpoint says which format that is: --precision names it");
}

void ServedReader::read_cache(const Said& said) {
  const std::string kind = text_of(said);
  if (kind == "auto" || kind == "bf16" || kind == "bfloat16")
    reading_.set(said, "cache", "bf16");
  else if (kind.starts_with("fp8"))
    reading_.set(said, "cache", "fp8");
  else if (kind == "nvfp4")
    reading_.set(said, "cache", "nvfp4");
  else
    reading_.not_understood(said, "a format that is not predicted: bf16 is");
}

Take ServedReader::memory_share() {
  return [this](const Said& said) { reading_.set(said, "memory_share", number_of(said, 0.01, 1)); };
}

Take ServedReader::cut_prompts() {
  return [this](const Said& said) {
    if (truth_of(said))
      reading_.without_effect(said, "prompts are predicted cut");
    else
      reading_.not_understood(said, "prompts that are not cut: predicted cut");
  };
}

Take ServedReader::eager() {
  return [this](const Said& said) { reading_.set(said, "eager", truth_of(said) ? "all" : "none"); };
}

Take ServedReader::predicted_without() {
  return [this](const Said& said) { reading_.not_understood(said, "predicted without it"); };
}

void ServedReader::common_rules() {
  Rules& r = s_.rules;
  for (const char* name : {"model", "model_path", "model_tag"})
    r[name] = [this](const Said& said) { read_model(said); };
  r["quantization"] = [this](const Said& said) { read_quantization(said); };
  r["kv_cache_dtype"] = [this](const Said& said) { read_cache(said); };
  r["dtype"] = [this](const Said& said) {
    const std::string type =
        one_of(said, {"auto", "bfloat16", "float16", "half", "float", "float32"});
    if (type == "auto")
      reading_.without_effect(said, "the checkpoint says it");
    else if (reading_.has("precision"))
      reading_.part_of(said, "precision");
    else if (type == "bfloat16")
      reading_.set(said, "precision", "bf16");
    else if (type == "float16" || type == "half")
      reading_.set(said, "precision", "fp16");
    else
      reading_.not_understood(said, "FP32 is not predicted: bf16 is");
  };
}

void ServedReader::finish(const GivenWords& given) {
  static_cast<void>(given);
  reading_.run().serves = true;
  if (const auto model = reading_.text("model")) {
    try {
      experts_ = load_model(*model, data_root() / "workloads/catalog/models").max_experts();
    } catch (const Error&) {
      experts_.reset();  // whoever reads the question says what is wrong with it
    }
  }
  if (!reading_.has("precision") && !reading_.asked().contains("precision"))
    reading_.assume("the checkpoint's format", "precision", "bf16",
                    "the command line does not say it: --precision names another");
}

void ServedReader::engines(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::int64_t ep,
                           std::int64_t replicas) {
  reading_.run().engine = {.tp = tp,
                           .pp = pp,
                           .attention_dp = dp,
                           .ep = ep,
                           .copies = copies_.value_or(0),
                           .experts = has_experts()};
  std::string text = replicas > 1 ? fmt::format("{}x", replicas) : "";
  text += fmt::format("TP{}", tp);
  if (pp > 1) text += fmt::format("PP{}", pp);
  if (dp > 1) text += fmt::format("DP{}", dp);
  if (ep > 1) text += fmt::format("EP{}", ep);
  if (ep > 1 && copies_) text += fmt::format("+{}", *copies_);
  bool said_some = false;
  for (const char* name : {"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
                           "enable_expert_parallel", "tp_size", "pp_size", "dp_size", "ep_size",
                           "enable_dp_attention", "enable_attention_dp"})
    if (const Said* said = s_.kept(name)) {
      reading_.set(*said, "engines", text);
      said_some = true;
    }
  if (!said_some && !reading_.asked().contains("engines"))
    reading_.assume("the sizes of its groups", "engines", text, "one rank, in every release");
}

}  // namespace orrery
