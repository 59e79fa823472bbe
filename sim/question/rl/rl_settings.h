// SPDX-License-Identifier: Apache-2.0
// Reads a job of RL post-training from JSON, and writes what its step takes.
#pragma once

#include "sim/base/json/json.h"
#include "sim/base/json/tree.h"
#include "sim/outcome/rl/rl_error.h"
#include "sim/outcome/rl/rl_step.h"
#include "sim/question/settings/catalogues.h"

namespace orrery {

// {"model", "cluster", "gpus", "program" (an entry of rl_programs), "prompt", "response",
// "context",
//  "responses", "update_batch": responses, "steps_off": 0, "seed": 1,
//  "generation": {"gpus": 0, "tp": 1, "pp": 1, "precision": "bf16", "memory_share": the engine's},
//  "training": {keys of a layout, "packed": true, "logprob_fill": 1, "reference": true},
//  "validation": {"period", "prompts", "together": prompts}}
// Data parallelism follows from the GPUs where it is not given. Errors name file, path and the
// nearest key; a job that cannot be is an Error as check_rl_job has it.
RlJob read_rl_job(const JsonValue& settings, Catalogues& catalogues);

// Seconds of each phase, the 90% range of a step and its rate, tokens, and which of two that run at
// once the other waits for.
Json rl_step_json(const RlStep& step, const RlRange& range);

}  // namespace orrery
