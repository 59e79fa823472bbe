// SPDX-License-Identifier: Apache-2.0
// Judges candidates for a kernel and tells what it found.
#include "sim/app/calibrate/kernel_command.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "hw_models/catalog.h"
#include "sim/app/answer/answer.h"
#include "sim/app/calibrate/kernel_answer.h"
#include "sim/app/calibrate/kernel_kept.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/base/text/words.h"
#include "sim/calibrate/log/measured_log.h"
#include "sim/question/plan/question.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// A folder that ends with the run, or stays where it was asked for.
class KernelScratch {
 public:
  explicit KernelScratch(bool keep) : keep_(keep) {
    std::string name = (fs::temp_directory_path() / "orrery-kernel-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw MachineFailed({.file = name, .found = "no folder", .expected = "room for one"});
    path_ = name;
  }
  KernelScratch(const KernelScratch&) = delete;
  KernelScratch& operator=(const KernelScratch&) = delete;
  ~KernelScratch() {
    std::error_code ignored;
    // A compiler that a signal ended may still write its last file: again, until it is gone.
    constexpr int tries = 40;
    for (int i = 0; !keep_ && i < tries && fs::exists(path_, ignored); ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      fs::remove_all(path_, ignored);
    }
  }
  const fs::path& path() const { return path_; }

 private:
  bool keep_;
  fs::path path_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::uint64_t fresh_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed))
    throw MachineFailed({.file = "getrandom", .found = "no bits", .expected = "a seed"});
  return seed;
}

JsonValue settings_or_file(const std::string& flag, const std::string& text) {
  return is_inline_entry(text) ? JsonValue::parse(text, flag) : JsonValue::load(text);
}

WorthQuestion read_worth(const Given& given) {
  WorthQuestion worth;
  if (given.has("--job")) worth.job = settings_or_file("--job", given.place("--job"));
  if (given.has("--question")) worth.plan = load_plan_file(given.place("--question"));
  if (given.has("--tokens"))
    worth.tokens = tokens_from(JsonValue::from(SortedJson(given.text("--tokens")), "--tokens"));
  if (worth.tokens > 0 && !worth.job)
    throw Error(
        {.file = "--tokens", .found = "no --job", .expected = "the job that trains on them"});
  return worth;
}

std::vector<fs::path> read_candidates(const Given& given, bool host) {
  std::vector<fs::path> files;
  for (const std::string& name : lines_of(given.place("--candidate"))) {
    const fs::path file = name;
    const std::string kind = file.extension().string();
    if (!fs::is_regular_file(file))
      throw Error({.file = "--candidate", .found = in_quotes(name), .expected = "a file"});
    if (kind != ".cu" && kind != ".py" && (!host || kind != ".cpp"))
      throw Error(
          {.file = "--candidate",
           .found = in_quotes(name),
           .expected = host ? ".cu, .cpp or .py" : ".cu (CUDA C++) or .py (Triton, PyTorch)"});
    files.push_back(file);
  }
  if (files.empty())
    throw Error({.file = "calibrate kernel",
                 .found = "no candidate",
                 .expected = "--candidate FILE: .cu (CUDA C++) or .py (Triton, PyTorch)"});
  return files;
}

// Whether a driver is there: without one nothing needs to be built to find that out.
bool has_gpu() {
  try {
    return run_child({"nvidia-smi", "-L"}, "").code == 0;
  } catch (const MachineFailed&) {
    return false;
  }
}

struct KernelRun {
  KernelSpec spec;
  KernelTools tools;
  WorthQuestion worth;
  TrialOptions trial;
  fs::path scratch, judge_folder;
  std::string device;  // of the catalogue, where it was given
  bool quiet = false, gpu = true;
  bool by_calibration = false;  // kernels of today: as the device's calibration has them
};

void say(const KernelRun& run, const std::string& what) {
  if (!run.quiet) std::fprintf(stderr, "%s\n", what.c_str());
}

// Builds a kernel in a folder of its own and has it judged there.
KernelTrial build_and_try(const KernelRun& run, const fs::path& file, bool check,
                          const JudgePrograms* programs, BuiltKernel& built) {
  static int number = 0;
  const fs::path folder = run.scratch / fmt::format("kernel-{}", ++number);
  fs::create_directories(folder / "worker");
  constexpr double compile_seconds = 300;
  built = build_kernel(run.tools, file, folder, compile_seconds);
  KernelTrial trial;
  if (!built.compiled) return trial;
  if (programs == nullptr) {
    trial.no_device = true;
    // On a machine with a GPU the worker says so.
    if (built.script) trial.failure = missing_torch(run.tools.python);
    return trial;
  }
  TrialOptions options = run.trial;
  options.check = check;
  return run_trial(run.tools, *programs, built, run.spec, folder / "worker", options);
}

std::vector<PresentTimes> time_present(const KernelRun& run, const JudgePrograms& programs) {
  std::vector<PresentTimes> out;
  for (const PresentKernel& kernel : run.spec.present) {
    if (kernel.host != run.tools.host) continue;
    say(run, "timing " + kernel.name);
    BuiltKernel built;
    PresentTimes times{.name = kernel.name};
    KernelRun patient = run;  // PyTorch compiles as it goes
    constexpr double compiles = 180;
    patient.trial.seconds = std::max(run.trial.seconds, compiles);
    const KernelTrial trial = build_and_try(patient, kernel.file, false, &programs, built);
    times.timed = trial.timed;
    if (!built.compiled)
      times.failure = built.complaint;
    else if (!trial.right())
      times.failure = trial.failure.empty() ? "wrong" : trial.failure;
    out.push_back(std::move(times));
  }
  return out;
}

std::optional<KernelMachine> machine_of(const KernelRun& run,
                                        const std::optional<KernelDevice>& found) {
  if (run.tools.host) return std::nullopt;
  std::string name = run.device;
  try {
    if (name.empty() && found) name = catalogue_device(found->name);
  } catch (const Error&) {
    return std::nullopt;  // a board that the catalogue does not have is judged without limits
  }
  if (name.empty()) return std::nullopt;
  const Device device = load_device(name);
  return KernelMachine{device.resolved(), load_calibration(device)};
}

// Judges candidates whose files, builds and trials are known, the best last, and tells its worth.
void judge_and_sort(const KernelRun& run, KernelAnswer& out) {
  const auto machine = machine_of(run, out.device);
  if (machine) out.catalogue_device = machine->device.name;
  if (run.by_calibration) out.present.clear();
  for (KernelJudgement& one : out.candidates)
    one = judge_kernel(run.spec, one.file, one.built, one.trial, out.present,
                       machine ? &*machine : nullptr);
  std::stable_sort(out.candidates.begin(), out.candidates.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.compiled, a.correct, a.reward) <
           std::tuple(b.compiled, b.correct, b.reward);
  });
  const KernelJudgement& best = out.candidates.back();
  if (best.correct && best.speed && run.worth.asked())
    out.worth = kernel_worth(run.worth, run.spec, *best.speed);
}

KernelAnswer judge_all(const KernelRun& run, const std::vector<fs::path>& files) {
  KernelAnswer out{.spec = run.spec, .host = run.tools.host};
  std::optional<JudgePrograms> programs;
  if (run.gpu) programs = build_judge(run.tools, run.judge_folder);
  std::vector<std::pair<BuiltKernel, KernelTrial>> tried;
  bool any = false;
  for (const fs::path& file : files) {
    say(run, "judging " + file.filename().string());
    BuiltKernel built;
    KernelTrial trial = build_and_try(run, file, true, programs ? &*programs : nullptr, built);
    any = any || trial.right();
    if (trial.device) out.device = trial.device;
    tried.emplace_back(std::move(built), std::move(trial));
  }
  if (any && !run.by_calibration) out.present = time_present(run, *programs);
  for (std::size_t i = 0; i < files.size(); ++i)
    out.candidates.push_back(
        {.file = files[i].string(), .built = tried[i].first, .trial = tried[i].second});
  judge_and_sort(run, out);
  return out;
}

// Times of before, in place of a run.
KernelAnswer judge_kept(KernelRun& run, const std::string& file) {
  KeptKernels kept = read_kept_kernels(file);
  run.spec = kept.spec;
  run.tools.host = kept.host;
  if (run.device.empty()) run.device = kept.device;
  KernelAnswer out{.spec = kept.spec, .host = kept.host, .present = std::move(kept.present)};
  if (!kept.ran_on.empty()) out.device = KernelDevice{.name = kept.ran_on};
  for (KeptKernels::Candidate& one : kept.candidates)
    out.candidates.push_back(
        {.file = one.file, .built = std::move(one.built), .trial = std::move(one.trial)});
  judge_and_sort(run, out);
  return out;
}

ExitCode code_of(const KernelAnswer& answer) {
  const KernelJudgement& best = answer.candidates.back();
  if (best.correct) return ExitCode::answer;
  return best.compiled && !best.trial.no_device ? ExitCode::check_failed : ExitCode::cannot_exist;
}

double read_timeout(const Given& given) {
  constexpr double usual = 20;
  constexpr std::int64_t most = 3600;
  if (!given.has("--timeout")) return usual;
  return static_cast<double>(whole_number("--timeout", given.text("--timeout"), 1, most));
}

}  // namespace

std::vector<Flag> kernel_flags() {
  constexpr const char *group = "Kernels", *worth = "A kernel's worth";
  Flag candidate{"--candidate", "FILE", group,
                 "kernel to judge, .cu or .py; may stand several times", "file"};
  candidate.repeats = true;
  return {
      candidate,
      {"--host", "", group, "without a GPU: the host's compiler, shapes of the spec's `host`"},
      {"--kept", "FILE", group, "an answer of before, whose times are taken: nothing runs", "file"},
      {"--against", "WORD", group,
       "present (kernels of today, which are timed too) or calibration (what it says of them)",
       "present calibration"},
      {"--timeout", "N", group, "seconds that one answer of a candidate may take (20)"},
      {"--keep", "", group, "keep the scratch folder, and say where it is"},
      {"--judge", "DIR", group, "keeps judge and worker built between calls", "folder"},
      {"--nvcc", "FILE", group, "compiler of CUDA C++ (default: the one on the PATH)", "file"},
      {"--python", "FILE", group, "interpreter with torch, for candidates in Python", "file"},
      {"--job", "FILE|JSON", worth, "settings of simulate: what the kernel is worth to it", "file"},
      {"--tokens", "VALUE", worth, "that the job trains on, such as 15T: days and dollars"},
      {"--question", "FILE", worth, "question of plan: what it is worth at each point",
       "catalog question"}};
}

namespace {

KernelRun read_run(const Given& given) {
  KernelRun run{.worth = read_worth(given),
                .device = given.text("--device"),
                .quiet = common_of(given).quiet};
  if (!run.device.empty()) load_device(run.device);
  const std::string against = given.has("--against") ? given.text("--against") : "present";
  run.by_calibration = against == "calibration";
  if (against != "present" && !run.by_calibration)
    throw Error({.file = "--against",
                 .found = in_quotes(against),
                 .expected = "present or calibration",
                 .nearest = nearest_name(against, {"present", "calibration"})});
  return run;
}

Printed printed(const KernelAnswer& answer, const Given& given) {
  return {given.has("--json") ? kernel_json(answer, given) : kernel_text(answer), code_of(answer)};
}

Printed kept_command(const Given& given) {
  for (const char* flag : {"--candidate", "--judge", "--nvcc", "--python", "--keep"})
    if (given.has(flag))
      throw Error({.file = "--kept", .found = flag, .expected = "it alone: nothing is run"});
  if (given.words.size() > 1)
    throw Error({.file = "--kept",
                 .found = in_quotes(given.word(1)),
                 .expected = "no specification: the answer holds it"});
  KernelRun run = read_run(given);
  return printed(judge_kept(run, given.place("--kept")), given);
}

}  // namespace

Printed kernel_command(const Given& given) {
  if (given.has("--kept")) return kept_command(given);
  if (given.words.size() != 2)
    throw Error({.file = "calibrate kernel",
                 .found = plural(given.words.size() - 1, "specification"),
                 .expected = "one: a file, or a name such as rms-norm"});
  const bool host = given.has("--host");
  KernelRun run = read_run(given);
  run.spec = load_kernel_spec(given.word(1));
  const std::vector<fs::path> files = read_candidates(given, host);
  run.trial = {.seed = fresh_seed(), .seconds = read_timeout(given)};
  run.tools = find_tools(host, given.place("--nvcc"), given.place("--python"));
  run.gpu = host || has_gpu();
  if (run.gpu && !host) run.tools.architecture = "native";
  const KernelScratch scratch(given.has("--keep"));
  run.scratch = scratch.path();
  run.judge_folder = given.has("--judge") ? fs::path(given.place("--judge")) : scratch.path();
  if (given.has("--keep")) say(run, "scratch folder " + scratch.path().string());
  install_interrupt_handler();
  try {
    return printed(judge_all(run, files), given);
  } catch (const KernelInterrupted&) {
    return {"", interrupting_signal() == SIGTERM ? ExitCode::terminated : ExitCode::interrupted};
  }
}

}  // namespace orrery
