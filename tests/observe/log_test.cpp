// SPDX-License-Identifier: Apache-2.0
// Tests what is taken from logs of training programs, on small logs in the forms that they print.
#include <catch2/catch.hpp>

#include "sim/observe/log/run_log.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "tests/observe/observed_file.h"

namespace orrery::observe {
namespace {

RunLog read(const std::string& name) { return read_run_log(observed_file(name)); }

std::vector<StepMark> marks(const RunLog& run) {
  std::vector<StepMark> list;
  for (const LoggedStep& step : run.steps) list.push_back(step.mark);
  return list;
}

TEST_CASE("a log of Megatron-LM tells steps, settings, timers, memory, a save and an evaluation") {
  const RunLog run = read("megatron.log");
  CHECK(run.program == Program::megatron);
  CHECK(run.world_size == 16);
  CHECK(run.tensor == 4);
  CHECK(run.pipeline == 2);
  CHECK(run.data == 2);
  CHECK(run.context == 1);
  CHECK(run.expert == 1);
  CHECK(run.sequence == 4096);
  CHECK(run.total_steps == 500);
  CHECK(run.setting("overlap_grad_reduce") == "False");
  CHECK_FALSE(run.setting("no_such_setting"));
  REQUIRE(run.steps.size() == 12);
  const LoggedStep& third = run.steps[2];
  CHECK(third.step == 3);
  CHECK(third.time->si() == Approx(1.001));
  CHECK(third.per_gpu->si() == Approx(399.6e12));
  CHECK(third.loss == Approx(10.7));
  CHECK(third.loss_scale == 1.0);
  CHECK(third.gradient_norm == Approx(2.345));
  CHECK(third.global_batch == 64);
  CHECK(third.skipped == 0);
  CHECK(third.clock_s == Approx(1774707193));  // 2026-03-28 14:13:13
  // Megatron-LM's megabytes are 2^20 bytes.
  CHECK(run.steps[0].memory.most_allocated->si() == Approx(40960.5 * 1048576));
  CHECK(run.steps[0].memory.reserved->si() == Approx(43008.0 * 1048576));
  REQUIRE(run.phases.size() == 9);
  CHECK(run.phases[0].name == "model-and-optimizer-setup");
  CHECK_FALSE(run.phases[0].step);
  CHECK(run.phases[3].name == "forward-compute");
  CHECK(run.phases[3].step == 3);
  CHECK(run.phases[3].least->si() == Approx(0.3));
  CHECK(run.phases[3].most->si() == Approx(0.3105));
  REQUIRE(run.events.size() == 2);
  CHECK(run.events[0].kind == LoggedEvent::Kind::checkpoint);
  CHECK(run.events[0].step == 6);
  CHECK(run.events[0].time->si() == Approx(0.4825));
  CHECK(run.events[1].kind == LoggedEvent::Kind::evaluation);
  CHECK(run.events[1].time->si() == Approx(2.004));
  REQUIRE(run.troubles.size() == 2);
  CHECK(run.troubles[0].kind == TroubleKind::connections);
  CHECK(run.troubles[1].kind == TroubleKind::nccl_warning);
  CHECK(run.troubles[1].line == 41);
  CHECK(run.troubles[1].step == 8);
}

TEST_CASE("steps that are unlike the rest are marked, left out of the statistics and named") {
  const RunLog run = read("megatron.log");
  using enum StepMark;
  CHECK(marks(run) == std::vector<StepMark>{warm_up, usual, usual, usual, usual, usual, checkpoint,
                                            usual, usual, usual, evaluation, usual});
  CHECK(run.usual.steps == 9);
  // 998, 999, 1000, 1000, 1000.5, 1001, 1001.5, 1002, 1030.2
  CHECK(run.usual.median.si() == Approx(1.0005));
  CHECK(run.usual.deviation.si() == Approx(1.4826 * 0.001).epsilon(0.01));
  CHECK(run.usual.most.si() == Approx(1.0302));
  REQUIRE(run.notes.size() == 3);
  CHECK(run.notes[0] == "Statistics leave out 1 of 12 logged steps (warm-up): 1.");
}

TEST_CASE("Megatron-LM's timers of all ranks tell each rank, and the step that is not a number") {
  const RunLog run = read("megatron_ranks.log");
  REQUIRE(run.phases.size() == 3);
  const LoggedPhase& forward = run.phases[0];
  CHECK(forward.name == "forward-compute");
  CHECK(forward.step == 5);
  REQUIRE(forward.ranks.size() == 4);
  CHECK(forward.ranks[2].first == 2);
  CHECK(forward.ranks[2].second.si() == Approx(0.38075));
  CHECK(forward.least->si() == Approx(0.2501));
  CHECK(forward.most->si() == Approx(0.38075));
  CHECK(run.phases[2].most->si() == Approx(0.3812));
  CHECK_FALSE(run.phases[2].least);
  CHECK(run.steps[0].skipped == 1);
  CHECK_FALSE(run.steps[0].loss_is_nan);
  CHECK(run.steps[1].loss_is_nan);
  CHECK_FALSE(run.steps[1].loss);
  CHECK(run.steps[1].nan_steps == 5);
  REQUIRE(run.troubles.size() == 1);
  CHECK(run.troubles[0].kind == TroubleKind::not_a_number);
}

TEST_CASE("a speed that is told in the line before a step belongs to that step") {
  const ScratchFolder scratch("observe_log");
  const std::string step =
      " iteration 7/ 10 | elapsed time per iteration (ms): 900.0 | lm loss: 3 |\n";
  const RunLog run = read_run_log(scratch.add(
      "a.log", "Step Time : 0.90s GPU utilization: 400.5MODEL_TFLOP/s/GPU\n" + step +
                   " iteration 8/ 10 | elapsed time per iteration (ms): 900.0 | lm loss: 3 |\n"));
  REQUIRE(run.steps.size() == 2);
  CHECK(run.steps[0].per_gpu->si() == Approx(400.5e12));
  CHECK_FALSE(run.steps[1].per_gpu);
}

TEST_CASE("counts of Megatron-LM with a fraction lose it, and no step is larger than is counted") {
  const ScratchFolder scratch("observe_log");
  const std::string rest = " | elapsed time per iteration (ms): 900.0 | global batch size: 8.5 |\n";
  const RunLog run = read_run_log(
      scratch.add("a.log", " iteration 7.5/ 10" + rest + " iteration 1e16/ 10" + rest));
  REQUIRE(run.steps.size() == 1);
  CHECK(run.steps[0].step == 7);
  CHECK(run.steps[0].global_batch == 8);
}

TEST_CASE("lines of DeepSpeed and of Megatron-LM about one step are joined") {
  const RunLog run = read("megatron_deepspeed.log");
  CHECK(run.program == Program::megatron);
  REQUIRE(run.steps.size() == 2);
  const LoggedStep& second = run.steps[1];
  CHECK(second.time->si() == Approx(14.0));
  CHECK(second.memory.allocated->si() == Approx(6.01 * 1073741824));
  CHECK(second.memory.most_allocated->si() == Approx(19.52 * 1073741824));
  CHECK(second.samples_per_s == Approx(54.9));
  CHECK(second.tokens_per_gpu->si() == Approx(7021.714));
  CHECK(second.per_gpu->si() == Approx(52e12));
  REQUIRE(run.phases.size() == 5);
  CHECK(run.phases[3].name == "bwd_allreduce_microstep");
  CHECK(run.phases[3].step == 2);
  CHECK(run.phases[3].most->si() == Approx(0.75939));
}

TEST_CASE("logs of NeMo, as lines and as progress bars") {
  const RunLog lines = read("nemo2.log");
  CHECK(lines.program == Program::nemo);
  REQUIRE(lines.steps.size() == 8);
  CHECK(lines.steps[3].step == 3);
  CHECK(lines.steps[3].time->si() == Approx(12.40));
  CHECK(lines.steps[3].tokens_per_gpu->si() == Approx(10730));
  CHECK(lines.steps[3].memory.most_reserved->si() == 70833405952.0);
  CHECK(lines.steps[3].memory.allocated->si() == 44271689728.0);
  CHECK(lines.steps[3].loss == Approx(11.7));
  CHECK(lines.steps[0].mark == StepMark::warm_up);
  const RunLog bars = read("nemo1.log");
  REQUIRE(bars.steps.size() == 4);
  CHECK(bars.steps[1].step == 1);
  CHECK(bars.steps[1].time->si() == Approx(2.01));
  CHECK(bars.steps[1].loss == Approx(9.5));
}

TEST_CASE("a log of TorchTitan tells no times: they are taken between lines") {
  const RunLog run = read("torchtitan.log");
  CHECK(run.program == Program::torchtitan);
  CHECK(run.device == "NVIDIA H100");
  CHECK(run.data == 8);
  CHECK(run.sequence == 8192);
  CHECK(run.total_steps == 1000);
  CHECK(run.setting("global batch size") == "8");
  REQUIRE(run.steps.size() == 4);
  CHECK_FALSE(run.steps[0].time);
  CHECK(run.steps[0].mark == StepMark::no_time);
  // 08:51:48.074 to 08:51:58.557, nine steps.
  CHECK(run.steps[1].time->si() == Approx(10.483 / 9));
  CHECK(run.steps[1].time_source == TimeSource::between);
  CHECK(run.steps[1].tokens_per_gpu->si() == 7034);
  CHECK(run.steps[1].mfu == Approx(0.4119));
  CHECK(run.steps[1].memory.most_reserved->si() == Approx(30.99 * 1073741824));
  CHECK(run.steps[1].memory.most_share == Approx(0.3262));
  CHECK(run.steps[1].allocator_retries == 2);
  REQUIRE(run.events.size() == 1);
  CHECK(run.events[0].time->si() == Approx(4.25));
  CHECK(run.steps[3].mark == StepMark::checkpoint);
}

TEST_CASE("logs of DeepSpeed, of its engine and of its pipelines") {
  const RunLog run = read("deepspeed.log");
  CHECK(run.program == Program::deepspeed);
  CHECK(run.world_size == 8);
  REQUIRE(run.steps.size() == 5);
  CHECK(run.steps[1].step == 20);
  CHECK(run.steps[1].time->si() == Approx(1.0));
  CHECK(run.steps[1].samples_per_s == Approx(256));
  CHECK(run.steps[1].allocator_retries == 3);
  CHECK(run.steps[1].skipped == 0);
  CHECK(run.steps[2].skipped == 1);
  REQUIRE(run.troubles.size() == 2);
  CHECK(run.troubles[0].kind == TroubleKind::allocator_retry);
  CHECK(run.troubles[1].kind == TroubleKind::loss_overflow);
  const RunLog pipeline = read("deepspeed_pipeline.log");
  REQUIRE(pipeline.steps.size() == 3);
  CHECK(pipeline.steps[2].time->si() == Approx(1.234));
  CHECK(pipeline.steps[2].loss == Approx(2.7));
}

TEST_CASE("logs of serving engines tell steps of decodes, their batch and their history") {
  const RunLog vllm = read("vllm.log");
  CHECK(vllm.program == Program::vllm);
  REQUIRE(vllm.steps.size() == 7);
  // Three of ten seconds had prompts among them.
  CHECK_FALSE(vllm.steps[2].time);
  CHECK(vllm.steps[2].with_prompts);
  CHECK(vllm.steps[3].step == 4);
  CHECK(vllm.steps[3].time->si() == Approx(0.0121).epsilon(0.03));
  CHECK(vllm.usual.steps == 4);
  CHECK(vllm.sequences == 64);
  CHECK(vllm.history == 1095);  // 7.85% of 892,336 tokens, among 64
  CHECK(std::any_of(vllm.notes.begin(), vllm.notes.end(), [](const std::string& note) {
    return note.find("3 of 7 logged steps had prompts") != std::string::npos;
  }));
  const RunLog sglang = read("sglang.log");
  CHECK(sglang.program == Program::sglang);
  REQUIRE(sglang.steps.size() == 8);
  CHECK_FALSE(sglang.steps[3].time);  // a prompt ran before it
  CHECK(sglang.steps[4].time->si() == Approx(0.0075).epsilon(0.03));
  CHECK(sglang.steps[0].history == Approx(70000.0 / 64));
  CHECK(sglang.sequences == 64);
  const RunLog trtllm = read("trtllm.log");
  CHECK(trtllm.program == Program::trtllm);
  REQUIRE(trtllm.steps.size() == 12);
  CHECK(trtllm.steps[0].step == 100);
  CHECK_FALSE(trtllm.steps[0].time);
  CHECK(trtllm.steps[1].time->si() == Approx(0.0076).epsilon(0.03));
  CHECK(trtllm.usual.steps == 10);
  CHECK(trtllm.sequences == 64);
  CHECK_FALSE(trtllm.history);
  // The newer form of the same line.
  const ScratchFolder scratch("engine_log");
  const RunLog newer = read_run_log(scratch.add(
      "new.log",
      "[11/20/2025-10:00:01] [TRT-LLM] [I] [_torch][RANK 0] iter = 7, global_rank = 0, rank = 0, "
      "num_scheduled_requests = 3, kv_cache_util = 0.112, currank_total_requests = 0/1, "
      "host_step_time = 4.08ms, prev_device_step_time = N/A, timestamp = 2025-11-20 10:00:01, "
      "states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 3}\n"));
  CHECK(newer.steps.at(0).time->si() == Approx(0.00408));
  CHECK(newer.sequences == 3);
}

TEST_CASE("a log of MaxText, whose first steps are launched before they end") {
  const RunLog run = read("maxtext.log");
  CHECK(run.program == Program::maxtext);
  CHECK(run.world_size == 16);
  CHECK(run.sequence == 2048);
  CHECK(run.total_steps == 30);
  REQUIRE(run.steps.size() == 8);
  CHECK(run.steps[3].time->si() == Approx(5.402));
  CHECK(run.steps[3].per_gpu->si() == Approx(141.542e12));
  CHECK(run.steps[3].tokens_per_gpu->si() == Approx(1516.5));
  CHECK(run.steps[0].mark == StepMark::warm_up);
  CHECK(run.steps[1].mark == StepMark::warm_up);
  CHECK(run.steps[5].mark == StepMark::checkpoint);
}

TEST_CASE("lines of other ranks are counted, and a restart is told") {
  const ScratchFolder scratch("observe_log");
  std::string text;
  const auto line = [](int step) {
    return "completed step: " + std::to_string(step) +
           ", seconds: 2.0, TFLOP/s/device: 100.0, loss: 3.0\n";
  };
  for (int step = 0; step < 30; ++step) text += line(step) + line(step);
  for (int step = 10; step < 40; ++step) text += line(step);
  const RunLog run = read_run_log(scratch.add("a.log", text));
  CHECK(run.steps.size() == 60);
  CHECK(run.usual.steps == 60);
  REQUIRE(run.events.size() == 1);
  CHECK(run.events[0].kind == LoggedEvent::Kind::restart);
  CHECK(run.events[0].line == 61);
  CHECK(run.notes == std::vector<std::string>{
                         "30 more lines tell of steps that were told before (other ranks): the "
                         "first line of a step counts.",
                         "The steps begin again in line 61: a restart."});
}

TEST_CASE("many lines of one trouble are kept a hundred times and counted") {
  const ScratchFolder scratch("observe_log");
  std::string text = "completed step: 0, seconds: 2.0, TFLOP/s/device: 100.0, loss: 3.0\n";
  for (int i = 0; i < 250; ++i) text += "node:1:2 [0] NCCL INFO Channel 00\n";
  const RunLog run = read_run_log(scratch.add("a.log", text));
  REQUIRE(run.troubles.size() == 100);
  CHECK(run.troubles[0].more == 150);
}

TEST_CASE("words of trouble are told apart") {
  const ScratchFolder scratch("observe_log");
  const auto kind = [&](const std::string& line) {
    const RunLog run = read_run_log(scratch.add(
        "a.log", "completed step: 0, seconds: 2.0, TFLOP/s/device: 100.0, loss: 3.0\n" + line));
    REQUIRE(run.troubles.size() == 1);
    return run.troubles[0].kind;
  };
  CHECK(kind("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.") ==
        TroubleKind::out_of_memory);
  CHECK(kind("[rank3]:[E] ProcessGroupNCCL.cpp:607 [Rank 3] Watchdog caught collective operation "
             "timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE) ran for 600000 milliseconds") ==
        TroubleKind::nccl_timeout);
  CHECK(
      kind(
          "UserWarning: Anomaly Detection has been enabled. This mode will increase the runtime") ==
      TroubleKind::anomaly_detection);
  CHECK(kind("export CUDA_LAUNCH_BLOCKING=1") == TroubleKind::launch_blocking);
  CHECK(kind("RuntimeError: CUDA error: an illegal memory access was encountered") ==
        TroubleKind::cuda_error);
  CHECK(kind("TORCH_DISTRIBUTED_DEBUG=DETAIL") == TroubleKind::distributed_debug);
}

TEST_CASE("a text without steps is refused in one line") {
  const ScratchFolder scratch("observe_log");
  const auto file = scratch.add("a.log", "hello\nworld\n");
  CHECK(error_text([&] { read_run_log(file); }) ==
        file.string() +
            ": found no line that tells a step; expected a log of Megatron-LM, NeMo, "
            "TorchTitan, DeepSpeed, MaxText, vLLM, SGLang or TensorRT-LLM");
  CHECK(error_text([&] { read_run_log(scratch.add("b.log", "")); }).find("an empty file") !=
        std::string::npos);
  CHECK(error_text([&] { read_run_log(scratch / "none"); }).find("no readable file") !=
        std::string::npos);
  CHECK(error_text([&] { read_run_log(scratch / ""); }).find("a folder") != std::string::npos);
}

}  // namespace
}  // namespace orrery::observe
