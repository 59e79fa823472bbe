// SPDX-License-Identifier: Apache-2.0
// Knows how to read tables of a stranger's SQLite file without being led astray.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::observe {

// One row: its columns in the order in which they were asked for.
class DatabaseRow {
 public:
  explicit DatabaseRow(void* statement) : statement_(statement) {}
  // Nothing where the column is null or missing.
  std::optional<std::int64_t> number(int column) const;
  std::optional<std::string> text(int column) const;

 private:
  void* statement_;
};

// A file that is opened to be read and never locked. Views and triggers of the file are not used.
class Database {
 public:
  // Error: a file that is no database.
  explicit Database(const std::filesystem::path& file);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  bool has(const std::string& table) const;
  // Whether the table has the column.
  bool has(const std::string& table, const std::string& column) const;
  // Calls `take` with each row. Columns that the table lacks read as null; no table, no rows.
  // `where` is a condition of ours, with no text of a user's in it. Error: a broken file.
  void each(const std::string& table, const std::vector<std::string>& columns,
            const std::string& where, const std::function<void(const DatabaseRow&)>& take) const;

 private:
  struct Handle;
  void run(const std::string& sql, const std::function<void(const DatabaseRow&)>& take) const;
  std::unique_ptr<Handle> handle_;
  std::string name_;
};

}  // namespace orrery::observe
