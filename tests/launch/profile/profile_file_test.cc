#include "launch/profile/profile_file.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace siphon {
namespace {

ProfileFile TwoLayers() {
  ProfileFile file;
  file.model = {
      .model = "gpt", .device = "AMD EPYC, 1 thread", .source = "measured", .microbatch = 4};
  file.model.layers = {
      {.name = "transformer.embeddings",
       .forward = Nanos(1'500'000),
       .optimizer = Nanos(123),
       .parameters = Bytes(1 << 20),
       .gradients = Bytes(1 << 20),
       .boundary = Bytes(4097)},
      {.name = "transformer.h.0",
       .forward = Nanos(2'000'000),
       .input_backward = Nanos(2'000'001),
       .weight_backward = Nanos(1),
       .whole_backward = Nanos(1'999'999),
       .recompute = Nanos(1'700'000),
       .saved = {{"attn.softmax", Bytes(640), 250'000}, {"x", Bytes(0), 1'000'000}},
       .kept_for_weights = Bytes(128)}};
  file.transport = {.latency = Nanos(3'200),
                    .rate = BytesPerSecond(4'700'000'000),
                    .copy_rate = BytesPerSecond(9'000'000'000),
                    .swap_rate = BytesPerSecond(5'500'000'000)};
  file.cores_together = {1000, 1850};
  return file;
}

constexpr absl::string_view kTwoLayers =
    R"(# Times and bytes of one microbatch on one device; parameters, gradients, optimizer_state and
# optimizer are of the layer, whatever the microbatch.
model: gpt
device: "AMD EPYC, 1 thread"
source: measured
microbatch: 4
link_latency: 3200ns
link_bytes_per_second: 4700000000
# Of a worker's own copy of a message, out of its memory or into it.
copy_bytes_per_second: 9000000000
# Of a core that copies tensors out of a worker's memory, or back.
swap_bytes_per_second: 5500000000
# What 1, 2, ... workers get computed at the same time, in thousandths of one alone; more workers
# share what the last of these get.
cores_together: [1000, 1850]
layers:
  - name: transformer.embeddings
    forward: 1500us
    input_backward: 0ns
    weight_backward: 0ns
    optimizer: 123ns
    parameters: 1MiB
    gradients: 1MiB
    optimizer_state: 0B
    boundary: 4097B
    forward_workspace: 0B
    backward_workspace: 0B
    kept_for_weights: 0B
  - name: transformer.h.0
    forward: 2ms
    input_backward: 2000001ns
    weight_backward: 1ns
    whole_backward: 1999999ns
    recompute: 1700us
    optimizer: 0ns
    parameters: 0B
    gradients: 0B
    optimizer_state: 0B
    boundary: 0B
    forward_workspace: 0B
    backward_workspace: 0B
    kept_for_weights: 128B
    saved:
      - {name: attn.softmax, bytes: 640B, made_ppm: 250000}
      - {name: x, bytes: 0B, made_ppm: 1000000}
)";

std::string Refusal(absl::string_view text) {
  const auto file = ParseProfile(text, "p.yaml");
  if (file.ok()) return "accepted";
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(file.status().message());
}

TEST(ProfileFile, IsYamlToTheLastDigit) { EXPECT_EQ(WriteProfile(TwoLayers()), kTwoLayers); }

TEST(ProfileFile, IsReadBackAsItWas) {
  const auto read = ParseProfile(kTwoLayers, "p.yaml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, TwoLayers());
}

TEST(ProfileFile, TakesNamesThatYamlWouldMisread) {
  ProfileFile file = TwoLayers();
  file.model.device = "# \"8\" cores: {a}, 'b' \\ 1e3";
  file.model.layers[0].name = "null";
  file.model.layers[1].name = "-1";
  file.model.layers[1].saved[0].name = "q, k: [0]";
  const auto read = ParseProfile(WriteProfile(file), "p.yaml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, file);
}

TEST(ProfileFile, NamesThePlaceOfWhatIsWrong) {
  EXPECT_EQ(Refusal("microbatch: 1\n"), "p.yaml:1:1: a profile has no 'layers'; it needs one");
  EXPECT_EQ(Refusal("microbatch: 0\nlayers: []\n"),
            "p.yaml: microbatch: is 0; write how many samples it has, from 1 up");
  EXPECT_EQ(Refusal("microbatch: 1\nlayers: 3\n"),
            "p.yaml:2:9: layers: is '3'; write a list of '- name: ...'");
  EXPECT_EQ(Refusal("microbatch: 1\nlayers: []\n"),
            "p.yaml:2:9: layers: there are none; write a list of '- name: ...', the model's first "
            "layer first");
  EXPECT_EQ(Refusal("microbatch: 1\nlayers:\n  - {name: a, forward: 1ns}\n"
                    "  - {name: a, forward: 1ns}\n"),
            "p.yaml:4:5: layers: 'a' stands twice; names are unique");
  EXPECT_EQ(Refusal(absl::StrReplaceAll(kTwoLayers, {{"2000001ns", "2000001"}})),
            "p.yaml:31:21: input_backward: '2000001' has no unit; known: ns, us, ms, s, min, h");
  EXPECT_EQ(Refusal(absl::StrReplaceAll(kTwoLayers, {{"boundary: 4097B", "boundry: 4097B"}})),
            "p.yaml:25:5: unknown key 'boundry'; did you mean 'boundary'?");
  EXPECT_EQ(Refusal(absl::StrReplaceAll(kTwoLayers, {{", bytes: 640B", ""}})),
            "p.yaml:44:9: a saved tensor has no 'bytes'; it needs one");
  EXPECT_EQ(Refusal("microbatch: 1\nlayers:\n  - name: a\n    forward: 1ns\n    saved_output: 8B\n "
                    "   saved:\n"
                    "      - {name: x, bytes: 7B}\n"),
            "p.yaml:3:5: saved_output: is 8 B, but the layer saves 7 B; it is a part of 'saved'");
  EXPECT_EQ(
      Refusal(absl::StrReplaceAll(kTwoLayers, {{"made_ppm: 1000000", "made_ppm: 249999"}})),
      "p.yaml:29:5: made_ppm: saved tensor 'x' has 249999, the one before 250000; they are in "
      "the order of saving");
  EXPECT_EQ(Refusal(absl::StrReplaceAll(kTwoLayers, {{"made_ppm: 1000000", "made_ppm: 1000001"}})),
            "p.yaml:45:9: made_ppm: is 1000001; must be from 0 to 1000000");
  EXPECT_EQ(Refusal(absl::StrReplaceAll(kTwoLayers, {{"1850", "2001"}})),
            "p.yaml: cores_together: item 2 is 2001; 2 workers get 1 to 2000 thousandths of a core "
            "together");
}

// A forward, a backward or an update that takes no time would be a mistake that nobody sees.
TEST(ProfileFile, SaysWhatItsLayersTake) {
  const auto refusal = [](absl::string_view layer) {
    return Refusal(
        absl::StrCat("microbatch: 1\nlayers:\n  - {name: a, forward: 0ns}\n  - {", layer, "}\n"));
  };
  EXPECT_EQ(refusal("name: b"),
            "p.yaml:4:5: layer 'b' has no 'forward'; write what a microbatch takes there, as in "
            "'forward: 2ms'");
  EXPECT_EQ(refusal("name: b, forward: 1ns"), "accepted");
  EXPECT_EQ(refusal("name: b, forward: 1ns, parameters: 8B, weight_backward: 1ns"),
            "p.yaml:4:5: layer 'b' has parameters, but no 'optimizer'; write what an update of "
            "them takes");
  EXPECT_EQ(refusal("name: b, forward: 1ns, parameters: 8B, input_backward: 1ns, optimizer: 1ns"),
            "p.yaml:4:5: layer 'b' has parameters, but no backward; write what their gradients of "
            "a microbatch take, 'weight_backward', beside 'input_backward', or 'whole_backward' "
            "for both at once");
  for (const absl::string_view backward : {"weight_backward", "whole_backward"}) {
    EXPECT_EQ(refusal(absl::StrCat("name: b, forward: 0ns, parameters: 8B, optimizer: 0ns, ",
                                   backward, ": 0ns")),
              "accepted");
  }
}

TEST(ProfileFile, KnowsWhereItsLayersStand) {
  const auto file = ParseProfile(
      "microbatch: 1\nlayers:\n  - {name: a, forward: 1ns,\n     optimizer: 1ns}\n"
      "  - {name: b, forward: 1ns, whole_backward: 1ns}\n",
      "p.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->places.size(), 2u);
  EXPECT_EQ(file->places[0].line, 3);
  EXPECT_TRUE(file->places[0].has_optimizer);
  EXPECT_FALSE(file->places[0].has_backward);
  EXPECT_EQ(file->places[1].line, 5);
  EXPECT_EQ(file->places[1].column, 5);
  EXPECT_FALSE(file->places[1].has_optimizer);
  EXPECT_TRUE(file->places[1].has_backward);
}

TEST(ProfileFile, IsMissedByItsName) {
  const auto file = LoadProfile("/no/such/profile.yaml");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(file.status().message(),
            "cannot read profile '/no/such/profile.yaml': No such file or "
            "directory");
}

}  // namespace
}  // namespace siphon
