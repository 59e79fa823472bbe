// SPDX-License-Identifier: Apache-2.0
// Knows what the command plan must read, refuse and print.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "hw_models/catalog.h"
#include "sim/base/json/tree.h"
#include "sim/paper/tables.h"
#include "sim/question/plan/question.h"
#include "tests/app/plan_questions.h"
#include "tests/app/run_binary.h"

using namespace orrery;
using namespace orrery::test;

namespace {

SortedJson small_question() {
  return {{"title", "A small one"}, {"model", "llama3.2-1b"},
          {"tokens", "200B"},       {"seq", 4096},
          {"global_batch", 128},    {"cluster", {"dgx-h100", "dgx-b200"}},
          {"gpus", {8, 16}},        {"micro_batch", 1},
          {"recompute", "none"},    {"pp", 1}};
}

std::vector<SortedJson> values(const SortedJson& value) {
  return plan_values(JsonValue::from({{"gpus", value}}, "test").at("gpus"));
}

// One line that names what is wrong, exit code 2, nothing on stdout.
void expect_refused(const SortedJson& question, const std::string& named) {
  const ScratchFolder scratch("plan");
  const Outcome o = run("plan " + add(scratch, "question.json", question.dump()));
  CAPTURE(o.err, named);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.find(named) != std::string::npos);
}

SortedJson without(SortedJson question, const std::string& key) {
  question.erase(key);
  return question;
}

}  // namespace

TEST_CASE("ranges and lists become values") {
  CHECK(values(7) == std::vector<SortedJson>{7});
  CHECK(values({{"from", 1024}, {"to", 16384}, {"times", 2}}) ==
        std::vector<SortedJson>{1024, 2048, 4096, 8192, 16384});
  CHECK(values({{"from", 8}, {"to", 20}, {"step", 4}}) == std::vector<SortedJson>{8, 12, 16, 20});
  CHECK(values({{"from", "10 MW"}, {"to", "30 MW"}, {"step", "10 MW"}}) ==
        std::vector<SortedJson>{"10 MW", "20 MW", "30 MW"});
  CHECK(values({8, {{"from", 16}, {"to", 64}, {"times", 2}}}) ==
        std::vector<SortedJson>{8, 16, 32, 64});
  CHECK_THROWS_AS(values({{"from", 8}, {"to", 4}, {"step", 1}}), Error);
  CHECK_THROWS_AS(values({{"from", 8}, {"to", 64}, {"times", 1}}), Error);
  CHECK_THROWS_AS(values({{"from", 8}, {"to", 64}}), Error);
  CHECK_THROWS_AS(values({{"from", "1 MW"}, {"to", "2 kW"}, {"step", "1 MW"}}), Error);
  CHECK_THROWS_AS(values(SortedJson::array()), Error);
  CHECK_THROWS_AS(values({{"from", 1}, {"to", 100000}, {"step", 1}}), Error);
}

TEST_CASE("tokens and budgets are read as people write them") {
  const auto tokens = [](const SortedJson& v) {
    return tokens_from(JsonValue::from({{"tokens", v}}, "test").at("tokens"));
  };
  CHECK(tokens("15T") == Approx(15e12));
  CHECK(tokens("300 B") == Approx(300e9));
  CHECK(tokens(1.5e12) == Approx(1.5e12));
  CHECK_THROWS_AS(tokens("15 bananas"), Error);
  CHECK_THROWS_AS(tokens(0), Error);
  const auto flop = [](const SortedJson& v) {
    return flop_from(JsonValue::from({{"flop", v}}, "test").at("flop")).si();
  };
  CHECK(flop("1e26") == Approx(1e26));
  CHECK(flop("1e26 FLOP") == Approx(1e26));
  CHECK(flop(1e29) == Approx(1e29));
  for (const SortedJson& bad : std::vector<SortedJson>{"1e26 W", "much", 0, -1e26, "1e40"})
    CHECK_THROWS_AS(flop(bad), Error);
}

TEST_CASE("ranges may be written in one text") {
  CHECK(values("1024..16384") == std::vector<SortedJson>{1024, 2048, 4096, 8192, 16384});
  CHECK(values("8..512x4") == std::vector<SortedJson>{8, 32, 128, 512});
  CHECK(values("10 MW..30 MW+10 MW") == std::vector<SortedJson>{"10 MW", "20 MW", "30 MW"});
  CHECK(values("10..40 MW") == std::vector<SortedJson>{"10 MW", "20 MW", "40 MW"});
  CHECK(values({"1..2", 7}) == std::vector<SortedJson>{1, 2, 7});
  CHECK(values("../clusters/mine.json") == std::vector<SortedJson>{"../clusters/mine.json"});
  for (const char* bad :
       {"16..8", "8..", "8..16x1", "8..16+0", "0..16", "8..16 MW+1 kW", "8..x", "1..1000000+1"})
    CHECK_THROWS_AS(values(bad), Error);
}

TEST_CASE("choices are the cross product, the count innermost") {
  SortedJson question = small_question();
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
  const SortedJson more_memory = {
      {"based_on", "gb300-nvl72"},
      {"name", "gb300-hbm4"},
      {"overrides",
       {{"accelerator", {{"memory", {{"bandwidth", "16 TB/s"}, {"capacity", "432 GiB"}}}}}}}};
  SortedJson question = small_question();
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
  SortedJson question = without(small_question(), "tokens");
  question["flop"] = "1e22";
  const PlanFile file = read_plan(JsonValue::from(question, "question.json"));
  // About six FLOP a parameter and token, and attention.
  const double tokens = file.plan.choices.front().goal.tokens;
  CHECK(file.plan.choices.front().goal.flop.si() == Approx(1e22));
  CHECK(tokens < 1e22 / (6 * 1.0e9));
  CHECK(tokens > 1e22 / (12 * 1.5e9));
}

TEST_CASE("bad questions are one line") {
  const SortedJson good = small_question();
  expect_refused(with(good, "cluter", "dgx-h100"), "did you mean \"cluster\"");
  expect_refused(with(good, "cluster", "dgx-h10"), "dgx-h100");
  expect_refused(without(good, "gpus"), "gpus");
  CHECK(error_of(good).empty());
  CHECK(error_of(without(good, "model")).find("model") != std::string::npos);
  CHECK(error_of(without(good, "tokens")).find("tokens") != std::string::npos);
  CHECK(error_of(with(good, "flop", "1e22")).find("tokens") != std::string::npos);
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
  CHECK(error_of(with(good, "gpus", {{"from", 8}, {"to", 256}, {"step", 8}})).empty());
  CHECK(run("plan").code == 2);
  CHECK(run("plan llama-405b-which-gpu").err.find("llama-405b-which-gpus") != std::string::npos);
}

TEST_CASE("a key of the other ownership is refused, not ignored") {
  const SortedJson bought = small_question(), rented = with(bought, "ownership", "rent");
  const std::vector<std::pair<const char*, SortedJson>> of_rent = {{"contract", "spot"},
                                                                   {"gpu_hour_price", 2}};
  for (const auto& [key, value] : of_rent) {
    INFO(key);
    const std::string error = error_of(with(bought, key, value));
    CHECK(error.find(key) != std::string::npos);
    CHECK(error.find("all machines are bought (the default)") != std::string::npos);
    CHECK(error.find("\"ownership\": \"rent\"") != std::string::npos);
    CHECK(error_of(with(rented, key, value)).empty());
    CHECK(error_of(with(with(bought, "ownership", {"buy", "rent"}), key, value)).empty());
  }
  const std::vector<std::pair<const char*, SortedJson>> of_owners = {{"accelerator_price", 30000},
                                                                     {"facility", "colocate"},
                                                                     {"electricity_price", 0.05},
                                                                     {"capital", "10 million USD"}};
  for (const auto& [key, value] : of_owners) {
    INFO(key);
    const std::string error = error_of(with(rented, key, value));
    CHECK(error.find(key) != std::string::npos);
    CHECK(error.find("all machines are rented") != std::string::npos);
    CHECK(error_of(with(bought, key, value)).empty());
  }
  const Outcome flag =
      run("plan --model llama3.2-1b --tokens 200B --seq 4096 --global-batch 128 --cluster dgx-h100 "
          "--gpus 8 --contract spot");
  CHECK(flag.code == 2);
  CHECK(flag.err.find("--contract") != std::string::npos);
  // Where some are bought the limit is theirs, and the report says so.
  const PlanFile both = read_plan(JsonValue::from(
      with(with(bought, "ownership", {"buy", "rent"}), "capital", "10 million USD"), "q.json"));
  REQUIRE(!both.premises.empty());
  CHECK(both.premises.back().find("limit on capital") != std::string::npos);
}

TEST_CASE("least energy counts hosts by the owner's assumption") {
  const ScratchFolder scratch("plan");
  const std::string busy = add(scratch, "busy.json", R"({"based_on": "standard", "host_load":
      {"value": 0.8, "low": 0.8, "high": 0.8, "evidence": "assumed", "source": "orrery-estimate",
       "reason": "a test"}})");
  SortedJson question = with(small_question(), "economics", {"standard", busy});
  const auto choices = [&] {
    return read_plan(JsonValue::from(question, "question.json")).plan.choices;
  };
  CHECK(choices()[0].step_key == choices()[2].step_key);
  question["objective"] = "energy";
  const std::vector<PlanChoice> energy = choices();
  std::set<std::string> keys;
  for (const PlanChoice& c : energy) {
    keys.insert(c.step_key);
    CHECK(c.question.cluster.host_load.get() == c.terms.facts.economics.host_load.get());
  }
  CHECK(keys.size() == 4);  // two clusters, two loads
}

TEST_CASE("an objective of energy or carbon has its column, within 100 columns") {
  const ScratchFolder scratch("plan");
  for (const auto& [objective, header] :
       {std::pair{"energy", "MWh"}, std::pair{"carbon", "t CO2e"}}) {
    SortedJson question = with(small_question(), "objective", objective);
    question["deadline"] = "60 days";
    question["site"] = {"norway", "us-ohio"};
    const std::string file = add(scratch, "question.json", question.dump());
    const Outcome text = run("plan " + file);
    CAPTURE(text.err, text.out);
    REQUIRE(text.code == 0);
    const std::size_t table = text.out.find("step s");
    REQUIRE(table != std::string::npos);
    const std::string first = text.out.substr(table, text.out.find('\n', table) - table);
    CHECK(first.find(header) != std::string::npos);
    CHECK(first.find("$/Mtok") == std::string::npos);
    const std::size_t end_of_table = text.out.find("MFU:");
    for (std::size_t at = text.out.find("All points"); at < end_of_table;) {
      const std::size_t end = text.out.find('\n', at);
      CHECK(columns(text.out.substr(at, end - at)) <= 100);
      at = end + 1;
    }
    // The first point's amount stands in its row, in the header's unit.
    const SortedJson result = SortedJson::parse(run("--json plan " + file).out);
    const SortedJson& p = result.at("points").at(0);
    const double amount = std::string(objective) == "energy"
                              ? p.at("energy_j").get<double>() / 3.6e9
                              : p.at("carbon_kg").get<double>() / 1e3;
    CHECK(text.out.find(fmt::format(" {:.3g} ", amount)) != std::string::npos);
  }
}

TEST_CASE("points that the objective hardly tells from the best are named") {
  // Half or a third of the uplinks: 0.7% of the cost, and other machines.
  const Outcome text = run("plan which-network --fabric nvl72-xdr --oversubscription 2,3");
  CAPTURE(text.err, text.out);
  REQUIRE(text.code == 0);
  const std::size_t at = text.out.find("Within 1% of the best by what is wanted");
  REQUIRE(at != std::string::npos);
  const std::string told = text.out.substr(at, 400);
  CHECK(told.find("oversubscription 2") != std::string::npos);
  CHECK(told.find("to buy it all") != std::string::npos);
  // Twice the uplinks of a quarter cost more: what is not close is not named.
  CHECK(run("plan which-network --fabric nvl72-4plane --oversubscription 1,4")
            .out.find("Within 1% of the best") == std::string::npos);
}

TEST_CASE("a plan is printed as text, markdown and JSON") {
  const ScratchFolder scratch("plan");
  SortedJson question = small_question();
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
  const SortedJson result = SortedJson::parse(json.out);
  REQUIRE(result.at("points").size() == 16);
  REQUIRE(result.at("best").is_number());
  const SortedJson& best = result.at("points").at(result.at("best").get<std::size_t>());
  CHECK(best.at("feasible") == true);
  for (const SortedJson& p : result.at("points")) {
    REQUIRE(p.at("fits") == true);
    if (p.at("feasible") == true)
      CHECK(best.at("cost_usd").get<double>() <= p.at("cost_usd").get<double>());
    CHECK(p.at("effective").get<double>() < 1);
  }
  CHECK(!result.at("front").empty());
  CHECK(result.at("detail").at("levers").size() > 2);
  CHECK(run("--threads 1 --json plan " + file).out == json.out);
}

TEST_CASE("a count is found by a deadline and a machine that is late counts its wait") {
  const ScratchFolder scratch("plan");
  SortedJson question = without(small_question(), "gpus");
  question["start"] = "2027-01-01";
  question["deadline"] = "2027-02-01";
  question["available"] = {{"dgx-b200", "2027-01-11"}};
  question["objective"] = "gpus";
  const Outcome o = run("--json plan " + add(scratch, "question.json", question.dump()));
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  const SortedJson result = SortedJson::parse(o.out);
  for (const SortedJson& p : result.at("points")) {
    REQUIRE(p.at("feasible") == true);
    CHECK(p.at("finish_s").get<double>() <= 31 * 86400.0);
    const double wait = p.at("finish_s").get<double>() - p.at("duration_s").get<double>();
    CHECK(wait == Approx(p.at("cluster") == "dgx-b200" ? 10 * 86400.0 : 0).margin(1));
    CHECK(!p.at("tried").empty());
  }
  CHECK(result.at("availability").size() == 1);
}

TEST_CASE("keys of the machine change the machine") {
  const auto cluster = [](const SortedJson& change) {
    SortedJson question = small_question();
    question["cluster"] = "gb200-nvl72";
    question.update(change);
    return read_plan(JsonValue::from(question, "question.json"))
        .plan.choices.front()
        .question.cluster;
  };
  const Cluster today = cluster(SortedJson::object());
  const ScaleOut& out = today.fabric.scale_out;
  CHECK(cluster({{"routing", "ecmp"}}).fabric.scale_out.routing == Routing::ecmp);
  CHECK(cluster({{"rails", 8}}).fabric.scale_out.rails == 8);
  CHECK(cluster({{"scale_up_domain", 144}}).fabric.scale_up.domain == 144);
  CHECK(cluster({{"oversubscription", 3}}).fabric.scale_out.tiers[0].oversubscription.get() == 3);
  // A value of its own unit and a factor are two ways to say one thing.
  CHECK(in_gibibytes(cluster({{"memory_capacity", "288 GiB"}}).device.memory_capacity.get()) ==
        Approx(288));
  CHECK(cluster({{"memory_capacity", 2}}).device.memory_capacity.get().si() ==
        Approx(2 * today.device.memory_capacity.get().si()));
  CHECK(cluster({{"memory_bandwidth", "16 TB/s"}}).device.memory_bandwidth.get().si() ==
        Approx(16e12));
  CHECK(cluster({{"nic_bandwidth", "1600 Gbit/s"}}).fabric.scale_out.nic_bandwidth.get().si() ==
        Approx(200e9));
  CHECK(cluster({{"scale_up_bandwidth", "1.8 TB/s"}}).fabric.scale_up.bandwidth.get().si() ==
        Approx(1.8e12));
  CHECK(cluster({{"tensor_rate", "5 PFLOP/s"}})
            .device.tensor_rate[static_cast<std::size_t>(Format::bf16)]
            .get()
            .si() == Approx(5e15));
  CHECK(cluster({{"power_cap", "900 W"}}).device.power_limit.get().si() == Approx(900));
  // A NIC in four parts: four times the ports of a switch, so that tier t reaches 4^(t + 1) as far.
  const ScaleOut split = cluster({{"planes", 4 * out.planes}}).fabric.scale_out;
  CHECK(split.planes == 4 * out.planes);
  for (std::size_t t = 0; t < out.tiers.size(); ++t) {
    CHECK(split.tiers[t].radix == 4 * out.tiers[t].radix);
    CHECK(static_cast<double>(split.tiers[t].reach) ==
          static_cast<double>(out.tiers[t].reach) * std::pow(4, t + 1));
  }
}

TEST_CASE("odd values of new keys are one line") {
  const SortedJson good = with(small_question(), "cluster", "gb200-nvl72");
  SortedJson thousands = SortedJson::array();
  for (int i = 1; i <= 10000; ++i) thousands.push_back(i);
  const std::vector<std::pair<const char*, std::vector<SortedJson>>> odd = {
      {"routing", {"spary", 3, ""}},
      {"rails", {0, -2, "two", 1.5}},
      {"planes", {0, 3, 64, 100, "x"}},
      {"oversubscription", {0, -1, "x"}},
      {"scale_up_domain", {0, 1.5, "all"}},
      {"memory_capacity", {0, "-5 GB", "288 GB/s", "much"}},
      {"memory_bandwidth", {-1, "0 TB/s", "8 TB"}},
      {"nic_bandwidth", {0, "400 Gbits", "800..400"}},
      {"scale_up_bandwidth", {-2, "900 GB", "fast"}},
      {"tensor_rate", {0, "2.5 PFLOP", "-1 PFLOP/s"}},
      {"power_cap", {700, "10 W", "-700 W"}},
      {"power", {"5 MW..1 MW", "0 W", "5 MB"}},
      {"gpus", {0, -8, "16..8", thousands}}};
  for (const auto& [key, values] : odd)
    for (const SortedJson& value : values) {
      CAPTURE(key, value.dump().substr(0, 80));
      const std::string message = error_of(with(good, key, value));
      CHECK(message.find(key) != std::string::npos);
      CHECK(message.find("expected") != std::string::npos);
      CHECK(lines(message) == 0);
      CHECK(message.size() < 400);
    }
  expect_refused(with(good, "routing", "spary"), "did you mean \"spray\"");
  expect_refused(with(good, "gpus", thousands), "at most 256 values");
}

TEST_CASE("a question may be flags, and flags win over a file") {
  const std::string flags =
      "--model llama3.2-1b --seq 4096 --global-batch 128 --micro-batch 1 --recompute none --pp 1 ";
  const Outcome alone = run("--json plan " + flags +
                            "--tokens 200B --cluster dgx-h100,dgx-b200 "
                            "--gpus 8..16 --deadline '90 days'");
  CAPTURE(alone.err);
  REQUIRE(alone.code == 0);
  const ScratchFolder scratch("plan");
  const SortedJson question = with(small_question(), "deadline", "90 days");
  const std::string file = add(scratch, "question.json", question.dump());
  const Outcome from_file = run("--json plan " + file);
  REQUIRE(from_file.code == 0);
  CHECK(SortedJson::parse(alone.out).at("points") == SortedJson::parse(from_file.out).at("points"));
  const Outcome both = run("--json plan " + file + " --gpus 16 --flop 1e22 --cluster dgx-h100");
  REQUIRE(both.code == 0);
  const SortedJson points = SortedJson::parse(both.out).at("points");
  REQUIRE(points.size() == 1);
  CHECK(points[0].at("gpus") == 16);
  CHECK(points[0].at("flop") == 1e22);
  for (const auto& [arguments, named] : std::vector<std::pair<std::string, std::string>>{
           {flags + "--tokens 1T --cluster dgx-h10 --gpus 8", "dgx-h100"},
           {flags + "--tokens 1T --gpus 8", "--cluster"},
           {flags + "--tokens 1T --cluster dgx-h100 --gpus 16..8", "--gpus"},
           {flags + "--cluster dgx-h100 --gpus 8", "--tokens"},
           {file + " --rails none", "--rails"},
           {file + " --available soon", "--available"}}) {
    const Outcome o = run("plan " + arguments);
    CAPTURE(arguments, o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(lines(o.err) == 1);
    CHECK(o.err.find(named) != std::string::npos);
  }
}

TEST_CASE("an announced machine is waited for until the catalogue's date") {
  const Cluster later = load_cluster("vr200-nvl72", 72);
  REQUIRE(later.device.available);
  const Date from = later.device.available->get();
  SortedJson question = with(small_question(), "cluster", {"dgx-h100", "vr200-nvl72"});
  const auto waits = [&](const SortedJson& q) {
    std::vector<double> days;
    for (const PlanChoice& c : read_plan(JsonValue::from(q, "question.json")).plan.choices)
      days.push_back(c.terms.wait.si() / 86400);
    return std::vector<double>{days[0], days[2]};
  };
  CHECK(waits(question) == std::vector<double>{0, 0});
  question["start"] = to_text(from - 30);
  CHECK(waits(question) == std::vector<double>{0, 30});
  question["start"] = to_text(from + 1);
  CHECK(waits(question) == std::vector<double>{0, 0});
  // The question's own date wins.
  question["available"] = {{"vr200-nvl72", to_text(from + 11)}};
  CHECK(waits(question) == std::vector<double>{0, 10});
}
