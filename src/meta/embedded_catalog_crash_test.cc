#include <gtest/gtest.h>

#include <functional>

#include "fs/sim_file_system.h"
#include "meta/catalog.h"

// The catalogue on a disk that stops, fails or is full at every single step.
namespace polylog::meta {
namespace {

using fs::CrashChoice;
using fs::Fault;
using fs::SimFileSystem;

// What a catalogue holds, and what one change makes of it.
struct Model {
  std::map<std::string, TopicRecord> topics;
  ScopedConfigs scoped;
  Quotas quotas;
  std::int64_t next_producer_id = 0;
};

struct Change {
  std::string name;
  std::function<Result<void>(Catalog&)> apply;
  std::function<void(Model&)> expect;
};

Change create(const std::string& name, std::int32_t partitions) {
  TopicRecord topic{name, Uuid::random(), partitions, "kafka", {}};
  for (int i = 0; i < 3; ++i) topic.configs["k" + std::to_string(i)] = std::string(600, 'v');
  return {"create " + name, [topic](Catalog& catalog) { return catalog.create_topic(topic); },
          [topic](Model& model) { model.topics[topic.name] = topic; }};
}

Change reserve(std::int64_t count) {
  return {"reserve",
          [count](Catalog& catalog) -> Result<void> {
            POLYLOG_TRY(catalog.reserve_producer_ids(count));
            return {};
          },
          [count](Model& model) { model.next_producer_id += count; }};
}

Change set_scope(const ConfigScope& scope, const std::map<std::string, std::string>& configs) {
  return {"settings of " + scope.name,
          [=](Catalog& catalog) { return catalog.set_scoped_configs(scope, configs); },
          [=](Model& model) {
            model.scoped.erase(scope);
            if (!configs.empty()) model.scoped[scope] = configs;
          }};
}

Change quotas(const std::vector<QuotaChange>& changes) {
  return {"quotas", [=](Catalog& catalog) { return catalog.change_quotas(changes); },
          [=](Model& model) {
            for (const QuotaChange& change : changes) {
              auto& values = model.quotas[change.entity];
              values.erase(change.key);
              if (change.value) values[change.key] = *change.value;
              if (values.empty()) model.quotas.erase(change.entity);
            }
          }};
}

QuotaEntity client(const std::string& id) {
  QuotaEntity entity;
  entity.client_id = QuotaName{id.empty(), id};
  return entity;
}

std::vector<Change> script() {
  return {create("a", 1),
          reserve(1000),
          create("b", 2),
          {"grow a", [](Catalog& catalog) { return catalog.set_partitions("a", 4); },
           [](Model& model) { model.topics["a"].partitions = 4; }},
          {"settings of b",
           [](Catalog& catalog) {
             return catalog.set_configs("b", {{"x", std::string(3000, 'x')}});
           },
           [](Model& model) { model.topics["b"].configs = {{"x", std::string(3000, 'x')}}; }},
          {"delete a", [](Catalog& catalog) { return catalog.delete_topic("a"); },
           [](Model& model) { model.topics.erase("a"); }},
          set_scope({ConfigScope::Kind::brokers, ""}, {{"log.retention.ms", "1"}}),
          quotas({{client("a"), "producer_byte_rate", 1.5}, {client(""), "consumer_byte_rate", 2}}),
          create("c", 3),
          set_scope({ConfigScope::Kind::brokers, ""}, {}),
          set_scope({ConfigScope::Kind::group, "g"}, {{"x", std::string(3000, 'x')}}),
          quotas({{client("a"), "producer_byte_rate", std::nullopt}, {client("b"), "k", 3}}),
          reserve(7)};
}

// What became of one run: the state that was acknowledged, and each later one that may be there
// although its change was answered with an error.
struct Outcome {
  bool opened = false;
  Uuid cluster;
  Model acknowledged;
  std::vector<Model> possible;
  std::vector<Error> errors;
};

// Runs the whole script, going on after errors, and closes the catalogue.
Outcome run(fs::FileSystem& fs, const std::vector<Change>& changes) {
  Outcome outcome;
  outcome.possible.push_back({});
  auto opened = open_embedded_catalog(fs, "/", {});
  if (!opened) {
    outcome.errors.push_back(opened.error());
    return outcome;
  }
  Catalog& catalog = **opened;
  outcome.opened = true;
  outcome.cluster = catalog.cluster_id();
  for (const Change& change : changes) {
    auto done = change.apply(catalog);
    if (done) {
      change.expect(outcome.acknowledged);
      outcome.possible.assign(1, outcome.acknowledged);
      continue;
    }
    outcome.errors.push_back(done.error());
    if (done.error().code == Errc::io) {
      Model maybe = outcome.acknowledged;
      change.expect(maybe);
      outcome.possible.push_back(maybe);
    }
  }
  return outcome;
}

std::vector<TopicRecord> topics_of(const Model& model) {
  std::vector<TopicRecord> topics;
  for (const auto& [name, topic] : model.topics) topics.push_back(topic);
  return topics;
}

// The catalogue as found must be one of the possible states, whole.
void check(fs::FileSystem& fs, const Outcome& outcome, const std::string& at) {
  auto opened = open_embedded_catalog(fs, "/", {});
  ASSERT_TRUE(opened) << at << ": " << opened.error().to_string();
  Catalog& catalog = **opened;
  if (outcome.opened) {
    EXPECT_EQ(catalog.cluster_id(), outcome.cluster) << at;
  }
  const auto topics = catalog.topics();
  ASSERT_TRUE(topics) << at << ": " << topics.error().to_string();
  const auto block = catalog.reserve_producer_ids(1);
  ASSERT_TRUE(block) << at << ": " << block.error().to_string();
  const auto scoped = catalog.scoped_configs();
  ASSERT_TRUE(scoped) << at << ": " << scoped.error().to_string();
  const auto limits = catalog.quotas();
  ASSERT_TRUE(limits) << at << ": " << limits.error().to_string();
  bool found = false;
  for (const Model& model : outcome.possible) {
    found |= *topics == topics_of(model) && block->first == model.next_producer_id &&
             *scoped == model.scoped && *limits == model.quotas;
  }
  EXPECT_TRUE(found) << at << ": " << topics->size() << " topics, next id " << block->first;
  EXPECT_TRUE(catalog.create_topic({"new", Uuid::random(), 1, "kafka", {}})) << at;
}

std::uint64_t steps_of(const std::vector<Change>& changes) {
  SimFileSystem fs;
  run(fs, changes);
  return fs.steps();
}

TEST(EmbeddedCatalogCrash, a_power_cut_at_any_step_loses_nothing_acknowledged) {
  const std::vector<Change> changes = script();
  const std::uint64_t steps = steps_of(changes);
  ASSERT_GT(steps, 40U);
  std::size_t states = 0;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    for (const bool applied : {false, true}) {
      SimFileSystem fs;
      fs.crash_at(step, applied);
      const Outcome outcome = run(fs, changes);
      std::vector<CrashChoice> choices = fs.crash_choices(step, 12);
      choices.push_back({.mode = CrashChoice::Mode::lose_all});
      for (const CrashChoice& choice : choices) {
        auto after = fs.crash_state(choice);
        check(*after, outcome, "step " + std::to_string(step) + " " + choice.to_string());
        ++states;
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(states, 500U);
  RecordProperty("crash_states", static_cast<int>(states));
}

TEST(EmbeddedCatalogCrash, a_second_cut_during_recovery_loses_nothing_either) {
  const std::vector<Change> changes = script();
  const std::uint64_t steps = steps_of(changes);
  for (std::uint64_t step = steps / 2; step <= steps; step += 3) {
    SimFileSystem fs;
    fs.crash_at(step, true);
    const Outcome outcome = run(fs, changes);
    for (const auto mode : {CrashChoice::Mode::keep_all, CrashChoice::Mode::kill}) {
      for (std::uint64_t second = 1; second <= 12; ++second) {
        auto restarted = fs.crash_state({.mode = mode});
        restarted->crash_at(second, false);
        { auto opened = open_embedded_catalog(*restarted, "/", {}); }
        for (const CrashChoice& choice : restarted->crash_choices(second, 6)) {
          auto after = restarted->crash_state(choice);
          check(*after, outcome, "step " + std::to_string(step) + " then " +
                                     std::to_string(second) + " " + choice.to_string());
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// After each fault: nothing acknowledged is lost and reads go on; whether changes do depends on
// what failed.
void fail_every_step(Fault fault, const std::function<void(const Outcome&, SimFileSystem&)>& then) {
  const std::vector<Change> changes = script();
  const std::uint64_t steps = steps_of(changes);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    SimFileSystem fs;
    fs.fail_step(step, fault);
    const Outcome outcome = run(fs, changes);
    const std::string at = "step " + std::to_string(step);
    {
      SCOPED_TRACE(at);
      then(outcome, fs);
    }
    // A clean restart, a kill and a power cut.
    for (const auto mode : {CrashChoice::Mode::kill, CrashChoice::Mode::lose_all}) {
      auto after = fs.crash_state({.mode = mode});
      check(*after, outcome, at + (mode == CrashChoice::Mode::kill ? " kill" : " cut"));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(EmbeddedCatalogCrash, an_io_error_at_any_step_is_final_until_restart) {
  int refused_later = 0;
  fail_every_step(Fault::eio, [&](const Outcome& outcome, SimFileSystem&) {
    for (std::size_t i = 0; i < outcome.errors.size(); ++i) {
      if (!outcome.opened) {
        EXPECT_EQ(outcome.errors[i].code, Errc::io) << outcome.errors[i].to_string();
      } else if (i > 0) {
        EXPECT_EQ(outcome.errors[i].code, Errc::unavailable) << outcome.errors[i].to_string();
        ++refused_later;
      }
    }
  });
  EXPECT_GT(refused_later, 10);
}

TEST(EmbeddedCatalogCrash, no_space_at_any_step_is_retriable_unless_a_sync_said_so) {
  for (const Fault fault : {Fault::no_space, Fault::short_write}) {
    int recovered = 0;
    fail_every_step(fault, [&](const Outcome& outcome, SimFileSystem&) {
      if (outcome.errors.size() == 1 && outcome.opened) {
        if (outcome.errors[0].code == Errc::no_space) ++recovered;
      }
      for (const Error& error : outcome.errors) {
        EXPECT_TRUE(error.code == Errc::no_space || error.code == Errc::io ||
                    error.code == Errc::unavailable || error.code == Errc::not_found)
            << error.to_string();
      }
    });
    EXPECT_GT(recovered, 5);
  }
}

TEST(EmbeddedCatalogCrash, reads_go_on_after_a_failed_sync) {
  SimFileSystem fs;
  auto catalog = *open_embedded_catalog(fs, "/", {});
  ASSERT_TRUE(create("a", 1).apply(*catalog));
  fs.fail_path("meta.db", Fault::eio);
  EXPECT_EQ(create("b", 1).apply(*catalog).error().code, Errc::io);
  EXPECT_EQ(catalog->topics()->size(), 1U);
  fs.clear_faults();
  EXPECT_EQ(create("b", 1).apply(*catalog).error().code, Errc::unavailable);
  EXPECT_EQ(catalog->topics()->size(), 1U);
}

TEST(EmbeddedCatalogCrash, a_failed_sync_before_a_restart_does_not_take_later_changes_with_it) {
  // The kernel drops pages whose sync failed, yet goes on reading them: a WAL that looks whole.
  const std::vector<Change> changes = script();
  const std::uint64_t steps = steps_of(changes);
  int tried = 0;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    SimFileSystem fs;
    fs.fail_step(step, Fault::eio);
    const Outcome outcome = run(fs, changes);
    if (!outcome.opened || outcome.errors.empty()) continue;
    auto killed = fs.crash_state({.mode = CrashChoice::Mode::kill});
    {
      auto restarted = open_embedded_catalog(*killed, "/", {});
      ASSERT_TRUE(restarted) << restarted.error().to_string();
      ASSERT_TRUE(create("later", 1).apply(**restarted));
      killed->power_off();
    }
    auto after = killed->crash_state({.mode = CrashChoice::Mode::lose_all});
    auto opened = open_embedded_catalog(*after, "/", {});
    ASSERT_TRUE(opened) << step << ": " << opened.error().to_string();
    bool there = false;
    const auto topics = (*opened)->topics();
    for (const TopicRecord& topic : *topics) there |= topic.name == "later";
    EXPECT_TRUE(there) << "step " << step;
    ++tried;
  }
  EXPECT_GT(tried, 10);
}

TEST(EmbeddedCatalogCrash, a_full_disk_refuses_changes_and_takes_them_once_there_is_room) {
  SimFileSystem fs;
  auto catalog = *open_embedded_catalog(fs, "/", {});
  std::vector<std::string> made;
  const std::uint64_t used = fs.info("/meta.db")->size + fs.info("/meta.db-wal")->size;
  fs.set_capacity(used + 40000);
  Result<void> done;
  for (int i = 0; done && i < 1000; ++i) {
    made.push_back("t" + std::to_string(i));
    done = create(made.back(), 1).apply(*catalog);
  }
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::no_space) << done.error().to_string();
  EXPECT_EQ(catalog->topics()->size(), made.size() - 1);
  EXPECT_EQ(create("x", 1).apply(*catalog).error().code, Errc::no_space);
  fs.set_capacity(used + 10000000);
  EXPECT_TRUE(create(made.back(), 1).apply(*catalog));
  EXPECT_EQ(catalog->topics()->size(), made.size());
}

TEST(EmbeddedCatalogCrash, a_catalogue_opens_for_reading_on_a_full_disk) {
  for (const bool keep_wal : {true, false}) {
    for (const bool clean : {true, false}) {
      if (!keep_wal && !clean) continue;  // an unclean stop leaves changes in the WAL only
      SimFileSystem disk;
      auto catalog = *open_embedded_catalog(disk, "/", {});
      for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(create(name, 1).apply(*catalog));
      if (clean) catalog.reset();
      auto fs = disk.crash_state({.mode = CrashChoice::Mode::kill});
      if (!keep_wal) {
        ASSERT_TRUE(fs->remove("/meta.db-wal"));
      }
      fs->set_capacity(0);
      const std::uint64_t before = fs->info("/meta.db")->size;
      {
        auto full = open_embedded_catalog(*fs, "/", {});
        ASSERT_TRUE(full) << full.error().to_string();
        EXPECT_EQ((*full)->topics()->size(), 3U);
        if (!keep_wal) {
          EXPECT_EQ(create("d", 1).apply(**full).error().code, Errc::no_space);
        }
      }
      EXPECT_GE(fs->info("/meta.db")->size, before);
      fs->set_capacity(1 << 30);
      auto room = open_embedded_catalog(*fs, "/", {});
      ASSERT_TRUE(room) << room.error().to_string();
      EXPECT_GE((*room)->topics()->size(), 3U);
      EXPECT_TRUE(create("e", 1).apply(**room));
    }
  }
}

TEST(EmbeddedCatalogCrash, the_first_opening_on_a_full_disk_says_so_and_succeeds_later) {
  SimFileSystem fs;
  for (const std::uint64_t capacity : {0U, 600U, 5000U, 9000U}) {
    fs.set_capacity(capacity);
    auto opened = open_embedded_catalog(fs, "/", {});
    ASSERT_FALSE(opened) << capacity;
    EXPECT_EQ(opened.error().code, Errc::no_space) << opened.error().to_string();
    EXPECT_NE(opened.error().context.find("/meta.db"), std::string::npos);
  }
  fs.set_capacity(1 << 30);
  auto opened = open_embedded_catalog(fs, "/", {});
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_TRUE(create("a", 1).apply(**opened));
}

}  // namespace
}  // namespace polylog::meta
