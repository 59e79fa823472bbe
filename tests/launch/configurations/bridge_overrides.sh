# Overrides of Megatron-Bridge's recipe for Qwen3 30B.
NUM_GPUS=64
torchrun --nproc_per_node=8 --nnodes=$((NUM_GPUS / 8)) scripts/performance/run_recipe.py \
  --recipe qwen3_30b_a3b_pretrain \
  model.tensor_model_parallel_size=1 model.pipeline_model_parallel_size=2 \
  model.expert_model_parallel_size=8 model.expert_tensor_parallel_size=1 \
  +model.virtual_pipeline_model_parallel_size=4 model.sequence_parallel=false \
  train.micro_batch_size=2 train.global_batch_size=512 model.seq_length=4096 \
  dataset.sequence_length=4096 mixed_precision=bf16_with_mxfp8_mixed \
  ddp.use_distributed_optimizer=true ddp.overlap_grad_reduce=true \
  model.recompute_granularity=selective 'model.recompute_modules=[moe_act,layernorm]' \
  train.train_iters=50 logger.log_interval=1
