// SPDX-License-Identifier: Apache-2.0
// Reads and writes calibration files, and finds the curve that stands in for a missing one.
#include "hw_models/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace orrery {

namespace {

struct Parameter {
  std::string_view name;
  double Curve::*member;
  Dimension dimension;  // none: a bare number
};
constexpr Dimension no_unit{};
constexpr Parameter parameters[] = {
    {"tensor_efficiency", &Curve::tensor_efficiency, no_unit},
    {"k_half", &Curve::k_half, no_unit},
    {"wave_exponent", &Curve::wave_exponent, no_unit},
    {"tile_m", &Curve::tile_m, no_unit},
    {"tile_n", &Curve::tile_n, no_unit},
    {"tile_loss", &Curve::tile_loss, no_unit},
    {"partial_tile", &Curve::partial_tile, no_unit},
    {"row_cluster", &Curve::row_cluster, no_unit},
    {"split_k", &Curve::split_k, no_unit},
    {"split_start", &Curve::split_seconds, Seconds::dimension},
    {"split_exposed", &Curve::split_exposed, no_unit},
    {"most_splits", &Curve::most_splits, no_unit},
    {"split_growth", &Curve::split_growth, no_unit},
    {"split_waves", &Curve::split_waves, no_unit},
    {"balanced", &Curve::balanced, no_unit},
    {"block_start", &Curve::block_seconds, Seconds::dimension},
    {"tile_start", &Curve::tile_seconds, Seconds::dimension},
    {"block_exposed", &Curve::block_exposed, no_unit},
    {"resident_blocks", &Curve::resident_blocks, no_unit},
    {"row_room", &Curve::row_room, no_unit},
    {"dim_step", &Curve::dim_step, no_unit},
    {"stream_width", &Curve::stream_width, no_unit},
    {"misaligned_factor", &Curve::misaligned_factor, no_unit},
    {"sector_factor", &Curve::sector_factor, no_unit},
    {"packed_heads", &Curve::packed_heads, no_unit},
    {"head_dim_exponent", &Curve::head_dim_exponent, no_unit},
    {"memory_efficiency", &Curve::memory_efficiency, no_unit},
    {"l2_efficiency", &Curve::l2_efficiency, no_unit},
    {"special_efficiency", &Curve::special_efficiency, no_unit},
    {"vector_efficiency", &Curve::vector_efficiency, no_unit},
    {"saturation", &Curve::saturation_bytes, Bytes::dimension},
    {"bytes_per_score", &Curve::bytes_per_score, no_unit},
    {"epilogue_exposed", &Curve::epilogue_exposed, no_unit},
    {"accumulate_exposed", &Curve::accumulate_exposed, no_unit},
    {"energy_factor", &Curve::energy_factor, no_unit},
    {"block_scale_factor", &Curve::block_scale_factor, no_unit},
    {"fixed", &Curve::fixed_seconds, Seconds::dimension},
};
constexpr const char* role_names[3] = {"forward", "input_gradient", "weight_gradient"};

void read_key(const JsonValue& at, Curve& curve) {
  curve.kind = work_kind_text.from(at.at("kind"));
  curve.format = format_text.from(at.at("format"));
  curve.library = library_text.from(at.at("library"));
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

// What a fit may say the spread of, under a name that lasts.
std::optional<std::string_view> spread_name(const std::string& name) {
  if (const Parameter* parameter = find_parameter(name)) return parameter->name;
  for (const std::string_view role : role_factor_names)
    if (role == name) return role;
  return std::nullopt;
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
    else if (found->dimension == no_unit)
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
      const auto known = spread_name(name);
      if (!known) fail_unknown(*spread, name, value);
      if (value.number() < 0) value.fail("a number that is not negative");
      quality.spread.push_back({.name = *known, .relative_error = value.number()});
    }
  return quality;
}

const Curve* find_same(const std::vector<Curve>& curves, const Curve& wanted) {
  const auto match = std::find_if(curves.begin(), curves.end(),
                                  [&](const Curve& c) { return same_key(c, wanted); });
  return match == curves.end() ? nullptr : &*match;
}

// `find_like` finds the curve that the file names as the one to start from; nullptr: there is none.
Curve read_curve(const JsonValue& at, const std::function<const Curve*(const Curve&)>& find_like) {
  at.expect_only({"kind", "format", "library", "variant", "scale", "fit", "parameters", "like",
                  "factors", "note"});
  Curve curve;
  if (const auto like = at.find("like")) {
    like->expect_only({"kind", "format", "library"});
    Curve wanted;
    read_key(*like, wanted);
    const Curve* match = find_like(wanted);
    if (match == nullptr)
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
        const auto format = format_text.find(key);
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

// The first curve of each kind, by format and library or with these left open, in one pass.
class FirstCurves {
 public:
  explicit FirstCurves(const std::vector<Curve>& curves) {
    for (const Curve& curve : curves)
      for (Entry* entry : {&at(curve.kind, curve.format, curve.library),
                           &at(curve.kind, curve.format, std::nullopt),
                           &at(curve.kind, std::nullopt, std::nullopt)})
        if (*entry == nullptr) *entry = &curve;
  }
  const Curve* find(WorkKind kind, std::optional<Format> format, std::optional<Library> library) {
    return at(kind, format, library);
  }

 private:
  using Entry = const Curve*;
  Entry& at(WorkKind kind, std::optional<Format> format, std::optional<Library> library) {
    const std::size_t f = format ? static_cast<std::size_t>(*format) : format_count;
    const std::size_t l = library ? static_cast<std::size_t>(*library) : library_count;
    return entries_[static_cast<std::size_t>(kind)][f][l];
  }
  Entry entries_[work_kind_count][format_count + 1][library_count + 1] = {};
};

// Products and attention keep their format when the library is missing: a format changes the rate.
// Memory-bound kinds keep their library: it says how often the data passes. nullptr: no curve
// serves.
const Curve* fallback(FirstCurves& first, WorkKind kind, Format format, Library library) {
  // fp16 runs on the same units at the same rate as bf16.
  const Format twin = format == Format::fp16 ? Format::bf16 : format;
  for (int depth = 0; depth < 4; ++depth) {
    if (const Curve* found = first.find(kind, format, library)) return found;
    if (const Curve* found = first.find(kind, twin, library)) return found;
    if (is_product(kind) || is_attention(kind))
      if (const Curve* found = first.find(kind, twin, std::nullopt)) return found;
    if (const Curve* found = first.find(kind, Format::bf16, library)) return found;
    // Hand-fused kernels are the nearest to those of the microbenchmarks.
    if (library == Library::own)
      if (const Curve* found = first.find(kind, Format::bf16, Library::fused)) return found;
    if (const Curve* found = first.find(kind, Format::bf16, std::nullopt)) return found;
    if (const Curve* found = first.find(kind, std::nullopt, std::nullopt)) return found;
    kind = nearest_kind(kind);
  }
  return nullptr;
}

}  // namespace

Calibration::Calibration() = default;
Calibration::Calibration(const Calibration&) = default;
Calibration::Calibration(Calibration&&) noexcept = default;
Calibration& Calibration::operator=(const Calibration&) = default;
Calibration& Calibration::operator=(Calibration&&) noexcept = default;
Calibration::~Calibration() = default;

std::string Calibration::name(const Curve& curve) {
  return fmt::format("{}.{}.{}", to_text(curve.kind), to_text(curve.format),
                     to_text(curve.library));
}

std::string_view parameter_name(double Curve::*parameter) {
  const auto* found = std::find_if(std::begin(parameters), std::end(parameters),
                                   [&](const Parameter& p) { return p.member == parameter; });
  CHECK_THAT(found != std::end(parameters), "a parameter that calibration files hold");
  return found->name;
}

void complete(Calibration& calibration) {
  CHECK_THAT(!calibration.curves.empty(), "a calibration needs at least one curve");
  FirstCurves first(calibration.curves);
  for (int k = 0; k < work_kind_count; ++k)
    for (int f = 0; f < format_count; ++f)
      for (int l = 0; l < library_count; ++l) {
        const auto kind = static_cast<WorkKind>(k);
        const auto format = static_cast<Format>(f);
        const auto library = static_cast<Library>(l);
        const Curve* curve = fallback(first, kind, format, library);
        calibration.index[Calibration::slot(kind, format, library)] =
            static_cast<std::uint16_t>(curve == nullptr ? 0 : curve - calibration.curves.data());
      }
}

void put_curve(Calibration& calibration, Curve curve) {
  auto& curves = curve.variant.empty() ? calibration.curves : calibration.variants;
  for (Curve& old : curves)
    if (same_key(old, curve)) {
      old = std::move(curve);
      return;
    }
  curves.push_back(std::move(curve));
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
  put_curve(calibration, std::move(general));
  complete(calibration);
}

Calibration read_own_part(const JsonValue& file, const Calibration& known, Kernels kernels) {
  // What was measured, when and under which clocks is for people.
  file.expect_only({"device", "based_on", "note", "launch", "energy", "curves", "variants",
                    "collectives", "overlap", "measured"});
  Calibration own;
  own.device = file.at("device").text();
  read_energies(file, own);
  const auto like = [&](const Curve& wanted) {
    const Curve* match = find_same(own.curves, wanted);
    return match != nullptr ? match : find_same(known.curves, wanted);
  };
  for (const JsonValue& item : file.at("curves").items()) put_curve(own, read_curve(item, like));
  if (const auto variants = file.find("variants"); variants && kernels == Kernels::named)
    for (const JsonValue& item : variants->items()) {
      Curve curve = read_curve(item, like);
      if (curve.variant.empty()) item.at("variant").fail("the name of one kernel");
      put_curve(own, std::move(curve));
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

void lay_over(Calibration& calibration, Calibration better) {
  add_missing_energies(better, calibration);
  const auto add = [](std::vector<Curve>& mine, std::vector<Curve>& theirs) {
    const auto own = static_cast<std::ptrdiff_t>(mine.size());
    for (Curve& curve : theirs)
      if (std::none_of(mine.begin(), mine.begin() + own,
                       [&](const Curve& c) { return same_key(c, curve); }))
        mine.push_back(std::move(curve));
  };
  add(better.curves, calibration.curves);
  add(better.variants, calibration.variants);
  better.device = std::move(calibration.device);
  better.borrowed_from = std::move(calibration.borrowed_from);
  calibration = std::move(better);
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
    put_curve(calibration, read_curve(item, [&](const Curve& wanted) {
                return find_same(calibration.curves, wanted);
              }));
  }
}

}  // namespace orrery
