#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

#include "meta/catalog.h"
#include "meta/sqlite.h"

namespace polylog::meta {
namespace {

constexpr std::int64_t application_id = 0x706c6f67;  // "plog", SQLite's header field at byte 68
constexpr std::int64_t schema_version = 2;           // SQLite's user_version
constexpr std::size_t topic_name_bytes_max = 249;    // Kafka's rule
constexpr std::size_t config_key_bytes_max = 255;
constexpr std::size_t config_value_bytes_max = 64 * 1024;
constexpr std::size_t scope_name_bytes_max = 32767;  // Kafka's longest string
constexpr std::size_t copy_bytes = 64 * 1024;

// Applied in one transaction, so that a crash leaves either an empty database or a whole one.
constexpr const char* schema_sql = R"sql(
  CREATE TABLE identity(
    only INTEGER PRIMARY KEY CHECK (only = 1),
    cluster_id TEXT NOT NULL,
    created_ms INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE topics(
    name TEXT NOT NULL PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    partitions INTEGER NOT NULL,
    layout TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE topic_configs(
    topic TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (topic, key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE producer_ids(
    only INTEGER PRIMARY KEY CHECK (only = 1),
    next INTEGER NOT NULL
  ) STRICT;
  INSERT INTO producer_ids VALUES (1, 0);
)sql";

// What version 2 added. A part of a quota's entity is "" where it says nothing, "*" where it is
// the default, and otherwise "=" and the name.
constexpr const char* added_in_2_sql = R"sql(
  CREATE TABLE scoped_configs(
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (scope, name, key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE quotas(
    user TEXT NOT NULL,
    client_id TEXT NOT NULL,
    ip TEXT NOT NULL,
    key TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (user, client_id, ip, key)
  ) STRICT, WITHOUT ROWID;
)sql";

const char* scope_name(ConfigScope::Kind kind) {
  switch (kind) {
    case ConfigScope::Kind::brokers: return "brokers";
    case ConfigScope::Kind::broker: return "broker";
    case ConfigScope::Kind::group: return "group";
  }
  return "";
}

std::optional<ConfigScope::Kind> parse_scope(const std::string& name) {
  using Kind = ConfigScope::Kind;
  for (const Kind kind : {Kind::brokers, Kind::broker, Kind::group}) {
    if (name == scope_name(kind)) return kind;
  }
  return std::nullopt;
}

std::string stored_part(const std::optional<QuotaName>& part) {
  if (!part) return "";
  return part->is_default ? "*" : "=" + part->name;
}

std::optional<QuotaName> parse_part(const std::string& stored) {
  if (stored.empty()) return std::nullopt;
  if (stored == "*") return QuotaName{true, ""};
  return QuotaName{false, stored.substr(1)};
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

Result<void> check_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= topic_name_bytes_max && name != "." &&
                    name != ".." && std::all_of(name.begin(), name.end(), is_name_char);
  if (good) return {};
  return fail(Errc::invalid, "a topic name has 1 to 249 characters of [a-zA-Z0-9._-]");
}

Result<void> check_partitions(std::int64_t partitions) {
  if (partitions >= 1 && partitions <= std::numeric_limits<std::int32_t>::max()) return {};
  return fail(Errc::invalid, std::to_string(partitions) + " is no number of partitions");
}

Result<void> check_layout(const std::string& layout) {
  if (layout == "kafka" || layout == "rocketmq" || layout == "segment") return {};
  return fail(Errc::invalid, "the layout is kafka, rocketmq or segment");
}

Result<void> check_configs(const std::map<std::string, std::string>& configs) {
  for (const auto& [key, value] : configs) {
    if (key.empty() || key.size() > config_key_bytes_max) {
      return fail(Errc::invalid, "a setting's name has 1 to 255 bytes");
    }
    if (value.size() > config_value_bytes_max) {
      return fail(Errc::too_large, "the value of " + key + " is over 64 KiB");
    }
    if ((key + value).find('\0') != std::string::npos) {
      return fail(Errc::invalid, "a NUL byte in the setting " + key);
    }
  }
  return {};
}

Result<void> check_scope_name(const std::string& name) {
  if (name.size() > scope_name_bytes_max) return fail(Errc::too_large, "a name over 32767 bytes");
  if (name.find('\0') != std::string::npos) return fail(Errc::invalid, "a NUL byte in a name");
  return {};
}

Result<void> check_quota(const QuotaChange& change) {
  if (!change.entity.user && !change.entity.client_id && !change.entity.ip) {
    return fail(Errc::invalid, "a quota is for somebody");
  }
  for (const auto* part : {&change.entity.user, &change.entity.client_id, &change.entity.ip}) {
    if (*part) POLYLOG_TRY(check_scope_name((*part)->name));
  }
  return check_configs({{change.key, ""}});
}

Result<void> check_topic(const TopicRecord& topic) {
  POLYLOG_TRY(check_name(topic.name));
  POLYLOG_TRY(check_partitions(topic.partitions));
  POLYLOG_TRY(check_layout(topic.layout));
  if (topic.id.is_zero()) return fail(Errc::invalid, "topic " + topic.name + " has no id");
  return check_configs(topic.configs);
}

// Writes a file's own bytes over themselves and syncs it. After a failed sync in an earlier
// process its pages may look clean without being on the device: what SQLite then reads as
// committed, and builds on, must first be made true. Needs no new blocks, so it works on a full
// disk.
Result<void> rewrite_in_place(fs::FileSystem& fs, const std::string& path) {
  auto opened = fs.open(path, fs::OpenMode::write);
  if (!opened && opened.error().code == Errc::not_found) return {};
  if (!opened) return fail(std::move(opened).error());
  fs::File& file = **opened;
  std::vector<std::uint8_t> buffer(copy_bytes);
  std::uint64_t position = 0;
  for (;;) {
    POLYLOG_ASSIGN(size, file.read(position, buffer));
    if (size == 0) break;
    POLYLOG_TRY(file.write(position, ByteView(buffer).first(size)));
    position += size;
  }
  if (position == 0) return {};
  POLYLOG_TRY(file.sync());
  return fs.sync_directory(fs::parent_of(path));
}

Result<std::uint64_t> size_or_zero(const fs::FileSystem& fs, const std::string& path) {
  auto info = fs.info(path);
  if (info) return info->size;
  if (info.error().code == Errc::not_found) return std::uint64_t{0};
  return fail(std::move(info).error());
}

constexpr std::size_t ballast_bytes = 256 * 1024;

class EmbeddedCatalog final : public Catalog {
 public:
  EmbeddedCatalog(fs::FileSystem& fs, std::string wal_path, std::unique_ptr<Database> database,
                  bool settled)
      : fs_(fs),
        wal_path_(std::move(wal_path)),
        database_(std::move(database)),
        settled_(settled) {}

  Result<void> prepare(const Uuid& adopted);
  void lay_ballast();

  Uuid cluster_id() const override { return cluster_id_; }
  Result<std::vector<TopicRecord>> topics() const override;
  Result<void> create_topic(const TopicRecord& topic) override;
  Result<void> delete_topic(const std::string& name) override;
  Result<void> set_configs(const std::string& name,
                           const std::map<std::string, std::string>& configs) override;
  Result<void> set_partitions(const std::string& name, std::int32_t partitions) override;
  Result<ScopedConfigs> scoped_configs() const override;
  Result<void> set_scoped_configs(const ConfigScope& scope,
                                  const std::map<std::string, std::string>& configs) override;
  Result<Quotas> quotas() const override;
  Result<void> change_quotas(const std::vector<QuotaChange>& changes) override;
  Result<ProducerIdBlock> reserve_producer_ids(std::int64_t count) override;

 private:
  // A file that only takes up room, given back when a change that deletes something finds none:
  // on a full disk deleting must still work.
  std::string ballast_path() const { return fs::join(fs::parent_of(wal_path_), "ballast"); }
  bool release_ballast();
  Result<bool> is_new();  // corrupt: foreign. unsupported: newer than this program
  Result<void> create_schema(const Uuid& adopted);
  Result<void> upgrade();
  Result<void> read_identity();
  Result<void> replace_scope(const ConfigScope& scope,
                             const std::map<std::string, std::string>& configs);
  Result<void> change_quota(const QuotaChange& change);
  Result<void> insert_configs(const std::string& name,
                              const std::map<std::string, std::string>& configs);
  Result<void> insert_topic(const TopicRecord& topic);
  Result<void> remove_topic(const std::string& name);
  Result<std::int64_t> partitions_of(const std::string& name);

  // Runs `body` in one transaction under the lock; durable when it succeeds. An I/O error is
  // final: whether the change is on the disk is unknown until a restart has looked.
  template <typename Body>
  Result<void> change(Body body, bool frees_room = false);
  template <typename Body>
  Result<void> transact(Body body);

  fs::FileSystem& fs_;
  const std::string wal_path_;
  std::unique_ptr<Database> database_;
  bool settled_;  // the WAL found at start is known to be on the device
  bool upgraded_ = true;  // the schema is this version's; an older one waits for room on the disk
  bool failed_ = false;
  std::string failure_;
  Uuid cluster_id_;
  mutable std::mutex mutex_;  // guards all above but cluster_id_, fixed after prepare()
};

template <typename Body>
Result<void> EmbeddedCatalog::transact(Body body) {
  POLYLOG_ASSIGN(transaction, Transaction::begin(*database_));
  POLYLOG_TRY(body());
  return transaction.commit();
}

template <typename Body>
Result<void> EmbeddedCatalog::change(Body body, bool frees_room) {
  const std::lock_guard hold(mutex_);
  if (!failed_ && database_->failed()) {
    // A checkpoint behind an earlier commit failed; that commit itself is safe in the WAL.
    failed_ = true;
    failure_ = database_->last_error().to_string();
  }
  if (failed_) {
    return fail(Errc::unavailable,
                "the catalogue takes no changes until a restart, because of: " + failure_);
  }
  Result<void> done;
  if (!settled_) {
    done = rewrite_in_place(fs_, wal_path_);
    settled_ = done.has_value();
  }
  const auto apply = [&]() -> Result<void> {
    if (!upgraded_) POLYLOG_TRY(upgrade());
    return transact(body);
  };
  if (done) done = apply();
  if (!done && done.error().code == Errc::no_space && frees_room && release_ballast()) {
    done = apply();
  }
  if (done && frees_room) lay_ballast();  // there may be room for it again
  if (!done && done.error().code == Errc::io) {
    failed_ = true;
    failure_ = done.error().to_string();
  }
  return done;
}

bool EmbeddedCatalog::release_ballast() {
  return fs_.remove(ballast_path()) && fs_.sync_directory(fs::parent_of(wal_path_));
}

void EmbeddedCatalog::lay_ballast() {
  if (fs::exists(fs_, ballast_path())) return;
  const auto file = fs_.open(ballast_path(), fs::OpenMode::create);
  if (!file) return;
  const std::vector<std::uint8_t> zeros(ballast_bytes, 0);
  // On a disk that is full already there is none; the next start tries again.
  if (auto wrote = (*file)->write(0, ByteView(zeros)); !wrote) release_ballast();
}

Result<bool> EmbeddedCatalog::is_new() {
  POLYLOG_ASSIGN(application, database_->integer("PRAGMA application_id"));
  POLYLOG_ASSIGN(version, database_->integer("PRAGMA user_version"));
  POLYLOG_ASSIGN(objects, database_->integer("SELECT count(*) FROM sqlite_schema"));
  if (application == 0 && version == 0 && objects == 0) return true;
  if (application != application_id) {
    return fail(Errc::corrupt, "this is the database of another program");
  }
  if (version > schema_version) {
    return fail(Errc::unsupported, "schema version " + std::to_string(version) +
                                       " was written by a newer polylog; this one knows " +
                                       std::to_string(schema_version));
  }
  if (version < 1) {
    return fail(Errc::corrupt, "schema version " + std::to_string(version) + " never existed");
  }
  return false;
}

Result<void> EmbeddedCatalog::create_schema(const Uuid& adopted) {
  const Uuid id = adopted.is_zero() ? Uuid::random() : adopted;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  return transact([&]() -> Result<void> {
    POLYLOG_TRY(database_->execute(schema_sql));
    POLYLOG_TRY(database_->execute(added_in_2_sql));
    POLYLOG_ASSIGN(insert, database_->prepare("INSERT INTO identity VALUES (1, ?, ?)"));
    POLYLOG_TRY(insert.bind(id.to_string()).bind(now_ms).run());
    const std::string marks = "PRAGMA application_id = " + std::to_string(application_id) +
                              "; PRAGMA user_version = " + std::to_string(schema_version);
    return database_->execute(marks.c_str());
  });
}

// From version 1. The mark is part of the transaction.
Result<void> EmbeddedCatalog::upgrade() {
  const Result<void> done = transact([&]() -> Result<void> {
    POLYLOG_TRY(database_->execute(added_in_2_sql));
    const std::string mark = "PRAGMA user_version = " + std::to_string(schema_version);
    return database_->execute(mark.c_str());
  });
  upgraded_ = done.has_value();
  return done;
}

Result<void> EmbeddedCatalog::read_identity() {
  POLYLOG_ASSIGN(text, database_->text("SELECT cluster_id FROM identity"));
  auto id = Uuid::parse(text);
  if (!id || id->is_zero()) return fail(Errc::corrupt, "the cluster id '" + text + "' is no id");
  cluster_id_ = *id;
  return {};
}

Result<void> EmbeddedCatalog::prepare(const Uuid& adopted) {
  // Exclusive before anything is read: without shared memory SQLite can use a WAL only so.
  POLYLOG_TRY(database_->execute("PRAGMA locking_mode = EXCLUSIVE"));
  POLYLOG_ASSIGN(fresh, is_new());
  // EXTRA is FULL, and syncs the directory after the one rollback journal there ever is.
  POLYLOG_TRY(database_->execute("PRAGMA synchronous = EXTRA; PRAGMA temp_store = MEMORY"));
  POLYLOG_ASSIGN(mode, database_->text("PRAGMA journal_mode = WAL"));
  if (mode != "wal") return fail(Errc::io, "SQLite stays in journal mode " + mode);
  if (fresh) POLYLOG_TRY(create_schema(adopted));
  POLYLOG_ASSIGN(verdict, database_->text("PRAGMA quick_check(1)"));
  if (verdict != "ok") return fail(Errc::corrupt, verdict);
  POLYLOG_TRY(read_identity());
  POLYLOG_TRY(topics().map([](const auto&) {}));
  POLYLOG_ASSIGN(version, database_->integer("PRAGMA user_version"));
  upgraded_ = version == schema_version;
  if (!upgraded_ && settled_) {
    // On a full disk it is read as it is; the first change that finds room upgrades it.
    const Result<void> done = upgrade();
    if (!done && done.error().code != Errc::no_space) return done;
  }
  POLYLOG_TRY(scoped_configs().map([](const auto&) {}));
  return quotas().map([](const auto&) {});
}

Result<std::vector<TopicRecord>> EmbeddedCatalog::topics() const {
  const std::lock_guard hold(mutex_);
  std::vector<TopicRecord> found;
  POLYLOG_ASSIGN(
      rows, database_->prepare("SELECT name, id, partitions, layout FROM topics ORDER BY name"));
  for (;;) {
    POLYLOG_ASSIGN(row, rows.step());
    if (!row) break;
    auto id = Uuid::parse(rows.text(1));
    TopicRecord topic;
    topic.name = rows.text(0);
    topic.layout = rows.text(3);
    const std::int64_t partitions = rows.integer(2);
    if (id) topic.id = *id;
    if (check_partitions(partitions)) topic.partitions = static_cast<std::int32_t>(partitions);
    if (!id || !check_topic(topic) || partitions != topic.partitions) {
      return fail(Errc::corrupt, "the catalogue's entry of topic '" + topic.name + "' is damaged");
    }
    found.push_back(std::move(topic));
  }
  POLYLOG_ASSIGN(configs, database_->prepare(
                              "SELECT topic, key, value FROM topic_configs ORDER BY topic, key"));
  auto topic = found.begin();
  for (;;) {
    POLYLOG_ASSIGN(row, configs.step());
    if (!row) break;
    const std::string name = configs.text(0);
    while (topic != found.end() && topic->name < name) ++topic;
    if (topic == found.end() || topic->name != name) {
      return fail(Errc::corrupt, "the catalogue has settings of an unknown topic '" + name + "'");
    }
    topic->configs.emplace(configs.text(1), configs.text(2));
  }
  return found;
}

Result<void> EmbeddedCatalog::insert_configs(const std::string& name,
                                             const std::map<std::string, std::string>& configs) {
  for (const auto& [key, value] : configs) {
    POLYLOG_ASSIGN(insert, database_->prepare("INSERT INTO topic_configs VALUES (?, ?, ?)"));
    POLYLOG_TRY(insert.bind(name).bind(key).bind(value).run());
  }
  return {};
}

Result<std::int64_t> EmbeddedCatalog::partitions_of(const std::string& name) {
  POLYLOG_ASSIGN(query, database_->prepare("SELECT partitions FROM topics WHERE name = ?"));
  POLYLOG_ASSIGN(row, query.bind(name).step());
  if (!row) return fail(Errc::not_found, "there is no topic " + name);
  return query.integer(0);
}

Result<void> EmbeddedCatalog::insert_topic(const TopicRecord& topic) {
  const auto present = partitions_of(topic.name);
  if (present) return fail(Errc::exists, "topic " + topic.name + " exists");
  if (present.error().code != Errc::not_found) return fail(present.error());
  POLYLOG_ASSIGN(insert, database_->prepare("INSERT INTO topics VALUES (?, ?, ?, ?)"));
  insert.bind(topic.name).bind(topic.id.to_string()).bind(topic.partitions).bind(topic.layout);
  if (auto done = insert.run(); !done) {
    if (done.error().code != Errc::exists) return done;
    return fail(Errc::exists, "topic id " + topic.id.to_string() + " is in use");
  }
  return insert_configs(topic.name, topic.configs);
}

Result<void> EmbeddedCatalog::remove_topic(const std::string& name) {
  POLYLOG_TRY(partitions_of(name));
  POLYLOG_ASSIGN(configs, database_->prepare("DELETE FROM topic_configs WHERE topic = ?"));
  POLYLOG_TRY(configs.bind(name).run());
  POLYLOG_ASSIGN(topic, database_->prepare("DELETE FROM topics WHERE name = ?"));
  return topic.bind(name).run();
}

Result<void> EmbeddedCatalog::create_topic(const TopicRecord& topic) {
  POLYLOG_TRY(check_topic(topic));
  return change([&] { return insert_topic(topic); });
}

Result<void> EmbeddedCatalog::delete_topic(const std::string& name) {
  return change([&] { return remove_topic(name); }, true);
}

Result<void> EmbeddedCatalog::set_configs(const std::string& name,
                                          const std::map<std::string, std::string>& configs) {
  POLYLOG_TRY(check_configs(configs));
  return change(
      [&]() -> Result<void> {
        POLYLOG_TRY(partitions_of(name));
        POLYLOG_ASSIGN(clear, database_->prepare("DELETE FROM topic_configs WHERE topic = ?"));
        POLYLOG_TRY(clear.bind(name).run());
        return insert_configs(name, configs);
      },
      true);
}

Result<void> EmbeddedCatalog::set_partitions(const std::string& name, std::int32_t partitions) {
  POLYLOG_TRY(check_partitions(partitions));
  return change([&]() -> Result<void> {
    POLYLOG_ASSIGN(now, partitions_of(name));
    if (partitions < now) {
      return fail(Errc::invalid, "topic " + name + " has " + std::to_string(now) +
                                     " partitions; their number can only grow");
    }
    POLYLOG_ASSIGN(update, database_->prepare("UPDATE topics SET partitions = ? WHERE name = ?"));
    return update.bind(partitions).bind(name).run();
  });
}

Result<ScopedConfigs> EmbeddedCatalog::scoped_configs() const {
  const std::lock_guard hold(mutex_);
  ScopedConfigs found;
  if (!upgraded_) return found;
  POLYLOG_ASSIGN(rows, database_->prepare("SELECT scope, name, key, value FROM scoped_configs"));
  for (;;) {
    POLYLOG_ASSIGN(row, rows.step());
    if (!row) return found;
    const auto kind = parse_scope(rows.text(0));
    if (!kind) {
      return fail(Errc::corrupt, "the catalogue has settings of a '" + rows.text(0) + "'");
    }
    found[ConfigScope{*kind, rows.text(1)}].emplace(rows.text(2), rows.text(3));
  }
}

Result<void> EmbeddedCatalog::replace_scope(const ConfigScope& scope,
                                            const std::map<std::string, std::string>& configs) {
  const std::string kind = scope_name(scope.kind);
  POLYLOG_ASSIGN(clear,
                 database_->prepare("DELETE FROM scoped_configs WHERE scope = ? AND name = ?"));
  POLYLOG_TRY(clear.bind(kind).bind(scope.name).run());
  for (const auto& [key, value] : configs) {
    POLYLOG_ASSIGN(insert, database_->prepare("INSERT INTO scoped_configs VALUES (?, ?, ?, ?)"));
    POLYLOG_TRY(insert.bind(kind).bind(scope.name).bind(key).bind(value).run());
  }
  return {};
}

Result<void> EmbeddedCatalog::set_scoped_configs(
    const ConfigScope& scope, const std::map<std::string, std::string>& configs) {
  POLYLOG_TRY(check_scope_name(scope.name));
  POLYLOG_TRY(check_configs(configs));
  return change([&] { return replace_scope(scope, configs); }, true);
}

Result<Quotas> EmbeddedCatalog::quotas() const {
  const std::lock_guard hold(mutex_);
  Quotas found;
  if (!upgraded_) return found;
  POLYLOG_ASSIGN(rows,
                 database_->prepare("SELECT user, client_id, ip, key, value FROM quotas"));
  for (;;) {
    POLYLOG_ASSIGN(row, rows.step());
    if (!row) return found;
    QuotaEntity entity;
    entity.user = parse_part(rows.text(0));
    entity.client_id = parse_part(rows.text(1));
    entity.ip = parse_part(rows.text(2));
    if (!entity.user && !entity.client_id && !entity.ip) {
      return fail(Errc::corrupt, "the catalogue has a quota of nobody");
    }
    found[entity].emplace(rows.text(3), rows.real(4));
  }
}

Result<void> EmbeddedCatalog::change_quota(const QuotaChange& change) {
  const std::string user = stored_part(change.entity.user);
  const std::string client_id = stored_part(change.entity.client_id);
  const std::string ip = stored_part(change.entity.ip);
  if (change.value) {
    POLYLOG_ASSIGN(put, database_->prepare("INSERT OR REPLACE INTO quotas VALUES (?, ?, ?, ?, ?)"));
    put.bind(user).bind(client_id).bind(ip).bind(change.key).bind_real(*change.value);
    return put.run();
  }
  POLYLOG_ASSIGN(drop, database_->prepare("DELETE FROM quotas WHERE user = ? AND client_id = ? "
                                          "AND ip = ? AND key = ?"));
  return drop.bind(user).bind(client_id).bind(ip).bind(change.key).run();
}

Result<void> EmbeddedCatalog::change_quotas(const std::vector<QuotaChange>& changes) {
  bool only_lifts = true;
  for (const QuotaChange& one : changes) {
    POLYLOG_TRY(check_quota(one));
    only_lifts = only_lifts && !one.value;
  }
  if (changes.empty()) return {};
  return change(
      [&]() -> Result<void> {
        for (const QuotaChange& one : changes) POLYLOG_TRY(change_quota(one));
        return {};
      },
      only_lifts);
}

Result<ProducerIdBlock> EmbeddedCatalog::reserve_producer_ids(std::int64_t count) {
  if (count <= 0) return fail(Errc::invalid, "no producer ids were asked for");
  ProducerIdBlock block;
  auto reserved = change([&]() -> Result<void> {
    POLYLOG_ASSIGN(next, database_->integer("SELECT next FROM producer_ids"));
    if (next < 0 || next > std::numeric_limits<std::int64_t>::max() - count) {
      return fail(Errc::too_large, "the producer ids are used up");
    }
    POLYLOG_ASSIGN(update, database_->prepare("UPDATE producer_ids SET next = ?"));
    POLYLOG_TRY(update.bind(next + count).run());
    block = {next, count};
    return {};
  });
  if (!reserved) return fail(std::move(reserved).error());
  return block;
}

// What a person must know when the file can't be used: which file, and that it is still there.
Error explained(Error error, const std::string& path) {
  if (error.context.find(path) == std::string::npos) error.context = path + ": " + error.context;
  if (error.code == Errc::corrupt || error.code == Errc::unsupported) {
    error.context += "; the file is left as it is";
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<Catalog>> open_embedded_catalog(fs::FileSystem& fs,
                                                       const std::string& directory,
                                                       const Uuid& cluster_id) {
  const std::string path = fs::join(directory, "meta.db");
  const std::string wal_path = path + "-wal";
  POLYLOG_ASSIGN(database_bytes, size_or_zero(fs, path));
  POLYLOG_ASSIGN(wal_bytes, size_or_zero(fs, wal_path));
  if (database_bytes == 0 && wal_bytes > 0) {
    // SQLite would take the database for new and drop the WAL, which may hold everything.
    return fail(explained({Errc::corrupt, "the file is empty or gone, but its WAL is not"}, path));
  }
  auto settled = rewrite_in_place(fs, wal_path);
  if (!settled && settled.error().code != Errc::no_space) {
    return fail(explained(std::move(settled).error(), path));
  }
  auto database = Database::open(fs, path);
  if (!database) return fail(explained(std::move(database).error(), path));
  auto catalog =
      std::make_unique<EmbeddedCatalog>(fs, wal_path, std::move(*database), settled.has_value());
  if (auto ready = catalog->prepare(cluster_id); !ready) {
    return fail(explained(std::move(ready).error(), path));
  }
  catalog->lay_ballast();
  return catalog;
}

}  // namespace polylog::meta
