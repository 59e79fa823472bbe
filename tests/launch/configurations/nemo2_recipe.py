# SPDX-License-Identifier: Apache-2.0
# A recipe in Python, its settings one by one.
from nemo.collections import llm
recipe = llm.llama3_70b.pretrain_recipe(num_nodes=8, num_gpus_per_node=8)
recipe.trainer.strategy.tensor_model_parallel_size = 4
recipe.trainer.strategy.pipeline_model_parallel_size = 4
recipe.trainer.strategy.virtual_pipeline_model_parallel_size = 5
recipe.trainer.strategy.context_parallel_size = 2
recipe.trainer.strategy.sequence_parallel = True
recipe.trainer.num_nodes = 8
recipe.trainer.devices = 8
recipe.data.micro_batch_size = 1
recipe.data.global_batch_size = 128
recipe.data.seq_length = 8192
recipe.trainer.plugins = bf16_with_fp8_mixed()
recipe.optim.config.use_distributed_optimizer = True
recipe.model.config.recompute_granularity = None
recipe.trainer.max_steps = 100
