// SPDX-License-Identifier: Apache-2.0
// Tests `calibrate kernel` where there is no GPU: candidates that are right, wrong or cheat,
// limits, exit codes, and what a kernel is worth.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "sim/base/json/tree.h"
#include "sim/calibrate/kernel/spec.h"
#include "tests/app/run_binary.h"
#include "tests/base/broken_text.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::run;

const fs::path& kernels() {
  static const fs::path path = fs::path(ORRERY_SOURCE_DIR) / "validation/kernels";
  return path;
}

// Judge and worker are built once for all tests of this program.
std::string judge_flag() {
  static const ScratchFolder folder("kernel-judge");
  return " --judge " + (folder / "judge").string();
}

struct Judged {
  Outcome outcome;
  Json json;
};
Judged judge(const std::string& spec, const std::vector<fs::path>& files,
             const std::string& flags = "") {
  std::string line = "calibrate kernel " + spec + " --host --json --quiet" + judge_flag() + flags;
  for (const fs::path& file : files) line += " --candidate '" + file.string() + "'";
  Judged out{run(line), nullptr};
  INFO(line << "\n" << out.outcome.err);
  if (!out.outcome.out.empty()) out.json = Json::parse(out.outcome.out);
  REQUIRE(out.json.is_object());
  return out;
}

// Ours that must be wrong, with what is said of each.
struct Cheat {
  const char *name, *said;
};
Judged judge_cheat(const std::string& name, const std::string& flags = "") {
  return judge("rms-norm", {kernels() / "cheats" / (name + ".cu")}, flags);
}
void check_caught(const Cheat& cheat, const std::string& flags = "") {
  INFO(cheat.name);
  const Judged judged = judge_cheat(cheat.name, flags);
  CHECK(judged.outcome.code == 1);
  CHECK(judged.json["correct"] == Json(false));
  CHECK(judged.json["reward"] == Json(0));
  CHECK(judged.json["speedup"].is_null());
  INFO(judged.json["feedback"].text());
  CHECK(judged.json["feedback"].text().find(cheat.said) != std::string::npos);
}

TEST_CASE("each operation's good candidate is right, and three bad ones are wrong", "[kernel]") {
  for (const KernelOperation& operation : kernel_operations()) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(kernels() / "candidates" / operation.name))
      if (entry.path().extension() == ".cu") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    INFO(operation.name);
    CHECK(files.size() >= 4);
    const Judged judged = judge(operation.name, files);
    CHECK(judged.outcome.code == 0);
    for (const Json& candidate : judged.json["candidates"]) {
      const std::string file = fs::path(candidate["file"].text()).filename().string();
      INFO(file << ": " << candidate["feedback"].text());
      CHECK(candidate["compiled"] == Json(true));
      CHECK(candidate["correct"] == Json(file.starts_with("good")));
      CHECK((candidate["reward"].get<double>() > 0) == file.starts_with("good"));
      CHECK((candidate["wrong"].size() == 0) == file.starts_with("good"));
    }
    CHECK(judged.json["file"].text().ends_with("good.cu"));
    CHECK(judged.json["worst_error"].get<double>() <= 1);
    CHECK(judged.json["time_s"].get<double>() > 0);
  }
}

TEST_CASE("results of before, half results, late and lazy ones are wrong", "[kernel]") {
  for (const Cheat& cheat : {Cheat{"cached", "elements looked at are wrong"},
                             {"device_cached", "elements looked at are wrong"},
                             {"idle_again", "were not written"},
                             {"partial", "were not written"},
                             {"late", "were not written"},
                             {"device_late", "were not written"},
                             {"copies_input", "elements looked at are wrong"},
                             {"lazy_when_timed", "not while it was timed"}})
    check_caught(cheat);
}

TEST_CASE("writing where nothing may be written is wrong", "[kernel]") {
  check_caught({"writes_inputs", "elements of the inputs were changed"});
  check_caught({"out_of_bounds", "bytes were written outside of the outputs"});
}

TEST_CASE("forged answers and signals to the judge change nothing", "[kernel]") {
  check_caught({"forges", "said what was not asked"});
  check_caught({"kills", "were not written"});
}

TEST_CASE("a candidate ends at its limits of time, memory and disk, and with its own faults",
          "[kernel]") {
  check_caught({"hangs", "longer than its limit of 2 s"}, " --timeout 2");
  // Memory is what ends it: where pages come slowly, 8 GiB of them take 10 s and more.
  check_caught({"eats_memory", "more memory than its limit"}, " --timeout 120");
  check_caught({"fills_disk", "ended by signal 25"});
  check_caught({"crashes", "ended by signal 11"});
}

TEST_CASE("a candidate's own clock tells the judge nothing", "[kernel]") {
  const Judged judged = judge_cheat("clock");
  CHECK(judged.outcome.code == 0);
  constexpr double sleeps = 4e-3;
  CHECK(judged.json["time_s"].get<double>() >= sleeps);
  CHECK(judged.json["reward"].get<double>() < 0.2);
}

TEST_CASE("candidates reach no judge, process, network or file that is not theirs", "[kernel]") {
  // Each returns another code where it gets anywhere, which makes it wrong.
  for (const char* name : {"reads_memory", "reaches_out", "wakes_early"}) {
    INFO(name);
    const Judged judged = judge_cheat(name);
    const Json& held = judged.json["sandbox"];
    INFO(judged.json["feedback"].text());
    if (held["calls"].get<bool>() && held["files"].get<bool>())
      CHECK(judged.outcome.code == 0);
    else  // a kernel without seccomp or Landlock: it is said
      CHECK(judged.json["sandbox"].dump().find("false") != std::string::npos);
  }
}

TEST_CASE("what does not compile has exit code 3 and the compiler's words", "[kernel]") {
  const ScratchFolder scratch("kernel-broken");
  const Judged judged =
      judge("softmax", {scratch.add("broken.cpp", "extern \"C\" int launch() { return x; }\n")});
  CHECK(judged.outcome.code == 3);
  CHECK(judged.json["compiled"] == Json(false));
  CHECK(judged.json["correct"].is_null());
  CHECK(judged.json["feedback"].text().find("error") != std::string::npos);
  const Judged nothing =
      judge("softmax", {scratch.add("nothing.cpp", "extern \"C\" int other() { return 0; }\n")});
  CHECK(nothing.outcome.code == 1);
  CHECK(nothing.json["feedback"].text().find("defines no") != std::string::npos);
}

TEST_CASE("candidates in Python run where the interpreter has torch", "[kernel]") {
  const ScratchFolder scratch("kernel-python");
  const fs::path source = scratch.add("top.py", R"(
def launch(inputs, outputs, sizes):
    rows, k = inputs[0].rows(sizes["width"]), sizes["k"]
    for r, row in enumerate(rows):
        order = sorted(range(len(row)), key=lambda i: -row[i])[:k]
        outputs[0].write(r * k, [row[i] for i in order])
        outputs[1].write(r * k, order)
)");
  const Judged without = judge("top-k", {source}, " --python /usr/bin/python3");
  if (without.outcome.code == 3) {
    CHECK(without.json["feedback"].text().find("no torch for") != std::string::npos);
    CHECK(without.json["correct"].is_null());
  }
  // What the worker asks of torch, over the standard library: tensors of fp32 and int32 alone.
  scratch.add("torch.py", R"(
bfloat16, float32, int32 = "h", "f", "i"


class Tensor:
    def __init__(self, memory):
        self.memory = memory

    def view(self, shape):
        return self

    def rows(self, width):
        return [self.memory[i:i + width].tolist() for i in range(0, len(self.memory), width)]

    def write(self, at, values):
        for i, value in enumerate(values):
            self.memory[at + i] = value


def frombuffer(buffer, dtype, count, offset):
    return Tensor(memoryview(buffer)[offset:offset + 4 * count].cast(dtype))
)");
  const fs::path interpreter =
      scratch.add("python", "#!/bin/sh\nPYTHONPATH='" + (scratch / "").string() +
                                "' exec /usr/bin/python3 \"$@\"\n");
  fs::permissions(interpreter, fs::perms::owner_all);
  const Judged with = judge("top-k", {source}, " --python '" + interpreter.string() + "'");
  INFO(with.json["feedback"].text());
  CHECK(with.outcome.code == 0);
  CHECK(with.json["correct"] == Json(true));
  const fs::path wrong =
      scratch.add("raises.py", "def launch(inputs, outputs, sizes):\n    1 / 0\n");
  const Judged raised = judge("top-k", {wrong}, " --python '" + interpreter.string() + "'");
  CHECK(raised.outcome.code == 1);
  CHECK(raised.json["feedback"].text().find("ZeroDivisionError") != std::string::npos);
}

TEST_CASE("without a GPU a candidate in Python is told whether torch is missing, too", "[kernel]") {
  const ScratchFolder scratch("kernel-no-torch");
  const fs::path source = scratch.add("c.py", "def launch(inputs, outputs, sizes):\n    pass\n");
  const fs::path bare = scratch.add("bare", "#!/bin/sh\nexec /usr/bin/python3 -I -S \"$@\"\n");
  scratch.add("torch.py", "");
  const fs::path with = scratch.add("with", "#!/bin/sh\nPYTHONPATH='" + (scratch / "").string() +
                                                "' exec /usr/bin/python3 -S \"$@\"\n");
  for (const fs::path& file : {bare, with}) fs::permissions(file, fs::perms::owner_all);
  // No nvidia-smi on the path: no GPU. The compiler is not asked for anything.
  const auto judged = [&](const fs::path& python) {
    return test::run_shell("PATH=/nowhere " ORRERY_BINARY
                           " calibrate kernel rms-norm --quiet --nvcc /usr/bin/c++ --python '" +
                           python.string() + "' --candidate '" + source.string() + "'");
  };
  const test::Outcome without = judged(bare);
  INFO(without.out << without.err);
  CHECK(without.code == 3);
  CHECK(without.out.find("no torch for") != std::string::npos);
  CHECK(without.out.find("there is no GPU") == std::string::npos);
  const test::Outcome there = judged(with);
  INFO(there.out << there.err);
  CHECK(there.code == 3);
  CHECK(there.out.find("there is no GPU") != std::string::npos);
}

TEST_CASE("a kernel's worth is that of the job with its kind of kernel faster", "[kernel]") {
  const ScratchFolder scratch("kernel-worth");
  // Today's kernel is the right one that sleeps: any other is worth a good deal.
  SortedJson spec = load_kernel_spec("rms-norm").text;
  SortedJson slow = SortedJson::object();
  slow["name"] = "sleeps";
  slow["file"] = (kernels() / "cheats/clock.cu").string();
  slow["host"] = true;
  spec["present"] = SortedJson::array();
  spec["present"].push_back(slow);
  const fs::path file = scratch.add("spec.json", spec.dump());
  const fs::path job = fs::path(ORRERY_SOURCE_DIR) / "tests/scenarios/fsdp-8b-h100.json";
  const fs::path good = kernels() / "candidates/rms-norm/good.cu";
  const fs::path plan = scratch.add("plan.json", R"({"model": "llama3-8b", "tokens": "1T",
    "cluster": "dgx-h100", "gpus": [64, 128], "seq": 8192, "global_batch": 128})");
  const Judged judged =
      judge(file.string(), {good},
            " --tokens 1T --job '" + job.string() + "' --question '" + plan.string() + "'");
  CHECK(judged.outcome.code == 0);
  const double speed = judged.json["speedup"].get<double>();
  CHECK(speed > 5);
  const Json& worth = judged.json["worth"]["job"];
  const double now = worth["step_s"].get<double>(), then = worth["step_with_it_s"].get<double>();
  CHECK(then < now);
  CHECK(then > 0.5 * now);
  CHECK(worth["step_saved_s"]["value"].get<double>() == Approx(now - then));
  for (const char* key : {"step_saved_s", "faster", "run_saved_s", "saved_usd"}) {
    INFO(key);
    CHECK(worth[key]["low"].get<double>() <= worth[key]["value"].get<double>());
    CHECK(worth[key]["value"].get<double>() <= worth[key]["high"].get<double>());
    CHECK(worth[key]["value"].get<double>() > 0);
  }
  const Outcome simulated = run("simulate " + job.string() + " --json");
  CHECK(Json::parse(simulated.out)["prediction"]["step_time_s"].get<double>() == Approx(now));
  const Json& points = judged.json["worth"]["plan"];
  REQUIRE(points.size() == 2);
  for (const Json& point : points) {
    CHECK(point["run_saved_s"]["value"].get<double>() > 0);
    CHECK(point["saved_usd"]["value"].get<double>() > 0);
    CHECK(point["run_saved_s"]["value"].get<double>() < 0.5 * point["duration_s"].get<double>());
  }
}

TEST_CASE("a signal ends judge and candidate, and leaves no folder", "[kernel]") {
  const ScratchFolder scratch("kernel-signal");
  for (const auto& [signal, code] : {std::pair{"INT", 130}, {"TERM", 143}}) {
    const Outcome outcome = test::run_shell(
        "TMPDIR='" + (scratch / "").string() + "' timeout --foreground --preserve-status -s " +
        signal + " 4 " + ORRERY_BINARY + " calibrate kernel rms-norm --host --timeout 60" +
        judge_flag() + " --candidate '" + (kernels() / "cheats/hangs.cu").string() + "'");
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    for (const auto& left : fs::recursive_directory_iterator(scratch / ""))
      FAIL_CHECK(left.path().string());
  }
}

TEST_CASE("an answer that was kept is judged again without a GPU", "[kernel]") {
  const fs::path kept = kernels() / "runs/h100/search-rms-norm.json";
  const Json before = Json::parse(test::read_file(kept));
  const auto again = [&](const std::string& flags, int code = 0) {
    const Outcome outcome = run("calibrate kernel --kept " + kept.string() + " --json " + flags);
    INFO(outcome.err);
    CHECK(outcome.code == code);
    return Json::parse(outcome.out);
  };
  const Json same = again("--against present");
  for (const char* key :
       {"file", "compiled", "correct", "worst_error", "cases", "ran_on", "device"})
    CHECK(same[key] == before[key]);
  for (const char* key : {"time_s", "of_roofline", "speedup", "speedup_low", "reward"})
    CHECK(same[key].get<double>() == Approx(before[key].get<double>()));
  CHECK(same["candidates"].size() == 10);
  CHECK(same["worth"].is_null());
  // On a device with more bandwidth the same times are farther from its limit.
  const Json other = again("--against present --device h200-sxm");
  CHECK(other["of_roofline"].get<double>() < same["of_roofline"].get<double>());
  const ScratchFolder scratch("kernel-kept");
  const Outcome repeated = run("rerun " + scratch.add("same.json", same.dump(2) + "\n").string());
  INFO(repeated.err);
  CHECK(repeated.code == 0);
  Json wrong = before;
  for (Json& one : wrong["candidates"]) one["correct"] = false;
  const fs::path file = scratch.add("wrong.json", wrong.dump());
  const Outcome judged = run("calibrate kernel --json --kept " + file.string());
  CHECK(judged.code == 1);
  CHECK(Json::parse(judged.out)["reward"].get<double>() == 0);
  for (const auto& [flags, part] : {std::pair{"rms-norm", "no specification"},
                                    {"--keep", "it alone"},
                                    {"--against x", "calib"}})
    CHECK(run("calibrate kernel --kept " + kept.string() + " " + flags).err.find(part) !=
          std::string::npos);
  CHECK(run("calibrate kernel --kept " + scratch.add("no.json", "{}").string()).code == 2);
}

TEST_CASE("300 broken answers that were kept are judged or get one line", "[kernel]") {
  const SortedJson good =
      SortedJson::parse(test::read_file(kernels() / "runs/h200/spec-rms-norm.json"));
  const ScratchFolder scratch("kernel-broken");
  RandomStream random(fresh(5), 0);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = i % 3 == 0 ? test::broken_text(good.dump(), random)
                                        : test::broken_json(good, random).dump();
    const fs::path file = scratch.add("broken.json", text);
    const Outcome outcome = run("calibrate kernel --json --kept " + file.string());
    INFO(outcome.err << outcome.out << text);
    CHECK(outcome.code >= 0);
    CHECK(outcome.code <= 3);
    refused += outcome.code == 2 ? 1 : 0;
    if (outcome.code == 2) {
      CHECK(test::lines(outcome.err) == 1);
    } else {
      CHECK(outcome.out.find("inf") == std::string::npos);
      CHECK(outcome.out.find("nan") == std::string::npos);
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("without a GPU a candidate is compiled, and that is told by exit code 3", "[kernel]") {
  // A compiler that takes everything and says what ptxas would: nothing can run what it makes.
  const ScratchFolder scratch("kernel-nvcc");
  const fs::path nvcc = scratch.add(
      "nvcc",
      "#!/bin/sh\nwhile [ $# -gt 0 ]; do if [ \"$1\" = -o ]; then : >\"$2\"; fi; shift; done\n"
      "echo 'ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem' >&2\n");
  fs::permissions(nvcc, fs::perms::owner_all);
  const Outcome outcome =
      test::run_shell("env PATH=/nowhere:" + (scratch / "").string() + " " + ORRERY_BINARY +
                      " calibrate kernel rms-norm --json --quiet --nvcc " + nvcc.string() +
                      " --candidate " + (kernels() / "candidates/rms-norm/good.cu").string());
  CHECK(outcome.code == 3);
  const Json json = Json::parse(outcome.out);
  CHECK(json["compiled"] == Json(true));
  CHECK(json["correct"].is_null());
  CHECK(json["resources"]["registers"] == Json(40));
  CHECK(json["verdict"]["runs"] == Json(false));
}

TEST_CASE("calibrate kernel says what it needs", "[kernel]") {
  const auto error = [](const std::string& arguments, const std::string& part) {
    const Outcome outcome = run("calibrate " + arguments);
    INFO(arguments << ": " << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(test::lines(outcome.err) == 1);
    CHECK(outcome.err.find(part) != std::string::npos);
  };
  const std::string good = (kernels() / "candidates/rms-norm/good.cu").string();
  error("kernel", "one: a file, or a name");
  error("kernel rms-norm --host", "no candidate");
  error("kernel rms-nrm --host --candidate " + good, "did you mean \"rms-norm\"");
  error("kernel rms-norm --host --candidate nowhere.cu", "\"nowhere.cu\"");
  error("kernel rms-norm --candidate " ORRERY_SOURCE_DIR "/README.md", ".cu (CUDA C++)");
  error("kernel rms-norm --host --tokens 1T --candidate " + good, "no --job");
  error("kernel rms-norm --host --timeout 0 --candidate " + good, "--timeout");
  error("kernel rms-norm --host --device h100-sx --candidate " + good, "h100-sxm");
  error("kernel rms-norm --host --plots x --candidate " + good, "--plots");
  error("show --device h100-sxm --host", "`orrery calibrate kernel`");
}

TEST_CASE("the scratch folder goes with the run, or stays where it is asked for", "[kernel]") {
  const ScratchFolder scratch("kernel-keep");
  const std::string line = "TMPDIR='" + (scratch / "").string() + "' " + ORRERY_BINARY +
                           " calibrate kernel rms-norm --host" + judge_flag() + " --candidate '" +
                           (kernels() / "candidates/rms-norm/bad_tail.cu").string() + "'";
  const auto left = [&] {
    return std::distance(fs::directory_iterator(scratch / ""), fs::directory_iterator());
  };
  const Outcome gone = test::run_shell(line);
  CHECK(gone.code == 1);
  const auto before = left();
  const Outcome kept = test::run_shell(line + " --keep");
  CHECK(kept.err.find("scratch folder " + (scratch / "").string()) != std::string::npos);
  CHECK(left() == before + 1);
}

}  // namespace
}  // namespace orrery
