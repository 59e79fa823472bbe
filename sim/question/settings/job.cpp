// SPDX-License-Identifier: Apache-2.0
// Reads jobs: the task, its sizes, and what is special about its tokens.
#include "sim/question/settings/job.h"

#include <fmt/format.h>

#include "workloads/parameters/adapters.h"

namespace orrery {
namespace {

Task read_task(const JsonValue& s) {
  const auto phase = s.find("phase");
  const auto task = s.find("task");
  if (phase && task) phase->fail("either a task or a phase, not both");
  if (phase) return task_text.from(*phase, {Task::prefill, Task::decode});
  return task ? task_text.from(*task) : Task::pretrain;
}

// What is set would change nothing: sizes of another task, or of parts that the model lacks.
void check_used(const JsonValue& s, Task task, const Model& model) {
  const bool training = is_training(task), prefill = task == Task::prefill;
  const auto refuse = [&](const char* key, bool used, const char* why) {
    if (const auto v = s.find(key); v && !used)
      v->fail(fmt::format("nothing: {} {}", to_text(task), why));
  };
  refuse("seq", training || prefill, "counts tokens before in context");
  refuse("global_batch", training, "counts sequences in batch");
  refuse("batch", !training, "counts sequences in global_batch (a phase in batch)");
  refuse("context", task == Task::decode, "counts tokens in seq (phase decode in context)");
  refuse("mean_document", training, "packs no documents");
  refuse("attention_dropout", training, "drops nothing");
  refuse("hidden_dropout", training, "drops nothing");
  refuse("lora_rank", task == Task::lora, "has no adapters (task lora has)");
  const auto lacks = [&](const char* key, bool has, const std::string& what) {
    if (const auto v = s.find(key); v && !has && v->raw() != false && v->raw() != 1)
      v->fail(fmt::format("nothing: {}", what));
  };
  const std::string no_experts = model.name + " has no experts";
  lacks("mtp", training, fmt::format("{} trains no prediction modules", to_text(task)));
  lacks("mtp", model.mtp_layers > 0, model.name + " has no multi-token prediction modules");
  lacks("expert_imbalance", model.has_experts(), no_experts);
  lacks("experts_in_turn", model.has_experts(), no_experts);
}

}  // namespace

// A learned table has a row for each position: there is none for a token beyond it.
static void check_positions(const JsonValue& s, const Job& job, const Model& model) {
  if (model.position != PositionKind::learned || model.positions <= 0) return;
  const bool decodes = job.task == Task::decode;
  const std::int64_t tokens = decodes ? job.context + 1 : job.sequence;
  if (tokens > model.positions)
    s.at(decodes ? "context" : "seq")
        .fail(fmt::format("at most {}, since {} has a learned table of {} positions",
                          model.positions - (decodes ? 1 : 0), model.name, model.positions));
}

Job read_job(const JsonValue& s, const Model& model) {
  const auto count = [&](const char* key) { return s.at(key).integer(1, most_of_a_count); };
  const auto count_or = [&](const char* key, std::int64_t fallback) {
    return s.find(key) ? count(key) : fallback;
  };
  Job job{.task = read_task(s)};
  check_used(s, job.task, model);
  if (is_training(job.task)) {
    job.sequence = count("seq");
    job.global_batch = count("global_batch");
  } else {
    job.batch = count("batch");
    if (job.task == Task::prefill)
      job.sequence = count("seq");
    else
      job.context = count("context");
  }
  check_positions(s, job, model);
  job.mean_document = count_or("mean_document", 0);
  job.lora_rank = count_or("lora_rank", job.lora_rank);
  if (const std::int64_t most = largest_adapter_rank(model);
      job.task == Task::lora && s.find("lora_rank") && job.lora_rank > most)
    s.at("lora_rank")
        .fail(fmt::format("at most {}, the smallest width of a linear layer of {}", most,
                          model.name));
  if (const auto v = s.find("attention_dropout")) job.attention_dropout = dropout_from(*v);
  if (const auto v = s.find("hidden_dropout")) job.hidden_dropout = dropout_from(*v);
  if (const auto v = s.find("mtp")) job.mtp = v->boolean();
  if (const auto v = s.find("expert_imbalance")) {
    job.expert_imbalance = v->number();
    if (job.expert_imbalance < 1 || job.expert_imbalance > 1000)
      v->fail("a number from 1 (balanced) to 1000");
  }
  if (const auto v = s.find("experts_in_turn")) job.experts_in_turn = v->boolean();
  return job;
}

void check_same_job(const JsonValue& like, const Job& now, const Job& asked) {
  const auto same = [&](const char* key, const auto& is, const auto& wanted) {
    const auto v = like.find(key);
    if (v && is != wanted)
      v->fail(fmt::format("{} as in the question, or nothing: layouts are compared on one job",
                          wanted));
  };
  same("seq", now.sequence, asked.sequence);
  same("global_batch", now.global_batch, asked.global_batch);
  same("mean_document", now.mean_document, asked.mean_document);
  same("lora_rank", now.lora_rank, asked.lora_rank);
  same("attention_dropout", now.attention_dropout, asked.attention_dropout);
  same("hidden_dropout", now.hidden_dropout, asked.hidden_dropout);
  same("mtp", now.mtp, asked.mtp);
  same("expert_imbalance", now.expert_imbalance, asked.expert_imbalance);
  same("experts_in_turn", now.experts_in_turn, asked.experts_in_turn);
}

}  // namespace orrery
