#include "format/kafka/checkpoint.h"

#include <algorithm>

#include "format/kafka/text_lines.h"

namespace polylog::format::kafka {
namespace {

Error at_line(int number, std::string_view what) {
  return {Errc::corrupt, "line " + std::to_string(number) + ": " + std::string(what)};
}

// A line as an error message may show it: hostile files have long ones.
std::string quoted(std::string_view text) {
  constexpr std::size_t shown_max = 80;
  std::string shown = "'";
  for (const char c : text.substr(0, shown_max)) shown += c >= ' ' && c <= '~' ? c : '?';
  shown += text.size() > shown_max ? "...'" : "'";
  return shown;
}

// The frame all checkpoints share: version, number of entries, one line each. Calls
// entry(fields, line) -> Result<void>.
template <typename F>
Result<void> parse_checkpoint(std::string_view text, std::size_t fields, F&& entry) {
  if (text.empty()) return {};
  Lines lines(text);
  const auto number = [&lines](std::string_view what) -> Result<std::int32_t> {
    const auto line = lines.next();
    if (!line) return fail(Errc::corrupt, "no line with the " + std::string(what));
    const auto value = parse_decimal<std::int32_t>(line->text);
    if (!value || *value < 0 || !line->complete) {
      return fail(at_line(line->number,
                          quoted(line->text) + " is no " + std::string(what)));
    }
    return *value;
  };
  POLYLOG_ASSIGN(version, number("version"));
  if (version != checkpoint_version) {
    return fail(Errc::unsupported, "checkpoint of version " + std::to_string(version) +
                                       "; only 0 is known");
  }
  POLYLOG_ASSIGN(count, number("number of entries"));
  std::int32_t found = 0;
  while (const auto line = lines.next()) {
    if (!line->complete) return fail(at_line(line->number, "cut short: no line end"));
    if (++found > count) {
      return fail(at_line(line->number, "more entries than the " + std::to_string(count) +
                                            " announced"));
    }
    const std::vector<std::string_view> pieces = split(line->text, ' ');
    if (pieces.size() != fields) {
      return fail(at_line(line->number, quoted(line->text) + " does not have " +
                                            std::to_string(fields) + " fields"));
    }
    POLYLOG_TRY(entry(pieces, *line));
  }
  if (found != count) {
    return fail(Errc::corrupt, std::to_string(count) + " entries announced, " +
                                   std::to_string(found) + " found");
  }
  return {};
}

std::string checkpoint_head(std::size_t count) {
  return std::to_string(checkpoint_version) + "\n" + std::to_string(count) + "\n";
}

// One `key: value` line of partition.metadata.
Result<std::string_view> metadata_value(Lines& lines, std::string_view key) {
  const auto line = lines.next();
  if (!line) return fail(Errc::corrupt, "no line '" + std::string(key) + ": ...'");
  std::string_view text = line->text;
  if (!text.starts_with(key) || !text.substr(key.size()).starts_with(": ")) {
    return fail(at_line(line->number, quoted(text) + " is not '" + std::string(key) + ": ...'"));
  }
  return text.substr(key.size() + 2);
}

}  // namespace

Result<std::vector<EpochList::Entry>> parse_epoch_checkpoint(std::string_view text) {
  std::vector<EpochList::Entry> entries;
  POLYLOG_TRY(parse_checkpoint(
      text, 2, [&entries](const auto& fields, const Lines::Line& line) -> Result<void> {
        const auto epoch = parse_decimal<std::int32_t>(fields[0]);
        const auto start = parse_decimal<std::int64_t>(fields[1]);
        if (!epoch || !start || *epoch < 0 || *start < 0) {
          return fail(at_line(line.number, quoted(line.text) + " is not an epoch and an offset"));
        }
        const EpochList::Entry entry{LeaderEpoch(*epoch), LogPosition(*start)};
        if (!entries.empty() &&
            (entry.epoch <= entries.back().epoch || entry.start <= entries.back().start)) {
          return fail(at_line(line.number, quoted(line.text) + " does not rise"));
        }
        entries.push_back(entry);
        return {};
      }));
  return entries;
}

std::string format_epoch_checkpoint(std::span<const EpochList::Entry> entries) {
  std::string text = checkpoint_head(entries.size());
  for (const EpochList::Entry& entry : entries) {
    text += std::to_string(entry.epoch.value()) + " " + std::to_string(entry.start.value()) + "\n";
  }
  return text;
}

Result<std::vector<PartitionOffset>> parse_offset_checkpoint(std::string_view text) {
  std::vector<PartitionOffset> entries;
  POLYLOG_TRY(parse_checkpoint(
      text, 3, [&entries](const auto& fields, const Lines::Line& line) -> Result<void> {
        const auto partition = parse_decimal<std::int32_t>(fields[1]);
        const auto offset = parse_decimal<std::int64_t>(fields[2]);
        if (fields[0].empty() || !partition || !offset || *partition < 0) {
          return fail(at_line(line.number, quoted(line.text) +
                                               " is not a topic, a partition and an offset"));
        }
        entries.push_back({{std::string(fields[0]), *partition}, Offset(*offset)});
        return {};
      }));
  return entries;
}

std::string format_offset_checkpoint(std::span<const PartitionOffset> entries) {
  std::string text = checkpoint_head(entries.size());
  for (const PartitionOffset& entry : entries) {
    text += entry.id.topic;
    text += " " + std::to_string(entry.id.partition) + " " +
            std::to_string(entry.offset.value()) + "\n";
  }
  return text;
}

Result<Uuid> parse_partition_metadata(std::string_view text) {
  Lines lines(text);
  POLYLOG_ASSIGN(version, metadata_value(lines, "version"));
  if (version != "0") {
    return fail(Errc::unsupported, "partition.metadata of version " + quoted(version));
  }
  POLYLOG_ASSIGN(id, metadata_value(lines, "topic_id"));
  if (lines.next()) return fail(Errc::corrupt, "line 3: nothing is expected here");
  Result<Uuid> topic = Uuid::parse(id);
  if (!topic) return fail(at_line(2, quoted(id) + " is no topic id: " + topic.error().context));
  if (topic->is_zero()) return fail(at_line(2, "the topic id of all zeros names no topic"));
  return topic;
}

std::string format_partition_metadata(const Uuid& topic) {
  // No line end behind the id: Kafka's own files have none.
  return "version: 0\ntopic_id: " + topic.to_string();
}

namespace {

// The small JSON that the marker holds: one object, integer values.
class FlatJson {
 public:
  explicit FlatJson(std::string_view text) : rest_(text) {}

  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<std::string_view> name() {
    if (!take('"')) return std::nullopt;
    const std::size_t end = rest_.find_first_of("\"\\");
    if (end == std::string_view::npos || rest_[end] != '"') return std::nullopt;
    const std::string_view name = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return name;
  }
  std::optional<std::int64_t> integer() {
    skip_blanks();
    const std::size_t end = std::min(rest_.find_first_not_of("-0123456789"), rest_.size());
    const auto value = parse_decimal<std::int64_t>(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return value;
  }
  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

 private:
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  std::string_view rest_;
};

}  // namespace

Result<std::int64_t> parse_clean_shutdown(std::string_view text) {
  if (text.empty()) return -1;
  FlatJson json(text);
  std::optional<std::int64_t> version;
  std::int64_t epoch = -1;
  bool ok = json.take('{');
  while (ok) {
    const auto name = json.name();
    ok = name && json.take(':');
    const auto value = ok ? json.integer() : std::nullopt;
    if (!value) {
      ok = false;
      break;
    }
    if (*name == "version") version = *value;
    if (*name == "brokerEpoch") epoch = *value;
    if (!json.take(',')) break;
  }
  if (!ok || !json.take('}') || !json.at_end() || !version) {
    return fail(Errc::corrupt, "not {\"version\":0,\"brokerEpoch\":...} but " + quoted(text));
  }
  if (*version != 0) {
    return fail(Errc::unsupported, "clean shutdown mark of version " + std::to_string(*version));
  }
  return epoch;
}

std::string format_clean_shutdown(std::int64_t broker_epoch) {
  return "{\"version\":0,\"brokerEpoch\":" + std::to_string(broker_epoch) + "}";
}

}  // namespace polylog::format::kafka
