// Which profiles are of which model: what differs first is named, with its place in the file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launch/profile/plan_with_costs.h"
#include "launch/profile/profile_file.h"

namespace siphon {
namespace {

ModelSpec TwoBlocks() {
  ModelOptions options;
  options.layers = 2;
  options.hidden = 16;
  options.heads = 2;
  options.sequence_length = 8;
  return BuildModelSpec(options).value();
}

// A file with these layers, each in a line of its own, from the fourth on.
ProfileFile FileOf(const std::vector<std::string>& layers) {
  std::string text = "model: gpt\nmicrobatch: 2\nlayers:\n";
  for (const std::string& name : layers) {
    text += "  - {name: " + name +
            ", forward: 1us, whole_backward: 2us, optimizer: 1us, boundary: 1024B}\n";
  }
  return ParseProfile(text, "p.yaml").value();
}

std::string Refusal(const ProfileFile& profile, absl::string_view path = "p.yaml") {
  const ModelSpec model = TwoBlocks();
  const absl::Status status = CheckProfileFits(profile, model, 2, path);
  if (status.ok()) return "fits";
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  std::string message(status.message());
  const std::string remedy = "; run siphon profile for this job";
  EXPECT_TRUE(message.ends_with(remedy)) << message;
  return message.substr(0, message.size() - remedy.size());
}

const char* const kEmbeddings = "transformer.embeddings";
const char* const kFirst = "transformer.h.0";
const char* const kSecond = "transformer.h.1";
const char* const kHead = "transformer.head";

TEST(CheckProfileFits, TakesTheModelsOwn) {
  EXPECT_EQ(TwoBlocks().layers.back().name, kHead);
  EXPECT_EQ(Refusal(FileOf({kEmbeddings, kFirst, kSecond, kHead})), "fits");
}

TEST(CheckProfileFits, NamesTheFirstLayerThatIsMissingOrDiffers) {
  EXPECT_EQ(Refusal(FileOf({kEmbeddings, kSecond, kHead})),
            "p.yaml:5:5: the profile has 3 layers, the model 4: 'transformer.h.0' is missing "
            "before 'transformer.h.1'");
  EXPECT_EQ(Refusal(FileOf({kEmbeddings, kFirst, kSecond})),
            "p.yaml:6:5: the profile has 3 layers, the model 4: 'transformer.head' is missing at "
            "the end");
  EXPECT_EQ(Refusal(FileOf({kEmbeddings, kFirst, "conv", kSecond, kHead})),
            "p.yaml:6:5: the profile has 5 layers, the model 4: layer 2 of the profile is 'conv', "
            "of the model 'transformer.h.1'");
  EXPECT_EQ(Refusal(FileOf({kEmbeddings, kFirst, kSecond, kHead, "loss"})),
            "p.yaml:8:5: the profile has 5 layers, the model 4: 'loss' comes after the model's "
            "last");
  EXPECT_EQ(Refusal(FileOf({kEmbeddings, "conv", kSecond, kHead})),
            "p.yaml:5:5: layer 1 of the profile is 'conv', of the model 'transformer.h.0'");
}

TEST(CheckProfileFits, HasNoPlaceOfWhatIsNoFiles) {
  EXPECT_EQ(Refusal(FileOf({kEmbeddings, "conv", kSecond, kHead}), ""),
            "layer 1 of the profile is 'conv', of the model 'transformer.h.0'");
  ProfileFile made = FileOf({kEmbeddings, "conv", kSecond, kHead});
  made.places.clear();
  EXPECT_EQ(Refusal(made),
            "p.yaml: layer 1 of the profile is 'conv', of the model "
            "'transformer.h.0'");
}

// A kind of ours that is another one; what else people write there says nothing.
TEST(CheckProfileFits, RefusesAnotherKindOfModelWithTheSameLayers) {
  ProfileFile profile = FileOf({kEmbeddings, kFirst, kSecond, kHead});
  profile.model.model = "mlp";
  EXPECT_EQ(Refusal(profile),
            "p.yaml:1:8: the profile is of a model of kind 'mlp', the job's is 'gpt'");
  profile.model.model = "GPT-2, small";
  EXPECT_EQ(Refusal(profile), "fits");
}

TEST(CheckProfileFits, RefusesOtherMicrobatches) {
  const ProfileFile profile = FileOf({kEmbeddings, kFirst, kSecond, kHead});
  EXPECT_EQ(CheckProfileFits(profile, TwoBlocks(), 4, "p.yaml").message(),
            "p.yaml:2:13: the profile has microbatches of 2, the job of 4; run siphon profile for "
            "this job");
}

// What was measured is of this model; what somebody wrote may be about anything like it.
TEST(CheckProfileFits, RefusesWhatWasMeasuredOfOtherSizes) {
  ProfileFile profile = FileOf({kEmbeddings, kFirst, kSecond, kHead});
  const ModelSpec model = TwoBlocks();
  std::vector<LayerProfile>& layers = profile.model.layers;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    Bytes handed_on, parameters;
    for (const TensorSpec& output : model.layers[layer].outputs) handed_on += SizeOf(output);
    for (const ParameterSpec& parameter : model.layers[layer].parameters) {
      parameters += SizeOf({DType::kFloat32, parameter.shape});
    }
    layers[layer].boundary = handed_on * 2;  // microbatches of 2
    layers[layer].parameters = parameters;
  }
  profile.model.source = "measured";
  EXPECT_EQ(Refusal(profile), "fits");
  layers[1].boundary = layers[1].boundary * 3;
  EXPECT_THAT(Refusal(profile),
              testing::StartsWith("p.yaml:5:5: layer 1 of the profile hands on "));
  layers[1].boundary = layers[2].boundary;
  layers[0].parameters = layers[0].parameters * 2;
  EXPECT_THAT(Refusal(profile), testing::StartsWith("p.yaml:4:5: layer 0 of the profile has "));
  profile.model.source = "published";
  EXPECT_EQ(Refusal(profile), "fits");
}

// The embeddings with their times, then 'transformer.h.0' with `times`.
std::string WithTimesOfTheFirst(const std::string& times) {
  return Refusal(ParseProfile("microbatch: 2\nlayers:\n"
                              "  - {name: transformer.embeddings, forward: 1us, "
                              "weight_backward: 0us, optimizer: 1us}\n"
                              "  - {name: transformer.h.0, forward: 1us" +
                                  times +
                                  "}\n"
                                  "  - {name: transformer.h.1, forward: 1us}\n"
                                  "  - {name: transformer.head, forward: 1us}\n",
                              "p.yaml")
                     .value());
}

TEST(CheckProfileFits, WantsTimesOfBackwardAndOptimizerWhereTheModelHasParameters) {
  EXPECT_EQ(WithTimesOfTheFirst(", whole_backward: 1us"),
            "p.yaml:4:5: layer 'transformer.h.0' has no 'optimizer', and 3280 parameters in the "
            "model");
  EXPECT_EQ(WithTimesOfTheFirst(", input_backward: 1us, optimizer: 1us"),
            "p.yaml:4:5: layer 'transformer.h.0' has no 'weight_backward', and 3280 parameters in "
            "the model");
}

}  // namespace
}  // namespace siphon
