// SPDX-License-Identifier: Apache-2.0
// Tests what a profile shows of others on the device: slices of time, kernels that run through
// steps.
#include <catch2/catch.hpp>

#include "sim/observe/profile/profile.h"
#include "tests/base/scratch_folder.h"
#include "tests/observe/made_trace.h"

namespace orrery::observe {
namespace {

double in_ms(Seconds time) { return time.si() * 1e3; }

// A step of 20 norms of 0.1 ms and 10 products of 0.2 ms, one after the other from `begin`;
// microseconds. Of the norms, `suspended` lose a slice of 2 ms.
double add_step(MadeTrace& trace, double begin, int number, int suspended) {
  double at = begin;
  for (int i = 0; i < 20; ++i) {
    const double length = i < suspended ? 2100 : 100;
    trace.kernel("rms_norm_kernel", at, length);
    at += length;
    if (i % 2 == 1) {
      trace.kernel("nvjet_gemm", at, 200);
      at += 200;
    }
  }
  trace.host("user_annotation", fmt::format("ProfilerStep#{}", number), begin, at - begin);
  return at;
}

Profile read(const MadeTrace& trace) {
  const ScratchFolder scratch("foreign_work");
  return read_kineto(scratch.add("a.json", trace.text()));
}

TEST_CASE(
    "kernels that lose slices of time are told from their like, and products by other steps") {
  MadeTrace trace;
  const double middle = add_step(trace, 0, 1, 0);
  add_step(trace, middle, 2, 3);
  const Profile profile = read(trace);
  CHECK(profile.foreign.slices == 3);
  CHECK(profile.foreign.products);
  const auto norms = static_cast<std::size_t>(KernelClass::norm);
  CHECK(in_ms(profile.foreign.lost[norms]) == Approx(3));  // 6 ms in two steps
  CHECK(in_ms(profile.foreign.usual) == Approx(4));        // 2 ms of norms, 2 ms of products
}

TEST_CASE("a long product of every step is the run's own; one of a single step was suspended") {
  for (const bool in_both : {true, false}) {
    MadeTrace trace;
    double at = add_step(trace, 0, 1, 0);
    if (in_both) {
      trace.kernel("nvjet_gemm", at, 2200);
      at += 2200;
    }
    const double end = add_step(trace, at, 2, 0);
    trace.kernel("nvjet_gemm", end, 2200);
    // Both steps have eleven products: the first step's last one is long or it is not.
    if (!in_both) trace.kernel("nvjet_gemm", at - 200, 100);
    trace.host("user_annotation", "ProfilerStep#3", end + 2200, 1);
    const Profile profile = read(trace);
    INFO(in_both);
    CHECK(profile.foreign.slices <= 1);
    if (in_both) CHECK(profile.foreign.slices == 0);
  }
}

TEST_CASE(
    "the device had work and did none: the host waits for it beyond the gap, or has launched") {
  // A gap of 3 ms. The host waits for the device all the while; waits and ends before the gap ends;
  // launches 1 ms into it; is late.
  struct Case {
    double wait_begin, wait_length, launch_end, kept_ms;
  };
  for (const Case& c :
       {Case{500, 5000, 0, 3}, Case{500, 1000, 0, 0}, Case{0, 0, 2000, 2}, Case{0, 0, 3900, 0},
        // A launch that returns when the gap begins is that of the kernel before it.
        Case{0, 0, 1002, 0}}) {
    MadeTrace trace;
    trace.kernel("rms_norm_kernel", 0, 1000).kernel("rms_norm_kernel", 4000, 2000);
    if (c.wait_length > 0) trace.call("cudaStreamSynchronize", c.wait_begin, c.wait_length);
    if (c.launch_end > 0) trace.call("cudaLaunchKernel", c.launch_end - 5, 5);
    trace.host("user_annotation", "ProfilerStep#1", 0, 6000);
    const Profile profile = read(trace);
    INFO(c.wait_begin << " " << c.wait_length << " " << c.launch_end);
    CHECK(in_ms(profile.foreign.kept_waiting) == Approx(c.kept_ms).margin(0.01));
  }
}

TEST_CASE("a kernel that runs through a step has the device alone where nothing runs beside it") {
  MadeTrace trace;
  trace.kernel("spin", 0, 9000, 30);
  trace.kernel("rms_norm_kernel", 1000, 2000).kernel("nvjet_gemm", 5000, 5000);
  trace.host("user_annotation", "ProfilerStep#1", 0, 10000);
  CHECK(in_ms(read(trace).foreign.alone) == Approx(3));  // 0 to 1 and 3 to 5
}

}  // namespace
}  // namespace orrery::observe
