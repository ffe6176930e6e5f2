#include "pipeline/transport/in_process_transport.h"
