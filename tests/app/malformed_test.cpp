// SPDX-License-Identifier: Apache-2.0
// Five hundred malformed inputs, made of valid ones with a fixed seed: each is one line of error
// and exit code 2, and nothing is written.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/base/random.h"
#include "tests/app/run_binary.h"
#include "tests/base/fresh_seed.h"

using namespace orrery::test;
using orrery::RandomStream;
using orrery::ScratchFolder;
using orrery::SortedJson;

namespace {

// A valid file, and the arguments that read it where FILE stands.
struct Sample {
  std::string arguments, text;
  bool strict = true;  // every key is known, and every whole number a count of at least one
};

const std::string small_job =
    R"("model": "llama3.2-1b", "cluster": "dgx-h100", "seq": 4096, "global_batch": 32)";

std::vector<Sample> samples() {
  const std::string with = " --seq 4096 --global-batch 32 --gpus 8 ";
  return {
      {"simulate FILE --trace-out OUT", "{" + small_job + R"(, "gpus": 8, "tp": 2, "zero": 1})"},
      {"simulate FILE", "{" + small_job + R"(, "gpus": 16, "pp": 2, "schedule": "1f1b"})"},
      {"advise FILE", "{" + small_job + R"(, "gpus": 8, "top": 3, "tp": 1})"},
      {"plan FILE", "{" + small_job + R"(, "gpus": 8, "tokens": "1T", "objective": "cost"})"},
      {"simulate --model llama3.2-1b --cluster FILE --trace-out OUT" + with,
       R"({"name": "mine", "based_on": "dgx-h100", "title": "Mine", "host": "dgx-h100"})"},
      {"simulate --cluster dgx-h100 --model FILE" + with,
       R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
           "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
           "vocab_size": 128256, "tie_word_embeddings": true})",
       false},
      {"topology FILE --gpus 16 --svg OUT", R"({"name": "mine", "based_on": "nvlink4-ndr"})"},
      {"catalog show cluster FILE", R"({"name": "mine", "based_on": "dgx-h100"})", false},
      {"calibrate compare FILE",
       R"({"record":"conditions","program":"gemm","device":"NVIDIA H200","driver":"1"})", false},
  };
}

std::size_t below(RandomStream& random, std::size_t count) {
  return static_cast<std::size_t>(random.below(count));
}

std::string member(RandomStream& random, const SortedJson& object) {
  auto at = object.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(below(random, object.size())));
  return at.key();
}

// One way to spoil a file; all of them leave something that no command may take.
std::string spoiled(RandomStream& random, const Sample& sample) {
  const std::string& text = sample.text;
  SortedJson object = SortedJson::parse(text);
  const std::string key = member(random, object);
  switch (below(random, sample.strict ? 8 : 5)) {
    case 0:  // cut short
      return text.substr(0, 1 + below(random, text.size() - 1));
    case 1:  // more than one value
      return text + std::array{"}", "x", "{}"}[below(random, 3)];
    case 2:  // a byte that JSON has no use for
      return text.substr(0, 1) + std::array{"\x01", "\xff", "'", "//", ","}[below(random, 5)] +
             text.substr(1);
    case 3:  // a key twice
      return "{\"" + key + "\": " + object[key].dump() + "," + text.substr(1);
    case 4:  // nothing at all, or no object
      return std::array{"", "[]", "null", "17", "\"text\"", "[{}]"}[below(random, 6)];
    case 5: {  // a key that nobody knows
      std::string wrong = key;
      wrong.insert(below(random, wrong.size() + 1), "q");
      const auto value = object[key];
      object.erase(key);
      object[wrong] = value;
      return object.dump();
    }
    case 6:  // a value of another kind
      object[key] = SortedJson({{"x", SortedJson::array({1})}});
      return object.dump();
    default:  // a name that is none, a count that is none
      if (object[key].is_number())
        object[key] = std::array{-1.0, 1.5, 1e300}[below(random, 3)];
      else if (key == "name" || key == "title")
        object[key] = 17;
      else
        object[key] = "q\x01\xc3\xa9q";
      return object.dump();
  }
}

struct Line {
  std::string command;
  std::vector<std::pair<std::string, std::string>> flags;  // all of them read as numbers or names
  bool takes_more = false;                                 // any number of words
};

std::vector<Line> flag_lines() {
  const std::vector<std::pair<std::string, std::string>> job = {{"--model", "llama3.2-1b"},
                                                                {"--cluster", "dgx-h100"},
                                                                {"--gpus", "8"},
                                                                {"--seq", "4096"},
                                                                {"--global-batch", "32"}};
  const auto with = [&](std::vector<std::pair<std::string, std::string>> more) {
    more.insert(more.begin(), job.begin(), job.end());
    return more;
  };
  return {{"simulate", with({{"--tp", "2"}, {"--schedule", "1f1b"}, {"--zero", "1"}})},
          {"advise", with({{"--top", "2"}, {"--objective", "time"}, {"--threads", "1"}})},
          {"plan", with({{"--tokens", "1T"}, {"--seed", "1"}})},
          {"topology dgx-h100", {{"--gpus", "16"}, {"--rounds", "2"}, {"--traffic", "ring"}}},
          {"validate", {{"--leave-out", "blind"}, {"--threads", "1"}}, true},
          {"calibrate show", {{"--device", "h200-sxm"}}, true},
          {"catalog list cluster", {{"--device", "h100-sxm"}}}};
}

std::string in_shell(const std::string& text) { return "'" + text + "'"; }

std::string spoiled(RandomStream& random, const Line& line) {
  auto flags = line.flags;
  const std::size_t at = below(random, flags.size());
  std::string more;
  static const std::array wrong = {"q",  "-1q", "1e999", "0x8", "8q", "nan",
                                   "+-", "8k8", "\xff",  "1 2", "{]", "none/such.json"};
  switch (below(random, line.takes_more ? 4 : 6)) {
    case 0:  // a flag that is none
      flags[at].first.insert(3, "q");
      break;
    case 1:  // a flag twice
      more = flags[at].first + " " + in_shell(flags[at].second);
      break;
    case 2:  // a flag without its value
      more = "--threads";
      std::erase_if(flags, [](const auto& flag) { return flag.first == "--threads"; });
      break;
    case 3:  // a value that is none
      flags[at].second = wrong[below(random, wrong.size())];
      break;
    case 4:  // words that nobody asked for
      more = "one two three";
      break;
    default:  // a flag of another command
      more = line.command == "simulate" ? "--deadline 3" : "--dot q --regions --phase decode";
      break;
  }
  std::string text = line.command;
  for (const auto& [flag, value] : flags) text += " " + flag + " " + in_shell(value);
  return text + " " + more;
}

std::set<std::string> files_of(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

void expect_refused(const std::string& arguments) {
  const Outcome o = run_shell("timeout 20 " + std::string(ORRERY_BINARY) + " " + arguments);
  INFO(arguments << "\ncode " << o.code << "\n" << o.err << o.out.substr(0, 200));
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.starts_with("orrery: "));
  CHECK(o.err.size() < 1200);
}

}  // namespace

TEST_CASE("five hundred malformed inputs are one line of error each, and nothing is written",
          "[fuzz]") {
  const ScratchFolder scratch("malformed");
  RandomStream random(orrery::fresh(2026), 0);
  const std::vector<Sample> files = samples();
  const std::vector<Line> all_lines = flag_lines();
  const std::string folder = (scratch / "").string();
  add(scratch, "in.json", "{}");
  const auto before = files_of(folder);
  for (int i = 0; i < 320; ++i) {
    const Sample& sample = files[static_cast<std::size_t>(i) % files.size()];
    std::string arguments = sample.arguments;
    const std::string text = spoiled(random, sample);
    const std::string file = add(scratch, "in.json", text);
    arguments.replace(arguments.find("FILE"), 4, file);
    if (const std::size_t out = arguments.find("OUT"); out != std::string::npos)
      arguments.replace(out, 3, folder + "/out");
    INFO(text);
    expect_refused(arguments);
  }
  for (int i = 0; i < 180; ++i)
    expect_refused(spoiled(random, all_lines[static_cast<std::size_t>(i) % all_lines.size()]));
  CHECK(files_of(folder) == before);
}

TEST_CASE("what the malformed inputs are made of is in order", "[fuzz]") {
  const ScratchFolder scratch("wellformed");
  for (const Sample& sample : samples()) {
    if (sample.arguments.starts_with("calibrate")) continue;  // one line is no measurement
    std::string arguments = sample.arguments;
    arguments.replace(arguments.find("FILE"), 4, add(scratch, "in.json", sample.text));
    if (const std::size_t out = arguments.find("OUT"); out != std::string::npos)
      arguments.replace(out, 3, (scratch / "out").string());
    const Outcome o = run(arguments);
    INFO(arguments << "\n" << o.err);
    CHECK((o.code == 0 || o.code == 3));
  }
}

TEST_CASE("of many lines each malformed one is an error object with its number, and the rest go on",
          "[fuzz]") {
  const ScratchFolder scratch("malformed_lines");
  RandomStream random(orrery::fresh(2026), 1);
  const std::vector<Sample> files = samples();
  std::string text;
  std::set<int> bad;
  constexpr int count = 100;
  for (int i = 1; i <= count; ++i) {
    const Sample& sample = files[1];  // of simulate
    const std::string line = spoiled(random, sample);
    const bool spoil = i % 3 == 0 && !line.empty();
    if (spoil) bad.insert(i);
    text += (spoil ? line : sample.text) + "\n";
  }
  const Outcome o = run("simulate --jsonl " + add(scratch, "in.jsonl", text));
  INFO(o.err);
  CHECK(o.code == 1);
  CHECK(lines(o.err) == 1);
  REQUIRE(lines(o.out) == count);
  std::istringstream answers(o.out);
  std::string line;
  for (int i = 1; i <= count && std::getline(answers, line); ++i) {
    const auto answer = SortedJson::parse(line);
    INFO(i << ": " << line.substr(0, 200));
    CHECK(answer.contains("error") == bad.contains(i));
    if (bad.contains(i)) CHECK(answer["error"]["line"] == i);
  }
}
