#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "meta/sqlite_vfs.h"

struct sqlite3;
struct sqlite3_stmt;

namespace polylog::meta {

// One SQLite connection through a VFS of its own, and its statements: no more of SQLite than the
// catalogue needs, with errors as values. Not thread-safe: the owner holds a lock.
//
// Errors of every call: no_space (rolled back, retriable), io (a device error; writing is over,
// see failed()), corrupt (damaged, or not a database), too_large.
class Database {
 public:
  // A compiled statement. Parameters are bound in order; columns are read after step() said true.
  class Statement {
   public:
    Statement(Statement&& other) noexcept;
    Statement& operator=(Statement&&) = delete;
    ~Statement();
    Statement& bind(std::int64_t value);
    Statement& bind(std::string_view text);
    Statement& bind_real(double value);
    // True: a row is there. False: done. A broken UNIQUE or PRIMARY KEY is Errc::exists.
    Result<bool> step();
    Result<void> run();  // step() for statements without rows
    std::int64_t integer(int column) const;
    std::string text(int column) const;
    double real(int column) const;

   private:
    friend class Database;
    Statement(Database& database, sqlite3_stmt* statement);
    Database& database_;
    sqlite3_stmt* statement_;
    int bound_ = 0;
    int error_ = 0;  // of a bind, reported by step()
  };

  // Opens `path`, making it when missing. `fs` outlives the object.
  static Result<std::unique_ptr<Database>> open(fs::FileSystem& fs, const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  Result<Statement> prepare(std::string_view sql);
  Result<void> execute(const char* sql);  // one or several statements; rows are dropped
  Result<std::int64_t> integer(std::string_view sql);  // first column of the first row
  Result<std::string> text(std::string_view sql);
  std::int64_t changes() const;           // rows touched by the last statement
  bool failed() const { return vfs_->failed(); }
  Error last_error() const { return vfs_->last_error(); }

 private:
  Database(std::unique_ptr<SqliteVfs> vfs, std::string path);
  Error error(int code) const;

  std::unique_ptr<SqliteVfs> vfs_;
  std::string path_;
  sqlite3* connection_ = nullptr;
};

// BEGIN IMMEDIATE until commit(); rolled back when it is dropped before.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();  // durable when it succeeds

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;  // null: ended or moved from
};

}  // namespace polylog::meta
