// Knows what the command plan must read, refuse and print.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "hw_models/catalog.h"
#include "sim/app/plan_question.h"
#include "sim/app/tables.h"
#include "tests/app/run_binary.h"

using namespace orrery;
using namespace orrery::test;
using Json = nlohmann::json;

namespace {

Json small_question() {
  return {{"title", "A small one"}, {"model", "llama3.2-1b"},
          {"tokens", "200B"},       {"seq", 4096},
          {"global_batch", 128},    {"cluster", {"dgx-h100", "dgx-b200"}},
          {"gpus", {8, 16}},        {"micro_batch", 1},
          {"recompute", "none"},    {"pp", 1}};
}

std::vector<Json> values(const Json& value) {
  return plan_values(JsonValue::from({{"gpus", value}}, "test").at("gpus"));
}

std::string error_of(const Json& question) {
  try {
    read_plan(JsonValue::from(question, "question.json"));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

// One line that names what is wrong, exit code 2, nothing on stdout.
void expect_refused(const Json& question, const std::string& named) {
  const ScratchFolder scratch("plan");
  const Outcome o = run("plan " + add(scratch, "question.json", question.dump()));
  CAPTURE(o.err, named);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.find(named) != std::string::npos);
}

Json with(Json question, const std::string& key, const Json& value) {
  question[key] = value;
  return question;
}
Json without(Json question, const std::string& key) {
  question.erase(key);
  return question;
}

}  // namespace

TEST_CASE("ranges and lists become values") {
  CHECK(values(7) == std::vector<Json>{7});
  CHECK(values({{"from", 1024}, {"to", 16384}, {"times", 2}}) ==
        std::vector<Json>{1024, 2048, 4096, 8192, 16384});
  CHECK(values({{"from", 8}, {"to", 20}, {"step", 4}}) == std::vector<Json>{8, 12, 16, 20});
  CHECK(values({{"from", "10 MW"}, {"to", "30 MW"}, {"step", "10 MW"}}) ==
        std::vector<Json>{"10 MW", "20 MW", "30 MW"});
  CHECK(values({8, {{"from", 16}, {"to", 64}, {"times", 2}}}) == std::vector<Json>{8, 16, 32, 64});
  CHECK_THROWS_AS(values({{"from", 8}, {"to", 4}, {"step", 1}}), Error);
  CHECK_THROWS_AS(values({{"from", 8}, {"to", 64}, {"times", 1}}), Error);
  CHECK_THROWS_AS(values({{"from", 8}, {"to", 64}}), Error);
  CHECK_THROWS_AS(values({{"from", "1 MW"}, {"to", "2 kW"}, {"step", "1 MW"}}), Error);
  CHECK_THROWS_AS(values(Json::array()), Error);
  CHECK_THROWS_AS(values({{"from", 1}, {"to", 100000}, {"step", 1}}), Error);
}

TEST_CASE("tokens and dates are read as people write them") {
  const auto tokens = [](const Json& v) {
    return tokens_from(JsonValue::from({{"tokens", v}}, "test").at("tokens"));
  };
  CHECK(tokens("15T") == Approx(15e12));
  CHECK(tokens("300 B") == Approx(300e9));
  CHECK(tokens(1.5e12) == Approx(1.5e12));
  CHECK_THROWS_AS(tokens("15 bananas"), Error);
  CHECK_THROWS_AS(tokens(0), Error);
  const auto date = [](const std::string& v) {
    return date_from(JsonValue::from({{"start", v}}, "test").at("start"));
  };
  CHECK(date("1970-01-02") == 1);
  CHECK(date("2027-03-01") - date("2027-02-28") == 1);
  CHECK(date("2028-03-01") - date("2028-02-28") == 2);
  CHECK(date_text(date("2027-06-30")) == "2027-06-30");
  for (const char* bad : {"2027-02-30", "2027-6-30", "soon", "2027-06-30x"})
    CHECK_THROWS_AS(date(bad), Error);
}

TEST_CASE("choices are the cross product, the count innermost") {
  Json question = small_question();
  question["precision"] = {"bf16", "fp8"};
  const PlanFile file = read_plan(JsonValue::from(question, "question.json"));
  CHECK(file.plan.varied == std::vector<std::string>{"cluster", "precision", "gpus"});
  REQUIRE(file.plan.choices.size() == 8);
  CHECK(file.plan.choices[0].values == std::vector<std::string>{"dgx-h100", "bf16", "8"});
  CHECK(file.plan.choices[1].values == std::vector<std::string>{"dgx-h100", "bf16", "16"});
  CHECK(file.plan.choices[2].values == std::vector<std::string>{"dgx-h100", "fp8", "8"});
  CHECK(file.plan.choices[7].values == std::vector<std::string>{"dgx-b200", "fp8", "16"});
  CHECK(file.plan.choices[7].question.cluster.gpus == 16);
}

TEST_CASE("hypothetical machines stand beside real ones") {
  const Json more_memory = {
      {"based_on", "gb300-nvl72"},
      {"name", "gb300-hbm4"},
      {"overrides",
       {{"accelerator", {{"memory", {{"bandwidth", "16 TB/s"}, {"capacity", "432 GiB"}}}}}}}};
  Json question = small_question();
  question["cluster"] = {"gb300-nvl72", more_memory};
  question["nic_bandwidth"] = {1, 2};
  question["power_cap"] = "1200 W";
  const PlanFile file = read_plan(JsonValue::from(question, "question.json"));
  REQUIRE(file.plan.choices.size() == 8);
  const Cluster& today = file.plan.choices[0].question.cluster;
  const Cluster& then = file.plan.choices[4].question.cluster;
  CHECK(then.name == "gb300-hbm4");
  CHECK(then.device.memory_bandwidth.get() == BytesPerSecond(16e12));
  CHECK(today.device.memory_bandwidth.get() == BytesPerSecond(8e12));
  CHECK(today.device.power_limit.get() == Watts(1200));
  const Cluster& faster = file.plan.choices[2].question.cluster;
  CHECK(faster.fabric.scale_out.nic_bandwidth.get().si() ==
        Approx(2 * today.fabric.scale_out.nic_bandwidth.get().si()));
  // Steps of one key are searched once: money does not make another.
  CHECK(file.plan.choices[0].step_key == file.plan.choices[1].step_key);
  CHECK(file.plan.choices[0].step_key != file.plan.choices[2].step_key);
}

TEST_CASE("a compute budget becomes tokens") {
  Json question = without(small_question(), "tokens");
  question["compute"] = "1e22 FLOP";
  const PlanFile file = read_plan(JsonValue::from(question, "question.json"));
  // About six FLOP a parameter and token, and attention.
  const double tokens = file.plan.choices.front().goal.tokens;
  CHECK(tokens < 1e22 / (6 * 1.0e9));
  CHECK(tokens > 1e22 / (12 * 1.5e9));
}

TEST_CASE("bad questions are one line") {
  const Json good = small_question();
  expect_refused(with(good, "cluter", "dgx-h100"), "did you mean \"cluster\"");
  expect_refused(with(good, "cluster", "dgx-h10"), "dgx-h100");
  expect_refused(without(good, "gpus"), "gpus");
  CHECK(error_of(good).empty());
  CHECK(error_of(without(good, "model")).find("model") != std::string::npos);
  CHECK(error_of(without(good, "tokens")).find("tokens") != std::string::npos);
  CHECK(error_of(with(good, "compute", "1e22 FLOP")).find("tokens") != std::string::npos);
  CHECK(error_of(with(good, "deadline", "2027-06-30")).find("start") != std::string::npos);
  CHECK(error_of(with(good, "deadline", "20 kg")).find("deadline") != std::string::npos);
  CHECK(error_of(with(good, "objective", "tim")).find("time") != std::string::npos);
  CHECK(error_of(with(good, "speedup", "gemmm=2")).find("gemm") != std::string::npos);
  CHECK(error_of(with(good, "power", "10 MB")).find("power") != std::string::npos);
  CHECK(error_of(with(good, "oversubscription", 0.5)).find("oversubscription") !=
        std::string::npos);
  CHECK(error_of(with(good, "site", "norwai")).find("norway") != std::string::npos);
  CHECK(error_of(with(good, "checkpoint", {{"to", "host memory"}})).find("checkpoint") !=
        std::string::npos);
  CHECK(error_of(with(good, "cluster", {{"based_on", "dgx-h100"}})).find("name") !=
        std::string::npos);
  CHECK(error_of(with(good, "gpus", {{"from", 1}, {"to", 256}, {"step", 1}})).empty());
  CHECK(run("plan").code == 2);
  CHECK(run("plan llama-405b-which-gpu").err.find("llama-405b-which-gpus") != std::string::npos);
}

TEST_CASE("a plan is printed as text, markdown and JSON") {
  const ScratchFolder scratch("plan");
  Json question = small_question();
  question["speedup"] = "products=1.2";
  question["deadline"] = "40 days";
  question["power"] = {"20 kW", "100 kW"};
  const std::string file = add(scratch, "question.json", question.dump());
  const Outcome text = run("plan " + file);
  CAPTURE(text.err);
  REQUIRE(text.code == 0);
  CHECK(text.err.empty());
  for (const char* part : {"A small one", "Answer:", "least cost", "All points", "dgx-h100",
                           "dgx-b200", "Power to tokens", "What faster kernels are worth",
                           "products=1.2", "The bill:", "What would change it", "How it was found"})
    CHECK(text.out.find(part) != std::string::npos);
  for (std::size_t at = 0; at < text.out.size();) {
    const std::size_t end = std::min(text.out.find('\n', at), text.out.size());
    CHECK(columns(text.out.substr(at, end - at)) <= 132);
    at = end + 1;
  }
  const Outcome markdown = run("plan --markdown " + file);
  CHECK(markdown.code == 0);
  CHECK(markdown.out.find("# A small one") == 0);
  CHECK(markdown.out.find("| dgx-h100 |") != std::string::npos);
  const Outcome json = run("--json plan " + file);
  REQUIRE(json.code == 0);
  const Json result = Json::parse(json.out);
  REQUIRE(result.at("points").size() == 16);
  REQUIRE(result.at("best").is_number());
  const Json& best = result.at("points").at(result.at("best").get<std::size_t>());
  CHECK(best.at("feasible") == true);
  for (const Json& p : result.at("points")) {
    REQUIRE(p.at("fits") == true);
    if (p.at("feasible") == true) CHECK(best.at("cost_usd") <= p.at("cost_usd"));
    CHECK(p.at("effective").get<double>() < 1);
  }
  CHECK(!result.at("front").empty());
  CHECK(result.at("detail").at("levers").size() > 2);
  CHECK(run("--threads 1 --json plan " + file).out == json.out);
}

TEST_CASE("a count is found by a deadline and a machine that is late counts its wait") {
  const ScratchFolder scratch("plan");
  Json question = without(small_question(), "gpus");
  question["start"] = "2027-01-01";
  question["deadline"] = "2027-02-01";
  question["available"] = {{"dgx-b200", "2027-01-11"}};
  question["objective"] = "gpus";
  const Outcome o = run("--json plan " + add(scratch, "question.json", question.dump()));
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  const Json result = Json::parse(o.out);
  for (const Json& p : result.at("points")) {
    REQUIRE(p.at("feasible") == true);
    CHECK(p.at("finish_s").get<double>() <= 31 * 86400.0);
    const double wait = p.at("finish_s").get<double>() - p.at("duration_s").get<double>();
    CHECK(wait == Approx(p.at("cluster") == "dgx-b200" ? 10 * 86400.0 : 0).margin(1));
    CHECK(!p.at("tried").empty());
  }
  CHECK(result.at("availability").size() == 1);
}

TEST_CASE("shipped questions are valid and listed") {
  const std::vector<std::string> names = catalog_names("workloads/catalog/questions");
  CHECK(names.size() >= 4);
  const std::string listed = run("catalog list question").out;
  for (const std::string& name : names) {
    CAPTURE(name);
    const PlanFile file = read_plan(load_plan_file(name));
    CHECK(!file.title.empty());
    CHECK(!file.plan.choices.empty());
    CHECK(listed.find(name) != std::string::npos);
  }
}
