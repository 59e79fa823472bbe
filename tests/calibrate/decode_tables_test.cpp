// SPDX-License-Identifier: Apache-2.0
// Tests kernels of serving engines against published tables: decode attention on six GPUs,
// products.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/health/expected_time.h"
#include "sim/calibrate/log/measurement.h"
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
  CHECK(library("h200_moe_trtllm_bfloat16.csv", experts) == Library::flashinfer);
  CHECK(library("h200_moe_vllm_fp8_block.csv", experts) == Library::flashinfer);
  const std::string latents = "batch_size,num_heads,step,latency_ms\n4,16,1023,0.03\n";
  CHECK(library("h200_mla_decode_trtllm1.csv", latents) == Library::trtllm_latent);
  CHECK(library("h200_mla_decode_trtllm.csv", latents) == Library::flashmla);
}

}  // namespace
}  // namespace orrery
