// SPDX-License-Identifier: Apache-2.0
// Turns cells of tables of RL steps into jobs.
#include "sim/validate/rl/rl_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/engine/scenario.h"
#include "workloads/model/model_catalog.h"
#include "workloads/stack/settings.h"

namespace orrery {
namespace {

const std::vector<std::string>& rl_columns() {
  static const std::vector<std::string> columns = {
      "id",        "source",          "program",           "version",         "gpu",
      "model",     "steps_off",       "prompt_tokens",     "response_tokens", "max_tokens",
      "n_gpus",    "generation_gpus", "gen_batch",         "train_batch",     "gen_tp",
      "gen_pp",    "gen_precision",   "gen_memory_share",  "train_tp",        "train_cp",
      "train_ep",  "train_pp",        "train_precision",   "first_layers",    "last_layers",
      "recompute", "packed",          "logprob_sequences", "reference",       "tokens_s_gpu",
      "step_s",    "val_period",      "val_samples",       "val_batch",       "unscored"};
  return columns;
}

std::int64_t whole(const CsvRow& row, const char* column, std::int64_t least = 1) {
  const auto value = row.integer(column);
  if (!value || *value < least) row.fail(column, fmt::format("a whole number from {} on", least));
  return *value;
}

double above_zero(const CsvRow& row, const char* column) {
  const auto value = row.number(column);
  if (!value || !(*value > 0)) row.fail(column, "a number above 0");
  return *value;
}

bool yes(const CsvRow& row, const char* column) {
  const std::string& text = row.text(column);
  if (text != "yes" && text != "no") row.fail(column, "yes or no");
  return text == "yes";
}

// NeMo RL quantises weights and rows in blocks (quantization of its vLLM backend, fp8_recipe of its
// recipes).
PrecisionRecipe precision(const CsvRow& row, const char* column) {
  const std::string& text = row.text(column);
  if (text != "bf16" && text != "fp8") row.fail(column, "bf16 or fp8");
  return text == "fp8" ? PrecisionRecipe::fp8_blockwise : PrecisionRecipe::bf16;
}

// Layers of each stage, where the ends have others than the stages between.
std::vector<std::int64_t> stage_layers(const CsvRow& row, const Model& model, std::int64_t pp) {
  if (row.blank("first_layers") && row.blank("last_layers")) return {};
  const std::int64_t first = whole(row, "first_layers"), last = whole(row, "last_layers");
  const std::int64_t between = model.layer_count() - first - last;
  if (pp < 3 || between < pp - 2 || between % (pp - 2) != 0)
    row.fail("first_layers", fmt::format("layers that leave the {} stages between as many each",
                                         std::max<std::int64_t>(0, pp - 2)));
  std::vector<std::int64_t> layers(static_cast<std::size_t>(pp), between / (pp - 2));
  layers.front() = first;
  layers.back() = last;
  return layers;
}

Stack stack_of(const std::string& name, const RlJob& job, Task task, PrecisionRecipe recipe) {
  return catalogue_stack(name, job.cluster, job.model, {.task = task}, recipe);
}

void read_generation(const CsvRow& row, RlJob& job) {
  RlGeneration& g = job.generation;
  g.gpus = whole(row, "generation_gpus", 0);
  g.layout.tp = whole(row, "gen_tp");
  g.layout.pp = whole(row, "gen_pp");
  g.layout.etp = job.model.has_experts() ? g.layout.tp : 1;
  g.layout.precision = precision(row, "gen_precision");
  g.memory_share = above_zero(row, "gen_memory_share");
  g.stack = stack_of(job.program.serving_stack, job, Task::decode, g.layout.precision);
}

void read_training(const CsvRow& row, RlJob& job) {
  RlTraining& t = job.training;
  Layout& layout = t.layout;
  layout.tp = whole(row, "train_tp");
  layout.cp = whole(row, "train_cp");
  layout.ep = whole(row, "train_ep");
  layout.pp = whole(row, "train_pp");
  const std::int64_t replica = layout.tp * layout.cp * layout.pp;
  if (job.training_gpus() % replica != 0)
    row.fail("train_pp",
             fmt::format("sizes that divide the {} GPUs that train", job.training_gpus()));
  layout.dp = job.training_gpus() / replica;
  layout.precision = precision(row, "train_precision");
  layout.stage_layers = stage_layers(row, job.model, layout.pp);
  const std::string& recompute = row.text("recompute");
  if (recompute != "none" && recompute != "full") row.fail("recompute", "none or full");
  layout.recompute = recompute == "full" ? Recompute::full : Recompute::none;
  t.packed = yes(row, "packed");
  t.logprob_fill = whole(row, "logprob_sequences");
  t.reference = yes(row, "reference");
  t.update_batch = whole(row, "train_batch");
  t.stack = stack_of(job.program.training_stack, job, Task::sft, layout.precision);
  if (job.program.training_settings) apply_settings(t.stack, *job.program.training_settings);
}

void read_job(const CsvRow& row, const Aliases& aliases, RlJob& job) {
  const auto accelerator = aliases.accelerators.find(accelerator_name(aliases, row.text("gpu")));
  if (accelerator == aliases.accelerators.end())
    row.fail("gpu", "an accelerator that aliases.json names");
  job.cluster = load_cluster(accelerator->second.clusters.front(), whole(row, "n_gpus"));
  const auto catalog = data_root() / "workloads/catalog";
  job.model = load_model(row.text("model"), catalog / "models");
  job.program = load_rl_program(row.text("program"), catalog / "rl_programs");
  job.lengths = {.prompt = above_zero(row, "prompt_tokens"),
                 .response = above_zero(row, "response_tokens"),
                 .context = whole(row, "max_tokens")};
  job.responses = whole(row, "gen_batch");
  job.steps_off = whole(row, "steps_off", 0);
  job.validation = {.period = whole(row, "val_period", 0),
                    .prompts = whole(row, "val_samples", 0),
                    .together = whole(row, "val_batch")};
  read_generation(row, job);
  read_training(row, job);
}

}  // namespace

bool is_rl_table(const CsvTable& table) {
  return table.has("steps_off") && table.has("response_tokens") && table.has("gen_batch");
}

std::vector<RlRow> read_rl_rows(const CsvTable& table, const Aliases& aliases) {
  require_columns(table, rl_columns(), "validation/measurements/rl/README.md");
  std::vector<RlRow> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow cells(table, i);
    RlRow row{.id = cells.text("id"),
              .source = cells.text("source"),
              .version = cells.text("version"),
              .gpu = cells.text("gpu"),
              .model = cells.text("model"),
              .precision = cells.text("gen_precision"),
              .recipe = cells.text("recipe"),
              .skipped = cells.text("unscored"),
              .step_seconds = cells.number("step_s"),
              .tokens_s_gpu = cells.number("tokens_s_gpu")};
    for (const auto& [column, value] :
         {std::pair{"step_s", row.step_seconds}, {"tokens_s_gpu", row.tokens_s_gpu}})
      if (value && !(*value > 0)) cells.fail(column, "a number above 0");
    if (row.scored()) read_job(cells, aliases, row.job);
    rows.push_back(std::move(row));
  }
  return rows;
}

void predict_rl_rows(std::vector<RlRow>& rows, int threads) {
  parallel_for(rows.size(), threads, [&](std::size_t i) {
    if (!rows[i].scored()) return;
    try {
      rows[i].step = predict_rl_step(rows[i].job);
    } catch (const Error& failure) {
      rows[i].skipped = failure.message();
    }
  });
}

std::optional<double> measured(const RlRow& row, RlQuantity quantity) {
  if (!row.scored()) return std::nullopt;
  return quantity == RlQuantity::step ? row.step_seconds : row.tokens_s_gpu;
}

double predicted(const RlRow& row, RlQuantity quantity) {
  return quantity == RlQuantity::step ? row.step.step.si() : row.step.tokens_per_gpu;
}

}  // namespace orrery
