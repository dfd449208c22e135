#include "cli/kafka_tools/arguments.h"

#include <algorithm>

#include "cli/text.h"

namespace polylog::cli::kafka_tools {
namespace {

const Flag* find(const std::vector<Flag>& flags, std::string_view name) {
  const auto at =
      std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == name; });
  return at == flags.end() ? nullptr : &*at;
}

// "--a", "-a", but neither "-" nor a value such as "-5".
bool looks_like_a_flag(const std::vector<Flag>& flags, std::string_view word) {
  if (word.starts_with("--")) return word.size() > 2;
  if (!word.starts_with("-") || word.size() < 2) return false;
  return find(flags, word.substr(1, word.find('=') - 1)) != nullptr;
}

}  // namespace

Result<Arguments> Arguments::parse(const std::vector<Flag>& flags,
                                   const std::vector<std::string>& words) {
  Arguments parsed;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") break;
    if (!word.starts_with("-") || word == "-") continue;
    const std::size_t begin = word.starts_with("--") ? 2 : 1;
    const std::size_t equals = word.find('=', begin);
    const std::string name =
        word.substr(begin, equals == std::string::npos ? equals : equals - begin);
    const Flag* const flag = find(flags, name);
    if (flag == nullptr) return fail(Errc::invalid, name + " is not a recognized option");
    std::vector<std::string>& values = parsed.given_[name];
    if (flag->value == Flag::Value::none) {
      parsed.in_order_.emplace_back(name, "");
      if (equals == std::string::npos) continue;
      return fail(Errc::invalid, name + " takes no value");
    }
    if (equals != std::string::npos) {
      values.push_back(word.substr(equals + 1));
    } else if (flag->value == Flag::Value::required) {
      if (i + 1 == words.size()) {
        return fail(Errc::invalid, "Option " + name + " requires an argument");
      }
      values.push_back(words[++i]);
    } else if (i + 1 < words.size() && !looks_like_a_flag(flags, words[i + 1])) {
      values.push_back(words[++i]);
    }
    parsed.in_order_.emplace_back(name, values.empty() ? "" : values.back());
  }
  for (const Flag& flag : flags) {
    if (flag.only_with.empty() || !parsed.has(flag.name)) continue;
    std::string_view left = flag.only_with;
    bool found = false;
    while (!left.empty() && !found) {
      const std::size_t space = std::min(left.find(' '), left.size());
      found = parsed.has(left.substr(0, space));
      left.remove_prefix(std::min(space + 1, left.size()));
    }
    if (!found) {
      return fail(Errc::invalid, "Option(s) [" + std::string(flag.name) +
                                     "] are unavailable given other options on the command line");
    }
  }
  return parsed;
}

std::vector<std::string> Arguments::values(std::string_view name) const {
  const auto at = given_.find(name);
  return at == given_.end() ? std::vector<std::string>{} : at->second;
}

Result<std::optional<std::string>> Arguments::value(std::string_view name) const {
  const auto at = given_.find(name);
  if (at == given_.end() || at->second.empty()) return std::optional<std::string>{};
  if (at->second.size() > 1) {
    return fail(Errc::invalid, "Found multiple arguments for option " + std::string(name) +
                                   ", but you asked for only one");
  }
  return std::optional<std::string>(at->second.front());
}

Result<std::optional<std::int64_t>> Arguments::number(std::string_view name, std::int64_t least,
                                                      std::int64_t most) const {
  POLYLOG_ASSIGN(text, value(name));
  if (!text) return std::optional<std::int64_t>{};
  const std::optional<std::int64_t> number = parse_integer(*text);
  if (!number || *number < least || *number > most) {
    return fail(Errc::invalid,
                "Cannot parse argument '" + *text + "' of option " + std::string(name));
  }
  return number;
}

std::string flags_help(const std::vector<Flag>& flags) {
  std::vector<std::vector<std::string>> rows;
  for (const Flag& flag : flags) {
    std::string left = "--" + std::string(flag.name);
    if (flag.value == Flag::Value::required) left += " <value>";
    if (flag.value == Flag::Value::optional) left += " [value]";
    rows.push_back({"  " + left, std::string(flag.help)});
  }
  return format_table(rows);
}

}  // namespace polylog::cli::kafka_tools
