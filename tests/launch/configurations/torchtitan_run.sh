#!/usr/bin/bash
# The file of the job beside this script, with flags over it.
NGPU=${NGPU:-"8"}
CONFIG_FILE=${CONFIG_FILE:-"./torchtitan.toml"}
torchrun --nproc_per_node=${NGPU} --nnodes=32 -m torchtitan.train \
  --job.config_file ${CONFIG_FILE} --training.local_batch_size 16 --parallelism.tensor-parallel-degree=8 \
  --parallelism.data_parallel_shard_degree 4
