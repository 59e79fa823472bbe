// SPDX-License-Identifier: Apache-2.0
// Turns settings into a job of RL post-training.
#include "sim/question/rl/rl_settings.h"

#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/base/append.h"
#include "workloads/stack/settings.h"

namespace orrery {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 30;

std::int64_t count_or(const JsonValue& at, const char* key, std::int64_t otherwise,
                      std::int64_t least = 1) {
  const auto value = at.find(key);
  return value ? value->integer(least, most) : otherwise;
}

bool flag_or(const JsonValue& at, const char* key, bool otherwise) {
  const auto value = at.find(key);
  return value ? value->boolean() : otherwise;
}

double tokens(const JsonValue& at) {
  if (!(at.number() >= 1)) at.fail("at least one token");
  return at.number();
}

Stack stack_of(const std::string& name, const RlJob& job, Task task, PrecisionRecipe recipe,
               Catalogues& catalogues) {
  return catalogues.stack(name, stack_context(job.cluster, job.model, {.task = task}, recipe));
}

void read_generation(const JsonValue& at, RlJob& job, Catalogues& catalogues) {
  at.expect_only({"gpus", "tp", "pp", "precision", "memory_share"});
  RlGeneration& g = job.generation;
  g.gpus = count_or(at, "gpus", 0, 0);
  g.layout.tp = count_or(at, "tp", 1);
  g.layout.pp = count_or(at, "pp", 1);
  g.layout.etp = job.model.has_experts() ? g.layout.tp : 1;
  if (const auto precision = at.find("precision")) g.layout.precision = precision_from(*precision);
  g.stack = stack_of(job.program.serving_stack, job, Task::decode, g.layout.precision, catalogues);
  g.memory_share = g.stack.serving.memory.share;
  if (const auto share = at.find("memory_share")) {
    g.memory_share = share->number();
    if (!(g.memory_share > 0 && g.memory_share <= 1)) share->fail("above 0, at most 1");
  }
}

void read_training(const JsonValue& at, RlJob& job, Catalogues& catalogues) {
  std::vector<std::string> keys = layout_keys();
  append(keys, std::vector<std::string>{"packed", "logprob_fill", "reference"});
  at.expect_only(keys, "a key of a layout, packed, logprob_fill or reference");
  RlTraining& t = job.training;
  t.layout = read_layout_over(at, Layout{});
  const std::int64_t replica = t.layout.tp * t.layout.pp * t.layout.cp;
  if (!at.has("dp") && job.training_gpus() % replica == 0)
    t.layout.dp = job.training_gpus() / replica;
  t.packed = flag_or(at, "packed", true);
  t.logprob_fill = count_or(at, "logprob_fill", 1);
  t.reference = flag_or(at, "reference", true);
  t.stack = stack_of(job.program.training_stack, job, Task::sft, t.layout.precision, catalogues);
  if (job.program.training_settings) apply_settings(t.stack, *job.program.training_settings);
}

JsonValue part(const JsonValue& settings, const char* key) {
  const auto found = settings.find(key);
  return found ? *found : JsonValue::from(SortedJson::object(), settings.file());
}

}  // namespace

RlJob read_rl_job(const JsonValue& s, Catalogues& catalogues) {
  s.expect_only({"model", "cluster", "gpus", "program", "prompt", "response", "context",
                 "responses", "update_batch", "steps_off", "seed", "generation", "training",
                 "validation"});
  RlJob job;
  job.cluster = catalogues.cluster(s.at("cluster").reference(), s.at("gpus").integer(1, most));
  job.model = catalogues.model(s.at("model").reference());
  job.program =
      load_rl_program(s.at("program").text(), data_root() / "workloads/catalog/rl_programs");
  job.lengths = {.prompt = tokens(s.at("prompt")),
                 .response = tokens(s.at("response")),
                 .context = s.at("context").integer(2, most)};
  job.responses = s.at("responses").integer(1, most);
  job.steps_off = count_or(s, "steps_off", 0, 0);
  job.seed = static_cast<std::uint64_t>(count_or(s, "seed", 1, 0));
  read_generation(part(s, "generation"), job, catalogues);
  read_training(part(s, "training"), job, catalogues);
  job.training.update_batch = count_or(s, "update_batch", job.responses);
  if (const auto validation = s.find("validation")) {
    validation->expect_only({"period", "prompts", "together"});
    job.validation = {.period = validation->at("period").integer(1, most),
                      .prompts = validation->at("prompts").integer(1, most)};
    job.validation.together = count_or(*validation, "together", job.validation.prompts);
  }
  check_rl_job(job);
  return job;
}

Json rl_step_json(const RlStep& s, const RlRange& range) {
  return {{"step_s", s.step.si()},
          {"step_low_s", range.low * s.step.si()},
          {"step_high_s", range.high * s.step.si()},
          {"rollout_s", s.rollout.time.si()},
          {"logprobs_s", s.passes.logprobs.si()},
          {"training_s", s.passes.training.si()},
          {"weight_sync_s", s.sync.time().si()},
          {"handover_s", s.handover.si()},
          {"host_s", s.host.si()},
          {"validation_s", s.validation.si()},
          {"updates", s.passes.updates},
          {"tokens", s.tokens},
          {"tokens_per_s_per_gpu", s.tokens_per_gpu},
          {"tokens_per_s_per_gpu_low", range.least_rate() * s.tokens_per_gpu},
          {"tokens_per_s_per_gpu_high", range.most_rate() * s.tokens_per_gpu},
          {"waits_for_generation", s.waits_for_generation}};
}

}  // namespace orrery
