// SPDX-License-Identifier: Apache-2.0
// Knows the flags of Megatron-LM for sizes, stages, batch, overlap and placement, and what NeMo and
// Megatron-Bridge call the same settings.
#include "sim/launch/megatron_flags.h"

#include <algorithm>

namespace orrery {

using namespace megatron_names;
using Dialect = MegatronDialect;

void MegatronFlags::sizes() {
  say("tp", tensor, l_.tp, "tensor parallelism");
  if (l_.tp > 1 || recipes()) {
    if (l_.sequence_parallel && l_.tp > 1)
      say("sequence_parallel", sequence_parallel, true, "sequence parallelism");
    else if (recipes())
      say("sequence_parallel", sequence_parallel, false, "sequence parallelism");
  }
  if (l_.tp > 1 && !l_.sequence_parallel && !recipes())
    out_.implied("sequence_parallel", "Sequence parallelism is off where its flag is left out.");
  out_.covers("sequence_parallel");
  say("pp", pipeline, l_.pp, "pipeline parallelism");
  out_.covers("dp");  // the ranks that are left
  if (l_.cp > 1 || recipes()) say("cp", context, l_.cp, "context parallelism");
  if (l_.cp > 1) {
    constexpr const char* kinds[] = {"p2p", "allgather", "a2a", "a2a+p2p"};
    const bool known = has(context_kind);
    if (known || l_.context != ContextKind::ring)
      say("context_parallel", context_kind, kinds[static_cast<std::size_t>(l_.context)],
          fmt::format("{} in context parallelism", to_text(l_.context)));
    if (l_.context == ContextKind::hierarchical)
      say("context_inner", context_levels,
          std::vector<std::int64_t>{l_.context_heads(), l_.context_rings()},
          "levels of context parallelism");
  }
  // Without several context ranks these decide nothing.
  out_.covers("context_parallel");
  out_.covers("context_inner");
}

void MegatronFlags::experts_of_ranks() {
  if (!model_.has_experts()) {
    out_.covers("ep");
    out_.covers("etp");
    return;
  }
  if (!has(experts)) out_.missing("", fmt::format("{} has no expert layers.", out_.program()));
  if (has(experts) || l_.ep > 1) say("ep", experts, l_.ep, "expert parallelism");
  if (l_.etp != l_.tp || has(expert_tensor))
    say("etp", expert_tensor, l_.etp, "another tensor parallelism of experts");
  else if (l_.etp > 1)
    out_.implied("etp", "Experts are split over tensor ranks as all else is.");
  out_.covers("etp");
  if (has(experts) && l_.tp > 1 && !l_.sequence_parallel)
    out_.missing("sequence_parallel",
                 "Megatron-Core's expert layers refuse to train with tensor parallelism and no "
                 "sequence parallelism: turn it on.");
  const bool half = l_.precision == PrecisionRecipe::fp16;
  if (half && l_.ep > 1)
    out_.missing("ep", "Megatron-LM refuses expert parallelism in FP16: train in BF16.");
  if (!half) say_if_known(grouped_gemm, true);
  dispatch();
}

// Of both flex dispatchers a token crosses once for each rank that it goes to.
void MegatronFlags::dispatch() {
  const bool deep = stack_.communication.expert_library == CollectiveLibrary::deepep;
  // HybridEP moves tokens over the fabric's own links: NVIDIA's recipes name it nowhere else.
  const bool hybrid =
      dialect_ == Dialect::bridge && !deep && stack_.communication.expert_deduplicated;
  const bool admitted = device_.deepep;
  if (hybrid || (deep && !admitted && has(flex_backend))) {
    say_if_known(dispatcher, "flex");
    say_if_known(flex_backend, "hybridep");
    if (deep)
      out_.implied("", fmt::format("HybridEP, not DeepEP: Megatron-Bridge refuses DeepEP on {}.",
                                   device_.name));
    return;
  }
  say_if_known(dispatcher, deep && admitted ? "flex" : "alltoall");
  if (!deep) return;
  if (!admitted)
    return out_.missing(
        "", fmt::format("The prediction sends a token once to each rank, as DeepEP does, which "
                        "Megatron-Bridge refuses on {}: there HybridEP does it "
                        "(moe_flex_dispatcher_backend hybridep), for which {} has no flag.",
                        device_.name, out_.program()));
  if (has(flex_backend))
    say("", flex_backend, "deepep", "DeepEP");
  else
    say("", deepep, true, "DeepEP");
}

void MegatronFlags::adapters() {
  if (job_.task != Task::lora) return;
  if (!has(lora_rank))
    return out_.missing(
        "", fmt::format("{} has no flag for LoRA: Megatron-Bridge trains adapters of rank {} with "
                        "peft.dim={} over a model's LoRA recipe.",
                        out_.program(), job_.lora_rank, job_.lora_rank));
  if (dialect_ == Dialect::nemo1) out_.set("", "model.peft.peft_scheme", "lora");
  say_if_known(lora_rank, job_.lora_rank);
  const bool every = stack_.kernels.adapter_sites == AdapterSites::every_linear;
  if (dialect_ == Dialect::nemo1)
    out_.set("", "model.peft.lora_tuning.target_modules",
             every ? "[attention_qkv,attention_dense,mlp_fc1,mlp_fc2]" : "[attention_qkv]");
  out_.implied("", fmt::format("The recipe is the model's for LoRA, with adapters on {}.",
                               every ? "every linear layer (target_modules linear_qkv, "
                                       "linear_proj, linear_fc1 and linear_fc2)"
                                     : "what makes queries, keys and values (target_modules "
                                       "linear_qkv), as in recipes for speed"));
}

void MegatronFlags::pipeline_schedule() {
  if (l_.schedule == Schedule::one_f_one_b || l_.schedule == Schedule::interleaved)
    out_.covers("schedule");
  else
    lacks("schedule", fmt::format("the {} schedule", to_text(l_.schedule)));
}

void MegatronFlags::chunk_count() {
  if (l_.vpp <= 1) return;
  const std::int64_t positions = l_.pp * l_.vpp;
  if (!has(chunks) && dialect_ == Dialect::megatron && model_.layer_count() % positions == 0)
    say("vpp", layers_a_chunk, model_.layer_count() / positions, "chunks of a stage");
  else
    say("vpp", chunks, l_.vpp, "chunks of a stage");
}

// Positions, runs of equal ones written once: "Et|(t*2|)*6tL".
static std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t run = i + 1;
    while (run + 1 < parts.size() && parts[run] == parts[i]) ++run;
    const std::size_t count = run - i;
    if (count >= 3)
      text += fmt::format("({}|)*{}", parts[i], count);
    else
      for (std::size_t k = i; k < run; ++k) text += parts[k] + (k + 1 < parts.size() ? "|" : "");
    i = run;
  }
  return text;
}

// E is the embedding, t a layer, m an MTP module, L head and loss; | ends a position.
void MegatronFlags::explicit_stages(const std::vector<Position>& positions) {
  std::vector<std::string> parts;
  for (const Position& p : positions) {
    std::string part = p.embedding ? "E" : "";
    if (p.layers > 0) part += p.layers > 1 ? fmt::format("t*{}", p.layers) : "t";
    if (p.head) {
      if (job_.mtp && model_.mtp_layers > 0)
        part += model_.mtp_layers > 1 ? fmt::format("m*{}", model_.mtp_layers) : "m";
      part += "L";
    }
    parts.push_back(part);
  }
  say("stage_layers", stage_layout, joined(parts),
      fmt::format("uneven stages ({} positions)", positions.size()));
  // Megatron-LM takes the number of chunks from the layout and refuses to be told it twice.
  if (dialect_ == Dialect::megatron && has(stage_layout) && l_.vpp > 1)
    out_.implied("vpp", "The pipeline's layout says how many chunks a stage has.");
  else
    chunk_count();
}

void MegatronFlags::stages() {
  out_.covers("stage_layers");
  if (job_.mtp && model_.mtp_layers > 0)
    say("", mtp_layers, model_.mtp_layers, "multi-token prediction");
  if (l_.pp == 1 && l_.vpp == 1) return;
  const std::vector<Position> positions = partition_layers(model_, l_, stack_.sharding.partition);
  const auto alike = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from + 1; i < to; ++i)
      if (positions[i].layers != positions[from].layers) return false;
    return true;
  };
  if (alike(0, positions.size())) return chunk_count();
  const auto blocks = static_cast<std::size_t>(model_.layer_count() + 2);
  if (l_.stage_layers.empty() && stack_.sharding.partition == Partition::head_as_layer &&
      has(count_embedding) && blocks % positions.size() == 0) {
    chunk_count();
    say("stage_layers", count_embedding, true, "an embedding that counts as a layer");
    say("stage_layers", count_loss, true, "a head that counts as a layer");
    return;
  }
  if (l_.vpp == 1 && has(first_stage) && (positions.size() < 3 || alike(1, positions.size() - 1))) {
    say("stage_layers", first_stage, positions.front().layers, "a first stage of its own size");
    say("stage_layers", last_stage, positions.back().layers, "a last stage of its own size");
    return;
  }
  explicit_stages(positions);
}

// The model's layers, a letter each, as Megatron-LM's hybrid models spell them. Empty: it has some
// for which there is no letter.
std::string MegatronFlags::layer_pattern() const {
  std::string text;
  for (const auto index : model_.layers) {
    const LayerClass& layer = model_.classes[static_cast<std::size_t>(index)];
    if (layer.mixer.kind == MixerKind::mla) return "";
    if (layer.mixer.kind == MixerKind::mamba2) text += 'M';
    if (layer.mixer.kind == MixerKind::attention) text += '*';
    if (layer.ffn.kind == FfnKind::dense) text += '-';
    if (layer.ffn.kind == FfnKind::moe) text += 'E';
  }
  return text;
}

// Models with state-space layers are built by MambaStack, which gives every stage as many layers
// and refuses several chunks. Recipes name the pattern themselves.
void MegatronFlags::hybrid_stages() {
  out_.covers("stage_layers");
  if (l_.vpp > 1) lacks("vpp", "several chunks of a stage in models with Mamba layers");
  const std::vector<Position> positions = partition_layers(model_, l_, stack_.sharding.partition);
  const auto uneven = [&](const Position& p) { return p.layers != positions.front().layers; };
  if (std::any_of(positions.begin(), positions.end(), uneven))
    lacks("stage_layers", "stages of different sizes in models with Mamba layers");
  if (job_.mtp && model_.mtp_layers > 0)
    say("", mtp_layers, model_.mtp_layers, "multi-token prediction");
  if (dialect_ == Dialect::nemo1) return lacks("", "models with Mamba layers");
  if (dialect_ != Dialect::megatron) return;
  const std::string pattern = layer_pattern();
  const auto release = release_number(stack_.flags_release);
  if (release < std::pair(0, 8) || pattern.empty()) return lacks("", "this pattern of layers");
  if (model_.has_experts() && release < std::pair(0, 16))
    lacks("", "expert layers in models with Mamba layers, which later releases have");
  out_.set(
      "", "--spec",
      std::vector<std::string>{"megatron.core.models.mamba.mamba_layer_specs", "mamba_stack_spec"});
  out_.set("", "--is-hybrid-model", true);
  out_.set("", "--hybrid-override-pattern", pattern);
}

void MegatronFlags::batch() {
  say("micro_batch", micro_batch, l_.micro_batch, "microbatches");
  say("", global_batch, job_.global_batch, "the global batch");
  say("", sequence, job_.sequence, "the sequence length");
  // Megatron-LM drops a tenth unless told otherwise; recipes know their models.
  if (dialect_ == Dialect::megatron || job_.attention_dropout > 0)
    say("", attention_dropout, job_.attention_dropout, "dropout in attention");
  if (dialect_ == Dialect::megatron || job_.hidden_dropout > 0)
    say("", hidden_dropout, job_.hidden_dropout, "dropout after attention");
  if (dialect_ == Dialect::bridge)
    out_.set("", job_.task == Task::pretrain ? "dataset.sequence_length" : "dataset.seq_length",
             job_.sequence);
  if (dialect_ == Dialect::nemo2) out_.set("", "recipe.model.config.seq_length", job_.sequence);
}

void MegatronFlags::overlap() {
  if (l_.dense_replicas() > 1 || recipes()) {
    const bool gradients = overlaps_gradients(stack_, l_);
    say_if_known(overlap_gradients, gradients);
    if (l_.zero_stage >= 1 && !deals_itself())
      say_if_known(overlap_parameters, overlaps_parameters(stack_, l_) && gradients);
  }
  const bool hides_tensor =
      l_.tp > 1 && stack_.communication.tensor_exposed.get() < 1 && l_.sequence_parallel;
  if (hides_tensor && dialect_ == Dialect::nemo2)
    out_.missing("",
                 "Tensor-parallel overlap is a callback: add MegatronCommOverlapCallback("
                 "tp_comm_overlap=True) to recipe.trainer.callbacks.");
  else if (hides_tensor || dialect_ == Dialect::bridge)
    say_if_known(overlap_tensor, hides_tensor);
  if (exchange_beside_passes(stack_, l_) && l_.ep > 1) {
    say_if_known(overlap_experts, true);
    say_if_known(delay_weights, true);
  }
  // One hardware queue keeps a collective that is launched first ahead of the product beside it.
  // What runs several streams side by side wants more of them.
  const bool one_queue = (l_.tp > 1 || l_.cp > 1) && l_.zero_stage < 2;
  if (one_queue && !exchange_beside_passes(stack_, l_) && device_.one_queue)
    out_.environment("CUDA_DEVICE_MAX_CONNECTIONS=1", "before Blackwell");
}

// What of the layout no release captures in the graphs that the prediction has; empty: nothing.
std::string MegatronFlags::refuses_graphs() const {
  if (l_.offload_activations) return "activations in host memory";
  if (l_.recompute == Recompute::full) return "full recompute";
  // To 0.15 graphs of a whole step refuse every recompute.
  const bool whole = stack_.host.launch == LaunchMode::full_graph;
  if (whole && l_.recompute != Recompute::none && dialect_ == Dialect::megatron)
    return "selective recompute";
  return "";
}

void MegatronFlags::graphs() {
  const LaunchMode mode = launch_mode(stack_, l_);
  const std::string why = mode == LaunchMode::eager ? "" : refuses_graphs();
  if (mode == LaunchMode::eager || !why.empty()) {
    if (dialect_ == Dialect::bridge) say_if_known(graph_kind, "none");
    if (!why.empty())
      out_.missing(
          "", fmt::format("CUDA graphs, which this prediction has, are refused with {}.", why));
    return;
  }
  const bool whole = mode == LaunchMode::full_graph;
  // Attention in a graph refuses these two; recipes with them capture the router alone.
  const bool attention =
      !l_.recomputes(RecomputeModule::core_attn) && !l_.recomputes(RecomputeModule::mla_up_proj);
  const bool router = dialect_ == Dialect::bridge && model_.has_experts();
  // 0.14 is the first whose graphs may hold a whole step.
  const bool old_names = has(whole ? graph_by_modules : graph_by_loop) &&
                         (!whole || release_number(stack_.flags_release) >= std::pair(0, 14));
  if (!has(graph_kind) && !old_names) return lacks("", "CUDA graphs, which this prediction has");
  if (has(graph_kind))
    say_if_known(graph_kind, whole ? "local" : "transformer_engine");
  else
    say_if_known(whole ? graph_by_modules : graph_by_loop, true);
  if (whole)
    say_if_known(graph_scope, "full_iteration");
  else if (router && !attention)
    say_if_known(graph_scope, std::vector<std::string>{"moe_router", "moe_preprocess"});
  else if (router)
    say_if_known(graph_scope, std::vector<std::string>{"attn", "moe_router"});
  else
    say_if_known(graph_scope, "attn");
  say_if_known(graph_random, true);
  // Reading the loss back would break the graph.
  if (whole && dialect_ == Dialect::megatron)
    out_.set("", "--no-check-for-nan-in-loss-and-grad", true);
}

void MegatronFlags::placement() {
  if (!l_.rank_order.is_default()) {
    const std::string order = to_text(l_.rank_order);
    // Pipelines inside, replicas outside; context ranks stay next to tensor ranks.
    if (order == "tp-cp-pp-dp" || (l_.cp == 1 && order == "tp-pp-cp-dp"))
      say("rank_order", pipelines_inside, true, "the rank order " + order);
    else
      lacks("rank_order", fmt::format("the rank order {}", order));
  }
  if (l_.per_domain > 0)
    out_.missing("per_domain",
                 fmt::format("The scheduler places ranks, not {}: start {} ranks in each scale-up "
                             "domain.",
                             out_.program(), l_.per_domain));
}

void MegatronFlags::sources() {
  out_.source("megatron-lm-arguments");
  if (dialect_ == Dialect::bridge) out_.source("megatron-bridge-arguments");
  if (model_.has_experts()) out_.source("megatron-bridge-dispatchers");
  if (dialect_ == Dialect::nemo2) out_.source("nemo-performance-scripts");
  if (dialect_ == Dialect::nemo1) out_.source("nemo-megatron-gpt-config");
}

LaunchFlags megatron_flags(const Layout& layout, const Model& model, const Job& job,
                           const Stack& stack, const LaunchDevice& device) {
  return MegatronFlags(layout, model, job, stack, device).all();
}

}  // namespace orrery
