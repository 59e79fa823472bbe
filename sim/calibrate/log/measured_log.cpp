// SPDX-License-Identifier: Apache-2.0
// Makes samples of lines of validation/microbench, and says what is wrong with a line.
#include "sim/calibrate/log/measured_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <span>

#include "hw_models/catalog.h"
#include "hw_models/catalog_names.h"
#include "sim/base/json/json.h"
#include "sim/calibrate/log/operator_csv.h"

namespace orrery {

namespace {

using table::hash;

constexpr const char* questions[] = {"launch", "peer-copy", "overlap", "power", "software"};

bool is_question(const std::string& kind) {
  return std::find(std::begin(questions), std::end(questions), kind) != std::end(questions);
}

bool is_timed(const Sample& sample) {
  return sample.is_work || !is_question(sample.kind) || sample.kind == "launch" ||
         sample.kind == "peer-copy";
}

double positive(const JsonValue& at) {
  const double value = at.number();
  if (value <= 0) at.fail("a number above zero");
  return value;
}

// Between a nanosecond and eleven days.
double microseconds_at(const JsonValue& at) {
  const double value = positive(at);
  if (value < 1e-3 || value > 1e12) at.fail("a time between 1e-3 and 1e12 us");
  return value;
}

double not_negative(const JsonValue& line, const char* key) {
  const auto at = line.find(key);  // a sensor that a board lacks is null
  if (!at) return 0;
  const double value = at->number();
  if (value < 0 || value > 1e18) at->fail("a number between 0 and 1e18");
  return value;
}

Format read_format(const JsonValue& at) { return format_text.from(at); }

// A shape may not exceed what products of its extents can hold in 64 bits.
struct Extent {
  const char* key;
  std::int64_t Work::*member;
  std::int64_t low, high;
};
constexpr std::int64_t million = 1 << 20;
constexpr Extent product_extents[] = {{"m", &Work::m, 1, 64 * million},
                                      {"n", &Work::n, 1, 64 * million},
                                      {"k", &Work::k, 1, 64 * million}};
constexpr Extent attention_extents[] = {{"batch", &Work::batch, 1, million},
                                        {"heads", &Work::heads, 1, 65536},
                                        {"kv_heads", &Work::kv_heads, 1, 65536},
                                        {"q_length", &Work::q_length, 1, 64 * million},
                                        {"kv_length", &Work::kv_length, 1, 64 * million},
                                        {"qk_dim", &Work::qk_dim, 1, 65536},
                                        {"v_dim", &Work::v_dim, 1, 65536}};

void read_extents(const JsonValue& line, std::span<const Extent> extents, Work& work) {
  for (const Extent& e : extents) work.*e.member = line.at(e.key).integer(e.low, e.high);
}

bool read_flag(const JsonValue& line, const char* key) {
  const auto at = line.find(key);
  if (!at) return false;
  if (at->raw().is_boolean()) return at->boolean();
  return at->integer(0, 1) == 1;
}

void read_product(const JsonValue& line, Sample& s) {
  Work& work = s.kernel.work;
  read_extents(line, product_extents, work);
  if (const auto groups = line.find("groups")) work.groups = groups->integer(1, million);
  if (const auto role = line.find("role")) work.role = gemm_role_text.from(*role);
  work.accumulate_fp32 = read_flag(line, "accumulate_fp32");
  // Narrow gradients are accumulated at full width: what was timed so in the forward layout is
  // theirs (Transformer Engine's split accumulator).
  if (s.variant == "slow-accumulate" && work.role == GemmRole::forward)
    work.role = GemmRole::input_gradient;
  // A layer has one family in all its roles: weight gradients have the tokens in k.
  const bool weights = work.role == GemmRole::weight_gradient;
  const std::int64_t a = weights ? work.m : work.k, b = work.n;
  s.family = hash({std::min(a, b), std::max(a, b), work.groups});
  s.shape = fmt::format("{}x{}x{}", work.m, work.n, work.k);
  if (work.groups > 1) s.shape = fmt::format("{} of {}", work.groups, s.shape);
}

void read_attention(const JsonValue& line, Sample& s) {
  Work& work = s.kernel.work;
  read_extents(line, attention_extents, work);
  if (work.heads % work.kv_heads != 0) line.at("kv_heads").fail("a divisor of heads");
  if (const auto window = line.find("window")) work.window = window->integer(0, 64 * million);
  work.causal = read_flag(line, "causal");
  // Lengths of one octave belong together; batches of any size do.
  const auto octave =
      static_cast<std::int64_t>(std::floor(std::log2(static_cast<double>(work.kv_length))));
  s.family = hash({work.heads, work.kv_heads, work.qk_dim, work.v_dim, octave});
  s.shape =
      fmt::format("b{} q{} kv{} h{}/{} d{}/{}{}", work.batch, work.q_length, work.kv_length,
                  work.heads, work.kv_heads, work.qk_dim, work.v_dim, work.causal ? " causal" : "");
}

// Sizes that lie within a fifth of each other are one family.
std::uint64_t size_family(double bytes) {
  return hash({std::llround(4 * std::log2(std::max(1.0, bytes)))});
}

void read_stream(const JsonValue& line, Sample& s) {
  Work& work = s.kernel.work;
  work.bytes_read = not_negative(line, "bytes_read");
  work.bytes_written = not_negative(line, "bytes_written");
  work.vector_flop = not_negative(line, "vector_flop");
  const double bytes = work.bytes_read + work.bytes_written;
  if (bytes <= 0) line.fail("bytes_read and bytes_written above zero together");
  // Streams count bytes: they have one curve whatever their elements are, that of bf16.
  work.input = work.output = Format::bf16;
  s.family = size_family(bytes);
  const auto shape = line.find("shape");
  s.shape = shape ? shape->text() : fmt::format("{:.4g} MB", bytes / 1e6);
}

// Kernels of no known library are taken for the kit's own.
Library library_of(const std::string& name, WorkKind kind) {
  if (const auto known = library_text.find(name)) return *known;
  if (name == "torch" || name == "pytorch") return Library::eager;
  if (name == "cudnn") return Library::cudnn_attention;
  if (kind == WorkKind::gemm) return Library::cublas;
  if (kind == WorkKind::grouped_gemm) return Library::grouped_gemm;
  return is_attention(kind) ? Library::flashinfer : Library::own;
}

void read_work(const JsonValue& line, Sample& s, WorkKind kind) {
  s.is_work = true;
  Work& work = s.kernel.work;
  work.kind = kind;
  s.kernel.library = library_of(s.library, kind);
  // cuDNN splits the keys of one query whose heads are grouped, and not those of several rows.
  if (s.kernel.library == Library::cudnn_attention && s.variant == "grouped-heads")
    s.kernel.library = Library::cudnn_split_keys;
  if (const auto input = line.find("input")) work.input = read_format(*input);
  if (const auto output = line.find("output")) work.output = read_format(*output);
  if (is_product(kind) || is_attention(kind)) line.at("input");
  if (is_product(kind))
    read_product(line, s);
  else if (is_attention(kind))
    read_attention(line, s);
  else
    read_stream(line, s);
}

void read_question(const JsonValue& line, Sample& s) {
  const auto bytes = line.find("bytes");
  std::int64_t word = 0;
  for (const char c : s.variant) word = word * 31 % 1000003 + static_cast<unsigned char>(c);
  s.family = bytes ? size_family(not_negative(line, "bytes")) : hash({word});
  if (!is_question(s.kind)) {  // a collective: a size is kept out for all groups and protocols
    const double octaves = std::log2(positive(line.at("bytes")));
    std::int64_t kind = 0;
    for (const char c : s.kind) kind = kind * 31 % 1000003 + static_cast<unsigned char>(c);
    s.family = hash({kind, std::llround(4 * octaves)});
    line.at("ranks").integer(1, million);
  }
  s.shape = bytes ? fmt::format("{:.4g} MB", bytes->number() / 1e6) : s.variant;
}

void read_times(const JsonValue& line, Sample& s) {
  if (!is_timed(s) && !line.find("time_us")) return;
  s.time = microseconds(microseconds_at(line.at("time_us")));
  s.low = s.high = s.time;
  if (const auto low = line.find("low_us")) s.low = microseconds(microseconds_at(*low));
  if (const auto high = line.find("high_us")) s.high = microseconds(microseconds_at(*high));
  // Six digits are written of each.
  if (s.low.si() > s.time.si() * (1 + 1e-5)) line.at("low_us").fail("at most time_us");
  if (s.high.si() < s.time.si() * (1 - 1e-5)) line.at("high_us").fail("at least time_us");
}

std::string text_or(const JsonValue& line, const char* key) {
  const auto at = line.find(key);
  return at ? at->text() : "";
}

int count_or(const JsonValue& line, const char* key) {
  const auto at = line.find(key);
  return at ? static_cast<int>(at->integer(0, 1000000000)) : 0;
}

std::vector<std::string> sample_kinds() {
  std::vector<std::string> names = work_kind_text.names();
  for (const std::string& name : collective_kind_text.names()) names.push_back(name);
  for (const char* name : questions) names.emplace_back(name);
  return names;
}

bool is_named_field(const std::string& key) {
  constexpr const char* fields[] = {
      "record",          "part",    "kind",         "library", "variant", "mode",
      "time_us",         "low_us",  "high_us",      "repeats", "calls",   "clock_before_mhz",
      "clock_after_mhz", "power_w", "temperature_c"};
  return std::find(std::begin(fields), std::end(fields), key) != std::end(fields);
}

Sample read_sample(const JsonValue& line, int conditions, const std::vector<std::string>& kinds) {
  Sample s;
  s.conditions = conditions;
  s.part = text_or(line, "part");
  s.kind = line.at("kind").one_of(kinds);
  s.library = text_or(line, "library");
  s.variant = text_or(line, "variant");
  s.mode = text_or(line, "mode");
  s.repeats = count_or(line, "repeats");
  s.calls = count_or(line, "calls");
  s.clock_before_mhz = not_negative(line, "clock_before_mhz");
  s.clock_after_mhz = not_negative(line, "clock_after_mhz");
  s.power_w = not_negative(line, "power_w");
  s.temperature_c = not_negative(line, "temperature_c");
  if (const auto work = work_kind_text.find(s.kind))
    read_work(line, s, *work);
  else
    read_question(line, s);
  read_times(line, s);
  for (const auto& [key, value] : line.members()) {
    if (is_named_field(key)) continue;
    if (value.is_number())
      s.numbers[key] = value.number();
    else if (value.raw().is_boolean())
      s.numbers[key] = value.boolean() ? 1 : 0;
    else if (value.is_string())
      s.texts[key] = value.text();
  }
  // What a question answers in watts or clocks is its number too.
  for (const char* key : {"power_w", "clock_before_mhz", "clock_after_mhz"})
    if (const auto at = line.find(key)) s.numbers[key] = at->number();
  return s;
}

RunConditions read_conditions(const JsonValue& line, const std::string& file) {
  RunConditions c;
  c.program = line.at("program").text();
  c.device = line.at("device").text();
  c.driver = text_or(line, "driver");
  c.cuda = text_or(line, "cuda");
  c.host = text_or(line, "host");
  c.date = text_or(line, "date");
  c.gpus = std::max(1, count_or(line, "gpus"));
  c.power_limit_w = not_negative(line, "power_limit_w");
  c.max_clock_mhz = not_negative(line, "max_clock_mhz");
  c.memory_clock_mhz = not_negative(line, "memory_clock_mhz");
  if (const auto libraries = line.find("libraries"))
    for (const auto& [name, version] : libraries->members()) c.libraries[name] = version.text();
  c.file = file;
  return c;
}

// `name`: what errors call the file.
void read_file(const std::filesystem::path& path, const std::string& name,
               const std::vector<std::string>& kinds, MeasuredLog& log) {
  std::error_code status;
  std::ifstream stream(path, std::ios::binary);
  if (!stream || std::filesystem::is_directory(path, status))
    throw Error({.file = path.string(),
                 .found = "nothing readable",
                 .expected = "a file of JSON lines (calibrate measure writes them)"});
  bool known = false;  // whether conditions stand before the sample
  std::string text;
  for (int number = 1; std::getline(stream, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const JsonValue line = JsonValue::parse(text, fmt::format("{}, line {}", name, number));
    const std::string record = line.at("record").one_of({"conditions", "sample"});
    if (record == "conditions") {
      log.conditions.push_back(read_conditions(line, name));
      known = true;
      continue;
    }
    if (!known) line.at("record").fail("conditions before the first sample");
    log.samples.push_back(read_sample(line, static_cast<int>(log.conditions.size()) - 1, kinds));
  }
}

// Those of the folder and of the folders in it (one for each machine or day), no deeper: nobody
// means a whole disk.
std::vector<std::filesystem::path> lines_in(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
    if (!entry.is_directory(status)) continue;
    for (const auto& inner : fs::directory_iterator(entry.path(), status))
      if (inner.path().extension() == ".jsonl") files.push_back(inner.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw Error({.file = folder.string(),
                 .found = "no *.jsonl",
                 .expected = "a folder that calibrate measure wrote"});
  return files;
}

}  // namespace

double Sample::number(const std::string& key) const {
  const auto found = numbers.find(key);
  if (found == numbers.end())
    throw Error({.file = fmt::format("a sample of {}", kind),
                 .path = key,
                 .found = "no such number",
                 .expected = "a line with it (" + shape + ")"});
  return found->second;
}

std::string Sample::text_or(const std::string& key, const std::string& other) const {
  const auto found = texts.find(key);
  return found == texts.end() ? other : found->second;
}

MeasuredLog read_measured_log(const std::vector<std::filesystem::path>& paths) {
  const std::vector<std::string> kinds = sample_kinds();
  MeasuredLog log;
  for (const auto& path : paths) {
    std::error_code status;
    if (!std::filesystem::is_directory(path, status)) {
      read_file(path, path.filename().string(), kinds, log);
      continue;
    }
    for (const auto& file : lines_in(path))
      read_file(file, file.lexically_relative(path).generic_string(), kinds, log);
  }
  if (!paths.empty() && log.conditions.empty())
    throw Error({.file = paths.front().string(),
                 .found = "no lines",
                 .expected = "lines that calibrate measure wrote"});
  return log;
}

std::filesystem::path measured_folder(const std::string& device) {
  return data_root() / "hw_models/calibration" / device / "measured";
}

std::string catalogue_device(const std::string& driver_name) {
  std::vector<std::string> known;
  std::string device, longest;
  for (const std::string& entry : catalog_names("hw_models/catalog/accelerators"))
    for (const std::string& name : driver_names_of(entry)) {
      known.push_back(name);
      const bool named = driver_name == name || driver_name.starts_with(name + " ");
      if (!named || name.size() <= longest.size()) continue;
      device = entry;
      longest = name;
    }
  if (!device.empty()) return device;
  std::sort(known.begin(), known.end());
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  throw Error({.file = "device",
               .found = in_quotes(driver_name),
               .expected = "one of " + list,
               .nearest = nearest_name(driver_name, known)});
}

bool is_cached(const Sample& sample) {
  return sample.variant.find("cache") != std::string::npos ||
         sample.variant.find("l2") != std::string::npos;
}

std::string bare_variant(const Sample& sample) {
  const std::string cached = "-cached";
  return sample.variant.ends_with(cached)
             ? sample.variant.substr(0, sample.variant.size() - cached.size())
             : sample.variant;
}

bool is_held_out(const Sample& sample) { return sample.family % 10 >= 7; }

}  // namespace orrery
