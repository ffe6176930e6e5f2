#include "pipeline/torch/plugin.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& library, const ModelOptions& options = {}) {
  const auto model = LoadPluginModel(library, options);
  return model.ok() ? "no error" : std::string(model.status().message());
}

TEST(Plugin, BuildsItsModelFromTheOptions) {
  ModelOptions options;
  options.hidden = 6;
  const auto model = LoadPluginModel(SIPHON_TEST_PLUGIN, options);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->spec.layers.size(), 1u);
  EXPECT_EQ(model->spec.layers[0].parameters[0].shape, (std::vector<int64_t>{6, 3}));
  const std::vector<at::Tensor> parameters = {at::ones({6, 3})};
  LayerContext context(&parameters, {}, /*training=*/false);
  const auto outputs = model->forward[0](context, {at::full({2, 6}, 0.5)});
  EXPECT_TRUE(at::equal(outputs[0], at::full({2, 3}, 3.0)));
}

// A layer's mistakes are thrown: the worker says whose they are.
TEST(Plugin, MayNotAskForWhatItDoesNotHave) {
  const std::vector<at::Tensor> parameters = {at::ones({6, 3})};
  LayerContext context(&parameters, {}, /*training=*/true);
  EXPECT_THROW(context.Parameter(1), c10::IndexError);
  EXPECT_THROW(context.ParameterAsHeld(-1), c10::IndexError);
  EXPECT_THROW(context.DropoutMask({2}, 1.5), c10::ValueError);
  LayerContext evaluating(&parameters, {}, /*training=*/false);
  EXPECT_THROW(evaluating.DropoutMask({2}, 0.5), c10::Error);
}

TEST(Plugin, ReportsTheBuildersOwnErrors) {
  const std::string prefix = std::string("plugin ") + SIPHON_TEST_PLUGIN + ": ";
  ModelOptions options;
  options.activation = "fail";
  EXPECT_EQ(ErrorOf(SIPHON_TEST_PLUGIN, options), prefix + "no such activation: fail");
  options.activation = "throw";
  EXPECT_EQ(ErrorOf(SIPHON_TEST_PLUGIN, options),
            prefix + "LibTorch: building the model: thrown on purpose");
  options.activation = "forget";
  EXPECT_EQ(ErrorOf(SIPHON_TEST_PLUGIN, options),
            prefix + "the model has 1 layers and 0 forward functions; it needs one for each");
}

TEST(Plugin, NamesAMissingFile) {
  EXPECT_EQ(ErrorOf("/nowhere/libmine.so"), "plugin /nowhere/libmine.so: there is no such file");
  EXPECT_EQ(ErrorOf("libmine.so"), "plugin libmine.so: there is no such file");
}

TEST(Plugin, NamesAFileThatIsNoLibrary) {
  const std::string path = testing::TempDir() + "/siphon_no_library.so";
  std::ofstream(path) << "not a library";
  EXPECT_THAT(ErrorOf(path), HasSubstr("plugin " + path + ": it cannot be loaded: "));
  std::remove(path.c_str());
}

// Pages behind its end would kill whoever loads it.
TEST(Plugin, NamesAFileThatWasCutOff) {
  const std::string path = testing::TempDir() + "/siphon_cut_off.so";
  for (const uintmax_t kept : {100, 3000}) {
    std::filesystem::copy_file(SIPHON_TEST_PLUGIN, path,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(path, kept);
    EXPECT_EQ(ErrorOf(path),
              "plugin " + path + ": it is shorter than it says: a copy of it was cut off");
  }
  std::filesystem::remove(path);
}

TEST(Plugin, NamesALibraryThatIsNoPlugin) {
  EXPECT_EQ(ErrorOf(SIPHON_TEST_EMPTY_PLUGIN),
            std::string("plugin ") + SIPHON_TEST_EMPTY_PLUGIN +
                ": it does not define SiphonPluginInterface: put SIPHON_PLUGIN(your function) into "
                "one of its sources");
}

TEST(Plugin, NamesBothInterfacesWhenTheyDiffer) {
  EXPECT_EQ(ErrorOf(SIPHON_TEST_OLD_PLUGIN),
            std::string("plugin ") + SIPHON_TEST_OLD_PLUGIN +
                ": it was built for 'Siphon plugin interface 0, LibTorch 1.0' and this program has "
                "'" SIPHON_PLUGIN_INTERFACE "': build it again with this Siphon");
}

}  // namespace
}  // namespace siphon
