// SPDX-License-Identifier: Apache-2.0
// Tests that configurations in the form of each program are read as they should be.
#include "sim/launch/configurations/configuration.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <catch2/catch.hpp>

#include "sim/base/errors/check.h"
#include "sim/base/input_file.h"
#include "tests/base/scratch_folder.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(ORRERY_SOURCE_DIR) / "tests/launch/configurations";

std::vector<fs::path> given_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (!entry.path().string().ends_with(".expected.json")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string without_folder(std::string text) {
  const std::string prefix = folder.string() + "/";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
    text.erase(at, prefix.size());
  return text;
}

// What became of a file: settings, and a line for each item.
std::string outcome(const GivenRun& run) {
  Json out = Json::object();
  out["program"] = run.program;
  out["settings"] = run.settings;
  const auto lines = [](const std::vector<GivenItem>& items) {
    Json all = Json::array();
    for (const GivenItem& item : items) {
      std::string line = item.place + ": " + item.name;
      if (!item.value.empty()) line += " " + item.value;
      if (!item.key.empty()) line += " -> " + item.key + " " + item.becomes;
      if (!item.note.empty()) line += " (" + item.note + ")";
      all.push_back(without_folder(line));
    }
    return all;
  };
  out["understood"] = lines(run.understood);
  out["defaulted"] = lines(run.defaulted);
  out["not_understood"] = lines(run.not_understood);
  out["without_effect"] = lines(run.without_effect);
  return out.dump(1) + "\n";
}

TEST_CASE("configurations of each program are read as expected") {
  const bool update = std::getenv("UPDATE_EXPECTED") != nullptr;
  const std::vector<fs::path> files = given_files();
  CHECK(files.size() >= 25);
  for (const fs::path& file : files) {
    INFO(file);
    const auto run = read_configuration(file, SortedJson::object());
    REQUIRE(run);
    const fs::path expected = file.string() + ".expected.json";
    if (update) std::ofstream(expected, std::ios::binary) << outcome(*run);
    CHECK(content_of(expected) == outcome(*run));
  }
}

GivenRun read_text(const std::string& text, const std::string& file = "train.sh",
                   const SortedJson& asked = SortedJson::object()) {
  const auto run = read_configuration_text(text, file, asked);
  REQUIRE(run);
  return *run;
}

std::string refusal(const std::string& text, const std::string& file = "train.sh") {
  try {
    read_configuration_text(text, file, SortedJson::object());
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

bool notes(const std::vector<GivenItem>& items, const std::string& name, const std::string& note) {
  return std::any_of(items.begin(), items.end(), [&](const GivenItem& item) {
    return item.name == name && item.note.find(note) != std::string::npos;
  });
}

TEST_CASE("a script is followed as far as its text decides, and never run") {
  const ScratchFolder scratch("not_run");
  const fs::path trace = scratch / "ran";
  const GivenRun run = read_text(
      "touch " + trace.string() + "\n$(touch " + trace.string() +
      ")\n"
      "A=2; B=$((A * 2 + 4 / 2))\nSIZE=${SIZE:-$B}\n"
      "ARGS=(--num-layers 32 --hidden-size 4096)\nARGS+=(--num-attention-heads 32)\n"
      "if [ $A -eq 2 ]; then ARGS+=(--tensor-model-parallel-size $A); else ARGS+=(--fp16); fi\n"
      "if hostname | grep -q big; then ARGS+=(--context-parallel-size 4); fi\n"
      "case $A in 1) PP=1;; 2|3) PP=4;; *) PP=8;; esac\n"
      "start() { torchrun --nproc_per_node 8 --nnodes $SIZE pretrain_gpt.py \"${ARGS[@]}\" "
      "--micro-batch-size $B --pipeline-model-parallel-size $PP --seq-length $1 --bf16; "
      "}\nstart\n");
  CHECK_FALSE(fs::exists(trace));
  CHECK(run.settings.at("tp") == SortedJson(2));
  CHECK(run.settings.at("pp") == SortedJson(4));
  CHECK(run.settings.at("gpus") == SortedJson(48));
  CHECK(run.settings.at("micro_batch") == SortedJson(6));
  CHECK_FALSE(run.settings.contains("cp"));
  CHECK_FALSE(run.settings.contains("seq"));
  CHECK(notes(run.not_understood, "--seq-length", "it depends on $1"));
  CHECK(notes(run.not_understood, "--context-parallel-size", "only where the condition"));
}

TEST_CASE("variables that grow without end, and scripts in scripts, come to an end") {
  std::string script = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 64; ++i) script += "A=\"$A$A\"\n";
  CHECK(refusal(script).find("grow without end") != std::string::npos);
  const std::string own = "A='eval $A'\neval $A\nA=\"$A\"\nA=${A:-${A:-$A}}\n";
  CHECK_FALSE(refusal(own).empty());  // nothing starts a program
  std::string deep;
  for (int i = 0; i < 4000; ++i) deep += "${A:-";
  CHECK_FALSE(refusal("B=" + deep).empty());
  CHECK(refusal("x=$((" + std::string(5000, '(') + "1))\n").find("train.sh") == 0);
}

TEST_CASE("what the question says wins over the file, and what it names is taken for its model") {
  const std::string script =
      "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --tensor-model-parallel-size 4 "
      "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 8 --bf16 "
      "--micro-batch-size 1 --num-layers 32\n";
  const GivenRun run =
      read_text(script, "train.sh", {{"model", "llama3-8b"}, {"gpus", 64}, {"tp", 2}});
  CHECK_FALSE(run.settings.contains("tp"));
  CHECK_FALSE(run.settings.contains("gpus"));
  CHECK_FALSE(run.settings.contains("model"));
  CHECK(run.settings.at("vpp") == SortedJson(2));  // of the question's 32 layers
  CHECK(notes(run.without_effect, "--tensor-model-parallel-size", "the question says tp itself"));
  const GivenRun other = read_text(script, "train.sh", {{"model", "llama3-70b"}});
  CHECK(notes(other.not_understood, "the model", "32 layers here and 80"));
}

TEST_CASE("values that are none, and layouts that contradict themselves, are refused by line") {
  const std::string begin = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 \\\n";
  CHECK(refusal(begin + "  --tensor-model-parallel-size eight\n") ==
        "train.sh:2: --tensor-model-parallel-size: found \"eight\"; expected a whole number from 1 "
        "to 1000000000");
  CHECK(
      refusal(begin + "  --tensor-model-parallel-size 2 --cp-comm-type p2\n") ==
      "train.sh:2: --cp-comm-type: found \"p2\"; expected one of p2p, allgather, all_gather, a2a, "
      "a2a+p2p; did you mean \"p2p\"?");
  CHECK(refusal(begin + "  --tensor-model-parallel-size\n").find("no value") != std::string::npos);
  CHECK(refusal("model:\n  seq_length: x\ntrain:\n  micro_batch_size: 1\n", "a.yaml")
            .find("a.yaml:2: model.seq_length: found \"x\"") == 0);
  CHECK(refusal("[training]\nseq_len = 0\n[parallelism]\ntensor_parallel_degree = 2\n", "a.toml")
            .find("a.toml:2: training.seq_len: found 0") == 0);
  CHECK(refusal("{\"train_batch_size\": -1}", "ds.json").find("ds.json: train_batch_size") == 0);
}

TEST_CASE("arguments alone, one a line or all on one, are read") {
  for (const std::string between : {"\n", " ", " \\\n"}) {
    const GivenRun flags = read_text(
        "--tensor-model-parallel-size 4" + between + "--micro-batch-size 2" + between + "--bf16\n",
        "args.txt");
    CHECK(flags.settings.at("tp") == SortedJson(4));
    CHECK(flags.settings.at("micro_batch") == SortedJson(2));
    const GivenRun overrides =
        read_text("model.tensor_model_parallel_size=4" + between + "train.micro_batch_size=2" +
                      between + "++mixed_precision=bf16_mixed\n",
                  "overrides.txt");
    CHECK(overrides.program == "Megatron-Bridge");
    CHECK(overrides.settings.at("tp") == SortedJson(4));
    CHECK(overrides.settings.at("micro_batch") == SortedJson(2));
  }
}

TEST_CASE("a misspelt setting is named with its nearest, and the rest is read") {
  const GivenRun run = read_text(
      "torchrun pretrain_gpt.py --tensor-model-paralel-size 4 --micro-batch-size 2 "
      "--global-batch-size 8 --bf16\n");
  CHECK(notes(run.not_understood, "--tensor-model-paralel-size", "--tensor-model-parallel-size"));
  CHECK(run.settings.at("micro_batch") == SortedJson(2));
}

TEST_CASE("files of Orrery's own are left to their reader") {
  const SortedJson none = SortedJson::object();
  CHECK_FALSE(read_configuration_text(R"({"model": "llama3-8b", "tp": 2})", "job.json", none));
  CHECK_FALSE(read_configuration_text(R"({"model_type": "llama"})", "config.json", none));
  CHECK(refusal("echo hello\n").find("no settings of a program that is known") !=
        std::string::npos);
}

}  // namespace
}  // namespace orrery
