#include "format/kafka/names.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/assert.h"
#include "format/kafka/text_lines.h"

namespace polylog::format::kafka {
namespace {

constexpr std::size_t offset_digits = 20;
constexpr std::size_t topic_bytes_max = 249;
constexpr std::size_t name_bytes_max = 255;
constexpr std::size_t unique_digits = 32;

constexpr std::array<std::string_view, 5> suffixes{".log", ".index", ".timeindex", ".txnindex",
                                                   ".snapshot"};
constexpr std::array<std::string_view, 4> file_stages{"", ".deleted", ".cleaned", ".swap"};
constexpr std::array<std::string_view, 4> directory_stages{"", "-delete", "-stray", "-future"};

bool take_suffix(std::string_view& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  return true;
}

bool all_of(std::string_view text, std::string_view alphabet) {
  return text.find_first_not_of(alphabet) == std::string_view::npos;
}

std::optional<Offset> parse_offset(std::string_view stem) {
  if (stem.size() != offset_digits || !all_of(stem, "0123456789")) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), value);
  if (error != std::errc()) return std::nullopt;  // beyond 2^63-1
  return Offset(value);
}

std::string hex(const Uuid& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : id.bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

tl::unexpected<Error> no_directory(std::string_view name, std::string_view why) {
  constexpr std::size_t shown_max = 255;
  return fail(Errc::invalid, "directory '" + std::string(name.substr(0, shown_max)) +
                                 "' is not a partition's: " + std::string(why));
}

}  // namespace

std::string_view suffix(SegmentFile file) { return suffixes[static_cast<std::size_t>(file)]; }

std::string segment_file_name(Offset offset, SegmentFile file, FileStage stage) {
  POLYLOG_ASSERT(offset >= Offset(0));
  const std::string digits = std::to_string(offset.value());
  std::string name(offset_digits - digits.size(), '0');
  name += digits;
  name += suffix(file);
  name += file_stages[static_cast<std::size_t>(stage)];
  return name;
}

Result<std::optional<SegmentFileName>> parse_segment_file_name(std::string_view name) {
  std::string_view rest = name;
  SegmentFileName parsed;
  for (std::size_t i = 1; i < file_stages.size(); ++i) {
    if (take_suffix(rest, file_stages[i])) {
      parsed.stage = static_cast<FileStage>(i);
      break;
    }
  }
  bool known = false;
  for (std::size_t i = 0; i < suffixes.size() && !known; ++i) {
    known = take_suffix(rest, suffixes[i]);
    if (known) parsed.file = static_cast<SegmentFile>(i);
  }
  const std::optional<Offset> offset = known ? parse_offset(rest) : std::nullopt;
  if (offset) {
    parsed.offset = *offset;
    return parsed;
  }
  // Kafka unlinks *.deleted whatever the rest is, and does not stop at other foreign names.
  const bool reserved = known ? parsed.stage != FileStage::deleted
                              : parsed.stage == FileStage::cleaned ||
                                    parsed.stage == FileStage::swap;
  if (!reserved) return std::nullopt;
  return fail(Errc::invalid, "file '" + std::string(name) +
                                 "' has a segment's suffix but no offset of 20 digits before it");
}

Result<void> check_topic_name(std::string_view topic) {
  if (topic.empty()) return fail(Errc::invalid, "a topic name may not be empty");
  if (topic == "." || topic == "..") {
    return fail(Errc::invalid, "a topic name may not be '.' or '..'");
  }
  if (topic.size() > topic_bytes_max) {
    return fail(Errc::invalid, "a topic name has at most 249 characters");
  }
  if (!all_of(topic, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")) {
    return fail(Errc::invalid,
                "a topic name consists of ASCII letters, digits, '.', '_' and '-' only");
  }
  return {};
}

std::string partition_directory_name(const TopicPartition& id) {
  return id.topic + "-" + std::to_string(id.partition);
}

std::string partition_directory_name(const TopicPartition& id, DirectoryStage stage,
                                     const Uuid& unique) {
  POLYLOG_ASSERT(stage != DirectoryStage::live);
  std::string tail = "-" + std::to_string(id.partition) + "." + hex(unique);
  tail += directory_stages[static_cast<std::size_t>(stage)];
  const std::size_t topic_max = stage == DirectoryStage::future ? id.topic.size()
                                                                : name_bytes_max - tail.size();
  return id.topic.substr(0, topic_max) + tail;
}

Result<PartitionDirectory> parse_partition_directory(std::string_view name) {
  PartitionDirectory parsed;
  std::string_view rest = name;
  for (std::size_t i = 1; i < directory_stages.size(); ++i) {
    if (!take_suffix(rest, directory_stages[i])) continue;
    parsed.stage = static_cast<DirectoryStage>(i);
    const std::size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos || rest.size() - dot - 1 != unique_digits ||
        !all_of(rest.substr(dot + 1), "0123456789abcdefABCDEF")) {
      return no_directory(name, "no '.' and 32 hex digits before its ending");
    }
    parsed.unique = rest.substr(dot + 1);
    rest = rest.substr(0, dot);
    break;
  }
  const std::size_t dash = rest.rfind('-');
  if (dash == std::string_view::npos) return no_directory(name, "no '-' before a partition");
  const auto partition = parse_decimal<std::int32_t>(rest.substr(dash + 1));
  if (!partition || *partition < 0) {
    return no_directory(name, "no partition number behind its last '-'");
  }
  if (Result<void> topic = check_topic_name(rest.substr(0, dash)); !topic) {
    return no_directory(name, topic.error().context);
  }
  parsed.id = {std::string(rest.substr(0, dash)), *partition};
  return parsed;
}

bool exempt_directory(std::string_view name) {
  return name == "remote-log-index-cache" || name == "__cluster_metadata-0";
}

}  // namespace polylog::format::kafka
