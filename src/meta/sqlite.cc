#include "meta/sqlite.h"

#include <sqlite3.h>

#include <utility>

namespace polylog::meta {

Database::Statement::Statement(Database& database, sqlite3_stmt* statement)
    : database_(database), statement_(statement) {}

Database::Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      bound_(other.bound_),
      error_(other.error_) {}

Database::Statement::~Statement() { sqlite3_finalize(statement_); }

Database::Statement& Database::Statement::bind(std::int64_t value) {
  const int code = sqlite3_bind_int64(statement_, ++bound_, value);
  if (code != SQLITE_OK && error_ == SQLITE_OK) error_ = code;
  return *this;
}

Database::Statement& Database::Statement::bind(std::string_view text) {
  // An empty view may have no pointer, which SQLite would take for NULL.
  const char* data = text.empty() ? "" : text.data();
  const int code = sqlite3_bind_text64(statement_, ++bound_, data, text.size(), SQLITE_TRANSIENT,
                                       SQLITE_UTF8);
  if (code != SQLITE_OK && error_ == SQLITE_OK) error_ = code;
  return *this;
}

Database::Statement& Database::Statement::bind_real(double value) {
  const int code = sqlite3_bind_double(statement_, ++bound_, value);
  if (code != SQLITE_OK && error_ == SQLITE_OK) error_ = code;
  return *this;
}

Result<bool> Database::Statement::step() {
  if (error_ != SQLITE_OK) return fail(database_.error(error_));
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail(database_.error(code));
}

Result<void> Database::Statement::run() {
  POLYLOG_TRY(step());
  return {};
}

std::int64_t Database::Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string Database::Statement::text(int column) const {
  const auto* bytes = sqlite3_column_text(statement_, column);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

double Database::Statement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

Database::Database(std::unique_ptr<SqliteVfs> vfs, std::string path)
    : vfs_(std::move(vfs)), path_(std::move(path)) {}

Database::~Database() {
  // Checkpoints into the database file. After a failed write or sync the VFS lets nothing
  // through, so the files stay as the failure left them for the next start to recover.
  sqlite3_close(connection_);
}

Result<std::unique_ptr<Database>> Database::open(fs::FileSystem& fs, const std::string& path) {
  POLYLOG_ASSIGN(vfs, SqliteVfs::make(fs));
  std::unique_ptr<Database> made(new Database(std::move(vfs), path));
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code =
      sqlite3_open_v2(path.c_str(), &made->connection_, flags, made->vfs_->name().c_str());
  if (code != SQLITE_OK) return fail(made->error(code));
  sqlite3_extended_result_codes(made->connection_, 1);
  return made;
}

Result<Database::Statement> Database::prepare(std::string_view sql) {
  vfs_->clear_last_error();
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection_, sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return fail(error(code));
  return Statement(*this, statement);
}

Result<void> Database::execute(const char* sql) {
  vfs_->clear_last_error();
  const int code = sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(error(code));
  return {};
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  POLYLOG_ASSIGN(statement, prepare(sql));
  POLYLOG_ASSIGN(row, statement.step());
  if (!row) return fail(Errc::corrupt, path_ + ": no answer to " + std::string(sql));
  return statement.integer(0);
}

Result<std::string> Database::text(std::string_view sql) {
  POLYLOG_ASSIGN(statement, prepare(sql));
  POLYLOG_ASSIGN(row, statement.step());
  if (!row) return fail(Errc::corrupt, path_ + ": no answer to " + std::string(sql));
  return statement.text(0);
}

std::int64_t Database::changes() const { return sqlite3_changes64(connection_); }

Error Database::error(int code) const {
  const Error below = vfs_->last_error();
  std::string context = path_ + ": " + sqlite3_errstr(code);
  if (connection_ != nullptr) context = path_ + ": " + sqlite3_errmsg(connection_);
  if (!below.context.empty()) context += " (" + below.context + ")";
  switch (code & 0xff) {
    case SQLITE_FULL: return {Errc::no_space, std::move(context)};
    case SQLITE_CANTOPEN:
      return {below.context.empty() ? Errc::io : below.code, std::move(context)};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return {Errc::corrupt, std::move(context)};
    case SQLITE_CONSTRAINT: return {Errc::exists, std::move(context)};
    case SQLITE_TOOBIG: return {Errc::too_large, std::move(context)};
    default: return {Errc::io, std::move(context)};
  }
}

Result<Transaction> Transaction::begin(Database& database) {
  POLYLOG_TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  // SQLite may have rolled back by itself after an error; then this says so and changes nothing.
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

Result<void> Transaction::commit() {
  POLYLOG_TRY(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace polylog::meta
