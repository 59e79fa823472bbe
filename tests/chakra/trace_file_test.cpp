// SPDX-License-Identifier: Apache-2.0
// Knows what files of traces promise: they are read as they were written, and bad ones say why.
#include "sim/chakra/trace_file.h"

#include <catch2/catch.hpp>

#include "sim/base/input_file.h"
#include "sim/chakra/replay.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "tests/chakra/simple_network.h"

namespace orrery {
namespace {

std::vector<TraceNode> some_nodes() {
  return {{.id = 0, .name = "embedding", .micros = 12},
          {.id = 3, .name = "load", .type = TraceNodeType::metadata, .on_host = true},
          {.id = 4,
           .name = "gather",
           .type = TraceNodeType::collective,
           .after = {0, 3},
           .collective = TraceCollective::all_gather,
           .bytes = 5e12,
           .group = "17"},
          {.id = 5,
           .name = "send",
           .type = TraceNodeType::send,
           .after = {4},
           .bytes = 9,
           .peer = 1,
           .tag = 70000},
          {.id = 6,
           .name = "receive",
           .type = TraceNodeType::receive,
           .bytes = 9,
           .peer = 1,
           .tag = 70000}};
}

// An all-reduce of 1 MiB as Chakra's generators write it, byte by byte: metadata, then one node.
std::string foreign_trace() {
  const auto text = [](const std::string& s) { return static_cast<char>(s.size()) + s; };
  const auto attribute = [&](const std::string& name, const std::string& value) {
    const std::string inner = "\x0a" + text(name) + value;
    return "\x52" + text(inner);
  };
  using namespace std::string_literals;
  const std::string node =
      "\x08\x01\x12"s + text("All-Reduce") + "\x18\x07" + attribute("is_cpu_op", "\xd8\x01\x00"s) +
      attribute("comm_type", "\x48\x00"s) + attribute("comm_size", "\x48\x80\x80\x40"s) +
      attribute("involved_dim", "\xe2\x01\x03\x0a\x01\x01"s);
  return text(
             "\x0a\x05"
             "0.0.4"s) +
         text(node);
}

std::string error_of(const std::vector<std::filesystem::path>& places,
                     const std::filesystem::path& groups = {}) {
  return error_text([&] { read_traces(places, groups); });
}

bool has(const std::string& text, const char* words) {
  INFO(text);
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("traces are read as they were written") {
  const ScratchFolder scratch("chakra_files");
  const std::vector<TraceNode> nodes = some_nodes();
  scratch.add("t.0.et", trace_bytes(nodes, 6));
  scratch.add("t.1.et", trace_bytes({}, 0));
  scratch.add(trace_groups_name, trace_groups_text({{.name = "17", .ranks = {0, 1}}}));
  const Traces traces = read_traces({scratch / ""}, {});
  REQUIRE(traces.ranks.size() == 2);
  CHECK(traces.ranks_per_domain == 6);
  REQUIRE(traces.groups.size() == 1);
  CHECK(traces.groups[0].name == "17");
  CHECK(traces.groups[0].ranks == std::vector<std::int64_t>{0, 1});
  const auto& read = traces.ranks[0].nodes;
  REQUIRE(read.size() == nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    CHECK(read[i].id == nodes[i].id);
    CHECK(read[i].name == nodes[i].name);
    CHECK(read[i].type == nodes[i].type);
    CHECK(read[i].after == nodes[i].after);
    CHECK(read[i].micros == nodes[i].micros);
    CHECK(read[i].on_host == nodes[i].on_host);
    CHECK(read[i].collective == nodes[i].collective);
    CHECK(read[i].bytes == nodes[i].bytes);
    CHECK(read[i].group == nodes[i].group);
    CHECK(read[i].peer == nodes[i].peer);
    CHECK(read[i].tag == nodes[i].tag);
  }
}

TEST_CASE("a trace of another program is read by the schema's numbers") {
  const ScratchFolder scratch("chakra_foreign");
  scratch.add("all-reduce.0.et", foreign_trace());
  CHECK(read_traces({scratch / ""}, {}).ranks[0].nodes.at(0).name == "All-Reduce");
  const std::filesystem::path example =
      std::filesystem::path(ORRERY_SOURCE_DIR) / "tests/chakra/traces";
  CHECK(content_of(example / "all-reduce.3.et") == foreign_trace());
  const Traces traces = read_traces({example}, {});
  REQUIRE(traces.ranks.size() == 8);
  const TraceNode& node = traces.ranks[3].nodes.at(0);
  CHECK(node.name == "All-Reduce");
  CHECK(node.type == TraceNodeType::collective);
  CHECK(node.collective == TraceCollective::all_reduce);
  CHECK(node.bytes == 1048576);
  CHECK(!node.on_host);
  // On the network of that example: 14 steps of 500 ns and an eighth of the bytes.
  const double rate = 50.0 * 1073741824 / 1e9;
  const Cluster cluster = test::simple_network(8, Seconds(500e-9), BytesPerSecond(rate * 1e9));
  CHECK(static_cast<double>(replay(traces, cluster).step.ps) * 1e-3 ==
        Approx(14 * (500 + 131072 / rate)));
}

TEST_CASE("groups of PyTorch's own traces stand inside of them") {
  const ScratchFolder scratch("chakra_groups");
  const auto trace = [](const std::string& groups) {
    const auto text = [](const std::string& s) { return static_cast<char>(s.size()) + s; };
    const std::string values = "\x0a" + text("['[" + groups + "]']");
    const std::string node = std::string("\x08\x02\x18\x01") + "\x42" + text(values);
    return text(
               "\x0a\x05"
               "0.0.4") +
           text(node);
  };
  const std::string all = R"({"pg_name": "0", "ranks": []})";
  scratch.add("t.0.et", trace(all + R"(, {"pg_name": "1", "ranks": [0]})"));
  scratch.add("t.1.et", trace(all + R"(, {"pg_name": "2", "ranks": [1]})"));
  const Traces traces = read_traces({scratch / ""}, {});
  REQUIRE(traces.groups.size() == 3);
  CHECK(traces.groups[0].ranks == std::vector<std::int64_t>{0, 1});
  CHECK(traces.groups[2].name == "2");
  CHECK(traces.groups[2].ranks == std::vector<std::int64_t>{1});
  scratch.add("t.1.et", trace(R"({"pg_name": "1", "ranks": [1]})"));
  CHECK(has(error_of({scratch / ""}), "node 2"));
  scratch.add("t.1.et", trace(R"({"pg_name": "1", "ranks": [7]})"));
  CHECK(has(error_of({scratch / ""}), "7"));
}

TEST_CASE("bad files of traces get one error") {
  const ScratchFolder scratch("chakra_bad");
  const std::string good = trace_bytes(some_nodes(), 0);
  const auto one = [&](const std::string& bytes) {
    return error_of({scratch.add("t.0.et", bytes)});
  };
  CHECK(has(one(""), "an empty file"));
  CHECK(has(one(good.substr(0, good.size() - 3)), "a message of"));
  CHECK(has(one(good + "\xff\xff\xff\xff\xff\xff"), "no length of a message"));
  CHECK(has(one("\x02\x0a\x05"), "bytes that are no message"));
  std::vector<TraceNode> nodes(1);
  nodes[0].type = static_cast<TraceNodeType>(12);
  CHECK(has(one(trace_bytes(nodes, 0)), "type 12"));
  nodes[0] = {.micros = UINT64_C(1) << 60};
  CHECK(has(one(trace_bytes(nodes, 0)), "duration_micros"));
  nodes[0] = {.type = TraceNodeType::collective, .bytes = 5e18};
  CHECK(has(one(trace_bytes(nodes, 0)), "comm_size"));
  nodes[0] = {.type = TraceNodeType::collective, .collective = static_cast<TraceCollective>(44)};
  CHECK(has(one(trace_bytes(nodes, 0)), "comm_type 44"));
  nodes[0] = {.type = TraceNodeType::send};
  CHECK(has(one(trace_bytes(nodes, 0)), "comm_dst"));
  CHECK(has(error_of({scratch / "absent.0.et"}), "no such file"));
  CHECK(has(error_of({scratch / "absent"}), "no such file or folder"));
  CHECK(has(error_of({}), "no file"));
  const auto file = [&](const char* name) { return scratch.add(name, good); };
  CHECK(has(error_of({file("t.0.et"), file("t.2.et")}), "no file of rank 1"));
  CHECK(has(error_of({file("t.0.et"), file("u.1.et")}), "another name"));
  CHECK(has(error_of({file("t.0.et"), file("t.00.et")}), "rank 0 a second time"));
  CHECK(has(error_of({file("t.et")}), "NAME.RANK.et"));
  CHECK(has(error_of({file("t.0.et")}, scratch.add("g.json", R"({"1": [0, 4]})")), "1"));
  CHECK(has(error_of({file("t.0.et")}, scratch.add("g.json", R"({"1": []})")), "a list of ranks"));
}

}  // namespace orrery
