// SPDX-License-Identifier: Apache-2.0
// Writes and reads messages of traces, one after the other.
#include "sim/chakra/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include <execution_trace.pb.h>

#include "sim/base/errors/check.h"
#include "sim/base/errors/file_guard.h"
#include "sim/base/json/json.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

// The release of the schema, as its own generator writes it (src/generator/generator.py).
constexpr const char* schema_version = "0.0.4";
constexpr const char* domain_attribute = "ranks_per_domain";  // ours: others skip it
constexpr std::uintmax_t most_file_bytes = UINT64_C(1) << 31;
constexpr double most_bytes = 1e18, most_operations = 1e24;
constexpr std::uint64_t most_micros = 9'000'000'000'000;  // 104 days

void append_message(std::string& out, const google::protobuf::MessageLite& message) {
  const std::string bytes = message.SerializeAsString();
  std::size_t left = bytes.size();
  for (; left >= 0x80; left >>= 7) out += static_cast<char>((left & 0x7f) | 0x80);
  out += static_cast<char>(left);
  out += bytes;
}

chakra::AttributeProto& add_attribute(chakra::Node& node, const char* name) {
  chakra::AttributeProto& attribute = *node.add_attr();
  attribute.set_name(name);
  return attribute;
}

// The types of values are those of Chakra's own generator.
void add_communication(chakra::Node& node, const TraceNode& from) {
  add_attribute(node, "comm_size").set_int64_val(std::llround(from.bytes));
  if (from.type == TraceNodeType::collective) {
    add_attribute(node, "comm_type").set_int64_val(static_cast<std::int64_t>(from.collective));
    if (!from.group.empty()) add_attribute(node, "pg_name").set_string_val(from.group);
    return;
  }
  const bool sends = from.type == TraceNodeType::send;
  add_attribute(node, sends ? "comm_dst" : "comm_src")
      .set_int32_val(static_cast<std::int32_t>(from.peer));
  add_attribute(node, "comm_tag").set_int32_val(static_cast<std::int32_t>(from.tag));
}

bool communicates(TraceNodeType type) { return type >= TraceNodeType::send; }

// Where a message stands, for errors.
struct Place {
  const std::string& file;
  std::string node;

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw Error({.file = file, .path = node, .found = found, .expected = expected});
  }
};

double number_of(const chakra::AttributeProto& a, const Place& place) {
  using A = chakra::AttributeProto;
  switch (a.value_case()) {
    case A::kDoubleVal:
      return a.double_val();
    case A::kFloatVal:
      return static_cast<double>(a.float_val());
    case A::kInt32Val:
      return a.int32_val();
    case A::kInt64Val:
      return static_cast<double>(a.int64_val());
    case A::kUint32Val:
      return a.uint32_val();
    case A::kUint64Val:
      return static_cast<double>(a.uint64_val());
    case A::kSint32Val:
      return a.sint32_val();
    case A::kSint64Val:
      return static_cast<double>(a.sint64_val());
    case A::kFixed32Val:
      return a.fixed32_val();
    case A::kFixed64Val:
      return static_cast<double>(a.fixed64_val());
    case A::kSfixed32Val:
      return a.sfixed32_val();
    case A::kSfixed64Val:
      return static_cast<double>(a.sfixed64_val());
    case A::kBoolVal:
      return a.bool_val() ? 1 : 0;
    default:
      place.fail(in_quotes(a.name()) + " without a number", "a number");
  }
}

double number_within(const chakra::AttributeProto& a, double most, const Place& place) {
  const double value = number_of(a, place);
  if (!(value >= 0 && value <= most))
    place.fail(fmt::format("{} {:g}", a.name(), value), fmt::format("0 to {:g}", most));
  return value;
}

std::int64_t whole_within(const chakra::AttributeProto& a, double most, const Place& place) {
  return std::llround(number_within(a, most, place));
}

void read_attribute(const chakra::AttributeProto& a, const Place& place, TraceNode& node) {
  constexpr double most_whole = 4294967295.0;
  const std::string& name = a.name();
  if (name == "is_cpu_op") {
    node.on_host = number_of(a, place) != 0;
  } else if (name == "num_ops") {
    node.operations = number_within(a, most_operations, place);
  } else if (name == "tensor_size") {
    node.tensor_bytes = number_within(a, most_bytes, place);
  } else if (name == "comm_size") {
    node.bytes = number_within(a, most_bytes, place);
  } else if (name == "comm_type") {
    const double last = trace_collective_text.count - 1;
    node.collective = static_cast<TraceCollective>(whole_within(a, last, place));
  } else if (name == "comm_src") {
    if (node.type == TraceNodeType::receive) node.peer = whole_within(a, most_whole, place);
  } else if (name == "comm_dst") {
    if (node.type == TraceNodeType::send) node.peer = whole_within(a, most_whole, place);
  } else if (name == "comm_tag") {
    node.tag = whole_within(a, most_whole, place);
  } else if (name == "pg_name") {
    node.group = a.string_val();
  } else if (name == "involved_dim") {
    for (const bool involved : a.bool_list().values())
      if (!involved)
        place.fail("involved_dim with a dimension left out",
                   "pg_name and a file of groups (--comm-group)");
  }
}

TraceNode node_of(const chakra::Node& from, const std::string& file) {
  const Place place{file, fmt::format("node {} {}", from.id(), in_quotes(from.name()))};
  TraceNode node{.id = from.id(), .name = from.name()};
  if (from.type() < 0 || from.type() >= static_cast<int>(trace_node_text.count))
    place.fail(fmt::format("type {}", static_cast<int>(from.type())),
               fmt::format("0 to {}, as release {} of the schema has them",
                           trace_node_text.count - 1, schema_version));
  node.type = static_cast<TraceNodeType>(from.type());
  if (from.duration_micros() > most_micros)
    place.fail(fmt::format("duration_micros {}", from.duration_micros()),
               fmt::format("at most {}", most_micros));
  node.micros = from.duration_micros();
  for (const chakra::AttributeProto& a : from.attr()) read_attribute(a, place, node);
  if (node.type == TraceNodeType::metadata) node.inputs = from.inputs().values();
  node.after.assign(from.ctrl_deps().begin(), from.ctrl_deps().end());
  node.after.insert(node.after.end(), from.data_deps().begin(), from.data_deps().end());
  const bool pairs = node.type == TraceNodeType::send || node.type == TraceNodeType::receive;
  if (pairs && node.peer < 0)
    place.fail("nothing",
               node.type == TraceNodeType::send ? "comm_dst, a rank" : "comm_src, a rank");
  return node;
}

// The messages of a file, one after the other.
class Messages {
 public:
  Messages(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}
  bool left() const { return at_ < bytes_.size(); }

  template <class Message>
  Message next(const char* what) {
    const std::size_t start = at_;
    const std::uint64_t size = length();
    const Place place{file_, fmt::format("byte {}", start)};
    if (size > bytes_.size() - at_)
      place.fail(fmt::format("a message of {} bytes where {} are left", size, bytes_.size() - at_),
                 "whole messages with their length before them");
    Message message;
    if (!message.ParseFromArray(bytes_.data() + at_, static_cast<int>(size)))
      place.fail("bytes that are no message", what);
    at_ += size;
    return message;
  }

 private:
  std::uint64_t length() {
    const std::size_t start = at_;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 35 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    Place{file_, fmt::format("byte {}", start)}.fail("no length of a message",
                                                     "one, then the message");
  }

  std::string_view bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
};

std::string bytes_of(const std::filesystem::path& file) {
  check_file_allowed(file);
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(file, failed);
  std::ifstream stream(file, std::ios::binary);
  if (failed || !stream)
    throw Error({.file = file.string(), .found = "no such file", .expected = "a trace"});
  if (size > most_file_bytes)
    throw Error({.file = file.string(),
                 .found = fmt::format("{} bytes", size),
                 .expected = fmt::format("at most {}", most_file_bytes)});
  std::string bytes(size, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  return bytes;
}

RankTrace rank_of(const std::filesystem::path& file, std::int64_t& ranks_per_domain) {
  RankTrace out{.file = file.string()};
  const std::string bytes = bytes_of(file);
  Messages messages(bytes, out.file);
  if (!messages.left()) Place{out.file, ""}.fail("an empty file", "a trace");
  const auto head = messages.next<chakra::GlobalMetadata>("GlobalMetadata");
  const Place place{out.file, "GlobalMetadata"};
  for (const chakra::AttributeProto& a : head.attr())
    if (a.name() == domain_attribute) ranks_per_domain = whole_within(a, 1e6, place);
  while (messages.left()) {
    out.nodes.push_back(node_of(messages.next<chakra::Node>("a Node"), out.file));
    if (out.nodes.size() > most_trace_nodes)
      place.fail("too many nodes", fmt::format("at most {}", most_trace_nodes));
  }
  return out;
}

struct NamedFile {
  std::string name;
  std::int64_t rank = 0;
  std::filesystem::path file;
};

// NAME.RANK.et; nullopt: not so.
std::optional<NamedFile> named_file(const std::filesystem::path& file) {
  const std::string text = file.filename().string();
  if (!text.ends_with(".et")) return std::nullopt;
  const std::string stem = text.substr(0, text.size() - 3);
  const std::size_t dot = stem.rfind('.');
  if (dot == std::string::npos || dot + 1 == stem.size() || stem.size() - dot > 9)
    return std::nullopt;
  std::int64_t rank = 0;
  for (std::size_t i = dot + 1; i < stem.size(); ++i) {
    if (stem[i] < '0' || stem[i] > '9') return std::nullopt;
    rank = 10 * rank + (stem[i] - '0');
  }
  return NamedFile{.name = stem.substr(0, dot), .rank = rank, .file = file};
}

std::vector<NamedFile> files_of(const std::vector<std::filesystem::path>& places) {
  std::vector<NamedFile> files;
  const auto take = [&](const std::filesystem::path& file, bool must) {
    if (const auto named = named_file(file))
      files.push_back(*named);
    else if (must)
      throw Error({.file = file.string(), .found = "that name", .expected = "NAME.RANK.et"});
  };
  for (const std::filesystem::path& place : places) {
    check_file_allowed(place);
    std::error_code failed;
    if (!std::filesystem::exists(place, failed))
      throw Error({.file = place.string(),
                   .found = "no such file or folder",
                   .expected = "traces, NAME.RANK.et"});
    if (!std::filesystem::is_directory(place, failed)) {
      take(place, true);
      continue;
    }
    const std::size_t before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(place, failed))
      take(entry.path(), false);
    if (files.size() == before)
      throw Error({.file = place.string(), .found = "no NAME.RANK.et", .expected = "traces"});
  }
  std::sort(files.begin(), files.end(),
            [](const NamedFile& a, const NamedFile& b) { return a.rank < b.rank; });
  return files;
}

// One for each rank, of one name.
void check_ranks(const std::vector<NamedFile>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const NamedFile& f = files[i];
    if (f.name != files.front().name)
      throw Error({.file = f.file.string(),
                   .found = "another name than " + in_quotes(files.front().name),
                   .expected = "the ranks of one trace"});
    if (f.rank == static_cast<std::int64_t>(i)) continue;
    if (i > 0 && f.rank == files[i - 1].rank)
      throw Error({.file = f.file.string(),
                   .found = fmt::format("rank {} a second time", f.rank),
                   .expected = "one file for each rank"});
    throw Error({.file = f.file.string(),
                 .found = fmt::format("no file of rank {}", i),
                 .expected = fmt::format("{}.{}.et beside it: every rank from 0 on", f.name, i)});
  }
}

std::vector<TraceGroup> groups_of(const JsonValue& file, std::size_t ranks) {
  std::vector<TraceGroup> groups;
  for (const auto& [name, list] : file.members()) {
    TraceGroup group{.name = name};
    std::set<std::int64_t> seen;
    for (const JsonValue& rank : list.items()) {
      group.ranks.push_back(rank.integer(0, static_cast<std::int64_t>(ranks) - 1));
      if (!seen.insert(group.ranks.back()).second) rank.fail("each rank once");
    }
    if (group.ranks.empty()) list.fail("a list of ranks");
    groups.push_back(std::move(group));
  }
  return groups;
}

// Groups as PyTorch's traces have them, in a metadata node: "['[{"pg_name": "0", "ranks": [0,
// 1]}]']", where no ranks are all ranks. Each rank knows its own groups.
void add_groups_inside(const RankTrace& trace, std::size_t ranks, std::vector<TraceGroup>& groups) {
  for (const TraceNode& node : trace.nodes) {
    const std::size_t begin = node.inputs.find("[{"), end = node.inputs.rfind("}]");
    if (node.inputs.find("pg_name") == std::string::npos || begin == std::string::npos ||
        end == std::string::npos || end < begin)
      continue;
    const std::string place = fmt::format("{}: node {}", trace.file, node.id);
    const JsonValue list = JsonValue::parse(node.inputs.substr(begin, end + 2 - begin), place);
    for (const JsonValue& group : list.items()) {
      const std::string name = group.at("pg_name").text();
      const auto known = std::find_if(groups.begin(), groups.end(),
                                      [&](const TraceGroup& g) { return g.name == name; });
      TraceGroup own{.name = name};
      for (const JsonValue& rank : group.at("ranks").items())
        own.ranks.push_back(rank.integer(0, static_cast<std::int64_t>(ranks) - 1));
      if (own.ranks.empty())
        for (std::size_t rank = 0; rank < ranks; ++rank)
          own.ranks.push_back(static_cast<std::int64_t>(rank));
      if (known == groups.end())
        groups.push_back(std::move(own));
      else if (known->ranks != own.ranks)
        group.fail(fmt::format("the ranks that other traces give group {}", in_quotes(name)));
    }
  }
}

// What the library would print, an Error says.
void keep_library_silent() { google::protobuf::SetLogHandler(nullptr); }

}  // namespace

std::string trace_bytes(const std::vector<TraceNode>& nodes, std::int64_t ranks_per_domain) {
  std::string out;
  chakra::GlobalMetadata head;
  head.set_version(schema_version);
  if (ranks_per_domain > 0) {
    chakra::AttributeProto& domain = *head.add_attr();
    domain.set_name(domain_attribute);
    domain.set_int64_val(ranks_per_domain);
  }
  append_message(out, head);
  for (const TraceNode& from : nodes) {
    chakra::Node node;
    node.set_id(from.id);
    node.set_name(from.name);
    node.set_type(static_cast<chakra::NodeType>(from.type));
    node.mutable_data_deps()->Add(from.after.begin(), from.after.end());
    node.set_duration_micros(from.micros);
    add_attribute(node, "is_cpu_op").set_bool_val(from.on_host);
    if (communicates(from.type)) add_communication(node, from);
    append_message(out, node);
  }
  return out;
}

std::string trace_groups_text(const std::vector<TraceGroup>& groups) {
  SortedJson out = SortedJson::object();
  for (const TraceGroup& group : groups) out[group.name] = group.ranks;
  return out.dump() + "\n";
}

Traces read_traces(const std::vector<std::filesystem::path>& places,
                   const std::filesystem::path& groups) {
  keep_library_silent();
  const std::vector<NamedFile> files = files_of(places);
  if (files.empty()) throw Error({.found = "no file", .expected = "a folder or files of traces"});
  check_ranks(files);
  Traces out;
  std::size_t nodes = 0;
  for (const NamedFile& file : files) {
    out.ranks.push_back(rank_of(file.file, out.ranks_per_domain));
    nodes += out.ranks.back().nodes.size();
    if (nodes > most_trace_nodes)
      throw Error({.file = out.ranks.back().file,
                   .found = "more nodes in all",
                   .expected = fmt::format("at most {}", most_trace_nodes)});
  }
  std::filesystem::path group_file = groups;
  if (group_file.empty()) {
    const std::filesystem::path beside = files.front().file.parent_path() / trace_groups_name;
    std::error_code failed;
    if (std::filesystem::exists(beside, failed)) group_file = beside;
  }
  if (group_file.empty()) {
    for (const RankTrace& rank : out.ranks) add_groups_inside(rank, out.ranks.size(), out.groups);
    return out;
  }
  check_file_allowed(group_file);
  out.groups_file = group_file.string();
  out.groups = groups_of(JsonValue::load(group_file), out.ranks.size());
  return out;
}

}  // namespace orrery
