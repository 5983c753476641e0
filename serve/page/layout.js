// Positions: layers from left to right, computed once for a graph and kept. Pure: the
// same graph gives the same picture.

export const chip = { w: 106, h: 30 }
const gap = { plain: 42, ring: 40 } // between layers; a ring's label adds its width
const row = 50 // from one chip of a layer to the next
const lane = 26 // for a line that passes a layer
const pad = { x: 42, top: 52, bottom: 30 }
const outside = 50 // what a pill needs beyond the border

// layers gives every node its layer, so that edges lead to the right. Edges that close a
// cycle count as turned round.
function layers(nodes, edges) {
  const out = new Map(nodes.map(n => [n, []]))
  for (const e of edges) if (e.from !== e.to && out.has(e.from) && out.has(e.to)) out.get(e.from).push(e.to)
  const indegree = new Map(nodes.map(n => [n, 0]))
  for (const list of out.values()) for (const to of list) indegree.set(to, indegree.get(to) + 1)
  const order = [...nodes].sort((a, b) => indegree.get(a) - indegree.get(b))
  const mark = new Map(), forward = new Map(nodes.map(n => [n, []])), finished = []
  for (const start of order) {
    if (mark.has(start)) continue
    const stack = [[start, 0]]
    mark.set(start, 1)
    while (stack.length) {
      const top = stack.at(-1), next = out.get(top[0])[top[1]++]
      if (next === undefined) { mark.set(top[0], 2); finished.push(top[0]); stack.pop(); continue }
      if (mark.get(next) === 1) { forward.get(next).push(top[0]); continue } // a back edge, turned
      forward.get(top[0]).push(next)
      if (!mark.has(next)) { mark.set(next, 1); stack.push([next, 0]) }
    }
  }
  const layer = new Map(nodes.map(n => [n, 0]))
  const pending = new Map(nodes.map(n => [n, 0]))
  for (const list of forward.values()) for (const to of list) pending.set(to, pending.get(to) + 1)
  const ready = nodes.filter(n => !pending.get(n))
  while (ready.length) {
    const n = ready.shift()
    for (const to of forward.get(n)) {
      layer.set(to, Math.max(layer.get(to), layer.get(n) + 1))
      pending.set(to, pending.get(to) - 1)
      if (!pending.get(to)) ready.push(to)
    }
  }
  return { layer, forward }
}

// spread moves wished positions apart to the least distances, with the least sum of squares.
export function spread(items) {
  const blocks = []
  let offset = 0
  items.forEach((it, i) => {
    if (i) offset += (items[i - 1].size + it.size) / 2
    it.offset = offset
    blocks.push({ sum: it.want - offset, n: 1, from: i })
    while (blocks.length > 1 && blocks.at(-2).sum / blocks.at(-2).n > blocks.at(-1).sum / blocks.at(-1).n) {
      const last = blocks.pop()
      blocks.at(-1).sum += last.sum
      blocks.at(-1).n += last.n
    }
  })
  blocks.forEach((b, k) => {
    const to = k + 1 < blocks.length ? blocks[k + 1].from : items.length
    for (let i = b.from; i < to; i++) items[i].y = b.sum / b.n + items[i].offset
  })
}

function build(spec) {
  const nodes = new Map()
  const add = (id, layer, size, kind) => { const n = { id, layer, size, kind, near: [] }; nodes.set(id, n); return n }
  const link = (a, b) => { if (a && b && a !== b) { a.near.push(b); b.near.push(a) } }
  const plain = [...spec.edges.map(e => ({ from: e.from, to: e.to }))]
  for (const r of spec.rings) for (const from of r.senders) for (const to of r.listeners) if (from !== to) plain.push({ from, to })
  const { layer } = layers(spec.creatures, plain)
  for (const id of spec.creatures) add(id, layer.get(id) * 2, row, 'chip')
  const routes = new Map()
  const route = (key, from, to) => {
    const through = []
    let before = from
    for (let l = from.layer + (from.layer % 2 ? 1 : 2); l < to.layer; l += 2) {
      const d = add(`${key} ${l}`, l, lane, 'bend')
      link(before, d)
      through.push(d.id)
      before = d
    }
    link(before, to)
    routes.set(key, through)
  }
  for (const e of spec.edges) {
    const from = nodes.get(e.from), to = nodes.get(e.to)
    if (from.layer < to.layer) route(e.key, from, to)
    else link(from, to)
  }
  for (const r of spec.rings) {
    const least = Math.min(...r.listeners.map(id => nodes.get(id).layer)), most = Math.max(...r.senders.map(id => nodes.get(id).layer))
    const ring = add(r.channel, most < least ? least - 1 : most + 1, lane, 'ring')
    ring.wide = r.wide
    for (const id of r.senders) nodes.get(id).layer < ring.layer ? route(`${r.channel} ${id} s`, nodes.get(id), ring) : link(nodes.get(id), ring)
    for (const id of r.listeners) nodes.get(id).layer > ring.layer ? route(`${r.channel} ${id} l`, ring, nodes.get(id)) : link(ring, nodes.get(id))
  }
  return { nodes, routes }
}

function place(nodes) {
  const columns = []
  for (const n of nodes.values()) (columns[n.layer] ||= []).push(n)
  const used = columns.map((c, i) => c ? i : -1).filter(i => i >= 0)
  for (const l of used) columns[l].forEach((n, i) => { n.y = i * row })
  const settle = (l, side) => {
    for (const n of columns[l]) {
      const near = n.near.filter(m => side === 0 || (side < 0 ? m.layer < l : m.layer > l))
      n.want = near.length ? near.reduce((sum, m) => sum + m.y, 0) / near.length : n.y
    }
    columns[l].sort((a, b) => a.want - b.want)
    spread(columns[l])
  }
  for (let pass = 0; pass < 6; pass++) {
    for (const l of used) settle(l, -1)
    for (const l of [...used].reverse()) settle(l, 1)
  }
  for (let pass = 0; pass < 3; pass++) for (const l of used) settle(l, 0)
  let top = Infinity
  for (const n of nodes.values()) if (n.kind !== 'bend') top = Math.min(top, n.y)
  for (const n of nodes.values()) n.y = Math.round((n.y - top) / 2) * 2
  const last = used.at(-1) ?? 0, x = []
  let at = 0
  for (let l = 0; l <= last; l++) {
    if (l % 2 === 0) { x[l] = at; at += chip.w } else {
      const rings = columns[l]?.filter(n => n.kind === 'ring') || []
      const width = rings.length ? gap.ring + Math.max(...rings.map(n => n.wide || 50)) : gap.plain
      x[l] = at + width - 16
      at += width
    }
  }
  for (const n of nodes.values()) n.x = x[n.layer]
}

// grid is the layout of graphs that are too large for lines: rows of chips.
function grid(ids) {
  const across = Math.max(1, Math.ceil(Math.sqrt(ids.length / 3)))
  return new Map(ids.map((id, i) => [id, { x: (i % across) * (chip.w + 16), y: Math.floor(i / across) * 40 }]))
}

// block lays out one graph: positions of chips and rings relative to its bed.
export function block(spec) {
  if (spec.creatures.length > 300) {
    return finish({ chips: grid(spec.creatures), rings: new Map(), bends: new Map() })
  }
  const { nodes, routes } = build(spec)
  place(nodes)
  const chips = new Map(), rings = new Map(), bends = new Map()
  for (const n of nodes.values()) {
    if (n.kind === 'chip') chips.set(n.id, { x: n.x, y: n.y })
    else if (n.kind === 'ring') rings.set(n.id, { x: n.x, y: n.y + chip.h / 2 })
  }
  for (const [key, through] of routes) {
    if (through.length) bends.set(key, through.map(id => ({ x: nodes.get(id).x, y: nodes.get(id).y + chip.h / 2 })))
  }
  return finish({ chips, rings, bends })
}

function finish(b) {
  let minX = Infinity, minY = Infinity, maxX = 0, maxY = 0
  const see = (x, y, w, h) => {
    minX = Math.min(minX, x); minY = Math.min(minY, y); maxX = Math.max(maxX, x + w); maxY = Math.max(maxY, y + h)
  }
  for (const p of b.chips.values()) see(p.x, p.y, chip.w, chip.h)
  for (const p of b.rings.values()) see(p.x, p.y - 13, 0, 26)
  for (const list of b.bends.values()) for (const p of list) see(p.x, p.y - 13, 0, 26)
  if (minX === Infinity) { minX = minY = 0; maxX = chip.w; maxY = chip.h }
  const move = p => ({ x: p.x - minX + pad.x, y: p.y - minY + pad.top })
  for (const map of [b.chips, b.rings]) for (const [id, p] of map) map.set(id, move(p))
  for (const [id, list] of b.bends) b.bends.set(id, list.map(move))
  b.shift = { x: pad.x - minX, y: pad.top - minY }
  b.w = Math.max(maxX - minX + 2 * pad.x, 300)
  b.h = maxY - minY + pad.top + pad.bottom
  return b
}

const clear = 34 // between beds

function overlaps(a, b) {
  return a.x - outside < b.x + b.w + outside && b.x - outside < a.x + a.w + outside && a.y < b.y + b.h + clear && b.y < a.y + a.h + clear
}

// partitions are ways to put n beds into columns: the beds one after the other, a few in
// each column, or the next bed always into the shortest column.
function* partitions(beds) {
  const n = beds.length
  for (let columns = 1; columns <= Math.min(n, 8); columns++) {
    const heights = Array(columns).fill(0)
    yield beds.map(bed => {
      const c = heights.indexOf(Math.min(...heights))
      heights[c] += bed.h + clear + 30
      return c
    })
  }
  if (n > 10) return
  for (let cuts = 0; cuts < 1 << (n - 1); cuts++) {
    let c = 0
    yield beds.map((_, i) => i && cuts >> (i - 1) & 1 ? ++c : c)
  }
}

// pack puts beds into columns, so that they fill a view of this shape best.
export function pack(beds, aspect) {
  let best
  for (const columns of partitions(beds)) {
    const heights = [], widths = []
    const put = beds.map((bed, i) => {
      const c = columns[i], y = heights[c] || 0
      heights[c] = y + bed.h + clear + 30
      widths[c] = Math.max(widths[c] || 0, bed.w)
      return { c, y }
    })
    const w = widths.reduce((sum, x) => sum + x + 2 * outside, 0), h = Math.max(...heights)
    const scale = Math.min(aspect.w / w, aspect.h / h)
    if (!best || scale > best.scale * 1.02) best = { scale, put, widths }
  }
  return beds.map((bed, i) => {
    const { c, y } = best.put[i]
    return { x: best.widths.slice(0, c).reduce((sum, w) => sum + w + 2 * outside, outside), y, w: bed.w, h: bed.h }
  })
}

// fits reports whether a bed may be placed here.
export const fits = (bed, others, at) => !others.some(o => overlaps({ ...at, w: bed.w, h: bed.h }, o))

// free finds the place for a bed nearest to a wished one that touches none of the others,
// preferably beside or below the existing ones.
export function free(bed, others, wish) {
  const right = Math.max(wish.x + bed.w, ...others.map(o => o.x + o.w)), left = Math.min(wish.x, ...others.map(o => o.x)), top = Math.min(wish.y, ...others.map(o => o.y))
  const tries = [wish]
  for (const o of others) {
    tries.push({ x: o.x, y: o.y + o.h + clear + 30 }, { x: o.x + o.w + 2 * outside, y: o.y }, { x: o.x, y: o.y - bed.h - clear - 30 })
  }
  let best
  for (const at of tries) {
    const there = { ...at, w: bed.w, h: bed.h }
    if (others.some(o => overlaps(there, o))) continue
    const beyond = Math.max(0, left - at.x) + Math.max(0, top - at.y) + Math.max(0, at.x + bed.w - right) / 2
    const far = Math.hypot(at.x - wish.x, at.y - wish.y) + 2 * beyond
    if (!best || far < best.far) best = { far, x: at.x, y: at.y }
  }
  return best || { x: wish.x, y: Math.max(0, ...others.map(o => o.y + o.h)) + clear + 30 }
}

// join puts the block of an absorbed graph below that of the survivor, or beside it, each
// as it was.
export function join(a, b, beside) {
  const dy = beside ? 0 : a.h - pad.bottom + 40 - pad.top, dx = beside ? a.w - pad.x + gap.plain - pad.x : 0
  const both = { chips: new Map(a.chips), rings: new Map(a.rings), bends: new Map(a.bends), dx, dy }
  const move = p => ({ x: p.x + dx, y: p.y + dy })
  for (const [id, p] of b.chips) both.chips.set(id, move(p))
  for (const [id, p] of b.rings) both.rings.set(id, move(p))
  for (const [id, list] of b.bends) both.bends.set(id, list.map(move))
  both.w = Math.max(a.w, dx + b.w)
  both.h = Math.max(a.h, dy + b.h)
  return both
}

// part takes some creatures and rings out of a block, where they are relative to each other.
export function part(block, ids, channels) {
  const pick = (map, keep) => new Map([...map].filter(([id]) => keep(id)))
  const bends = pick(block.bends, key => channels.has(key.split(' ')[0]) || [...ids].some(id => key.includes(id)))
  return finish({ chips: pick(block.chips, id => ids.has(id)), rings: pick(block.rings, id => channels.has(id)), bends })
}

// grow adds creatures and rings that are new: beside the parent or a neighbour if there is
// room, else in a row of their own below. The others keep their places.
export function grow(block, spec, parents) {
  const chips = new Map(), rings = new Map()
  for (const id of spec.creatures) if (block.chips.has(id)) chips.set(id, block.chips.get(id))
  const taken = () => [...chips.values()]
  const clashes = p => taken().some(q => Math.abs(p.x - q.x) < chip.w + 8 && Math.abs(p.y - q.y) < chip.h + 8)
  for (const id of spec.creatures) {
    if (chips.has(id)) continue
    const near = chips.get(parents.get(id)) || chips.get(spec.edges.find(e => e.to === id || e.from === id)?.from)
    let p = near ? { x: near.x + chip.w + gap.plain, y: near.y } : { x: pad.x, y: Math.max(pad.top - row, ...taken().map(q => q.y)) + row }
    while (clashes(p)) p = { x: p.x, y: p.y + row }
    chips.set(id, p)
  }
  for (const r of spec.rings) {
    if (block.rings.has(r.channel)) { rings.set(r.channel, block.rings.get(r.channel)); continue }
    const ends = r.listeners.map(id => chips.get(id)).filter(Boolean)
    rings.set(r.channel, {
      x: Math.min(...ends.map(p => p.x)) - 18,
      y: ends.reduce((sum, p) => sum + p.y, 0) / ends.length + chip.h / 2 + 9,
    })
  }
  const grown = { chips, rings, bends: new Map(block.bends) }
  grown.w = Math.max(300, block.w, ...[...chips.values()].map(p => p.x + chip.w + pad.x))
  grown.h = Math.max(pad.top + chip.h + pad.bottom, ...[...chips.values()].map(p => p.y + chip.h + pad.bottom))
  return grown
}
