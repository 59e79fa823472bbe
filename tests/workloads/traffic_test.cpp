// SPDX-License-Identifier: Apache-2.0
// Checks traffic: what is drawn, what traces say, and what is refused with which words.
#include <algorithm>
#include <cmath>
#include <string>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/base/statistics.h"
#include "tests/base/error_text.h"
#include "tests/base/fresh_seed.h"
#include "workloads/traffic/service_target.h"
#include "workloads/traffic/trace.h"
#include "workloads/traffic/traffic.h"

namespace orrery {
namespace {

const std::filesystem::path catalog = ORRERY_SOURCE_DIR "/workloads/catalog";

Traffic chat(Arrivals arrivals, std::int64_t requests) {
  Traffic traffic{.arrivals = std::move(arrivals), .requests = requests};
  traffic.classes = {{"chat", 1, LognormalLength{500, 1, 30'000}, UniformLength{10, 200}}};
  return traffic;
}

std::vector<double> gaps_of(const RequestList& list) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < list.requests.size(); ++i)
    gaps.push_back(to_seconds(list.requests[i].arrival - list.requests[i - 1].arrival).si());
  return gaps;
}

std::string trace_error(std::string_view text, TraceFormat format) {
  return error_text([&] { parse_trace(text, format, "t"); });
}

}  // namespace

TEST_CASE("traffic: rates and variations are those asked for") {
  for (const double variation : {0.3, 1.0, 2.0, 4.0}) {
    const RequestList list =
        make_requests(chat(GammaArrivals{Hertz(50), variation}, 100'000), fresh(3));
    const std::vector<double> gaps = gaps_of(list);
    INFO(variation);
    CHECK(mean(gaps) == Approx(0.02).epsilon(0.03 * std::max(variation, 1.0)));
    CHECK(sample_deviation(gaps) / mean(gaps) == Approx(variation).epsilon(0.05));
  }
  const std::vector<double> gaps =
      gaps_of(make_requests(chat(PoissonArrivals{Hertz(50)}, 100'000), fresh(4)));
  CHECK(mean(gaps) == Approx(0.02).epsilon(0.02));
  CHECK(sample_deviation(gaps) == Approx(0.02).epsilon(0.02));
}

TEST_CASE("traffic: a rate over the day holds piece by piece, and again") {
  const DailyArrivals day{
      {{seconds(10), Hertz(100)}, {seconds(5), Hertz(0)}, {seconds(5), Hertz(400)}}};
  const RequestList list = make_requests(chat(day, 60'000), fresh(5));
  std::int64_t count[3] = {};
  for (const Request& r : list.requests) {
    const double at = std::fmod(to_seconds(r.arrival).si(), 20);
    ++count[at < 10 ? 0 : at < 15 ? 1 : 2];
  }
  CHECK(count[1] == 0);
  CHECK(static_cast<double>(count[2]) / static_cast<double>(count[0]) == Approx(2).epsilon(0.05));
  CHECK(to_seconds(list.requests.back().arrival).si() == Approx(400).epsilon(0.05));
}

TEST_CASE("traffic: lengths stay in their bounds, and have their medians") {
  RandomStream random(fresh(6), 0);
  std::vector<double> log, ratio;
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t l = draw(LognormalLength{500, 1.2, 4000}, random),
                       r = draw(RatioLength{8192, 0.8}, random);
    REQUIRE((l >= 1 && l <= 4000));
    REQUIRE((r >= 6553 && r <= 8192));
    log.push_back(static_cast<double>(l));
    ratio.push_back(static_cast<double>(r));
  }
  CHECK(median(log) == Approx(500).epsilon(0.04));
  CHECK(mean(ratio) == Approx(0.9 * 8192).epsilon(0.01));
  CHECK(draw(FixedLength{7}, random) == 7);
}

TEST_CASE("law: requests depend on the seed and their number, on nothing else") {
  CHECK(rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const RequestList few = make_requests(chat(PoissonArrivals{Hertz(5)}, 20), seed),
                      many = make_requests(chat(PoissonArrivals{Hertz(5)}, 50), seed),
                      faster = make_requests(chat(PoissonArrivals{Hertz(50)}, 50), seed),
                      other = make_requests(chat(PoissonArrivals{Hertz(5)}, 50), seed + 1);
    bool same = true;
    for (std::size_t i = 0; i < 20; ++i) {
      RC_ASSERT(few.requests[i].arrival == many.requests[i].arrival);
      RC_ASSERT(few.requests[i].prompt == faster.requests[i].prompt);
      RC_ASSERT(few.requests[i].output == faster.requests[i].output);
      same = same && few.requests[i].prompt == other.requests[i].prompt;
    }
    RC_ASSERT(!same);
  }));
}

TEST_CASE("law: each turn of a session repeats all before it") {
  CHECK(rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    Traffic traffic = chat(PoissonArrivals{Hertz(5)}, 30);
    const std::int64_t unit = *rc::gen::inRange(1, 100), shared = *rc::gen::inRange(0, 300);
    traffic.sessions = Sessions{.turns = UniformLength{1, 6},
                                .added = UniformLength{1, 90},
                                .think = seconds(3),
                                .unit_tokens = unit,
                                .shared = shared};
    const RequestList list = make_requests(traffic, seed);
    for (std::size_t i = 0; i < list.requests.size(); ++i) {
      const Request& r = list.requests[i];
      RC_ASSERT(r.hashes == (r.prompt + r.output) / unit);
      const auto text = list.hashes_of(r);
      for (std::int64_t u = 0; u < std::min(shared / unit, std::int64_t{r.hashes}); ++u)
        RC_ASSERT(text[static_cast<std::size_t>(u)] == u);
      if (r.after < 0) continue;
      const Request& before = list.requests[static_cast<std::size_t>(r.after)];
      RC_ASSERT(r.after < static_cast<std::int32_t>(i));
      RC_ASSERT(r.session == before.session);
      RC_ASSERT(r.prompt > before.prompt + before.output);
      const auto first = list.hashes_of(before);
      RC_ASSERT(std::equal(first.begin(), first.end(), text.begin()));
    }
    // Two sessions share nothing beyond what all share.
    std::vector<std::uint32_t> seen;
    std::int32_t session = -1;
    for (std::size_t i = list.requests.size(); i-- > 0;) {
      const Request& r = list.requests[i];
      if (r.session == session) continue;  // its last turn came first
      session = r.session;
      for (const std::uint32_t h : list.hashes_of(r))
        if (h >= static_cast<std::uint32_t>(shared / unit)) seen.push_back(h);
    }
    std::sort(seen.begin(), seen.end());
    RC_ASSERT(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  }));
}

TEST_CASE("traffic: traces of the catalogue are read as they were published") {
  const RequestList mooncake = load_trace("mooncake-conversation", catalog);
  CHECK(mooncake.requests.size() == 12'031);
  CHECK(mooncake.hash_tokens == 512);
  CHECK(mooncake.requests[0].prompt == 6758);
  CHECK(mooncake.requests[0].output == 500);
  CHECK(mooncake.requests[0].hashes == 13);  // the fourteenth is of a part
  CHECK(mooncake.hashes_of(mooncake.requests[1])[0] == mooncake.hashes_of(mooncake.requests[0])[0]);
  CHECK(mooncake.hashes_of(mooncake.requests[1])[1] != mooncake.hashes_of(mooncake.requests[0])[1]);
  CHECK(load_trace("mooncake-synthetic", catalog).requests.size() == 3'993);
  const RequestList azure = load_trace("azure2023-conversation", catalog);
  CHECK(azure.requests.size() == 19'366);
  CHECK(azure.requests[0].arrival.ps == 0);
  CHECK(azure.requests[1].arrival.ps == 4'314'579'000'000);  // 15:50.9951690 - 15:46.6805900
  CHECK(azure.requests[1].prompt == 396);
  CHECK(load_trace("azure2023-code", catalog).requests.size() == 8'819);
  CHECK(error_text([] {
          load_trace("azure2023-chat", catalog);
        }).find("did you mean \"azure2023-code\"?") != std::string::npos);
}

TEST_CASE("traffic: a trace is replayed faster, or its requests are drawn") {
  const auto trace = std::make_shared<RequestList>(load_trace("mooncake-conversation", catalog));
  Traffic traffic{.arrivals = TraceArrivals{2}, .requests = 0};
  traffic.trace = trace;
  const RequestList twice = make_requests(traffic, 1);
  REQUIRE(twice.requests.size() == trace->requests.size());
  CHECK(twice.requests.back().arrival.ps == trace->requests.back().arrival.ps / 2);
  traffic.arrivals = ClosedLoop{8};
  traffic.requests = 500;
  traffic.warmup = 16;
  const RequestList drawn = make_requests(traffic, 1);
  CHECK(drawn.requests.size() == 500);
  CHECK(drawn.concurrency == 8);
  CHECK(drawn.warmup == 16);
  CHECK(drawn.hashes == trace->hashes);
  CHECK(drawn.requests[7].prompt != drawn.requests[8].prompt);
}

TEST_CASE("traffic: our own traces have classes and sessions") {
  const RequestList list = parse_trace(
      "arrival_s,prompt,output,class,session\n1.5,10,2,chat,\n2,20,3,batch,7\n2,5,1,chat,7\n",
      TraceFormat::orrery, "t");
  REQUIRE(list.requests.size() == 3);
  CHECK(list.requests[1].arrival.ps == 500'000'000'000);
  CHECK(list.classes == std::vector<std::string>{"chat", "batch"});
  CHECK(list.requests[2].class_index == 0);
  CHECK(list.requests[1].session == 7);
  CHECK(list.requests[0].session == -1);
  CHECK(format_of("{\"timestamp\": 0}") == TraceFormat::mooncake);
  CHECK(format_of("TIMESTAMP,ContextTokens") == TraceFormat::azure);
}

TEST_CASE("traffic: a bad trace gets one sentence with file, line and column") {
  const auto own = [](const std::string& rows) {
    return trace_error("arrival_s,prompt,output\n" + rows, TraceFormat::orrery);
  };
  CHECK(own("0,-3,2\n") ==
        "t: line 2, column prompt: found -3; expected whole tokens between 1 and 10^9");
  CHECK(own("0,3,2000000000\n") ==
        "t: line 2, column output: found 2000000000; expected whole tokens between 1 and 10^9");
  CHECK(own("1,3,2\n0.5,3,2\n") ==
        "t: line 3, column arrival_s: found an arrival before that of the line above; expected "
        "arrivals in order");
  CHECK(own("0,many,2\n") == "t: line 2, column prompt: found \"many\"; expected a number");
  CHECK(own("0,,2\n") ==
        "t: line 2, column prompt: found \"\"; expected whole tokens between 1 and 10^9");
  CHECK(own("") == "t: found no requests; expected at least one");
  CHECK(trace_error("", TraceFormat::orrery) ==
        "t: found an empty file; expected a trace of requests");
  CHECK(trace_error("arrival_s,promt,output\n0,1,1\n", TraceFormat::orrery) ==
        "t: line 1: found no column \"prompt\"; expected the columns that "
        "workloads/catalog/traces/README.md lists; did you mean \"promt\"?");
  CHECK(
      trace_error("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n", TraceFormat::azure) ==
      "t: line 2, column TIMESTAMP: found \"yesterday\"; expected a time such as 2023-11-16 "
      "18:15:46.6805900");
  const auto mooncake = [](const std::string& line) {
    return trace_error(line, TraceFormat::mooncake);
  };
  CHECK(mooncake(R"({"timestamp": 0, "input_length": -1, "output_length": 2})")
            .find("t: line 1: input_length: found -1") == 0);
  CHECK(mooncake(R"({"timestamp": 0, "output_length": 2})").find("t: line 1") == 0);
  CHECK(mooncake(
            "{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 2, \"hash_ids\": [1]}")
            .find("expected a list of 2 numbers, one for every 512 tokens") != std::string::npos);
  CHECK(mooncake("{oops").find("t: line 1") == 0);
}

TEST_CASE("traffic: numbers that cannot be are refused") {
  const auto refused = [](const Traffic& traffic) {
    return error_text([&] { make_requests(traffic, 1, "--arrivals"); });
  };
  CHECK(refused(chat(PoissonArrivals{Hertz(0)}, 5)) ==
        "--arrivals: rate: found 0; expected a number above 0");
  CHECK(refused(chat(GammaArrivals{Hertz(1), 0}, 5)).find("variation: found 0") !=
        std::string::npos);
  CHECK(refused(chat(OfflineArrivals{}, 0)) ==
        "--arrivals: requests: found no requests; expected at least one");
  CHECK(refused(chat(ClosedLoop{0}, 5)).find("concurrency: found 0") != std::string::npos);
  CHECK(refused(chat(TraceArrivals{}, 5)).find("a trace beside them") != std::string::npos);
  Traffic warm = chat(OfflineArrivals{}, 5);
  warm.warmup = 5;
  CHECK(refused(warm) ==
        "--arrivals: warmup: found 5 of 5 requests; expected fewer than there are");
  CHECK(
      refused(chat(DailyArrivals{{{seconds(1), Hertz(0)}}}, 5)).find("pieces: found no requests") !=
      std::string::npos);
}

TEST_CASE("traffic: texts of arrivals and lengths") {
  CHECK(std::get<PoissonArrivals>(parse_arrivals("poisson:12/s", "-a")).rate.si() == 12);
  CHECK(std::get<GammaArrivals>(parse_arrivals("gamma:2.5/s:3", "-a")).variation == 3);
  const auto daily = std::get<DailyArrivals>(parse_arrivals("daily:8h:2/s:30 min:0/s", "-a"));
  REQUIRE(daily.pieces.size() == 2);
  CHECK(daily.pieces[0].length == seconds(8 * 3600));
  CHECK(daily.pieces[0].rate.si() == 2);
  CHECK(daily.pieces[1].length == seconds(30 * 60));
  CHECK(daily.pieces[1].rate.si() == 0);
  for (const char* bad : {"daily:", "daily:8h", "daily:8h:2", "daily:8:2/s", "daily:8h:0/s"})
    CHECK(error_text([&] { parse_arrivals(bad, "-a"); }) != "no error");
  CHECK(std::get<ClosedLoop>(parse_arrivals("closed:64", "-a")).concurrency == 64);
  CHECK(std::holds_alternative<OfflineArrivals>(parse_arrivals("offline", "-a")));
  CHECK(std::get<TraceArrivals>(parse_arrivals("trace:2", "-a")).speed == 2);
  CHECK(error_text([] { parse_arrivals("poisson:12", "-a"); }) ==
        "-a: found \"poisson:12\"; expected a rate such as 12/s");
  CHECK(error_text([] { parse_arrivals("steady", "-a"); }).find("poisson:RATE/s") !=
        std::string::npos);
  CHECK(std::get<FixedLength>(parse_length("1024", "-l")).tokens == 1024);
  CHECK(std::get<RatioLength>(parse_length("ratio:8192:0.8", "-l")).ratio == 0.8);
  CHECK(std::get<UniformLength>(parse_length("uniform:1:9", "-l")).high == 9);
  CHECK(std::get<LognormalLength>(parse_length("lognormal:500:1.2:4000", "-l")).cap == 4000);
  CHECK(error_text([] { parse_length("uniform:9:1", "-l"); }) ==
        "-l: found \"uniform:9:1\"; expected the lower length first");
  for (const char* bad : {"0", "-1", "1.5", "2000000000", "x", "", "uniform:1", "ratio:5:2"})
    CHECK(error_text([&] { parse_length(bad, "-l"); }) != "no error");
}

TEST_CASE("traffic: texts of service targets") {
  const ServiceTarget target =
      parse_target("ttft.p95=2s,tpot.mean=30ms,chat.itl.p99.9=500us", "--slo", {"chat", "batch"});
  REQUIRE(target.bounds.size() == 3);
  CHECK(target.bounds[0].percent == 95);
  CHECK(target.bounds[1].percent == 0);
  CHECK(target.bounds[1].at_most.si() == Approx(0.03));
  CHECK(target.bounds[2].class_name == "chat");
  CHECK(target.bounds[2].percent == 99.9);
  CHECK(to_text(target) == "ttft.p95=2s,tpot.mean=30ms,chat.itl.p99.9=0.5ms");
  const auto bad = [](const std::string& text) {
    return error_text([&] { parse_target(text, "--slo", {"chat"}); });
  };
  CHECK(bad("ttft.p95") == "--slo: found \"ttft.p95\"; expected a bound such as ttft.p95=2s");
  CHECK(bad("ttft.p100=2s") ==
        "--slo: found \"ttft.p100=2s\"; expected mean, or a percentile such as p95");
  CHECK(bad("chta.ttft.p9=1s").find("did you mean \"chat\"?") != std::string::npos);
  CHECK(bad("ttft.p95=0s").find("a time above 0") != std::string::npos);
  CHECK(bad("ttft.p95=fast").find("a time above 0") != std::string::npos);
  CHECK(bad("tpt.p95=1s").find("did you mean \"tpot\"?") != std::string::npos);
}

}  // namespace orrery
