#include "cli/read_settings.h"

#include <map>
#include <utility>

namespace polylog::cli {
namespace {

constexpr std::size_t config_bytes_max = 1 << 20;

}  // namespace

Result<broker::Settings> read_settings(fs::FileSystem& fs, const std::string& config,
                                       const std::vector<std::string>& set) {
  std::map<std::string, std::string> values;
  if (!config.empty()) {
    POLYLOG_ASSIGN(bytes, fs::read_file(fs, config, config_bytes_max));
    POLYLOG_ASSIGN(parsed, broker::Settings::parse_toml(std::string(as_text(bytes)), config));
    values = std::move(parsed);
  }
  for (const std::string& pair : set) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(Errc::invalid, "--set takes key=value, not " + pair);
    }
    values[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return broker::Settings::from(values);
}

}  // namespace polylog::cli
