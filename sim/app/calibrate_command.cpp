// Fits and shows calibrations.
#include "sim/app/calibrate_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hw_models/catalog.h"
#include "sim/app/tables.h"
#include "sim/base/output_file.h"
#include "sim/calibrate/fit.h"

namespace orrery {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

std::string fit(const CalibrateOptions& options, bool json) {
  if (options.files.empty())
    throw Error({.file = "calibrate fit",
                 .found = "no tables",
                 .expected = "operator tables: <gpu>_<operator>_<framework>_<format>.csv"});
  const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
  FitOptions how;
  how.based_on = options.based_on;
  const FitReport report = fit_device(options.device, files, how);
  if (!options.output.empty()) write_file(options.output, report.json);
  if (json) return report.json;
  Table table({"kernel", "format", "library", "fitted", "kept out", "median %", "p90 %", "note"},
              {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right,
               Align::right, Align::left});
  for (const FitRow& row : report.rows)
    table.add({std::string(to_text(row.kind)), std::string(to_text(row.format)),
               std::string(to_text(row.library)), std::to_string(row.n_fit),
               std::to_string(row.n_held), percent(row.median), percent(row.p90), row.note});
  return fmt::format("{}: error on rows that the fit never saw\n", report.device) + table.text();
}

std::string show(const CalibrateOptions& options) {
  const Calibration calibration = load_calibration(load_device(options.device));
  Table table(
      {"kernel", "format", "library", "evidence", "time factor", "rows", "median %", "p90 %"},
      {Align::left, Align::left, Align::left, Align::left});
  for (const Curve& c : calibration.curves) {
    const bool fitted = c.quality.held_out > 0;
    std::string range = fmt::format("{:.2f}", c.scale.get());
    if (c.scale.low) range += fmt::format(" ({:.2f} .. {:.2f})", *c.scale.low, *c.scale.high);
    table.add({std::string(to_text(c.kind)), std::string(to_text(c.format)),
               std::string(to_text(c.library)), std::string(to_text(c.scale.evidence)), range,
               fitted ? std::to_string(c.quality.held_out) : "-",
               fitted ? percent(c.quality.median) : "-", fitted ? percent(c.quality.p90) : "-"});
  }
  std::string text = "Calibration of " + options.device;
  if (!calibration.borrowed_from.empty()) text += ", borrowed from " + calibration.borrowed_from;
  return text + ": error on measured rows that the fit never saw, and the range of estimates\n" +
         table.text();
}

}  // namespace

std::string calibrate_report(const CalibrateOptions& options, bool json) {
  if (options.action == "measure" || options.action == "compare")
    throw Error({.file = "calibrate " + options.action,
                 .found = "an action that comes with a later version",
                 .expected = "fit or show"});
  if (options.action != "fit" && options.action != "show")
    throw Error({.file = "calibrate",
                 .found = options.action.empty() ? "no action" : '"' + options.action + '"',
                 .expected = "fit or show",
                 .nearest = nearest_name(options.action, {"fit", "show"})});
  if (options.device.empty())
    throw Error({.file = "calibrate " + options.action,
                 .found = "no accelerator",
                 .expected = "--device NAME (orrery catalog list accelerator prints them)"});
  return options.action == "fit" ? fit(options, json) : show(options);
}

}  // namespace orrery
