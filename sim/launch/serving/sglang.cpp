// SPDX-License-Identifier: Apache-2.0
// Knows the flags of SGLang's server.
#include <algorithm>

#include <fmt/format.h>

#include "sim/launch/serving/engine_writer.h"

namespace orrery {
namespace {

// Rows that DeepEP's kernels for decodes take of a rank (token_dispatcher/deepep.py).
constexpr std::int64_t most_dispatched = 1024;

class Sglang {
 public:
  Sglang(const ServedDeployment& d, const ServedEngine& e)
      : d_(d),
        e_(e),
        newer_(engine_release(d.stack) >= std::pair(0, 5)),
        out_(engine_program(d.stack)) {}

  EngineCommand all() {
    layout();
    formats();
    limits();
    caches();
    policy();
    guessing();
    role();
    out_.source(newer_ ? "sglang-arguments-0.5" : "sglang-arguments-0.4");
    return std::move(out_).finish(d_, e_);
  }

 private:
  // --tp-size counts all ranks of a stage: attention's data parallelism is cut out of it.
  std::int64_t ranks() const { return e_.layout.tp * e_.layout.attention_dp; }

  void layout();

  // DeepEP's kernels for decodes, which want to know how many rows a rank sends at most.
  bool exchanges() const {
    const EngineLayout& l = e_.layout;
    return d_.experts && l.ep == ranks() && l.ep > 1 && l.attention_dp > 1 &&
           d_.stack.communication.expert_library == CollectiveLibrary::deepep;
  }
  std::int64_t rows() const { return d_.guessing ? 1 + d_.guessing->drafts : 1; }
  std::int64_t largest_graph() const {
    const std::int64_t wanted = std::min(
        d_.stack.serving.graphs.empty() ? std::int64_t{1} : d_.stack.serving.graphs.back().to,
        e_.policy.max_sequences);
    return exchanges() ? std::max<std::int64_t>(1, std::min(wanted, most_dispatched / rows()))
                       : wanted;
  }

  void formats();
  void limits();
  void caches();
  void policy();

  void rank_choice();
  void guessing();
  void role();

  const ServedDeployment& d_;
  const ServedEngine& e_;
  bool newer_;
  EngineWriter out_;
};

void Sglang::layout() {
  const EngineLayout& l = e_.layout;
  out_.flag("tp", "--tp-size", ranks());
  if (l.pp > 1) out_.flag("pp", "--pp-size", l.pp);
  if (l.attention_dp > 1) {
    out_.flag("attention_dp", "--dp-size", l.attention_dp);
    out_.flag("attention_dp", "--enable-dp-attention");
    out_.flag("attention_dp", "--enable-dp-lm-head");
    if (l.tp == 1 && d_.dense) out_.flag("attention_dp", "--moe-dense-tp-size", 1);
  }
  out_.covers("etp");  // what ep leaves of the ranks
  if (!d_.experts || l.ep == 1) return out_.covers("ep");
  out_.flag("ep", "--ep-size", l.ep);
  if (l.expert_copies) {
    out_.flag("expert_copies", "--enable-eplb");
    out_.flag("expert_copies", "--ep-num-redundant-experts", *l.expert_copies);
  }
  if (!exchanges()) return;
  out_.flag("ep", "--moe-a2a-backend", "deepep");
  if (e_.role == EngineRole::prefill) return;
  out_.environment("ep", "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK",
                   std::to_string(largest_graph() * rows()));
  out_.advice(
      "DeepEP's decodes fail above SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK rows on a rank, "
      "and their buffers grow with it: set it, --cuda-graph-max-bs and --max-running-requests to "
      "what you serve.");
}

void Sglang::formats() {
  switch (e_.layout.precision) {
    case PrecisionRecipe::bf16:
      out_.flag("precision", "--dtype", "bfloat16");
      break;
    case PrecisionRecipe::fp16:
      out_.flag("precision", "--dtype", "float16");
      break;
    case PrecisionRecipe::fp8_current:
      out_.flag("precision", "--quantization", "fp8");
      out_.advice(
          "--quantization fp8 makes FP8 of a checkpoint in 16 bits as it is loaded: "
          "leave it out for a checkpoint that is FP8 already.");
      break;
    default:
      out_.covers("precision");
      out_.advice(fmt::format("The checkpoint brings its format: it must be one in {}.",
                              to_text(e_.layout.precision)));
  }
  if (e_.layout.cache == Format::fp8)
    out_.flag("cache", "--kv-cache-dtype", "fp8_e4m3");
  else if (e_.layout.cache != Format::bf16)
    out_.lacks("cache", fmt::format("keys and values in {} (its fp4_e2m1 is MXFP4)",
                                    to_text(e_.layout.cache)));
  else
    out_.flag("cache", "--kv-cache-dtype", newer_ ? "bf16" : "auto");
}

void Sglang::limits() {
  const EnginePolicy& p = e_.policy;
  const std::int64_t dp = e_.layout.attention_dp;  // by which it divides these two
  out_.flag("token_budget", "--max-prefill-tokens", p.token_budget);
  out_.flag("chunk", "--chunked-prefill-size",
            p.chunked_prefill ? (p.chunk > 0 ? p.chunk : p.token_budget) * dp : -1);
  out_.covers("chunked_prefill");
  out_.flag("max_sequences", "--max-running-requests", p.max_sequences * dp);
  out_.flag("block_tokens", "--page-size", p.block_tokens);
  out_.flag("memory_share", "--mem-fraction-static",
            fmt::format("{}", d_.stack.serving.memory.share));
  if (d_.longest != d_.context) out_.flag("max_context", "--context-length", d_.longest);
  if (largest_captured(d_, e_) == 0)
    out_.flag("graphs", "--disable-cuda-graph");
  else
    out_.flag("graphs", "--cuda-graph-max-bs", largest_graph());
  if (p.queue_limit == 0) return;
  if (e_.role == EngineRole::whole)
    out_.flag("queue_limit", "--max-queued-requests", p.queue_limit);
  else
    out_.missing("queue_limit",
                 out_.program() + " bounds no queue where prompts and decodes are apart.");
}

void Sglang::caches() {
  const EnginePolicy& p = e_.policy;
  if (p.prefix_cache)
    out_.implied("prefix_cache",
                 "Prompts that begin alike are computed once unless a flag says "
                 "otherwise.");
  else
    out_.flag("prefix_cache", "--disable-radix-cache");
  if (p.tiers.empty()) return;
  out_.flag("tiers", "--enable-hierarchical-cache");
  out_.flag("tiers", "--hicache-size", fmt::format("{:.0f}", p.tiers.front().capacity.si() / 1e9));
  if (p.tiers.size() > 1)
    out_.missing("tiers", fmt::format("--hicache-size is of the first tier, {}: storage below it "
                                      "is set up for each kind of storage.",
                                      p.tiers.front().name));
}

void Sglang::policy() {
  const EnginePolicy& p = e_.policy;
  if (p.mixed_steps) out_.flag("mixed_steps", "--enable-mixed-chunk");
  if (p.preemption == Preemption::recompute)
    out_.covers("preemption");
  else
    out_.lacks("preemption", "requests that make room by going to another memory");
  if (e_.layout.attention_dp > 1) rank_choice();
  if (p.stream_interval > 1) out_.flag("stream_interval", "--stream-interval", p.stream_interval);
  // It refuses to with data parallelism of attention.
  if (p.receive_interval > 1 && newer_ && e_.layout.attention_dp == 1)
    out_.flag("receive_interval", "--scheduler-recv-interval", p.receive_interval);
  if (p.priorities.empty() || !newer_) return;
  out_.flag("priorities", "--enable-priority-scheduling");
  out_.flag("priorities", "--schedule-low-priority-values-first");
  out_.advice("Each request says its own priority.");
}

// Engines of decodes find out where a prompt was computed by turns.
void Sglang::rank_choice() {
  const bool turns = e_.policy.rank_choice == RankChoice::round_robin;
  const bool apart = e_.role != EngineRole::whole;
  out_.flag("rank_choice", "--load-balance-method",
            turns || apart ? "round_robin" : "shortest_queue");
  if (e_.role == EngineRole::decode && newer_)
    out_.flag("rank_choice", "--prefill-round-robin-balance");
  if (apart && !turns)
    out_.missing("rank_choice",
                 out_.program() +
                     " gives requests to ranks in turn where prompts and decodes are "
                     "apart.");
}

void Sglang::guessing() {
  if (!d_.guessing) return;
  const GuessedAhead& g = *d_.guessing;
  const bool known = newer_ || g.kind == DraftKind::mtp || g.kind == DraftKind::eagle3;
  if (!known)
    return out_.lacks("spec",
                      fmt::format("{} tokens guessed ahead ({})", g.drafts, to_text(g.kind)));
  const char* const name = g.kind == DraftKind::mtp      ? "NEXTN"
                           : g.kind == DraftKind::eagle3 ? "EAGLE3"
                           : g.kind == DraftKind::draft  ? "STANDALONE"
                                                         : "NGRAM";
  out_.flag("spec", "--speculative-algorithm", name);
  if (g.kind == DraftKind::ngram)
    return out_.flag("spec", "--speculative-num-draft-tokens", g.drafts + 1);
  if (g.kind != DraftKind::mtp) out_.flag("spec", "--speculative-draft-model-path", "$DRAFT_MODEL");
  out_.flag("spec", "--speculative-num-steps", g.drafts);
  out_.flag("spec", "--speculative-eagle-topk", 1);
  out_.flag("spec", "--speculative-num-draft-tokens", g.drafts + 1);
}

void Sglang::role() {
  if (e_.role == EngineRole::whole) return;
  out_.flag("role", "--disaggregation-mode", std::string(to_text(e_.role)));
  out_.flag("role", "--disaggregation-transfer-backend", "nixl");
  const EngineLayout& other = d_.engines[e_.role == EngineRole::prefill ? 1 : 0].layout;
  if (e_.role == EngineRole::prefill) {
    out_.flag("role", "--disaggregation-bootstrap-port", "8998");
    out_.flag("role", "--disaggregation-decode-tp", other.tp * other.attention_dp);
    out_.flag("role", "--disaggregation-decode-dp", other.attention_dp);
  } else if (other.pp > 1) {
    out_.flag("role", "--disaggregation-prefill-pp", other.pp);
  }
}

}  // namespace

EngineCommand sglang_command(const ServedDeployment& d, const ServedEngine& e) {
  return Sglang(d, e).all();
}

}  // namespace orrery
