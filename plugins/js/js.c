// js runs a script in JavaScript: the attribute script of its configuration, or one that
// terrarium pack put into the module.
//
// The interpreter starts in _initialize, so that all instances share its memory, and the
// script is loaded in creature_init. runtime.js has the turn and the errors; this file
// calls it.
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "host.h"
#include "terrarium.h"

TERRARIUM_EXPORT("terrarium_abi_v1") void terrarium_abi_v1(void) {}
TERRARIUM_GRAPH_CHANGED()

// Below the stack there is room for a packed script, before the stack grows into it. It is
// copied in _initialize. The numbers are known to package abi/pack.
#define PACKED_AT 1024
#define PACKED_ROOM (768 * 1024)

// How deep scripts may nest, in bytes of the stack in linear memory. The host's limit
// stack, of which a call takes some 60 times as much, must not be reached first: that would
// be a trap. The tests of package plugins nest in many ways.
#define STACK_BYTES (46 * 1024)

// Set aside for the text of an error after the memory has run out.
#define RESERVE_BYTES (64 * 1024)

// The handler of creature_init; the others have the numbers of their kinds.
#define INIT 0
#define HANDLERS 16

static JSRuntime *engine;
static JSContext *js;
static JSValue bind_function, failure_function, rejected, handlers[HANDLERS];
static void *reserve;
static char *packed; // the script in the module, behind its name and a NUL
static size_t packed_len;

extern const char abi_js[], runtime_js[], harden_js[]; // sources.s

// Date takes its time from here.
int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
	(void)tz;
	int64_t t = terrarium_now();
	tv->tv_sec = t / 1000000000;
	tv->tv_usec = (suseconds_t)(t % 1000000000 / 1000);
	return 0;
}

static void say(const char *text, size_t len) { terrarium_log(TERRARIUM_LEVEL_ERROR, text, (int32_t)len); }

// fail logs what was thrown and returns the status of the turn. It frees the value.
static int32_t fail_with(JSValue thrown) {
	static const char lost[] = "the memory is used up";
	int32_t status = TERRARIUM_ERR_FAILED;
	free(reserve);
	reserve = NULL;
	if (JS_IsNull(thrown)) {
		// QuickJS throws null if there is no memory for an error.
		static const char null[] = "the script threw null, or the memory is used up";
		say(null, sizeof(null) - 1);
		return status;
	}
	JSValue pair = JS_Call(js, failure_function, JS_UNDEFINED, 1, (JSValueConst *)&thrown);
	JSValue text = JS_IsException(pair) ? JS_EXCEPTION : JS_GetPropertyUint32(js, pair, 1);
	size_t len;
	const char *bytes = JS_IsException(text) ? NULL : JS_ToCStringLen(js, &len, text);
	if (bytes) {
		JSValue number = JS_GetPropertyUint32(js, pair, 0);
		JS_ToInt32(js, &status, number);
		say(bytes, len);
	} else {
		say(lost, sizeof(lost) - 1);
	}
	JS_FreeCString(js, bytes);
	JS_FreeValue(js, text);
	JS_FreeValue(js, pair);
	JS_FreeValue(js, thrown);
	return status;
}

static int32_t fail(void) { return fail_with(JS_GetException(js)); }

static int32_t fail_text(const char *text) {
	say(text, strlen(text));
	return TERRARIUM_ERR_FAILED;
}

// track keeps the reason of a promise that was rejected without a handler.
static void track(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool handled, void *opaque) {
	(void)opaque;
	JSValue key = JS_UNDEFINED;
	JSValueConst pair[] = {promise, reason};
	JSValue method = JS_GetPropertyStr(ctx, rejected, handled ? "delete" : "set");
	key = JS_Call(ctx, method, rejected, 2, pair);
	JS_FreeValue(ctx, key);
	JS_FreeValue(ctx, method);
}

// first_rejected returns the reason of a rejected promise that no handler has, as [reason],
// or undefined.
static JSValue first_rejected(void) {
	int32_t size = 0;
	JSValue count = JS_GetPropertyStr(js, rejected, "size");
	JS_ToInt32(js, &size, count);
	if (size == 0) return JS_UNDEFINED;
	JSValue values = JS_GetPropertyStr(js, rejected, "values");
	JSValue iterator = JS_Call(js, values, rejected, 0, NULL);
	JSValue next = JS_GetPropertyStr(js, iterator, "next");
	JSValue step = JS_Call(js, next, iterator, 0, NULL);
	JSValue found = JS_NewArray(js);
	JS_SetPropertyUint32(js, found, 0, JS_GetPropertyStr(js, step, "value"));
	JS_FreeValue(js, step);
	JS_FreeValue(js, next);
	JS_FreeValue(js, iterator);
	JS_FreeValue(js, values);
	return found;
}

// settle runs what waits for promises, and returns a status. It frees result, which is what
// a handler or the module returned.
static int32_t settle(JSValue result, const char *pending) {
	JSContext *ctx;
	int jobs = 0, ran;
	int32_t status = TERRARIUM_OK;
	if (JS_IsException(result)) return fail();
	while ((ran = JS_ExecutePendingJob(engine, &ctx)) > 0) jobs++;
	if (ran < 0) status = fail();
	if (status == TERRARIUM_OK && JS_IsPromise(result)) {
		switch (JS_PromiseState(js, result)) {
		case JS_PROMISE_PENDING: status = fail_text(pending); break;
		case JS_PROMISE_REJECTED: status = fail_with(JS_PromiseResult(js, result)); break;
		default: break;
		}
	}
	JS_FreeValue(js, result);
	if (status != TERRARIUM_OK) return status;
	JSValue reason = first_rejected();
	if (!JS_IsUndefined(reason)) {
		status = fail_with(JS_GetPropertyUint32(js, reason, 0));
		JS_FreeValue(js, reason);
	}
	return status;
}

static JSModuleDef *no_modules(JSContext *ctx, const char *name, void *opaque) {
	(void)opaque;
	JS_ThrowReferenceError(ctx, "a creature is one file: it cannot import \"%s\"", name);
	return NULL;
}

static JSValue evaluate(const char *name, const char *source) {
	return JS_Eval(js, source, strlen(source), name, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_STRICT);
}

static int add_intrinsics(void) {
	// Without WeakRef and performance, which would show a script whether its instance is
	// warm.
	return JS_AddIntrinsicBaseObjects(js) || JS_AddIntrinsicDate(js) || JS_AddIntrinsicEval(js) || JS_AddIntrinsicRegExp(js) ||
	       JS_AddIntrinsicJSON(js) || JS_AddIntrinsicProxy(js) || JS_AddIntrinsicMapSet(js) || JS_AddIntrinsicTypedArrays(js) ||
	       JS_AddIntrinsicPromise(js) || JS_AddIntrinsicBigInt(js) || JS_AddIntrinsicAToB(js);
}

// take_packed copies the script that terrarium pack put below the stack.
static void take_packed(void) {
	volatile uint32_t *at = (volatile uint32_t *)PACKED_AT;
	uint32_t len = *at;
	if (!len || len > PACKED_ROOM) return;
	packed = malloc(len + 1);
	if (!packed) __builtin_trap();
	memcpy(packed, (const void *)(PACKED_AT + sizeof(len)), len);
	memset((void *)PACKED_AT, 0, len + sizeof(len));
	packed[len] = 0;
	packed_len = len;
}

static int start_runtime(void) {
	JSValue global = JS_GetGlobalObject(js);
	JSValue host = host_object(js);
	JS_SetPropertyStr(js, host, "scriptIsConfig", JS_NewBool(js, !packed));
	JSValue args[] = {host, evaluate("terrarium/abi.js", abi_js)};
	JSValue make = evaluate("terrarium/runtime.js", runtime_js);
	JSValue runtime = JS_Call(js, make, JS_UNDEFINED, 2, (JSValueConst *)args);
	JSValue harden = evaluate("terrarium/harden.js", harden_js);
	if (JS_IsException(runtime)) return -1;
	bind_function = JS_GetPropertyStr(js, runtime, "bind");
	failure_function = JS_GetPropertyStr(js, runtime, "failure");
	JSValue map = JS_GetPropertyStr(js, global, "Map");
	rejected = JS_CallConstructor(js, map, 0, NULL);
	JSValue hardened = JS_Call(js, harden, JS_UNDEFINED, 1, (JSValueConst *)&runtime);
	return JS_IsException(hardened) ? -1 : 0;
}

TERRARIUM_EXPORT("_initialize") void initialize(void) {
	take_packed();
	engine = JS_NewRuntime();
	js = engine ? JS_NewContextRaw(engine) : NULL;
	if (!js) __builtin_trap();
	JS_UpdateStackTop(engine);
	JS_SetMaxStackSize(engine, STACK_BYTES);
	JS_SetModuleLoaderFunc(engine, NULL, no_modules, NULL);
	for (int i = 0; i < HANDLERS; i++) handlers[i] = JS_UNDEFINED;
	failure_function = rejected = JS_UNDEFINED;
	if (add_intrinsics() || start_runtime()) {
		fail();
		__builtin_trap();
	}
	JS_SetHostPromiseRejectionTracker(engine, track, NULL);
	reserve = malloc(RESERVE_BYTES);
	JS_RunGC(engine);
}

// read_source returns a source as text with a NUL at its end, or NULL.
static char *read_source(int32_t source, int32_t *len) {
	*len = terrarium_size(source);
	char *text = *len >= 0 ? malloc((size_t)*len + 1) : NULL;
	if (!text) return NULL;
	*len = terrarium_read(source, 0, text, *len);
	text[*len] = 0;
	return text;
}

// load compiles and runs the script as a module and keeps its handlers.
static int32_t load(const char *script, size_t len, const char *name) {
	JSValue code = JS_Eval(js, script, len, name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	if (JS_IsException(code)) return fail();
	JSModuleDef *module = JS_VALUE_GET_PTR(code);
	int32_t status = settle(JS_EvalFunction(js, code), "the script waits for a promise that nothing resolves");
	if (status < 0) return status;
	JSValue space = JS_GetModuleNamespace(js, module);
	JSValue script_object = JS_GetPropertyStr(js, space, "default");
	JSValue bound = JS_Call(js, bind_function, JS_UNDEFINED, 1, (JSValueConst *)&script_object);
	JS_FreeValue(js, script_object);
	JS_FreeValue(js, space);
	if (JS_IsException(bound)) return fail();
	for (uint32_t i = 0; i < HANDLERS; i++) handlers[i] = JS_GetPropertyUint32(js, bound, i);
	JS_FreeValue(js, bound);
	JSValue global = JS_GetGlobalObject(js);
	int frozen = JS_FreezeObject(js, global);
	JS_FreeValue(js, global);
	return frozen < 0 ? fail() : TERRARIUM_OK;
}

static int32_t handle(int32_t kind) {
	if (kind < 0 || kind >= HANDLERS || JS_IsUndefined(handlers[kind])) return TERRARIUM_OK;
	return settle(JS_Call(js, handlers[kind], JS_UNDEFINED, 0, NULL),
	              "the handler waits for a promise that nothing resolves in this turn; results and timers arrive in later turns");
}

int32_t creature_init(void) {
	int32_t status, len = 0, script_len = 0;
	JS_UpdateStackTop(engine);
	if (packed) {
		size_t name = strlen(packed) + 1;
		status = load(packed + name, packed_len - name, packed);
	} else {
		if (terrarium_config("script", 6, NULL, 0) < 0) {
			fail_text("config script: it is required; write script = file(\"NAME.js\")");
			return TERRARIUM_ERR_NOT_FOUND;
		}
		char *script = read_source(TERRARIUM_SOURCE_RESULT, &script_len);
		char *self = read_source(TERRARIUM_SOURCE_SELF, &len);
		if (script && self) self = realloc(self, (size_t)len + sizeof(".js"));
		if (!script || !self) return fail_text("the script does not fit into the memory");
		memcpy(self + len, ".js", sizeof(".js"));
		status = load(script, (size_t)script_len, self);
		free(script);
		free(self);
	}
	return status < 0 ? status : handle(INIT);
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	JS_UpdateStackTop(engine);
	return kind == INIT ? TERRARIUM_OK : handle(kind);
}
