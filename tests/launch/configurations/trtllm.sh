cat > extra.yaml <<'END'
enable_attention_dp: true
kv_cache_config:
  dtype: fp8
  free_gpu_memory_fraction: 0.8
  enable_block_reuse: false
cuda_graph_config:
  enable_padding: true
scheduler_config:
  capacity_scheduler_policy: MAX_UTILIZATION
END
trtllm-serve nvidia/DeepSeek-R1-FP4 --tp_size 8 --ep_size 8 --max_batch_size 512 \
  --max_num_tokens 4096 --max_seq_len 12288 --extra_llm_api_options extra.yaml
