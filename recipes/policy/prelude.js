// Prepares a runtime. It runs once, before any policy. The interpreter cannot be
// interrupted inside a built-in function. So the cost of a single call is bounded by the
// size of its arguments. Functions that go through a list or call other functions in
// each step are written here, where they can be interrupted.
(function (host) {
  'use strict';
  const { maxText, maxElements, maxSlow, maxSplit, maxMatch, freeMatch, maxPattern, maxDepth, enter, leave, decode, matching, weigh } = host;
  const { apply: reflectApply, construct, getPrototypeOf, ownKeys, getOwnPropertyDescriptor, defineProperty } = Reflect;
  const { freeze } = Object;
  const isArray = Array.isArray;
  const toText = String;
  const NativeRangeError = RangeError, NativeTypeError = TypeError, NativeSyntaxError = SyntaxError;
  const root = globalThis;
  const A = Array.prototype, S = String.prototype, R = RegExp.prototype, D = Date.prototype;

  const tooMuch = (what) => { throw new NativeRangeError(what + ' is larger than a policy may make it'); };
  const fits = (n, most, what) => { if (!(n <= most)) tooMuch(what); };
  const text = (value) => { const s = toText(value); fits(s.length, maxText, 'the text'); return s; };
  const short = (value) => { const s = toText(value); fits(s.length, maxSlow, 'the text'); return s; };
  const made = (value) => { if (typeof value === 'string') fits(value.length, maxText, 'the text'); return value; };
  const whole = (n) => { n = +n; return n === n ? Math.trunc(n) : 0; };

  // wrap replaces a method by one that checks its arguments first.
  const wrap = (owner, name, make) => {
    const d = getOwnPropertyDescriptor(owner, name);
    if (!d || typeof d.value !== 'function') return;
    defineProperty(owner, name, { ...d, value: make(d.value) });
  };
  // define replaces methods by ones that do not use the originals. Methods are not constructors.
  const define = (owner, methods) => {
    for (const name of ownKeys(methods)) defineProperty(owner, name, { value: methods[name], writable: true, enumerable: false, configurable: true });
  };

  // Lists. Other values are first copied into an array, so that their length cannot change
  // between the check and the use.
  const listOf = (value) => {
    if (value === null || value === undefined) throw new NativeTypeError('there is no list');
    if (isArray(value)) { fits(value.length, maxElements, 'the list'); return value; }
    const o = Object(value), n = whole(o.length), out = [];
    fits(n, maxElements, 'the list');
    for (let i = 0; i < n; i++) if (i in o) out[i] = o[i];
    if (n > 0) out.length = n;
    return out;
  };
  for (const name of ['at', 'entries', 'every', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'forEach', 'keys', 'map', 'reduce', 'reduceRight',
    'slice', 'some', 'toReversed', 'toSpliced', 'values', 'with']) {
    wrap(A, name, (f) => function (...args) { return reflectApply(f, listOf(this), args); });
  }
  for (const name of ['copyWithin', 'fill', 'reverse', 'shift', 'splice', 'unshift', 'push', 'pop']) {
    wrap(A, name, (f) => function (...args) {
      if (!isArray(this)) throw new NativeTypeError('only an array can be changed');
      if (name !== 'push' && name !== 'pop') fits(this.length, maxElements, 'the list');
      return reflectApply(f, this, args);
    });
  }
  const rising = (a, b) => { a = toText(a); b = toText(b); return a < b ? -1 : a > b ? 1 : 0; };
  for (const name of ['sort', 'toSorted']) {
    wrap(A, name, (f) => function (compare) {
      if (name === 'sort' && !isArray(this)) throw new NativeTypeError('only an array can be changed');
      return reflectApply(f, listOf(this), [compare === undefined ? rising : compare]);
    });
  }
  const from = (at, n) => { at = whole(at); return at < 0 ? Math.max(n + at, 0) : at; };
  const join = (list, separator, show) => {
    enter();
    try {
      const parts = [];
      let n = 0;
      list = listOf(list);
      for (let i = 0; i < list.length; i++) {
        const v = list[i], s = v === null || v === undefined ? '' : show(v);
        n += s.length + separator.length;
        fits(n, maxText, 'the text');
        parts.push(s);
      }
      return nativeJoin(parts, separator);
    } finally { leave(); }
  };
  const nativeJoinFunction = A.join;
  const nativeJoin = (parts, separator) => reflectApply(nativeJoinFunction, parts, [separator]);
  const objectToString = Object.prototype.toString;
  const flatten = (out, list, depth, each) => {
    enter();
    list = listOf(list);
    for (let i = 0; i < list.length; i++) {
      if (!(i in list)) continue;
      const v = each ? each(list[i], i, list) : list[i];
      if (depth > 0 && isArray(v)) flatten(out, v, depth - 1);
      else { fits(out.length, maxElements - 1, 'the list'); out.push(v); }
    }
    leave();
    return out;
  };
  define(A, {
    indexOf(what, at) {
      const list = listOf(this);
      for (let i = from(at, list.length); i < list.length; i++) if (list[i] === what && i in list) return i;
      return -1;
    },
    lastIndexOf(what, ...at) {
      const list = listOf(this);
      let i = list.length - 1;
      if (at.length > 0) { const n = whole(at[0]); i = n < 0 ? list.length + n : Math.min(n, i); }
      for (; i >= 0; i--) if (list[i] === what && i in list) return i;
      return -1;
    },
    includes(what, at) {
      const list = listOf(this);
      for (let i = from(at, list.length); i < list.length; i++) { const v = list[i]; if (v === what || v !== v && what !== what) return true; }
      return false;
    },
    join(separator) { return join(this, separator === undefined ? ',' : text(separator), toText); },
    toString() {
      const f = this !== null && this !== undefined && this.join;
      return typeof f === 'function' ? reflectApply(f, this, []) : reflectApply(objectToString, this, []);
    },
    toLocaleString() { return join(this, ',', (v) => toText(v.toLocaleString())); },
    concat(...args) {
      const out = [], add = (v) => {
        const spread = typeof v === 'object' && v !== null ? v[Symbol.isConcatSpreadable] : false;
        if (spread === undefined ? !isArray(v) : !spread) { fits(out.length, maxElements - 1, 'the list'); out.push(v); return; }
        const list = listOf(v), n = out.length;
        fits(n + list.length, maxElements, 'the list');
        for (let i = 0; i < list.length; i++) if (i in list) out[n + i] = list[i];
        if (list.length > 0) out.length = n + list.length;
      };
      add(this);
      for (let i = 0; i < args.length; i++) add(args[i]);
      return out;
    },
    flat(depth) { return flatten([], this, depth === undefined ? 1 : whole(depth)); },
    flatMap(f, self) {
      if (typeof f !== 'function') throw new NativeTypeError('flatMap needs a function');
      return flatten([], this, 1, (v, i, list) => reflectApply(f, self, [v, i, list]));
    },
  });
  wrap(Array, 'from', (f) => function from(items, ...rest) {
    const iterates = items !== null && items !== undefined && items[Symbol.iterator] !== undefined && items[Symbol.iterator] !== null;
    return reflectApply(f, this, [iterates ? items : listOf(items), ...rest]);
  });
  // Built-in functions and spreading read a whole iterator in one step, and an array may
  // have grown since its iterator was made. A step that is written here can be
  // interrupted.
  for (const iterator of [[][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(), new Set().values(), 'x'.matchAll(/x/g)]) {
    wrap(getPrototypeOf(iterator), 'next', (f) => function next() { return reflectApply(f, this, []); });
  }
  wrap(Function.prototype, 'apply', (f) => function apply(self, args) {
    return reflectApply(f, this, [self, args === null || args === undefined ? [] : listOf(args)]);
  });
  // Each character of a text and each element of an array is a property.
  for (const name of ['assign', 'entries', 'values', 'keys', 'getOwnPropertyNames', 'getOwnPropertyDescriptors', 'getOwnPropertySymbols', 'freeze', 'seal', 'isFrozen', 'isSealed',
    'defineProperties', 'create']) {
    wrap(Object, name, (f) => function (...args) {
      for (let i = 0; i < args.length; i++) {
        const v = args[i];
        if (typeof v === 'string' || isArray(v) || v instanceof NativeString) fits(v.length, maxElements, 'the list');
      }
      return reflectApply(f, this, args);
    });
  }
  const NativeString = String;

  // Texts. None is longer than maxText; see the function that adds two.
  for (const name of ['endsWith', 'includes', 'indexOf', 'lastIndexOf', 'startsWith', 'toLocaleLowerCase', 'toLocaleUpperCase', 'toLowerCase', 'toUpperCase', 'trim',
    'trimEnd', 'trimStart', 'trimLeft', 'trimRight']) {
    wrap(S, name, (f) => function (...args) { return made(reflectApply(f, text(this), args)); });
  }
  for (const name of ['normalize', 'localeCompare']) {
    wrap(S, name, (f) => function (...args) {
      if (name === 'localeCompare') args = [short(args[0])];
      return made(reflectApply(f, short(this), args));
    });
  }
  wrap(S, 'repeat', (f) => function repeat(n) {
    const s = toText(this); n = +n || 0;
    fits(s.length * n, maxText, 'the text');
    return reflectApply(f, s, [n]);
  });
  for (const name of ['padStart', 'padEnd']) {
    wrap(S, name, (f) => function (n, fill) {
      n = +n;
      fits(n || 0, maxText, 'the text');
      return reflectApply(f, text(this), fill === undefined ? [n] : [n, toText(fill)]);
    });
  }
  wrap(S, 'concat', () => function concat(...more) {
    const all = [toText(this), ...more];
    let n = 0;
    for (let i = 0; i < all.length; i++) { all[i] = toText(all[i]); n += all[i].length; fits(n, maxText, 'the text'); }
    return nativeJoin(all, '');
  });
  wrap(String, 'raw', () => function raw(strings, ...values) {
    const list = listOf(strings.raw), parts = [];
    let n = 0;
    const add = (v) => { const s = toText(v); n += s.length; fits(n, maxText, 'the text'); parts.push(s); };
    for (let i = 0; i < list.length; i++) { add(list[i]); if (i + 1 < list.length && i < values.length) add(values[i]); }
    return nativeJoin(parts, '');
  });
  for (const name of ['decodeURI', 'decodeURIComponent', 'encodeURI', 'encodeURIComponent', 'escape', 'unescape']) {
    wrap(root, name, (f) => function (s) { return made(f(text(s))); });
  }
  for (const [owner, name] of [[root, 'isNaN'], [root, 'isFinite']]) {
    wrap(owner, name, (f) => function (v) { return f(typeof v === 'string' ? short(v) : v); });
  }
  for (const name of ['parseInt', 'parseFloat']) {
    wrap(Number, name, (f) => function (v, radix) { return f(short(v), radix); });
    defineProperty(root, name, { ...getOwnPropertyDescriptor(root, name), value: Number[name] });
  }
  wrap(Error.prototype, 'toString', (f) => function toString() { return made(reflectApply(f, this, [])); });
  wrap(Object.prototype, 'toString', (f) => function toString() { return made(reflectApply(f, this, [])); });

  // Patterns. The cost of a pattern is the number of its steps, with repetitions; matching
  // costs as much for each character. Fields of its own could change the answers of a pattern.
  const NativeRegExp = RegExp;
  const sourceOf = getOwnPropertyDescriptor(R, 'source').get, flagsOf = getOwnPropertyDescriptor(R, 'flags').get;
  const isPattern = (v) => v instanceof NativeRegExp;
  const checkMatch = (re, s) => {
    if (s.length > freeMatch) fits(s.length * weigh(reflectApply(sourceOf, re, [])), maxMatch, 'the work to match the pattern');
  };
  // When a pattern is first matched from the middle of a text, it is made a second time, by
  // a library without a time limit. So it is made here, where its time is bounded.
  const nativeExec = R.exec, fromMiddle = new WeakSet(), { add, has } = WeakSet.prototype;
  const makeAgain = (re) => {
    const at = re.lastIndex;
    matching(() => { re.lastIndex = 1; reflectApply(nativeExec, re, ['a']); });
    re.lastIndex = at;
    reflectApply(add, fromMiddle, [re]);
  };
  const plain = (re) => {
    if (!isPattern(re) || getPrototypeOf(re) !== R || ownKeys(re).length !== 1) throw new NativeTypeError('this is no plain pattern');
    re.lastIndex = whole(re.lastIndex);
    if (re.lastIndex !== 0 && !reflectApply(has, fromMiddle, [re])) makeAgain(re);
    return re;
  };
  const makePattern = (pattern, flags, target) => {
    if (isPattern(pattern)) {
      if (flags === undefined) flags = reflectApply(flagsOf, pattern, []);
      pattern = reflectApply(sourceOf, pattern, []);
    }
    pattern = pattern === undefined ? '' : text(pattern);
    fits(weigh(pattern), maxPattern, 'the pattern');
    flags = flags === undefined ? '' : toText(flags);
    return matching(() => construct(NativeRegExp, [pattern, flags], target));
  };
  const BoundedRegExp = function RegExp(pattern, flags) {
    if (!new.target && isPattern(pattern) && flags === undefined) return pattern;
    return makePattern(pattern, flags, NativeRegExp);
  };
  for (const key of ownKeys(NativeRegExp)) {
    if (key !== 'name' && key !== 'length') defineProperty(BoundedRegExp, key, getOwnPropertyDescriptor(NativeRegExp, key));
  }
  defineProperty(R, 'constructor', { value: BoundedRegExp, writable: true, enumerable: false, configurable: true });
  defineProperty(root, 'RegExp', { value: BoundedRegExp, writable: true, enumerable: false, configurable: true });
  for (const name of ['exec', 'test', Symbol.match, Symbol.matchAll, Symbol.search]) {
    wrap(R, name, (f) => function (value) {
      const s = text(value);
      checkMatch(plain(this), s);
      return reflectApply(f, this, [s]);
    });
  }
  wrap(R, Symbol.split, (f) => function (value, limit) {
    const s = text(value);
    fits(s.length, maxSplit, 'the list');
    checkMatch(plain(this), s);
    return reflectApply(f, this, [s, limit === undefined ? limit : +limit]);
  });
  wrap(R, 'toString', (f) => function toString() { return made(reflectApply(f, this, [])); });
  // The size of a replacement is counted while it is made.
  const replacing = (s, replacement) => {
    if (typeof replacement === 'function') {
      let n = 0;
      return (...args) => {
        const r = toText(reflectApply(replacement, undefined, args));
        n += r.length;
        fits(n, maxText, 'the text');
        return r;
      };
    }
    replacement = toText(replacement);
    // $& and the like insert a whole text in place of two characters.
    const each = replacement.indexOf('$') < 0 ? replacement.length : replacement.length * (s.length + 1);
    fits((s.length + 1) * (each + 1), maxText * 16, 'the text');
    return replacement;
  };
  wrap(R, Symbol.replace, (f) => function (value, replacement) {
    const s = text(value);
    checkMatch(plain(this), s);
    return made(reflectApply(f, this, [s, replacing(s, replacement)]));
  });
  for (const name of ['replace', 'replaceAll']) {
    wrap(S, name, (f) => function (pattern, replacement) {
      const s = text(this);
      if (typeof pattern === 'object' && pattern !== null) return made(reflectApply(f, s, [pattern, replacement]));
      return made(reflectApply(f, s, [text(pattern), replacing(s, replacement)]));
    });
  }
  wrap(S, 'split', (f) => function split(separator, limit) {
    const s = text(this);
    fits(s.length, maxSplit, 'the list');
    const own = typeof separator === 'object' && separator !== null || separator === undefined;
    return reflectApply(f, s, [own ? separator : text(separator), limit]);
  });
  for (const name of ['match', 'matchAll', 'search']) {
    wrap(S, name, (f) => function (pattern) {
      const s = text(this);
      if (typeof pattern !== 'object' || pattern === null) pattern = makePattern(pattern, name === 'matchAll' ? 'g' : '', NativeRegExp);
      return reflectApply(f, s, [pattern]);
    });
  }
  delete R.compile;

  // JSON.
  const stringify = JSON.stringify, isRawJSON = JSON.isRawJSON || (() => false);
  // writing is a replacer that counts: it is called for every value in its final form.
  const writing = (replacer, indent) => {
    const depths = new Map();
    let names, n = 0;
    if (isArray(replacer)) {
      names = new Set();
      for (const name of listOf(replacer)) if (typeof name === 'string' || typeof name === 'number') names.add(toText(name));
    }
    return function (key, value) {
      const depth = (depths.get(this) || 0) + 1;
      fits(depth, maxDepth, 'the nesting of the value');
      if (typeof replacer === 'function') value = reflectApply(replacer, this, [key, value]);
      n += 2 + key.length + depth * indent;
      if (typeof value === 'string') n += value.length;
      if (typeof value === 'object' && value !== null) {
        if (isRawJSON(value)) n += value.rawJSON.length;
        else if (value instanceof NativeString) n += value.length;
        else if (isArray(value)) fits(value.length, maxElements, 'the list');
        else if (names) {
          const of = value;
          value = {};
          for (const name of names) if (name in of) defineProperty(value, name, { value: of[name], enumerable: true, configurable: true, writable: true });
        }
        depths.set(value, depth);
      }
      fits(n, maxText, 'the text');
      return value;
    };
  };
  wrap(JSON, 'stringify', () => function (value, replacer, space) {
    const spaced = space === undefined ? '' : typeof space === 'object' && space !== null ? (space instanceof Number ? +space : toText(space)) : space;
    enter();
    try { return made(stringify(value, writing(replacer, spaced === '' ? 0 : 10), spaced)); } finally { leave(); }
  });
  const revive = (holder, key, reviver) => {
    enter();
    const value = holder[key];
    if (typeof value === 'object' && value !== null) {
      for (const name of ownKeys(isArray(value) ? listOf(value) : value)) {
        if (isArray(value) ? name === 'length' : typeof name !== 'string') continue;
        const v = revive(value, name, reviver);
        if (v === undefined) delete value[name];
        else defineProperty(value, name, { value: v, writable: true, enumerable: true, configurable: true });
      }
    }
    leave();
    return reflectApply(reviver, holder, [key, value]);
  };
  wrap(JSON, 'parse', () => function (source, reviver) {
    const value = decode(text(source), (why) => { throw new NativeSyntaxError(why); }, tooMuch);
    return typeof reviver === 'function' ? revive({ '': value }, '', reviver) : value;
  });
  wrap(JSON, 'rawJSON', (f) => function rawJSON(value) { return f(text(value)); });

  // Dates. All times are in UTC, regardless of the time zone of the process.
  const NativeDate = Date, parseDate = Date.parse, utc = Date.UTC;
  for (const part of ['FullYear', 'Month', 'Date', 'Day', 'Hours', 'Minutes', 'Seconds', 'Milliseconds']) {
    for (const verb of ['get', 'set']) if (D[verb + 'UTC' + part]) define(D, { [verb + part]: D[verb + 'UTC' + part] });
  }
  const two = (n) => (n < 10 ? '0' : '') + n;
  const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
  const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
  const getTime = D.getTime;
  const year = (d) => { const y = d.getUTCFullYear(), n = toText(Math.abs(y)); return (y < 0 ? '-' : '') + '0'.repeat(Math.max(4 - n.length, 0)) + n; };
  const showDate = (d) => days[d.getUTCDay()] + ' ' + months[d.getUTCMonth()] + ' ' + two(d.getUTCDate()) + ' ' + year(d);
  const showTime = (d) => two(d.getUTCHours()) + ':' + two(d.getUTCMinutes()) + ':' + two(d.getUTCSeconds());
  const numbers = (d) => two(d.getUTCMonth() + 1) + '/' + two(d.getUTCDate()) + '/' + year(d);
  const zone = ' GMT+0000 (UTC)';
  const shown = (show) => function () {
    const at = reflectApply(getTime, this, []);
    return at === at ? show(new NativeDate(at)) : 'Invalid Date';
  };
  define(D, {
    toString: shown((d) => showDate(d) + ' ' + showTime(d) + zone), toDateString: shown(showDate), toTimeString: shown((d) => showTime(d) + zone),
    toLocaleString: shown((d) => numbers(d) + ', ' + showTime(d)), toLocaleDateString: shown(numbers), toLocaleTimeString: shown(showTime),
    getTimezoneOffset() { const at = reflectApply(getTime, this, []); return at === at ? 0 : at; },
  });
  // A text without a zone means UTC. A zone can be added to such a text, but not to a text
  // with a zone or to a date alone.
  const readDate = (value) => {
    const s = short(value), at = parseDate(s);
    if (at !== at || /(?:Z|[+-]\d\d:?\d\d|GMT|UTC?|[ECMP][SD]T|[WCE]ES?T)\)?\s*$/i.test(s)) return at;
    for (const suffix of ['Z', ' UTC']) {
      const t = parseDate(s + suffix);
      if (t === t) return t;
    }
    return at;
  };
  const BoundedDate = function Date(...args) {
    if (!new.target) return new NativeDate().toString();
    let of = args;
    if (args.length === 1) {
      let v = args[0];
      if (v instanceof NativeDate) v = reflectApply(getTime, v, []);
      else if (typeof v === 'object' && v !== null || typeof v === 'function') v = v[Symbol.toPrimitive] ? v[Symbol.toPrimitive]('default') : v.valueOf() === v ? toText(v) : v.valueOf();
      of = [typeof v === 'string' ? readDate(v) : +v];
    } else if (args.length > 1) of = [utc(...args)];
    return construct(NativeDate, of, new.target === BoundedDate ? NativeDate : new.target);
  };
  for (const key of ownKeys(NativeDate)) {
    if (key !== 'name') defineProperty(BoundedDate, key, getOwnPropertyDescriptor(NativeDate, key));
  }
  define(BoundedDate, { parse(value) { return readDate(value); } });
  define(D, { constructor: BoundedDate });
  define(root, { Date: BoundedDate });

  // Compiling code could overflow the parser's stack. Functions that allocate or compute
  // without a bound in one step cannot be interrupted.
  const noCode = () => { throw new NativeTypeError('policies cannot make code from texts'); };
  for (const f of [function () {}, function* () {}, async function () {}]) {
    defineProperty(getPrototypeOf(f), 'constructor', { value: noCode, writable: false, configurable: false });
  }
  for (const name of ['eval', 'Function', 'Proxy', 'Reflect', 'BigInt', 'ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'Atomics',
    'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array',
    'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array', 'Promise', 'WeakRef', 'FinalizationRegistry', 'GoError']) {
    delete root[name];
  }

  // Everything that scripts can reach is shared, so it is frozen.
  const seen = new Set();
  // It visits a thousand objects for each runtime, so it does not use the methods that are
  // wrapped above.
  const freezeAll = (start) => {
    const work = [start];
    for (let n = 1; n > 0;) {
      const o = work[--n];
      if ((typeof o !== 'object' && typeof o !== 'function') || o === null || seen.has(o)) continue;
      seen.add(o);
      freeze(o);
      work[n++] = getPrototypeOf(o);
      const keys = ownKeys(o);
      for (let i = 0; i < keys.length; i++) {
        const { value, get, set } = getOwnPropertyDescriptor(o, keys[i]);
        if (value !== undefined) work[n++] = value;
        if (get !== undefined) work[n++] = get;
        if (set !== undefined) work[n++] = set;
      }
    }
  };
  for (const value of [function* () {}, async function () {}, [][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(),
    new Set().values(), /x/[Symbol.matchAll]('')]) {
    freezeAll(getPrototypeOf(value));
  }
  freezeAll(root);

  const write = JSON.stringify;
  return {
    sealFunction: (f) => { freezeAll(f); },
    freeze,
    write: (value) => write(value),
  };
})
