// Prepares the interpreter for scripts: gives them the globals of the kit, and freezes
// everything that is built in. A warm instance must behave like a fresh one, so no turn may
// change what the next one finds; the variables of the script are the only cache.
(function (runtime) {
	"use strict";

	const define = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
	define("console", runtime.console);
	define("TerrariumError", runtime.TerrariumError);
	for (const [name, instead] of Object.entries(runtime.absent))
		define(name, { [name]() { throw new ReferenceError(`${name} does not exist in a creature: ${instead}`); } }[name]);
	Object.defineProperty(Math, "random", { value: { random: () => runtime.random() }.random });
	// These change how all later errors are made.
	delete Error.prepareStackTrace;
	delete Error.stackTraceLimit;

	// Prototypes that no global leads to.
	const hidden = [
		function* () {}, async function () {}, async function* () {}, [].values(), new Map().entries(), new Set().values(),
		"".matchAll(/./g), ""[Symbol.iterator](), [].values().map((x) => x), Iterator.from({ next() {} }),
		Iterator.concat?.([]), Iterator.zip?.([]),
	];

	// A property of a frozen prototype cannot be assigned on the objects that inherit it.
	// Scripts do that with these, for example this.name = "MyError": a setter defines the
	// property on the object instead.
	function assignable(prototype) {
		for (const key of Reflect.ownKeys(prototype)) {
			const property = Object.getOwnPropertyDescriptor(prototype, key);
			if (!property.configurable || !("value" in property)) continue;
			const value = property.value;
			Object.defineProperty(prototype, key, {
				get: () => value,
				set(to) {
					if (this === prototype) throw new TypeError("what is built in cannot be changed");
					Object.defineProperty(this, key, { value: to, writable: true, enumerable: true, configurable: true });
				},
				configurable: false,
			});
		}
	}
	assignable(Object.prototype);
	for (const name of Object.getOwnPropertyNames(globalThis)) {
		const value = globalThis[name];
		if (typeof value === "function" && (value === Error || Error.isPrototypeOf(value))) assignable(value.prototype);
	}
	assignable(runtime.TerrariumError.prototype);

	const seen = new Set();
	const waiting = [];
	const add = (value) => {
		if (Object(value) !== value || seen.has(value)) return;
		seen.add(value);
		waiting.push(value);
	};
	[globalThis, ...runtime.reachable, ...hidden].forEach(add);
	for (let object; (object = waiting.pop()) !== undefined; ) {
		for (const key of Reflect.ownKeys(object)) {
			const property = Object.getOwnPropertyDescriptor(object, key);
			add(property.value);
			add(property.get);
			add(property.set);
		}
		add(Object.getPrototypeOf(object));
		if (object !== globalThis) Object.freeze(object);
	}
})
