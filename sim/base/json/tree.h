// SPDX-License-Identifier: Apache-2.0
// Holds JSON in memory: values that are made, changed, compared and written as text.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace orrery {

template <class T>
concept JsonText = std::convertible_to<T, std::string_view>;

// One value with all that is in it. Members of an object stand by key (`sorted`), so that equal
// values are equal text, or in the order in which they came (`inserted`), as an answer is read.
// Asking a value for what it is not is a mistake of ours (CHECK); JsonValue reads what users wrote.
// References to a member or item hold until its object or array grows or shrinks.
enum class KeyOrder { sorted, inserted };

template <KeyOrder order>
class JsonTree {
 public:
  using Member = std::pair<std::string, JsonTree>;
  using Items = std::vector<JsonTree>;
  using Members = std::vector<Member>;
  class Part;  // of a list in braces
  template <class Tree, class MemberOfTree>
  class Iterator;
  using iterator = Iterator<JsonTree, Member>;
  using const_iterator = Iterator<const JsonTree, const Member>;

  JsonTree();  // null
  JsonTree(std::nullptr_t) : JsonTree() {}
  template <std::same_as<bool> T>
  JsonTree(T value) : JsonTree(Truth{value}) {}
  template <class T>
  requires(std::integral<T> && !std::same_as<T, bool>) JsonTree(T value)
      : JsonTree(Whole{static_cast<std::int64_t>(value), std::is_signed_v<T>}) {}
  JsonTree(double value);
  JsonTree(std::string value);
  template <JsonText T>
  requires(!std::same_as<std::remove_cvref_t<T>, std::string>) JsonTree(const T& value)
      : JsonTree(std::string(std::string_view(value))) {}
  // Pairs of a text and a value make an object, all else an array.
  JsonTree(std::initializer_list<Part> parts);
  // A list of what a value can be made of, or a map of texts to such.
  template <std::ranges::input_range R>
  requires(!JsonText<R> && !std::same_as<R, JsonTree> && !requires(R r) { r.dump(); })
      JsonTree(const R& range)
      : JsonTree() {
    take_range(range);
  }
  template <KeyOrder other>
  requires(other != order) JsonTree(const JsonTree<other>& tree);
  JsonTree(const JsonTree& tree);
  JsonTree(JsonTree&& tree) noexcept;
  JsonTree& operator=(JsonTree tree) noexcept;
  ~JsonTree();

  static JsonTree array();
  static JsonTree array(std::initializer_list<Part> parts);
  static JsonTree object();

  bool is_null() const { return value_.index() == 0; }
  bool is_boolean() const { return value_.index() == 1; }
  bool is_number_integer() const { return value_.index() == 2 || is_number_unsigned(); }
  bool is_number_unsigned() const { return value_.index() == 3; }
  bool is_number_float() const { return value_.index() == 4; }
  bool is_number() const { return is_number_integer() || is_number_float(); }
  bool is_string() const { return value_.index() == 5; }
  bool is_array() const { return value_.index() == 6; }
  bool is_object() const { return value_.index() == 7; }
  bool is_structured() const { return is_array() || is_object(); }

  // bool, whole numbers (of a number, without its fraction), double (of any number), std::string.
  template <class T>
  T get() const;
  const std::string& text() const;

  std::size_t size() const;  // of items or members; null has none, anything else is one
  bool empty() const { return size() == 0; }

  // Of objects. `[]` makes an object of null and a null member where there is none.
  bool contains(std::string_view key) const;
  iterator find(std::string_view key);
  const_iterator find(std::string_view key) const;
  JsonTree& at(std::string_view key);
  const JsonTree& at(std::string_view key) const;
  template <JsonText T>
  JsonTree& operator[](const T& key) {
    return member(key);
  }
  template <JsonText T>
  const JsonTree& operator[](const T& key) const {
    return at(key);
  }
  Members& items();
  const Members& items() const;
  bool erase(std::string_view key);  // whether it was there
  void update(const JsonTree& members);
  // Takes members in any order; false when two have the same key.
  bool take(Members members);

  // Of arrays. `push_back` makes an array of null.
  template <std::integral T>
  JsonTree& operator[](T index) {
    return item(static_cast<std::size_t>(index));
  }
  template <std::integral T>
  const JsonTree& operator[](T index) const {
    return item(static_cast<std::size_t>(index));
  }
  template <std::integral T>
  const JsonTree& at(T index) const {
    return item(static_cast<std::size_t>(index));
  }
  JsonTree& front() { return item(0); }
  const JsonTree& front() const { return item(0); }
  JsonTree& back() { return item(size() - 1); }
  const JsonTree& back() const { return item(size() - 1); }
  JsonTree& push_back(JsonTree value);
  Items& elements();
  const Items& elements() const;

  // The value below this one by keys and indices, "tiers/0/latency": null pointer where there is
  // none; `at_path` makes the members that are missing.
  const JsonTree* find_path(std::string_view path) const;
  JsonTree& at_path(std::string_view path);

  // The items of an array, the values of an object, nothing of null.
  iterator begin();
  iterator end();
  const_iterator begin() const;
  const_iterator end() const;

  // On one line, or with so many blanks a level. Bytes that are no UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;
  // Strictly, as JsonValue::parse.
  static JsonTree parse(std::string_view text);

  // Numbers are equal by value, whole or not.
  friend bool operator==(const JsonTree& a, const JsonTree& b) { return a.equals(b); }

 private:
  using Value = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string,
                             Items, Members>;
  struct Truth {
    bool value;
  };
  struct Whole {
    std::int64_t bits;
    bool is_signed;
  };
  explicit JsonTree(Truth value);
  explicit JsonTree(Whole value);

  bool equals(const JsonTree& other) const;
  bool as_boolean() const;
  std::int64_t as_integer() const;
  double as_double() const;
  JsonTree& member(std::string_view key);
  void take_range(const auto& range);
  JsonTree& item(std::size_t index);
  const JsonTree& item(std::size_t index) const;
  void write(std::string& out, int indent, int depth) const;

  Value value_;
};

// Questions and documents that were read.
using SortedJson = JsonTree<KeyOrder::sorted>;
// Answers.
using Json = JsonTree<KeyOrder::inserted>;

// Holds a value of a list in braces until the list is made: it is moved, not copied.
template <KeyOrder order>
class JsonTree<order>::Part {
 public:
  Part(std::initializer_list<Part> parts) : value_(parts) {}
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, Part> && std::convertible_to<T, JsonTree>)
      Part(T&& value)
      : value_(std::forward<T>(value)) {}
  JsonTree& value() const { return value_; }

 private:
  mutable JsonTree value_;
};

template <KeyOrder order>
template <class Tree, class MemberOfTree>
class JsonTree<order>::Iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = JsonTree;
  using difference_type = std::ptrdiff_t;
  using pointer = Tree*;
  using reference = Tree&;

  Iterator() = default;
  explicit Iterator(Tree* item) : item_(item) {}
  explicit Iterator(MemberOfTree* member) : member_(member) {}
  template <class OtherTree, class OtherMember>
  requires std::convertible_to<OtherTree*, Tree*> Iterator(
      const Iterator<OtherTree, OtherMember>& other)
      : item_(other.item_), member_(other.member_) {}

  const std::string& key() const { return member_->first; }
  Tree& value() const { return member_ ? member_->second : *item_; }
  Tree& operator*() const { return value(); }
  Tree* operator->() const { return &value(); }
  Iterator& operator++() {
    member_ ? static_cast<void>(++member_) : static_cast<void>(++item_);
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator&) const = default;

 private:
  template <class, class>
  friend class Iterator;
  Tree* item_ = nullptr;
  MemberOfTree* member_ = nullptr;
};

template <KeyOrder order>
void JsonTree<order>::take_range(const auto& range) {
  using R = std::remove_cvref_t<decltype(range)>;
  using Element = std::ranges::range_value_t<R>;
  if constexpr (requires { typename R::mapped_type; }) {
    *this = object();
    for (const auto& [key, value] : range) member(key) = JsonTree(value);
  } else {
    *this = array();
    for (const auto& value : range) push_back(JsonTree(static_cast<Element>(value)));
  }
}

template <KeyOrder order>
template <class T>
T JsonTree<order>::get() const {
  if constexpr (std::same_as<T, bool>)
    return as_boolean();
  else if constexpr (std::integral<T>)
    return static_cast<T>(as_integer());
  else if constexpr (std::floating_point<T>)
    return static_cast<T>(as_double());
  else
    return T(text());
}

extern template class JsonTree<KeyOrder::sorted>;
extern template class JsonTree<KeyOrder::inserted>;

}  // namespace orrery
