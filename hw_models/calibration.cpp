// Knows how to read and write calibration files and which curve stands in for a missing one.
#include "hw_models/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace orrery {

namespace {

struct Parameter {
  const char* name;
  double Curve::*member;
  Dimension dimension;  // none: a bare number
};
constexpr Dimension plain{};
constexpr Parameter parameters[] = {
    {"tensor_efficiency", &Curve::tensor_efficiency, plain},
    {"k_half", &Curve::k_half, plain},
    {"wave_exponent", &Curve::wave_exponent, plain},
    {"tile_m", &Curve::tile_m, plain},
    {"tile_n", &Curve::tile_n, plain},
    {"tile_loss", &Curve::tile_loss, plain},
    {"split_k", &Curve::split_k, plain},
    {"misaligned_factor", &Curve::misaligned_factor, plain},
    {"head_dim_exponent", &Curve::head_dim_exponent, plain},
    {"memory_efficiency", &Curve::memory_efficiency, plain},
    {"l2_efficiency", &Curve::l2_efficiency, plain},
    {"special_efficiency", &Curve::special_efficiency, plain},
    {"vector_efficiency", &Curve::vector_efficiency, plain},
    {"saturation", &Curve::saturation_bytes, Bytes::dimension},
    {"bytes_per_score", &Curve::bytes_per_score, plain},
    {"epilogue_exposed", &Curve::epilogue_exposed, plain},
    {"accumulate_exposed", &Curve::accumulate_exposed, plain},
    {"energy_factor", &Curve::energy_factor, plain},
    {"fixed", &Curve::fixed_seconds, Seconds::dimension},
};
constexpr const char* role_names[3] = {"forward", "input_gradient", "weight_gradient"};

void read_key(const JsonValue& at, Curve& curve) {
  at.at("kind").one_of(work_kind_names());
  at.at("format").one_of(format_names());
  at.at("library").one_of(library_names());
  curve.kind = *work_kind_from(at.at("kind").text());
  curve.format = *format_from(at.at("format").text());
  curve.library = *library_from(at.at("library").text());
}

bool same_key(const Curve& a, const Curve& b) {
  return a.kind == b.kind && a.format == b.format && a.library == b.library;
}

void read_parameters(const JsonValue& at, Curve& curve, bool factors) {
  for (const auto& [key, value] : at.members()) {
    if (key == "roles") {
      value.expect_only({"forward", "input_gradient", "weight_gradient"});
      for (int r = 0; r < 3; ++r) {
        const double number = value.at(role_names[r]).number();
        curve.role_factor[r] = factors ? curve.role_factor[r] * number : number;
      }
      continue;
    }
    const auto* found = std::find_if(std::begin(parameters), std::end(parameters),
                                     [&](const Parameter& p) { return key == p.name; });
    if (found == std::end(parameters)) {
      std::vector<std::string> names = {"roles"};
      for (const Parameter& p : parameters) names.emplace_back(p.name);
      throw Error({.file = at.file(),
                   .path = value.path(),
                   .found = "key \"" + key + "\"",
                   .expected = "a parameter of a curve",
                   .nearest = nearest_name(key, names)});
    }
    if (factors)
      curve.*found->member *= value.number();
    else if (found->dimension == plain)
      curve.*found->member = value.number();
    else
      curve.*found->member = value.si(found->dimension);
    if (curve.*found->member < 0) value.fail("a number that is not negative");
  }
}

// Kernel times divide by these: nothing may be zero where its kind uses it.
void check_curve(const JsonValue& at, const Curve& curve) {
  const bool tensor = is_product(curve.kind) || is_attention(curve.kind);
  if (tensor && curve.tensor_efficiency <= 0) at.fail("tensor_efficiency above zero");
  if (curve.memory_efficiency <= 0) at.fail("memory_efficiency above zero");
  if (curve.tile_m <= 0 || curve.tile_n <= 0) at.fail("tile_m and tile_n above zero");
  if (curve.vector_efficiency <= 0) at.fail("vector_efficiency above zero");
  if (!curve.scale.known() || curve.scale.get() <= 0) at.fail("a scale above zero");
}

Curve read_curve(const JsonValue& at, const Calibration& known) {
  at.expect_only(
      {"kind", "format", "library", "scale", "fit", "parameters", "like", "factors", "note"});
  Curve curve;
  if (const auto like = at.find("like")) {
    like->expect_only({"kind", "format", "library"});
    Curve wanted;
    read_key(*like, wanted);
    const auto match = std::find_if(known.curves.begin(), known.curves.end(),
                                    [&](const Curve& c) { return same_key(c, wanted); });
    if (match == known.curves.end())
      like->fail("a curve that stands before it or in its base", Calibration::name(wanted));
    curve = *match;
    curve.quality = {};
  }
  read_key(at, curve);
  if (const auto factors = at.find("factors")) read_parameters(*factors, curve, true);
  if (const auto values = at.find("parameters")) read_parameters(*values, curve, false);
  curve.scale = read_sourced<double>(at.at("scale"));
  if (const auto fit = at.find("fit")) {
    fit->expect_only({"fitted", "held_out", "median_error", "p90_error"});
    curve.quality = {.fitted = static_cast<int>(fit->at("fitted").integer(0, 100000000)),
                     .held_out = static_cast<int>(fit->at("held_out").integer(0, 100000000)),
                     .median = fit->at("median_error").number(),
                     .p90 = fit->at("p90_error").number()};
  }
  curve.present = true;
  check_curve(at, curve);
  return curve;
}

void read_energies(const JsonValue& file, Calibration& calibration) {
  if (const auto power = file.find("energy")) {
    power->expect_only({"tensor", "memory", "busy"});
    if (const auto tensor = power->find("tensor")) {
      for (const auto& [key, value] : tensor->members()) {
        const auto format = format_from(key);
        if (!format) value.fail("a number format", key);
        calibration.tensor_energy[static_cast<std::size_t>(*format)] =
            read_sourced<JoulesPerFlop>(value);
      }
    }
    if (const auto memory = power->find("memory"))
      calibration.memory_energy = read_sourced<JoulesPerByte>(*memory);
    if (const auto busy = power->find("busy")) calibration.busy_share = read_sourced<double>(*busy);
  }
  if (const auto launch = file.find("launch")) {
    launch->expect_only({"stream", "graph"});
    calibration.launch_latency = read_sourced<Seconds>(launch->at("stream"));
    calibration.graph_latency = read_sourced<Seconds>(launch->at("graph"));
  }
}

const Curve* find_curve(const Calibration& c, WorkKind kind, std::optional<Format> format,
                        std::optional<Library> library) {
  for (const Curve& curve : c.curves)
    if (curve.kind == kind && (!format || curve.format == *format) &&
        (!library || curve.library == *library))
      return &curve;
  return nullptr;
}

// A kind without curves of its own takes those of the kind nearest to it.
WorkKind nearest_kind(WorkKind kind) {
  switch (kind) {
    case WorkKind::grouped_gemm:
      return WorkKind::gemm;
    case WorkKind::attention_backward:
    case WorkKind::attention_decode:
      return WorkKind::attention_forward;
    case WorkKind::attention_forward:
      return WorkKind::gemm;
    default:
      return WorkKind::elementwise;
  }
}

// Products and attention keep their format when the library is missing: a format changes the rate.
// Memory-bound kinds keep their library: it says how often the data passes.
const Curve* fallback(const Calibration& c, WorkKind kind, Format format, Library library) {
  // fp16 runs on the same units at the same rate as bf16.
  const Format twin = format == Format::fp16 ? Format::bf16 : format;
  for (int depth = 0; depth < 4; ++depth) {
    if (const Curve* found = find_curve(c, kind, format, library)) return found;
    if (const Curve* found = find_curve(c, kind, twin, library)) return found;
    if (is_product(kind) || is_attention(kind))
      if (const Curve* found = find_curve(c, kind, twin, std::nullopt)) return found;
    if (const Curve* found = find_curve(c, kind, Format::bf16, library)) return found;
    if (const Curve* found = find_curve(c, kind, Format::bf16, std::nullopt)) return found;
    if (const Curve* found = find_curve(c, kind, std::nullopt, std::nullopt)) return found;
    kind = nearest_kind(kind);
  }
  return &c.curves.front();
}

}  // namespace

std::string Calibration::name(const Curve& curve) {
  return fmt::format("{}.{}.{}", to_text(curve.kind), to_text(curve.format),
                     to_text(curve.library));
}

void complete(Calibration& calibration) {
  CHECK_THAT(!calibration.curves.empty(), "a calibration needs at least one curve");
  for (int k = 0; k < work_kind_count; ++k)
    for (int f = 0; f < format_count; ++f)
      for (int l = 0; l < library_count; ++l) {
        const auto kind = static_cast<WorkKind>(k);
        const auto format = static_cast<Format>(f);
        const auto library = static_cast<Library>(l);
        const Curve* curve = fallback(calibration, kind, format, library);
        calibration.index[Calibration::slot(kind, format, library)] =
            static_cast<std::uint16_t>(curve - calibration.curves.data());
      }
}

void put_curve(Calibration& calibration, const Curve& curve) {
  for (Curve& old : calibration.curves)
    if (same_key(old, curve)) {
      old = curve;
      return;
    }
  calibration.curves.push_back(curve);
}

Calibration read_calibration(const JsonValue& file, const Calibration* base) {
  file.expect_only({"device", "based_on", "note", "launch", "energy", "curves"});
  Calibration calibration;
  if (base) {
    calibration = *base;
    calibration.borrowed_from = base->device;
    widen(calibration, 0.9, 1.1, "measured on " + base->device);
  }
  calibration.device = file.at("device").text();
  read_energies(file, calibration);
  for (const JsonValue& item : file.at("curves").items())
    put_curve(calibration, read_curve(item, calibration));
  if (calibration.curves.empty()) file.at("curves").fail("at least one curve");
  complete(calibration);
  return calibration;
}

void widen(Calibration& calibration, double low, double high, const std::string& reason) {
  for (Curve& curve : calibration.curves) {
    Sourced<double>& scale = curve.scale;
    const double value = scale.get();
    scale.low = std::min(scale.low.value_or(value), value * low);
    scale.high = std::max(scale.high.value_or(value), value * high);
    scale.evidence = Evidence::estimated;
    scale.reason = reason;
  }
}

void add_estimates(Calibration& calibration, const JsonValue& file) {
  file.expect_only({"note", "launch", "energy", "curves"});
  const Calibration before = calibration;
  read_energies(file, calibration);
  for (std::size_t f = 0; f < format_count; ++f)
    if (before.tensor_energy[f].known()) calibration.tensor_energy[f] = before.tensor_energy[f];
  if (before.memory_energy.known()) calibration.memory_energy = before.memory_energy;
  if (before.busy_share.known()) calibration.busy_share = before.busy_share;
  if (before.launch_latency.known()) calibration.launch_latency = before.launch_latency;
  if (before.graph_latency.known()) calibration.graph_latency = before.graph_latency;
  for (const JsonValue& item : file.at("curves").items()) {
    Curve key;
    read_key(item, key);
    if (find_curve(calibration, key.kind, key.format, key.library)) continue;
    // An estimate that leans on a curve that this device lacks is of no use to it.
    if (const auto like = item.find("like")) {
      Curve wanted;
      read_key(*like, wanted);
      if (!find_curve(calibration, wanted.kind, wanted.format, wanted.library)) continue;
    }
    put_curve(calibration, read_curve(item, calibration));
  }
  if (!calibration.curves.empty()) complete(calibration);
}

}  // namespace orrery
