// SPDX-License-Identifier: Apache-2.0
// Tests what becomes of rows of serving tables: the shipped ones, and tables of users.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/validate/served/served_gates.h"
#include "sim/validate/serving/serving_recipes.h"
#include "sim/validate/serving/serving_rows.h"
#include "workloads/stack/stack.h"

using namespace orrery;

namespace {

ServingReader make_reader() {
  return ServingReader(load_aliases(data_root() / "validation/aliases.json"));
}

const std::vector<ServingRow>& shipped_rows() {
  static const std::vector<ServingRow> rows =
      shipped_serving_rows(load_aliases(data_root() / "validation/aliases.json"));
  return rows;
}

const ServingRow& row_of(const std::string& id) {
  const auto& rows = shipped_rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&id](const ServingRow& r) { return r.id == id; });
  INFO(id);
  REQUIRE(found != rows.end());
  return *found;
}

// "R1 42, R3 15, ..." with what is kept first.
std::string counts_of(const std::string& table) {
  std::map<std::string, int> counts;
  for (const ServingRow& row : shipped_rows())
    if (row.id.starts_with(table + ":")) ++counts[row.rule.empty() ? "" : row.rule];
  std::string text = fmt::format("kept {}", counts[""]);
  for (const auto& [rule, count] : counts)
    if (!rule.empty()) text += fmt::format(", {} {}", rule, count);
  return text;
}

const std::string header =
    "source,measured_date,concurrency,system,model_path,precision,backend,backend_version,mode,isl,"
    "osl,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,silicon_ttft_ms,"
    "silicon_tpot_ms\n";

std::vector<ServingRow> read_text(const std::string& text, const std::string& file = "own.csv") {
  return make_reader().read({parse_csv(text, file)});
}

std::string error_of(const std::string& text) {
  try {
    read_text(text);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("shipped serving tables: how many rows each rule leaves out") {
  // As in the study of these tables, but that 119 rows which are in the dashboard's table too, and
  // would fall to R2 beside it, have no workers: they fall to R5.
  CHECK(counts_of("inferencex_h100") == "kept 392, R1 42, R10 78, R10b 6, R3 15, R5 50");
  CHECK(counts_of("inferencex_h200") == "kept 89, R1 160, R12 51, R5 91, R7 2, R8 1, R9b 21");
  CHECK(counts_of("inferencex_b200") == "kept 177, R1 484, R5 147, R6 7, R7 25");
  CHECK(counts_of("inferencex_b300") == "kept 32, R1 59, R5 67");
  CHECK(counts_of("inferencex_gb200") == "kept 33, R1 158, R3 4, R4 55, R5 227, R6 15");
  CHECK(counts_of("inferencex_gb300") == "kept 0, R1 151, R5 67");
  CHECK(counts_of("inferencex_dsv3") == "kept 469, R14c 21");
  CHECK(counts_of("trtllm_perf_overview") == "kept 151");
  CHECK(counts_of("splitwise_h100_a100") == "kept 152, R16 1032, R17 76");
  CHECK(counts_of("token_position") == "kept 52");
  CHECK(shipped_rows().size() == 4659);
  const auto stalled = std::count_if(
      shipped_rows().begin(), shipped_rows().end(),
      [](const ServingRow& row) { return row.rule.empty() && !row.measured.ttft_skipped.empty(); });
  CHECK(stalled == 18);
}

TEST_CASE("shipped serving tables: every row is kept or says why not") {
  std::set<std::string> ids, reasons;
  for (const ServingRow& row : shipped_rows()) {
    INFO(row.id);
    CHECK(ids.insert(row.id).second);
    if (!row.rule.empty()) {
      CHECK_FALSE(row.skipped.empty());
      continue;
    }
    CHECK_FALSE(row.group.empty());
    if (!row.skipped.empty()) {
      reasons.insert(row.skipped);
      continue;
    }
    CHECK_FALSE(row.cluster.empty());
    CHECK_FALSE(row.model.empty());
    CHECK(row.software.speculation != ServingSpeculation::unknown);
    CHECK(load_stack(row.software.stack, {}, data_root() / "workloads/catalog/stacks")
              .serving.engine);
    const EngineLayout& layout = row.engine.layout;
    if (layout.ep * layout.etp > 1)
      CHECK(layout.ep * layout.etp == layout.tp * layout.attention_dp);
    CHECK((row.measured.tpot || row.measured.tokens_s_gpu));
    CHECK((row.engine.limits.token_budget || row.engine.limits.chunk));
    CHECK(row.engine.limits.max_sequences.value_or(0) > 0);
  }
  for (const std::string& reason : reasons) {
    INFO(reason);
    CHECK((reason.starts_with("no model") || reason.starts_with("weights of")));
  }
}

TEST_CASE("rules say what they leave out and why") {
  const std::map<std::string, std::pair<std::string, std::string>> examples = {
      {"inferencex_b200:338",
       {"R1",
        "the same measurement as inferencex_dsv3:98 (TTFT and TPOT equal to the last digit)"}},
      {"inferencex_b300:147",
       {"R1",
        "the same measurement as inferencex_b300:49 (TTFT and TPOT equal to the last digit)"}},
      {"inferencex_h100:79", {"R3", "the concurrency is not given, so the load is unknown"}},
      {"inferencex_gb200:213",
       {"R4",
        "\"aggregated\" with tp 36 is the sum of the GPUs of a disaggregated deployment, its "
        "workers are unknown"}},
      {"inferencex_h100:492",
       {"R5", "disaggregated, and the numbers of prefill and decode workers are not given"}},
      {"inferencex_b200:27",
       {"R6",
        "batch_size 56 is not concurrency 224 / attention DP 1: replicas or attention DP are not "
        "told, so neither are the GPUs"}},
      {"inferencex_h200:248",
       {"R7", "DeepSeek-R1 without a label: speculative decoding may be on or off"}},
      {"inferencex_h200:168",
       {"R8",
        "a second run of the same deployment has 4.00 times less TPOT and fits its neighbours in "
        "concurrency, this one does not"}},
      {"inferencex_h200:76",
       {"R9b",
        "75% of the FLOP/s peak while decoding: cached prompts or a rate limit, which the table "
        "does not tell"}},
      {"inferencex_h100:1",
       {"R10",
        "TTFT is about half of the prefills of all prompts in flight and grows with their number: "
        "one wave of prompts, no steady state"}},
      {"inferencex_h100:83",
       {"R10b",
        "requests wait longer than they run and longer than all prefills take: fewer run at once "
        "than the concurrency, and the limit is not told"}},
      {"inferencex_h200:25",
       {"R12",
        "TPOT does not change with the batch and is over 3 times what its bytes take: run without "
        "CUDA graphs, which the table does not tell"}},
      {"inferencex_dsv3:56",
       {"R14c",
        "mean TTFT is 6.7 to 9.2 s in 21 runs of this campaign whatever the concurrency (4 to "
        "128): a stall of about 76 s in the first of ten waves (kernels compiled), which is in "
        "TPOT too"}},
      {"splitwise_h100_a100:701",
       {"R16", "trial of the same run as splitwise_h100_a100:703, which has the median TPOT"}},
      {"splitwise_h100_a100:847",
       {"R17", "the GPUs were capped in power, so their clocks are not the product's"}}};
  for (const auto& [id, expected] : examples) {
    INFO(id);
    CHECK(row_of(id).rule == expected.first);
    CHECK(row_of(id).skipped == expected.second);
  }
}

TEST_CASE("prompts that the server cut into more tokens than the client are as long as served") {
  const ServingRow& row = row_of("inferencex_dsv3:236");
  CHECK(row.skipped.empty());
  CHECK(row.load.prompt_tokens == 41'206);  // 8,192, 35,921 for 7,140
}

TEST_CASE("a stall leaves TPOT and takes TTFT out") {
  const ServingRow& falling = row_of("inferencex_dsv3:356");
  CHECK(falling.skipped.empty());
  CHECK(falling.measured.ttft_skipped ==
        "4.46 s at concurrency 24, but 1.84 s at a higher one of the same deployment: a stall "
        "(compilation, connection) is in the mean");
  const ServingRow& twin = row_of("inferencex_dsv3:155");
  CHECK(twin.skipped.empty());
  CHECK(twin.measured.ttft_skipped ==
        "the same run on the dashboard has a 99th percentile of 78 s at a median of 0.87 s: "
        "kernels compiled during the run");
  CHECK(row_of("inferencex_dsv3:112").measured.ttft_skipped.empty());
}

TEST_CASE("repairs make sizes fit their accelerators") {
  const auto layout = [](const std::string& id) {
    const EngineLayout& l = row_of(id).engine.layout;
    return fmt::format("tp{} dp{} ep{} etp{} on {}", l.tp, l.attention_dp, l.ep, l.etp,
                       row_of(id).gpus());
  };
  CHECK(layout("inferencex_b200:513") == "tp8 dp1 ep8 etp1 on 8");   // A1: tp 64
  CHECK(layout("inferencex_b200:518") == "tp1 dp8 ep8 etp1 on 8");   // A2: attention DP 64
  CHECK(layout("inferencex_b200:12") == "tp4 dp1 ep4 etp1 on 4");    // A3: EP 16
  CHECK(layout("inferencex_h200:34") == "tp1 dp4 ep1 etp4 on 4");    // A4
  CHECK(layout("inferencex_dsv3:325") == "tp1 dp4 ep4 etp1 on 20");  // A5
  CHECK(row_of("inferencex_gb200:35").engine.layout.precision == PrecisionRecipe::bf16);  // A8
  // A11: TP8 in the table until November 2025; experts and attention by InferenceX's search space.
  CHECK(layout("inferencex_dsv3:461") == "tp8 dp1 ep8 etp1 on 8");  // H200
  CHECK(layout("inferencex_dsv3:451") == "tp1 dp8 ep8 etp1 on 8");  // 64 clients, long prompts
  CHECK(layout("inferencex_dsv3:86") == "tp8 dp1 ep8 etp1 on 8");   // B200 in fp4, 32 clients
  CHECK(layout("inferencex_dsv3:141") == "tp8 dp1 ep8 etp1 on 8");  // SGLang
  CHECK(layout("inferencex_dsv3:75") == "tp1 dp8 ep8 etp1 on 8");   // 256 clients
  CHECK(layout("inferencex_dsv3:117") == "tp8 dp1 ep1 etp8 on 8");  // 2026: as the table has it
  const ServingRow& disaggregated = row_of("inferencex_dsv3:1");
  CHECK(disaggregated.disaggregated);
  CHECK(disaggregated.gpus() == 16);
  CHECK(disaggregated.prefill.layout.attention_dp == 8);
}

TEST_CASE("what a precision means depends on whose checkpoint and engine it is") {
  const auto format = [](const std::string& id) {
    const EngineLayout& l = row_of(id).engine.layout;
    return fmt::format("{}, cache {}", to_text(l.precision), to_text(l.cache));
  };
  CHECK(format("inferencex_dsv3:112") == "fp8-blockwise, cache fp8");   // TensorRT-LLM, B200
  CHECK(format("inferencex_dsv3:432") == "fp8-blockwise, cache bf16");  // SGLang, H200
  CHECK(format("inferencex_dsv3:45") == "fp8-blockwise, cache fp8");    // SGLang, B200
  CHECK(format("inferencex_dsv3:8") == "nvfp4, cache fp8");
  CHECK(format("inferencex_h100:200") == "fp8-blockwise, cache fp8");  // Qwen3-235B's own
  CHECK(format("inferencex_h100:300") == "fp8-blockwise, cache fp8");  // Qwen3-32B
  CHECK(format("trtllm_perf_overview:40").starts_with("fp8-current"));
  CHECK(format("inferencex_b200:1") == "nvfp4, cache fp8");  // Kimi-K2.5, vLLM
  CHECK(format("splitwise_h100_a100:703") == "fp16, cache bf16");
  CHECK(row_of("inferencex_b200:1").model == "kimi-k2.5");
  const auto own = read_text(header +
                             ",,8,h100_sxm,meta-llama/Llama-3.1-8B,fp8,vllm,0.16.0,agg,1024,128,8,"
                             "1,1,1,1,1,60,8\n"
                             ",,8,b200_sxm,openai/gpt-oss-120b,fp4,vllm,0.16.0,agg,1024,128,8,1,1,"
                             "1,1,1,61,8\n");
  CHECK(own[0].engine.layout.precision == PrecisionRecipe::fp8_current);
  CHECK(own[1].engine.layout.precision == PrecisionRecipe::mxfp4);
}

TEST_CASE("recipes and defaults set an engine's limits") {
  const ServingRow& sglang = row_of("inferencex_dsv3:45");  // B200, fp8, 32 users
  CHECK(sglang.engine.limits.chunk == 32768);
  CHECK(sglang.engine.limits.max_sequences == 128);
  CHECK(sglang.engine.limits.receive_interval == 30);
  CHECK_FALSE(sglang.engine.limits.token_budget);
  CHECK(sglang.software.gemm == Library::flashinfer_blocks);  // DeepGEMM was off
  CHECK(row_of("inferencex_dsv3:172").software.gemm == Library::flashinfer_blocks);
  CHECK(row_of("inferencex_dsv3:196").software.gemm == Library::deepgemm);   // on from March 2026
  CHECK_FALSE(row_of("inferencex_dsv3:307").software.gemm);                  // GB200, attention DP
  CHECK(row_of("inferencex_dsv3:54").engine.limits.receive_interval == 10);  // 4 users
  const ServingRow& mtp = row_of("inferencex_b200:60");
  CHECK(mtp.software.speculation == ServingSpeculation::mtp);
  CHECK(mtp.software.drafts == 2);
  CHECK(mtp.engine.limits.chunk == 16384);
  // TensorRT-LLM: 16 sequences of 4 tokens, a prompt of 1,024 and 64 tokens, in steps of 64.
  const ServingRow& trt = row_of("inferencex_h200:267");
  CHECK(trt.software.drafts == 3);
  CHECK(trt.engine.limits.token_budget == 1152);
  CHECK(trt.engine.limits.max_sequences == 16);
  CHECK(row_of("inferencex_h200:250").engine.limits.balance_steps == 60);  // attention DP
  CHECK_FALSE(trt.engine.limits.balance_steps);
  CHECK(row_of("inferencex_dsv3:112").engine.limits.token_budget == 8192);
  // Its script captures steps with prompts from 64 clients on.
  CHECK_FALSE(row_of("inferencex_dsv3:112").engine.limits.mixed_graph_rows);
  CHECK(row_of("inferencex_dsv3:107").engine.limits.mixed_graph_rows == 8192);
  CHECK_FALSE(row_of("inferencex_dsv3:112").engine.limits.batch_wait_steps);
  CHECK(row_of("inferencex_dsv3:107").engine.limits.batch_wait_steps == 40);
  CHECK(row_of("inferencex_dsv3:107").engine.limits.batch_wait_tokens == 0.8);
  // Scripts of GLM-5 on H200 alone keep SGLang's prefix cache.
  CHECK(row_of("inferencex_h200:145").engine.limits.prefix_cache);
  CHECK_FALSE(mtp.engine.limits.prefix_cache);
  CHECK(row_of("inferencex_dsv3:306").engine.limits.graphs.back().to == 1024);
  CHECK(row_of("inferencex_dsv3:306").prefill.limits.graphs.empty());
  CHECK(row_of("inferencex_b200:2").engine.limits.token_budget == 16384);  // twice the prompt
  CHECK(row_of("inferencex_h100:500").rule == "R5");
  // One prompt of 8,192 tokens at once on a rank.
  CHECK(row_of("inferencex_dsv3:1").prefill.limits.token_budget == 8320);
  CHECK(row_of("inferencex_dsv3:1").prefill.limits.max_sequences == 1);
  // Four attention-DP ranks share chunks of 131,072.
  CHECK(row_of("inferencex_dsv3:325").prefill.limits.chunk == 32768);
  // Dynamo's release is none of the engine's: that of the date is taken.
  CHECK(row_of("inferencex_dsv3:1").software.release == "0.8.1.post2");
  CHECK_FALSE(row_of("inferencex_dsv3:1").software.stack.ends_with("@0.8.1"));
  CHECK(row_of("inferencex_dsv3:112").software.stack == "trtllm@1.2");
}

TEST_CASE("campaigns differ in lengths and prompts") {
  const ServingRow& inferencex = row_of("inferencex_dsv3:45");
  CHECK(inferencex.load.shortest == 0.8);
  CHECK(inferencex.load.prompts == 320);
  CHECK(inferencex.measured.ttft == Approx(0.51189));
  CHECK(inferencex.measured.tokens_derived);
  // 32 users, 0.9 of 8,192 tokens, 8 GPUs
  CHECK(*inferencex.measured.tokens_s_gpu ==
        Approx(32 * 7372.8 / (0.51189 + 7371.8 * 0.016747) / 8));
  const ServingRow& gap = row_of("inferencex_h100:200");
  CHECK(gap.load.shortest == 1);
  CHECK(gap.campaign == "aic-gap");
  CHECK(row_of("token_position:1").measured.statistic == ServingStatistic::median);
  CHECK_FALSE(row_of("trtllm_perf_overview:1").load.concurrency);
}

TEST_CASE("engines are warm where a campaign sends requests first that do not count") {
  int warm = 0, cold = 0;
  for (const ServingRow& row : shipped_rows()) {
    INFO(row.id << " of " << row.date);
    if (row.campaign == "aic-gap") CHECK(row.load.warmed);
    if (row.campaign != "inferencex" || !row.rule.empty()) continue;
    const bool later = row.date.empty() || row.date >= "2026-01-27";
    CHECK(row.load.warmed == (row.disaggregated || later));
    ++(row.load.warmed ? warm : cold);
  }
  CHECK(warm > 100);
  CHECK(cold > 100);
}

TEST_CASE("clients find the deployment that names them, or the smallest that holds them") {
  const ServingRecipes recipes =
      load_serving_recipes(data_root() / "validation/serving_recipes.json");
  const ServingDeployments& known = recipes.deployments.front();
  REQUIRE(known.family == "deepseek-v3");
  ServingDeployment asked{.gpu = "gb200",
                          .precision = "fp4",
                          .isl = 1024,
                          .osl = 1024,
                          .prefill = 1,
                          .decode = 4,
                          .gpus = 8};
  // Four engines for one sequence each, for 32, or (in 2025) for 128.
  CHECK(known.find(asked, 4)->batch == 1);
  CHECK(known.find(asked, 6)->batch == 1);
  CHECK(known.find(asked, 12)->batch == 32);
  CHECK(known.find(asked, 192)->batch == 32);
  CHECK(known.find(asked, 193)->batch == 128);
  CHECK(known.find(asked, 768)->batch == 128);
  CHECK(known.find(asked, 769) == nullptr);
  asked.attention_dp = true;
  CHECK(known.find(asked, 12) == nullptr);
  const ServingDeployment named{.gpu = "gb300",
                                .precision = "fp8",
                                .isl = 1024,
                                .osl = 1024,
                                .guesses = true,
                                .prefill = 1,
                                .decode = 4,
                                .gpus = 8};
  CHECK(known.find(named, 8)->batch == 1);
}

TEST_CASE("labels that the file of a deployment contradicts are corrected") {
  std::map<std::string, int> seen;
  for (const ServingRow& row : shipped_rows()) {
    if (!row.disaggregated || row.campaign != "inferencex" || !row.rule.empty()) continue;
    INFO(row.id << " of " << row.date);
    const EngineLayout& prompts = row.prefill.layout;
    const std::string key = row.family + " " + row.software.framework + " " + row.gpu;
    const bool longer = row.load.prompt_tokens > 1024;
    if (key == "deepseek-v3 trtllm h200") {
      CHECK(prompts.attention_dp == (longer ? 1 : 8));
      CHECK(prompts.tp == (longer ? 8 : 1));
      CHECK(prompts.ep == 8);
    } else if (key == "kimi-k2.5 vllm gb200") {
      CHECK(prompts.attention_dp == 4);
      CHECK(row.engine.layout.attention_dp == (*row.load.concurrency >= 256 ? 16 : 1));
    } else if (key == "deepseek-v3 trtllm b200" && row.precision == "fp8" && longer) {
      CHECK(prompts.ep == 1);
    } else {
      continue;
    }
    ++seen[key];
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("rows of the fixed list stay scored, in their groups") {
  const CsvTable list = read_csv(data_root() / "validation/serving_scored.csv");
  std::map<std::string, const ServingRow*> rows;
  for (const ServingRow& row : shipped_rows()) rows[row.id] = &row;
  std::size_t lost = 0;
  std::set<std::string> groups;
  for (std::size_t i = 0; i < list.rows.size(); ++i) {
    const CsvRow cells(list, i);
    const auto found = rows.find(cells.text("id"));
    groups.insert(cells.text("group"));
    const bool stays = found != rows.end() && found->second->rule.empty() &&
                       found->second->measured.tpot &&
                       found->second->group == cells.text("group") &&
                       found->second->software.speculation == ServingSpeculation::none;
    if (stays) continue;
    ++lost;
    UNSCOPED_INFO(cells.text("id") << " is scored no longer");
  }
  CHECK(lost == 0);
  CHECK(list.rows.size() == 806);
  CHECK(groups.size() == 16);
}

TEST_CASE("bad cells of a serving table are one error with file and line") {
  const std::string good = ",2026-03-25,8,h100_sxm,Qwen/Qwen3-32B,bf16,vllm,0.12.0,agg,1024,128,";
  CHECK(error_of(header + good + "8,1,1,1,1,1,50,10\n") == "no error");
  const std::string negative =
      ",,-8,h100_sxm,Qwen/Qwen3-32B,bf16,vllm,0.12.0,agg,1024,128,8,1,1,1,1,1,50,10\n";
  CHECK(error_of(header + good + "8,1,1,1,1,1,50,10\n" + negative) ==
        "own.csv: line 3, column concurrency: found \"-8\"; expected a number above 0");
  CHECK(error_of(header + good + "8,1,1,1,1,1,fast,10\n") ==
        "own.csv: line 2, column silicon_ttft_ms: found \"fast\"; expected a number");
  CHECK(error_of(header + good + "8,1.5,1,1,1,1,50,10\n") ==
        "own.csv: line 2, column tp_size: found \"1.5\"; expected a whole number");
  CHECK(error_of(header + good + "8,-2,1,1,1,1,50,10\n").find("column tp_size") !=
        std::string::npos);
  const std::string mode =
      ",,8,h100_sxm,Qwen/Qwen3-32B,bf16,vllm,0.12.0,both,1024,128,8,1,1,1,1,1,50,10\n";
  CHECK(error_of(header + mode) ==
        "own.csv: line 2, column mode: found \"both\"; expected agg or disagg");
  const std::string date =
      ",soon,8,h100_sxm,Qwen/Qwen3-32B,bf16,vllm,0.12.0,agg,1024,128,8,1,1,1,1,1,50,10\n";
  CHECK(error_of(header + date).find("column measured_date") != std::string::npos);
  const std::string missing = error_of("system,model_path,silicon_ttft_ms\nh100_sxm,a,1\n");
  CHECK(missing.starts_with("own.csv"));
  CHECK(missing.find("precision") != std::string::npos);
}

TEST_CASE("users' rows are read by their columns, and none is missing") {
  const auto rows = read_text(
      header +
          ",,8,h100_sxm,somebody/Unheard-Of-7B,bf16,vllm,0.12.0,agg,1024,128,8,1,1,1,1,1,51,41\n"
          ",,8,h100_sxm,Qwen/Qwen3-32B,bf16,atom,0.1,agg,1024,128,8,1,1,1,1,1,52,42\n"
          ",,8,zx81,Qwen/Qwen3-32B,bf16,vllm,0.12.0,agg,1024,128,8,1,1,1,1,1,53,43\n"
          ",,8,h100_sxm,Qwen/Qwen3-32B,ternary,vllm,0.12.0,agg,1024,128,8,2,1,1,1,1,54,44\n"
          ",,8,h100_sxm,Qwen/Qwen3-32B,int4,vllm,0.12.0,agg,1024,128,8,2,1,1,1,1,55,45\n"
          ",,8,h100_sxm,Qwen/Qwen3-32B,bf16,vllm,nightly,agg,1024,128,8,2,1,1,1,1,56,46\n"
          ",,8,h100_sxm,Qwen/Qwen3-32B,bf16,vllm,0.12.0,agg,1024,128,8,4,1,1,1,1,,\n"
          ",,8,h100_sxm,Qwen/Qwen3-32B,bf16,vllm,0.12.0,agg,1024,128,8,,1,1,1,1,57,47\n"
          ",,8,h100_sxm,Qwen/Qwen3-32B,bf16,vllm,0.12.0,disagg,1024,128,8,,1,1,1,1,58,48\n",
      "folder/mine.csv");
  REQUIRE(rows.size() == 9);
  CHECK(rows[0].id == "mine:1");
  CHECK(rows[0].skipped == "no model \"somebody/Unheard-Of-7B\" in the catalogue");
  CHECK(rows[1].skipped ==
        "no serving engine \"atom\" in the catalogue (there are vllm, sglang and trtllm)");
  CHECK(rows[2].skipped == "accelerator \"zx81\" is not in aliases.json");
  CHECK(rows[3].skipped == "no format \"ternary\" of weights is known");
  CHECK(rows[4].skipped.empty());
  CHECK(rows[4].engine.layout.precision == PrecisionRecipe::int4);
  CHECK(rows[5].skipped.empty());
  CHECK(rows[5].software.stack.starts_with("vllm@"));
  CHECK(rows[6].skipped == "the table tells no latency and no throughput");
  CHECK(rows[7].skipped == "tensor parallelism is not told");
  CHECK(rows[8].rule == "R5");
}

TEST_CASE("a row's own id and label of speculation count") {
  const auto rows = read_text("id,spec_method," + header +
                              "A7,mtp,,2026-03-25,8,h200_sxm,deepseek-ai/DeepSeek-R1,fp8,sglang,"
                              "0.5.9,agg,1024,1024,8,8,1,1,8,1,200,9\n"
                              "A8,,,2026-07-25,8,h200_sxm,deepseek-ai/DeepSeek-R1,fp8,sglang,"
                              "0.5.9,agg,1024,1024,8,8,1,1,8,1,300,19\n"
                              "A9,,,2026-03-25,8,h200_sxm,deepseek-ai/DeepSeek-R1,fp8,sglang,"
                              "0.5.9,agg,1024,1024,8,8,1,1,8,1,400,29\n");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].id == "A7");
  CHECK(rows[0].software.speculation == ServingSpeculation::mtp);
  CHECK(rows[1].rule == "R7");
  CHECK(rows[2].software.speculation == ServingSpeculation::none);  // its campaign is labelled
  CHECK_FALSE(is_serving_table(parse_csv("id,gpu,library,collective,ranks,time_us\n", "c.csv")));
  CHECK(is_speculation_labels(
      read_csv(data_root() / "validation/measurements/serving/speculation_labels.csv")));
}
