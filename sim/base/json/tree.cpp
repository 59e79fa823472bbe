// SPDX-License-Identifier: Apache-2.0
// Makes, changes, compares and writes JSON in memory.
#include "sim/base/json/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "sim/base/errors/check.h"
#include "sim/base/json/parser.h"

namespace orrery {
namespace {

constexpr auto key_of = [](const auto& member) -> const std::string& { return member.first; };

// Where the member with this key stands, or would stand.
template <KeyOrder order, class Members>
auto place_of(Members& members, std::string_view key) {
  if constexpr (order == KeyOrder::sorted)
    return std::ranges::lower_bound(members, key, {}, key_of);
  else
    return std::ranges::find(members, key, key_of);
}

template <KeyOrder order, class Members>
auto member_of(Members& members, std::string_view key) {
  const auto at = place_of<order>(members, key);
  return at != members.end() && at->first == key ? at : members.end();
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; !path.empty() && at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Which item a part of a path names: none that there is where it is no number.
std::size_t index_of(std::string_view part) {
  std::size_t index = 0;
  const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  return error == std::errc() && rest == part.data() + part.size() ? index : SIZE_MAX;
}

}  // namespace

template <KeyOrder order>
JsonTree<order>::JsonTree() = default;
template <KeyOrder order>
JsonTree<order>::JsonTree(Truth value) : value_(value.value) {}
template <KeyOrder order>
JsonTree<order>::JsonTree(double value) : value_(value) {}
template <KeyOrder order>
JsonTree<order>::JsonTree(std::string value) : value_(std::move(value)) {}
template <KeyOrder order>
JsonTree<order>::JsonTree(Whole value) {
  if (value.is_signed)
    value_ = value.bits;
  else
    value_ = static_cast<std::uint64_t>(value.bits);
}
template <KeyOrder order>
JsonTree<order>::JsonTree(const JsonTree& tree) = default;
template <KeyOrder order>
JsonTree<order>::JsonTree(JsonTree&& tree) noexcept = default;
template <KeyOrder order>
JsonTree<order>& JsonTree<order>::operator=(JsonTree tree) noexcept {
  value_ = std::move(tree.value_);
  return *this;
}
template <KeyOrder order>
JsonTree<order>::~JsonTree() = default;

template <KeyOrder order>
JsonTree<order>::JsonTree(std::initializer_list<Part> parts) {
  const bool pairs = std::ranges::all_of(parts, [](const Part& part) {
    const JsonTree& v = part.value();
    return v.is_array() && v.size() == 2 && v[0].is_string();
  });
  if (!pairs) {
    *this = array(parts);
    return;
  }
  *this = object();
  for (const Part& part : parts) {
    Items& pair = part.value().elements();
    member(pair[0].text()) = std::move(pair[1]);
  }
}

template <KeyOrder order>
template <KeyOrder other>
requires(other != order) JsonTree<order>::JsonTree(const JsonTree<other>& tree) {
  if (tree.is_object()) {
    Members members;
    for (const auto& [key, value] : tree.items()) members.emplace_back(key, value);
    take(std::move(members));
  } else if (tree.is_array()) {
    value_ = Items(tree.begin(), tree.end());
  } else if (tree.is_string()) {
    value_ = tree.text();
  } else if (tree.is_number_float()) {
    value_ = tree.template get<double>();
  } else if (tree.is_number_unsigned()) {
    value_ = tree.template get<std::uint64_t>();
  } else if (tree.is_number()) {
    value_ = tree.template get<std::int64_t>();
  } else if (tree.is_boolean()) {
    value_ = tree.template get<bool>();
  }
}

template <KeyOrder order>
JsonTree<order> JsonTree<order>::array() {
  JsonTree tree;
  tree.value_ = Items();
  return tree;
}

template <KeyOrder order>
JsonTree<order> JsonTree<order>::array(std::initializer_list<Part> parts) {
  JsonTree tree = array();
  for (const Part& part : parts) tree.push_back(std::move(part.value()));
  return tree;
}

template <KeyOrder order>
JsonTree<order> JsonTree<order>::object() {
  JsonTree tree;
  tree.value_ = Members();
  return tree;
}

template <KeyOrder order>
bool JsonTree<order>::as_boolean() const {
  CHECK_THAT(is_boolean(), "a JSON value that is asked for true or false is one");
  return std::get<bool>(value_);
}

template <KeyOrder order>
std::int64_t JsonTree<order>::as_integer() const {
  CHECK_THAT(is_number(), "a JSON value that is asked for a number is one");
  if (is_number_float()) return static_cast<std::int64_t>(std::get<double>(value_));
  if (is_number_unsigned()) return static_cast<std::int64_t>(std::get<std::uint64_t>(value_));
  return std::get<std::int64_t>(value_);
}

template <KeyOrder order>
double JsonTree<order>::as_double() const {
  CHECK_THAT(is_number(), "a JSON value that is asked for a number is one");
  if (is_number_float()) return std::get<double>(value_);
  if (is_number_unsigned()) return static_cast<double>(std::get<std::uint64_t>(value_));
  return static_cast<double>(std::get<std::int64_t>(value_));
}

template <KeyOrder order>
const std::string& JsonTree<order>::text() const {
  CHECK_THAT(is_string(), "a JSON value that is asked for text is text");
  return std::get<std::string>(value_);
}

template <KeyOrder order>
std::size_t JsonTree<order>::size() const {
  if (is_array()) return elements().size();
  if (is_object()) return items().size();
  return is_null() ? 0 : 1;
}

template <KeyOrder order>
typename JsonTree<order>::Members& JsonTree<order>::items() {
  CHECK_THAT(is_object(), "a JSON value that is asked for members is an object");
  return std::get<Members>(value_);
}
template <KeyOrder order>
const typename JsonTree<order>::Members& JsonTree<order>::items() const {
  CHECK_THAT(is_object(), "a JSON value that is asked for members is an object");
  return std::get<Members>(value_);
}
template <KeyOrder order>
typename JsonTree<order>::Items& JsonTree<order>::elements() {
  CHECK_THAT(is_array(), "a JSON value that is asked for items is an array");
  return std::get<Items>(value_);
}
template <KeyOrder order>
const typename JsonTree<order>::Items& JsonTree<order>::elements() const {
  CHECK_THAT(is_array(), "a JSON value that is asked for items is an array");
  return std::get<Items>(value_);
}

template <KeyOrder order>
bool JsonTree<order>::contains(std::string_view key) const {
  return find(key) != end();
}

template <KeyOrder order>
typename JsonTree<order>::iterator JsonTree<order>::find(std::string_view key) {
  if (!is_object()) return end();
  Members& members = items();
  return iterator(members.data() + (member_of<order>(members, key) - members.begin()));
}
template <KeyOrder order>
typename JsonTree<order>::const_iterator JsonTree<order>::find(std::string_view key) const {
  if (!is_object()) return end();
  const Members& members = items();
  return const_iterator(members.data() + (member_of<order>(members, key) - members.begin()));
}

template <KeyOrder order>
JsonTree<order>& JsonTree<order>::at(std::string_view key) {
  const iterator found = find(key);
  CHECK_THAT(found != end(), fmt::format("a JSON object has the key {}", key));
  return *found;
}
template <KeyOrder order>
const JsonTree<order>& JsonTree<order>::at(std::string_view key) const {
  const const_iterator found = find(key);
  CHECK_THAT(found != end(), fmt::format("a JSON object has the key {}", key));
  return *found;
}

template <KeyOrder order>
JsonTree<order>& JsonTree<order>::member(std::string_view key) {
  if (is_null()) value_ = Members();
  Members& members = items();
  const auto at = place_of<order>(members, key);
  if (at != members.end() && at->first == key) return at->second;
  return members.emplace(at, std::string(key), JsonTree())->second;
}

template <KeyOrder order>
bool JsonTree<order>::erase(std::string_view key) {
  Members& members = items();
  const auto at = member_of<order>(members, key);
  if (at == members.end()) return false;
  members.erase(at);
  return true;
}

template <KeyOrder order>
void JsonTree<order>::update(const JsonTree& members) {
  if (is_null()) value_ = Members();
  for (const auto& [key, value] : members.items()) member(key) = value;
}

template <KeyOrder order>
bool JsonTree<order>::take(Members members) {
  bool unique = true;
  if constexpr (order == KeyOrder::sorted) {
    if (!std::ranges::is_sorted(members, {}, key_of)) std::ranges::sort(members, {}, key_of);
    unique = std::ranges::adjacent_find(members, {}, key_of) == members.end();
  } else {
    std::vector<std::string_view> keys;
    for (const Member& m : members) keys.push_back(m.first);
    std::ranges::sort(keys);
    unique = std::ranges::adjacent_find(keys) == keys.end();
  }
  value_ = std::move(members);
  return unique;
}

template <KeyOrder order>
JsonTree<order>& JsonTree<order>::item(std::size_t index) {
  CHECK_THAT(is_array() && index < size(), "an item of a JSON array is there");
  return elements()[index];
}
template <KeyOrder order>
const JsonTree<order>& JsonTree<order>::item(std::size_t index) const {
  CHECK_THAT(is_array() && index < size(), "an item of a JSON array is there");
  return elements()[index];
}

template <KeyOrder order>
JsonTree<order>& JsonTree<order>::push_back(JsonTree value) {
  if (is_null()) value_ = Items();
  return elements().emplace_back(std::move(value));
}

template <KeyOrder order>
const JsonTree<order>* JsonTree<order>::find_path(std::string_view path) const {
  const JsonTree* at = this;
  for (const std::string_view part : parts_of(path)) {
    const std::size_t index = at->is_array() ? index_of(part) : 0;
    const const_iterator found = at->find(part);
    if (at->is_array() ? index >= at->size() : found == at->end()) return nullptr;
    at = at->is_array() ? &at->item(index) : &*found;
  }
  return at;
}

template <KeyOrder order>
JsonTree<order>& JsonTree<order>::at_path(std::string_view path) {
  JsonTree* at = this;
  for (const std::string_view part : parts_of(path))
    at = at->is_array() ? &at->item(index_of(part)) : &at->member(part);
  return *at;
}

template <KeyOrder order>
typename JsonTree<order>::iterator JsonTree<order>::begin() {
  if (is_object()) return iterator(items().data());
  return is_array() ? iterator(elements().data()) : iterator();
}
template <KeyOrder order>
typename JsonTree<order>::iterator JsonTree<order>::end() {
  if (is_object()) return iterator(items().data() + items().size());
  return is_array() ? iterator(elements().data() + elements().size()) : iterator();
}
template <KeyOrder order>
typename JsonTree<order>::const_iterator JsonTree<order>::begin() const {
  if (is_object()) return const_iterator(items().data());
  return is_array() ? const_iterator(elements().data()) : const_iterator();
}
template <KeyOrder order>
typename JsonTree<order>::const_iterator JsonTree<order>::end() const {
  if (is_object()) return const_iterator(items().data() + items().size());
  return is_array() ? const_iterator(elements().data() + elements().size()) : const_iterator();
}

template <KeyOrder order>
bool JsonTree<order>::equals(const JsonTree& other) const {
  if (!is_number() || !other.is_number()) return value_ == other.value_;
  if (is_number_float() || other.is_number_float()) return as_double() == other.as_double();
  // A whole number with a sign and one without are the same bits where both are small enough.
  return as_integer() == other.as_integer() &&
         (value_.index() == other.value_.index() || as_integer() >= 0);
}

template <KeyOrder order>
void JsonTree<order>::write(std::string& out, int indent, int depth) const {
  const auto line = [&](int level) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(level), ' ');
  };
  const auto all = [&](char open, char close, const auto& parts, const auto& write_part) {
    out += open;
    bool first = true;
    for (const auto& part : parts) {
      if (!first) out += ',';
      first = false;
      line(depth + 1);
      write_part(part);
    }
    if (!first) line(depth);
    out += close;
  };
  if (is_object())
    all('{', '}', items(), [&](const Member& m) {
      append_json_text(out, m.first);
      out += indent < 0 ? ":" : ": ";
      m.second.write(out, indent, depth + 1);
    });
  else if (is_array())
    all('[', ']', elements(), [&](const JsonTree& v) { v.write(out, indent, depth + 1); });
  else if (is_string())
    append_json_text(out, text());
  else if (is_number_float())
    append_json_number(out, as_double());
  else if (is_number_unsigned())
    fmt::format_to(std::back_inserter(out), "{}", std::get<std::uint64_t>(value_));
  else if (is_number())
    fmt::format_to(std::back_inserter(out), "{}", std::get<std::int64_t>(value_));
  else
    out += is_null() ? "null" : as_boolean() ? "true" : "false";
}

template <KeyOrder order>
std::string JsonTree<order>::dump(int indent) const {
  std::string out;
  write(out, indent, 0);
  return out;
}

template <KeyOrder order>
JsonTree<order> JsonTree<order>::parse(std::string_view text) {
  if constexpr (order == KeyOrder::sorted)
    return parse_json(text, "");
  else
    return parse_in_order(text, "");
}

template class JsonTree<KeyOrder::sorted>;
template class JsonTree<KeyOrder::inserted>;
template JsonTree<KeyOrder::sorted>::JsonTree(const JsonTree<KeyOrder::inserted>& tree);
template JsonTree<KeyOrder::inserted>::JsonTree(const JsonTree<KeyOrder::sorted>& tree);

}  // namespace orrery
