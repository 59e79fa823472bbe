// SPDX-License-Identifier: Apache-2.0
// Tests the one door: kinds are told by content, and whatever is broken is one line of error.
#include "sim/observe/observed.h"

#include <zlib.h>

#include <catch2/catch.hpp>

#include "sim/base/input_file.h"
#include "sim/base/random.h"
#include "tests/base/error_text.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/scratch_folder.h"
#include "tests/observe/made_export.h"
#include "tests/observe/made_trace.h"
#include "tests/observe/observed_file.h"

namespace orrery::observe {
namespace {

std::string packed(const std::string& text) {
  z_stream z{};
  constexpr int gzip = 16;
  deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + gzip, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, static_cast<uLong>(text.size())), '\0');
  std::string in = text;
  z.next_in = reinterpret_cast<Bytef*>(in.data());
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

struct Kind {
  std::string file;
  ObservedKind kind;
};
const std::vector<Kind>& kinds() {
  using enum ObservedKind;
  static const std::vector<Kind> all = {{"megatron.log", log},
                                        {"megatron_ranks.log", log},
                                        {"megatron_deepspeed.log", log},
                                        {"nemo1.log", log},
                                        {"nemo2.log", log},
                                        {"torchtitan.log", log},
                                        {"deepspeed.log", log},
                                        {"deepspeed_pipeline.log", log},
                                        {"maxtext.log", log},
                                        {"kineto_bf16.json.gz", profile},
                                        {"kineto_small.json", profile},
                                        {"nsight_small.sqlite", profile},
                                        {"nccl_all_reduce.txt", collectives},
                                        {"nccl_old.txt", collectives},
                                        {"nccl_alltoall.txt", collectives},
                                        {"smi_dmon.txt", counters},
                                        {"smi_dmon_csv.txt", counters},
                                        {"smi_query.csv", counters},
                                        {"dcgmi_dmon.txt", counters},
                                        {"prometheus.txt", counters},
                                        {"prometheus_long.csv", counters},
                                        {"prometheus_wide.csv", counters}};
  return all;
}

TEST_CASE("the door tells each kind by its content, also packed and under another name") {
  const ScratchFolder scratch("observe_door");
  for (const Kind& kind : kinds()) {
    INFO(kind.file);
    CHECK(kind_of(read_observed(observed_file(kind.file))) == kind.kind);
    const std::string text = observed_text_of(kind.file);
    CHECK(kind_of(read_observed(scratch.add("run.bin", text))) == kind.kind);
    if (!kind.file.ends_with(".gz") && !kind.file.ends_with(".sqlite"))
      CHECK(kind_of(read_observed(scratch.add("packed", packed(text)))) == kind.kind);
  }
  make_export(scratch / "report");
  const Observed exported = read_observed(scratch / "report");
  CHECK(std::get<Profile>(exported).source == ProfileSource::nsight);
}

TEST_CASE("the head of a file tells its kind, but for logs, whose steps may come late") {
  for (const Kind& kind : kinds()) {
    INFO(kind.file);
    const bool log = kind.kind == ObservedKind::log;
    CHECK(kind_by_head(observed_file(kind.file)) ==
          (log ? std::nullopt : std::optional(kind.kind)));
    if (log) CHECK(tells_any_step(observed_file(kind.file)));
  }
  const ScratchFolder scratch("observe_head");
  CHECK_FALSE(tells_any_step(scratch.add("a", "torchrun train.py --num-layers 8\n")));
}

TEST_CASE("files that are none of the kinds are refused in one line") {
  const ScratchFolder scratch("observe_door");
  const auto refused = [&](const std::string& text) {
    const auto file = scratch.add("a", text);
    return error_text([&] { read_observed(file); }).substr(file.string().size() + 2);
  };
  CHECK(refused("").starts_with("found an empty file; expected a log, a profile or counters"));
  CHECK(refused("Dear reader,\n").starts_with("found no line that tells a step"));
  CHECK(refused(std::string("\x7f"
                            "ELF\x00\x01",
                            6))
            .starts_with("found no line that tells a step"));
  CHECK(refused("{\"a\": 1}").starts_with("found JSON without \"traceEvents\""));
  CHECK(refused(packed(observed_text_of("nsight_small.sqlite")))
            .starts_with("found a packed database"));
  CHECK(refused("\x1f\x8b").starts_with("found no line that tells a step"));
}

// What may be wrong with a file: bits and bytes, lines and cells, ends, numbers, depth.
std::string spoiled(std::string text, RandomStream& random) {
  const auto place = [&](std::size_t size) {
    return static_cast<std::size_t>(random.below(std::max<std::uint64_t>(size, 1)));
  };
  const auto put = [&](const std::string& piece) { text.insert(place(text.size()), piece); };
  switch (random.below(12)) {
    case 0:
      text.resize(place(text.size()));
      break;
    case 1:
      for (int i = 0; i < 8 && !text.empty(); ++i)
        text[place(text.size())] = static_cast<char>(random.next());
      break;
    case 2:
      put(std::string(1 + place(40), '\0'));
      break;
    case 3:
      put("1e999");
      break;
    case 4:
      put("-99999999999999999999999999");
      break;
    case 5:
      put("NaN");
      break;
    case 6:
      put(std::string(200, random.below(2) == 0 ? '[' : '{'));
      break;
    case 7:
      put(random.below(2) == 0 ? "\"" : "\\");
      break;
    case 8:
      put(random.below(2) == 0 ? "," : "\n");
      break;
    case 9: {  // a piece goes away
      const std::size_t at = place(text.size());
      text.erase(at, 1 + place(60));
      break;
    }
    case 10: {  // a piece comes twice
      const std::size_t at = place(text.size());
      text.insert(place(text.size()), text.substr(at, 1 + place(300)));
      break;
    }
    default:
      for (char& c : text)
        if (c >= '0' && c <= '9' && random.below(20) == 0) c = 'x';
  }
  return text;
}

// Whether the file was taken; fails where its refusal is no line that people can read.
bool is_taken(const std::filesystem::path& file) {
  try {
    read_observed(file);
    return true;
  } catch (const Error& error) {
    CHECK(error.message().starts_with(file.string()));
    CHECK(error.message().find('\n') == std::string::npos);
    CHECK(error.message().size() < 1000);
    return false;
  }
}

void spoil(const std::string& text, std::uint64_t seed, bool unpack) {
  const ScratchFolder scratch("observe_malformed");
  RandomStream random(fresh(seed), 0);
  int taken = 0;
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    std::string broken = text;
    for (std::uint64_t times = 1 + random.below(3); times > 0; --times)
      broken = spoiled(std::move(broken), random);
    if (!unpack && round % 3 == 0) broken = packed(broken);
    if (round % 7 == 0 && round % 3 == 0) broken = spoiled(std::move(broken), random);
    taken += is_taken(scratch.add("file", broken)) ? 1 : 0;
  }
  INFO(taken << " of " << rounds << " were taken");
  CHECK(taken < rounds);
}

TEST_CASE("three hundred malformed files of each kind are read, or refused in one line", "[fuzz]") {
  std::uint64_t seed = 100;
  for (const Kind& kind : kinds()) {
    INFO(kind.file);
    if (!kind.file.ends_with(".gz")) spoil(observed_text_of(kind.file), ++seed, false);
  }
}

TEST_CASE("three hundred malformed traces are read, or refused in one line", "[fuzz]") {
  MadeTrace trace;
  for (int i = 0; i < 30; ++i) {
    trace.host("cpu_op", "aten::mm", 10 * i, 8,
               fmt::format(R"("External id": {}, "Input type": ["float", "float"], )"
                           R"("Input Dims": [[4, 4], [4, 4]])",
                           i + 1));
    trace.call("cudaLaunchKernel", 10 * i + 1, 1, i + 1);
    trace.kernel("ampere_sgemm_128x64_tn", 10 * i + 3, 5, 7, i + 1,
                 R"(, "grid": [8, 1, 1], "block": [128, 1, 1])");
  }
  spoil("{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 1}, \"traceEvents\": " +
            trace.list() + ", \"traceName\": \"a\"}",
        7, false);
  spoil(observed_text_of("kineto_bf16.json.gz"), 8, true);
}

TEST_CASE("three hundred malformed databases are read, or refused in one line", "[fuzz]") {
  const ScratchFolder scratch("observe_databases");
  make_export(scratch / "whole");
  spoil(content_of(scratch / "whole"), 9, true);
}

}  // namespace
}  // namespace orrery::observe
