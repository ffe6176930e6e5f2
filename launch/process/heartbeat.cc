#include "launch/process/heartbeat.h"
