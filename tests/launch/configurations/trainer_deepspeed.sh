# The trainer's arguments, with DeepSpeed's file beside the script.
deepspeed --num_nodes 8 --num_gpus 8 finetune.py \
  --deepspeed ./deepspeed_auto.json --model_name_or_path meta-llama/Llama-2-13b-hf \
  --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --bf16 True \
  --gradient_checkpointing True --model_max_length 4096 --learning_rate 2e-5 --num_train_epochs 3
