vllm serve deepseek-ai/DeepSeek-R1 --data-parallel-size 8 --enable-expert-parallel \
  --max-model-len 16384 --no-enable-prefix-caching --trust-remote-code \
  --speculative-config '{"method": "mtp", "num_speculative_tokens": 1}'
