// SPDX-License-Identifier: Apache-2.0
// Measures and fits, and passes other actions on.
#include "sim/app/calibrate/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "hw_models/catalog.h"
#include "sim/app/calibrate/compare.h"
#include "sim/app/calibrate/kernel_command.h"
#include "sim/app/calibrate/show.h"
#include "sim/base/output_file.h"
#include "sim/base/text/words.h"
#include "sim/calibrate/fit/fit.h"
#include "sim/calibrate/fit/software_fit.h"
#include "sim/calibrate/log/measured_tables.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

std::string figure_if(bool known, double share) { return known ? percent_figure(share) : ""; }

// "norm", or "norm rms" for the curve of one kernel.
std::string named(const FitRow& row) {
  const std::string kind(to_text(row.kind));
  return row.variant.empty() ? kind : kind + " " + row.variant;
}

std::string fit_table(const FitReport& report) {
  Table table({"kernel", "fmt", "library", "fit", "held", "med", "p90", "med", "p90", "med", "p90",
               "+-", "runs"},
              {Align::left, Align::left, Align::left});
  for (const FitRow& row : report.rows) {
    const bool held = row.n_held > 0, longer = row.over.rows > 0, crossed = row.cross_validated > 0;
    table.add({named(row), std::string(to_text(row.format)), std::string(to_text(row.library)),
               std::to_string(row.n_fit), std::to_string(row.n_held), figure_if(held, row.median),
               figure_if(held, row.p90), figure_if(longer, row.over.median),
               figure_if(longer, row.over.p90), figure_if(crossed, row.cross_validated),
               figure_if(crossed, row.cross_validated_p90), figure_if(row.spread > 0, row.spread),
               figure_if(row.runs.runs > 1, row.runs.spread)});
  }
  return table.text();
}

// Cross-validated errors of small, middle and large shapes: three regions a curve.
std::string regions_table(const FitReport& report) {
  Table table({"kernel", "fmt", "library", "region", "rows", "med", "p90"},
              {Align::left, Align::left, Align::left, Align::left});
  for (const FitRow& row : report.rows)
    for (const RegionError& region : row.regions)
      if (region.rows > 0)
        table.add({named(row), std::string(to_text(row.format)), std::string(to_text(row.library)),
                   region.name, std::to_string(region.rows), figure_if(true, region.median),
                   figure_if(true, region.p90)});
  return "\nBy region: each shape predicted by a fit without its family\n" + table.text();
}

std::string fit_notes(const FitReport& report) {
  std::string text;
  for (const FitRow& row : report.rows)
    if (!row.note.empty())
      text += wrap(fmt::format("{} {} {}: {}", named(row), to_text(row.format),
                               to_text(row.library), row.note),
                   page_width, "  ", "    ");
  return text.empty() ? "" : "\nNotes\n" + text;
}

std::string sustained_table(const FitReport& report) {
  if (report.sustained.empty()) return "";
  Table table({"kernel", "format", "library", "rows", "med", "p90"},
              {Align::left, Align::left, Align::left});
  for (const SustainedRow& row : report.sustained)
    table.add({std::string(to_text(row.kind)), std::string(to_text(row.format)),
               std::string(to_text(row.library)), std::to_string(row.rows),
               percent_figure(row.median), percent_figure(row.p90)});
  return "\nSustained for seconds, which no fit saw: curves under the power limit\n" + table.text();
}

// Launches, links, power and collectives: what is no curve.
std::string other_fits(const FitReport& report) {
  std::string text = launches_text(report.launches);
  if (!text.empty()) text = "\nLaunches and links\n" + text;
  if (report.power.held_out > 0)
    text += fmt::format(
        "\nBoard power of {} samples, each by a fit without it: {}% (median), {}% (90th "
        "percentile)\n",
        report.power.held_out, percent_figure(report.power.median),
        percent_figure(report.power.p90));
  if (!report.collectives.errors.empty())
    text += "\nCollectives\n" + errors_text(report.collectives);
  if (!report.overlaps.empty())
    text +=
        "\nCompute beside communication: how much each slows, and what compute loses for a second "
        "of\ncalls that it hides (a stack's overlap_cost)\n" +
        overlap_text(report.overlaps);
  return text;
}

// The overlay of a software stack that the framework's samples tell.
SoftwareFit fit_stack(const CalibrateOptions& options, const FitReport& report) {
  const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
  const Device device = load_device(report.device);
  Calibration calibration = load_calibration(device);
  lay_over(calibration, report.calibration);
  complete(calibration);
  const Stack base =
      load_stack(measured_stack, {.architecture = std::string(to_text(device.architecture))},
                 data_root() / "workloads/catalog/stacks");
  SoftwareFit software =
      fit_software(read_measured_log(files), device.resolved(), calibration, base);
  if (software.values.empty())
    throw Error({.file = "--stack-output",
                 .found = "no samples of software",
                 .expected = "lines of the part `framework` of calibrate measure"});
  return software;
}

void check_fit(const CalibrateOptions& options) {
  if (options.files.empty())
    throw Error({.file = "calibrate fit",
                 .found = "nothing to fit",
                 .expected =
                     "lines that calibrate measure wrote (a folder or *.jsonl), or operator "
                     "tables: <gpu>_<operator>_<framework>_<format>.csv"});
  if (!options.based_on.empty()) load_device(options.based_on);
  const bool tables = std::any_of(options.files.begin(), options.files.end(),
                                  [](const auto& file) { return file.ends_with(".csv"); });
  if (tables && options.device.empty())
    throw Error({.file = "--device",
                 .found = "nothing",
                 .expected = "the accelerator that the tables are of"});
  for (const std::string& output : {options.output, options.stack_output})
    if (!output.empty()) check_writable_file(output);
}

bool says_nothing(const FitReport& report) {
  return report.rows.empty() && report.sustained.empty() && report.collectives.errors.empty() &&
         report.power.held_out == 0 && launches_text(report.launches).empty();
}

Printed fit(const CalibrateOptions& options) {
  check_fit(options);
  const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
  FitOptions how;
  how.based_on = options.based_on;
  const FitReport report = fit_device(options.device, files, how);
  if (says_nothing(report))
    throw Error({.file = options.files.front(),
                 .found = "no samples that a fit can use",
                 .expected = "samples of kernels, launches, links, power or collectives"});
  SoftwareFit software;
  if (!options.stack_output.empty()) software = fit_stack(options, report);
  if (!options.output.empty()) write_file(options.output, report.json);
  if (!options.stack_output.empty())
    write_file(options.stack_output, stack_overlay_json(software, measured_source(report.device)));
  if (options.json)
    return {answer_text(calibrate_head(options), {}, {{"calibration", Json::parse(report.json)}})};
  std::string text = fmt::format(
      "{}: error in percent on shapes that the fit never saw (median, 90th percentile); the same\n"
      "of those over 20 us; of every shape, by fits without it; spread of a prediction by refits\n"
      "and of equal shapes between runs\n",
      report.device);
  text += fit_table(report) + regions_table(report) + sustained_table(report) + other_fits(report) +
          fit_notes(report);
  if (!options.stack_output.empty())
    text += fmt::format("\nThe software stack, written to {}\n{}", options.stack_output,
                        software_text(software));
  if (!options.output.empty()) text += fmt::format("\nWritten to {}\n", options.output);
  return {text};
}

}  // namespace

AnswerHead calibrate_head(const CalibrateOptions& options) {
  AnswerHead head{.command = "calibrate", .question = {{"action", options.action}}};
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) head.question[key] = text;
  };
  add("device", options.device);
  add("based_on", options.based_on);
  if (!options.files.empty()) head.question["files"] = options.files;
  return head;
}

void calibrate_measure(const std::vector<std::string>& arguments) {
  const auto script = data_root() / "validation/microbench/measure";
  const std::string path = script.string();
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(path.c_str(), words.data());
  throw Error({.file = path,
               .found = std::strerror(errno),
               .expected = "the measuring script, which needs bash"});
}

Printed run_calibrate(const CalibrateOptions& options) {
  const std::vector<std::string> actions = {"kernel", "measure", "fit", "show", "compare"};
  if (options.action == "compare") return compare_command(options);
  if (options.action == "fit") return fit(options);
  if (options.action == "show") return show_command(options);
  if (options.action == "measure")
    throw Error({.file = "calibrate measure",
                 .found = "flags before it",
                 .expected = "`orrery calibrate measure` first, then the script's own flags"});
  throw Error({.file = "calibrate",
               .found = options.action.empty() ? "no action" : in_quotes(options.action),
               .expected = "kernel, measure, fit, show or compare",
               .nearest = nearest_name(options.action, actions)});
}

namespace {

std::vector<Flag> curve_flags() {
  constexpr const char *group = "Curves", *written = output_group;
  return {
      {"--device", "NAME", group, "accelerator of the catalogue", "catalog accelerator"},
      {"--based-on", "NAME", group, "calibration whose curves stand where no table is given",
       "catalog accelerator"},
      {"--output", "FILE", written, "calibration file to write", "file"},
      {"--stack-output", "FILE", written,
       "overlay of plain PyTorch to write: what it costs the host and the memory", "file"},
      {"--plots", "DIR", written, "folder for pictures of measured and fitted curves", "folder"}};
}

Printed answer(const Given& given) {
  const bool kernel = given.word(0) == "kernel";
  for (const Flag& flag : kernel ? curve_flags() : kernel_flags())
    if (given.has(flag.name) && flag.name != "--device")
      throw Error({.file = flag.name,
                   .found = "calibrate " + given.word(0),
                   .expected = kernel ? "an action that writes curves or draws them"
                                      : "`orrery calibrate kernel`, which alone has it"});
  if (kernel) return kernel_command(given);
  const CommonFlags common = common_of(given);
  const auto rest = given.words.begin() + (given.words.empty() ? 0 : 1);
  return run_calibrate({.action = given.word(0),
                        .device = given.text("--device"),
                        .files = {rest, given.words.end()},
                        .based_on = given.text("--based-on"),
                        .output = given.place("--output"),
                        .stack_output = given.place("--stack-output"),
                        .plots = given.place("--plots"),
                        .json = common.json});
}

}  // namespace

Command calibrate_command() {
  std::vector<Flag> flags = curve_flags();
  for (Flag& flag : kernel_flags()) flags.push_back(std::move(flag));
  return {
      .name = "calibrate",
      .summary = "measure a GPU, fit and show its curves, ask whether it is healthy, judge kernels",
      .arguments = {{"action",
                     "measure (flags of validation/microbench/measure), fit, show, compare or "
                     "kernel",
                     "measure fit show compare kernel"},
                    {"files",
                     "fit, show: measured lines or tables; compare: one or two of a measured "
                     "folder, a calibration file, a device; kernel: a specification",
                     "file", true}},
      .flags = std::move(flags),
      .examples = {{"orrery calibrate measure --output mine", "measure the GPU of this machine"},
                   {"orrery calibrate compare mine", "is it as fast as its kind should be?"},
                   {"orrery calibrate kernel rms-norm --candidate my.cu",
                    "is this kernel right, and how fast?"}},
      .answer = answer};
}

}  // namespace orrery
