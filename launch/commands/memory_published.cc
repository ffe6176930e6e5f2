// siphon memory --report published: our accounting beside MPress.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/commands/memory_report.h"
#include "launch/output/text_table.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/memory/mpress_tables.h"
#include "planner/status.h"

namespace siphon {
namespace {

using Json = nlohmann::ordered_json;

// So many that every stage reaches its steady state.
constexpr int kMicrobatches = 4 * kMpressStages;
constexpr double kGigabyte = 1e9;

struct Compared {
  MpressRow row;
  ModelOptions shape;
  MemoryEstimate estimate;
  bool searched = false;  // the paper gives no depth: the closest shape
};

struct Comparison {
  std::vector<Compared> rows;
  std::vector<std::pair<MpressShares, MpressShares>> shares;  // theirs, ours
  double sequence_384 = 0;  // worst deviation of Bert-0.64B with it
};

absl::StatusOr<Comparison> Compare() {
  Comparison comparison;
  for (const MpressRow& row : MpressTable2()) {
    SIPHON_ASSIGN_OR_RETURN(
        const Schedule schedule,
        BuildSchedule(row.schedule, {.workers = kMpressStages, .microbatches = kMicrobatches}));
    Compared compared{.row = row, .shape = FittedShape(row), .searched = row.layers == 0};
    if (compared.searched) {
      SIPHON_ASSIGN_OR_RETURN(compared.shape, ClosestShape(row, schedule));
    }
    SIPHON_ASSIGN_OR_RETURN(compared.estimate, EstimateRow(row, compared.shape, schedule));
    if (row.name == "Bert-0.64B") {
      ModelOptions shorter = compared.shape;
      shorter.sequence_length = 384;
      SIPHON_ASSIGN_OR_RETURN(const MemoryEstimate estimate, EstimateRow(row, shorter, schedule));
      comparison.sequence_384 = WorstDeviation(row, estimate);
    }
    for (const MpressShares& theirs : MpressTable1()) {
      if (theirs.name != row.name) continue;
      comparison.shares.emplace_back(theirs, SharesOf(row.name, compared.estimate));
    }
    comparison.rows.push_back(std::move(compared));
  }
  return comparison;
}

double Gigabytes(Bytes bytes) { return static_cast<double>(bytes.value) / kGigabyte; }

std::string Beside(double ours, double theirs) {
  return absl::StrFormat("%.1f / %.1f (%+.1f %%)", ours, theirs, 100 * (ours / theirs - 1));
}

std::string ShapeText(const Compared& compared) {
  return absl::StrCat(compared.shape.layers, " x ", compared.shape.hidden, ", sequence ",
                      compared.shape.sequence_length, compared.searched ? ", searched" : "");
}

std::string Table2(const Comparison& comparison) {
  std::vector<std::vector<std::string>> rows;
  for (const Compared& compared : comparison.rows) {
    const MpressRow& row = compared.row;
    rows.push_back({row.name, ShapeText(compared),
                    Beside(Gigabytes(TotalOf(compared.estimate)), row.total),
                    Beside(Gigabytes(LargestWorker(compared.estimate)), row.largest),
                    Beside(Gigabytes(SmallestWorker(compared.estimate)), row.smallest)});
  }
  return TextTable({"model", "layers x hidden", "total", "largest stage", "smallest stage"}, rows);
}

std::string Table1(const Comparison& comparison) {
  std::vector<std::vector<std::string>> rows;
  const auto beside = [](double ours, double theirs) {
    return absl::StrFormat("%.0f / %.0f", ours, theirs);
  };
  for (const auto& [theirs, ours] : comparison.shares) {
    rows.push_back({theirs.name, beside(ours.activations, theirs.activations),
                    beside(ours.optimizer, theirs.optimizer),
                    beside(ours.parameters_and_gradients, theirs.parameters_and_gradients)});
  }
  return TextTable({"model", "activations %", "optimizer %", "parameters and gradients %"}, rows);
}

}  // namespace

absl::StatusOr<std::string> PublishedText() {
  SIPHON_ASSIGN_OR_RETURN(const Comparison comparison, Compare());
  return absl::StrCat(
      "MPress (HPCA 2023), Table II: memory of 8 stages in GB (1e9 bytes), ours / published\n\n",
      Table2(comparison), "\nTable I: shares of a job's memory, ours / published\n\n",
      Table1(comparison),
      "\nThe paper prints no shapes. Those of GPT and of the two smaller Berts are fitted: they "
      "give "
      "the parameter\ncounts and every figure within 10 %. Blocks are cut at floor(i L / 8); GPT "
      "runs 1F1B in mixed precision\n(16 bytes a parameter), Bert runs PipeDream in fp32 with as "
      "many weight versions as minibatches in flight.\n\nWhere the paper contradicts itself:\n"
      "- Section II.A exchanges 1.5 MB a sample of Bert-0.64B between stages: sequences of 384. "
      "Table II asks for 512;\n  with 384 a figure is off by ",
      absl::StrFormat("%.0f", 100 * comparison.sequence_384),
      " %.\n- Table I's Bert row has more optimizer state than activations. No shape that gives "
      "Table II does:\n  its weights are too small for that.\n"
      "- The larger Berts state neither depth nor width. The shapes marked searched come closest "
      "among widths that\n  are multiples of 128; their deviations are what remains.\n");
}

absl::StatusOr<std::string> PublishedJson() {
  SIPHON_ASSIGN_OR_RETURN(const Comparison comparison, Compare());
  Json json;
  for (const Compared& compared : comparison.rows) {
    const MpressRow& row = compared.row;
    const auto published = [](double gigabytes) {
      return static_cast<int64_t>(gigabytes * 10 + 0.5) * 100'000'000;
    };
    json["table_2"].push_back({{"name", row.name},
                               {"layers", compared.shape.layers},
                               {"hidden", compared.shape.hidden},
                               {"sequence_length", compared.shape.sequence_length},
                               {"searched", compared.searched},
                               {"total_bytes", TotalOf(compared.estimate).value},
                               {"max_bytes", LargestWorker(compared.estimate).value},
                               {"min_bytes", SmallestWorker(compared.estimate).value},
                               {"published_total_bytes", published(row.total)},
                               {"published_max_bytes", published(row.largest)},
                               {"published_min_bytes", published(row.smallest)}});
  }
  for (const auto& [theirs, ours] : comparison.shares) {
    json["table_1"].push_back(
        {{"name", theirs.name},
         {"activations", ours.activations},
         {"optimizer", ours.optimizer},
         {"parameters_and_gradients", ours.parameters_and_gradients},
         {"published_activations", theirs.activations},
         {"published_optimizer", theirs.optimizer},
         {"published_parameters_and_gradients", theirs.parameters_and_gradients}});
  }
  return json.dump(2) + "\n";
}

}  // namespace siphon
