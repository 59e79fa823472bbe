// SPDX-License-Identifier: Apache-2.0
// Knows a table of typed columns, and how it leaves for Arrow without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/app/answer/columns.h"

namespace orrery {

// Values in Arrow's layout: a bit for each row says whether there is one.
class TableColumn {
 public:
  TableColumn(std::string name, ColumnKind kind);
  // A value of another kind, and null, is none.
  void add(const Json& value);

  const std::string& name() const { return name_; }
  ColumnKind kind() const { return kind_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t nulls() const { return nulls_; }
  bool has(std::int64_t row) const;
  // Of a column of that kind alone; what stands where there is none means nothing.
  const std::vector<double>& numbers() const { return numbers_; }
  const std::vector<std::int64_t>& wholes() const { return wholes_; }
  bool truth(std::int64_t row) const;
  std::string_view text(std::int64_t row) const;

  const char* arrow_format() const;
  std::vector<const void*> arrow_buffers() const;

 private:
  bool take(const Json& value);

  std::string name_;
  ColumnKind kind_;
  std::int64_t rows_ = 0, nulls_ = 0;
  std::vector<std::uint8_t> valid_, bits_;
  std::vector<double> numbers_;
  std::vector<std::int64_t> wholes_, offsets_;
  std::string bytes_;
};

struct AnswerTable {
  std::vector<TableColumn> columns;
  std::int64_t rows() const { return columns.empty() ? 0 : columns.front().rows(); }
};

struct ArrowArrayStream;
// The table as one batch; the stream keeps it alive.
void export_stream(const std::shared_ptr<const AnswerTable>& table, ArrowArrayStream& stream);

}  // namespace orrery
