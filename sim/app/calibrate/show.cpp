// SPDX-License-Identifier: Apache-2.0
// Prints a device's calibration as tables.
#include "sim/app/calibrate/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "hw_models/catalog.h"
#include "sim/base/json/tree.h"
#include "sim/base/output_file.h"
#include "sim/base/text/words.h"
#include "sim/calibrate/log/measured_tables.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string scale_text(const Sourced<double>& scale) {
  if (scale.get() == 1 && !scale.low) return "1";
  std::string text = fmt::format("{:.2f}", scale.get());
  if (scale.low && scale.high) text += fmt::format(" ({:.2f} .. {:.2f})", *scale.low, *scale.high);
  return text;
}

// Median relative error of the parameters that the fit moved; the data do not tell those beyond 1.
std::string spread_text(const FitQuality& quality) {
  if (quality.spread.empty()) return "";
  std::vector<double> errors;
  for (const ParameterSpread& p : quality.spread) errors.push_back(p.relative_error);
  std::sort(errors.begin(), errors.end());
  const double middle = errors[errors.size() / 2];
  return middle < 1 ? percent_figure(middle) : ">100";
}

std::string curves_table(const Calibration& calibration) {
  Table table(
      {"kernel", "format", "library", "evidence", "factor", "rows", "held", "med", "p90", "+-"},
      {Align::left, Align::left, Align::left, Align::left});
  std::vector<Curve> curves = calibration.curves;
  curves.insert(curves.end(), calibration.variants.begin(), calibration.variants.end());
  for (const Curve& c : curves) {
    const bool fitted = c.quality.held_out > 0;
    table.add({std::string(to_text(c.kind)) + (c.variant.empty() ? "" : " " + c.variant),
               std::string(to_text(c.format)), std::string(to_text(c.library)),
               std::string(to_text(c.scale.evidence)), scale_text(c.scale),
               c.quality.fitted > 0 ? std::to_string(c.quality.fitted + c.quality.held_out) : "",
               fitted ? std::to_string(c.quality.held_out) : "",
               fitted ? percent_figure(c.quality.median) : "",
               fitted ? percent_figure(c.quality.p90) : "", spread_text(c.quality)});
  }
  return table.text();
}

std::string extent_text(const Extent& extent) {
  const auto number = [&](double value) {
    if (extent.axis != Axis::bytes) return fmt::format("{:.0f}", value);
    // Three digits are enough to see whether a size lies inside.
    const double step = std::pow(2, std::floor(std::log2(std::max(1.0, value))) - 7);
    return tick_label({.logarithmic = true, .bytes = true}, std::round(value / step) * step);
  };
  return fmt::format("{} {} to {}", to_text(extent.axis), number(extent.low), number(extent.high));
}

std::string regions_text(const Calibration& calibration) {
  std::string text;
  for (const Curve& c : calibration.curves) {
    if (!c.quality.region.known()) continue;
    std::string line = Calibration::name(c) + ": ";
    for (std::size_t i = 0; i < c.quality.region.extents.size(); ++i)
      line += (i > 0 ? ", " : "") + extent_text(c.quality.region.extents[i]);
    if (c.quality.region.per_octave > 0)
      line +=
          fmt::format("; beyond, {:.1f}% more error an octave", 100 * c.quality.region.per_octave);
    text += wrap(line, page_width, "  ", "    ");
  }
  return text.empty() ? "" : "\nMeasured region of each curve\n" + text;
}

template <class Q>
void add_value(Table& table, const std::string& name, const Sourced<Q>& value, double unit,
               const char* unit_name) {
  if (!value.known()) return;
  const auto number = [unit](double si) { return fmt::format("{:.4g}", si / unit); };
  std::string range;
  if (value.low && value.high) range = number(value.low->si()) + " .. " + number(value.high->si());
  table.add({name, number(value.get().si()), unit_name, range, std::string(to_text(value.evidence)),
             value.source});
}

std::string values_table(const Calibration& c) {
  Table table({"value", "", "unit", "range", "evidence", "source"},
              {Align::left, Align::right, Align::left, Align::left, Align::left, Align::left});
  add_value(table, "launch, stream", c.launch_latency, 1e-6, "us");
  add_value(table, "launch, graph", c.graph_latency, 1e-6, "us");
  for (int f = 0; f < format_count; ++f)
    add_value(table, fmt::format("energy, {}", to_text(static_cast<Format>(f))),
              c.tensor_energy[static_cast<std::size_t>(f)], 1e-12, "pJ/FLOP");
  add_value(table, "energy, memory", c.memory_energy, 1e-12, "pJ/B");
  if (c.busy_share.known())
    table.add({"busy processors' power", fmt::format("{:.2f}", c.busy_share.get()), "of budget", "",
               std::string(to_text(c.busy_share.evidence)), c.busy_share.source});
  return table.empty() ? "" : "\nLaunches and energies\n" + table.text();
}

std::string machines_text(const MeasuredLog& log) {
  std::map<std::string, std::set<std::string>> machines;  // libraries of all programs of a run
  for (const RunConditions& c : log.conditions) {
    auto& libraries = machines[fmt::format(
        "{}, {}, {} in the host, {}, driver {}, CUDA {}, {:.0f} W, {:.0f} MHz", c.date, c.device,
        c.gpus, c.host, c.driver, c.cuda, c.power_limit_w, c.max_clock_mhz)];
    for (const auto& [name, version] : c.libraries)
      if (name != "nvls") libraries.insert(name + " " + version);
  }
  std::string text;
  for (const auto& [machine, libraries] : machines) {
    std::string line = machine;
    for (const std::string& library : libraries) line += ", " + library;
    text += wrap(line, page_width, "  ", "    ");
  }
  return text.empty() ? "" : "\nMeasured on\n" + text;
}

void write_plots(const MeasuredLog& log, const std::string& device, const fs::path& folder) {
  for (const PlotPage& page : calibration_plots(log, load_machine(device, false))) {
    const fs::path file = folder / (page.name + ".svg");
    write_file(file, plots_svg(page.heading, page.plots, 2));
    fmt::print(stderr, "{}\n", file.string());
  }
}

}  // namespace

Printed show_command(const CalibrateOptions& options) {
  if (options.device.empty())
    throw Error({.file = "calibrate show",
                 .found = "no accelerator",
                 .expected = "--device NAME (orrery catalog list accelerator prints them)"});
  const Device device = load_device(options.device);
  const Calibration calibration = load_calibration(device);
  MeasuredLog log;
  std::vector<fs::path> files(options.files.begin(), options.files.end());
  std::error_code status;
  if (files.empty() && fs::is_directory(measured_folder(device.name), status))
    files.push_back(measured_folder(device.name));
  if (!files.empty()) log = read_measured_log(files);
  if (!log.conditions.empty() && measured_device(log) != device.name)
    throw Error({.file = files.front().string(),
                 .found = "samples of " + measured_device(log),
                 .expected = "some of " + device.name});
  if (!options.plots.empty() && log.samples.empty())
    throw Error({.file = "--plots",
                 .found = "no measured lines of " + device.name,
                 .expected = "a device measured by calibrate measure, or its lines as arguments"});
  if (!options.plots.empty()) make_folder(options.plots);
  if (!options.plots.empty()) write_plots(log, device.name, options.plots);
  if (options.json)
    return {answer_text(calibrate_head(options), {},
                        {{"calibration", Json::parse(to_json_text(calibration, ""))}})};
  std::string text = "Calibration of " + device.name;
  if (!calibration.borrowed_from.empty()) text += ", borrowed from " + calibration.borrowed_from;
  return {text +
          ": rows, of them held out of every fit, their error in percent (median, 90th\n"
          "percentile), and the standard error of the fitted parameters (median)\n" +
          curves_table(calibration) + regions_text(calibration) + values_table(calibration) +
          machines_text(log)};
}

}  // namespace orrery
