// Prepares a runtime. It runs once, before any policy.
(function (host) {
  'use strict';
  const { maxText, maxElements, maxSplit, enter, leave, jsonFits, maxDepth } = host;
  const { apply: reflectApply, getPrototypeOf, ownKeys, getOwnPropertyDescriptor, defineProperty } = Reflect;
  const { freeze, keys } = Object;
  const isArray = Array.isArray;
  const toText = String;
  const NativeRangeError = RangeError;
  const root = globalThis;

  const tooMuch = (what) => { throw new NativeRangeError(what + ' is larger than a policy may make it'); };
  const fits = (n, most, what) => { if (!(n <= most)) tooMuch(what); };

  // wrap replaces a method by one that checks its arguments first.
  const wrap = (owner, name, make) => {
    const d = getOwnPropertyDescriptor(owner, name);
    if (!d || typeof d.value !== 'function') return;
    defineProperty(owner, name, { ...d, value: make(d.value) });
  };

  // Texts: what makes a long one of a short one.
  const S = String.prototype;
  wrap(S, 'repeat', (f) => function repeat(n) {
    const s = toText(this); n = +n || 0;
    fits(s.length * n, maxText, 'the text');
    return reflectApply(f, s, [n]);
  });
  for (const name of ['padStart', 'padEnd']) {
    wrap(S, name, (f) => function (n, fill) {
      n = +n;
      fits(n, maxText, 'the text');
      return reflectApply(f, toText(this), fill === undefined ? [n] : [n, toText(fill)]);
    });
  }
  for (const name of ['replace', 'replaceAll']) {
    wrap(S, name, (f) => function (pattern, replacement) {
      const s = toText(this);
      if (typeof replacement !== 'function') {
        replacement = toText(replacement);
        // $& and its kin put a whole text in the place of two characters.
        const each = replacement.indexOf('$') < 0 ? replacement.length : replacement.length * (s.length + 1);
        fits((s.length + 1) * (each + 1), maxText * 16, 'the text');
      }
      return reflectApply(f, s, [pattern, replacement]);
    });
  }
  wrap(S, 'split', (f) => function split(separator, limit) {
    const s = toText(this);
    fits(s.length, maxSplit, 'the list');
    return reflectApply(f, s, [separator, limit]);
  });
  wrap(S, 'concat', (f) => function concat(...more) {
    const all = [toText(this), ...more.map(toText)];
    let n = 0;
    for (const s of all) n += s.length;
    fits(n, maxText, 'the text');
    return reflectApply(f, all[0], all.slice(1));
  });
  wrap(String, 'raw', (f) => function raw(strings, ...values) {
    fits(strings && strings.raw && strings.raw.length, maxElements, 'the list');
    return reflectApply(f, this, [strings, ...values]);
  });

  // Arrays: what goes through one in a single step.
  const A = Array.prototype;
  const deep = ['join', 'toString', 'toLocaleString', 'flat'];
  for (const name of ownKeys(A)) {
    if (name === 'constructor' || name === 'push' || name === 'pop') continue;
    wrap(A, name, (f) => function (...args) {
      if (this !== null && this !== undefined) fits(+this.length || 0, maxElements, 'the list');
      return reflectApply(f, this, args);
    });
  }
  const textSize = (list, separator) => {
    let n = (list.length || 0) * separator;
    for (let i = 0; i < list.length && n <= maxText; i++) {
      if (typeof list[i] === 'string') n += list[i].length;
    }
    return n;
  };
  for (const name of deep) {
    wrap(A, name, (f) => function (...args) {
      enter();
      try {
        if (name === 'join') fits(textSize(this, args[0] === undefined ? 1 : toText(args[0]).length), maxText, 'the text');
        if (name === 'flat' && args[0] > maxDepth) args = [maxDepth];
        return reflectApply(f, this, args);
      } finally { leave(); }
    });
  }
  wrap(A, 'concat', (f) => function concat(...args) {
    let n = 0;
    for (const a of [this, ...args]) n += isArray(a) ? a.length : 1;
    fits(n, maxElements, 'the list');
    return reflectApply(f, this, args);
  });
  wrap(Array, 'from', (f) => function from(items, ...rest) {
    if (items !== null && items !== undefined) fits(+items.length || 0, maxElements, 'the list');
    return reflectApply(f, this, [items, ...rest]);
  });
  // Built-in functions and spreading take all that an iterator has in one step, and an
  // array may have grown since its iterator was made. A step that is written here can
  // be interrupted.
  for (const iterator of [[][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(), new Set().values()]) {
    wrap(getPrototypeOf(iterator), 'next', (f) => function next() { return reflectApply(f, this, []); });
  }
  wrap(Function.prototype, 'apply', (f) => function apply(self, args) {
    if (args !== null && args !== undefined) fits(+args.length || 0, 65536, 'the argument list');
    return reflectApply(f, this, [self, args]);
  });

  // JSON recurses.
  const stringify = JSON.stringify;
  const measure = (value, indent) => {
    const work = [[value, 0]];
    let texts = 0, nodes = 0;
    while (work.length > 0) {
      const [v, depth] = work.pop();
      if (typeof v === 'string') texts += v.length;
      if (typeof v === 'object' && v !== null) {
        fits(depth, maxDepth, 'the nesting of the value');
        if (isArray(v)) fits(v.length, maxElements, 'the list');
        const names = keys(v);
        for (let i = 0; i < names.length; i++) { texts += names[i].length; work.push([v[names[i]], depth + 1]); }
      }
      nodes++;
      fits(nodes, maxElements, 'the value');
      fits(texts + nodes * indent, maxText, 'the text');
    }
  };
  wrap(JSON, 'stringify', () => function (value, replacer, space) {
    measure(value, space === undefined ? 1 : 16);
    enter();
    try { return stringify(value, replacer, space); } finally { leave(); }
  });
  wrap(JSON, 'parse', (f) => function (text, reviver) {
    text = toText(text);
    if (!jsonFits(text)) tooMuch('the nesting of the JSON');
    return f(text, reviver);
  });

  // What compiles code could overflow the parser's stack, and what allocates
  // or computes without bound in one step cannot be interrupted.
  const noCode = () => { throw new TypeError('policies cannot make code from texts'); };
  for (const f of [function () {}, function* () {}, async function () {}]) {
    defineProperty(getPrototypeOf(f), 'constructor', { value: noCode, writable: false, configurable: false });
  }
  for (const name of ['eval', 'Function', 'Proxy', 'Reflect', 'BigInt', 'ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'Atomics',
    'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array',
    'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array', 'Promise', 'WeakRef', 'FinalizationRegistry']) {
    delete root[name];
  }
  delete RegExp.prototype.compile;

  // Everything that scripts can reach from here on is shared, so it is frozen.
  const seen = new Set();
  const freezeAll = (start) => {
    const work = [start];
    while (work.length > 0) {
      const o = work.pop();
      if ((typeof o !== 'object' && typeof o !== 'function') || o === null || seen.has(o)) continue;
      seen.add(o);
      freeze(o);
      work.push(getPrototypeOf(o));
      for (const key of ownKeys(o)) {
        const d = getOwnPropertyDescriptor(o, key);
        work.push(d.value, d.get, d.set);
      }
    }
  };
  for (const value of [function* () {}, async function () {}, [][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(),
    new Set().values(), /x/[Symbol.matchAll] && /x/[Symbol.matchAll]('')]) {
    if (value) freezeAll(getPrototypeOf(value));
  }
  freezeAll(root);

  const write = JSON.stringify;
  return {
    sealFunction: (f) => { freezeAll(f); },
    freeze,
    write: (value) => write(value),
  };
})
