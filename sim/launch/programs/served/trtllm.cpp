// SPDX-License-Identifier: Apache-2.0
// Reads command lines and files of TensorRT-LLM's server.
#include <fmt/format.h>

#include "sim/launch/programs/served/served_reader.h"

namespace orrery {

void ServedReader::trtllm_rules() {
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
    r[name] = memory_share();
  r["kv_cache_config.dtype"] = [this](const Said& said) { read_cache(said); };
  r["kv_cache_config.tokens_per_block"] = s_.whole("block_tokens");
  r["kv_cache_config.enable_block_reuse"] = [this](const Said& said) {
    reading_.set(said, "prefix_cache", truth_of(said));
  };
  r["enable_chunked_prefill"] = cut_prompts();
  r["batch_wait_timeout_iters"] = s_.whole("batch_wait_steps");
  r["batch_wait_max_tokens_ratio"] = [this](const Said& said) {
    reading_.set(said, "batch_wait_tokens", number_of(said, 0, 1));
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
    r[name] = predicted_without();
}

void ServedReader::trtllm(const GivenWords& given) {
  common_rules();
  trtllm_rules();
  reading_.apply(given.said, s_.rules, flag_key);
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

void read_trtllm(GivenReading& reading, const GivenWords& given) {
  ServedReader(reading).trtllm(given);
}

}  // namespace orrery
