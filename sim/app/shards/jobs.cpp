// SPDX-License-Identifier: Apache-2.0
// Fills the templates of scripts and manifests.
#include "sim/app/shards/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/app/answer/version.h"
#include "sim/app/line/result.h"
#include "sim/app/shards/sharing.h"
#include "sim/app/shards/templates.h"
#include "sim/base/input_file.h"
#include "sim/base/output_file.h"
#include "sim/base/text/shell.h"
#include "sim/base/text/words.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* slurm_flag = "--slurm-array";
constexpr const char* kubernetes_flag = "--kubernetes-job";
constexpr const char* shards_flag = "--shards";
// Slurm's own default of MaxArraySize, which task numbers stay below (slurm.conf(5)).
constexpr std::int64_t usual_array = 1001;
// The API server refuses larger objects: 1 MiB of data in a ConfigMap (kubernetes.io/docs/concepts/
// configuration/configmap), of which names and quotes take some.
constexpr std::size_t most_config = 1'000'000;

using Words = std::map<std::string, std::string>;

// Error for a name that we did not fill: a mistake of ours.
std::string filled(std::string_view text, const Words& words) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = text.find('@', at);
    const std::size_t end = mark == std::string_view::npos ? mark : text.find('@', mark + 1);
    const auto word = end == std::string_view::npos
                          ? words.end()
                          : words.find(std::string(text.substr(mark + 1, end - mark - 1)));
    const std::size_t plain = word == words.end() && mark != text.npos ? mark + 1 : mark;
    out += text.substr(at, plain == text.npos ? text.npos : plain - at);
    if (mark == std::string_view::npos) break;
    if (word != words.end()) out += word->second;
    at = word != words.end() ? end + 1 : mark + 1;
  }
  return out;
}

// As #SBATCH reads it: in double quotes, with '%' of a path doubled.
std::string sbatch_path(const std::string& path) {
  std::string out = "\"";
  for (const char c : path)
    out += c == '%' ? "%%" : c == '"' ? std::string("\\\"") : std::string(1, c);
  return out + "/logs/%A_%a.log\"";
}

// Letters, digits and what else a name may hold; all else becomes a dash.
std::string plain_name(std::string text, bool lower) {
  for (char& c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (lower) c = static_cast<char>(std::tolower(u));
    if (std::isalnum(u) == 0 && (lower || (c != '.' && c != '_'))) c = '-';
  }
  return text;
}

// At most 40 bytes: the host of a pod is the job's name and its index, 63 at most.
std::string object_name(const std::string& stem) {
  constexpr std::size_t longest = 40;
  std::string name = plain_name("orrery-" + stem, true).substr(0, longest);
  while (name.ends_with('-')) name.pop_back();
  return name;
}

std::string own_binary() {
  std::error_code failure;
  const fs::path own = fs::read_symlink("/proc/self/exe", failure);
  return failure ? "orrery" : own.string();
}

std::string merged_name(const Given& given, const SharedRun& run) {
  if (run.form == ResultForm::lines) return "merged.jsonl";
  if (run.form == ResultForm::rows) return "merged.csv";
  return given.has("--json") ? "merged.json" : given.has("--markdown") ? "merged.md" : "merged.txt";
}

std::string merge_flags(const Given& given, const SharedRun& run) {
  if (run.form != ResultForm::answer) return "";
  return given.has("--json") ? " --json" : given.has("--markdown") ? " --markdown" : "";
}

// What Slurm and shells would read otherwise than it is meant.
void check_path(const std::string& path, bool for_slurm) {
  const auto bad = [&](char c) {
    return static_cast<unsigned char>(c) < ' ' || (for_slurm && c == '\\');
  };
  if (std::any_of(path.begin(), path.end(), bad))
    throw Error({.file = results_flag,
                 .found = in_quotes(path),
                 .expected = "a path without line breaks and backslashes"});
}

struct Jobs {
  std::string results;  // absolute
  std::int64_t shards = 0;
  std::string merged, flags;
};

std::string array_text(const std::string& file, const Jobs& jobs) {
  return filled(array_template,
                {{"VERSION", program_version()},
                 {"SHARDS", fmt::format("{}", jobs.shards)},
                 {"LAST_SHARD", fmt::format("{}", jobs.shards - 1)},
                 {"JOB_NAME", plain_name("orrery-" + fs::path(file).stem().string(), false)},
                 {"OUTPUT", sbatch_path(jobs.results)},
                 {"ORRERY", shell_quoted(own_binary())},
                 {"RESULTS", shell_quoted(jobs.results)},
                 {"MERGED_NAME", jobs.merged},
                 {"MERGE_FLAGS", jobs.flags}});
}

void write_array(const std::string& file, const Jobs& jobs) {
  check_path(jobs.results, true);
  make_folder(fs::path(jobs.results) / "logs");
  write_file(file, array_text(file, jobs));
  std::error_code ignored;
  fs::permissions(file, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add, ignored);
}

// The folder's files as data of a ConfigMap; empty where they are too large for one.
std::string config_lines(const fs::path& folder) {
  std::string lines;
  for (const fs::path& file : {run_file(folder), lines_file(folder)}) {
    std::error_code status;
    if (!fs::exists(file, status)) continue;
    if (fs::file_size(file, status) > most_config) return "";
    // A string of JSON is one of YAML.
    lines += fmt::format("  {}: {}\n", file.filename().string(), Json(content_of(file)).dump());
  }
  return lines.size() > most_config ? "" : lines;
}

std::string note_line(const std::string& folder) {
  const std::string note = fmt::format(
      "too large for here: before the job starts, copy what lies in {} onto the volume", folder);
  return fmt::format("  note: {}\n", Json(note).dump());
}

void write_kubernetes(const std::string& file, const Jobs& jobs) {
  const std::string image = "orrery:" + program_version();
  const std::string question = config_lines(jobs.results);
  const std::string from = question.empty() ? "/results" : "/question";
  const Json args = {
      "shard",      from,       fmt::format("$(JOB_COMPLETION_INDEX)/{}", jobs.shards),
      results_flag, "/results", "--threads",
      "1"};
  std::string text =
      filled(job_template, {{"VERSION", program_version()},
                            {"IMAGE", image},
                            {"JOB_FILE", fs::path(file).filename().string()},
                            {"NAME", object_name(fs::path(file).stem().string())},
                            {"SHARDS", fmt::format("{}", jobs.shards)},
                            {"STORAGE", "10Gi"},
                            {"MEMORY", "2Gi"},
                            {"QUESTION", question.empty() ? note_line(jobs.results) : question},
                            {"SHARD_ARGS", args.dump()},
                            {"MERGED_NAME", jobs.merged},
                            {"MERGE_FLAGS", jobs.flags}});
  const fs::path dockerfile = fs::path(file).parent_path() / "Dockerfile";
  const std::string image_text =
      filled(dockerfile_template, {{"VERSION", program_version()}, {"IMAGE", image}});
  std::error_code status;
  if (fs::exists(dockerfile, status) && content_of(dockerfile) != image_text)
    throw Error({.file = dockerfile.string(),
                 .found = "a Dockerfile of something else",
                 .expected = fmt::format("none: orrery writes one beside {}", file)});
  write_file(file, text);
  write_file(dockerfile, image_text);
}

}  // namespace

std::vector<Flag> job_flags() {
  return {{slurm_flag, "FILE", share_group,
           "do nothing now: write a script that runs N shards as a job array of Slurm, and merges",
           "file"},
          {kubernetes_flag, "FILE", share_group,
           "do nothing now: write a manifest that runs N shards as an Indexed Job of Kubernetes, "
           "and a Dockerfile beside it",
           "file"},
          {shards_flag, "N", share_group, "how many shards those have"}};
}

bool asks_for_jobs(const Given& given) {
  const bool asks = given.has(slurm_flag) || given.has(kubernetes_flag);
  if (asks && !given.has(shards_flag))
    throw Error({.file = given.has(slurm_flag) ? slurm_flag : kubernetes_flag,
                 .found = "no --shards",
                 .expected = "both: into how many shards the points are cut"});
  if (given.has(shards_flag) && !asks)
    throw Error({.file = shards_flag,
                 .found = "nothing that runs them",
                 .expected = "--slurm-array or --kubernetes-job; --shard I/N runs one here"});
  return asks;
}

ExitCode write_jobs(const Given& given, const SharedRun& run, const std::string& lines,
                    const std::function<ExitCode(SharedWork&)>& share) {
  const std::string slurm = given.place(slurm_flag), kubernetes = given.place(kubernetes_flag);
  for (const std::string& file : {slurm, kubernetes})
    if (!file.empty()) check_writable_file(file);
  const fs::path stem = fs::path(slurm.empty() ? kubernetes : slurm).replace_extension(".results");
  const std::string folder = given.has(results_flag) ? given.place(results_flag) : stem.string();
  const Jobs jobs{.results = fs::absolute(folder).lexically_normal().string(),
                  .shards = whole_number(shards_flag, given.text(shards_flag), 1, most_shards),
                  .merged = merged_name(given, run),
                  .flags = merge_flags(given, run)};
  check_path(jobs.results, !slurm.empty());
  const SharedRun known = begin_run(folder, run, lines);
  SharedWork list(folder, known, SharedWork::Mode::list);
  static_cast<void>(share(list));
  const SharedStatus status = list.status();
  std::string text = fmt::format("{} in {}; results go to {}\n", plural(status.all.points, "point"),
                                 plural(jobs.shards, "shard"), folder);
  if (!slurm.empty()) {
    write_array(slurm, jobs);
    text += fmt::format("start: bash {}\n", slurm);
    if (jobs.shards > usual_array - 1)
      text += fmt::format("a site may allow no more than {} tasks (MaxArraySize)\n",
                          grouped(usual_array - 1));
  }
  if (!kubernetes.empty()) {
    write_kubernetes(kubernetes, jobs);
    text += fmt::format("start: see the first lines of {}\n", kubernetes);
  }
  write_result(text);
  return ExitCode::answer;
}

}  // namespace orrery
