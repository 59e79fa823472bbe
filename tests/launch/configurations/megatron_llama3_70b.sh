#!/bin/bash
# A pretraining job of Llama 3 70B on 32 hosts, as people write it for Slurm.
#SBATCH --job-name=llama3-70b
#SBATCH --nodes=32
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive

set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=${GPUS_PER_NODE:-8}
TP=${TP:-4}
PP=4
MICRO_BATCH=1
STEPS_OF_A_BATCH=$(( 2 * 16 ))
DATA=$1  # nobody knows where it lies

MODEL_ARGS=(
  --num-layers 80
  --hidden-size 8192
  --ffn-hidden-size 28672
  --num-attention-heads 64
  --group-query-attention
  --num-query-groups 8
  --seq-length 8192
  --max-position-embeddings 8192
  --swiglu
  --normalization RMSNorm
  --position-embedding-type rope
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --tokenizer-type HuggingFaceTokenizer
  --tokenizer-model "$DATA/tokenizer"
)
LAYOUT="--tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
  --num-layers-per-virtual-pipeline-stage 5 --sequence-parallel --use-distributed-optimizer"
TRAINING_ARGS=(
  --micro-batch-size $MICRO_BATCH
  --global-batch-size $((STEPS_OF_A_BATCH * 16))
  --bf16 --attention-dropout 0 --hidden-dropout 0
  --lr 1.5e-4 --min-lr 1e-5 --train-iters 1000 --weight-decay 0.1
)
if [ "${RECOMPUTE:-none}" = "full" ]; then
  TRAINING_ARGS+=(--recompute-granularity full --recompute-method uniform --recompute-num-layers 1)
elif [ -n "${PROFILE_STEP:-}" ]; then
  TRAINING_ARGS+=(--profile)
fi
if nvidia-smi --query-gpu=name | grep -q B200; then
  TRAINING_ARGS+=(--fp8-format hybrid)
fi

srun torchrun --nproc_per_node "$GPUS_PER_NODE" --nnodes "$SLURM_NNODES" \
  pretrain_gpt.py "${MODEL_ARGS[@]}" $LAYOUT "${TRAINING_ARGS[@]}" \
  --overlap-grad-reduce --overlap-param-gather --data-path "$DATA/text" \
  --tensor-model-paralel-size 2 $EXTRA_ARGS
