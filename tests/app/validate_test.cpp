// Tests how rows of measured runs become scenarios, and how their predictions are scored.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "hw_models/catalog.h"
#include "sim/app/validate.h"
#include "sim/app/validate_predict.h"
#include "sim/app/validate_report.h"
#include "sim/base/check.h"
#include "sim/calibrate/step_fit.h"
#include "workloads/model_catalog.h"

namespace orrery {
namespace {

Aliases shipped_aliases() { return load_aliases(data_root() / "validation/aliases.json"); }

const char* header =
    "id,source,gpu,n_gpus,interconnect,system,model,task,params_b,layers,hidden,ffn,heads,kv_heads,"
    "vocab,mlp,experts,seq,global_batch,micro_batch,tp,pp,vpp,dp,ep,zero_stage,seqpar,recompute,"
    "precision,framework,version,tokens_s_gpu,oom,notes\n";

std::vector<PreparedRow> prepare(RowReader& reader, const std::string& rows) {
  return reader.read_training(parse_csv(header + rows, "t.csv"));
}

Model catalog(const std::string& name) {
  return load_model(name, data_root() / "workloads/catalog/models");
}

}  // namespace

TEST_CASE("interconnects are read by grammar") {
  const auto rate = [](const char* text) { return parse_interconnect(text, 8).gigabits_per_gpu; };
  CHECK(rate("NVLink4 8-GPU + IB NDR 400G/GPU") == 400.0);
  CHECK(rate("NVLink4 8-GPU + EFA 3200G/node") == 400.0);
  CHECK(rate("1600Gbps RoCE") == 200.0);
  CHECK(rate("NVLink3 + 800Gbps/node (4x HDR200)") == 100.0);
  CHECK(rate("NVLink3 + 4x OmniPath 100Gb/node") == 50.0);
  CHECK(rate("NVLink3/NVSwitch 600GB/s + 8x HDR200 IB") == 200.0);
  CHECK(rate("NVLink4 + IB 8x400G") == 400.0);
  CHECK(rate("NVLink5 NVL72 domain + IB/Eth 800G") == 800.0);
  CHECK(rate("24x 100Gb/s Ethernet | 2x Mellanox ConnectX-5 Ex 100Gb/s Ethernet") == 300.0);
  CHECK(rate("NVLINK Gen4 900 GB/s + NVSWITCH Gen3 | Storage: 2x ConnectX-7 IB NDR 400Gb/s, "
             "Compute: 8x ConnectX-7 IB NDR 400Gb/s, Man") == 400.0);
  CHECK(rate("NVLink3 + IB HDR") == 200.0);
  CHECK_FALSE(rate("NVLink3").has_value());
  CHECK_FALSE(rate("").has_value());
}

TEST_CASE("machines fall back from exact rules to grammar to the usual system") {
  const Aliases aliases = shipped_aliases();
  WiringTable wirings;
  const auto chosen = [&](const char* gpu, const char* interconnect, std::int64_t gpus) {
    return choose_cluster(aliases, wirings, gpu, interconnect, "", gpus);
  };
  CHECK(chosen("A100-SXM4-80GB", "NVLink3 + 800Gbps/node (4x HDR200)", 64)->cluster ==
        "a100-4xhdr200");
  CHECK(chosen("H100-SXM5-80GB", "NVLink4 8-GPU + EFA 3200G/node", 64)->cluster == "h100-efa");
  CHECK(chosen("H200-SXM-141GB", "NVLink4 (NVLS off)", 4)->cluster == "h200-nvlink-host");
  CHECK(chosen("H100-SXM5-80GB", "NVLink4 8-GPU + IB NDR 400G/GPU", 64)->assumed.empty());
  const auto unknown = chosen("H100-SXM5-80GB", "string and tins", 64);
  CHECK(unknown->cluster == "dgx-h100");
  CHECK(unknown->assumed.size() == 1);
  CHECK(chosen("H100-SXM5-80GB", "string and tins", 8)->assumed.empty());
  CHECK_FALSE(chosen("Z80", "", 8).has_value());
}

TEST_CASE("frameworks and versions name stacks and releases") {
  const Aliases aliases = shipped_aliases();
  const auto name = [&](const char* framework, const char* version) {
    return choose_stack(aliases, framework, version).name;
  };
  CHECK(name("NeMo", "NeMo 24.07 vboost") == "nemo@24.07");
  CHECK(name("NeMo (LoRA)", "dgxc v25.02.02") == "nemo@25.02.02");
  CHECK(name("Megatron-Bridge", "NeMo 26.06.01") == "nemo@26.06.01");
  CHECK(name("NVIDIA NEMO", "MLPerf v4.1") == "nemo@24.09");
  CHECK(name("PyTorch NVIDIA Release 23.09", "MLPerf v4.1") == "nemo@23.09");
  CHECK(name("Megatron-Core", "r0.8.0") == "megatron-core@0.8");
  CHECK(name("Megatron-LM", "2021-04") == "megatron-core@0.1");
  CHECK(name("Megatron-LM 0.14", "SimuMax v1.2") == "megatron-core@0.14");
  CHECK(name("nanotron (distributed debug DETAIL, inferred)", "after_pp_fix=True") ==
        "nanotron-debug");
  CHECK(name("nanotron", "") == "nanotron");
  CHECK(name("Megatron-DeepSpeed", "") == "megatron-deepspeed");
  CHECK(name("DeepSpeed 0.6.2", "2022-07") == "deepspeed-zero");
  CHECK(choose_stack(aliases, "PyTorch 2.11 (h200/train.py)", "").optimizer ==
        Optimizer::adam_bf16);
  CHECK_FALSE(choose_stack(aliases, "a framework of our own", "").assumed.empty());
}

TEST_CASE("models are matched without regard to case and hyphens, then by template") {
  const Aliases aliases = shipped_aliases();
  const auto names = model_names(data_root() / "workloads/catalog/models");
  CHECK(choose_model(aliases, "Llama3-8B", names).name == "llama3-8b");
  CHECK(choose_model(aliases, "Llama-3.1 405B", names).name == "llama3.1-405b");
  CHECK(choose_model(aliases, "DSAzure-2T", names).name == "deepspeed-2t");
  CHECK(choose_model(aliases, "BLOOM-candidate-178B", names).is_template);
  CHECK(choose_model(aliases, "a model of our own", names).name.empty());
}

TEST_CASE("a proxy of few layers keeps one leading dense layer") {
  std::vector<std::string> assumed;
  const Model proxy = adapt_model(catalog("deepseek-v3"), {.layers = 4}, assumed);
  REQUIRE(proxy.layer_count() == 4);
  CHECK(proxy.layer(0).ffn.kind == FfnKind::dense);
  for (int i = 1; i < 4; ++i) CHECK(proxy.layer(i).ffn.kind == FfnKind::moe);
  CHECK(assumed.size() == 1);
  // The row's own dimensions win over the catalogue's, and the same ones change nothing.
  const Model llama = catalog("llama3-8b");
  CHECK(same_network(adapt_model(llama,
                                 {.layers = 32,
                                  .hidden = 4096,
                                  .ffn = 14336,
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .head_dim = 128,
                                  .vocab = 128256},
                                 assumed),
                     llama));
  CHECK(adapt_model(llama, {.vocab = 32000}, assumed).vocab == 32000);
}

TEST_CASE("a model from a row ties its embeddings when that gives the published size") {
  RowDimensions d{.layers = 28,
                  .hidden = 3072,
                  .ffn = 8192,
                  .heads = 32,
                  .kv_heads = 32,
                  .head_dim = 96,
                  .vocab = 131072,
                  .mlp = "swiglu",
                  .parameters = 3.98e9};
  std::vector<std::string> assumed;
  CHECK_FALSE(model_from_dimensions("n", d, assumed).tied_embeddings);
  d.parameters = 3.57e9;
  CHECK(model_from_dimensions("n", d, assumed).tied_embeddings);
  d.attention = "mla";
  CHECK_THROWS_AS(model_from_dimensions("n", d, assumed), Error);
  d.attention = "";
  d.ffn = 0;
  CHECK_THROWS_AS(model_from_dimensions("n", d, assumed), Error);
}

TEST_CASE("rows become scenarios, or tell why they cannot") {
  RowReader reader(shipped_aliases());
  const auto rows = prepare(
      reader,
      "a,S,H100-SXM5-80GB,16,IB NDR 400G/GPU,,Llama3-8B,pretrain,8.03,32,4096,14336,32,8,128256,"
      "swiglu,,8192,128,1,2,2,4,4,1,,,,FP8,NeMo,NeMo 24.07,9000,,\n"
      "b,S,H100-SXM5-80GB,16,,,Llama3-8B,pretrain,,32,4096,14336,32,8,128256,swiglu,,8192,128,1,2,"
      "2,4,5,1,1,,,BF16,NeMo,24.07,9000,,\n"
      "c,S,Abacus,16,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,128,1,2,2,4,4,1,1,,,BF16,NeMo,"
      "24.07,9000,,\n"
      "d,S,H100-SXM5-80GB,16,,,Llama3-8B,sft,,32,,,,,,swiglu,,8192,128,1,2,2,4,4,1,1,,none,BF16,"
      "NeMo,24.07,9000,0,packed sequences\n"
      "e,S,H100-SXM5-80GB,16,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,128,1,,2,4,4,1,1,,,BF16,"
      "NeMo,24.07,9000,,\n");
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].skipped.empty());
  CHECK(rows[0].stack.name == "nemo");
  CHECK(rows[0].layout.schedule == Schedule::interleaved);
  CHECK(rows[0].layout.precision == rows[0].stack.fp8_recipe);
  CHECK_FALSE(rows[0].recompute_choices.empty());
  CHECK(rows[1].skipped.starts_with("INCONSISTENT"));
  CHECK(rows[2].skipped.find("Abacus") != std::string::npos);
  CHECK(rows[3].job.mean_document > 0);
  CHECK(rows[3].recompute_choices.empty());
  CHECK(rows[4].skipped.find("tp") != std::string::npos);
}

TEST_CASE("a cell that does not parse stops the table") {
  RowReader reader(shipped_aliases());
  CHECK_THROWS_AS(prepare(reader,
                          "a,S,H100-SXM5-80GB,sixteen,,,Llama3-8B,pretrain,,32,,,,,,"
                          "swiglu,,8192,128,1,1,1,1,16,1,1,,,BF16,NeMo,24.07,9000,,\n"),
                  Error);
  CHECK_THROWS_AS(reader.read_training(parse_csv("id,source\n1,2\n", "t.csv")), Error);
}

TEST_CASE("predictions are scored per group and written with DESIGN's keys") {
  RowReader reader(shipped_aliases());
  auto rows = prepare(
      reader,
      "a,S,H100-SXM5-80GB,8,,,Llama3-8B,pretrain,8.03,32,4096,14336,32,8,128256,swiglu,,8192,128,1,"
      "1,1,1,8,1,1,,,BF16,NeMo,24.07,9000,0,\n"
      "b,S,Abacus,8,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,128,1,1,1,1,8,1,1,,,BF16,NeMo,24.07,"
      "9000,,\n");
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  std::vector<ScoredRow> scored;
  for (PreparedRow& row : rows) {
    settle_recompute(row, error);
    scored.push_back(score_row(row, predict_row(row, error)));
  }
  const auto json = nlohmann::json::parse(report_json(scored));
  for (const char* key : {"id",
                          "quantity",
                          "unit",
                          "predicted",
                          "measured",
                          "error",
                          "low",
                          "high",
                          "group",
                          "skipped",
                          "predicted_tokens_s_gpu",
                          "measured_tokens_s_gpu",
                          "low_tokens_s_gpu",
                          "high_tokens_s_gpu",
                          "predicted_peak_memory_gib",
                          "measured_peak_memory_gib",
                          "predicted_static_memory_gib",
                          "measured_static_memory_gib",
                          "predicted_oom",
                          "measured_oom",
                          "bottleneck",
                          "assumed"})
    CHECK(json["rows"][0].contains(key));
  CHECK(json["rows"][0]["group"]["source"] == "S");
  CHECK(json["rows"][0]["skipped"].is_null());
  CHECK(json["rows"][0]["error"].get<double>() ==
        Approx(json["rows"][0]["predicted"].get<double>() / 9000 - 1));
  CHECK(json["rows"][0]["low"].get<double>() < json["rows"][0]["predicted"].get<double>());
  CHECK(json["rows"][1]["skipped"].is_string());
  CHECK(json["rows"][1]["predicted"].is_null());
  CHECK(json["groups"][0]["oom"]["true_negative"] == 1);
  CHECK_FALSE(report_text(scored, true).empty());
}

TEST_CASE("a step-level fit finds the value behind samples") {
  // Time is 2 + 3 x with the true factor of x at 1.6.
  std::vector<StepSample> samples;
  for (int i = 1; i <= 8; ++i) {
    const double work = 0.3 * i;
    samples.push_back({.measured = 2 + 1.6 * work,
                       .predicted = [work](std::span<const double> f) { return 2 + f[0] * work; }});
  }
  const StepFit fit = fit_steps(1, samples, {.threads = 1, .rounds = 20});
  CHECK(fit.factors[0] == Approx(1.6).epsilon(0.1));
  CHECK(fit.after < fit.before / 4);
  CHECK(fit_steps(2, {}, {}).factors == std::vector<double>{1, 1});
}

TEST_CASE("only estimates of a stack are fitted") {
  Stack stack;
  stack.dispatch = {.value = Seconds(1e-5), .evidence = Evidence::estimated};
  stack.tensor_exposed = {.value = 0.6, .evidence = Evidence::estimated};
  stack.moe_sync = {.value = Seconds(1e-3), .evidence = Evidence::measured};
  stack.debug_per_rank = {.value = Seconds(0), .evidence = Evidence::estimated};
  CHECK(fittable_step_values(stack) == std::vector<std::string>{"dispatch", "tensor_exposed"});
  scale_step_value(stack, "tensor_exposed", 3);
  scale_step_value(stack, "moe_sync", 3);
  CHECK(step_value(stack, "tensor_exposed") == 1.0);
  CHECK(step_value(stack, "moe_sync") == 1e-3);
}

TEST_CASE("validate names what it cannot do") {
  CHECK_THROWS_AS(validate_command({.leave_out = "colour"}), Error);
  CHECK_THROWS_AS(validate_command({.files = {"no/such/file.csv"}}), Error);
}

}  // namespace orrery
