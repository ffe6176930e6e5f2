// A plugin of an interface that never was.

extern "C" const char* SiphonPluginInterface() { return "Siphon plugin interface 0, LibTorch 1.0"; }
extern "C" void SiphonBuildModel(const void*, void*) {}
