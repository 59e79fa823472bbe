// Knows how a calibration is written down, so that read_calibration reads it back.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "hw_models/calibration.h"

namespace orrery {

namespace {

using Json = nlohmann::ordered_json;

// Four significant digits: more than any fit here is worth, and diffs stay readable.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 3);
  const double digits = std::round(value / unit);
  return std::stod(fmt::format("{:.4g}", digits * unit));
}

std::string text(double si, double unit, const char* name) {
  return fmt::format("{} {}", rounded(si / unit), name);
}

template <class Q>
Json sourced(const Sourced<Q>& s, double unit, const char* name) {
  const auto one = [&](double si) { return text(si, unit, name); };
  Json json;
  json["value"] = one(s.get().si());
  if (s.low) json["low"] = one(s.low->si());
  if (s.high) json["high"] = one(s.high->si());
  json["evidence"] = to_text(s.evidence);
  json["source"] = s.source;
  if (!s.reason.empty()) json["reason"] = s.reason;
  return json;
}

Json scale_json(const Sourced<double>& s) {
  Json json;
  json["value"] = rounded(s.get());
  if (s.low) json["low"] = rounded(*s.low);
  if (s.high) json["high"] = rounded(*s.high);
  json["evidence"] = to_text(s.evidence);
  json["source"] = s.source;
  if (!s.reason.empty()) json["reason"] = s.reason;
  return json;
}

Json product_parameters(const Curve& c) {
  Json p;
  p["tensor_efficiency"] = rounded(c.tensor_efficiency);
  p["k_half"] = rounded(c.k_half);
  p["wave_exponent"] = rounded(c.wave_exponent);
  p["tile_m"] = c.tile_m;
  p["tile_n"] = c.tile_n;
  p["tile_loss"] = rounded(c.tile_loss);
  p["split_k"] = rounded(c.split_k);
  p["misaligned_factor"] = rounded(c.misaligned_factor);
  p["epilogue_exposed"] = rounded(c.epilogue_exposed);
  p["accumulate_exposed"] = rounded(c.accumulate_exposed);
  p["energy_factor"] = rounded(c.energy_factor);
  p["roles"] = {{"forward", rounded(c.role_factor[0])},
                {"input_gradient", rounded(c.role_factor[1])},
                {"weight_gradient", rounded(c.role_factor[2])}};
  return p;
}

Json attention_parameters(const Curve& c) {
  Json p;
  p["tensor_efficiency"] = rounded(c.tensor_efficiency);
  p["k_half"] = rounded(c.k_half);
  p["tile_m"] = c.tile_m;
  p["energy_factor"] = rounded(c.energy_factor);
  if (c.kind == WorkKind::attention_decode) return p;
  p["tile_n"] = c.tile_n;
  p["wave_exponent"] = rounded(c.wave_exponent);
  p["special_efficiency"] = rounded(c.special_efficiency);
  p["head_dim_exponent"] = rounded(c.head_dim_exponent);
  p["misaligned_factor"] = rounded(c.misaligned_factor);
  p["epilogue_exposed"] = rounded(c.epilogue_exposed);
  if (c.bytes_per_score > 0) p["bytes_per_score"] = rounded(c.bytes_per_score);
  return p;
}

Json curve_json(const Curve& c) {
  Json json;
  json["kind"] = to_text(c.kind);
  json["format"] = to_text(c.format);
  json["library"] = to_text(c.library);
  json["scale"] = scale_json(c.scale);
  if (c.quality.fitted > 0)
    json["fit"] = {{"fitted", c.quality.fitted},
                   {"held_out", c.quality.held_out},
                   {"median_error", rounded(c.quality.median)},
                   {"p90_error", rounded(c.quality.p90)}};
  Json p = is_product(c.kind)     ? product_parameters(c)
           : is_attention(c.kind) ? attention_parameters(c)
                                  : Json::object();
  p["memory_efficiency"] = rounded(c.memory_efficiency);
  if (c.l2_efficiency > 0) p["l2_efficiency"] = rounded(c.l2_efficiency);
  p["saturation"] = text(c.saturation_bytes, 1e6, "MB");
  p["fixed"] = text(c.fixed_seconds, 1e-6, "us");
  json["parameters"] = p;
  return json;
}

}  // namespace

std::string to_json_text(const Calibration& calibration, const std::string& note) {
  Json json;
  json["device"] = calibration.device;
  if (!calibration.borrowed_from.empty()) json["based_on"] = calibration.borrowed_from;
  json["note"] = note;
  json["curves"] = Json::array();
  for (const Curve& curve : calibration.curves) json["curves"].push_back(curve_json(curve));
  return json.dump(1) + "\n";
}

}  // namespace orrery
