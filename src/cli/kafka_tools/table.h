#pragma once

#include <vector>

#include "cli/kafka_tools/tool.h"

// Each tool's flags and what runs it, in a file of its name.
namespace polylog::cli::kafka_tools {

std::vector<Flag> topics_flags();
int run_topics(const Tool& tool, const Arguments& arguments);

std::vector<Flag> consumer_groups_flags();
int run_consumer_groups(const Tool& tool, const Arguments& arguments);

std::vector<Flag> configs_flags();
int run_configs(const Tool& tool, const Arguments& arguments);

std::vector<Flag> console_producer_flags();
int run_console_producer(const Tool& tool, const Arguments& arguments);

std::vector<Flag> console_consumer_flags();
int run_console_consumer(const Tool& tool, const Arguments& arguments);

std::vector<Flag> get_offsets_flags();
int run_get_offsets(const Tool& tool, const Arguments& arguments);

std::vector<Flag> delete_records_flags();
int run_delete_records(const Tool& tool, const Arguments& arguments);

std::vector<Flag> dump_log_flags();
int run_dump_log(const Tool& tool, const Arguments& arguments);

}  // namespace polylog::cli::kafka_tools
