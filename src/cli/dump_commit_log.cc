#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "bytes/endian.h"
#include "cli/dump_files.h"
#include "cli/dump_walk.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/property_crc.h"
#include "storage/filelog/scan.h"

namespace polylog::cli {
namespace {

namespace rocketmq = format::rocketmq;
namespace flags = format::rocketmq::sys_flag;
namespace at = format::rocketmq::message_at;
using rocketmq::FrameState;
using rocketmq::Message;
using storage::FrameSize;
using storage::ScanFrame;
using storage::ScanStep;

// A record above this is stepped over: nothing that a broker accepts comes near it.
constexpr std::uint64_t record_bytes_max = std::uint64_t{512} << 20;
constexpr std::size_t resync_bytes = at::sys_flag;  // all that tells a record from other bytes

struct RecordDecoder {
  FrameSize frame_size(ByteView window) const {
    if (window.size() < rocketmq::blank_bytes) {
      return {FrameSize::Kind::more, rocketmq::blank_bytes};
    }
    const auto frame = rocketmq::next_frame(window, record_bytes_max);
    switch (frame.state) {
      case FrameState::complete: return {FrameSize::Kind::complete, frame.size};
      case FrameState::zeros:
      case FrameState::blank: return {FrameSize::Kind::end, 0};
      case FrameState::torn:
      case FrameState::corrupt: break;
    }
    return {FrameSize::Kind::corrupt, 0};
  }
};

std::string hex(std::uint32_t number) {
  char text[12];
  std::snprintf(text, sizeof text, "%08x", number);
  return text;
}

std::string host_text(const rocketmq::Host& host) {
  std::string text;
  if (!host.v6) {
    for (std::size_t i = 0; i < 4; ++i) {
      text += (i == 0 ? "" : ".") + std::to_string(host.address[i]);
    }
  } else {
    char group[8];
    for (std::size_t i = 0; i < 16; i += 2) {
      std::snprintf(group, sizeof group, "%s%x", i == 0 ? "[" : ":",
                    host.address[i] << 8 | host.address[i + 1]);
      text += group;
    }
    text += "]";
  }
  return text + ":" + std::to_string(host.port);
}

std::string_view transaction_text(std::int32_t sys_flag) {
  switch (sys_flag & flags::transaction_mask) {
    case flags::transaction_prepared: return "prepared";
    case flags::transaction_commit: return "commit";
    case flags::transaction_rollback: return "rollback";
    default: return "none";
  }
}

std::string codec_text(std::int32_t sys_flag) {
  if ((sys_flag & flags::compressed) == 0) return "none";
  switch ((sys_flag & flags::compression_mask) >> 8) {
    case 0:
    case 3: return "zlib";
    case 1: return "lz4";
    case 2: return "zstd";
    default: return "unknown";
  }
}

std::string person_line(const Message& message, std::uint64_t position, std::size_t bytes) {
  std::string line = "  @" + std::to_string(position) + " topic " + std::string(message.topic) +
                     " queue " + std::to_string(message.queue_id) + " offset " +
                     std::to_string(message.queue_offset);
  line += " bytes " + std::to_string(bytes) + " body " + std::to_string(message.body.size());
  line += " codec " + codec_text(message.sys_flag);
  line += " stored " + format_time(Timestamp(message.store_timestamp)) + " at " +
          host_text(message.store_host);
  line += " born " + format_time(Timestamp(message.born_timestamp)) + " at " +
          host_text(message.born_host);
  for (const auto& [label, name] : {std::pair{"tag", rocketmq::property::tags},
                                    {"keys", rocketmq::property::keys},
                                    {"id", rocketmq::property::unique_key}}) {
    if (const auto value = rocketmq::find_property(message.properties, name)) {
      line += std::string(" ") + label + " " + quoted(as_bytes(*value));
    }
  }
  if (message.magic == rocketmq::magic_v2) line += " version 2";
  if (message.flag != 0) line += " flag " + std::to_string(message.flag);
  if ((message.sys_flag & flags::transaction_mask) != 0) {
    line += " transaction " + std::string(transaction_text(message.sys_flag)) + " of " +
            std::to_string(message.prepared_transaction_offset);
  }
  if ((message.sys_flag & flags::inner_batch) != 0) line += " inner-batch";
  if (message.reconsume_times != 0) {
    line += " reconsumed " + std::to_string(message.reconsume_times);
  }
  return line + " crc " + hex(message.body_crc) +
         (rocketmq::crc_matches(message) ? " ok" : " WRONG");
}

JsonWriter json_object(const Message& message, std::uint64_t position, std::size_t bytes) {
  JsonWriter json = json_of_type("message");
  json.field("position", position).field("bytes", bytes);
  json.field("version", message.magic == rocketmq::magic_v2 ? 2 : 1);
  json.field("topic", message.topic).field("queue", message.queue_id);
  json.field("queue_offset", message.queue_offset);
  json.field("physical_offset", message.physical_offset);
  json.field("message_id",
             rocketmq::offset_message_id(message.store_host, message.physical_offset));
  json.field("flag", message.flag).field("sys_flag", message.sys_flag);
  json.field("codec", codec_text(message.sys_flag));
  json.field("transaction", transaction_text(message.sys_flag));
  json.field("prepared_transaction_offset", message.prepared_transaction_offset);
  json.field("inner_batch", (message.sys_flag & flags::inner_batch) != 0);
  json.field("reconsume_times", message.reconsume_times);
  json.field("store_timestamp", message.store_timestamp);
  json.field("store_host", host_text(message.store_host));
  json.field("born_timestamp", message.born_timestamp);
  json.field("born_host", host_text(message.born_host));
  json.field("body_bytes", message.body.size());
  json.field("crc", hex(message.body_crc)).field("crc_ok", rocketmq::crc_matches(message));
  return json;
}

std::string content_line(const Message& message) {
  std::string line = "    body " + quoted(message.body);
  rocketmq::for_each_property(
      message.properties, [&](std::string_view name, std::string_view value) {
        line += " " + quoted(as_bytes(name)) + "=" + quoted(as_bytes(value));
        return true;
      });
  return line;
}

void add_content(JsonWriter& json, const Message& message) {
  json.bytes_field("body", message.body);
  json.key("properties").begin_array();
  rocketmq::for_each_property(message.properties,
                              [&](std::string_view name, std::string_view value) {
                                json.begin_object().bytes_field("name", as_bytes(name));
                                json.bytes_field("value", as_bytes(value)).end_object();
                                return true;
                              });
  json.end_array();
}

class CommitLogDump {
 public:
  CommitLogDump(const DumpFile& file, const DumpOptions& options, DumpReport& report)
      : file_(file), options_(options), report_(report), progress_(file.path, file.size) {}

  Result<void> run() {
    POLYLOG_TRY(walk_frames(
        file_, RecordDecoder{}, record_bytes_max,
        [this](const ScanFrame& frame) { return visit(frame); },
        [this](std::uint64_t& position) { return step_over(position); }));
    report_.end_file({{"messages", messages_}});
    return {};
  }

 private:
  ScanStep visit(const ScanFrame& frame) {
    const auto message = rocketmq::parse(frame.bytes);
    if (!message) {
      why_ = message.error().context;
      return ScanStep::corrupt;
    }
    progress_.at(frame.position);
    if (report_.json()) {
      JsonWriter json = json_object(*message, frame.position, frame.bytes.size());
      if (options_.records) add_content(json, *message);
      report_.object(json);
    } else {
      report_.person(person_line(*message, frame.position, frame.bytes.size()));
      if (options_.records) report_.person(content_line(*message));
    }
    check(*message, frame);
    ++messages_;
    return ScanStep::next;
  }

  void check(const Message& message, const ScanFrame& frame) {
    const auto place = file_.base_offset.value() + static_cast<std::int64_t>(frame.position);
    if (message.physical_offset != place) {
      report_.damage(frame.position, "the record says that it lies at " +
                                         std::to_string(message.physical_offset) + ", not at " +
                                         std::to_string(place));
    }
    if (!rocketmq::crc_matches(message)) {
      report_.damage(frame.position, "the body's checksum is wrong");
    }
    if (options_.deep && rocketmq::check_property_crc(frame.bytes) == rocketmq::PropertyCrc::bad) {
      report_.damage(frame.position, "the record's checksum, in its last property, is wrong");
    }
  }

  // What lies where the scan found no record. True: it goes on at the new `position`.
  Result<bool> step_over(std::uint64_t& position) {
    const std::uint64_t left = file_.size - position;
    std::array<std::uint8_t, rocketmq::blank_bytes> head{};
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, head.size()));
    POLYLOG_ASSIGN(got, file_.file->read(position, MutableBytes(head).first(wanted)));
    const rocketmq::FrameHead frame = rocketmq::next_frame(ByteView(head).first(got), left);
    switch (frame.state) {
      case FrameState::zeros: return zeros(position);
      case FrameState::blank: return blank(position, frame.size);
      case FrameState::torn:
        if (frame.size == 0 || frame.size > record_bytes_max) break;
        why_ = "a record of " + std::to_string(frame.size) + " bytes, of which the file has " +
               std::to_string(left);
        break;
      case FrameState::complete:
      case FrameState::corrupt: break;
    }
    if (why_.empty()) why_ = left < head.size() ? "a few bytes" : "neither a size nor a magic";
    const std::string why = std::exchange(why_, {});
    POLYLOG_ASSIGN(next, next_record(position));
    position = report_lost(file_, position, why, next, report_);
    return next.has_value();
  }

  bool blank(std::uint64_t position, std::uint64_t remaining) {
    const std::uint64_t left = file_.size - position;
    if (report_.json()) {
      JsonWriter json = json_of_type("blank");
      json.field("position", position).field("remaining", remaining);
      report_.object(json);
    } else {
      report_.person("  @" + std::to_string(position) + " blank record, " +
                     std::to_string(remaining) + " bytes to the end of the file");
    }
    if (remaining != left) {
      report_.damage(position, "the file goes on for " + std::to_string(left) + " bytes");
    }
    return false;
  }

  // The log ends where the first zeros are. What a truncation cut off may still be behind them.
  Result<bool> zeros(std::uint64_t position) {
    POLYLOG_ASSIGN(other, first_other_byte(file_, position));
    const std::string zeros = std::to_string((other ? *other : file_.size) - position);
    report_.note(position, other ? zeros +
                                       " zero bytes end the log; what lies behind them, from "
                                       "byte " +
                                       std::to_string(*other) + ", is not part of it"
                                 : "zeros to the end of the file, " + zeros +
                                       " bytes: reserved, or written by no one");
    return false;
  }

  // The first place behind `position` whose bytes have a record's magic and say that they lie
  // there.
  Result<std::optional<std::uint64_t>> next_record(std::uint64_t position) {
    std::vector<std::uint8_t> chunk(1 << 20);
    for (std::uint64_t from = position + 1; from + resync_bytes <= file_.size;) {
      POLYLOG_ASSIGN(got, file_.file->read(from, chunk));
      if (got < resync_bytes) break;
      for (std::size_t i = 0; i + resync_bytes <= got; ++i) {
        if (chunk[i + at::magic] != 0xda) continue;
        const ByteView head = ByteView(chunk).subspan(i, resync_bytes);
        const auto place = file_.base_offset.value() + static_cast<std::int64_t>(from + i);
        if (rocketmq::next_frame(head, file_.size - from - i).state == FrameState::complete &&
            load_big<std::int64_t>(head.data() + at::physical_offset) == place) {
          return from + i;
        }
      }
      from += got - resync_bytes + 1;
    }
    return std::optional<std::uint64_t>();
  }

  const DumpFile& file_;
  const DumpOptions& options_;
  DumpReport& report_;
  Progress progress_;
  std::string why_;  // the scan stopped
  std::int64_t messages_ = 0;
};

}  // namespace

Result<void> dump_commit_log(const DumpFile& file, const DumpOptions& options, DumpReport& report) {
  report.begin_file(
      file.path, "commit_log",
      {{"position", file.base_offset.value()}, {"bytes", static_cast<std::int64_t>(file.size)}});
  return CommitLogDump(file, options, report).run();
}

}  // namespace polylog::cli
