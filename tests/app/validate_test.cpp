// SPDX-License-Identifier: Apache-2.0
// Tests how rows of measured runs become scenarios, and how their predictions are scored.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

#include "hw_models/catalog.h"
#include "sim/app/validate/json.h"
#include "sim/app/validate/validate.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/validate/rows/training_columns.h"
#include "sim/validate/score/predict.h"
#include "sim/validate/score/report.h"
#include "tests/base/error_text.h"
#include "workloads/model/model_catalog.h"

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
  // A rate that no cluster has: the wiring of the likeliest, at that rate, and said.
  const auto slow = chosen("H100-SXM5-80GB", "2x 100G IB per node", 64);
  CHECK(slow->cluster == "dgx-h100");
  CHECK(slow->network_factor == Approx(25.0 / 400));
  CHECK(slow->assumed.size() == 1);
  CHECK(chosen("H100-SXM5-80GB", "IB NDR 400G/GPU", 64)->network_factor == 1);
  // A rate that no A100 has is its host's; one that a NIC of today has is a GPU's.
  CHECK(chosen("A100-SXM4-80GB", "EFA 400 Gbps", 64)->network_factor == Approx(1));
  CHECK(chosen("A100-SXM4-80GB", "800Gbps", 64)->cluster == "a100-4xhdr200");
  CHECK(chosen("B300", "NVLink5 8-GPU + IB/Eth 800G", 64)->network_factor == Approx(1));
  // A rate that no network has is a slip of the pen.
  for (const std::string& text :
       {std::string("IB 99999 Gbps per GPU"), "IB " + std::string(400, '9') + " Gb/s per GPU"}) {
    const auto odd = chosen("H100-SXM5-80GB", text.c_str(), 64);
    CHECK(odd->cluster == "dgx-h100");
    CHECK(odd->network_factor == 1);
    REQUIRE(!odd->assumed.empty());
    CHECK(odd->assumed.front().ends_with("left out: h100-sxm's networks have 400 Gbit/s a GPU"));
  }
  RowReader reader(aliases);
  const auto rows = prepare(
      reader,
      "a,S,H100-SXM5-80GB,64,2x 100G IB per node,,Llama3-8B,pretrain,8.03,32,4096,14336,32,8,"
      "128256,swiglu,,8192,128,1,1,1,1,64,1,1,,none,BF16,NeMo,24.07,9000,,\n"
      "b,S,H100-SXM5-80GB,64,IB NDR 400G/GPU,,Llama3-8B,pretrain,8.03,32,4096,14336,32,8,128256,"
      "swiglu,,8192,128,1,1,1,1,64,1,1,,none,BF16,NeMo,24.07,9000,,\n");
  REQUIRE(rows[0].skipped.empty());
  CHECK(predict_step(rows[0], rows[0].stack) > 1.05 * predict_step(rows[1], rows[1].stack));
}

TEST_CASE("other names of accelerators stand for catalogued ones") {
  const Aliases aliases = shipped_aliases();
  CHECK(accelerator_name(aliases, "H100-SXM5-80GB") == "H100-SXM5-80GB");
  CHECK(accelerator_name(aliases, "H100 80GB") == "H100-SXM5-80GB");
  CHECK(accelerator_name(aliases, "h200-sxm") == "H200-SXM-141GB");
  CHECK(accelerator_name(aliases, "TPU v5p") == "TPU-v5p");
  CHECK(accelerator_name(aliases, "NVIDIA H100 80GB HBM3") == "H100-SXM5-80GB");
  CHECK(accelerator_name(aliases, "NVIDIA A100-SXM4-40GB") == "A100-SXM4-40GB");
  CHECK(accelerator_name(aliases, "AMD Instinct MI300X") == "MI300X");
  CHECK(accelerator_name(aliases, "L4") == "L4");
  CHECK(accelerator_name(aliases, "") == "");
  CHECK(accelerator_name(aliases, "Abacus") == "Abacus");
}

TEST_CASE("frameworks and versions name stacks and releases") {
  const Aliases aliases = shipped_aliases();
  const auto name = [&](const char* framework, const char* version) {
    return choose_stack(aliases, {.framework = framework, .version = version}).name;
  };
  CHECK(name("NeMo", "NeMo 24.07 vboost") == "nemo@24.07");
  CHECK(name("NeMo (LoRA)", "dgxc v25.02.02") == "nemo@25.02.02");
  CHECK(name("Megatron-Bridge", "NeMo 26.06.01") == "nemo@26.06.01");
  CHECK(name("NVIDIA NEMO", "MLPerf v4.1") == "nemo@24.09");
  CHECK(name("PyTorch NVIDIA Release 23.09", "MLPerf v4.1") == "nemo@23.09");
  CHECK(name("Megatron-Core", "r0.8.0") == "megatron-core@0.8");
  CHECK(name("Megatron-LM", "2021-04") == "megatron-core@0.1");
  CHECK(name("Megatron-LM 0.14", "SimuMax v1.2") == "megatron-core-plain");
  CHECK(name("Megatron-LM 0.14", "") == "megatron-core@0.14");
  CHECK(name("nanotron (distributed debug DETAIL, inferred)", "after_pp_fix=True") ==
        "nanotron-debug");
  CHECK(name("nanotron", "") == "nanotron");
  CHECK(name("Megatron-DeepSpeed", "") == "megatron-deepspeed");
  CHECK(name("Megatron-DeepSpeed", "2021-10") == "megatron-deepspeed@2021.10");
  CHECK(name("Megatron-DeepSpeed", "2022-03") == "megatron-deepspeed-blocking");
  CHECK(name("DeepSpeed 0.6.2", "2022-07") == "deepspeed-zero@0.6");
  CHECK(name("DeepSpeed ZeRO-3", "2024-06") == "deepspeed-zero@0.10");
  CHECK(name("TorchTitan", "v0.1.0") == "pytorch-fsdp2@0.1");
  CHECK(name("TorchTitan", "main 2026-03") == "pytorch-fsdp2@0.2");
  CHECK(name("Megatron-DeepSpeed", "2023") == "megatron-deepspeed@2023.01");
  CHECK(choose_stack(aliases, {.framework = "PyTorch 2.11 (h200/train.py)"}).optimizer ==
        Optimizer::adam_bf16);
  CHECK_FALSE(choose_stack(aliases, {.framework = "a framework of our own"}).assumed.empty());
  // Other programs are stood in for by the nearest stack, which is said.
  for (const auto& [framework, stack] : std::vector<std::pair<const char*, std::string>>{
           {"NVIDIA NeMo Megatron Release 23.04", "nemo"},
           {"GPT-NeoX", "megatron-deepspeed"},
           {"Colossal-AI", "megatron-core"},
           {"metaseq (FSDP+Megatron TP)", "deepspeed-zero"},
           {"TorchTitan + Primus-Turbo", "pytorch-fsdp2"},
           {"Primus (Megatron)", "megatron-core"},
           {"MosaicML Composer", "llm-foundry"},
           {"HF Accelerate FSDP", "transformers"},
           {"JAX", "maxtext"}}) {
    INFO(framework);
    CHECK(name(framework, "").substr(0, stack.size()) == stack);
  }
}

TEST_CASE("models are matched without regard to case and hyphens, then by template") {
  const Aliases aliases = shipped_aliases();
  const auto names = model_names(data_root() / "workloads/catalog/models");
  CHECK(choose_model(aliases, "Llama3-8B", names).name == "llama3-8b");
  CHECK(choose_model(aliases, "Llama-3.1 405B", names).name == "llama3.1-405b");
  CHECK(choose_model(aliases, "DSAzure-2T", names).name == "deepspeed-2t");
  CHECK(choose_model(aliases, "BLOOM-candidate-178B", names).is_template);
  CHECK(choose_model(aliases, "meta-llama/Llama-3.1-8B-Instruct", names).name == "llama3.1-8b");
  CHECK(choose_model(aliases, "Mistral-7B-v0.1", names).name == "mistral-7b");
  CHECK(choose_model(aliases, "Nemotron-3-Ultra-550B-A55B", names).name == "nemotron-3-ultra");
  CHECK(choose_model(aliases, "GPT-20B", names).name.empty());
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
  d.hidden = d.layers = 0;
  CHECK_THROWS_AS(model_from_dimensions("n", d, assumed), Error);
}

TEST_CASE("what a row leaves out of a model is as most models have it, and said") {
  std::vector<std::string> assumed;
  const Model whole = model_from_dimensions(
      "n",
      {.layers = 80, .hidden = 14400, .ffn = 57600, .heads = 120, .vocab = 250880, .mlp = "gelu"},
      assumed);
  const auto before = assumed.size();
  const Model model = model_from_dimensions(
      "n", {.layers = 80, .hidden = 14400, .vocab = 250880, .mlp = "gelu"}, assumed);
  CHECK(assumed.size() == before + 3);  // heads, ffn and that the model is the row's
  CHECK(same_network(model, whole));
  // Layers from the published size: 12 hidden^2 a layer.
  const Model sized = model_from_dimensions(
      "n", {.hidden = 12288, .vocab = 51200, .mlp = "gelu", .parameters = 175e9}, assumed);
  CHECK(sized.layer_count() == 97);
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
      "e,S,H100-SXM5-80GB,16,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,128,1,,2,4,8,1,1,,,BF16,"
      "NeMo,24.07,9000,,\n");
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].skipped.empty());
  CHECK(rows[0].stack.name == "nemo");
  CHECK(rows[0].layout.schedule == Schedule::interleaved);
  CHECK(rows[0].layout.precision == rows[0].stack.defaults.fp8);
  CHECK(rows[0].recompute_choices.empty() == rows[0].stack.defaults.recompute_known);
  CHECK(rows[1].skipped.starts_with("INCONSISTENT"));
  CHECK(rows[2].skipped.find("Abacus") != std::string::npos);
  CHECK(rows[3].job.mean_document > 0);
  CHECK(rows[3].recompute_choices.empty());
  CHECK(rows[3].layout.optimizer == Optimizer::adam_bf16);  // as that release's recipe tunes
  CHECK(rows[0].layout.optimizer == Optimizer::adam_fp32);
  CHECK(rows[4].skipped.empty());
  CHECK(rows[4].layout.tp == 1);
  CHECK(std::find(rows[4].assumed.begin(), rows[4].assumed.end(), "tp not stated: 1") !=
        rows[4].assumed.end());
}

TEST_CASE("a schedule in the form of a V has two chunks whether the row tells or not") {
  RowReader reader(shipped_aliases());
  const std::string columns =
      std::string(header).substr(0, std::string(header).size() - 1) + ",schedule\n";
  const auto rows = reader.read_training(parse_csv(
      columns + "a,S,H100-SXM5-80GB,16,IB NDR 400G/GPU,,Llama3-8B,pretrain,8.03,32,4096,14336,32,8,"
                "128256,swiglu,,8192,128,1,2,2,,4,1,,,,BF16,Megatron-LM,0.12,9000,,,zb-v\n",
      "t.csv"));
  REQUIRE(rows[0].skipped.empty());
  CHECK(rows[0].layout.schedule == Schedule::zero_bubble_v);
  CHECK(rows[0].layout.vpp == 2);
}

TEST_CASE("blanks are filled where a value is usual, and rows without are skipped") {
  RowReader reader(shipped_aliases());
  const std::string columns = std::string(header).substr(0, std::string(header).size() - 1) +
                              ",full_config,tflops_gpu,metric\n";
  const auto rows = reader.read_training(parse_csv(
      columns +
          "a,S,H100-SXM5-80GB,16,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,128,1,,2,4,4,1,1,,,"
          "BF16,NeMo,24.07,9000,,,0,,\n"
          "b,S,H100-SXM5-80GB,16,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,128,,,,,16,1,,,,,"
          "TorchTitan,,9000,,,0,,\n"
          "c,S,H100-SXM5-80GB,16,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,,2,1,1,1,16,1,1,,,BF16,"
          "NeMo,24.07,9000,,,1,,\n"
          "d,S,H100-SXM5-80GB,16,,,Llama3-8B,lora,,32,,,,,,swiglu,,8192,128,1,1,1,1,16,1,1,,,BF16,"
          "NeMo,24.07,,,,1,,time_to_train\n"
          "e,S,H100-SXM5-80GB,16,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,128,1,1,1,1,16,1,1,,,"
          "BF16,NeMo,24.07,,,,1,400,tflops_per_gpu\n",
      "t.csv"));
  REQUIRE(rows.size() == 5);
  // Not the whole layout: tensor parallelism could be anything, but not under FSDP.
  CHECK(rows[0].skipped.find("tp") != std::string::npos);
  CHECK(rows[1].skipped.empty());
  CHECK(rows[1].layout.micro_batch == 1);
  CHECK(rows[1].layout.precision == PrecisionRecipe::bf16);
  CHECK(rows[1].assumed.size() >= 4);
  CHECK(rows[2].job.global_batch == 32);
  // The number of GPUs from the sizes, a batch that ranks divide, no chunks without a pipeline.
  const auto odd = prepare(reader,
                           "f,S,H100-SXM5-80GB,,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,130,1,2,"
                           "1,4,8,1,1,,,BF16,NeMo,24.07,9000,,\n");
  CHECK(odd[0].skipped.empty());
  CHECK(odd[0].layout.gpus() == 16);
  CHECK(odd[0].layout.vpp == 1);
  CHECK(odd[0].job.global_batch == 128);
  CHECK(rows[3].unscored.find("minutes") != std::string::npos);
  CHECK(rows[4].unscored.find("FLOP/s") != std::string::npos);
  CHECK(rows[0].unscored.empty());
}

TEST_CASE("model, accelerators, machine, sequence, layout and a speed are a whole table") {
  RowReader reader(shipped_aliases());
  const auto rows =
      reader.read_training(parse_csv("model,gpu,n_gpus,seq,global_batch,tp,pp,tokens_s_gpu\n"
                                     "Llama3-8B,H100,16,8192,128,2,1,9000\n"
                                     "deepseek-v3,H800,256,4096,2048,1,8,1500\n"
                                     "llama3-8g,H100,16,8192,128,2,1,9000\n"
                                     "llama3-8b,H100,0,8192,128,2,1,9000\n",
                                     "some/folder/mine.csv"));
  const auto whole = prepare(
      reader,
      "a,S,H100-SXM5-80GB,16,,,Llama3-8B,pretrain,8.03,32,4096,14336,32,8,128256,swiglu,,8192,128,"
      "1,2,1,1,8,1,,,,BF16,,,9000,,\n");
  REQUIRE(rows.size() == 4);
  REQUIRE(rows[0].skipped.empty());
  CHECK(rows[0].id == "mine.csv:2");
  CHECK(rows[0].source == "mine.csv");
  CHECK(count_parameters(rows[0].model).total == count_parameters(whole[0].model).total);
  CHECK(rows[0].layout == whole[0].layout);
  CHECK(predict_step(rows[0], rows[0].stack) == predict_step(whole[0], whole[0].stack));
  CHECK(std::find(rows[0].assumed.begin(), rows[0].assumed.end(),
                  "framework not stated: megatron-core") != rows[0].assumed.end());
  CHECK(count_parameters(rows[1].model).total == count_parameters(catalog("deepseek-v3")).total);
  CHECK(rows[2].skipped.find("llama3-8b") != std::string::npos);
  CHECK(rows[3].skipped.find("0 accelerators") != std::string::npos);
  // A cluster of the catalogue by its own name, sizes that give the number of accelerators, a step.
  const auto named = reader.read_training(
      parse_csv("model,cluster,seq,global_batch,micro_batch,tp,dp,step_time_s\n"
                "Llama3-8B,h100-efa,8192,128,1,2,8,8.0\nLlama3-8B,h100-eva,8192,128,1,2,8,8.0\n",
                "mine.csv"));
  REQUIRE(named[0].skipped.empty());
  CHECK(named[0].cluster->cluster.name == "h100-efa");
  CHECK(named[0].gpu == "H100-SXM5-80GB");
  CHECK(named[0].layout.gpus() == 16);
  CHECK(named[0].measured.tokens_per_second_per_gpu == Approx(128 * 8192 / 8.0 / 16));
  CHECK(named[1].skipped.find("h100-efa") != std::string::npos);
}

TEST_CASE("a table that tells less is told all that it lacks, and what may have been meant") {
  const auto refusal = [](const std::string& columns) {
    const CsvTable table = parse_csv(columns + "\n", "t.csv");
    CHECK(is_training_table(table));
    return error_text([&] { require_training_columns(table); });
  };
  CHECK(refusal("model,gpu,n_gpus,seq,tp,tokens_s_gpus") ==
        "t.csv: line 1: found no column for a figure (tokens_s_gpu or step_time_s or "
        "peak_memory_gib or reserved_memory_gib or static_memory_gib or oom); expected a training "
        "table, which tells at least these; did you mean \"tokens_s_gpus\"?");
  CHECK(refusal("model,n_gpus,tp,oom").find("the machine (gpu or cluster), the sequence (seq)") !=
        std::string::npos);
  CHECK_FALSE(is_training_table(parse_csv("model,colour\n", "t.csv")));
}

TEST_CASE("every shipped training table is read, and few of its rows are skipped") {
  RowReader reader(shipped_aliases());
  std::vector<PreparedRow> rows;
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(data_root() / "validation/measurements/training"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 10);
  std::set<std::string> ids;
  for (const auto& file : files) {
    const CsvTable table = read_csv(file);
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      INFO(file << " line " << table.lines[i]);
      const CsvRow row(table, i);
      CHECK(ids.insert(row.text("id")).second);
      CHECK_FALSE(row.text("url").empty());
      CHECK_FALSE(row.text("origin").empty());
      // Something that a prediction can be held against.
      CHECK((row.number("tokens_s_gpu") || row.number("step_time_s") || row.flag("oom") ||
             row.number("peak_memory_gib") || row.number("static_memory_gib")));
    }
    auto read = reader.read_training(table);
    std::move(read.begin(), read.end(), std::back_inserter(rows));
  }
  CHECK(rows.size() > 3000);
  std::vector<ScoredRow> scored;
  for (const PreparedRow& row : rows) scored.push_back({.row = &row});
  CHECK(skipped_share(scored).rows > 2900);
  CHECK(skipped_share(scored).share() < 0.01);
}

TEST_CASE("experts that do not fit run again what launch programs would, not whole layers") {
  RowReader reader(shipped_aliases(), Unknown::script);
  const auto row = [&](int devices, int microbatch) {
    const std::string table = fmt::format(
        "id,gpu,n_gpus,model,framework,version,precision,seq,global_batch,micro_batch,tp,pp,vpp,"
        "dp,cp,ep,etp,full_config,tokens_s_gpu\n"
        "a,GB300,{},DeepSeek-V3,NeMo,26.02,MXFP8,4096,4096,{},1,2,8,{},1,32,1,1,4900\n",
        devices, microbatch, devices / 2);
    PreparedRow prepared = reader.read_training(parse_csv(table, "t.csv"))[0];
    CHECK(prepared.skipped.empty());
    settle_recompute(prepared, load_model_error(data_root() / "validation/model_error.json"));
    return prepared.layout;
  };
  using enum RecomputeModule;
  CHECK(row(1024, 1).recompute_choice() == RecomputeChoice{});
  const Layout narrow = row(256, 2);
  CHECK(narrow.optimizer == Optimizer::adam_bf16_moments);
  CHECK(narrow.recompute_choice() == RecomputeChoice{Recompute::selective, {mla_up_proj}});
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
      "1,1,1,8,1,1,,full,BF16,NeMo,24.07,9000,0,\n"
      "b,S,Abacus,8,,,Llama3-8B,pretrain,,32,,,,,,swiglu,,8192,128,1,1,1,1,8,1,1,,,BF16,NeMo,24.07,"
      "9000,,\n");
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  std::vector<ScoredRow> scored;
  for (PreparedRow& row : rows) {
    settle_recompute(row, error);
    scored.push_back(score_row(row, predict_row(row, error)));
  }
  const auto json = report_json(scored);
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

TEST_CASE(
    "a measured peak is compared with allocated or with reserved memory, as its column says") {
  RowReader reader(shipped_aliases());
  const auto rows = reader.read_training(
      parse_csv("model,gpu,n_gpus,seq,global_batch,tp,peak_memory_gib,reserved_memory_gib\n"
                "Llama3-8B,H100,8,8192,32,4,40,\nLlama3-8B,H100,8,8192,32,4,,40\n",
                "mine.csv"));
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  std::vector<ScoredRow> scored;
  for (const PreparedRow& row : rows) scored.push_back(score_row(row, predict_row(row, error)));
  CHECK(scored[0].peak_error.has_value() != scored[0].reserved_error.has_value());
  CHECK(*scored[0].peak_error == Approx(scored[0].prediction.peak_gibibytes / 40 - 1));
  CHECK(*scored[1].reserved_error == Approx(scored[1].prediction.reserved_gibibytes / 40 - 1));
  CHECK(scored[1].prediction.reserved_gibibytes > scored[1].prediction.peak_gibibytes);
  const auto json = report_json(scored);
  CHECK(json["rows"][0]["quantity"] == "peak_memory");
  CHECK(json["rows"][1]["quantity"] == "reserved_memory");
  CHECK(json["rows"][1]["measured_reserved_memory_gib"] == 40);
  CHECK(json["groups"][0]["reserved_memory"]["rows"] == 1);
  const std::string text = report_text(scored, true);
  CHECK(text.find("allocated") != std::string::npos);
  CHECK(text.find("reserved") != std::string::npos);
}

TEST_CASE("validate names what it cannot do") {
  CHECK_THROWS_AS(validate_tables({.leave_out = "colour"}), Error);
  CHECK_THROWS_AS(validate_tables({.files = {"no/such/file.csv"}}), Error);
  const auto measured = data_root() / "validation/measurements";
  const std::string served = (measured / "serving/token_position.csv").string();
  CHECK(error_text([&] {
          validate_tables({.files = {served}, .leave_out = "source"});
        }).find("--leave-out: found \"source\"; expected nested") != std::string::npos);
}

}  // namespace orrery
