// SPDX-License-Identifier: Apache-2.0
// Reads tables with SQLite: read only, immutable, with limits.
#include "sim/observe/profile/database.h"

#include <sqlite3.h>

#include "sim/base/errors/check.h"
#include "sim/base/errors/file_guard.h"

namespace orrery::observe {
namespace {

// A path as a URI, so that SQLite takes the file as one that nobody changes.
std::string uri_of(const std::filesystem::path& file) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : file.string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || c == '/' || c == '.' || c == '_' || c == '-';
    if (plain) {
      uri += c;
    } else {
      uri += '%';
      uri += digits[byte >> 4U];
      uri += digits[byte & 15U];
    }
  }
  return uri + "?mode=ro&immutable=1";
}

}  // namespace

struct Database::Handle {
  sqlite3* open = nullptr;
  ~Handle() { sqlite3_close(open); }
};

std::optional<std::int64_t> DatabaseRow::number(int column) const {
  auto* statement = static_cast<sqlite3_stmt*>(statement_);
  const int type = sqlite3_column_type(statement, column);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  return sqlite3_column_int64(statement, column);
}

std::optional<std::string> DatabaseRow::text(int column) const {
  auto* statement = static_cast<sqlite3_stmt*>(statement_);
  if (sqlite3_column_type(statement, column) != SQLITE_TEXT) return std::nullopt;
  const auto* begin = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  if (begin == nullptr) return std::nullopt;
  return std::string(begin, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

Database::Database(const std::filesystem::path& file)
    : handle_(std::make_unique<Handle>()), name_(file.string()) {
  check_file_allowed(file);
  const int problem = sqlite3_open_v2(uri_of(file).c_str(), &handle_->open,
                                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  if (problem != SQLITE_OK)
    throw Error({.file = name_,
                 .found = std::string("no readable database: ") + sqlite3_errstr(problem),
                 .expected = "an SQLite export of Nsight Systems"});
  sqlite3* open = handle_->open;
  sqlite3_db_config(open, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(open, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(open, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(open, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  constexpr int longest_cell = 16 << 20, most_columns = 200, longest_sql = 100'000;
  sqlite3_limit(open, SQLITE_LIMIT_LENGTH, longest_cell);
  sqlite3_limit(open, SQLITE_LIMIT_COLUMN, most_columns);
  sqlite3_limit(open, SQLITE_LIMIT_SQL_LENGTH, longest_sql);
  sqlite3_limit(open, SQLITE_LIMIT_ATTACHED, 0);
  run("PRAGMA cell_size_check=ON", [](const DatabaseRow&) {});
  // The first look at the schema finds out whether the file is a database at all.
  run("SELECT count(*) FROM sqlite_master", [](const DatabaseRow&) {});
}

Database::~Database() = default;

void Database::run(const std::string& sql,
                   const std::function<void(const DatabaseRow&)>& take) const {
  sqlite3_stmt* statement = nullptr;
  int result = sqlite3_prepare_v2(handle_->open, sql.c_str(), -1, &statement, nullptr);
  std::string message = result == SQLITE_OK ? "" : sqlite3_errmsg(handle_->open);
  if (result == SQLITE_OK) {
    try {
      const DatabaseRow row(statement);
      while ((result = sqlite3_step(statement)) == SQLITE_ROW) take(row);
    } catch (...) {
      sqlite3_finalize(statement);
      throw;
    }
    if (result != SQLITE_DONE) message = sqlite3_errmsg(handle_->open);
    sqlite3_finalize(statement);
  }
  if (!message.empty())
    throw Error({.file = name_,
                 .found = "a database that cannot be read: " + message.substr(0, 200),
                 .expected = "an SQLite export of Nsight Systems"});
}

bool Database::has(const std::string& table) const {
  bool found = false;
  run("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '" + table + "'",
      [&](const DatabaseRow&) { found = true; });
  return found;
}

bool Database::has(const std::string& table, const std::string& column) const {
  bool found = false;
  run("PRAGMA table_info('" + table + "')",
      [&](const DatabaseRow& row) { found = found || row.text(1) == column; });
  return found;
}

void Database::each(const std::string& table, const std::vector<std::string>& columns,
                    const std::string& where,
                    const std::function<void(const DatabaseRow&)>& take) const {
  if (!has(table)) return;
  std::string list;
  for (const std::string& column : columns)
    list += (list.empty() ? "" : ", ") + (has(table, column) ? "\"" + column + "\"" : "NULL");
  run("SELECT " + list + " FROM " + table + (where.empty() ? "" : " WHERE " + where), take);
}

}  // namespace orrery::observe
