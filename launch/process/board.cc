#include "launch/process/board.h"
