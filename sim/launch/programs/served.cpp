// SPDX-License-Identifier: Apache-2.0
// Reads command lines of vLLM, SGLang and TensorRT-LLM's servers.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"
#include "sim/launch/programs/program_readers.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

std::string plain_name(const std::string& name) {
  std::string plain = name.starts_with("--") ? name.substr(2) : name;
  std::replace(plain.begin(), plain.end(), '-', '_');
  return plain;
}

// vLLM takes "32k" and "1M" (thousands) and "32K" (1,024) for tokens.
std::int64_t tokens_of(const Said& said) {
  Said digits = said;
  std::int64_t unit = 1;
  if (said.value.is_string() && !said.value.text().empty()) {
    std::string text = said.value.text();
    const char last = text.back();
    if (last == 'k' || last == 'm') unit = last == 'k' ? 1'000 : 1'000'000;
    if (last == 'K' || last == 'M') unit = last == 'K' ? 1'024 : 1'048'576;
    if (unit > 1) text.pop_back();
    digits.value = text;
  }
  return whole_of(digits, 1, std::int64_t{1} << 30) * unit;
}

// What checkpoints are named after their model, by their format.
struct Suffix {
  const char* text;
  const char* precision;  // empty: several formats go by that name
};
constexpr Suffix suffixes[] = {{"-nvfp4", "nvfp4"},    {"-fp4", "nvfp4"},  {"-awq", "int4"},
                               {"-gptq-int4", "int4"}, {"-w4a16", "int4"}, {"-gptq", "int4"},
                               {"-fp8-dynamic", ""},   {"-fp8", ""},       {"-w8a8", "int8"},
                               {"-gptq-int8", "int8"}};

class Served {
 public:
  explicit Served(GivenReading& reading) : s_(reading), reading_(reading) {}

  void vllm(const GivenWords& given);
  void sglang(const GivenWords& given);
  void trtllm(const GivenWords& given);

 private:
  void common_rules();
  void vllm_rules();
  void sglang_rules();
  void trtllm_rules();
  void read_model(const Said& said);
  void read_quantization(const Said& said);
  void read_cache(const Said& said);
  void read_guessing(const Said& said);
  void read_balancer(const Said& said);
  SortedJson object_of(const Said& said) const;
  void copies_of_sglang(std::int64_t ranks);
  void finish(const GivenWords& given);
  void engines(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::int64_t ep,
               std::int64_t replicas);
  std::int64_t count(const char* name) const {
    const Said* said = s_.kept(name);
    return said == nullptr ? 1 : whole_of(*said);
  }
  bool is_on(const char* name) const {
    const Said* said = s_.kept(name);
    return said != nullptr && truth_of(*said);
  }
  bool has_experts() const { return experts_.value_or(1) > 0; }

  SectionReader s_;
  GivenReading& reading_;
  std::optional<std::int64_t> experts_;  // of a layer of the model, where it is known
  std::optional<std::int64_t> copies_;   // of experts, where ranks are evened out
};

void Served::read_model(const Said& said) {
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

void Served::read_quantization(const Said& said) {
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

void Served::read_cache(const Said& said) {
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

// vLLM's objects of settings, as JSON.
SortedJson Served::object_of(const Said& said) const {
  SortedJson config = said.value;
  if (config.is_string()) {
    try {
      config = JsonValue::parse(config.text(), said.place()).raw();
    } catch (const Error&) {
      fail(said, "a JSON object");
    }
  }
  if (!config.is_object()) fail(said, "a JSON object");
  return config;
}

void Served::read_balancer(const Said& said) {
  const SortedJson config = object_of(said);
  const auto count = config.find("num_redundant_experts");
  if (count == config.end()) return reading_.without_effect(said, "it names no copies of experts");
  if (!count->is_number_integer() || count->get<std::int64_t>() < 0)
    fail(said, "num_redundant_experts, a whole number");
  if (!is_on("enable_eplb"))
    return reading_.without_effect(said, "ranks of experts are not evened out");
  copies_ = count->get<std::int64_t>();
  reading_.part_of(said, "engines");
}

void Served::read_guessing(const Said& said) {
  const SortedJson config = object_of(said);
  const auto text = [&](const char* key) {
    const auto at = config.find(key);
    return at != config.end() && at->is_string() ? at->text() : std::string();
  };
  const auto count = config.find("num_speculative_tokens");
  if (count == config.end() || !count->is_number_integer())
    fail(said, "num_speculative_tokens, a whole number");
  const std::int64_t tokens = count->get<std::int64_t>();
  const std::string method = text("method");
  if (method == "ngram" || method == "eagle3")
    return reading_.set(said, "spec", fmt::format("{}:{}", method, tokens));
  if (method.ends_with("mtp")) return reading_.set(said, "spec", fmt::format("mtp:{}", tokens));
  const auto entry = model_of_name(text("model"));
  if (method.empty() && entry)
    return reading_.set(said, "spec", fmt::format("draft:{}:{}", *entry, tokens));
  reading_.not_understood(said,
                          "a way of guessing that is not predicted, or a model that the "
                          "catalogue does not have: predicted without");
}

void Served::common_rules() {
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

void Served::vllm_rules() {
  Rules& r = s_.rules;
  s_.keep_all({"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
               "enable_expert_parallel", "enable_eplb", "eplb_config"});
  r["_tp"] = s_.keep("tensor_parallel_size");
  r["_pp"] = s_.keep("pipeline_parallel_size");
  r["_dp"] = s_.keep("data_parallel_size");
  r["max_model_len"] = [this](const Said& said) {
    if (value_text(said.value) == "auto" || value_text(said.value) == "-1")
      return reading_.without_effect(said, "the model says it");
    reading_.set(said, "max_context", tokens_of(said));
  };
  r["max_num_batched_tokens"] = [this](const Said& said) {
    reading_.set(said, "token_budget", tokens_of(said));
  };
  r["max_num_seqs"] = s_.whole("max_sequences");
  r["block_size"] = s_.whole("block_tokens");
  r["gpu_memory_utilization"] = [this](const Said& said) {
    reading_.set(said, "memory_share", number_of(said, 0.01, 1));
  };
  r["long_prefill_token_threshold"] = s_.whole("long_prefill");
  r["enable_prefix_caching"] = [this](const Said& said) {
    reading_.set(said, "prefix_cache", truth_of(said));
  };
  r["no_enable_prefix_caching"] = [this](const Said& said) {
    reading_.set(said, "prefix_cache", !truth_of(said));
  };
  r["enable_chunked_prefill"] = [this](const Said& said) {
    if (truth_of(said))
      reading_.without_effect(said, "prompts are predicted cut");
    else
      reading_.not_understood(said, "prompts that are not cut: predicted cut");
  };
  r["no_enable_chunked_prefill"] = [this](const Said& said) {
    reading_.not_understood(said, "prompts that are not cut: predicted cut");
  };
  r["speculative_config"] = [this](const Said& said) { read_guessing(said); };
  r["kv_offloading_size"] = [this](const Said& said) {
    reading_.not_understood(said,
                            "a cache below the GPU's memory: --tiers says its size and speed");
  };
  r["enforce_eager"] = [this](const Said& said) {
    reading_.set(said, "eager", truth_of(said) ? "all" : "none");
  };
}

void Served::vllm(const GivenWords& given) {
  common_rules();
  vllm_rules();
  reading_.apply(given.said, s_.rules, plain_name);
  finish(given);
  const std::int64_t tp = count("tensor_parallel_size"), pp = count("pipeline_parallel_size"),
                     dp = count("data_parallel_size");
  const bool spread = is_on("enable_expert_parallel") && has_experts();
  if (const Said* said = s_.kept("enable_eplb")) {
    if (truth_of(*said) && spread) copies_ = 0;
    reading_.part_of(*said, "engines");
  }
  if (const Said* said = s_.kept("eplb_config")) read_balancer(*said);
  // Of a model without experts each data-parallel rank is an engine of its own.
  const bool copies = !has_experts();
  engines(tp, pp, copies ? 1 : dp, spread ? tp * dp : 1, copies ? dp : 1);
}

void Served::sglang_rules() {
  Rules& r = s_.rules;
  s_.keep_all({"tp_size", "pp_size", "dp_size", "ep_size", "enable_dp_attention", "moe_a2a_backend",
               "enable_deepep_moe", "enable_ep_moe", "max_running_requests", "chunked_prefill_size",
               "enable_eplb", "init_expert_location", "ep_num_redundant_experts"});
  for (const char* name : {"tp", "tensor_parallel_size"}) r[name] = s_.keep("tp_size");
  for (const char* name : {"dp", "data_parallel_size"}) r[name] = s_.keep("dp_size");
  for (const char* name : {"pp", "pipeline_parallel_size"}) r[name] = s_.keep("pp_size");
  for (const char* name : {"ep", "expert_parallel_size"}) r[name] = s_.keep("ep_size");
  r["context_length"] = s_.whole("max_context");
  r["max_prefill_tokens"] = s_.whole("token_budget");
  r["page_size"] = s_.whole("block_tokens");
  r["mem_fraction_static"] = [this](const Said& said) {
    reading_.set(said, "memory_share", number_of(said, 0.01, 1));
  };
  r["max_queued_requests"] = s_.whole("queue_limit");
  r["disable_radix_cache"] = [this](const Said& said) {
    reading_.set(said, "prefix_cache", !truth_of(said));
  };
  r["enable_mixed_chunk"] = [this](const Said& said) {
    reading_.set(said, "mixed_steps", truth_of(said));
  };
  s_.keep_all({"speculative_algorithm", "speculative_num_steps", "speculative_num_draft_tokens",
               "speculative_eagle_topk", "speculative_draft_model_path", "speculative_algo"});
  r["speculative_algo"] = s_.keep("speculative_algorithm");
  for (const char* name :
       {"enable_dp_lm_head", "moe_dense_tp_size", "cuda_graph_max_bs", "attention_backend",
        "moe_runner_backend", "deepep_mode", "eplb_algorithm", "ep_dispatch_algorithm",
        "eplb_rebalance_num_iterations", "enable_two_batch_overlap", "enable_torch_compile"})
    r[name] = s_.as_the_stack();
  r["fp8_gemm_backend"] = [this](const Said& said) {
    const std::string kind = text_of(said);
    if (kind == "auto" || kind == "deep_gemm")
      return reading_.without_effect(said, "products of FP8 blocks are predicted as DeepGEMM's");
    reading_.not_understood(said, kind == "flashinfer_trtllm"
                                      ? "predicted as DeepGEMM's: a --stack with "
                                        "\"gemm\": \"flashinfer-blocks\" prices these"
                                      : "predicted as DeepGEMM's");
  };
  r["scheduler_recv_interval"] = [this](const Said& said) {
    if (whole_of(said) == 1) return reading_.without_effect(said, "requests are taken every step");
    reading_.not_understood(said,
                            "requests are predicted to be taken every step: a --stack with "
                            "\"receive_interval\" predicts this");
  };
  r["disable_cuda_graph"] = [this](const Said& said) {
    reading_.set(said, "eager", truth_of(said) ? "all" : "none");
  };
  for (const char* name : {"enable_hierarchical_cache", "hicache_size"})
    r[name] = [this](const Said& said) { reading_.not_understood(said, "predicted without it"); };
}

// Counts of earlier steps come from the run itself or from a file; without either the copies are of
// the experts that are numbered first (sglang/srt/eplb/expert_location.py: init_trivial).
void Served::copies_of_sglang(std::int64_t ranks) {
  const Said* counts = s_.kept("init_expert_location");
  const bool counted = counts != nullptr && value_text(counts->value) != "trivial";
  const bool evened = ranks > 1 && (counted || is_on("enable_eplb"));
  const Said* copies = s_.kept("ep_num_redundant_experts");
  if (evened) copies_ = copies == nullptr ? 0 : whole_of(*copies, 0);
  for (const Said* said : {counts, s_.kept("enable_eplb"), copies}) {
    if (said == nullptr) continue;
    if (evened)
      reading_.part_of(*said, "engines");
    else if (said == copies)
      reading_.not_understood(*said, "copies of experts that nobody counted: predicted without");
    else
      reading_.without_effect(*said, "ranks of experts are not evened out");
  }
}

void Served::sglang(const GivenWords& given) {
  common_rules();
  sglang_rules();
  reading_.apply(given.said, s_.rules, plain_name);
  finish(given);
  const std::int64_t ranks = count("tp_size"), pp = count("pp_size"), dp = count("dp_size");
  const bool attention = is_on("enable_dp_attention");
  if (attention && ranks % dp != 0)
    fail(*s_.kept("dp_size"), fmt::format("a divisor of {}, the ranks of --tp-size", ranks));
  std::int64_t ep = count("ep_size");
  const Said* backend = s_.kept("moe_a2a_backend");
  const bool exchanges = (backend != nullptr && value_text(backend->value) == "deepep") ||
                         is_on("enable_deepep_moe") || is_on("enable_ep_moe");
  if (exchanges) ep = ranks;
  for (const char* name : {"moe_a2a_backend", "enable_deepep_moe", "enable_ep_moe"})
    if (const Said* said = s_.kept(name)) reading_.part_of(*said, "engines");
  copies_of_sglang(ep);
  const std::int64_t each = attention ? dp : 1;
  if (const Said* most = s_.kept("max_running_requests"))
    reading_.set(*most, "max_sequences", std::max<std::int64_t>(1, whole_of(*most) / each));
  if (const Said* chunk = s_.kept("chunked_prefill_size")) {
    const std::int64_t rows = whole_of(*chunk, -1);
    if (rows < 1)
      reading_.not_understood(*chunk, "prompts that are not cut: predicted cut");
    else
      reading_.set(*chunk, "chunk", std::max<std::int64_t>(1, rows / each));
  }
  if (const Said* kind = s_.kept("speculative_algorithm")) {
    const std::string name = one_of(*kind, {"nextn", "eagle", "eagle3", "standalone", "ngram"});
    const Said* steps =
        s_.kept(name == "ngram" ? "speculative_num_draft_tokens" : "speculative_num_steps");
    if (name == "eagle" || name == "standalone" || steps == nullptr)
      reading_.not_understood(*kind, "predicted without tokens that are guessed ahead");
    else
      reading_.set(*kind, "spec",
                   fmt::format("{}:{}", name == "nextn" ? "mtp" : name,
                               whole_of(*steps) - (name == "ngram" ? 1 : 0)));
  }
  for (const char* name : {"speculative_num_steps", "speculative_num_draft_tokens",
                           "speculative_eagle_topk", "speculative_draft_model_path"})
    if (const Said* said = s_.kept(name)) reading_.part_of(*said, "spec");
  engines(attention ? ranks / dp : ranks, pp, each, ep, attention ? 1 : dp);
}

void Served::trtllm_rules() {
  Rules& r = s_.rules;
  s_.keep_all({"tp_size", "pp_size", "ep_size", "enable_attention_dp",
               "speculative_config.decoding_type", "speculative_config.num_nextn_predict_layers",
               "speculative_config.max_draft_len", "moe_config.load_balancer.num_slots"});
  r["tensor_parallel_size"] = s_.keep("tp_size");
  r["pipeline_parallel_size"] = s_.keep("pp_size");
  r["moe_expert_parallel_size"] = s_.keep("ep_size");
  r["expert_parallel_size"] = s_.keep("ep_size");
  r["max_batch_size"] = s_.whole("max_sequences");
  r["max_num_tokens"] = s_.whole("token_budget");
  r["max_seq_len"] = s_.whole("max_context");
  for (const char* name : {"kv_cache_free_gpu_memory_fraction", "free_gpu_memory_fraction",
                           "kv_cache_config.free_gpu_memory_fraction"})
    r[name] = [this](const Said& said) {
      reading_.set(said, "memory_share", number_of(said, 0.01, 1));
    };
  r["kv_cache_config.dtype"] = [this](const Said& said) { read_cache(said); };
  r["kv_cache_config.tokens_per_block"] = s_.whole("block_tokens");
  r["kv_cache_config.enable_block_reuse"] = [this](const Said& said) {
    reading_.set(said, "prefix_cache", truth_of(said));
  };
  r["enable_chunked_prefill"] = [this](const Said& said) {
    if (truth_of(said))
      reading_.without_effect(said, "prompts are predicted cut");
    else
      reading_.not_understood(said, "prompts that are not cut: predicted cut");
  };
  r["scheduler_config.capacity_scheduler_policy"] = [this](const Said& said) {
    const std::string policy = one_of(said, {"guaranteed_no_evict", "max_utilization"});
    reading_.set(said, "capacity", policy == "max_utilization" ? "max-utilisation" : "no-evict");
  };
  s_.keep_all({"attention_dp_config.enable_balance", "attention_dp_config.timeout_iters"});
  for (const char* name :
       {"cuda_graph_config.enable_padding", "cuda_graph_config.max_batch_size", "backend",
        "cuda_graph_config.batch_sizes", "print_iter_log", "moe_config.backend",
        "attention_dp_config.batching_wait_iters", "use_cuda_graph", "enable_overlap_scheduler",
        "moe_config.load_balancer.layer_updates_per_iter"})
    r[name] = s_.as_the_stack();
  r["moe_config.load_balancer"] = [this](const Said& said) {
    reading_.not_understood(said, "places of experts in a file: --engines with EPn+COPIES");
  };
  r["cuda_graph_config"] = [this](const Said& said) {
    if (!is_nothing(said)) return reading_.not_understood(said, "graphs as of the stack");
    reading_.set(said, "eager", "all");
  };
  for (const char* name : {"kv_cache_config.host_cache_size", "disable_overlap_scheduler"})
    r[name] = [this](const Said& said) { reading_.not_understood(said, "predicted without it"); };
}

void Served::trtllm(const GivenWords& given) {
  common_rules();
  trtllm_rules();
  reading_.apply(given.said, s_.rules, plain_name);
  finish(given);
  const std::int64_t ranks = count("tp_size"), pp = count("pp_size"), ep = count("ep_size");
  const bool attention = is_on("enable_attention_dp");
  if (const Said* balance = s_.kept("attention_dp_config.timeout_iters")) {
    if (attention && is_on("attention_dp_config.enable_balance"))
      reading_.set(*balance, "balance_steps", whole_of(*balance, 0));
    else
      reading_.without_effect(*balance, "ranks do not wait for each other");
  }
  if (const Said* on = s_.kept("attention_dp_config.enable_balance"))
    reading_.part_of(*on, "balance_steps");
  if (const Said* kind = s_.kept("speculative_config.decoding_type")) {
    const std::string name =
        one_of(*kind, {"mtp", "eagle", "drafttarget", "draft_target", "ngram"});
    const Said* tokens = s_.kept(name == "mtp" ? "speculative_config.num_nextn_predict_layers"
                                               : "speculative_config.max_draft_len");
    if (name.starts_with("draft") || tokens == nullptr) {
      reading_.not_understood(*kind, "predicted without tokens that are guessed ahead");
    } else {
      reading_.set(*kind, "spec",
                   fmt::format("{}:{}", name == "eagle" ? "eagle3" : name, whole_of(*tokens)));
      reading_.part_of(*tokens, "spec");
    }
  }
  if (const Said* slots = s_.kept("moe_config.load_balancer.num_slots")) {
    const std::int64_t places = whole_of(*slots);
    if (ep > 1 && experts_ && places >= *experts_) {
      copies_ = places - *experts_;
      reading_.part_of(*slots, "engines");
    } else {
      reading_.not_understood(*slots, "places of experts of an unknown model: predicted without");
    }
  }
  engines(attention ? 1 : ranks, pp, attention ? ranks : 1, ep, 1);
}

void Served::finish(const GivenWords& given) {
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

void Served::engines(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::int64_t ep,
                     std::int64_t replicas) {
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

}  // namespace

void read_vllm(GivenReading& reading, const GivenWords& given) { Served(reading).vllm(given); }
void read_sglang(GivenReading& reading, const GivenWords& given) { Served(reading).sglang(given); }
void read_trtllm(GivenReading& reading, const GivenWords& given) { Served(reading).trtllm(given); }

}  // namespace orrery
