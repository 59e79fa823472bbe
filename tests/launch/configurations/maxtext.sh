export RUN_NAME=llama3-405b
python3 -m MaxText.train MaxText/configs/base.yml run_name=$RUN_NAME hardware=gpu steps=30 \
  model_name=llama3.1-405b per_device_batch_size=1 max_target_length=8192 \
  remat_policy=save_qkv_proj ici_fsdp_parallelism=8 dcn_fsdp_parallelism=64 \
  ici_tensor_parallelism=1 attention=cudnn_flash_te
