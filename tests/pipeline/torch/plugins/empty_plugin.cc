// A shared object that is no plugin.

extern "C" int SiphonHasNothingToDoWithThis() { return 1; }
