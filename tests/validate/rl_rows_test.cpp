// SPDX-License-Identifier: Apache-2.0
// Holds tables of RL steps to their columns, and the shipped one to its gates.
#include "sim/validate/rl/rl_rows.h"

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"
#include "sim/validate/rl/rl_report.h"
#include "sim/validate/score/gates.h"

namespace orrery {
namespace {

const Aliases& aliases() {
  static const Aliases all = load_aliases(data_root() / "validation/aliases.json");
  return all;
}

RlError shipped_error() { return load_rl_error(data_root() / "validation/rl_error.json"); }

const std::vector<RlRow>& shipped() {
  static const std::vector<RlRow> rows = shipped_rl_rows(aliases(), 0);
  return rows;
}

constexpr const char* header =
    "id,source,program,version,gpu,model,steps_off,prompt_tokens,response_tokens,max_tokens,n_gpus,"
    "generation_gpus,gen_batch,train_batch,gen_tp,gen_pp,gen_precision,gen_memory_share,train_tp,"
    "train_cp,train_ep,train_pp,train_precision,first_layers,last_layers,recompute,packed,"
    "logprob_sequences,reference,val_period,val_samples,val_batch,tokens_s_gpu,step_s,unscored\n";

// The row with one column changed.
std::vector<RlRow> read(const std::string& from = "", const std::string& to = "") {
  std::string row =
      "a,mine,nemo-rl@0.5,0.5,H100,llama3.1-8b,0,128,1000,4096,16,0,2048,512,1,1,bf16,0.6,1,1,1,2,"
      "bf16,,,full,"
      "yes,2,yes,10,256,256,1500,90,\n";
  if (!from.empty()) row.replace(row.find(from), from.size(), to);
  return read_rl_rows(parse_csv(header + row, "steps.csv"), aliases());
}

TEST_CASE("a row of an RL table is the job that its columns say") {
  const RlRow row = read().front();
  CHECK(row.scored());
  CHECK(row.job.cluster.gpus == 16);
  CHECK(row.job.training.layout.dp == 8);
  CHECK(row.job.training.layout.recompute == Recompute::full);
  CHECK(row.job.validation.batches() == 1);
  CHECK(row.job.generation_gpus() == 16);
  CHECK(is_rl_table(parse_csv(header, "steps.csv")));
  CHECK_FALSE(is_rl_table(parse_csv("model,gpu,n_gpus,seq,tp,tokens_s_gpu\n", "runs.csv")));
}

TEST_CASE("cells that an RL table cannot have are refused by line and column") {
  const auto refuses = [](const char* from, const char* to, const char* says) {
    CAPTURE(from, to);
    CHECK_THROWS_WITH(read(from, to), Catch::Contains("line 2") && Catch::Contains(says));
  };
  refuses("full,yes", "half,yes", "none or full");
  refuses("bf16,0.6", "fp4,0.6", "bf16 or fp8");
  refuses("4096,16,0", "4096,15,0", "divide");
  refuses("0,128,", "0,-1,", "above 0");
  refuses("2048,512", "0,512", "whole number");
  refuses("full,yes", "full,maybe", "yes or no");
  refuses("bf16,,,full", "bf16,3,,full", "last_layers");
  refuses("1500,90", "1500,0", "above 0");
  CHECK_THROWS_WITH(read("@0.5", "@0.4"), Catch::Contains("releases"));
  CHECK_THROWS_AS(
      read_rl_rows(parse_csv("steps_off,response_tokens,gen_batch\n", "x.csv"), aliases()), Error);
}

TEST_CASE("a job that does not fit is skipped with its reason") {
  std::vector<RlRow> rows = read("bf16,0.6", "bf16,0.1");
  predict_rl_rows(rows, 1);
  REQUIRE_FALSE(rows.front().scored());
  CHECK_FALSE(rows.front().skipped.empty());
  CHECK_FALSE(measured(rows.front(), RlQuantity::step));
}

TEST_CASE("of the shipped RL steps 40 step times and 39 rates are scored") {
  int steps = 0, rates = 0;
  for (const RlRow& row : shipped()) {
    steps += measured(row, RlQuantity::step) ? 1 : 0;
    rates += measured(row, RlQuantity::tokens_s_gpu) ? 1 : 0;
  }
  CHECK(shipped().size() == 42);
  CHECK(steps == 40);
  CHECK(rates == 39);
}

TEST_CASE("the shipped RL steps keep their gates") {
  const auto verdicts =
      judge(load_gates(data_root() / "validation/gates.json"), rl_gate_figures(shipped()), false);
  CHECK(verdicts.size() >= 10);
  for (const GateVerdict& v : verdicts) {
    CAPTURE(v.gate.group, v.gate.figure, v.gate.at_most);
    CHECK(v.passed);
  }
}

TEST_CASE("on as many GPUs the better of two policies is predicted to be that") {
  int same = 0;
  for (const RlPair& pair : rl_pairs(shipped(), rl_ranges_of_others(shipped()))) {
    if (!pair.same_gpus) continue;
    ++same;
    CAPTURE(shipped()[pair.sync].id, shipped()[pair.off].id);
    CHECK(pair.right);
  }
  CHECK(same == 9);
}

TEST_CASE("reports of RL steps have every scored row, and no other's error") {
  const std::string text = rl_text(shipped(), shipped_error());
  for (const RlRow& row : shipped()) CHECK(text.find(row.id) != std::string::npos);
  Json rows = Json::array(), groups = Json::array();
  add_rl_json(shipped(), shipped_error(), rows, groups);
  CHECK(rows.size() == 42 + 41);  // one rate is blank
  CHECK(groups.size() == 6);
  for (const auto& row : rows) {
    CHECK(row["predicted"].is_null() == row["skipped"].is_string());
    if (row["predicted"].is_null()) continue;
    CHECK(row["low"].get<double>() < row["predicted"].get<double>());
    CHECK(row["predicted"].get<double>() < row["high"].get<double>());
  }
  const std::string free = rl_free_text(shipped(), 0);
  for (const char* value :
       {"shared_sync", "split_sync", "host_copy", "engine_step", "engine_ranks", "response"})
    CHECK(free.find(value) != std::string::npos);
}

}  // namespace
}  // namespace orrery
