#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "broker/settings.h"

// docs/guide/settings.md must say what the tables in the code say, key by key.
namespace polylog::broker {
namespace {

std::string row(std::string_view name, std::string_view default_value, std::string_view help,
                std::string_view no_effect, std::string_view dynamic = {}) {
  std::string text = "| `" + std::string(name) + "` | ";
  text += default_value.empty() ? "" : "`" + std::string(default_value) + "` ";
  text += dynamic;
  text += "| " + std::string(help) + ".";
  if (!no_effect.empty()) text += " *No effect:* " + std::string(no_effect) + ".";
  return text + " |";
}

// The table rows under a heading, up to the next heading.
std::vector<std::string> rows_under(const std::string& heading) {
  const char* source = std::getenv("POLYLOG_SOURCE_DIR");
  std::vector<std::string> rows;
  if (source == nullptr) return rows;
  std::ifstream file(std::string(source) + "/docs/guide/settings.md");
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) here = line == "## " + heading;
    if (here && line.starts_with("| `")) rows.push_back(line);
  }
  return rows;
}

TEST(SettingsGuide, broker_settings_are_those_of_the_code) {
  std::vector<std::string> expected;
  for (const SettingKey& key : setting_keys()) {
    expected.push_back(row(key.name, key.default_value, key.help, key.no_effect,
                           key.dynamic ? "| yes " : "| "));
  }
  EXPECT_EQ(rows_under("Broker settings"), expected);
}

TEST(SettingsGuide, topic_settings_are_those_of_the_code) {
  std::vector<std::string> expected;
  for (const ConfigKey& key : topic_config_keys()) {
    expected.push_back(row(key.name, key.default_value, key.help, key.no_effect));
  }
  EXPECT_EQ(rows_under("Topic settings"), expected);
}

}  // namespace
}  // namespace polylog::broker
