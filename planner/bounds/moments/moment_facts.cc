#include "planner/bounds/moments/moment_facts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "planner/bounds/facts/joint_facts.h"
#include "planner/stage_cost.h"

namespace siphon {
namespace {

bool IsBackward(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}

// Whether all that is computed of a step is there, and before all STEPs.
bool IsPlain(const std::vector<Action>& program) {
  bool stepped = false;
  for (const Action& action : program) {
    if (action.pairing == Pairing::kWithNext) return false;
    stepped |= action.kind == ActionKind::kStep;
    if (stepped && IsCompute(action.kind)) return false;
  }
  return true;
}

class MomentMaker {
 public:
  MomentMaker(const PlanningProblem& problem, const BoundFacts& facts)
      : problem_(problem), facts_(facts), costs_(StageCosts(problem.profile, problem.partition)) {}

  std::optional<MomentFacts> Make() {
    size_t actions = 0;
    for (const std::vector<Action>& program : problem_.schedule.programs) {
      if (!IsPlain(program)) return std::nullopt;
      actions += std::count_if(program.begin(), program.end(),
                               [](const Action& action) { return IsCompute(action.kind); });
    }
    if (actions > kMostMoments) return std::nullopt;
    for (size_t worker = 0; worker < facts_.memory.size(); ++worker) {
      if (!AddWorker(static_cast<int>(worker))) return std::nullopt;
    }
    AddLinks();
    return std::move(made_);
  }

 private:
  bool AddWorker(int worker) {
    const std::vector<Action>& program = problem_.schedule.programs[worker];
    std::vector<int>& places = made_.places.emplace_back();
    for (int place = 0; place < static_cast<int>(program.size()); ++place) {
      if (IsCompute(program[place].kind)) places.push_back(place);
    }
    WorkerMoments& made = made_.workers.emplace_back();
    if (places.empty() || !FindLives(worker, made)) return false;
    made.moments.resize(places.size() + 2);
    for (size_t index = 0; index < places.size(); ++index) {
      Fill({worker, places[index]}, static_cast<int>(index) + 1, made);
    }
    for (size_t life = 0; life < made.lives.size(); ++life) {
      made.moments[made.lives[life].backward].ends_life = static_cast<int>(life);
      AddBytes(worker, made.lives[life], made);
    }
    for (const StageId stage : facts_.memory[worker].stages) {
      made.parameters.push_back(costs_[stage.value].parameters);
      made.gradients.push_back(costs_[stage.value].gradients);
    }
    const PathPlace last{worker, places.back()};
    made.tail = facts_.paths.Tail(last) - facts_.paths.Duration(last);
    return true;
  }

  int StageOf(int worker, StageId stage) const { return PlaceOf(facts_.memory[worker], stage); }

  bool FindLives(int worker, WorkerMoments& made) const {
    std::map<std::pair<StageId, MicrobatchId>, MomentLife> lives;
    const std::vector<int>& places = made_.places[worker];
    for (size_t index = 0; index < places.size(); ++index) {
      const Action& action = problem_.schedule.programs[worker][places[index]];
      MomentLife& life = lives[{action.stage, action.microbatch}];
      const int moment = static_cast<int>(index) + 1;
      life.stage = StageOf(worker, action.stage);
      if (action.kind == ActionKind::kForward) life.forward = moment;
      if (IsBackward(action.kind)) life.backward = moment;
      life.end = std::max(life.end, moment);
    }
    for (const auto& [key, life] : lives) {
      if (life.forward == 0 || life.backward <= life.forward) return false;
      made.lives.push_back(life);
    }
    std::sort(made.lives.begin(), made.lives.end(),
              [](const MomentLife& a, const MomentLife& b) { return a.forward < b.forward; });
    return true;
  }

  void Fill(PathPlace at, int index, WorkerMoments& made) const {
    const Action& action = problem_.schedule.programs[at.worker][at.place];
    const StageCost& cost = costs_[action.stage.value];
    Moment& moment = made.moments[index];
    moment.stage = StageOf(at.worker, action.stage);
    moment.duration = facts_.paths.Duration(at);
    moment.head = facts_.paths.Head(at);
    moment.uses_gradients =
        action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight;
    const bool takes_time = action.kind == ActionKind::kBackward || cost.input_backward > Nanos(0);
    if (IsBackward(action.kind) && takes_time) moment.fixed += PassWorkspace(cost, action.kind);
  }

  void AddBytes(int worker, const MomentLife& life, WorkerMoments& made) const {
    const StageId stage = facts_.memory[worker].stages[life.stage];
    for (int moment = life.forward + 1; moment <= life.backward; ++moment) {
      made.moments[moment].live += costs_[stage.value].stash;
    }
    for (int moment = life.backward + 1; moment <= life.end; ++moment) {
      made.moments[moment].fixed += costs_[stage.value].kept_for_weights;
    }
  }

  void AddLinks() {
    const StepPaths& paths = facts_.paths;
    std::vector<bool> marked(paths.nodes(), false);
    std::map<size_t, std::pair<int, int>> moments;  // of a node: worker and moment
    for (int worker = 0; worker < static_cast<int>(made_.places.size()); ++worker) {
      for (size_t index = 0; index < made_.places[worker].size(); ++index) {
        const size_t node = paths.NodeOf({worker, made_.places[worker][index]});
        marked[node] = true;
        moments[node] = {worker, static_cast<int>(index) + 1};
      }
    }
    for (const PathLink& link : paths.LinksAmong(marked)) {
      const auto [from_worker, from] = moments[link.from];
      const auto [to_worker, to] = moments[link.to];
      made_.links.push_back({from_worker, from, to_worker, to, link.lag});
    }
  }

  const PlanningProblem& problem_;
  const BoundFacts& facts_;
  const std::vector<StageCost> costs_;
  MomentFacts made_;
};

}  // namespace

std::vector<MomentRange> MomentFacts::Seen(const BoundFacts& facts, int worker, int moment) const {
  const PathPlace at{worker, places[worker][moment - 1]};
  const std::vector<bool> ended = facts.paths.EndedBefore(at);
  const std::vector<bool> later = facts.paths.NotBefore(at);
  std::vector<MomentRange> seen;
  for (int other = 0; other < static_cast<int>(workers.size()); ++other) {
    MomentRange& range = seen.emplace_back();
    if (other == worker) {
      range = {moment, moment};
      continue;
    }
    const int actions = static_cast<int>(places[other].size());
    for (int index = 1; index <= actions; ++index) {
      const size_t node = facts.paths.NodeOf({other, places[other][index - 1]});
      if (ended[node]) range.before = index;
      if (!later[node]) continue;
      range.behind = index;
      break;
    }
  }
  return seen;
}

std::optional<MomentFacts> MomentFactsOf(const PlanningProblem& problem, const BoundFacts& facts) {
  if (facts.updates_within || facts.replicas > 1) return std::nullopt;
  if (facts.paths.nodes() > kMostJointActions) return std::nullopt;
  return MomentMaker(problem, facts).Make();
}

}  // namespace siphon
