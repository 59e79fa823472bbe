// SPDX-License-Identifier: Apache-2.0
// Reads command lines of SGLang's server.
#include <algorithm>

#include <fmt/format.h>

#include "sim/launch/programs/served/served_reader.h"

namespace orrery {

void ServedReader::sglang_rules() {
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
  r["mem_fraction_static"] = memory_share();
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
  r["disable_cuda_graph"] = eager();
  for (const char* name : {"enable_hierarchical_cache", "hicache_size"})
    r[name] = predicted_without();
}

// Counts of earlier steps come from the run itself or from a file; without either the copies are of
// the experts that are numbered first (sglang/srt/eplb/expert_location.py: init_trivial).
void ServedReader::copies_of_sglang(std::int64_t ranks) {
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

void ServedReader::sglang(const GivenWords& given) {
  common_rules();
  sglang_rules();
  reading_.apply(given.said, s_.rules, flag_key);
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

void read_sglang(GivenReading& reading, const GivenWords& given) {
  ServedReader(reading).sglang(given);
}

}  // namespace orrery
