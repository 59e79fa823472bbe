// SPDX-License-Identifier: Apache-2.0
// Knows the flags of vLLM's server.
#include <fmt/format.h>

#include "sim/launch/serving/engine_writer.h"

namespace orrery {
namespace {

// First releases with a flag. Read: 0.8.5's documentation, arg_utils.py between 0.11 and 0.12, the
// guide to several hosts of 0.12; those of the first engine's time are recalled.
using Since = std::pair<int, int>;
constexpr Since cache_formats = {0, 3}, prefix_switch = {0, 7}, second_engine = {0, 8},
                nixl = {0, 10}, stream_interval = {0, 11}, balancer = {0, 11}, offloading = {0, 12};

class Vllm {
 public:
  Vllm(const ServedDeployment& d, const ServedEngine& e, EngineDialect dialect)
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
    out_.source(release_ >= Since{0, 9} ? "vllm-arguments" : "vllm-arguments-0.8");
    return std::move(out_).finish(d_, e_);
  }

 private:
  bool has(Since since) const { return release_ >= since; }

  void layout();
  void experts(std::int64_t ranks);
  void formats();
  void limits();
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

void Vllm::layout() {
  const EngineLayout& l = e_.layout;
  out_.flag("tp", "--tensor-parallel-size", l.tp);
  if (l.pp > 1) out_.flag("pp", "--pipeline-parallel-size", l.pp);
  if (l.attention_dp > 1) {
    if (has(second_engine))
      out_.flag("attention_dp", "--data-parallel-size", l.attention_dp);
    else
      out_.lacks("attention_dp", "ranks of attention with requests of their own");
  }
  if (!d_.experts) {
    out_.covers("ep");
    out_.covers("etp");
    return;
  }
  experts(l.tp * l.attention_dp);
}

void Vllm::experts(std::int64_t ranks) {
  const EngineLayout& l = e_.layout;
  if (l.ep == 1) {
    out_.implied("etp", "Without --enable-expert-parallel all ranks share every expert's width.");
  } else if (l.ep == ranks && has(second_engine)) {
    out_.flag("ep", "--enable-expert-parallel");
    out_.covers("etp");
    if (l.expert_copies && has(balancer)) {
      out_.flag("expert_copies", "--enable-eplb");
      out_.flag("expert_copies", "--eplb-config",
                Json{{"num_redundant_experts", *l.expert_copies}}.dump());
    }
  } else {
    out_.missing("ep", fmt::format("{} spreads experts over all {} ranks or over none: ep {} "
                                   "with etp {} cannot be said.",
                                   out_.program(), ranks, l.ep, l.etp));
    out_.covers("etp");
  }
}

void Vllm::formats() {
  switch (e_.layout.precision) {
    case PrecisionRecipe::bf16:
      out_.flag("precision", "--dtype", "bfloat16");
      break;
    case PrecisionRecipe::fp16:
      out_.flag("precision", "--dtype", "float16");
      break;
    case PrecisionRecipe::fp8_current:
      if (has(second_engine)) {
        out_.flag("precision", "--quantization", "fp8");
        out_.advice(
            "--quantization fp8 makes FP8 of a checkpoint in 16 bits as it is loaded: "
            "leave it out for a checkpoint that is FP8 already.");
        break;
      }
      [[fallthrough]];
    default:
      out_.covers("precision");
      out_.advice(fmt::format("The checkpoint brings its format: it must be one in {}.",
                              to_text(e_.layout.precision)));
  }
  if (e_.layout.cache == Format::fp8 && has(cache_formats))
    out_.flag("cache", "--kv-cache-dtype", "fp8");
  else if (e_.layout.cache != Format::bf16)
    out_.lacks("cache", fmt::format("keys and values in {}", to_text(e_.layout.cache)));
  else if (has(cache_formats))
    out_.flag("cache", "--kv-cache-dtype", "auto");
}

void Vllm::limits() {
  const EnginePolicy& p = e_.policy;
  out_.flag("token_budget", "--max-num-batched-tokens", p.token_budget);
  out_.flag("max_sequences", "--max-num-seqs", p.max_sequences);
  out_.flag("block_tokens", "--block-size", p.block_tokens);
  out_.flag("memory_share", "--gpu-memory-utilization",
            fmt::format("{}", d_.stack.serving.memory.share));
  if (d_.longest != d_.context) out_.flag("max_context", "--max-model-len", d_.longest);
  if (!has(second_engine)) return;
  if (p.chunked_prefill)
    out_.implied("chunked_prefill", "Prompts are cut unless a flag says otherwise.");
  else
    out_.flag("chunked_prefill", "--no-enable-chunked-prefill");
  if (p.long_prefill > 0)
    out_.flag("long_prefill", "--long-prefill-token-threshold", p.long_prefill);
}

void Vllm::caches() {
  const EnginePolicy& p = e_.policy;
  if (has(prefix_switch))
    out_.flag("prefix_cache",
              p.prefix_cache ? "--enable-prefix-caching" : "--no-enable-prefix-caching");
  else if (!p.prefix_cache)
    out_.implied("prefix_cache",
                 "Prompts that begin alike are computed each: there is no cache "
                 "of them unless a flag asks for it.");
  if (p.tiers.empty()) return;
  if (p.tiers.size() == 1 && has(offloading)) {
    // The flag is the size over all tensor-parallel ranks (validation/serving_facts.json).
    const double share = p.tiers.front().capacity.si() * static_cast<double>(e_.layout.tp);
    out_.flag("tiers", "--kv-offloading-size", fmt::format("{:.0f}", share / 1073741824.0));
  } else {
    out_.lacks("tiers", p.tiers.size() == 1 ? "a cache below the GPU's memory"
                                            : "several caches below the GPU's memory");
  }
}

void Vllm::policy() {
  const EnginePolicy& p = e_.policy;
  if (p.preemption == Preemption::recompute)
    out_.covers("preemption");
  else
    out_.lacks("preemption", "requests that make room by going to another memory");
  if (e_.layout.attention_dp > 1) {
    if (p.rank_choice == RankChoice::least_requests)
      out_.implied("rank_choice", "Its server gives a request to the rank with the fewest.");
    else
      out_.missing("rank_choice",
                   fmt::format("{} gives a request to the rank with the fewest, not in turn.",
                               out_.program()));
  }
  if (p.stream_interval > 1 && has(stream_interval))
    out_.flag("stream_interval", "--stream-interval", p.stream_interval);
  if (!p.priorities.empty()) {
    out_.flag("priorities", "--scheduling-policy", "priority");
    out_.advice("Each request says its own priority.");
  }
  if (e_.eager)
    out_.flag("graphs", "--enforce-eager");
  else
    out_.implied("graphs", "Sizes of captured graphs are those of the release.");
}

void Vllm::guessing() {
  if (!d_.guessing) return;
  const GuessedAhead& g = *d_.guessing;
  if (!has(second_engine))
    return out_.lacks("spec",
                      fmt::format("{} tokens guessed ahead ({})", g.drafts, to_text(g.kind)));
  Json config = Json::object();
  switch (g.kind) {
    case DraftKind::mtp:
      config["method"] = "mtp";
      break;
    case DraftKind::eagle3:
      config["method"] = "eagle3";
      config["model"] = "$DRAFT_MODEL";
      break;
    case DraftKind::draft:
      config["model"] = "$DRAFT_MODEL";
      break;
    case DraftKind::ngram:
      config["method"] = "ngram";
      break;
  }
  config["num_speculative_tokens"] = g.drafts;
  out_.flag("spec", "--speculative-config", config.dump());
}

void Vllm::role() {
  if (e_.role == EngineRole::whole) return;
  if (!has(nixl)) return out_.lacks("role", "engines of prompts or decodes alone");
  out_.flag("role", "--kv-transfer-config",
            R"({"kv_connector":"NixlConnector","kv_role":"kv_both"})");
  if (dynamo_) return out_.flag("role", "--disaggregation-mode", std::string(to_text(e_.role)));
  out_.implied("role",
               "Requests make an engine one of prompts or of decodes: whoever hands them "
               "out asks one for keys and values and the other for tokens.");
}

}  // namespace

EngineCommand vllm_command(const ServedDeployment& d, const ServedEngine& e,
                           EngineDialect dialect) {
  return Vllm(d, e, dialect).all();
}

}  // namespace orrery
