// Bad input gets one clear error, exit code 2, nothing on stdout and nothing half-written.
#include <catch2/catch.hpp>

#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;

namespace {

const std::string base = "simulate --model llama3-8b --cluster dgx-h100 --seq 4096 --global-batch 64 ";

void expect_error(const std::string& arguments, const std::string& part) {
  const Outcome o = run(arguments);
  INFO(arguments << "\n" << o.err);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("unknown names come with the nearest one") {
  expect_error("simulate --model lama3-8b --cluster dgx-h100 --gpus 8 --seq 4096 --global-batch 64",
               "llama3-8b");
  expect_error("simulate --model llama3-8b --cluster dgx-h10 --gpus 8 --seq 4096 --global-batch 64",
               "dgx-h100");
  expect_error(base + "--gpus 8 --stack nemmo", "nemo");
  expect_error(base + "--gpus 8 --precision bf17", "bf16");
  expect_error(base + "--gpus 8 --schedule 1f1c", "1f1b");
  expect_error(base + "--gpus 8 --recompute ful", "full");
  expect_error("advice --model llama3-8b", "advi");
  expect_error(base + "--gpus 8 --micro-bach 1", "--micro-batch");
  expect_error("catalog show model llama3-8c", "llama3-8b");
  expect_error("catalog show modell llama3-8b", "model");
}

TEST_CASE("layouts that cannot be are refused with the numbers") {
  expect_error(base + "--gpus 7 --tp 8", "7");
  expect_error(base + "--gpus 48 --tp 3", "heads");
  expect_error(base + "--gpus 64 --pp 64", "layers");
  expect_error(base + "--gpus 8 --tp 0", "tp");
  expect_error(base + "--gpus 8 --tp -1", "tp");
  expect_error(base + "--gpus 8 --tp two", "whole number");
  expect_error(base + "--gpus 99999999999999999999", "whole number");
  expect_error(base + "--gpus 8 --micro-batch 7", "batch");
  expect_error(base + "--gpus 8 --ep 8", "expert");
  expect_error(base + "--gpus 8 --network flow", "ideal");
  expect_error(base + "--gpus 8 --gpu-hour-price nan", "number");
}

TEST_CASE("broken files are one error each") {
  const ScratchFolder scratch("app");
  const std::string good = R"({"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 8, "seq": 4096,
    "global_batch": 64})";
  CHECK(run("simulate " + add(scratch, "good.json", good)).code == 0);
  expect_error("simulate " + add(scratch, "empty.json", ""), "empty.json");
  expect_error("simulate " + add(scratch, "cut.json", good.substr(0, 40)), "cut.json");
  expect_error("simulate " + add(scratch, "key.json", R"({"modle": "llama3-8b"})"), "model");
  expect_error("simulate " + add(scratch, "type.json", R"({"model": 8})"), "model");
  expect_error("simulate " + add(scratch, "deep.json", std::string(100000, '[')), "deep.json");
  expect_error("simulate /", "/");
  expect_error("simulate /nowhere/at/all.json", "all.json");
  expect_error(base + "--gpus 8 --trace /nowhere/at/all.json", "all.json");
  // A cluster file with a bare number where a unit belongs.
  expect_error("simulate --model llama3-8b --gpus 8 --seq 4096 --global-batch 64 --cluster " +
                   add(scratch, "cluster.json",
                                 R"({"based_on": "dgx-h100", "name": "mine", "overrides":
      {"accelerator": {"memory": {"bandwidth": {"value": 3.35, "evidence": "specified",
      "source": "nvidia-h100-datasheet"}}}}})"),
               "bandwidth");
}

TEST_CASE("commands of later versions say so") {
  expect_error("plan question.json", "later");
  expect_error("topology dgx-h100", "later");
}
