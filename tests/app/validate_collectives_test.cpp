// SPDX-License-Identifier: Apache-2.0
// Tests how measured collectives become calls, what is refused, and how errors are scored.
#include <catch2/catch.hpp>

#include <filesystem>
#include <set>

#include "hw_models/catalog.h"
#include "sim/app/validate/json.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/validate/parts/collectives.h"
#include "sim/validate/parts/collectives_report.h"
#include "sim/validate/score/report.h"

namespace orrery {
namespace {

const char* header =
    "id,source,gpu,interconnect,library,collective,mode,ranks,ranks_per_domain,bytes,tokens,"
    "hidden,topk,experts,domains_per_token,sms,format,time_us,split\n";
const char* infiniband = "IB NDR 400G/GPU";

CollectiveReader shipped_reader() {
  return CollectiveReader(load_aliases(data_root() / "validation/aliases.json"));
}

ModelError shipped_error() { return load_model_error(data_root() / "validation/model_error.json"); }

// The message of the error that a table gives, or "".
std::string refusal(const std::string& rows) {
  auto reader = shipped_reader();
  try {
    reader.read(parse_csv(header + rows, "t.csv"));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

std::vector<ScoredCollective> scored_rows(const std::vector<MeasuredCollective>& rows) {
  std::vector<ScoredCollective> scored;
  for (const MeasuredCollective& row : rows)
    scored.push_back(score_collective(row, shipped_error()));
  return scored;
}

}  // namespace

TEST_CASE("a row of nccl-tests becomes the engine's call", "[validate]") {
  auto reader = shipped_reader();
  const auto rows = reader.read(parse_csv(
      std::string(header) + "a,S,H100-SXM5-80GB,,nccl,all_reduce,,8,,67108864,,,,,,,,324.5,fit\n" +
          "b,S,H100-SXM5-80GB," + infiniband + ",nccl,all-gather,,64,8,1024,,,,,,,,20,held-out\n" +
          "c,S,GB200,,nccl,all_to_all,,72,,4194304,,,,,,,,50,\n",
      "t.csv"));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].call == Collective{.kind = CollectiveKind::all_reduce,
                                   .group = {.size = 8, .per_domain = 8, .span = 8},
                                   .bytes = Bytes(67108864)});
  CHECK_FALSE(rows[0].held_out);
  CHECK(*rows[0].measured == Approx(324.5e-6));
  CHECK(rows[0].large());
  CHECK(rows[1].call.kind == CollectiveKind::all_gather);
  CHECK(rows[1].call.group == GroupShape{.size = 64, .per_domain = 8, .domains = 8, .span = 64});
  CHECK(rows[1].crosses());
  CHECK(rows[1].held_out);
  CHECK_FALSE(rows[1].large());
  CHECK(rows[2].call.group.per_domain == 72);
  CHECK(rows[2].held_out);  // what does not say that it was fitted is held out
  for (const MeasuredCollective& row : rows) {
    CHECK(row.skipped.empty());
    const auto s = score_collective(row, shipped_error());
    const auto& c = *row.cluster;
    const double engine = collective_time(row.call, c.fabric, c.collective_costs).time.si();
    CHECK(s.prediction->time.si() == engine);
    CHECK(*s.error == Approx(engine / *row.measured - 1));
    CHECK(s.low < engine);
    CHECK(s.high > engine);
  }
}

TEST_CASE("exchanges of tokens are told by tokens", "[validate]") {
  auto reader = shipped_reader();
  const std::string start = "a,S,H100-SXM5-80GB," + std::string(infiniband) + ",";
  const auto call = [&](const std::string& rest) {
    return reader.read(parse_csv(header + start + rest + ",100,\n", "t.csv")).at(0).call;
  };
  // fp8 has a scale of 4 B for 128 elements, nvfp4 one of a byte for 16.
  const Collective dispatch = call("deepep,dispatch,normal,32,8,,128,7168,8,256,4,20,fp8");
  CHECK(dispatch.bytes.si() == Approx(128.0 * 8 * 7392));
  CHECK(dispatch.kind == CollectiveKind::all_to_all);
  CHECK(dispatch.library == CollectiveLibrary::deepep);
  CHECK(dispatch.exchange == TokenExchange{.phase = ExchangePhase::dispatch,
                                           .tokens = 128,
                                           .experts = 8,
                                           .pool = 256,
                                           .most_domains = 4,
                                           .sms = 20});
  const Collective combine = call("deepep,combine,low-latency,8,8,,64,7168,8,,,,bf16");
  CHECK(combine.bytes.si() == Approx(64.0 * 8 * 14336));
  CHECK(combine.exchange.phase == ExchangePhase::combine);
  CHECK(combine.exchange.sms == 0);
  CHECK(call("trtllm-alltoall,dispatch,two-sided,8,8,,1,7168,8,,,,nvfp4").bytes.si() ==
        Approx(8.0 * 4032));
  CHECK(call("trtllm-alltoall,prepare,two-sided,8,8,,1,7168,8,,,,bf16").library ==
        CollectiveLibrary::nvlink_two_sided);
  CHECK(call("trtllm-alltoall,combine,one-sided,8,8,,1,7168,8,,,,bf16").library ==
        CollectiveLibrary::nvlink_one_sided);
  // A stated size is taken as it is.
  CHECK(call("deepep,dispatch,normal,8,8,1000000,128,7168,8,,,,fp8").bytes.si() == 1e6);
}

TEST_CASE("the mode fixes the algorithm where the row tells it", "[validate]") {
  auto reader = shipped_reader();
  const auto algorithm = [&](const std::string& library, const std::string& kind,
                             const std::string& mode) {
    const auto rows =
        reader.read(parse_csv(header + ("a,S,H200-SXM-141GB,," + library + "," + kind + "," + mode +
                                        ",8,8,1073741824,,,,,,,,4000,\n"),
                              "t.csv"));
    const auto s = score_collective(rows.at(0), shipped_error());
    return s.prediction ? std::string(to_text(s.prediction->algorithm)) : s.skipped;
  };
  CHECK(algorithm("nccl", "all_reduce", "") == "nvls");
  CHECK(algorithm("nccl", "all_reduce", "ring") == "ring");
  CHECK(algorithm("deepep", "dispatch", "normal") == "deepep");
  CHECK(algorithm("nccl", "all_reduce", "nvls-tree").find("not possible") != std::string::npos);
}

TEST_CASE("rows that cannot be predicted tell why", "[validate]") {
  auto reader = shipped_reader();
  const auto reason = [&](const std::string& row) {
    return reader.read(parse_csv(header + row + "\n", "t.csv")).at(0).skipped;
  };
  CHECK(reason("a,S,Z80,,nccl,all_reduce,,8,8,1024,,,,,,,,20,").find("aliases") !=
        std::string::npos);
  CHECK(reason("a,S,B200,,nccl,all_reduce,,8,8,,,,,,,,,20,") ==
        "the source does not tell the size");
  CHECK(reason("a,S,B200,,nccl,all_reduce,,8,8,1024,,,,,,,,,") == "the source tells no time");
  CHECK(reason("a,S,B200,,nccl,all_reduce,,16,8,1024,,,,,,,,20,") ==
        "the source does not tell the network");
  CHECK(reason("a,S,B200,,nccl,all_reduce,eager,8,8,1024,,,,,,,,20,").find("host's time") !=
        std::string::npos);
  CHECK(reason("a,S,B200,,nccl,all_reduce,eager,8,8,2097152,,,,,,,,40,").empty());
  CHECK(reason("a,S,B200,,vllm,all_reduce,eager,8,8,2097152,,,,,,,,40,").find("copy") !=
        std::string::npos);
  CHECK(reason("a,S,l40s-none,,nccl,all_reduce,,8,8,1024,,,,,,,,20,") != "");
}

TEST_CASE("errors in a table of collectives name line and column", "[validate]") {
  struct Bad {
    const char *row, *expected;
  };
  for (const Bad& bad : {
           Bad{"a,S,B200,,ncl,all_reduce,,8,8,1,,,,,,,,20,", "line 2, column library"},
           Bad{"a,S,B200,,nccl,allreduce,,8,8,1,,,,,,,,20,", "line 2, column collective"},
           Bad{"a,S,B200,,nccl,all_reduce,rings,8,8,1,,,,,,,,20,", "line 2, column mode"},
           Bad{"a,S,B200,,nccl,all_reduce,,0,,1,,,,,,,,20,", "line 2, column ranks"},
           Bad{"a,S,B200,,nccl,all_reduce,,x,,1,,,,,,,,20,", "line 2, column ranks"},
           Bad{"a,S,B200,,nccl,all_reduce,,12,,1,,,,,,,,20,", "line 2, column ranks"},
           Bad{"a,S,B200,,nccl,all_reduce,,16,5,1,,,,,,,,20,", "line 2, column ranks_per_domain"},
           Bad{"a,S,B200,,nccl,all_reduce,,16,16,1,,,,,,,,20,", "line 2, column ranks_per_domain"},
           Bad{"a,S,B200,,nccl,all_reduce,,8,8,-1,,,,,,,,20,", "line 2, column bytes"},
           Bad{"a,S,B200,,nccl,all_reduce,,8,8,1,,,,,,,,0,", "line 2, column time_us"},
           Bad{"a,S,B200,,nccl,all_reduce,,8,8,1,,,,,,,,20,fitted", "line 2, column split"},
           Bad{"a,S,B200,,deepep,dispatch,normal,8,8,,9,9,9,,,,int3,20,", "line 2, column format"},
           Bad{"a,S,B200,,deepep,dispatch,normal,8,8,,-9,9,9,,,,fp8,20,", "line 2, column tokens"},
       }) {
    INFO(bad.row);
    const std::string message = refusal(std::string(bad.row) + "\n");
    CHECK(message.find(bad.expected) != std::string::npos);
    CHECK(message.find("t.csv") != std::string::npos);
  }
  CHECK(refusal("a,S,B200,,ncl,all_reduce,,8,8,1,,,,,,,,20,\n").find("near: nccl") !=
        std::string::npos);
  auto reader = shipped_reader();
  CHECK_THROWS_AS(reader.read(parse_csv("id,gpu,library,collective,ranks,time_us\n", "t.csv")),
                  Error);
  CHECK_THROWS_AS(reader.read(parse_csv("id,gpu,library,collective,bytes,time_us\n", "t.csv")),
                  Error);
}

TEST_CASE("groups split by size and by what was fitted", "[validate]") {
  auto reader = shipped_reader();
  const auto rows = reader.read(
      parse_csv(std::string(header) + "a,S,B200,,nccl,all_reduce,,8,8,1024,,,,,,,,20,fit\n" +
                    "b,S,B200,,nccl,all_reduce,,8,8,2097152,,,,,,,,40,held-out\n" +
                    "c,S,B200,,nccl,all_gather,,8,8,2097152,,,,,,,,40,fit\n" +
                    "d,S,B200,,nccl,all_reduce,,8,8,,,,,,,,,40,fit\n" + "e,S,B200," + infiniband +
                    ",nccl,all_reduce,,16,8,2097152,,,,,,,,400,fit\n",
                "t.csv"));
  auto scored = scored_rows(rows);
  // Known errors in place of the model's own: +10%, -20%, +30%, none, -40%.
  const std::optional<double> errors[] = {0.1, -0.2, 0.3, std::nullopt, -0.4};
  for (std::size_t i = 0; i < scored.size(); ++i) scored[i].error = errors[i];
  const auto groups = group_collectives(scored, true);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].rows == 3);
  CHECK(groups[0].small.all == std::vector<double>{0.1});
  CHECK(groups[0].small.held_out.empty());
  CHECK(groups[0].large.held_out == std::vector<double>{-0.2});
  CHECK(groups[1].collective == "all_gather");
  CHECK(groups[2].reach == "across");
  CHECK(group_collectives(scored, false).size() == 2);
  const auto totals = total_collectives(scored);
  REQUIRE(totals.size() == 3);
  CHECK(totals.back().large.all == std::vector<double>{-0.2, 0.3, -0.4});

  const std::string text = collectives_text(scored, true, true);
  CHECK(text.find("20.0") != std::string::npos);
  CHECK(text.find("the source does not tell the size") != std::string::npos);
  const auto json = report_json({}, scored);
  REQUIRE(json.at("rows").size() == 5);
  const auto& first = json.at("rows")[0];
  CHECK(first.at("quantity") == "time");
  CHECK(first.at("measured").get<double>() == Approx(20e-6));
  CHECK(first.at("error") == 0.1);
  CHECK(first.at("group").at("gpu") == "B200");
  CHECK(first.at("skipped").is_null());
  CHECK(json.at("rows")[3].at("predicted").is_null());
  CHECK(json.at("rows")[3].at("skipped") == "the source does not tell the size");
  bool found = false;
  for (const auto& group : json.at("groups")) {
    if (group.at("kind") != "collectives overall" || group.at("reach") != "across") continue;
    found = true;
    // Nine of ten measurements lie between these shares of the prediction: here 1 / 0.6.
    CHECK(group.at("from_1_mib").at("measured_high").get<double>() == Approx(1 / 0.6));
    CHECK(group.at("from_1_mib_held_out").is_null());
  }
  CHECK(found);
}

TEST_CASE("every shipped table of collectives is read, and the model stays near it", "[validate]") {
  auto reader = shipped_reader();
  std::vector<MeasuredCollective> rows;
  for (const auto& entry :
       std::filesystem::directory_iterator(data_root() / "validation/measurements/collectives")) {
    auto read = reader.read(read_csv(entry.path()));
    std::move(read.begin(), read.end(), std::back_inserter(rows));
  }
  REQUIRE(rows.size() > 4000);
  std::set<std::string> ids;
  for (const MeasuredCollective& row : rows) CHECK(ids.insert(row.id).second);
  const auto totals = total_collectives(scored_rows(rows));
  for (const CollectiveGroup& g : totals) {
    if (g.library != "nccl" || g.reach != "one domain") continue;
    // Issue 3's goal: 10% from 1 MiB on, 20% below.
    CHECK(numbers(g.large.held_out)->median < 0.10);
    CHECK(numbers(g.small.held_out)->median < 0.20);
  }
}

}  // namespace orrery
