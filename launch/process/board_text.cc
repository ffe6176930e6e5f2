#include "launch/process/board_text.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

using Json = nlohmann::json;

Json ToJson(const Board::Failure& failure) {
  return {{"rank", failure.rank},
          {"kind", static_cast<int>(failure.kind)},
          {"code", static_cast<int>(failure.code)},
          {"exit_code", failure.exit_code},
          {"action", failure.action},
          {"message", failure.message}};
}

// Throws what nlohmann throws.
Board::Failure FailureIn(const Json& json) {
  Board::Failure failure;
  failure.rank = json.at("rank").get<int>();
  failure.kind = static_cast<Board::FailureKind>(json.at("kind").get<int>());
  failure.code = static_cast<absl::StatusCode>(json.at("code").get<int>());
  failure.exit_code = json.at("exit_code").get<int>();
  failure.action = json.at("action").get<std::string>();
  failure.message = json.at("message").get<std::string>();
  return failure;
}

struct News {
  std::vector<std::pair<int, Board::Shown>> ranks;
  std::optional<Board::Failure> failure;
  bool stop = false;
};

// Throws what nlohmann throws.
News NewsIn(const Json& json) {
  News news;
  for (const Json& entry : json.at("ranks")) {
    Board::Shown shown;
    shown.pid = entry.at(1).get<int64_t>();
    shown.state = static_cast<Board::State>(entry.at(2).get<int>());
    shown.beats = entry.at(3).get<int64_t>();
    shown.actions = entry.at(4).get<int64_t>();
    shown.waits = entry.at(5).get<int64_t>();
    shown.action = entry.at(6).get<std::string>();
    news.ranks.emplace_back(entry.at(0).get<int>(), std::move(shown));
  }
  news.stop = json.at("stop").get<bool>();
  if (json.contains("failure")) news.failure = FailureIn(json.at("failure"));
  return news;
}

absl::Status NoBoard(absl::string_view line, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("this shows no board (", why, "): ", line.substr(0, 80)));
}

}  // namespace

std::string BoardText(const Board& board, const RankFilter& whose) {
  Json json = {{"ranks", Json::array()}, {"stop", board.stop_requested()}};
  for (int rank = 0; rank < board.ranks(); ++rank) {
    if (!whose(rank) || board.pid(rank) == 0) continue;
    json["ranks"].push_back({rank, board.pid(rank), static_cast<int>(board.state(rank)),
                             board.beats(rank), board.actions(rank), board.waits(rank),
                             board.action(rank)});
  }
  if (const auto failure = board.first_failure()) json["failure"] = ToJson(*failure);
  // A text may have been cut within a character.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status ShowBoardText(absl::string_view line, const RankFilter& whose, Board& board) {
  News news;
  try {
    news = NewsIn(Json::parse(line.begin(), line.end()));
  } catch (const Json::exception& error) {
    return NoBoard(line, error.what());
  }
  const auto is_rank = [&](int rank) { return 0 <= rank && rank < board.ranks(); };
  for (const auto& [rank, shown] : news.ranks) {
    if (!is_rank(rank) || !whose(rank)) return NoBoard(line, absl::StrCat("rank ", rank));
  }
  if (news.failure.has_value() && !is_rank(news.failure->rank)) {
    return NoBoard(line, absl::StrCat("rank ", news.failure->rank));
  }
  for (const auto& [rank, shown] : news.ranks) board.ShowElsewhere(rank, shown);
  if (news.stop) board.RequestStop();
  // Last: who sees the failure, sees the rest.
  if (news.failure.has_value()) board.AddFailure(*news.failure);
  return absl::OkStatus();
}

}  // namespace siphon
