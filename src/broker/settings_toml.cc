#include <toml++/toml.h>

#include <charconv>

#include "broker/settings.h"

namespace polylog::broker {
namespace {

std::string where(const std::string& origin, const toml::source_region& source) {
  return origin + ":" + std::to_string(source.begin.line) + ": ";
}

Result<std::string> scalar(const toml::node& node, const std::string& name,
                           const std::string& origin) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return std::string(flag->get() ? "true" : "false");
  if (const auto* real = node.as_floating_point()) {
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, real->get()).ptr;
    return std::string(buffer, end);
  }
  return fail(Errc::invalid, where(origin, node.source()) + name +
                                 " must be a string, a number, true, false or a list of those");
}

Result<std::string> list(const toml::array& items, const std::string& name,
                         const std::string& origin) {
  std::string joined;
  for (const toml::node& item : items) {
    POLYLOG_ASSIGN(text, scalar(item, name, origin));
    if (text.find(',') != std::string::npos) {
      return fail(Errc::invalid,
                  where(origin, item.source()) + name + ": an item of a list holds a comma");
    }
    if (&item != &items.front()) joined += ',';
    joined += text;
  }
  return joined;
}

// The parser bounds how deep tables nest, and with it this recursion.
Result<void> flatten(const toml::table& table, const std::string& prefix,
                     const std::string& origin, std::map<std::string, std::string>& out) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      POLYLOG_TRY(flatten(*inner, name + ".", origin, out));
      continue;
    }
    const auto* items = node.as_array();
    POLYLOG_ASSIGN(value,
                   items != nullptr ? list(*items, name, origin) : scalar(node, name, origin));
    if (!out.emplace(name, std::move(value)).second) {
      return fail(Errc::invalid, where(origin, node.source()) + name + " is set twice");
    }
  }
  return {};
}

}  // namespace

Result<std::map<std::string, std::string>> Settings::parse_toml(const std::string& text,
                                                                const std::string& origin) {
  toml::table table;
  try {
    table = toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    return fail(Errc::invalid, where(origin, error.source()) + std::string(error.description()));
  }
  std::map<std::string, std::string> values;
  POLYLOG_TRY(flatten(table, "", origin, values));
  return values;
}

}  // namespace polylog::broker
