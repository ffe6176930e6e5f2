// Tables that compare with publications, as the real program prints them.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/launch/program/program_run.h"

namespace siphon {
namespace {

using testing::StartsWith;

class PublishedTables : public ProgramTest {};

// Table 1 of the paper and what we calculate: L2L within 1 ms, greedy never longer.
TEST_F(PublishedTables, WeightOffloading) {
  const ProgramEnd end = Siphon({"weight_offload"});
  ASSERT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(
      end.output,
      StartsWith(
          R"(Table 1 of the weight offloading paper (hal-03580767): ms a step, 12 GB/s each way; ours simulated, "paper" as published

network  depth  batch  compute    ILP  paper  bound  trimmed  gap %   auto  gap %  greedy  paper  greedy*  paper    L2L  paper
GPT-2       74     64    47421  47421  47421  47421    47421    0.0  47665    0.5   47421  47493    47421  47493  52707  52707
GPT-2       56     64    35553  35553  35553  35553    35553    0.0  35797    0.7   35553  35625    35553  35625  39543  39542
GPT-2       38     64    23694  23694  23694  23694    23694    0.0  23938    1.0   23694  23838    23694  23838  26387  26387
GPT-2       74     32    23697  23697  23697  23697    23697    0.0  23941    1.0   23697  23769    23697  23769  28983  28983
GPT-2       56     32    17762  17762  17762  17762    17762    0.0  18006    1.4   17762  17834    17762  17834  21752  21751
GPT-2       38     32    11840  11840  11840  11840    11840    0.0  12084    2.1   11840  11948    11840  11948  14533  14533
GPT-2       74     16    11612  11612  11612  11612    11612    0.0  11856    2.1   11612  11684    11612  11715  16898  16898
GPT-2       56     16     8697   8697   8697   8697     8697    0.0   8941    2.8    8697   8769     8697   8800  12687  12686
GPT-2       38     16     5794   5794   5794   5794     5794    0.0   6038    4.2    5866   5902     5794   5934   8487   8487
Bert       144     64    34486  34486  34486  34486    34486    0.0  34645    0.5   34486  34499    34486  34499  38379  38379
Bert        96     64    22965  22965  22965  22965    22965    0.0  23124    0.7   22965  22978    22965  22978  25578  25577
Bert       144     32    17443  17443  17443  17443    17443    0.0  17602    0.9   17443  17483    17443  17483  21336  21336
Bert        96     32    11617  11617  11617  11617    11617    0.0  11776    1.4   11617  11657    11617  11657  14230  14230
Bert       144     16     9090   9090   9090   9090     9090    0.0   9294    2.2    9090   9183     9090   9215  12983  12983
Bert        96     16     6058   6058   6058   6058     6058    0.0   6262    3.4    6058   6085     6058   6085   8671   8670
)"));
}

}  // namespace
}  // namespace siphon
