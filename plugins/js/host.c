#include "host.h"

#include <stdlib.h>

#include <quickjs/cutils.h>
#include "terrarium.h"

// A datum is a text as UTF-8, or bytes. Nothing is converted here: values that are
// neither become text in runtime.js, so that no script runs between two conversions.
typedef struct {
	const void *ptr;
	int32_t len;
	const char *text; // to be freed
} datum;

static int get_datum(JSContext *js, JSValueConst value, datum *d) {
	size_t len = 0;
	*d = (datum){"", 0, NULL};
	if (JS_IsUndefined(value)) return 1;
	if (JS_IsString(value)) {
		d->ptr = d->text = JS_ToCStringLen(js, &len, value);
		if (!d->text) return 0;
	} else {
		d->ptr = JS_GetUint8Array(js, &len, value);
		if (!d->ptr && JS_HasException(js)) return 0;
	}
	d->len = (int32_t)len;
	return 1;
}

// get_bytes copies a source; the caller frees it.
static uint8_t *get_bytes(JSContext *js, int32_t source, int32_t *len) {
	*len = terrarium_size(source);
	if (*len < 0) *len = 0;
	uint8_t *bytes = js_malloc(js, (size_t)*len + 1);
	if (bytes) *len = terrarium_read(source, 0, bytes, *len);
	return bytes;
}

JSValue host_text(JSContext *js, int32_t source, int lossy) {
	int32_t len;
	size_t units;
	uint8_t *bytes = get_bytes(js, source, &len);
	if (!bytes) return JS_EXCEPTION;
	JSValue text = JS_UNDEFINED;
	if (lossy || !(utf8_scan((const char *)bytes, (size_t)len, &units) & UTF8_HAS_ERRORS))
		text = JS_NewStringLen(js, (const char *)bytes, (size_t)len);
	js_free(js, bytes);
	return text;
}

static int32_t source_of(JSContext *js, JSValueConst value) {
	int32_t source = -1;
	JS_ToInt32(js, &source, value);
	return source;
}

static JSValue text(JSContext *js, JSValueConst this, int argc, JSValueConst *argv) {
	(void)this, (void)argc;
	return host_text(js, source_of(js, argv[0]), JS_ToBool(js, argv[1]));
}

static JSValue bytes(JSContext *js, JSValueConst this, int argc, JSValueConst *argv) {
	(void)this, (void)argc;
	int32_t len;
	uint8_t *copy = get_bytes(js, source_of(js, argv[0]), &len);
	if (!copy) return JS_EXCEPTION;
	JSValue array = JS_NewUint8ArrayCopy(js, copy, (size_t)len);
	js_free(js, copy);
	return array;
}

static JSValue feature(JSContext *js, JSValueConst this, int argc, JSValueConst *argv) {
	(void)this, (void)argc;
	return JS_NewInt32(js, terrarium_feature(source_of(js, argv[0])));
}

static JSValue now(JSContext *js, JSValueConst this, int argc, JSValueConst *argv) {
	(void)this, (void)argc, (void)argv;
	return JS_NewInt64(js, terrarium_now() / 1000000);
}

static JSValue fuel(JSContext *js, JSValueConst this, int argc, JSValueConst *argv) {
	(void)this, (void)argc, (void)argv;
	return JS_NewInt64(js, terrarium_fuel_left());
}

static JSValue log_line(JSContext *js, JSValueConst this, int argc, JSValueConst *argv) {
	(void)this, (void)argc;
	datum d;
	if (!get_datum(js, argv[1], &d)) return JS_EXCEPTION;
	int32_t status = terrarium_log(source_of(js, argv[0]), d.ptr, d.len);
	JS_FreeCString(js, d.text);
	return JS_NewInt32(js, status);
}

static JSValue draw(JSContext *js, JSValueConst this, int argc, JSValueConst *argv) {
	(void)this, (void)argc;
	size_t len;
	uint8_t *ptr = JS_GetUint8Array(js, &len, argv[0]);
	if (!ptr && JS_HasException(js)) return JS_EXCEPTION;
	return JS_NewInt32(js, terrarium_random(ptr, (int32_t)len));
}

enum { CHANNEL, SEND, SEND_TO, REQUEST, REPLY, OUTPUT, STATE_GET, STATE_SET, STATE_DELETE, STATE_LIST, TIMER_SET, TIMER_CANCEL, TOOL, HTTP };

static int32_t perform(int op, datum a, datum b, datum headers, int64_t n, int64_t m) {
	switch (op) {
	case CHANNEL: return terrarium_channel(a.ptr, a.len);
	case SEND: return terrarium_send((int32_t)n, b.ptr, b.len, headers.ptr, headers.len);
	case SEND_TO: return terrarium_send_to(a.ptr, a.len, b.ptr, b.len);
	case REQUEST: return terrarium_request(a.ptr, a.len, b.ptr, b.len, n, m);
	case REPLY: return terrarium_reply(a.ptr, a.len);
	case OUTPUT: return terrarium_output(a.ptr, a.len);
	case STATE_GET: return terrarium_state_get(a.ptr, a.len, NULL, 0);
	case STATE_SET: return terrarium_state_set(a.ptr, a.len, b.ptr, b.len);
	case STATE_DELETE: return terrarium_state_delete(a.ptr, a.len);
	case STATE_LIST: return terrarium_state_list(a.ptr, a.len, NULL, 0);
	case TIMER_SET: return terrarium_timer_set(a.ptr, a.len, n, m, b.ptr, b.len);
	case TIMER_CANCEL: return terrarium_timer_cancel(a.ptr, a.len);
	case TOOL: return terrarium_tool(a.ptr, a.len, b.ptr, b.len);
	case HTTP: return terrarium_http(a.ptr, a.len, b.ptr, b.len, n);
	}
	return TERRARIUM_ERR_INTERNAL;
}

// call performs one of the functions with up to two data and two numbers: send takes
// (channel, data, headers), all others (data, data, number, number).
static JSValue call(JSContext *js, JSValueConst this, int argc, JSValueConst *argv, int op) {
	(void)this, (void)argc;
	datum a = {"", 0, NULL}, b = a, headers = a;
	int64_t n = 0, m = 0;
	JSValue result = JS_EXCEPTION;
	if (op == SEND ? JS_ToInt64(js, &n, argv[0]) || !get_datum(js, argv[2], &headers) : !get_datum(js, argv[0], &a)) goto done;
	if (!get_datum(js, argv[1], &b)) goto done;
	if (op != SEND && (JS_ToInt64Ext(js, &n, argv[2]) || JS_ToInt64Ext(js, &m, argv[3]))) goto done;
	result = JS_NewInt32(js, perform(op, a, b, headers, n, m));
done:
	JS_FreeCString(js, a.text);
	JS_FreeCString(js, b.text);
	JS_FreeCString(js, headers.text);
	return result;
}

static const JSCFunctionListEntry functions[] = {
	JS_CFUNC_DEF("text", 2, text), JS_CFUNC_DEF("read", 1, bytes), JS_CFUNC_DEF("feature", 1, feature),
	JS_CFUNC_DEF("nowMs", 0, now), JS_CFUNC_DEF("fuelLeft", 0, fuel), JS_CFUNC_DEF("log", 2, log_line),
	JS_CFUNC_DEF("random", 1, draw), JS_CFUNC_MAGIC_DEF("channel", 4, call, CHANNEL), JS_CFUNC_MAGIC_DEF("send", 4, call, SEND),
	JS_CFUNC_MAGIC_DEF("sendTo", 4, call, SEND_TO), JS_CFUNC_MAGIC_DEF("request", 4, call, REQUEST),
	JS_CFUNC_MAGIC_DEF("reply", 4, call, REPLY), JS_CFUNC_MAGIC_DEF("output", 4, call, OUTPUT),
	JS_CFUNC_MAGIC_DEF("stateGet", 4, call, STATE_GET), JS_CFUNC_MAGIC_DEF("stateSet", 4, call, STATE_SET),
	JS_CFUNC_MAGIC_DEF("stateDelete", 4, call, STATE_DELETE), JS_CFUNC_MAGIC_DEF("stateList", 4, call, STATE_LIST),
	JS_CFUNC_MAGIC_DEF("timerSet", 4, call, TIMER_SET), JS_CFUNC_MAGIC_DEF("timerCancel", 4, call, TIMER_CANCEL),
	JS_CFUNC_MAGIC_DEF("tool", 4, call, TOOL), JS_CFUNC_MAGIC_DEF("http", 4, call, HTTP),
};

JSValue host_object(JSContext *js) {
	JSValue host = JS_NewObject(js);
	if (!JS_IsException(host)) JS_SetPropertyFunctionList(js, host, functions, countof(functions));
	return host;
}
