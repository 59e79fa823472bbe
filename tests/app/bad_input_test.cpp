// SPDX-License-Identifier: Apache-2.0
// Bad input gets one clear error, exit code 2, nothing on stdout and nothing half-written.
#include <catch2/catch.hpp>

#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;

namespace {

const std::string subject =
    "--model llama3-8b --cluster dgx-h100 --seq 4096 --global-batch 64 --gpus 8 ";
const std::string base = "simulate " + subject;

// A job without the accelerator count, or without the batch, to name bad ones.
const std::string any_gpus =
    "simulate --model llama3-8b --cluster dgx-h100 --seq 4096 --global-batch 64 ";

void expect_error(const std::string& arguments, const std::string& part) {
  const Outcome o = run(arguments);
  INFO(arguments << "\n" << o.err);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.starts_with("orrery: "));
  CHECK(o.err.find(part) != std::string::npos);
}

std::string with_model(const std::string& model) {
  return "simulate --cluster dgx-h100 --gpus 8 --seq 4096 --global-batch 64 --model " + model;
}

std::string with_cluster(const std::string& cluster) {
  return "simulate --model llama3-8b --gpus 8 --seq 4096 --global-batch 64 --cluster " + cluster;
}

}  // namespace

TEST_CASE("unknown names come with the nearest one") {
  expect_error(with_model("lama3-8b"), "\"llama3-8b\"?");
  expect_error(with_cluster("dgx-h10"), "\"dgx-h100\"?");
  expect_error(base + "--stack nemmo", "\"nemo\"?");
  expect_error(base + "--stack nemo@newest", "digit");
  expect_error(base + "--precision bf17", "\"bf16\"?");
  expect_error(base + "--schedule 1f1c", "\"1f1b\"?");
  expect_error(base + "--recompute ful", "\"full\"?");
  expect_error(base + "--optimizer adm", "\"adam\"?");
  expect_error(base + "--task pretrian", "\"pretrain\"?");
  expect_error(base + "--phase decod", "\"decode\"?");
  expect_error(base + "--cp 2 --context-parallel rng", "\"ring\"?");
  expect_error(base + "--offload weight", "\"weights\"?");
  expect_error(base + "--launch egar", "\"eager\"?");
  expect_error("advise " + subject + "--objective tim", "\"time\"?");
  expect_error("catalog show model llama3-8c", "\"llama3-8b\"?");
  expect_error("catalog show modell llama3-8b", "\"model\"?");
  expect_error("catalog lst", "\"list\"?");
  expect_error("validate --leave-out sorce", "\"source\"?");
  // The flag is named also where the value is a list in one text.
  expect_error(base + "--recompute fulll", "--recompute: found \"fulll\"; expected one of none");
  expect_error(base + "--recompute mlp,moe_atc", "--recompute: found \"moe_atc\"");
  expect_error(base + "--recompute mlp,moe_atc", "\"moe_act\"?");
  expect_error(base + "--recompute mlp,", "--recompute: found \"\"");
  expect_error("advise " + subject + "--recompute ful", "--recompute: found \"ful\"");
}

TEST_CASE("unknown commands and flags come with the nearest one") {
  expect_error("advice --model llama3-8b", "\"advise\"?");
  expect_error("--quiet", "no command");
  expect_error(base + "--micro-bach 1", "\"--micro-batch\"?");
  expect_error(base + "--micro-bach=1", "\"--micro-batch\"?");
  expect_error("validate --leave-ou source", "\"--leave-out\"?");
  expect_error(base + "--top 3", "a flag of advise");
  expect_error(base + "--gpus 16", "--gpus: found it more than once");
  expect_error("simulate --model", "--model: found nothing after it");
  expect_error(base + "--json=3", "--json: found a value");
  expect_error(base + "one.json two.json", "two.json");
  expect_error("catalog list model llama3-8b", "too many");
  expect_error("simulate --model llama3-8b --cluster dgx-h100 --gpus 8",
               "found no --seq and --global-batch");
}

TEST_CASE("numbers have to be numbers in range") {
  expect_error(base + "--tp 0", "--tp");
  expect_error(base + "--tp -1", "--tp");
  expect_error(base + "--tp two", "whole number");
  expect_error(base + "--tp 2.5", "whole number");
  expect_error(base + "--tp=", "--tp");
  expect_error(any_gpus + "--gpus 99999999999999999999", "whole number");
  expect_error(any_gpus + "--gpus 1000000001", "--gpus");
  expect_error(base + "--dp 4611686018427387904", "--dp");
  expect_error(base + "--tp 1000000000 --pp 1000000000 --cp 1000000000", "--gpus");
  expect_error(base + "--gpu-hour-price nan", "number");
  expect_error(base + "--gpu-hour-price 1e999", "number");
  expect_error(base + "--gpu-hour-price -1", "--gpu-hour-price");
  expect_error(base + "--expert-imbalance 0.5", "--expert-imbalance");
  expect_error(base + "--attention-dropout 1", "below 1");
  expect_error(base + "--hidden-dropout -0.1", "--hidden-dropout");
  expect_error(base + "--zero 4", "0 to 3");
  expect_error(base + "--stage-layers 1,,3", "--stage-layers");
  expect_error(base + "--mtp perhaps", "true or false");
  expect_error(base + "--threads x", "--threads");
  expect_error(base + "--seed -1", "--seed");
  expect_error("advise " + subject + "--top 0", "--top");
}

TEST_CASE("layouts that cannot be are refused with the numbers") {
  expect_error(any_gpus + "--gpus 7 --tp 8", "7");
  expect_error(any_gpus + "--gpus 48 --tp 3", "heads");
  expect_error(any_gpus + "--gpus 64 --pp 64", "layers");
  expect_error(base + "--micro-batch 7", "batch");
  expect_error(base + "--ep 8", "expert");
  expect_error(base + "--recompute-layers 100", "100 of 32");
  expect_error(base + "--stage-layers 1,2,3", "3 entries");
  expect_error(base + "--network packets", "flow");
  expect_error(
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 1000000000 "
      "--global-batch 1000000000",
      "106 days");
}

TEST_CASE("advise says what it does not search") {
  expect_error(
      "advise --model llama3-8b --cluster dgx-h100 --gpus 8 --phase decode --batch 4 "
      "--context 4096",
      "a flag of simulate");
  expect_error("advise " + subject + "--launch eager", "a flag of simulate");
  expect_error("advise " + subject + "--precision bf16,fp7", "--precision");
  expect_error("advise " + subject + "--optimizer adam,adma", "\"adam\"?");
  expect_error("advise " + subject + "--pareto time,money", "time,energy");
  expect_error("advise " + subject + "--time-limit 0", "--time-limit");
  expect_error("advise " + subject + "--rank-order tp-pp", "tp-cp-dp-pp");
  expect_error("advise " + subject + "--bucket 40", "--bucket");
}

TEST_CASE("broken scenario files are one error each") {
  const ScratchFolder scratch("bad_scenario");
  const std::string good = R"({"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 8, "seq": 4096,
    "global_batch": 64})";
  CHECK(run("simulate " + add(scratch, "good.json", good)).err.empty());
  expect_error("simulate " + add(scratch, "empty.json", ""), "empty.json");
  expect_error("simulate " + add(scratch, "cut.json", good.substr(0, 40)), "cut.json");
  expect_error("simulate " + add(scratch, "key.json", R"({"modle": "llama3-8b"})"), "\"model\"?");
  expect_error(
      "simulate " + add(scratch, "type.json", R"({"model": 8, "cluster": "dgx-h100", "gpus": 8,
    "seq": 4096, "global_batch": 64})"),
      "model");
  expect_error("simulate " + add(scratch, "list.json", "[]"), "list.json");
  expect_error("simulate " + add(scratch, "deep.json", std::string(100000, '[')), "deep.json");
  expect_error("simulate " + add(scratch, "twice.json", R"({"tp": 1, "tp": 2})"), "tp");
  expect_error("simulate " + add(scratch, "huge.json", R"({"gpus": 1e999})"), "huge.json");
  expect_error("simulate " + add(scratch, "zero.json", std::string(64, '\0')), "zero.json");
  // The flag is named where the flag is wrong, the file where the file is.
  expect_error("simulate " + (scratch / "good.json").string() + " --zero 9", "--zero");
  expect_error("simulate /", "/");
  expect_error("simulate /nowhere/at/all.json", "all.json");
}

TEST_CASE("results that cannot be written are errors, and leave nothing behind") {
  expect_error(base + "--trace-out /nowhere/at/all.json", "all.json");
  expect_error(base + "--trace-out /", "/");
  const Outcome full = run_shell(std::string(ORRERY_BINARY) + " " + base + "2>&1 >/dev/full");
  CHECK(full.code == 4);
  CHECK(lines(full.out) == 1);
  // A reader that has seen enough ends the command in silence.
  const Outcome pipe = run_shell(std::string(ORRERY_BINARY) + " " + base + "--json | head -n 1");
  CHECK(pipe.out == "{\n");
  CHECK(pipe.err.empty());
}

TEST_CASE("validate looks at its files before it predicts") {
  const ScratchFolder scratch("validate_files");
  const std::string cut = add(scratch, "cut.json", R"({"relative_margin": 0.1,)");
  const std::string half = add(scratch, "half.json", R"({"relative_margin": 0.1,
    "absolute_margin": 0, "gates": [{"group": "x"}]})");
  const std::string fresh = (scratch / "fresh").string();
  const std::string table = " missing-table.csv";  // read only when the files are found in order
  expect_error("validate --gates /nowhere/gates.json" + table, "/nowhere/gates.json");
  expect_error("validate --gates /" + table, "directory");
  expect_error("validate --gates " + cut + table, "cut.json");
  expect_error("validate --gates " + half + table, "gates[0].figure");
  expect_error("validate --write-gates " + cut + table, "cut.json");
  expect_error("validate --write-gates /nowhere/gates.json" + table, "/nowhere/gates.json");
  expect_error("validate --html " + cut + "/page.html" + table, "cut.json");
  expect_error("validate --plots " + cut + "/page" + table, "cut.json/page");
  expect_error("validate --plots /dev/null" + table, "/dev/null");
  expect_error("validate --nested --leave-out blind", "--leave-out");
  expect_error("validate --free --nested", "--free");
  expect_error("validate --nested --gates g.json", "--gates");
  expect_error("validate --nested" + table, "--nested");
  expect_error("validate --leave-out nested --model-error /nowhere/e.json" + table, "e.json");
  expect_error("validate --leave-out nested --model-error /" + table, "directory");
  expect_error("validate --leave-out source --gates " + half, "--gates: found --leave-out");
  for (const std::string& table_alone : {"--gates " + half, std::string("--fit")}) {
    const Outcome o = run("validate --json " + table_alone);
    CHECK(o.code == 2);
    CHECK(o.err.find("found --json; expected no --json: it prints a table") != std::string::npos);
  }
  expect_error("validate --fit --html " + fresh, "--html: found --fit");
  for (const char* flag : {"--gates", "--write-gates", "--html", "--plots"})
    expect_error("validate " + std::string(flag) + " ''", flag);
  expect_error(base + "--trace-out ''", "--trace-out");
  // What is in order is not made either when another thing is not.
  expect_error("validate --write-gates " + fresh + " --plots " + fresh + "s/page" + table,
               "missing-table.csv");
  expect_error("topology dgx-h100 --svg " + fresh + " --dot /nowhere/x.dot", "/nowhere/x.dot");
  CHECK(lines(run_shell("ls -A " + (scratch / "").string()).out) == 2);
}

TEST_CASE("input without an end is one short error") {
  expect_error("validate /dev/zero", "more than 64 MiB");
  expect_error("simulate /dev/zero", "/dev/zero");
  const std::string name(10000, 'x');
  for (const std::string& question : {with_model(name), with_cluster(name)}) {
    expect_error(question, "xxx...");
    CHECK(run(question).err.size() < 400);
  }
}

TEST_CASE("broken model files are one error each") {
  const ScratchFolder scratch("bad_model");
  expect_error(with_model("/"), "a folder without config.json");
  expect_error(with_model("''"), "model");
  expect_error(with_model(add(scratch, "empty.json", "")), "empty.json");
  expect_error(with_model(add(scratch, "other.json", R"({"model_type": "llamma"})")), "\"llama\"?");
  expect_error(with_model(add(scratch, "config.json", R"({"model_type": "llama",
    "hidden_size": -4096})")),
               "config.json");
  expect_error(with_model(add(scratch, "nan.json", R"({"model_type": "llama",
    "hidden_size": NaN})")),
               "nan.json");
}

TEST_CASE("cluster files with bad values name the place") {
  const ScratchFolder scratch("bad_cluster");
  const auto overlay = [](const std::string& bandwidth) {
    return R"({"based_on": "dgx-h100", "name": "mine", "overrides": {"accelerator": {"memory":
      {"bandwidth": {"value": )" +
           bandwidth + R"(, "evidence": "specified", "source": "orrery-estimate"}}}}})";
  };
  CHECK(run(with_cluster(add(scratch, "good.json", overlay("\"3.35 TB/s\"")))).err.empty());
  expect_error(with_cluster(add(scratch, "bare.json", overlay("3.35"))), "bandwidth");
  expect_error(with_cluster(add(scratch, "unit.json", overlay("\"3.35 TB\""))), "bandwidth");
  expect_error(with_cluster(add(scratch, "word.json", overlay("\"fast\""))), "bandwidth");
  expect_error(with_cluster(add(scratch, "minus.json", overlay("\"-3.35 TB/s\""))), "bandwidth");
  expect_error(with_cluster(add(scratch, "loop.json", R"({"based_on": "loop.json"})")),
               "loop.json");
  expect_error(with_cluster("/"), "directory");
  expect_error(with_cluster("''"), "cluster");
}

TEST_CASE("stack files with bad values name the place") {
  const ScratchFolder scratch("bad_stack");
  expect_error(base + "--stack " + add(scratch, "empty.json", "{}"), "empty.json");
  const std::string loop = (scratch / "loop.json").string();
  add(scratch, "loop.json",
      R"({"name": "loop", "title": "", "framework": "", "based_on": ")" + loop +
          R"(", "base": {}, "releases": []})");
  expect_error(base + "--stack " + loop, "loop.json");
}

TEST_CASE("what an accelerator lacks is refused by name") {
  const auto expect_refusal = [](const std::string& arguments, const std::string& part) {
    const Outcome o = run(arguments);
    INFO(arguments << "\n" << o.out << o.err);
    CHECK(o.code == 3);
    CHECK(o.err.empty());
    CHECK(o.out.find("It does not run") != std::string::npos);
    CHECK(o.out.find(part) != std::string::npos);
  };
  const std::string job = " --model llama3-8b --gpus 8 --seq 1024 --global-batch 8 ";
  expect_refusal("simulate --cluster dgx-v100" + job, "fp16");
  expect_refusal("advise --cluster dgx-a100 --precision fp8" + job, "A100");
  const Outcome fp16 =
      run("simulate --cluster dgx-v100 --precision fp16 --zero 3 --stack pytorch" + job);
  INFO(fp16.out << fp16.err);
  CHECK(fp16.err.empty());
  CHECK(fp16.out.find("It does not run") == std::string::npos);
}

TEST_CASE("calibrate says what it needs") {
  expect_error("calibrate", "measure, fit, show or compare");
  expect_error("calibrate show", "--device");
  expect_error("calibrate show --device h100-sx", "h100-sxm");
  expect_error("calibrate fit --device h100-sxm", "tables");
  expect_error("calibrate fit", "nothing to fit");
  expect_error("calibrate compare", "0 sides");
  expect_error("calibrate compare h200-sxm h100-sxm b200-sxm", "3 sides");
  expect_error("calibrate compare h200-sx", "h200-sxm");
  expect_error("calibrate compare no-folder/all.jsonl", "no-folder/all.jsonl");
  expect_error("calibrate show --device gb300 --plots plots", "no measured lines");
  expect_error("calibrate --device h200-sxm measure", "flags before it");
  const auto measure = run("calibrate measure --part gem");  // the script's own words
  CHECK(measure.code == 2);
  CHECK(measure.err.find("expected one of gemm") != std::string::npos);
  CHECK(run("calibrate show --device gb300").code == 0);
}

TEST_CASE("broken measured lines are one error each, whoever reads them") {
  const ScratchFolder scratch("bad_lines");
  const std::string conditions =
      R"({"record":"conditions","program":"gemm","device":"NVIDIA H200"})"
      "\n";
  const std::string product =
      R"({"record":"sample","part":"gemm","kind":"gemm","library":"cublas","mode":"burst",)"
      R"("input":"bf16","output":"bf16","m":512,"n":512,"k":512,"time_us":9})"
      "\n";
  std::string other = conditions;
  other.replace(other.find("H200"), 4, "B200");
  std::string unknown = conditions;
  unknown.replace(unknown.find("NVIDIA H200"), 11, "Abacus");
  std::string negative = product;
  negative.replace(negative.find(":9"), 2, ":-9");
  struct Case {
    const char* name;
    std::string text, part;
  };
  const std::vector<Case> cases = {{"empty", "", "no lines"},
                                   {"binary", std::string(64, '\0'), "line 1"},
                                   {"cut", conditions + product.substr(0, 50), "line 2"},
                                   {"alone", product, "conditions before"},
                                   {"negative", conditions + negative, "time_us"},
                                   {"unknown", unknown + product, "Abacus"},
                                   {"mixed", conditions + product + other + product, "one device"},
                                   {"bare", conditions, "sample"}};
  for (const Case& c : cases) {
    const std::string file = add(scratch, std::string(c.name) + ".jsonl", c.text);
    expect_error("calibrate fit " + file, c.part);
    expect_error("calibrate compare " + file, c.part);
    if (c.part != "sample") expect_error("validate " + file, c.part);
    const bool read = c.part == "sample";  // a run without samples can be shown, not drawn
    expect_error("calibrate show --device h200-sxm " + std::string(read ? "--plots x " : "") + file,
                 read ? "no measured lines" : c.part);
  }
  expect_error("validate " + (scratch / "bare.jsonl").string(), "nothing to predict");
  const std::string good = add(scratch, "good.jsonl", conditions + product);
  expect_error("calibrate fit --device h100-sxm " + good, "samples of h200-sxm");
  expect_error("calibrate show --device h100-sxm " + good, "samples of h200-sxm");
  expect_error("calibrate fit --based-on h200-sx " + good, "\"h200-sxm\"?");
  expect_error("calibrate show --device h200-sxm --plots " + good + " " + good, "good.jsonl");
  const std::string table = add(scratch, "h200_gemm_vllm_bfloat16.csv", "m,n,k\n1,2,3\n");
  expect_error("calibrate fit " + table, "--device");
  expect_error("calibrate fit --device h200-sxm " + table, "latency_ms");
  expect_error("validate " + table, "latency_ms");
  expect_error("calibrate fit --device h200-sxm " + table + " " + good, "together");
  expect_error("calibrate compare " + add(scratch, "cut.json", "{"), "cut.json");
  expect_error("calibrate compare specification", "specification");
}

TEST_CASE("commands without what they need say so") {
  expect_error("plan question.json", "question.json");
  expect_error("calibrate show", "--device");
  expect_error("calibrate shwo --device h200-sxm", "show");
}

TEST_CASE("more accelerators than the fabric joins are refused by every command") {
  const std::string many =
      " --model llama3-8b --cluster dgx-h100 --seq 4096 --global-batch 1048576 --gpus 1048576";
  const std::string said = "found 1048576 accelerators; expected no more than the ports";
  expect_error("simulate" + many, said);
  expect_error("advise" + many, said);
}

TEST_CASE("any optimizer is for advise alone") {
  expect_error(base + "--optimizer any", "found \"any\"");
}
