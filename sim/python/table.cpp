// SPDX-License-Identifier: Apache-2.0
// Fills columns in Arrow's layout and hands them over.
#include "sim/python/table.h"

#include <utility>

#include "sim/python/arrow.h"

namespace orrery {
namespace {

void set_bit(std::vector<std::uint8_t>& bits, std::int64_t row, bool value) {
  const auto byte = static_cast<std::size_t>(row / 8);
  if (bits.size() <= byte) bits.resize(byte + 1, 0);
  if (value) bits[byte] = static_cast<std::uint8_t>(bits[byte] | (1U << (row % 8)));
}

bool bit(const std::vector<std::uint8_t>& bits, std::int64_t row) {
  return ((bits[static_cast<std::size_t>(row / 8)] >> (row % 8)) & 1U) != 0;
}

using SharedTable = std::shared_ptr<const AnswerTable>;

// What an exported schema or array owns: its children, its list of buffers, and the table behind
// both. A consumer may move a child away, so each holds the table itself.
template <class Exported>
struct Holding {
  SharedTable table;
  std::vector<Exported> children = {};
  std::vector<Exported*> pointers = {};
  std::vector<const void*> buffers = {};
};

template <class Exported>
void release(Exported* exported) {
  const std::unique_ptr<Holding<Exported>> holding(
      static_cast<Holding<Exported>*>(exported->private_data));
  for (Exported& child : holding->children)
    if (child.release != nullptr) child.release(&child);
  exported->release = nullptr;
}

// Gives the children that `held` has to `out`, which owns it from now on.
template <class Exported>
void own(Exported& out, std::unique_ptr<Holding<Exported>> held) {
  for (Exported& child : held->children) held->pointers.push_back(&child);
  out.n_children = static_cast<std::int64_t>(held->children.size());
  out.children = held->pointers.empty() ? nullptr : held->pointers.data();
  out.release = release<Exported>;
  out.private_data = held.release();
}

void export_schema(const SharedTable& table, ArrowSchema& out) {
  auto whole = std::make_unique<Holding<ArrowSchema>>(Holding<ArrowSchema>{.table = table});
  for (const TableColumn& column : table->columns) {
    ArrowSchema child{
        .format = column.arrow_format(), .name = column.name().c_str(), .flags = arrow_nullable};
    own(child, std::make_unique<Holding<ArrowSchema>>(Holding<ArrowSchema>{.table = table}));
    whole->children.push_back(child);
  }
  out = {.format = "+s", .name = ""};
  own(out, std::move(whole));
}

void export_array(const SharedTable& table, ArrowArray& out) {
  const auto array_of = [&](ArrowArray& array, std::unique_ptr<Holding<ArrowArray>> held) {
    array.length = table->rows();
    array.n_buffers = static_cast<std::int64_t>(held->buffers.size());
    array.buffers = held->buffers.data();
    own(array, std::move(held));
  };
  auto whole = std::make_unique<Holding<ArrowArray>>(
      Holding<ArrowArray>{.table = table, .buffers = {nullptr}});
  for (const TableColumn& column : table->columns) {
    ArrowArray child{.null_count = column.nulls()};
    array_of(child, std::make_unique<Holding<ArrowArray>>(
                        Holding<ArrowArray>{.table = table, .buffers = column.arrow_buffers()}));
    whole->children.push_back(child);
  }
  out = {};
  array_of(out, std::move(whole));
}

struct Streaming {
  SharedTable table;
  bool sent = false;
};

Streaming& streaming(ArrowArrayStream* stream) {
  return *static_cast<Streaming*>(stream->private_data);
}

}  // namespace

TableColumn::TableColumn(std::string name, ColumnKind kind) : name_(std::move(name)), kind_(kind) {
  if (kind_ == ColumnKind::text) offsets_.push_back(0);
}

bool TableColumn::take(const Json& value) {
  switch (kind_) {
    case ColumnKind::number:
      if (!value.is_number()) return false;
      numbers_.back() = value.get<double>();
      return true;
    case ColumnKind::whole:
      if (!value.is_number_integer()) return false;
      wholes_.back() = value.get<std::int64_t>();
      return true;
    case ColumnKind::truth:
      if (!value.is_boolean()) return false;
      set_bit(bits_, rows_, value.get<bool>());
      return true;
    case ColumnKind::text:
      if (value.is_null()) return false;
      bytes_ += flat_text(value);
      offsets_.back() = static_cast<std::int64_t>(bytes_.size());
      return true;
  }
  return false;
}

void TableColumn::add(const Json& value) {
  if (kind_ == ColumnKind::number) numbers_.push_back(0);
  if (kind_ == ColumnKind::whole) wholes_.push_back(0);
  if (kind_ == ColumnKind::truth) set_bit(bits_, rows_, false);
  if (kind_ == ColumnKind::text) offsets_.push_back(offsets_.back());
  const bool there = take(value);
  set_bit(valid_, rows_, there);
  nulls_ += there ? 0 : 1;
  ++rows_;
}

bool TableColumn::has(std::int64_t row) const { return bit(valid_, row); }
bool TableColumn::truth(std::int64_t row) const { return bit(bits_, row); }

std::string_view TableColumn::text(std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  const auto from = static_cast<std::size_t>(offsets_[at]);
  return std::string_view(bytes_).substr(from, static_cast<std::size_t>(offsets_[at + 1]) - from);
}

const char* TableColumn::arrow_format() const {
  switch (kind_) {
    case ColumnKind::whole:
      return "l";
    case ColumnKind::number:
      return "g";
    case ColumnKind::truth:
      return "b";
    case ColumnKind::text:
      return "U";
  }
  return "n";
}

std::vector<const void*> TableColumn::arrow_buffers() const {
  switch (kind_) {
    case ColumnKind::whole:
      return {valid_.data(), wholes_.data()};
    case ColumnKind::number:
      return {valid_.data(), numbers_.data()};
    case ColumnKind::truth:
      return {valid_.data(), bits_.data()};
    case ColumnKind::text:
      return {valid_.data(), offsets_.data(), bytes_.data()};
  }
  return {};
}

void export_stream(const std::shared_ptr<const AnswerTable>& table, ArrowArrayStream& stream) {
  stream = {.get_schema =
                [](ArrowArrayStream* self, ArrowSchema* out) {
                  export_schema(streaming(self).table, *out);
                  return 0;
                },
            .get_next =
                [](ArrowArrayStream* self, ArrowArray* out) {
                  if (streaming(self).sent)
                    *out = {};
                  else
                    export_array(streaming(self).table, *out);
                  streaming(self).sent = true;
                  return 0;
                },
            .get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; },
            .release =
                [](ArrowArrayStream* self) {
                  delete &streaming(self);
                  self->release = nullptr;
                },
            .private_data = new Streaming{.table = table}};
}

}  // namespace orrery
