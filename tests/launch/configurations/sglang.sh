pip install "sglang[all]==0.5.6"
python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 16 --dp-size 16 \
  --enable-dp-attention --moe-a2a-backend deepep --mem-fraction-static 0.85 \
  --chunked-prefill-size 131072 --max-running-requests 2048 --nnodes 2 --node-rank $1 \
  --dist-init-addr 10.0.0.1:5000 --kv-cache-dtype fp8_e4m3
