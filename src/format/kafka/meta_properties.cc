#include <algorithm>
#include <map>

#include "format/kafka/checkpoint.h"
#include "format/kafka/text_lines.h"

// meta.properties is a Java properties file: `key=value` with '=', ':' or blanks between, '#' or
// '!' for comments, backslashes for escapes and for lines that go on.
namespace polylog::format::kafka {
namespace {

constexpr std::string_view blanks = " \t\f";

std::string_view without_leading_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(blanks), text.size()));
}

bool goes_on(std::string_view line) {
  const std::size_t last = line.find_last_not_of('\\');
  const std::size_t backslashes =
      last == std::string_view::npos ? line.size() : line.size() - last - 1;
  return backslashes % 2 == 1;
}

void append_utf8(std::string& out, unsigned unit) {
  if (unit < 0x80) {
    out += static_cast<char>(unit);
  } else if (unit < 0x800) {
    out += static_cast<char>(0xC0 | (unit >> 6));
    out += static_cast<char>(0x80 | (unit & 0x3F));
  } else {
    out += static_cast<char>(0xE0 | (unit >> 12));
    out += static_cast<char>(0x80 | ((unit >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (unit & 0x3F));
  }
}

Result<std::string> unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c != '\\' || text.empty()) {
      out += c;
      continue;
    }
    const char escape = text.front();
    text.remove_prefix(1);
    switch (escape) {
      case 't': out += '\t'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 'f': out += '\f'; break;
      case 'u': {
        constexpr std::size_t digits = 4;
        unsigned unit = 0;
        const std::string_view hex = text.substr(0, digits);
        const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), unit, 16);
        if (error != std::errc() || end != hex.data() + digits) {
          return fail(Errc::corrupt, "malformed \\u escape");
        }
        append_utf8(out, unit);
        text.remove_prefix(digits);
        break;
      }
      default: out += escape;
    }
  }
  return out;
}

// Where the key of a logical line ends: the first separator that is not escaped.
std::size_t key_end(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (std::string_view("=: \t\f").find(line[i]) != std::string_view::npos) {
      return i;
    }
  }
  return line.size();
}

Result<void> add_property(std::string_view line, std::map<std::string, std::string>& properties) {
  const std::size_t end = key_end(line);
  std::string_view value = without_leading_blanks(line.substr(end));
  if (value.starts_with('=') || value.starts_with(':')) {
    value = without_leading_blanks(value.substr(1));
  }
  POLYLOG_ASSIGN(key, unescaped(line.substr(0, end)));
  POLYLOG_ASSIGN(content, unescaped(value));
  properties[key] = std::move(content);
  return {};
}

Result<std::map<std::string, std::string>> parse_properties(std::string_view text) {
  std::map<std::string, std::string> properties;
  std::string logical;
  bool continued = false;
  Lines lines(text);
  while (const auto line = lines.next()) {
    std::string_view piece = line->text;
    if (piece.ends_with('\r')) piece.remove_suffix(1);
    piece = without_leading_blanks(piece);
    if (!continued && (piece.empty() || piece.front() == '#' || piece.front() == '!')) continue;
    continued = goes_on(piece);
    if (continued) piece.remove_suffix(1);
    logical += piece;
    if (continued) continue;
    POLYLOG_TRY(add_property(logical, properties));
    logical.clear();
  }
  if (!logical.empty()) POLYLOG_TRY(add_property(logical, properties));
  return properties;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\t': out += "\\t"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\f': out += "\\f"; continue;
      case '\\':
      case '=':
      case ':':
      case '#':
      case '!': out += '\\'; break;
      case ' ':
        if (out.empty()) out += '\\';
        break;
      default: break;
    }
    out += c;
  }
  return out;
}

}  // namespace

Result<MetaProperties> parse_meta_properties(std::string_view text) {
  POLYLOG_ASSIGN(properties, parse_properties(text));
  const auto get = [&properties](const std::string& key) -> Result<std::string> {
    const auto found = properties.find(key);
    if (found == properties.end()) {
      return fail(Errc::corrupt, "meta.properties has no " + key);
    }
    return found->second;
  };
  POLYLOG_ASSIGN(version_text, get("version"));
  const auto version = parse_decimal<int>(version_text);
  if (!version) return fail(Errc::corrupt, "meta.properties: the version is not a number");
  if (*version != 0 && *version != 1) {
    return fail(Errc::unsupported, "meta.properties of version " + version_text);
  }
  MetaProperties parsed;
  parsed.version = *version;
  const std::string node_key = *version == 0 ? "broker.id" : "node.id";
  POLYLOG_ASSIGN(node_text, get(node_key));
  const auto node = parse_decimal<std::int32_t>(node_text);
  if (!node || *node < 0) {
    return fail(Errc::corrupt, "meta.properties: " + node_key + " is not a node's number");
  }
  parsed.node_id = *node;
  if (*version == 1 || properties.contains("cluster.id")) {
    POLYLOG_ASSIGN(cluster, get("cluster.id"));
    parsed.cluster_id = std::move(cluster);
  }
  if (const auto found = properties.find("directory.id"); found != properties.end()) {
    Result<Uuid> directory = Uuid::parse(found->second);
    if (!directory) {
      return fail(Errc::corrupt, "meta.properties: directory.id: " + directory.error().context);
    }
    parsed.directory_id = *directory;
  }
  return parsed;
}

std::string format_meta_properties(const MetaProperties& properties) {
  std::string text = "#\n";
  text += "cluster.id=" + escaped(properties.cluster_id) + "\n";
  if (properties.directory_id) {
    text += "directory.id=" + properties.directory_id->to_string() + "\n";
  }
  text += properties.version == 0 ? "broker.id=" : "node.id=";
  text += std::to_string(properties.node_id) + "\n";
  text += "version=" + std::to_string(properties.version) + "\n";
  return text;
}

}  // namespace polylog::format::kafka
