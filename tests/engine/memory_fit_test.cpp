// SPDX-License-Identifier: Apache-2.0
// Holds the memory verdict against its own sums and its sentence.
#include "sim/engine/memory_fit.h"

#include <catch2/catch.hpp>

namespace orrery {
namespace {

Model llama_70b() {
  Model m;
  m.hidden = 8192;
  m.vocab = 128256;
  LayerClass layer;
  layer.mixer.heads = 64;
  layer.mixer.kv_heads = 8;
  layer.ffn.width = 28672;
  m.classes = {layer};
  m.layers.assign(80, 0);
  return m;
}

Stack stack() {
  Stack s;
  s.memory.sequence_buffers.value = 1;
  s.name = "megatron-core";
  s.kernels.fused_gradient_accumulation = true;
  s.memory.allocator_rounding.value = 1.05;
  s.memory.context.value = gibibytes(1.5);
  return s;
}

ResolvedDevice h100() {
  ResolvedDevice d;
  d.name = "h100";
  d.memory_capacity = gibibytes(79.6);
  return d;
}

Job pretrain() {
  Job j;
  j.sequence = 8192;
  j.global_batch = 128;
  return j;
}

}  // namespace

TEST_CASE("a layout that fits says by how much") {
  Layout layout;
  layout.tp = 8;
  layout.pp = 4;
  layout.dp = 4;
  const MemoryVerdict v = memory_fit(llama_70b(), pretrain(), layout, stack(), h100());
  CHECK(v.fits);
  CHECK(v.reason.empty());
  CHECK(v.stages.size() == 4);
  CHECK(v.reserved.si() == Approx(1.05 * v.peak.si()));
  CHECK(v.needed.si() == Approx(v.reserved.si() + gibibytes(1.5).si()));
  CHECK(v.margin == Approx(v.capacity / v.needed - 1));
  CHECK(v.stages[static_cast<std::size_t>(v.worst_stage)].peak() == v.peak);
  CHECK(v.stages[0][MemoryCategory::fragmentation].si() == Approx(0.05 * v.stages[0].peak().si()));
  CHECK(memory_fits(llama_70b(), pretrain(), layout, stack(), h100()));
}

TEST_CASE("a layout that does not fit says which stage, what and what would help") {
  Layout layout;
  layout.tp = 8;
  layout.dp = 2;
  layout.zero_stage = 0;
  const MemoryVerdict v = memory_fit(llama_70b(), pretrain(), layout, stack(), h100());
  CHECK_FALSE(v.fits);
  CHECK(v.margin < 0);
  CHECK(v.reason.find("stage 0 needs ") == 0);
  CHECK(v.reason.find(" of 79.6 GiB: optimizer ") != std::string::npos);
  CHECK(v.reason.find("sharding the optimizer (ZeRO-1) would save ") != std::string::npos);
  CHECK_FALSE(memory_fits(llama_70b(), pretrain(), layout, stack(), h100()));

  layout.zero_stage = 1;
  layout.dp = 16;
  layout.micro_batch = 8;
  const MemoryVerdict many = memory_fit(llama_70b(), pretrain(), layout, stack(), h100());
  CHECK_FALSE(many.fits);
  CHECK(many.reason.find("would save ") != std::string::npos);
}

TEST_CASE("what is offloaded has to fit into the rank's share of the host's memory") {
  const Model model = llama_70b();
  const Layout layout{.tp = 8, .pp = 4, .dp = 4, .offload_optimizer = true};
  ResolvedDevice device = h100();
  const MemoryVerdict open = memory_fit(model, pretrain(), layout, stack(), device);
  REQUIRE(open.fits);
  REQUIRE(open.host > Bytes(0));
  const auto with_host = [&](double share) {
    device.host_memory = share * open.host;
    const MemoryVerdict v = memory_fit(model, pretrain(), layout, stack(), device);
    CHECK(v.fits == memory_fits(model, pretrain(), layout, stack(), device));
    return v;
  };
  CHECK(with_host(1.01).fits);
  const MemoryVerdict shorter = with_host(0.75);
  CHECK_FALSE(shorter.fits);
  CHECK(shorter.margin == Approx(-0.25));
  CHECK(shorter.probability == 0);
  CHECK(shorter.reason.find("a host's memory") != std::string::npos);
  Layout part = layout;
  part.optimizer_offload_fraction = 0.5;
  CHECK(memory_fit(model, pretrain(), part, stack(), device).fits);
}

TEST_CASE("the verdict has a range and a probability") {
  Layout layout;
  layout.tp = 8;
  layout.pp = 4;
  layout.dp = 4;
  Stack s = stack();
  ResolvedDevice device = h100();
  const MemoryVerdict v = memory_fit(llama_70b(), pretrain(), layout, s, device);
  CHECK(v.standing == MemoryStanding::fits);
  CHECK(v.needed_low < v.needed);
  CHECK(v.needed < v.needed_high);
  CHECK(v.probability > 0.95);
  // The capacity moves through the range: near its ends one in twenty, at its middle one in two.
  const auto at = [&](Bytes capacity) {
    device.memory_capacity = capacity;
    return memory_fit(llama_70b(), pretrain(), layout, s, device);
  };
  CHECK(at(v.needed).probability == Approx(0.5));
  CHECK(at(v.needed).standing == MemoryStanding::near_limit);
  CHECK(at(v.needed_low).probability == Approx(0.05).margin(0.001));
  CHECK(at(v.needed_high).probability == Approx(0.95).margin(0.001));
  CHECK(at(v.needed_low * 0.99).standing == MemoryStanding::does_not_fit);
  CHECK(at(v.needed_high * 1.01).standing == MemoryStanding::fits);
  // A stack that knows its allocator less well has a wider range.
  s.memory.allocator_rounding.high = 1.4;
  CHECK(at(v.capacity).needed_high > v.needed_high);
}

TEST_CASE("inference is judged by weights and cache") {
  Job job;
  job.task = Task::decode;
  job.batch = 64;
  job.context = 8192;
  Layout layout;
  layout.tp = 8;
  CHECK(memory_fit(llama_70b(), job, layout, stack(), h100()).fits);
  layout.tp = 1;
  const MemoryVerdict v = memory_fit(llama_70b(), job, layout, stack(), h100());
  CHECK_FALSE(v.fits);
  CHECK(v.reason.find("kv cache") != std::string::npos);
}

}  // namespace orrery
