// SPDX-License-Identifier: Apache-2.0
// Holds the files with which other programs run shards; what stands between @ is filled in.
#pragma once

#include <string_view>

namespace orrery {

// A script of bash for Slurm: VERSION, SHARDS, LAST_SHARD, JOB_NAME, OUTPUT (of #SBATCH, in quotes
// of its own), ORRERY and RESULTS (quoted for the shell), MERGED_NAME, MERGE_FLAGS.
extern const std::string_view array_template;
// Objects of Kubernetes 1.29 or later: VERSION, IMAGE, JOB_FILE, NAME, SHARDS, STORAGE, MEMORY,
// QUESTION (lines of a ConfigMap's data), SHARD_ARGS (a list), MERGED_NAME, MERGE_FLAGS.
extern const std::string_view job_template;
// An image of Orrery: VERSION, IMAGE.
extern const std::string_view dockerfile_template;

}  // namespace orrery
