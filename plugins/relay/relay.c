// relay passes on every message, headers included, on every channel it may send on.
#include "bare.h"

TERRARIUM_MARKER()

int32_t creature_init(void) {
	return tr_config_knows(TR("")) ? TERRARIUM_OK : TERRARIUM_ERR_INVALID_ARGUMENT;
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_bytes payload;
	if (kind != TERRARIUM_KIND_MESSAGE && kind != TERRARIUM_KIND_OUTPUT) return TERRARIUM_OK;
	tr_begin();
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	return status < 0 ? status : tr_forward(TERRARIUM_ALL_CHANNELS, payload);
}
