// Knows how to read and write calibration files and which curve stands in for a missing one.
#include "hw_models/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace orrery {

namespace {

struct Parameter {
  std::string_view name;
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
    {"partial_tile", &Curve::partial_tile, plain},
    {"row_cluster", &Curve::row_cluster, plain},
    {"split_k", &Curve::split_k, plain},
    {"split_start", &Curve::split_seconds, Seconds::dimension},
    {"split_exposed", &Curve::split_exposed, plain},
    {"most_splits", &Curve::most_splits, plain},
    {"balanced", &Curve::balanced, plain},
    {"block_start", &Curve::block_seconds, Seconds::dimension},
    {"block_exposed", &Curve::block_exposed, plain},
    {"resident_blocks", &Curve::resident_blocks, plain},
    {"dim_step", &Curve::dim_step, plain},
    {"stream_width", &Curve::stream_width, plain},
    {"misaligned_factor", &Curve::misaligned_factor, plain},
    {"sector_factor", &Curve::sector_factor, plain},
    {"packed_heads", &Curve::packed_heads, plain},
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

// A role's factor has the name of the role: "roles.input_gradient".
bool is_role(const std::string& name) {
  return std::any_of(std::begin(role_names), std::end(role_names),
                     [&](const char* role) { return name == std::string("roles.") + role; });
}

void read_key(const JsonValue& at, Curve& curve) {
  at.at("kind").one_of(work_kind_names());
  at.at("format").one_of(format_names());
  at.at("library").one_of(library_names());
  curve.kind = *work_kind_from(at.at("kind").text());
  curve.format = *format_from(at.at("format").text());
  curve.library = *library_from(at.at("library").text());
}

bool same_key(const Curve& a, const Curve& b) {
  return a.kind == b.kind && a.format == b.format && a.library == b.library &&
         a.variant == b.variant;
}

const Parameter* find_parameter(const std::string& name) {
  const auto* found = std::find_if(std::begin(parameters), std::end(parameters),
                                   [&](const Parameter& p) { return name == p.name; });
  return found == std::end(parameters) ? nullptr : found;
}

[[noreturn]] void fail_unknown(const JsonValue& at, const std::string& key,
                               const JsonValue& value) {
  std::vector<std::string> names = {"roles"};
  for (const Parameter& p : parameters) names.emplace_back(p.name);
  throw Error({.file = at.file(),
               .path = value.path(),
               .found = "key \"" + key + "\"",
               .expected = "a parameter of a curve",
               .nearest = nearest_name(key, names)});
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
    const Parameter* found = find_parameter(key);
    if (!found) fail_unknown(at, key, value);
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
  if (tensor && curve.split_k <= 0) at.fail("split_k above zero");
  if (curve.vector_efficiency <= 0) at.fail("vector_efficiency above zero");
  if (!curve.scale.known() || curve.scale.get() <= 0) at.fail("a scale above zero");
}

Extent read_extent(const JsonValue& range, Axis axis) {
  const std::vector<JsonValue> ends = range.items();
  if (ends.size() != 2) range.fail("two numbers, the least and the largest that was measured");
  const Extent extent{.axis = axis, .low = ends[0].number(), .high = ends[1].number()};
  if (extent.low <= 0) ends[0].fail("a number above zero");
  if (extent.low > extent.high)
    range.fail("the least that was measured before the largest",
               fmt::format("[{}, {}]", extent.low, extent.high));
  return extent;
}

Region read_region(const JsonValue& at, WorkKind kind) {
  Region region;
  std::vector<std::string> allowed = {"per_octave"};
  for (const Axis axis : axes_of(kind)) {
    allowed.emplace_back(to_text(axis));
    if (const auto range = at.find(allowed.back()))
      region.extents.push_back(read_extent(*range, axis));
  }
  for (const auto& [key, value] : at.members())
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end())
      throw Error({.file = at.file(),
                   .path = value.path(),
                   .found = "key \"" + key + "\"",
                   .expected = fmt::format("an axis of {} or per_octave", to_text(kind)),
                   .nearest = nearest_name(key, allowed)});
  if (!region.known()) at.fail("at least one axis");
  region.per_octave = at.at("per_octave").number();
  if (region.per_octave < 0) at.at("per_octave").fail("a number that is not negative");
  return region;
}

FitQuality read_quality(const JsonValue& at, WorkKind kind) {
  at.expect_only({"fitted", "held_out", "median_error", "p90_error", "region", "spread"});
  FitQuality quality{.fitted = static_cast<int>(at.at("fitted").integer(0, 100000000)),
                     .held_out = static_cast<int>(at.at("held_out").integer(0, 100000000)),
                     .median = at.at("median_error").number(),
                     .p90 = at.at("p90_error").number()};
  if (const auto region = at.find("region")) quality.region = read_region(*region, kind);
  if (const auto spread = at.find("spread"))
    for (const auto& [name, value] : spread->members()) {
      if (!find_parameter(name) && !is_role(name)) fail_unknown(*spread, name, value);
      if (value.number() < 0) value.fail("a number that is not negative");
      quality.spread.push_back({.name = name, .relative_error = value.number()});
    }
  return quality;
}

Curve read_curve(const JsonValue& at, const Calibration& known) {
  at.expect_only({"kind", "format", "library", "variant", "scale", "fit", "parameters", "like",
                  "factors", "note"});
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
  if (const auto variant = at.find("variant")) curve.variant = variant->text();
  curve.scale = read_sourced<double>(at.at("scale"));
  if (const auto fit = at.find("fit")) curve.quality = read_quality(*fit, curve.kind);
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
    // Hand-fused kernels are the nearest to those of the microbenchmarks.
    if (library == Library::own)
      if (const Curve* found = find_curve(c, kind, Format::bf16, Library::fused)) return found;
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

std::string parameter_name(double Curve::*parameter) {
  const auto* found = std::find_if(std::begin(parameters), std::end(parameters),
                                   [&](const Parameter& p) { return p.member == parameter; });
  CHECK_THAT(found != std::end(parameters), "a parameter that calibration files hold");
  return std::string(found->name);
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
  auto& curves = curve.variant.empty() ? calibration.curves : calibration.variants;
  for (Curve& old : curves)
    if (same_key(old, curve)) {
      old = curve;
      return;
    }
  curves.push_back(curve);
}

void use_variant(Calibration& calibration, WorkKind kind, Format format, Library library,
                 const std::string& variant) {
  const auto found =
      std::find_if(calibration.variants.begin(), calibration.variants.end(), [&](const Curve& c) {
        return c.kind == kind && c.format == format && c.library == library && c.variant == variant;
      });
  if (variant.empty() || found == calibration.variants.end()) return;
  Curve general = *found;
  general.variant.clear();
  put_curve(calibration, general);
  complete(calibration);
}

Calibration read_own_part(const JsonValue& file, const Calibration& known) {
  // What was measured, when and under which clocks is for people.
  file.expect_only({"device", "based_on", "note", "launch", "energy", "curves", "variants",
                    "collectives", "overlap", "measured"});
  Calibration own;
  own.device = file.at("device").text();
  read_energies(file, own);
  Calibration seen = known;
  for (const JsonValue& item : file.at("curves").items()) {
    const Curve curve = read_curve(item, seen);
    put_curve(own, curve);
    put_curve(seen, curve);
  }
  if (const auto variants = file.find("variants"))
    for (const JsonValue& item : variants->items()) {
      Curve curve = read_curve(item, seen);
      if (curve.variant.empty()) item.at("variant").fail("the name of one kernel");
      put_curve(own, curve);
    }
  return own;
}

Calibration read_calibration(const JsonValue& file, const Calibration* base) {
  Calibration calibration;
  if (base) {
    calibration = *base;
    calibration.borrowed_from = base->device;
    widen(calibration, 0.9, 1.1, "measured on " + base->device);
  }
  lay_over(calibration, read_own_part(file, calibration));
  calibration.device = file.at("device").text();
  if (calibration.curves.empty()) file.at("curves").fail("at least one curve");
  complete(calibration);
  return calibration;
}

void lay_over(Calibration& calibration, const Calibration& better) {
  Calibration joined = better;
  add_missing_energies(joined, calibration);
  for (const Curve& curve : calibration.curves)
    if (!find_curve(better, curve.kind, curve.format, curve.library))
      joined.curves.push_back(curve);
  for (const Curve& curve : calibration.variants)
    if (std::none_of(better.variants.begin(), better.variants.end(),
                     [&](const Curve& c) { return same_key(c, curve); }))
      joined.variants.push_back(curve);
  joined.device = calibration.device;
  joined.borrowed_from = calibration.borrowed_from;
  calibration = std::move(joined);
}

void add_missing_energies(Calibration& calibration, const Calibration& other) {
  const auto add = [](auto& mine, const auto& theirs) {
    if (!mine.known()) mine = theirs;
  };
  for (std::size_t f = 0; f < format_count; ++f)
    add(calibration.tensor_energy[f], other.tensor_energy[f]);
  add(calibration.memory_energy, other.memory_energy);
  add(calibration.busy_share, other.busy_share);
  add(calibration.launch_latency, other.launch_latency);
  add(calibration.graph_latency, other.graph_latency);
}

void widen(Calibration& calibration, double low, double high, const std::string& reason) {
  const auto stretch = [&](auto& sourced) {
    const auto value = sourced.get();
    sourced.low = std::min(sourced.low.value_or(value), value * low);
    sourced.high = std::max(sourced.high.value_or(value), value * high);
    sourced.evidence = Evidence::estimated;
    sourced.reason = reason;
  };
  visit_calibration(calibration, [&](const std::string&, auto& sourced) {
    if (sourced.known() && !is_uncertain(sourced.evidence)) stretch(sourced);
  });
  for (Curve& curve : calibration.curves) stretch(curve.scale);
}

void add_estimates(Calibration& calibration, const JsonValue& file) {
  file.expect_only({"note", "launch", "energy", "curves"});
  Calibration estimates;
  read_energies(file, estimates);
  add_missing_energies(calibration, estimates);
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
}

}  // namespace orrery
