#include "launch/output/start_log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace siphon {

void StartLog(const std::string& who, const std::string& level) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("siphon", sink);
  logger->set_pattern(who + ": %l: %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

void LogWarning(const std::string& text) { spdlog::warn("{}", text); }

}  // namespace siphon
