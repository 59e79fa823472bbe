// SPDX-License-Identifier: Apache-2.0
// Tests what is taken from traces of PyTorch's profiler: two that were recorded, and made ones.
#include <catch2/catch.hpp>

#include "sim/observe/profile/profile.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "tests/observe/made_trace.h"
#include "tests/observe/observed_file.h"

namespace orrery::observe {
namespace {

double in_ms(Seconds time) { return time.si() * 1e3; }

template <class Array, class Enum>
double part(const Array& times, Enum which) {
  return in_ms(times[static_cast<std::size_t>(which)]);
}

const HostRow& row_of(const std::vector<HostRow>& rows, const std::string& name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const HostRow& row) { return row.name == name; });
  REQUIRE(found != rows.end());
  return *found;
}

// Expected values: sums of the same events by another program (sets of intervals in Python).
TEST_CASE("a recorded step in bf16: what the GPU did and what it waited for") {
  const Profile profile = read_kineto(observed_file("kineto_bf16.json.gz"));
  CHECK(profile.rank.rank == 0);
  CHECK(profile.rank.world_size == 2);
  CHECK(profile.rank.backend == "nccl");
  CHECK(profile.rank.nccl_version == "2.28.9");
  CHECK(profile.device.name == "NVIDIA H200");
  CHECK(profile.device.multiprocessors == 132);
  CHECK(profile.device.memory->si() == 150109880320.0);
  CHECK(profile.recorded.shapes);
  CHECK(profile.recorded.memory);
  CHECK_FALSE(profile.recorded.stacks);
  CHECK(profile.recorded.launches);
  CHECK(profile.events == 2975);
  CHECK(profile.streams == 2);
  CHECK(profile.step_source == StepSource::annotated);
  REQUIRE(profile.steps.size() == 3);
  const ProfiledStep& step = profile.steps[1];
  CHECK(step.number == 8);
  CHECK(in_ms(step.end - step.begin) == Approx(26.012).margin(0.001));
  CHECK(in_ms(*step.host_time) == Approx(26.062).margin(0.001));
  CHECK(in_ms(step.busy) == Approx(6.924).margin(0.001));
  CHECK(in_ms(step.idle) == Approx(19.088).margin(0.001));
  CHECK(in_ms(step.communication) == Approx(0.891).margin(0.001));
  CHECK(in_ms(step.exposed_communication) == Approx(0.817).margin(0.001));
  CHECK(in_ms(step.compute) == Approx(5.536).margin(0.001));
  CHECK(in_ms(step.uncovered_compute) == Approx(5.462).margin(0.001));
  CHECK(step.launches == 445);
  CHECK(step.allocations == 0);
  CHECK(part(step.idle_by_host, HostWork::data_loader) > 5);
  CHECK(part(step.by_collective, CollectiveKind::all_reduce) == Approx(0.891).margin(0.001));
  CHECK_FALSE(profile.steps[2].whole);
  CHECK(profile.mean.number == 2);
  double idle = 0;
  for (const Seconds time : step.idle_by_host) idle += in_ms(time);
  CHECK(idle == Approx(in_ms(step.idle)));
}

TEST_CASE("a recorded step in bf16: kernels, formats, collectives and gaps") {
  const Profile profile = read_kineto(observed_file("kineto_bf16.json.gz"));
  REQUIRE(profile.product_formats.size() == 1);
  CHECK(profile.product_formats[0].format == Format::bf16);
  CHECK(profile.product_formats[0].kernels == 141);
  REQUIRE_FALSE(profile.product_shapes.empty());
  CHECK(profile.product_shapes[0].operation == "aten::mm");
  CHECK(profile.product_shapes[0].type == "c10::BFloat16");
  CHECK(profile.product_shapes[0].shapes == "[[4096,4096],[4096,1024]]");
  CHECK(profile.product_shapes[0].count == 24);
  const KernelRow& product = profile.kernels[1];
  CHECK(product.name == "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT");
  CHECK(product.what == KernelClass::product);
  CHECK(product.count == 45);
  CHECK(product.shape.block == std::array<std::int64_t, 3>{384, 1, 1});
  CHECK(product.median <= product.p90);
  CHECK(product.least <= product.median);
  REQUIRE_FALSE(profile.collectives.empty());
  const CollectiveRecord& collective = profile.collectives[0];
  CHECK(collective.kind == CollectiveKind::all_reduce);
  CHECK(collective.name == "allreduce");
  CHECK(collective.ranks == 2);
  CHECK(collective.type == "Float");
  CHECK(collective.group_name == "default_pg");
  CHECK(collective.sent->si() == 33579008);
  REQUIRE_FALSE(profile.gaps.empty());
  CHECK(profile.gaps[0].host == HostWork::data_loader);
  CHECK(profile.gaps[0].host_event ==
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
  CHECK(profile.gaps[0].after == "Memcpy HtoD (Pinned -> Device)");
  CHECK(row_of(profile.runtime_calls, "cudaLaunchKernel").count == 828);
}

TEST_CASE("a recorded step in fp32 with waits and with memory that is given back") {
  const Profile profile = read_kineto(observed_file("kineto_fp32.json.gz"));
  REQUIRE(profile.product_formats.size() == 1);
  CHECK(profile.product_formats[0].format == Format::fp32);
  const ProfiledStep& step = profile.steps[0];
  CHECK(in_ms(step.busy) == Approx(37.746).margin(0.001));
  CHECK(in_ms(step.exposed_communication) == Approx(0.403).margin(0.001));
  CHECK(in_ms(step.uncovered_compute) == Approx(27.569).margin(0.001));
  CHECK(step.allocations == 50);
  CHECK(step.waits == 9);
  CHECK(part(step.idle_by_host, HostWork::allocate) > 2);
  CHECK(in_ms(step.idle_after_wait) > 8);
  CHECK(profile.gaps[0].after_wait);
  CHECK(row_of(profile.runtime_calls, "cudaMalloc").count == 75);
  // The loss in each step, and the optimizer's counters of steps, which lie on the host.
  CHECK(row_of(profile.operations, "aten::item").count == 291);
  CHECK(in_ms(*profile.launch_delay) > 1);
}

// Two steps of 100 us. Kernels: 10-40 product, 30-60 all-reduce, 70-80 elementwise.
MadeTrace two_steps() {
  MadeTrace trace;
  for (int step = 0; step < 2; ++step) {
    const double at = 100.0 * step;
    const int id = 10 * step;
    trace.host("user_annotation", "ProfilerStep#" + std::to_string(step + 4), at, 100, "");
    trace.call("cudaLaunchKernel", at + 1, 1, id + 1);
    trace.call("cudaLaunchKernel", at + 2, 1, id + 2);
    trace.call("cudaLaunchKernelExC", at + 3, 1, id + 3);
    trace.kernel("ampere_bf16_s16816gemm_bf16_128x128", at + 10, 30, 7, id + 1);
    trace.kernel("ncclDevKernel_AllGather_RING_LL(x)", at + 30, 30, 9, id + 2,
                 R"(, "Collective name": "_allgather_base", "dtype": "BFloat16", )"
                 R"("In msg nelems": 1000, "Out msg nelems": 8000, "Group size": 8, )"
                 R"("Process Group Name": "3")");
    trace.kernel("elementwise_kernel", at + 70, 10, 7, id + 3);
    trace.call("cudaMalloc", at + 62, 6);
    trace.call("cudaStreamSynchronize", at + 75, 10);
    trace.host("cpu_op", "aten::add", at + 86, 4, R"("External id": 5)");
  }
  return trace;
}

TEST_CASE("of a made trace every time is known") {
  const ScratchFolder scratch("observe_profile");
  const Profile profile = read_kineto(scratch.add("a.json", two_steps().text()));
  REQUIRE(profile.steps.size() == 2);
  const ProfiledStep& step = profile.steps[0];
  CHECK(step.number == 4);
  // From the first kernel of the step to the next step's: 10 to 110.
  CHECK(in_microseconds(step.end - step.begin) == Approx(100));
  CHECK(in_microseconds(*step.host_time) == Approx(100));
  CHECK(in_microseconds(step.busy) == Approx(60));
  CHECK(in_microseconds(step.idle) == Approx(40));
  CHECK(in_microseconds(step.communication) == Approx(30));
  CHECK(in_microseconds(step.exposed_communication) == Approx(20));
  CHECK(in_microseconds(step.compute) == Approx(40));
  CHECK(in_microseconds(step.uncovered_compute) == Approx(30));
  CHECK(step.gaps == 2);
  CHECK(step.kernels == 3);
  CHECK(step.launches == 3);
  CHECK(step.waits == 1);
  CHECK(step.allocations == 1);
  // Gap 60-70: 6 of it cudaMalloc. Gap 80-110: waits till 85, aten::add 86-90, launches 101-104.
  const auto idle = [&](HostWork work) {
    return in_microseconds(step.idle_by_host[static_cast<std::size_t>(work)]);
  };
  CHECK(idle(HostWork::allocate) == Approx(6));
  CHECK(idle(HostWork::synchronise) == Approx(5));
  CHECK(idle(HostWork::framework) == Approx(4));
  CHECK(idle(HostWork::launch) == Approx(3));
  CHECK(idle(HostWork::unknown) == Approx(22));
  CHECK(in_microseconds(step.idle_after_wait) == Approx(30));
  CHECK(in_microseconds(*profile.launch_delay) == Approx(28));  // of 9, 28 and 67
  REQUIRE(profile.collectives.size() == 1);
  CHECK(profile.collectives[0].kind == CollectiveKind::all_gather);
  CHECK(profile.collectives[0].sent->si() == 2000);
  CHECK(profile.collectives[0].received->si() == 16000);
  CHECK(profile.collectives[0].group == "3");
}

TEST_CASE("events before the head's keys, as a list, with texts that hold braces, and packed") {
  const ScratchFolder scratch("observe_profile");
  MadeTrace trace = two_steps();
  trace.host("cpu_op", R"(a \"quoted\" [name] {\\)", 50, 1);
  const auto check = [&](const std::string& text) {
    const Profile profile = read_kineto(scratch.add("a.json", text));
    CHECK(profile.steps.size() == 2);
    CHECK(row_of(profile.operations, "a \"quoted\" [name] {\\").count == 1);
    return profile;
  };
  check(trace.list());
  const Profile late = check("{\"traceEvents\": " + trace.list() +
                             R"(, "distributedInfo": {"rank": 5, "world_size": 8},)"
                             R"( "note": "}]", "with_stack": 1})");
  CHECK(late.rank.rank == 5);
  CHECK(late.recorded.stacks);
}

TEST_CASE("a trace that was cut off gives what is there, and says so") {
  const ScratchFolder scratch("observe_profile");
  const std::string text = two_steps().text();
  const Profile cut = read_kineto(scratch.add("a.json", text.substr(0, text.size() - 60)));
  REQUIRE_FALSE(cut.notes.empty());
  CHECK(cut.notes[0] ==
        "The trace ends in the middle of an event: the 19 whole events before it "
        "are taken.");
  const std::string packed = observed_text_of("kineto_bf16.json.gz");
  const Profile half = read_kineto(scratch.add("b.gz", packed.substr(0, packed.size() / 2)));
  CHECK(half.events > 500);
  CHECK(half.events < 2975);
  CHECK(half.notes[0].starts_with("The trace ends in the middle"));
}

TEST_CASE("older releases spell categories otherwise and wrote numbers that are none") {
  const ScratchFolder scratch("observe_profile");
  MadeTrace trace;
  for (int i = 0; i < 60; ++i) {
    trace.event("Operator", "aten::mm", 1, 1, 10 * i, 5, "");
    trace.event("Runtime", "cudaLaunchKernel", 1, 1, 10 * i + 1, 1,
                fmt::format(R"("correlation": {})", i + 1));
    trace.event("Kernel", "volta_sgemm_128x64_tn", 0, 7, 10 * i + 2, 5,
                fmt::format(R"("device": 0, "stream": 7, "correlation": {})", i + 1));
  }
  trace.event("Memcpy", "Memcpy HtoD (Pageable -> Device)", 0, 7, 600, 1, R"("bandwidth": inf)");
  const Profile profile = read_kineto(scratch.add("a.json", trace.text()));
  CHECK(profile.kernels.at(0).count == 60);
  CHECK(profile.product_formats.at(0).format == Format::fp32);
  CHECK(row_of(profile.operations, "aten::mm").count == 60);
  CHECK(profile.notes.at(0) == "1 events that are no JSON were left out.");
}

TEST_CASE("steps without annotations: the optimizer's ends, what comes back, or the whole") {
  const ScratchFolder scratch("observe_profile");
  MadeTrace trace;
  int id = 0;
  for (int step = 0; step < 5; ++step)
    for (int layer = 0; layer < 4; ++layer) {
      const double at = 1000.0 * step + 50.0 * layer;
      ++id;
      trace.call("cudaLaunchKernel", at, 1, id).kernel("gemm_kernel", at + 5, 20, 7, id);
      if (layer > 0) continue;
      ++id;
      trace.call("cudaLaunchKernel", at + 300, 1, id);
      trace.kernel("multi_tensor_apply_kernel", at + 305, 40, 7, id);
      trace.kernel("embedding_kernel", at + 1, 2, 7, 0);
    }
  const Profile guessed = read_kineto(scratch.add("a.json", trace.text()));
  CHECK(guessed.step_source == StepSource::repetition);
  REQUIRE(guessed.steps.size() == 4);
  CHECK(in_microseconds(guessed.steps[1].end - guessed.steps[1].begin) == Approx(1000));
  CHECK(in_microseconds(guessed.steps[1].busy) == Approx(122));
  MadeTrace with_optimizer = trace;
  for (int step = 0; step < 5; ++step)
    with_optimizer.host("user_annotation", "Optimizer.step#AdamW.step", 1000.0 * step + 299, 10);
  const Profile by_optimizer = read_kineto(scratch.add("a.json", with_optimizer.text()));
  CHECK(by_optimizer.step_source == StepSource::optimizer);
  REQUIRE(by_optimizer.steps.size() == 4);
  CHECK(in_microseconds(by_optimizer.steps[1].end - by_optimizer.steps[1].begin) == Approx(1000));
  const Profile whole =
      read_kineto(scratch.add("a.json", MadeTrace().kernel("gemm", 5, 10).text()));
  CHECK(whole.step_source == StepSource::whole);
  REQUIRE(whole.steps.size() == 1);
  CHECK(in_microseconds(whole.steps[0].busy) == Approx(10));
}

TEST_CASE("traces without kernels, of others, or of no JSON are refused in one line") {
  const ScratchFolder scratch("observe_profile");
  const auto refusal = [&](const std::string& text) {
    const auto file = scratch.add("a.json", text);
    return error_text([&] { read_kineto(file); }).substr(file.string().size() + 2);
  };
  const MadeTrace host_alone = MadeTrace().host("cpu_op", "aten::mm", 1, 2);
  CHECK(refusal(host_alone.text())
            .starts_with("found a trace without kernels of a GPU; expected a profile"));
  CHECK(refusal("{\"traceEvents\": []}").starts_with("found a trace without a whole event"));
  CHECK(refusal("{\"model\": {\"a\": 1}}").starts_with("found JSON without \"traceEvents\""));
  CHECK(refusal("{\"traceEvents\": 5}") == "byte 16: found \"5\"; expected a list of events");
  CHECK(refusal("{\"traceEvents\": [1, 2]}") ==
        "byte 17: found \"1\"; expected an event, in braces");
  CHECK(
      refusal("{\"traceEvents\": [{\"a\": }]}").starts_with("found a trace without a whole event"));
  CHECK(refusal("{\"traceEvents\": [" + std::string(100, '{')).find("nested at most 64 deep") !=
        std::string::npos);
  CHECK(refusal("{\"a\" 5}") == "byte 5: found \"5\"; expected \":\" behind a key");
}

}  // namespace
}  // namespace orrery::observe
