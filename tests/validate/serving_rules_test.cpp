// SPDX-License-Identifier: Apache-2.0
// Tests rules and repairs of serving tables that do not ship, on rows made for them.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/validate/serving/serving_recipes.h"
#include "sim/validate/serving/serving_rows.h"
#include "tests/base/scratch_folder.h"

using namespace orrery;

namespace {

std::vector<ServingRow> read_texts(const std::vector<std::pair<std::string, std::string>>& texts) {
  ServingReader reader(load_aliases(data_root() / "validation/aliases.json"));
  std::vector<CsvTable> tables;
  for (const auto& [file, text] : texts) tables.push_back(parse_csv(text, file));
  return reader.read(tables);
}

// A run of InferenceX's dashboard; throughput follows from the latencies.
struct Run {
  std::string date = "2026-01-01";
  double concurrency = 8, tpot = 0.01, ttft = 0.2, median_ttft = 0.2, p99_ttft = 0.4, output = 1;
  std::string method = "none", framework = "sglang";
  int tp = 8, ep = 1;
  bool attention_dp = false;
};

constexpr double nominal = 1024, mean_length = 0.9 * nominal;

double e2e(const Run& run) { return run.ttft + (mean_length - 1) * run.tpot; }

const std::string dashboard_header =
    "model,hardware,framework,precision,spec_method,disagg,prefill_tp,prefill_ep,"
    "prefill_dp_attention,prefill_num_workers,decode_tp,decode_ep,decode_dp_attention,"
    "decode_num_workers,num_prefill_gpu,num_decode_gpu,isl,osl,conc,image,date,mean_e2el,mean_tpot,"
    "mean_ttft,median_tpot,median_ttft,output_tput_per_gpu,p99_ttft\n";

std::string figures(const Run& run, int gpus) {
  return fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{}\n", nominal, nominal, run.concurrency, "repository:v0.5.9",
      run.date, e2e(run), run.tpot, run.ttft, run.tpot, run.median_ttft,
      fmt::format("{},{}", run.output * run.concurrency * mean_length / e2e(run) / gpus,
                  run.p99_ttft));
}

std::string aggregated(const Run& run) {
  const std::string dp = run.attention_dp ? "True" : "False";
  return fmt::format("dsr1,b200,{},fp8,{},False,{},{},{},0,{},{},{},0,{},{},", run.framework,
                     run.method, run.tp, run.ep, dp, run.tp, run.ep, dp, 64, 64) +
         figures(run, run.tp);
}

std::vector<ServingRow> dashboard(const std::vector<Run>& runs) {
  std::string text = dashboard_header;
  for (const Run& run : runs) text += aggregated(run);
  return read_texts({{"d.csv", text}});
}

const std::string inferencex_header =
    "source,measured_date,concurrency,system,model_path,precision,backend,backend_version,mode,isl,"
    "osl,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,"
    "prefill_num_workers,prefill_tp_size,decode_num_workers,decode_tp_size,silicon_ttft_ms,"
    "silicon_tpot_ms\n";

}  // namespace

TEST_CASE(
    "dashboard: an aggregated deployment has its tensor-parallel ranks, whatever is counted") {
  const auto rows = dashboard({{.tp = 8, .ep = 8}, {.tp = 4, .ep = 4, .attention_dp = true}});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].gpus() == 8);  // 64 in the table
  CHECK(rows[0].engine.layout.ep == 8);
  CHECK(rows[0].measured.statistic == ServingStatistic::mean);
  CHECK(rows[0].software.stack == "sglang@0.5.9");
  CHECK_FALSE(rows[0].measured.tokens_derived);
  CHECK(rows[1].engine.layout.tp == 1);
  CHECK(rows[1].engine.layout.attention_dp == 4);
}

TEST_CASE("dashboard: workers have their share of accelerators, throughput is of all of them") {
  const Run run;
  const std::string start = "dsr1,gb200,dynamo-sglang,fp8,none,True,1,1,True,2,1,1,True,1,16,32,";
  const std::string sums = "dsr1,gb200,dynamo-trt,fp8,none,True,16,1,False,0,16,1,False,0,16,16,";
  const auto rows = read_texts(
      {{"d.csv", dashboard_header + start + figures(run, 32) + sums + figures(run, 16)}});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].skipped.empty());
  CHECK(rows[0].prefill.count == 2);
  CHECK(rows[0].prefill.layout.attention_dp == 8);
  CHECK(rows[0].prefill.layout.ep == 8);
  CHECK(rows[0].engine.layout.attention_dp == 32);
  CHECK(rows[0].gpus() == 48);
  CHECK(*rows[0].measured.tokens_s_gpu == Approx(8 * mean_length / e2e(run) / 48).epsilon(1e-4));
  CHECK(rows[1].rule == "R4");
  CHECK(rows[1].skipped == "disaggregated with 0 workers, tp 16 is the sum of all GPUs");
}

TEST_CASE("the same run in two tables counts once and keeps its label") {
  const std::string run =
      ",2026-01-01,8,b200_sxm,deepseek-ai/"
      "DeepSeek-R1,fp8,sglang,0.5.9,agg,1024,1024,8,8,1,1,8,1,,,,"
      ",200.004,10\n";
  const std::string untold =
      ",2026-01-01,8,b200_sxm,deepseek-ai/"
      "DeepSeek-R1,fp8,sglang,0.5.9,disagg,1024,1024,8,,,,,,,8,,8"
      ",300,12\n";
  const auto rows = read_texts(
      {{"i.csv", inferencex_header + run + untold},
       {"d.csv",
        dashboard_header +
            aggregated({.ttft = 0.200004, .median_ttft = 0.2, .p99_ttft = 90, .method = "mtp"}) +
            aggregated({.tpot = 0.012, .ttft = 0.3})}});
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].rule.empty());
  CHECK(rows[0].software.speculation == ServingSpeculation::mtp);
  CHECK_FALSE(rows[0].measured.tokens_derived);
  CHECK(rows[0].measured.ttft_skipped ==
        "the same run in d:1 has a 99th percentile of 90 s at a median of 0.20 s: kernels compiled "
        "during the run");
  CHECK(rows[2].rule == "R2");
  CHECK(rows[2].skipped.starts_with("the same measurement as i:1"));
  CHECK(rows[1].rule == "R2");  // without workers the labelled row stays
  CHECK(rows[1].skipped == "the same measurement as d:2, which prints workers and speculation");
  CHECK(rows[3].rule.empty());
}

TEST_CASE("a campaign that the dashboard labels as one labels its other rows") {
  const auto row = [](const char* date, int ttft) {
    return fmt::format(
        ",{},16,b200_sxm,deepseek-ai/DeepSeek-R1,fp8,sglang,0.5.9,agg,1024,1024,16,8,1,1,8,1,,,,,"
        "{},11\n",
        date, ttft);
  };
  const auto rows = read_texts(
      {{"i.csv", inferencex_header + row("2026-05-01", 250) + row("2026-05-02", 260)},
       {"d.csv", dashboard_header + aggregated({.date = "2026-05-01", .method = "mtp"}) +
                     aggregated({.date = "2026-05-01", .concurrency = 4, .method = "mtp"}) +
                     aggregated({.date = "2026-05-02"}) +
                     aggregated({.date = "2026-05-02", .concurrency = 4, .method = "mtp"})}});
  CHECK(rows[0].software.speculation == ServingSpeculation::mtp);
  CHECK(rows[0].software.speculation_from == "campaign");
  CHECK(rows[1].rule == "R7");
}

TEST_CASE("throughput that contradicts latency leaves a row out") {
  const auto rows = dashboard({{.output = 1.9}, {.concurrency = 16, .output = 2.1}});
  CHECK(rows[0].rule.empty());
  CHECK(rows[1].rule == "R13");
  CHECK(rows[1].skipped == "printed throughput and latency differ 0.5 times");
}

TEST_CASE("a stall in the percentiles takes TTFT out") {
  const auto rows = dashboard({{.ttft = 3, .median_ttft = 0.8, .p99_ttft = 73},
                               {.concurrency = 16, .ttft = 3, .median_ttft = 0.8, .p99_ttft = 40}});
  CHECK(rows[0].skipped.empty());
  CHECK(rows[0].measured.ttft_skipped ==
        "a stall of 73 s (99th percentile; median 0.80 s): kernels compiled during the run");
  CHECK(rows[1].measured.ttft_skipped.empty());
}

TEST_CASE("an outlier among reruns goes, and a day whose other runs are outliers") {
  const auto rows = dashboard({{.date = "2026-01-01", .tpot = 0.010},
                               {.date = "2026-02-01", .tpot = 0.016},
                               {.date = "2026-03-01", .tpot = 0.010},
                               {.date = "2026-01-01", .concurrency = 16, .tpot = 0.010},
                               {.date = "2026-02-01", .concurrency = 16, .tpot = 0.016},
                               {.date = "2026-01-01", .concurrency = 32, .tpot = 0.010},
                               {.date = "2026-04-01", .concurrency = 32, .tpot = 0.016}});
  CHECK(rows[1].rule == "R14b");
  CHECK(rows[1].skipped ==
        "TPOT is 1.60 times that of an earlier run of the same deployment and 1.60 times that of a "
        "later one");
  CHECK(rows[4].rule == "R14b");
  CHECK(rows[4].skipped.ends_with("on a day (2026-02-01) whose other runs are outliers too"));
  for (const std::size_t kept : {0, 2, 3, 5, 6}) CHECK(rows[kept].rule.empty());
}

TEST_CASE("one TTFT far over those of its reruns is not scored") {
  const auto rows = dashboard({{.date = "2026-01-01", .ttft = 0.2},
                               {.date = "2026-01-02", .ttft = 0.2},
                               {.date = "2026-01-03", .ttft = 0.9}});
  CHECK(rows[2].measured.ttft_skipped == "4 times the median of 3 runs of the same deployment");
  CHECK(rows[0].measured.ttft_skipped.empty());
}

TEST_CASE("a build whose runs are much slower than the next image within 60 days goes") {
  const auto rows = dashboard({{.date = "2026-01-01", .tpot = 0.020},
                               {.date = "2026-02-01", .tpot = 0.010},
                               {.date = "2026-01-01", .concurrency = 64, .tpot = 0.030},
                               {.date = "2025-10-01", .concurrency = 128, .tpot = 0.020},
                               {.date = "2026-02-01", .concurrency = 128, .tpot = 0.010}});
  CHECK(rows[0].rule == "R18");
  CHECK(rows[0].skipped ==
        "in this campaign (sglang on b200, 2026-01-01) TPOT is up to 2.0 times that of the next "
        "image within 60 days: a defect of that build");
  CHECK(rows[2].rule == "R18");  // of the same campaign
  CHECK(rows[1].rule.empty());
  CHECK(rows[3].rule.empty());  // 123 days lie between
}

TEST_CASE("requests that would need more than the peak go") {
  const auto row = [](int users, double tpot) {
    return fmt::format(
        "mine-{},,{},h100_sxm,Qwen/Qwen3-32B,bf16,vllm,0.12.0,agg,1024,1024,{},1,1,1,1,1,,,,,50,{}"
        "\n",
        users, users, users, tpot);
  };
  const auto rows = read_texts(
      {{"i.csv", inferencex_header + row(256, 5) + row(150, 25) + row(8, 20) + row(4, 2)}});
  CHECK(rows[0].rule == "R9");
  CHECK(rows[1].rule == "R9b");
  CHECK(rows[2].rule.empty());
  CHECK(rows[3].rule == "R9c");  // 65 GB in 2 ms
  // An accelerator without bf16 and FP8 has its peak of fp16.
  std::string old = inferencex_header;
  for (const char* precision : {"bf16", "fp8"})
    old += fmt::format(
        ",,2,V100,meta-llama/Llama-3.1-8B,{},vllm,0.12.0,agg,512,128,2,8,1,1,1,1,,,,,"
        "90,20\n",
        precision);
  for (const ServingRow& read : read_texts({{"v.csv", old}})) CHECK(read.rule.empty());
}

TEST_CASE("stages of an untold load, and contradicting or repeated throughput") {
  const auto rows =
      read_texts({{"b.csv",
                   "exp_id,model,hardware,tp,stage,ttft_mean_ms,itl_mean_ms\n"
                   "60,meta-llama/Llama-3.1-70B-Instruct,H100,4,0,53.7,18.3\n"},
                  {"o.csv",
                   "doc_version,model,gpu,parallel,num_gpus,precision,isl,osl,output_tok_s_total,"
                   "output_tok_s_per_gpu\n"
                   "v1.0 doc,Llama-3.3-70B,H100,TP2,2,FP8,128,128,8000,4000\n"
                   "v1.0 doc,Llama-3.3-70B,H100,TP2,2,FP8,128,128,8000,4000\n"
                   "v1.0 doc,Llama-3.3-70B,H100,TP2,2,FP8,128,256,9000,4000\n"}});
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].rule == "R15");
  CHECK(rows[0].skipped == "arrivals and lengths of the load are not in the table");
  CHECK(rows[1].skipped.empty());
  CHECK(rows[1].measured.tokens_s_gpu == 4000);
  CHECK(rows[2].skipped == "the same measurement as o:1");
  CHECK(rows[3].rule == "R13");
}

TEST_CASE("the order in which tables are given does not matter") {
  const std::pair<std::string, std::string> first = {
      "i.csv",
      inferencex_header +
          ",2026-01-01,8,b200_sxm,deepseek-ai/DeepSeek-R1,fp8,sglang,0.5.9,agg,1024,1024,8,"
          "8,1,1,8,1,,,,,200,10\n"};
  const std::pair<std::string, std::string> second = {
      "j.csv",
      inferencex_header +
          ",2026-01-01,8,b200_sxm,deepseek-ai/DeepSeek-V3,fp8,sglang,0.5.9,agg,1024,1024,8,"
          "8,1,1,8,1,,,,,200,10\n"};
  const auto rows = read_texts({first, second}), other = read_texts({second, first});
  CHECK(rows[0].skipped == "the same measurement as j:1 (TTFT and TPOT equal to the last digit)");
  CHECK(rows[1].skipped.empty());
  CHECK(rows[0].skipped == other[1].skipped);
  CHECK(other[0].skipped.empty());
}

TEST_CASE("prompts of a chat have the template's tokens, and limits do not") {
  int ttft = 120;  // equal ones would be one measurement
  const auto row = [&ttft](const char* source, const char* model, const char* engine) {
    return fmt::format("{},,16,h100_sxm,{},,{},agg,1024,128,16,4,1,1,1,1,,,,,{},9\n", source, model,
                       engine, ttft++);
  };
  const auto rows =
      read_texts({{"k.csv", inferencex_header + row("aic-a", "Qwen/Qwen3-32B", "trtllm,1.0.0rc3") +
                                row("aic-b", "Qwen/Qwen3-32B", "trtllm,1.2.0rc6") +
                                row("mine", "Qwen/Qwen3-32B", "trtllm,1.2.0rc6") +
                                row("aic-c", "meta-llama/Llama-3.1-8B", "vllm,0.12.0")}});
  REQUIRE(rows.size() == 4);
  for (const ServingRow& read : rows) CHECK(read.skipped.empty());
  CHECK(rows[0].load.prompt_tokens == 1032);
  CHECK(rows[0].engine.limits.token_budget == 16 + 1024 + 1000);
  CHECK(rows[1].load.prompt_tokens == 1032);
  CHECK(rows[1].engine.limits.token_budget == 16 + 1024 + 1500);
  CHECK(rows[2].load.prompt_tokens == 1024);
  CHECK(rows[3].load.prompt_tokens == 1024);
}

TEST_CASE("a file of recipes names what it gets wrong") {
  const ScratchFolder folder("serving_recipes");
  const auto error_of = [&folder](const std::string& recipes, const std::string& longer = "") {
    const std::string text =
        R"({"sources": {"s": {"repository": "r", "path": "p"}}, "engines": [], "tables": {},)"
        R"("campaigns": [{"source": "", "campaign": "c", "shortest": 1, "waves": 10}],)"
        R"("names": [], "precisions": [], "defaults": [], "known": [],)"
        R"("longer_prompts": [)" +
        longer + R"(], "recipes": [)" + recipes + "]}";
    try {
      load_serving_recipes(folder.add("recipes.json", text));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  const std::string good =
      R"({"when": {"engine": ["e"]}, "set": {"chunk": 8192}, "citation": "s"})";
  CHECK(error_of(good) == "no error");
  for (const auto& [wrong, word] : std::vector<std::pair<std::string, std::string>>{
           {R"({"when": {"machine": ["e"]}, "set": {}, "citation": "s"})", "machine"},
           {R"({"set": {"cache": "fp5"}, "citation": "s"})", "fp5"},
           {R"({"set": {"chunk": {"multiple": 0}}, "citation": "s"})", "multiple"},
           {R"({"set": {"chunk": 1}, "citation": "t"})", "sources"},
           {R"({"set": {"chunk": 1}})", "citation"}}) {
    INFO(wrong);
    CHECK(error_of(wrong).find(word) != std::string::npos);
  }
  for (const auto& [wrong, word] : std::vector<std::pair<std::string, std::string>>{
           {R"({"sentence": "s", "citation": "s"})", "times"},
           {R"({"times": 1, "sentence": "s", "citation": "s"})", "above 1"},
           {R"({"plus": 0, "sentence": "s", "citation": "s"})", "above 0"}}) {
    INFO(wrong);
    CHECK(error_of(good, wrong).find(word) != std::string::npos);
  }
  CHECK(error_of(good, R"({"plus": 8, "sentence": "s", "citation": "s"})") == "no error");
  const ServingWhen first{.releases = {"1.0.0rc3", "1.1"}};
  CHECK(first.holds({.release = "1.0.0rc3"}));
  CHECK(first.holds({.release = "1.1.0"}));
  CHECK_FALSE(first.holds({.release = "1.0.0"}));
  CHECK_FALSE(first.holds({}));
}

TEST_CASE("numbers of recipes grow with sequences and prompts") {
  const ServingNumber budget{
      .plus = 64, .per_sequence = 1, .per_prompt_token = 1, .multiple = 64, .with_drafts = true};
  CHECK(budget.at(16, 1024, 3) == 1152);
  CHECK(budget.at(16, 1024, 0) == 1152);
  CHECK(budget.at(64, 1024, 3) == 1344);
  CHECK(plain_model_name("nvidia/DeepSeek-R1-0528-NVFP4-v2") == "deepseek-r1");
  CHECK(plain_model_name("Qwen/Qwen3-235B-A22B-FP8") == "qwen3-235b-a22b");
}
