// SPDX-License-Identifier: Apache-2.0
// Tests kernels of serving engines against published tables: decode attention on six GPUs, experts,
// products.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/health/expected_time.h"
#include "sim/calibrate/log/measurement.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"

namespace orrery {
namespace {

std::string group_of(const OperatorTable& table) {
  return table.device + " " + std::string(to_text(table.library)) + " " +
         std::string(to_text(table.format));
}

// Errors of the shapes that no fit saw; the files hold no others.
std::map<std::string, std::vector<double>> errors_by_library() {
  std::map<std::string, std::vector<double>> errors;
  std::map<std::string, std::unique_ptr<Machine>> machines;
  const std::filesystem::path folder = data_root() / "validation/measurements/operators";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().find("_decode_") == std::string::npos) continue;
    for (OperatorTable& table : read_operator_tables(entry.path())) {
      auto& machine = machines[table.device];
      if (!machine) machine = std::make_unique<Machine>(load_machine(table.device, true));
      drop_cached(table, machine->device.l2_capacity, machine->device.memory_bandwidth);
      for (const OperatorRow& row : table.rows)
        if (is_held_out(row))
          errors[group_of(table)].push_back(
              std::abs(expected_time(row, *machine) / row.measured - 1));
    }
  }
  return errors;
}

struct Bound {
  double median, p90;
};

// What falls out of the formula, as it stands. vLLM's 8-bit decode on H200 runs heads of 256 at
// half the rate of heads of 128; TensorRT-LLM's starts heads of 64 late; SGLang's is at the bound.
// No stack of ours runs these two. The latents of TensorRT-LLM 1.0 take 1.3 times as long with 32
// heads as with 16 or 64.
const std::map<std::string, Bound> known = {
    {"h200-sxm flash3 fp8", {0.11, 0.26}},        {"h200-sxm trtllm-xqa fp8", {0.08, 0.22}},
    {"b200-sxm sglang-latent fp8", {0.09, 0.22}}, {"b200-sxm trtllm-latent bf16", {0.08, 0.24}},
    {"b200-sxm trtllm-latent fp8", {0.08, 0.24}}, {"gb200 trtllm-latent bf16", {0.08, 0.24}},
    {"gb200 trtllm-latent fp8", {0.08, 0.24}}};

TEST_CASE("decode on shapes kept out of the fits: median 8%, 90th percentile 20%, by library") {
  const auto errors = errors_by_library();
  CHECK(errors.size() == 70);
  for (const auto& [name, found] : errors) {
    const auto exception = known.find(name);
    const Bound bound = exception == known.end() ? Bound{0.08, 0.20} : exception->second;
    INFO(name << ": " << found.size() << " shapes, median " << median(found) << ", p90 "
              << percentile(found, 90));
    CHECK(median(found) < bound.median);
    CHECK(percentile(found, 90) < bound.p90);
  }
}

// The published products that set this curve (hw_models/calibration/README.md).
TEST_CASE("products of FP8 blocks that FlashInfer generates take what was published") {
  std::vector<double> errors;
  for (const std::string device : {"b200-sxm", "gb200"}) {
    const Machine machine = load_machine(device, true);
    const std::string file = device.substr(0, device.find('-')) + "_gemm_flashinfer_fp8_block.csv";
    for (const OperatorTable& table :
         read_operator_tables(data_root() / "hw_models/calibration" / device / file)) {
      CHECK(table.library == Library::flashinfer_blocks);
      for (const OperatorRow& row : table.rows) {
        CHECK(row.count == 1);  // operands were quantised before
        errors.push_back(std::abs(expected_time(row, machine) / row.measured - 1));
      }
    }
  }
  REQUIRE(errors.size() == 17);
  CHECK(median(errors) < 0.06);
  CHECK(percentile(errors, 90) < 0.25);
}

TEST_CASE("tables say which of TensorRT-LLM's kernels they are of") {
  const ScratchFolder folder("operator_tables");
  const std::string experts =
      "num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,latency_ms\n"
      "4,7168,2048,8,256,8,1,0.14\n";
  const auto library = [&folder](const std::string& name, const std::string& text) {
    return read_operator_tables(folder.add(name, text)).front().library;
  };
  CHECK(library("h200_moe_trtllm_fp8_block.csv", experts) == Library::trtllm_blocks);
  CHECK(library("h200_moe_trtllm1_fp8_block.csv", experts) == Library::trtllm_experts);
  CHECK(library("b200_moe_trtllm_fp8_block.csv", experts) == Library::trtllm_blocks);
  CHECK(library("b200_moe_trtllm1_fp8_block.csv", experts) == Library::trtllm_rows);
  const std::string products = "m,n,k,latency_ms\n4,4096,7168,0.026\n";
  CHECK(library("b200_gemm_trtllm_fp8_block.csv", products) == Library::trtllm_blocks);
  CHECK(library("b200_gemm_trtllm1_fp8_block.csv", products) == Library::trtllm_rows);
  CHECK(library("h200_moe_trtllm_bfloat16.csv", experts) == Library::flashinfer);
  CHECK(library("h200_moe_vllm_fp8_block.csv", experts) == Library::flashinfer);
  CHECK(library("h200_moe_sglang_fp8_block.csv", experts) == Library::sglang_experts);
  CHECK(library("gb200_moe_sglang_fp8_block.csv", experts) == Library::deepgemm);
  const std::string latents = "batch_size,num_heads,step,latency_ms\n4,16,1023,0.03\n";
  CHECK(library("h200_mla_decode_trtllm1.csv", latents) == Library::trtllm_latent);
  CHECK(library("h200_mla_decode_trtllm.csv", latents) == Library::flashmla);
  const std::string absorbed =
      "op_name,num_heads,num_tokens,latency_ms\nmla_gen_pre,128,64,0.022\n";
  CHECK(library("h200_mla_bmm_trtllm_fp8.csv", absorbed) == Library::trtllm_absorbed);
  CHECK(error_text([&] {
          library("h200_mla_bmm_trtllm_fp8.csv",
                  "op_name,num_heads,num_tokens,latency_ms\nmla_gen,128,64,0.022\n");
        }).find("mla_gen_pre or mla_gen_post") != std::string::npos);
}

// Rows that no fit saw: of all shapes, and of DeepSeek-R1's with few tokens, whose 256 experts cost
// most where hardly one has a row.
TEST_CASE("TensorRT-LLM's experts and absorbed products on Hopper are met off the fits") {
  for (const std::string gpu : {"h100", "h200"}) {
    const Machine machine = load_machine(gpu + "-sxm", true);
    const auto errors = [&](const std::string& table) {
      std::vector<double> found;
      const auto file = data_root() / "validation/measurements/operators" / (gpu + table);
      for (const OperatorTable& t : read_operator_tables(file))
        for (const OperatorRow& row : t.rows)
          found.push_back(std::abs(expected_time(row, machine) / row.measured - 1));
      return found;
    };
    for (const char* table :
         {"_moe_trtllm_fp8_block_subset.csv", "_moe_trtllm1_fp8_block_subset.csv"}) {
      INFO(gpu << table);
      CHECK(median(errors(table)) < 0.14);
      CHECK(percentile(errors(table), 90) < 0.30);
    }
    CHECK(median(errors("_mla_bmm_trtllm_fp8_subset.csv")) < 0.06);
    CHECK(percentile(errors("_mla_bmm_trtllm_fp8_subset.csv"), 90) < 0.14);
  }
}

TEST_CASE("tables of ranks that share experts are read where loads are balanced") {
  const ScratchFolder folder("operator_tables");
  const auto tables = read_operator_tables(folder.add(
      "b200_moe_trtllm1_fp8_block.csv",
      "num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,"
      "latency_ms\n"
      "64,7168,2048,8,256,1,16,balanced,0.181\n"
      "1,7168,2048,8,256,1,16,balanced,0.062\n"
      "64,7168,2048,8,256,1,16,power_law_1.2,0.163\n"));
  REQUIRE(tables.front().rows.size() == 2);
  const OperatorRow& many = tables.front().rows[0];
  CHECK(many.kernels[1].work.groups == 16);
  CHECK(many.kernels[1].work.m == 2);  // 512 rows on 256 experts
  CHECK(many.kernels[1].work.pool == 16);
  CHECK(many.kernels[0].work.m == 64 * 256);  // all tokens are put in order by all experts
  CHECK(tables.front().rows[1].kernels[1].work.groups == 1);
}

TEST_CASE("experts without rows cost time where a library goes through lists of all") {
  const Machine machine = load_machine("h200-sxm", true);
  const auto seconds = [&](Library library, std::int64_t pool) {
    const Kernel kernel{.work = {.kind = WorkKind::grouped_gemm,
                                 .input = Format::fp8,
                                 .m = 1,
                                 .n = 512,
                                 .k = 7168,
                                 .groups = 8,
                                 .pool = pool},
                        .library = library};
    return kernel_time(kernel, machine.device, machine.calibration).time.si();
  };
  for (const Library library : {Library::trtllm_blocks, Library::trtllm_experts}) {
    const double each = (seconds(library, 256) - seconds(library, 32)) / 224;
    CHECK(each > 0.05e-6);
    CHECK(each < 0.2e-6);
    CHECK(seconds(library, 0) == seconds(library, 8));  // as many as have rows
  }
  CHECK(seconds(Library::flashinfer, 256) == seconds(Library::flashinfer, 8));
}

}  // namespace
}  // namespace orrery
