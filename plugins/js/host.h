// The functions of the contract as functions of JavaScript, for runtime.js.
#ifndef HOST_H
#define HOST_H

#include <quickjs/quickjs.h>

// host_object returns the object that runtime.js gets as host, or an exception.
JSValue host_object(JSContext *js);

// The sources as values. host_text returns undefined for text that is not UTF-8, unless
// lossy is set.
JSValue host_text(JSContext *js, int32_t source, int lossy);

#endif
