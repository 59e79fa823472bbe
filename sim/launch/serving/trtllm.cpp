// SPDX-License-Identifier: Apache-2.0
// Knows the flags of TensorRT-LLM's server, and the settings of the file that it reads.
#include <algorithm>

#include <fmt/format.h>

#include "sim/launch/serving/engine_writer.h"

namespace orrery {
namespace {

class Trtllm {
 public:
  Trtllm(const ServedDeployment& d, const ServedEngine& e, EngineDialect dialect)
      : d_(d),
        e_(e),
        release_(engine_release(d.stack)),
        dynamo_(dialect == EngineDialect::dynamo),
        out_(engine_program(d.stack)) {}

  EngineCommand all() {
    layout();
    formats();
    limits();
    caches();
    policy();
    guessing();
    role();
    out_.source("trtllm-serve-arguments");
    out_.source("trtllm-llm-arguments");
    return std::move(out_).finish(d_, e_);
  }

 private:
  // Its server's name of a flag, and that of Dynamo's worker.
  void flag(std::string_view key, const char* own, const char* dynamo, std::int64_t value) {
    out_.flag(key, dynamo_ ? dynamo : own, value);
  }

  void layout();
  void formats();
  void checkpoint_format();
  void limits();
  void graphs();
  void caches();
  void policy();
  void guessing();
  void role();

  const ServedDeployment& d_;
  const ServedEngine& e_;
  std::pair<int, int> release_;
  bool dynamo_;
  EngineWriter out_;
};

void Trtllm::layout() {
  const EngineLayout& l = e_.layout;
  const std::int64_t ranks = l.tp * l.attention_dp;
  flag("tp", "--tp_size", "--tensor-parallel-size", ranks);
  flag("pp", "--pp_size", "--pipeline-parallel-size", l.pp);
  if (l.attention_dp > 1) {
    if (dynamo_) out_.flag("attention_dp", "--enable-attention-dp");
    out_.file("attention_dp", "enable_attention_dp", true);
    if (l.tp > 1)
      out_.missing("attention_dp",
                   fmt::format("{} gives every one of the {} ranks requests of its own: attention "
                               "that {} ranks share cannot be said.",
                               out_.program(), ranks, l.tp));
  }
  out_.covers("etp");  // what ep leaves of the ranks
  if (d_.experts) flag("ep", "--ep_size", "--expert-parallel-size", l.ep);
  out_.covers("ep");
  if (!l.expert_copies) return;
  // As its guide to wide expert parallelism has it (examples/wide_ep/README.md).
  out_.file("expert_copies", "moe_config.backend", "WIDEEP");
  out_.file("expert_copies", "moe_config.load_balancer.num_slots", d_.experts + *l.expert_copies);
  out_.file("expert_copies", "moe_config.load_balancer.layer_updates_per_iter", 1);
}

void Trtllm::formats() {
  if (e_.layout.precision == PrecisionRecipe::bf16)
    out_.file("precision", "dtype", "bfloat16");
  else if (e_.layout.precision == PrecisionRecipe::fp16)
    out_.file("precision", "dtype", "float16");
  else
    checkpoint_format();
  const bool fp4 = e_.layout.cache == Format::fp4;
  if (fp4 && release_ < std::pair(1, 2))
    out_.lacks("cache", "keys and values in fp4");
  else
    out_.file("cache", "kv_cache_config.dtype",
              e_.layout.cache == Format::fp8 ? "fp8" : (fp4 ? "nvfp4" : "auto"));
}

void Trtllm::checkpoint_format() {
  out_.covers("precision");
  out_.advice(fmt::format("The checkpoint brings its format: it must be one in {}.",
                          to_text(e_.layout.precision)));
}

void Trtllm::limits() {
  const EnginePolicy& p = e_.policy;
  flag("max_sequences", "--max_batch_size", "--max-batch-size", p.max_sequences);
  flag("token_budget", "--max_num_tokens", "--max-num-tokens", p.token_budget);
  if (d_.longest != d_.context) flag("max_context", "--max_seq_len", "--max-seq-len", d_.longest);
  // A cache of the file takes the place of the one that flags make, its share too.
  out_.file("memory_share", "kv_cache_config.free_gpu_memory_fraction",
            d_.stack.serving.memory.share);
  out_.file("block_tokens", "kv_cache_config.tokens_per_block", p.block_tokens);
  if (dynamo_) out_.flag("block_tokens", "--kv-block-size", p.block_tokens);
  out_.file("chunked_prefill", "enable_chunked_prefill", p.chunked_prefill);
  graphs();
}

void Trtllm::graphs() {
  const std::int64_t largest = largest_captured(d_, e_);
  if (largest == 0) return out_.file("graphs", "cuda_graph_config", Json());
  out_.file("graphs", "cuda_graph_config.enable_padding", true);
  out_.file("graphs", "cuda_graph_config.max_batch_size",
            std::min(largest, e_.policy.max_sequences));
}

void Trtllm::caches() {
  const EnginePolicy& p = e_.policy;
  out_.file("prefix_cache", "kv_cache_config.enable_block_reuse", p.prefix_cache);
  if (p.tiers.empty()) return;
  out_.file("tiers", "kv_cache_config.host_cache_size",
            static_cast<std::int64_t>(p.tiers.front().capacity.si()));
  if (p.tiers.size() > 1)
    out_.missing("tiers", fmt::format("host_cache_size is of the first tier, {}: {} has none "
                                      "below it.",
                                      p.tiers.front().name, out_.program()));
}

void Trtllm::policy() {
  const EnginePolicy& p = e_.policy;
  out_.file("capacity", "scheduler_config.capacity_scheduler_policy",
            p.capacity == CapacityPolicy::no_evict ? "GUARANTEED_NO_EVICT" : "MAX_UTILIZATION");
  if (p.preemption == Preemption::recompute)
    out_.covers("preemption");
  else
    out_.lacks("preemption", "requests that make room by going to another memory");
  if (p.balance_steps > 0 && e_.layout.attention_dp > 1) {
    out_.file("balance_steps", "attention_dp_config.enable_balance", true);
    out_.file("balance_steps", "attention_dp_config.timeout_iters", p.balance_steps);
    // The prediction does not wait for more prompts once every rank has one.
    out_.file("balance_steps", "attention_dp_config.batching_wait_iters", 0);
  } else {
    out_.covers("balance_steps");
  }
  if (p.batch_wait.steps > 0) {
    out_.file("batch_wait_steps", "batch_wait_timeout_iters", p.batch_wait.steps);
    out_.file("batch_wait_tokens", "batch_wait_max_tokens_ratio", p.batch_wait.tokens);
  } else {
    out_.covers("batch_wait_steps");
    out_.covers("batch_wait_tokens");  // nothing waits
  }
  if (e_.layout.attention_dp > 1) {
    if (p.rank_choice == RankChoice::round_robin)
      out_.implied("rank_choice", "Requests are dealt over the ranks with room, in turn.");
    else
      out_.lacks("rank_choice", "ranks that take requests by how few they have");
  }
  if (p.stream_interval > 1) out_.file("stream_interval", "stream_interval", p.stream_interval);
}

void Trtllm::guessing() {
  if (!d_.guessing) return;
  const GuessedAhead& g = *d_.guessing;
  // Renamed with 1.2; both names stand in public configurations.
  const char* const draft = release_ >= std::pair(1, 2)
                                ? "speculative_config.speculative_model"
                                : "speculative_config.speculative_model_dir";
  if (g.kind == DraftKind::mtp) {
    out_.file("spec", "speculative_config.decoding_type", "MTP");
    out_.file("spec", "speculative_config.num_nextn_predict_layers", g.drafts);
    return;
  }
  const char* const kind = g.kind == DraftKind::eagle3  ? "Eagle"
                           : g.kind == DraftKind::draft ? "DraftTarget"
                                                        : "NGram";
  out_.file("spec", "speculative_config.decoding_type", kind);
  out_.file("spec", "speculative_config.max_draft_len", g.drafts);
  if (g.kind != DraftKind::ngram) out_.file("spec", draft, "$DRAFT_MODEL");
}

void Trtllm::role() {
  if (e_.role == EngineRole::whole) return;
  if (dynamo_) out_.flag("role", "--disaggregation-mode", std::string(to_text(e_.role)));
  out_.file("role", "cache_transceiver_config.backend", "DEFAULT");
  if (e_.role == EngineRole::prefill) out_.file("role", "disable_overlap_scheduler", true);
}

}  // namespace

EngineCommand trtllm_command(const ServedDeployment& d, const ServedEngine& e,
                             EngineDialect dialect) {
  return Trtllm(d, e, dialect).all();
}

}  // namespace orrery
