#include <algorithm>

#include "cli/dump_whole.h"
#include "cli/text.h"
#include "format/kafka/checkpoint.h"
#include "format/kafka/snapshot.h"

namespace polylog::cli {
namespace {

void show_producer(ProducerId id, const ProducerState::Entry& entry, DumpReport& report) {
  const bool has_batch = !entry.batches.empty();
  const ProducerState::BatchStamp last =
      has_batch ? entry.batches.back() : ProducerState::BatchStamp{.last = Offset(-1)};
  if (report.json()) {
    JsonWriter json = json_of_type("entry");
    json.field("producer_id", id.value()).field("producer_epoch", entry.epoch);
    json.field("last_sequence", last.last_sequence).field("last_offset", last.last.value());
    json.field("offset_delta", last.offset_delta);
    json.field("timestamp", entry.last_timestamp.value());
    json.field("coordinator_epoch", entry.coordinator_epoch).key("transaction_first_offset");
    if (entry.transaction_first) {
      json.value(entry.transaction_first->value());
    } else {
      json.null();
    }
    return report.object(json);
  }
  std::string line =
      "  producer " + std::to_string(id.value()) + "/" + std::to_string(entry.epoch) +
      " last sequence " + std::to_string(last.last_sequence) + " last offset " +
      std::to_string(last.last.value()) + " offset delta " + std::to_string(last.offset_delta) +
      " time " + format_time(entry.last_timestamp) + " coordinator epoch " +
      std::to_string(entry.coordinator_epoch);
  if (entry.transaction_first) {
    line += " transaction open since offset " + std::to_string(entry.transaction_first->value());
  }
  report.person(line);
}

}  // namespace

Result<std::vector<std::uint8_t>> read_whole(const DumpFile& file) {
  constexpr std::uint64_t file_bytes_max = std::uint64_t{256} << 20;
  if (file.size > file_bytes_max) {
    return fail(Errc::too_large,
                file.path + " has " + format_size(file.size) + "; files of this kind are small");
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.size));
  POLYLOG_ASSIGN(got, file.file->read(0, bytes));
  bytes.resize(got);
  return bytes;
}

void show_pairs(const std::vector<std::pair<std::string, DumpValue>>& pairs, DumpReport& report) {
  std::string line = " ";
  JsonWriter json = json_of_type("entry");
  for (const auto& [name, value] : pairs) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    line += " " + words + " ";
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      line += std::to_string(*number);
      json.field(name, *number);
    } else {
      line += std::get<std::string>(value);
      json.field(name, std::get<std::string>(value));
    }
  }
  if (report.json()) {
    report.object(json);
  } else {
    report.person(line);
  }
}

Result<void> dump_snapshot(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) { return format::kafka::decode_snapshot(bytes); };
  return dump_whole(file, "producer_snapshot", report, decode, [&](const ProducerState& state) {
    std::vector<ProducerId> ids;
    for (const auto& [id, entry] : state.entries()) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (const ProducerId id : ids) show_producer(id, state.entries().at(id), report);
    return ids.size();
  });
}

Result<void> dump_epoch_checkpoint(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) {
    return format::kafka::parse_epoch_checkpoint(as_text(bytes));
  };
  return dump_whole(file, "leader_epoch_checkpoint", report, decode,
                    [&](const std::vector<EpochList::Entry>& entries) {
                      for (const EpochList::Entry& entry : entries) {
                        show_pairs({{"epoch", std::int64_t{entry.epoch.value()}},
                                    {"start_offset", entry.start.value()}},
                                   report);
                      }
                      return entries.size();
                    });
}

Result<void> dump_offset_checkpoint(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) {
    return format::kafka::parse_offset_checkpoint(as_text(bytes));
  };
  return dump_whole(file, "offset_checkpoint", report, decode,
                    [&](const std::vector<format::kafka::PartitionOffset>& entries) {
                      for (const format::kafka::PartitionOffset& entry : entries) {
                        JsonWriter json = json_of_type("entry");
                        json.field("topic", entry.id.topic).field("partition", entry.id.partition);
                        json.field("offset", entry.offset.value());
                        if (report.json()) {
                          report.object(json);
                        } else {
                          report.person("  " + format::kafka::partition_directory_name(entry.id) +
                                        " offset " + std::to_string(entry.offset.value()));
                        }
                      }
                      return entries.size();
                    });
}

Result<void> dump_partition_metadata(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) {
    return format::kafka::parse_partition_metadata(as_text(bytes));
  };
  return dump_whole(file, "partition_metadata", report, decode, [&](const Uuid& topic) {
    show_pairs({{"topic_id", topic.to_string()}}, report);
    return std::size_t{1};
  });
}

Result<void> dump_meta_properties(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) {
    return format::kafka::parse_meta_properties(as_text(bytes));
  };
  return dump_whole(file, "meta_properties", report, decode,
                    [&](const format::kafka::MetaProperties& properties) {
                      std::vector<std::pair<std::string, DumpValue>> pairs = {
                          {"version", std::int64_t{properties.version}},
                          {"cluster_id", properties.cluster_id},
                          {"node_id", std::int64_t{properties.node_id}}};
                      if (properties.directory_id) {
                        pairs.emplace_back("directory_id", properties.directory_id->to_string());
                      }
                      show_pairs(pairs, report);
                      return std::size_t{1};
                    });
}

Result<void> dump_clean_shutdown(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) {
    return format::kafka::parse_clean_shutdown(as_text(bytes));
  };
  return dump_whole(file, "clean_shutdown", report, decode, [&](std::int64_t broker_epoch) {
    show_pairs({{"broker_epoch", broker_epoch}}, report);
    return std::size_t{1};
  });
}

}  // namespace polylog::cli
