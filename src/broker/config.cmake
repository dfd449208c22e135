# Settings and topic configs: values only, no reactor.
polylog_library(polylog_broker_config
  SOURCES config_layers.cc config_value.cc group_config.cc group_settings.cc settings.cc
          settings_toml.cc
          shared_log_keys.cc topic_config.cc topic_keys.cc
  DEPENDS polylog_base polylog_bytes
  LINK tomlplusplus::tomlplusplus)

polylog_test(broker_config_test
  SOURCES config_layers_test.cc config_value_test.cc group_settings_test.cc
          settings_guide_test.cc settings_test.cc
          shared_log_keys_test.cc topic_config_test.cc
  DEPENDS polylog_broker_config)
