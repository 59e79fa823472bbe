pip install "sglang[all]==0.5.9"
export SGL_ENABLE_JIT_DEEPGEMM=false
python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tensor-parallel-size 8 \
  --quantization fp8 --kv-cache-dtype fp8_e4m3 --mem-fraction-static 0.82 \
  --chunked-prefill-size 16384 --max-prefill-tokens 16384 --max-running-requests 512 \
  --fp8-gemm-backend flashinfer_trtllm --scheduler-recv-interval 30 --attention-backend trtllm_mla
