// courier posts every message to the URL in its configuration, and sends every response with
// the status 200 on all channels.
//
// clang -O2 --target=wasm32 -nostdlib -ffreestanding -I sdk/c -Wl,--no-entry -Wl,--export=creature_handle \
//   -Wl,--export=terrarium_abi_v1 -o courier.wasm courier.c
#include "terrarium.h"

static char head[1024], body[65536], detail[4096];

void terrarium_abi_v1(void) {}

static int32_t put(int32_t at, const char *text) {
	while (*text) head[at++] = *text++;
	return at;
}

// has reports whether bytes contain a text.
static int has(const char *bytes, int32_t len, const char *text) {
	for (int32_t i = 0; i < len; i++) {
		int32_t j = 0;
		while (text[j] && i + j < len && bytes[i + j] == text[j]) j++;
		if (!text[j]) return 1;
	}
	return 0;
}

int32_t creature_handle(int32_t kind, int32_t size) {
	int32_t n = terrarium_read(TERRARIUM_SOURCE_PAYLOAD, 0, body, sizeof body);
	(void)size;
	if (n < 0) return n;
	if (kind == TERRARIUM_KIND_MESSAGE) {
		int32_t at = put(0, "{\"method\":\"POST\",\"url\":\"");
		int32_t url = terrarium_config("url", 3, head + at, 512);
		if (url < 0) return url;
		at = put(at + url, "\"}");
		return terrarium_http(head, at, body, n, n);
	}
	if (kind == TERRARIUM_KIND_RESULT) {
		int32_t d = terrarium_read(TERRARIUM_SOURCE_DETAIL, 0, detail, sizeof detail);
		if (d < 0) return d;
		if (!has(detail, d, "\"status\":200")) return TERRARIUM_ERR_FAILED;
		return terrarium_send(TERRARIUM_ALL_CHANNELS, body, n, 0, 0);
	}
	return 0;
}
