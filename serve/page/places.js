// Where everything is. A graph that is there keeps its place; only graphs that a merge or
// a split concerns move, as blocks.
import { edgesOf } from './store.js'
import { block, chip, fits, free, grow, join, pack, part, spread } from './layout.js'
import { severity, textWidth } from './lib.js'

const font = '12px system-ui, sans-serif'

// groupKey identifies the chip that a creature shares with others, or is the creature's id.
function groupKey(creature, by) {
  const group = by === 'species' ? creature.species : by === 'recipe' ? creature.deployment : by === 'graph' ? creature.graph : ''
  return group ? `${creature.graph}/${by}/${group}` : creature.id
}

// specOf is a graph as it is drawn: its chips, which may stand for several creatures, and
// the lines between them.
export function specOf(graph, store, by) {
  const nodes = new Map(), of = new Map()
  const size = new Map()
  for (const c of graph.creatures) size.set(groupKey(c, by), (size.get(groupKey(c, by)) || 0) + 1)
  for (const c of graph.creatures) {
    const key = size.get(groupKey(c, by)) > 1 ? groupKey(c, by) : c.id
    of.set(c.id, key)
    let node = nodes.get(key)
    if (!node) nodes.set(key, node = { id: key, graph: graph.id, name: c.name, members: [], root: false, privileged: false, parent: c.parent })
    node.members.push(c)
    node.root ||= c.root
    node.privileged ||= c.privileged
  }
  for (const n of nodes.values()) {
    if (n.members.length > 1) n.name = `${n.id.split('/').slice(2).join('/') === graph.id ? graph.name : n.id.split('/').slice(2).join('/')} × ${n.members.length}`
  }
  const plain = edgesOf(graph)
  const unique = ids => [...new Set(ids.map(id => of.get(id)))]
  const spec = { id: graph.id, graph, creatures: [...nodes.keys()], nodes, of, edges: [], rings: [], pills: [], open: [] }
  for (const e of plain.edges) {
    const from = of.get(e.from), to = of.get(e.to)
    if (from !== to || e.from === e.to) spec.edges.push({ ...e, from, to })
  }
  for (const r of plain.rings) {
    const senders = unique(r.senders), listeners = unique(r.listeners)
    if (senders.length === 1 && listeners.length === 1) {
      if (senders[0] !== listeners[0]) spec.edges.push({ channel: r.channel, name: r.name, key: r.channel, from: senders[0], to: listeners[0] })
    } else spec.rings.push({ ...r, senders, listeners, wide: Math.min(textWidth(r.name, font), 80) })
  }
  for (const list of ['pills', 'open']) for (const p of plain[list]) spec[list].push({ ...p, ends: unique(p.ends) })
  spec.signature = JSON.stringify([spec.creatures, spec.edges.map(e => e.key), spec.rings.map(r => [r.channel, r.senders, r.listeners]), spec.pills, spec.open])
  return spec
}

export function nodeStatus(node, store) {
  let worst = 'running'
  for (const c of node.members) {
    const st = store.statusOf(c)
    if (severity[st] > severity[worst]) worst = st
  }
  return severity[worst] !== severity.stopped ? worst : node.members.every(c => c.state === 'stopped' || c.state === 'paused') ? worst : 'running'
}

export const pillWidth = name => Math.min(Math.round(textWidth(name, font)) + 22, 98)

// pillPlaces puts pills on the borders, and open ends beside their senders.
function borders(bed) {
  const { spec, block: b } = bed
  bed.pills = new Map()
  bed.open = new Map()
  for (const side of ['in', 'out']) {
    const items = spec.pills.filter(p => p.side === side).map(p => {
      const ends = p.ends.map(id => b.chips.get(id)).filter(Boolean)
      const want = ends.length ? ends.reduce((sum, q) => sum + q.y, 0) / ends.length + chip.h / 2 : bed.h - 30
      return { p, want, size: 44 }
    }).sort((a, c) => a.want - c.want)
    spread(items)
    const over = Math.max(0, 58 - (items[0]?.y ?? 58))
    for (const it of items) bed.pills.set(it.p.channel, { x: side === 'in' ? 0 : bed.w, y: it.y + over, side })
    if (items.length) bed.h = Math.max(bed.h, items.at(-1).y + over + 40)
  }
  const used = new Map()
  for (const o of spec.open) {
    const from = b.chips.get(o.ends[0])
    if (!from) continue
    const n = used.get(o.ends[0]) || 0
    used.set(o.ends[0], n + 1)
    bed.open.set(o.channel, { x: from.x + chip.w + 22, y: from.y + chip.h + 10 + n * 16 })
  }
}

export class Places {
  constructor() { this.beds = new Map() }

  // sync takes the graphs as they are now. It returns the cuts that it recognized:
  // {kind, into | from, piece, moved, dx, dy, old…}.
  sync(specs, view) {
    const before = this.beds
    const was = new Map()
    for (const [gid, bed] of before) for (const id of bed.spec.creatures) was.set(id, gid)
    this.beds = new Map()
    const cuts = [], fresh = []
    for (const spec of specs) {
      const old = before.get(spec.id)
      if (old) this.beds.set(spec.id, { ...old, spec })
    }
    for (const spec of specs) {
      const bed = this.beds.get(spec.id)
      if (bed) this.absorb(bed, spec, before, was, cuts)
    }
    for (const spec of specs) {
      if (this.beds.has(spec.id)) continue
      const origin = this.originOf(spec, before, was)
      if (origin) this.separate(spec, origin, before, cuts)
      else fresh.push(spec)
    }
    for (const spec of specs) this.tidy(spec, before, cuts)
    this.add(fresh, view)
    return cuts
  }

  originOf(spec, before, was) {
    const from = new Map()
    for (const id of spec.creatures) if (was.has(id)) from.set(was.get(id), (from.get(was.get(id)) || 0) + 1)
    const [best] = [...from].sort((a, b) => b[1] - a[1])
    return best && best[1] * 2 > spec.creatures.length ? before.get(best[0]) : undefined
  }

  // absorb joins the blocks of graphs that have ended, and whose members are here now.
  absorb(bed, spec, before, was, cuts) {
    const sources = new Set(spec.creatures.map(id => was.get(id)).filter(g => g && g !== spec.id && !this.beds.has(g)))
    for (const source of sources) {
      const from = before.get(source)
      const others = [...before].filter(([id]) => id !== spec.id && !sources.has(id)).map(([, b]) => b)
      const here = { x: bed.x, y: bed.y }
      let joined = join(bed.block, from.block)
      if (!fits(joined, others, here)) {
        const beside = join(bed.block, from.block, true)
        if (fits(beside, others, here)) joined = beside
      }
      const at = free(joined, others, here)
      cuts.push({
        kind: 'merge', into: spec.id, piece: source, moved: new Set(from.spec.creatures), old: rect(from), oldInto: rect(before.get(spec.id)),
        oldSpec: from.spec, oldIntoSpec: before.get(spec.id).spec, dx: from.x - (at.x + joined.dx), dy: from.y - (at.y + joined.dy), shift: { x: before.get(spec.id).x - at.x, y: before.get(spec.id).y - at.y },
      })
      Object.assign(bed, at, { block: joined, w: joined.w, h: joined.h })
    }
  }

  // separate takes a block out of a graph that continues, or that has ended.
  separate(spec, origin, before, cuts) {
    const ids = new Set(spec.creatures), channels = new Set([...spec.rings, ...spec.edges].map(r => r.channel))
    const piece = part(origin.block, ids, channels)
    const bed = { spec, block: piece, x: 0, y: 0, w: piece.w, h: piece.h }
    const start = { x: origin.x - piece.shift.x, y: origin.y - piece.shift.y }
    const stays = this.beds.get(origin.spec.id)
    if (stays) {
      const left = new Set(stays.spec.creatures), rest = part(origin.block, left, new Set([...stays.spec.rings, ...stays.spec.edges].map(r => r.channel)))
      Object.assign(stays, { block: rest, x: origin.x - rest.shift.x, y: origin.y - rest.shift.y, w: rest.w, h: rest.h })
    }
    borders(bed)
    const others = [...this.beds.values()]
    const at = free(bed, others, stays ? { x: stays.x, y: Math.max(start.y, stays.y + stays.h + 64) } : start)
    Object.assign(bed, at)
    this.beds.set(spec.id, bed)
    cuts.push({
      kind: 'split', from: origin.spec.id, piece: spec.id, moved: ids, old: rect(origin), dx: start.x - at.x, dy: start.y - at.y, shift: { x: 0, y: 0 },
    })
  }

  // tidy makes room for new creatures of a graph, and drops removed ones.
  tidy(spec, before, cuts) {
    const bed = this.beds.get(spec.id)
    if (!bed) return
    const old = before.get(spec.id)
    if (old && old.spec.signature === spec.signature && bed.block === old.block) return
    const parents = new Map([...spec.nodes.values()].filter(n => n.parent).map(n => [n.id, spec.of.get(n.parent) || n.parent]))
    const grown = grow(bed.block, spec, parents)
    Object.assign(bed, { block: grown, w: grown.w, h: grown.h })
    borders(bed)
    if (!cuts.some(c => c.piece === spec.id || c.into === spec.id)) {
      const others = [...this.beds.values()].filter(b => b !== bed)
      Object.assign(bed, free(bed, others, { x: bed.x, y: bed.y }))
    }
  }

  add(specs, view) {
    if (!specs.length) return
    const beds = specs.map(spec => {
      const b = block(spec)
      const bed = { spec, block: b, x: 0, y: 0, w: b.w, h: b.h }
      borders(bed)
      return bed
    })
    const there = [...this.beds.values()]
    if (!there.length) pack(beds, view).forEach((at, i) => Object.assign(beds[i], at))
    for (const bed of beds) {
      if (there.length) Object.assign(bed, free(bed, [...this.beds.values()], { x: there[0].x, y: 0 }))
      this.beds.set(bed.spec.id, bed)
    }
  }

  // bounds is the rectangle that a view has to contain to show everything.
  bounds() {
    let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity
    for (const b of this.beds.values()) {
      const left = Math.max(0, ...[...b.spec.pills].filter(p => p.side === 'in').map(p => pillWidth(p.name) / 2))
      const right = Math.max(0, ...[...b.spec.pills].filter(p => p.side === 'out').map(p => pillWidth(p.name) / 2))
      x0 = Math.min(x0, b.x - left); y0 = Math.min(y0, b.y)
      x1 = Math.max(x1, b.x + b.w + right); y1 = Math.max(y1, b.y + b.h)
    }
    return x0 === Infinity ? { x: 0, y: 0, w: 1, h: 1 } : { x: x0, y: y0, w: x1 - x0, h: y1 - y0 }
  }
}

export const rect = b => ({ x: b.x, y: b.y, w: b.w, h: b.h })
