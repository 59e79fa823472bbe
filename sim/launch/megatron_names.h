// SPDX-License-Identifier: Apache-2.0
// Knows what Megatron-LM, Megatron-Bridge and NeMo call each setting of a layout.
#pragma once

namespace orrery::megatron_names {

// What a setting is called in Megatron-LM, in Megatron-Bridge, in NeMo 2.0 recipes and in the
// configuration of NeMo before; nullptr: it has none. Megatron-LM knows it from Megatron-Core
// 0.`since` on. Names were read in the sources that the writer lists. That a release has a flag was
// read in its source for 0.6, 0.12 and 0.14 and in the change log for 0.13; a `since` between is
// the first release that may have it, recalled.
struct Name {
  const char* megatron;
  int since;
  const char* bridge;
  const char* nemo2;
  const char* nemo1;
};
#define STRATEGY(name) "recipe.trainer.strategy." name
#define CONFIG(name) "recipe.model.config." name
inline constexpr Name tensor = {
    "--tensor-model-parallel-size", 1, "model.tensor_model_parallel_size",
    STRATEGY("tensor_model_parallel_size"), "model.tensor_model_parallel_size"};
inline constexpr Name pipeline = {
    "--pipeline-model-parallel-size", 1, "model.pipeline_model_parallel_size",
    STRATEGY("pipeline_model_parallel_size"), "model.pipeline_model_parallel_size"};
inline constexpr Name chunks = {
    "--num-virtual-stages-per-pipeline-rank", 12, "model.virtual_pipeline_model_parallel_size",
    STRATEGY("virtual_pipeline_model_parallel_size"), "model.virtual_pipeline_model_parallel_size"};
inline constexpr Name layers_a_chunk = {"--num-layers-per-virtual-pipeline-stage", 1, nullptr,
                                        nullptr, nullptr};
inline constexpr Name context = {"--context-parallel-size", 5, "model.context_parallel_size",
                                 STRATEGY("context_parallel_size"), "model.context_parallel_size"};
inline constexpr Name context_kind = {"--cp-comm-type", 10, "model.cp_comm_type",
                                      CONFIG("cp_comm_type"), nullptr};
inline constexpr Name context_levels = {"--hierarchical-context-parallel-sizes", 10,
                                        "model.hierarchical_context_parallel_sizes",
                                        CONFIG("hierarchical_context_parallel_sizes"), nullptr};
inline constexpr Name experts = {
    "--expert-model-parallel-size", 5, "model.expert_model_parallel_size",
    STRATEGY("expert_model_parallel_size"), "model.expert_model_parallel_size"};
inline constexpr Name expert_tensor = {"--expert-tensor-parallel-size", 10,
                                       "model.expert_tensor_parallel_size",
                                       STRATEGY("expert_tensor_parallel_size"), nullptr};
inline constexpr Name sequence_parallel = {"--sequence-parallel", 2, "model.sequence_parallel",
                                           STRATEGY("sequence_parallel"),
                                           "model.sequence_parallel"};
inline constexpr Name micro_batch = {"--micro-batch-size", 1, "train.micro_batch_size",
                                     "recipe.data.micro_batch_size", "model.micro_batch_size"};
inline constexpr Name global_batch = {"--global-batch-size", 1, "train.global_batch_size",
                                      "recipe.data.global_batch_size", "model.global_batch_size"};
inline constexpr Name sequence = {"--seq-length", 1, "model.seq_length", "recipe.data.seq_length",
                                  "model.encoder_seq_length"};
inline constexpr Name granularity = {"--recompute-granularity", 2, "model.recompute_granularity",
                                     CONFIG("recompute_granularity"),
                                     "model.activations_checkpoint_granularity"};
inline constexpr Name method = {"--recompute-method", 2, "model.recompute_method",
                                CONFIG("recompute_method"), "model.activations_checkpoint_method"};
inline constexpr Name recomputed_layers = {
    "--recompute-num-layers", 2, "model.recompute_num_layers", CONFIG("recompute_num_layers"),
    "model.activations_checkpoint_num_layers"};
inline constexpr Name modules = {"--recompute-modules", 12, "model.recompute_modules",
                                 CONFIG("recompute_modules"), nullptr};
inline constexpr Name distributed_optimizer = {
    "--use-distributed-optimizer", 3, "ddp.use_distributed_optimizer",
    "recipe.optim.config.use_distributed_optimizer", nullptr};
inline constexpr Name fsdp = {"--use-megatron-fsdp", 14, "ddp.use_megatron_fsdp", nullptr, nullptr};
// Its name before, without a checkpoint format of its own.
inline constexpr Name custom_fsdp = {"--use-custom-fsdp", 12, nullptr, nullptr, nullptr};
inline constexpr Name sharding = {"--data-parallel-sharding-strategy", 12,
                                  "ddp.data_parallel_sharding_strategy",
                                  STRATEGY("ddp.data_parallel_sharding_strategy"), nullptr};
inline constexpr Name shard_copies = {"--num-distributed-optimizer-instances", 10,
                                      "ddp.num_distributed_optimizer_instances",
                                      STRATEGY("ddp.num_distributed_optimizer_instances"), nullptr};
inline constexpr Name overlap_gradients = {"--overlap-grad-reduce", 4, "ddp.overlap_grad_reduce",
                                           STRATEGY("ddp.overlap_grad_reduce"),
                                           "model.optim.overlap_grad_sync"};
inline constexpr Name overlap_parameters = {"--overlap-param-gather", 5, "ddp.overlap_param_gather",
                                            STRATEGY("ddp.overlap_param_gather"),
                                            "model.optim.overlap_param_sync"};
inline constexpr Name overlap_tensor = {"--tp-comm-overlap", 6, "comm_overlap.tp_comm_overlap",
                                        nullptr, "model.ub_tp_comm_overlap"};
inline constexpr Name overlap_experts = {"--overlap-moe-expert-parallel-comm", 14,
                                         "comm_overlap.overlap_moe_expert_parallel_comm", nullptr,
                                         nullptr};
inline constexpr Name delay_weights = {"--delay-wgrad-compute", 14,
                                       "comm_overlap.delay_wgrad_compute", nullptr, nullptr};
inline constexpr Name bucket_size = {"--ddp-bucket-size", 8, "ddp.bucket_size",
                                     STRATEGY("ddp.bucket_size"), nullptr};
inline constexpr Name reduce_in_bf16 = {"--grad-reduce-in-bf16", 8, nullptr, nullptr, nullptr};
// Parameters in MXFP8 are gathered through the gradients' buffer.
inline constexpr Name gather_mxfp8 = {"--reuse-grad-buf-for-mxfp8-param-ag", 14, nullptr, nullptr,
                                      nullptr};
inline constexpr Name reduce_in_fp32 = {nullptr, 0, "ddp.grad_reduce_in_fp32",
                                        "recipe.trainer.plugins.grad_reduce_in_fp32", nullptr};
inline constexpr Name dispatcher = {"--moe-token-dispatcher-type", 6,
                                    "model.moe_token_dispatcher_type",
                                    CONFIG("moe_token_dispatcher_type"), nullptr};
inline constexpr Name deepep = {"--moe-enable-deepep", 12, nullptr, CONFIG("moe_enable_deepep"),
                                nullptr};
// Arguments of the time of 0.15 do not have it.
inline constexpr Name flex_backend = {"--moe-flex-dispatcher-backend", 16,
                                      "model.moe_flex_dispatcher_backend", nullptr, nullptr};
inline constexpr Name grouped_gemm = {"--moe-grouped-gemm", 6, "model.moe_grouped_gemm",
                                      CONFIG("moe_grouped_gemm"), "model.moe_grouped_gemm"};
inline constexpr Name optimizer = {"--optimizer", 1, "optimizer.optimizer",
                                   "recipe.optim.config.optimizer", nullptr};
inline constexpr Name precise = {"--use-precision-aware-optimizer", 11,
                                 "optimizer.use_precision_aware_optimizer",
                                 "recipe.optim.config.use_precision_aware_optimizer", nullptr};
inline constexpr Name offload_states = {"--optimizer-cpu-offload", 11,
                                        "optimizer.optimizer_cpu_offload",
                                        "recipe.optim.config.optimizer_cpu_offload", nullptr};
inline constexpr Name offload_fraction = {
    "--optimizer-offload-fraction", 11, "optimizer.optimizer_offload_fraction",
    "recipe.optim.config.optimizer_offload_fraction", nullptr};
inline constexpr Name offload_layers = {"--cpu-offloading-num-layers", 11,
                                        "model.cpu_offloading_num_layers",
                                        CONFIG("cpu_offloading_num_layers"), nullptr};
inline constexpr Name pipelines_inside = {"--use-tp-pp-dp-mapping", 9, "dist.use_tp_pp_dp_mapping",
                                          STRATEGY("use_tp_pp_dp_mapping"),
                                          "model.use_tp_pp_dp_mapping"};
inline constexpr Name first_stage = {"--decoder-first-pipeline-num-layers", 9,
                                     "model.num_layers_in_first_pipeline_stage",
                                     CONFIG("num_layers_in_first_pipeline_stage"), nullptr};
inline constexpr Name last_stage = {"--decoder-last-pipeline-num-layers", 9,
                                    "model.num_layers_in_last_pipeline_stage",
                                    CONFIG("num_layers_in_last_pipeline_stage"), nullptr};
inline constexpr Name count_embedding = {"--account-for-embedding-in-pipeline-split", 12,
                                         "model.account_for_embedding_in_pipeline_split",
                                         STRATEGY("account_for_embedding_in_pipeline_split"),
                                         nullptr};
inline constexpr Name count_loss = {"--account-for-loss-in-pipeline-split", 12,
                                    "model.account_for_loss_in_pipeline_split",
                                    STRATEGY("account_for_loss_in_pipeline_split"), nullptr};
inline constexpr Name stage_layout = {"--pipeline-model-parallel-layout", 13,
                                      "model.pipeline_model_parallel_layout", nullptr, nullptr};
inline constexpr Name graph_kind = {"--cuda-graph-impl", 15, "model.cuda_graph_impl", nullptr,
                                    nullptr};
// Before that one flag for each kind: graphs that modules make, and those of the training loop.
inline constexpr Name graph_by_modules = {"--enable-cuda-graph", 12, nullptr, nullptr, nullptr};
inline constexpr Name graph_by_loop = {"--external-cuda-graph", 12, nullptr, nullptr, nullptr};
inline constexpr Name graph_scope = {"--cuda-graph-scope", 12, "model.cuda_graph_scope", nullptr,
                                     nullptr};
inline constexpr Name graph_random = {"--te-rng-tracker", 8, "rng.te_rng_tracker", nullptr,
                                      nullptr};
inline constexpr Name lora_rank = {nullptr, 0, "peft.dim", "recipe.peft.dim",
                                   "model.peft.lora_tuning.adapter_dim"};
inline constexpr Name mtp_layers = {"--mtp-num-layers", 12, "model.mtp_num_layers",
                                    CONFIG("mtp_num_layers"), nullptr};
inline constexpr Name attention_dropout = {"--attention-dropout", 1, "model.attention_dropout",
                                           CONFIG("attention_dropout"), "model.attention_dropout"};
inline constexpr Name hidden_dropout = {"--hidden-dropout", 1, "model.hidden_dropout",
                                        CONFIG("hidden_dropout"), "model.hidden_dropout"};
#undef STRATEGY
#undef CONFIG

// Every one of them, to be found by what a program calls it.
inline constexpr const Name* all[] = {&tensor,
                                      &pipeline,
                                      &chunks,
                                      &layers_a_chunk,
                                      &context,
                                      &context_kind,
                                      &context_levels,
                                      &experts,
                                      &expert_tensor,
                                      &sequence_parallel,
                                      &micro_batch,
                                      &global_batch,
                                      &sequence,
                                      &granularity,
                                      &method,
                                      &recomputed_layers,
                                      &modules,
                                      &distributed_optimizer,
                                      &fsdp,
                                      &custom_fsdp,
                                      &sharding,
                                      &shard_copies,
                                      &overlap_gradients,
                                      &overlap_parameters,
                                      &overlap_tensor,
                                      &overlap_experts,
                                      &delay_weights,
                                      &bucket_size,
                                      &reduce_in_bf16,
                                      &gather_mxfp8,
                                      &reduce_in_fp32,
                                      &dispatcher,
                                      &deepep,
                                      &flex_backend,
                                      &grouped_gemm,
                                      &optimizer,
                                      &precise,
                                      &offload_states,
                                      &offload_fraction,
                                      &offload_layers,
                                      &pipelines_inside,
                                      &first_stage,
                                      &last_stage,
                                      &count_embedding,
                                      &count_loss,
                                      &stage_layout,
                                      &graph_kind,
                                      &graph_by_modules,
                                      &graph_by_loop,
                                      &graph_scope,
                                      &graph_random,
                                      &lora_rank,
                                      &mtp_layers,
                                      &attention_dropout,
                                      &hidden_dropout};

}  // namespace orrery::megatron_names
