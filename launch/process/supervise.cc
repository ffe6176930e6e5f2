#include "launch/process/supervise.h"
