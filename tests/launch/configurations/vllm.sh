#!/bin/bash
# A server in its image.
MODEL=${MODEL:-meta-llama/Llama-3.3-70B-Instruct}
docker run --gpus all --ipc=host -p 8000:8000 vllm/vllm-openai:v0.11.0 \
  --model "$MODEL" --tensor-parallel-size 4 --max-model-len 32k --gpu-memory-utilization 0.92 \
  --quantization fp8 --kv-cache-dtype fp8 --max-num-seqs 256 --max-num-batched-tokens 8192 \
  --enable-prefix-caching --port 8000 --tensor-parallel-sizes 8
