# Expert layers behind three dense ones, latent attention, a pipeline that is laid out by hand.
torchrun --nproc-per-node=8 --nnodes=128 pretrain_gpt.py \
  --num-layers 61 --hidden-size 7168 --num-attention-heads 128 --ffn-hidden-size 18432 \
  --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 \
  --qk-pos-emb-head-dim 64 --v-head-dim 128 --swiglu --normalization RMSNorm \
  --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights \
  --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 \
  --moe-shared-expert-intermediate-size 2048 --moe-layer-freq '([0]*3+[1]*58)' --vocab-size 129280 \
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 8192 \
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 8 --expert-model-parallel-size 32 \
  --pipeline-model-parallel-layout 'Et*3|(t*4|)*14t*2mL' --mtp-num-layers 1 \
  --bf16 --fp8-format e4m3 --fp8-recipe blockwise --use-distributed-optimizer \
  --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16 \
  --recompute-granularity selective --recompute-modules mla_up_proj layernorm \
  --overlap-grad-reduce --overlap-param-gather --attention-dropout 0.0 --hidden-dropout 0.0 \
  --moe-token-dispatcher-type flex --moe-enable-deepep --moe-router-load-balancing-type none
