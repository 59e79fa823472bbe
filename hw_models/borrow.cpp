// SPDX-License-Identifier: Apache-2.0
// Knows whose measurements stand in for those of a device that nobody has measured.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "hw_models/catalog.h"
#include "hw_models/changed_device.h"
#include "hw_models/power.h"

namespace orrery {

namespace {

namespace fs = std::filesystem;

fs::path folder() { return data_root() / "hw_models" / "calibration"; }

bool is_there(const fs::path& path) {
  std::error_code unnameable;  // a name may be longer than a file's can be
  return fs::exists(path, unnameable);
}

// The files of a device's own curves, the better one last: what others published, then what
// `calibrate fit` made of our own measurements.
std::vector<fs::path> own_files(const std::string& device) {
  std::vector<fs::path> files;
  for (const char* name : {"published.json", "fit.json"})
    if (const fs::path path = folder() / device / name; is_there(path)) files.push_back(path);
  return files;
}

// One line of hw_models/calibration/estimates/borrow.json: who borrows from whom, and how sure that
// is.
struct Loan {
  std::string from;
  double low = 0.8, high = 1.4;
  std::string reason;
  // A format whose curves come from another device, because its peak stands to the others as there.
  std::string format, format_from;
  bool of_device = false;  // the line names the device itself
};

Loan read_loan(const JsonValue& at) {
  at.expect_only(
      {"device", "architecture", "from", "low", "high", "reason", "format", "format_from"});
  const auto text = [&](const char* key) {
    return at.has(key) ? at.at(key).text() : std::string();
  };
  return {.from = at.at("from").text(),
          .low = at.at("low").number(),
          .high = at.at("high").number(),
          .reason = at.at("reason").text(),
          .format = text("format"),
          .format_from = text("format_from")};
}

// The line that names the device, else the one of its architecture, else the generic one.
Loan find_loan(const Device& device) {
  const JsonValue file = JsonValue::load(folder() / "estimates" / "borrow.json");
  file.expect_only({"loans"});
  const std::string architecture(to_text(device.architecture));
  std::optional<Loan> by_architecture, generic;
  for (const JsonValue& line : file.at("loans").items()) {
    Loan loan = read_loan(line);
    if (line.has("device")) {
      if (line.at("device").text() != device.name) continue;
      loan.of_device = true;
      return loan;
    } else if (line.has("architecture")) {
      if (line.at("architecture").text() == architecture) by_architecture = loan;
    } else {
      generic = loan;
    }
  }
  if (by_architecture) return *by_architecture;
  if (!generic) file.at("loans").fail("a line for all other devices");
  return *generic;
}

// A device's own curves over those that they are based on. Energies and gaps of the device are in
// `calibration`, those of its bases apart: what is estimated for the device itself comes between.
struct OwnFiles {
  Calibration calibration, bases;
};
OwnFiles load_own(const std::string& device, Kernels kernels, int depth);

// What stands below a device's own files: the calibrations that they are based on, widened.
Calibration load_bases(const std::vector<JsonValue>& files, Kernels kernels, int depth) {
  Calibration bases;
  for (const JsonValue& file : files) {
    const auto based_on = file.find("based_on");
    if (!based_on) continue;
    const std::string name = based_on->text();
    if (depth > 4) based_on->fail("a chain of at most five devices", name);
    if (own_files(name).empty()) based_on->fail("a device with a calibration of its own", name);
    OwnFiles base = load_own(name, kernels, depth + 1);
    add_missing_energies(base.calibration, base.bases);
    widen(base.calibration, 0.9, 1.1, "measured on " + name);
    lay_over(bases, std::move(base.calibration));
    bases.borrowed_from = name;
  }
  return bases;
}

OwnFiles load_own(const std::string& device, Kernels kernels, int depth) {
  std::vector<JsonValue> files;
  for (const fs::path& path : own_files(device)) files.push_back(JsonValue::load(path));
  OwnFiles own{.calibration = {}, .bases = load_bases(files, kernels, depth)};
  own.calibration.curves = own.bases.curves;
  for (const JsonValue& file : files)
    lay_over(own.calibration, read_own_part(file, own.calibration, kernels));
  own.calibration.device = device;
  own.calibration.borrowed_from = own.bases.borrowed_from;
  return own;
}

// Whether the device is measured, published or borrows by a line of its own.
bool has_calibration(const Device& device) {
  return !own_files(device.name).empty() || find_loan(device).of_device;
}

void add_if_there(Calibration& calibration, const std::string& name) {
  const fs::path path = folder() / "estimates" / (name + ".json");
  if (is_there(path)) add_estimates(calibration, JsonValue::load(path));
}

// `bases` lends its energies and gaps where nothing is known of the device itself.
void add_all_estimates(Calibration& calibration, const Device& device,
                       const Calibration& bases = {}) {
  add_if_there(calibration, device.name);
  add_missing_energies(calibration, bases);
  add_if_there(calibration, std::string(to_text(device.architecture)));
  add_if_there(calibration, has_tile_model(device.architecture) ? "common" : "generic");
  complete(calibration);
}

// Curves of one format of another device over those of the lender.
void lend_format(Calibration& calibration, const Loan& loan) {
  for (const Curve& curve : load_calibration(load_device(loan.format_from)).curves)
    if (to_text(curve.format) == loan.format) put_curve(calibration, curve);
  complete(calibration);
}

// Energies of another device. The same architecture costs at less power what the lower clock makes
// of it. Of another one, work that the lender could sustain at a share of its peak, the borrower
// sustains at that share or better: newer processes need less energy, not more.
void scale_energies(Calibration& calibration, const Device& lender, const Device& borrower) {
  const auto budget = [](const Device& d) {
    return d.power_limit.known() && d.idle_power.known()
               ? (d.power_limit.get() - d.idle_power.get()).si()
               : 0.0;
  };
  for (std::size_t f = 0; f < format_count; ++f) {
    Sourced<JoulesPerFlop>& energy = calibration.tensor_energy[f];
    if (!energy.known()) continue;
    const auto &from = lender.tensor_rate[f], &to = borrower.tensor_rate[f];
    double factor = 1;
    if (from.known() && to.known() && to.get().si() > 0 && budget(lender) > 0)
      factor = std::min(1.0, budget(borrower) / budget(lender) * (from.get() / to.get()));
    if (factor > 0 && lender.architecture == borrower.architecture)
      factor = sustained_energy(factor);
    const double value = energy.get().si() * factor;
    energy = {.value = JoulesPerFlop(value),
              .low = JoulesPerFlop(0.6 * value),
              .high = JoulesPerFlop(1.3 * value),
              .evidence = Evidence::estimated,
              .source = energy.source,
              .reason = "borrowed from " + lender.name};
  }
}

}  // namespace

Calibration load_estimates(const Device& device) {
  Calibration calibration;
  calibration.device = device.name;
  add_all_estimates(calibration, device);
  return calibration;
}

Calibration load_calibration(const Device& device, Kernels kernels) {
  if (!own_files(device.name).empty()) {
    OwnFiles own = load_own(device.name, kernels, 0);
    add_all_estimates(own.calibration, device, own.bases);
    return own.calibration;
  }
  const Loan loan = find_loan(device);
  Calibration calibration;
  if (loan.from == "generic") {
    calibration.borrowed_from = "generic";
    add_all_estimates(calibration, device);
  } else {
    const Device lender = load_device(loan.from);
    calibration = load_calibration(lender, kernels);
    if (!loan.format.empty()) lend_format(calibration, loan);
    scale_energies(calibration, lender, device);
    calibration.borrowed_from = lender.name;
  }
  widen(calibration, loan.low, loan.high, loan.reason);
  calibration.device = device.name;
  return calibration;
}

Calibration load_calibration(const std::string& entry, const Device& device, Kernels kernels) {
  const Device original = load_device(entry);
  if (original.architecture != device.architecture) return load_calibration(device, kernels);
  const std::string base = catalog_base(accelerator_folder, "accelerator", entry);
  Calibration calibration = base.empty() || has_calibration(original)
                                ? load_calibration(original, kernels)
                                : load_calibration(base, original, kernels);
  follow_device(calibration, original, device);
  if (device.name != original.name && calibration.borrowed_from.empty())
    calibration.borrowed_from = original.name;
  calibration.device = device.name;
  return calibration;
}

}  // namespace orrery
