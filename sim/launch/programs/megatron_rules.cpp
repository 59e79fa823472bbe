// SPDX-License-Identifier: Apache-2.0
// Says what each setting of Megatron-LM and NeMo means by itself.
#include <algorithm>

#include <fmt/format.h>

#include "sim/launch/programs/megatron_reader.h"

namespace orrery {

using namespace megatron_names;
using Dialect = MegatronDialect;

static const char* name_in(const Name& n, Dialect dialect) {
  return dialect == Dialect::megatron ? n.megatron
         : dialect == Dialect::bridge ? n.bridge
         : dialect == Dialect::nemo2  ? n.nemo2
                                      : n.nemo1;
}

static std::string table_name(const Name& n) { return n.megatron ? n.megatron : n.bridge; }

std::string MegatronReader::named(const std::string& name) const {
  for (const Name* n : all)
    if (const char* own = name_in(*n, dialect_); own != nullptr && name == own)
      return table_name(*n);
  std::string rest = name;
  if (dialect_ != Dialect::megatron) {
    bool of_model = false;
    for (const char* section :
         {"model.", "recipe.model.config.", "recipe.trainer.strategy.", "model_config."}) {
      if (!rest.starts_with(section)) continue;
      rest = "--" + rest.substr(std::string_view(section).size());
      of_model = true;
      break;
    }
    if (!of_model) return name;
  }
  if (rest.starts_with("--")) std::replace(rest.begin(), rest.end(), '_', '-');
  return rest;
}

const Said* MegatronReader::kept(const std::string& name) const {
  const auto at = kept_.find(name);
  return at == kept_.end() ? nullptr : &at->second;
}
const Said* MegatronReader::kept(const Name& n) const { return kept(table_name(n)); }

Take MegatronReader::keep() {
  return [this](const Said& said) { kept_[named(said.name)] = said; };
}

Take MegatronReader::whole(const char* key, std::int64_t low) {
  return [this, key, low](const Said& said) {
    if (recipes() && is_nothing(said)) return reading_.without_effect(said, "it is not set");
    reading_.set(said, key, whole_of(said, low));
  };
}

Take MegatronReader::as_the_stack() {
  return [this](const Said& said) {
    reading_.without_effect(said, "predicted as the stack's release does it");
  };
}

void MegatronReader::layout_rules(Rules& r) {
  const auto whole_rule = [&](const Name& n, const char* key) { r[table_name(n)] = whole(key); };
  whole_rule(tensor, "tp");
  whole_rule(pipeline, "pp");
  whole_rule(chunks, "vpp");
  whole_rule(context, "cp");
  whole_rule(experts, "ep");
  whole_rule(expert_tensor, "etp");
  whole_rule(micro_batch, "micro_batch");
  whole_rule(global_batch, "global_batch");
  whole_rule(sequence, "seq");
  for (const char* name : {"dataset.sequence_length", "dataset.seq_length", "--data-seq-length"})
    r[name] = whole("seq");
  r[table_name(sequence_parallel)] = [this](const Said& said) {
    reading_.set(said, "sequence_parallel", truth_of(said));
  };
  r[table_name(context_kind)] = [this](const Said& said) {
    if (is_nothing(said)) return reading_.without_effect(said, "it is not set");
    const std::vector<std::string> kinds = texts_of(said);
    for (const std::string& kind : kinds)
      if (kind != kinds.front())
        return reading_.not_understood(said, "kinds that differ from layer to layer");
    Said one = said;
    one.value = kinds.front();
    const std::string kind = one_of(one, {"p2p", "allgather", "all_gather", "a2a", "a2a+p2p"});
    reading_.set(said, "context_parallel",
                 kind == "p2p"    ? "ring"
                 : kind == "a2a"  ? "all-to-all"
                 : kind[1] == 'l' ? "all-gather"
                                  : "hierarchical");
  };
  r[table_name(context_levels)] = [this](const Said& said) {
    if (is_nothing(said)) return reading_.without_effect(said, "it is not set");
    Said inner = said;
    inner.value = texts_of(said).front();
    reading_.set(said, "context_inner", whole_of(inner));
  };
  r[table_name(pipelines_inside)] = [this](const Said& said) {
    if (truth_of(said))
      reading_.set(said, "rank_order", "tp-cp-pp-dp");
    else
      reading_.without_effect(said, "it is the default");
  };
  for (const Name* n :
       {&layers_a_chunk, &first_stage, &last_stage, &count_embedding, &count_loss, &stage_layout})
    r[table_name(*n)] = keep();
  // NeMo's names before a release.
  r["--num-layers-in-first-pipeline-stage"] = r[table_name(first_stage)];
  r["--num-layers-in-last-pipeline-stage"] = r[table_name(last_stage)];
}

void MegatronReader::state_rules(Rules& r) {
  for (const Name* n :
       {&granularity, &method, &recomputed_layers, &modules, &distributed_optimizer, &fsdp,
        &custom_fsdp, &sharding, &shard_copies, &bucket_size, &reduce_in_bf16, &reduce_in_fp32,
        &optimizer, &precise, &offload_states, &offload_fraction, &offload_layers,
        &overlap_gradients, &overlap_parameters})
    r[table_name(*n)] = keep();
  for (const char* name : {"--bf16",
                           "--fp16",
                           "--fp8-format",
                           "--fp8-recipe",
                           "--fp8-hybrid",
                           "--fp8-e4m3",
                           "--fp4-format",
                           "--fp4-recipe",
                           "--exp-avg-dtype",
                           "--exp-avg-sq-dtype",
                           "--use-torch-fsdp2",
                           "--checkpoint-activations",
                           "--recompute-activations",
                           "mixed_precision",
                           "recipe.trainer.plugins",
                           "trainer.precision",
                           "--fp8",
                           "optimizer.use_distributed_optimizer",
                           "recipe.trainer.strategy.fsdp",
                           "--fsdp",
                           "model.optim.name",
                           "--optim.name",
                           "recipe.optim.config.exp_avg_dtype",
                           "recipe.optim.config.exp_avg_sq_dtype",
                           "optimizer.exp_avg_dtype",
                           "optimizer.exp_avg_sq_dtype",
                           "--cpu-offloading",
                           "--optimizer-cpu-offload",
                           "--activations-checkpoint-granularity",
                           "--precision",
                           "--transformer-engine"})
    r[name] = keep();
}

// Overlaps, dispatchers and graphs are a release's: what its measured runs did.
void MegatronReader::release_rules(Rules& r) {
  for (const Name* n : {&overlap_tensor, &overlap_experts, &delay_weights, &dispatcher, &deepep,
                        &flex_backend, &grouped_gemm, &graph_kind, &graph_by_modules,
                        &graph_by_loop, &graph_scope, &graph_random, &gather_mxfp8})
    r[table_name(*n)] = as_the_stack();
  for (const char* name : {"--fp8-param-gather",
                           "--ub-tp-comm-overlap",
                           "--moe-permute-fusion",
                           "--use-flash-attn",
                           "--attention-backend",
                           "--cross-entropy-loss-fusion",
                           "--cross-entropy-fusion-impl",
                           "--gradient-accumulation-fusion",
                           "--no-gradient-accumulation-fusion",
                           "--transformer-impl",
                           "--moe-router-fusion",
                           "--bias-gelu-fusion",
                           "--no-bias-gelu-fusion",
                           "--no-masked-softmax-fusion",
                           "--no-bias-swiglu-fusion",
                           "--moe-shared-expert-overlap",
                           "--overlap-p2p-communication-warmup-flush",
                           "--no-overlap-p2p-communication",
                           "--tp-comm-overlap-cfg",
                           "--fp8-hybrid-amax",
                           "--model-parallel-comm-overlap",
                           "--optim.grad-sync-dtype",
                           "model.optim.grad_sync_dtype",
                           "--use-precision-aware-optimizer-no-fp8",
                           "--overlap-param-gather-with-optimizer-step",
                           "--align-param-gather",
                           "--defer-embedding-wgrad-compute"})
    r[name] = as_the_stack();
}

void MegatronReader::shape_rules(Rules& r) {
  const auto size = [&](std::initializer_list<const char*> names,
                        std::int64_t GivenShape::*member) {
    for (const char* name : names)
      r[name] = [this, take = model_.size(member)](const Said& said) {
        if (is_nothing(said)) return reading_.without_effect(said, "it is not set");
        take(said);
      };
  };
  size({"--num-layers", "--encoder-num-layers"}, &GivenShape::layers);
  size({"--hidden-size"}, &GivenShape::hidden);
  size({"--ffn-hidden-size"}, &GivenShape::ffn);
  size({"--num-attention-heads"}, &GivenShape::heads);
  size({"--num-query-groups"}, &GivenShape::kv_heads);
  size({"--kv-channels"}, &GivenShape::head_dim);
  size({"--num-experts", "--num-moe-experts"}, &GivenShape::experts);
  size({"--moe-router-topk"}, &GivenShape::topk);
  size({"--moe-ffn-hidden-size"}, &GivenShape::expert_width);
  size({"--moe-shared-expert-intermediate-size"}, &GivenShape::shared_width);
  size({"--max-position-embeddings"}, &GivenShape::positions);
  size({"--vocab-size", "--pad-vocab-size-to"}, &GivenShape::vocab);
  size({"--q-lora-rank"}, &GivenShape::q_lora);
  size({"--kv-lora-rank"}, &GivenShape::kv_lora);
  size({"--qk-head-dim"}, &GivenShape::nope_dim);
  size({"--qk-pos-emb-head-dim"}, &GivenShape::rope_dim);
  size({"--v-head-dim"}, &GivenShape::v_dim);
}

// What a model's layers are made of.
void MegatronReader::style_rules(Rules& r) {
  const auto flag = [&](const char* name, bool GivenShape::*member, bool value = true) {
    r[name] = model_.flag(member, value);
  };
  flag("--multi-latent-attention", &GivenShape::latent);
  flag("--swiglu", &GivenShape::gated);
  flag("--gated-linear-unit", &GivenShape::gated);
  flag("--squared-relu", &GivenShape::squared_relu);
  flag("--disable-bias-linear", &GivenShape::biases, false);
  flag("--add-bias-linear", &GivenShape::biases);
  flag("--bias", &GivenShape::biases);
  flag("--add-qkv-bias", &GivenShape::qkv_bias);
  flag("--qk-layernorm", &GivenShape::qk_norm);
  flag("--use-rotary-position-embeddings", &GivenShape::rotary);
  r["--untie-embeddings-and-output-weights"] = [this](const Said& said) {
    model_.shape.tied = !truth_of(said);
    model_.part(said);
  };
  r["--share-embeddings-and-output-weights"] = [this](const Said& said) {
    model_.shape.tied = truth_of(said);
    model_.part(said);
  };
  r["--normalization"] = [this](const Said& said) {
    model_.shape.rms_norm = one_of(said, {"layernorm", "rmsnorm", "layernorm1p",
                                          "low_precision_layernorm"}) == "rmsnorm";
    model_.part(said);
  };
  r["--position-embedding-type"] = [this](const Said& said) {
    const std::string type =
        one_of(said, {"learned_absolute", "rope", "none", "alibi", "yarn", "mrope", "nope"});
    model_.shape.rotary = type == "rope" || type == "yarn";
    model_.shape.alibi = type == "alibi";
    model_.shape.odd = model_.shape.odd || type == "mrope";
    model_.part(said);
  };
  r["--activation"] = [this](const Said& said) {
    const std::string name = text_of(said);
    model_.shape.gated = name.ends_with("glu");
    model_.shape.squared_relu = name == "squared-relu";
    model_.part(said);
  };
  for (const char* name :
       {"--group-query-attention", "--moe-layer-freq", "--tokenizer-type", "--tokenizer.type"})
    r[name] = keep();
  for (const char* name : {"--hybrid-override-pattern", "--hybrid-layer-pattern",
                           "--is-hybrid-model", "--heterogeneous-layers-config-path"})
    r[name] = [this](const Said& said) {
      model_.shape.odd = true;
      model_.part(said);
    };
}

void MegatronReader::job_rules(Rules& r) {
  const auto rate = [this](const char* key) {
    return [this, key](const Said& said) { reading_.set(said, key, number_of(said, 0, 0.999)); };
  };
  r[table_name(attention_dropout)] = rate("attention_dropout");
  r[table_name(hidden_dropout)] = rate("hidden_dropout");
  r[table_name(mtp_layers)] = [this](const Said& said) {
    if (is_nothing(said)) return reading_.without_effect(said, "it is not set");
    reading_.set(said, "mtp", whole_of(said, 0) > 0);
  };
  r[table_name(lora_rank)] = [this](const Said& said) {
    reading_.set(said, "lora_rank", whole_of(said));
    reading_.follow("task", "lora");
  };
  // Recipes are named by their model: "llama3_70b_pretrain_config".
  for (const char* name : {"--recipe", "--recipe-name", "--recipe_name", "recipe.name"})
    r[name] = [this](const Said& said) {
      std::string recipe = text_of(said);
      for (const char* end : {"_pretrain", "_finetune", "_sft", "_peft", "_lora"})
        recipe = recipe.substr(0, recipe.find(end));
      model_.name(said, recipe);
    };
  r["--peft.peft-scheme"] = [this](const Said& said) {
    if (is_nothing(said)) return reading_.without_effect(said, "it is not set");
    if (text_of(said) != "lora") return reading_.not_understood(said, "adapters other than LoRA");
    reading_.set(said, "task", "lora");
  };
  r["--peft.lora-tuning.adapter-dim"] = r[table_name(lora_rank)];
  for (const char* name : {"trainer.num_nodes", "recipe.trainer.num_nodes"})
    r[name] = [this](const Said& said) { ranks_.nodes(said); };
  for (const char* name : {"trainer.devices", "recipe.trainer.devices"})
    r[name] = [this](const Said& said) { ranks_.per_node(said); };
  r["--rampup-batch-size"] = [this](const Said& said) {
    reading_.not_understood(said, "the batch is predicted as it is at the end of the ramp");
  };
  r["--finetune"] = [this](const Said& said) {
    reading_.without_effect(said, "weights that are loaded take no other time");
  };
}

Rules MegatronReader::rules() {
  Rules r;
  layout_rules(r);
  state_rules(r);
  release_rules(r);
  shape_rules(r);
  style_rules(r);
  job_rules(r);
  return r;
}

void MegatronReader::read(const std::vector<Said>& all_said, const Rules& others) {
  Rules r = rules();
  for (const auto& [name, take] : others) r[name] = take;
  model_.shape.padded = true;
  model_.shape.biases = dialect_ == Dialect::megatron || dialect_ == Dialect::nemo1;
  reading_.apply(all_said, r, [this](const std::string& name) { return named(name); });
  ranks_.settle();
  settle_gates();
  const Model* model = model_.settle();
  settle_precision();
  settle_sharding();
  settle_optimizer();
  settle_offload();
  settle_recompute();
  settle_chunks(model);
  settle_stages(model);
  settle_batch();
  settle_experts(model);
  settle_overlap();
}

}  // namespace orrery
