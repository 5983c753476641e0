// The picture of the graphs: beds, chips, lines and rates, in SVG. Elements are made once
// and changed in place.
import { chip } from './layout.js'
import { nodeStatus, pillWidth } from './places.js'
import { count, fit, iconPath, number, rate, s, set, shape, short, squeeze, words } from './lib.js'

const label = '500 13px system-ui, sans-serif'

export const dashes = ['', '9 5', '2 4', '10 4 2 4']
export const border = slot => dashes[(slot + Math.floor(slot / 6)) % 4]
export const colour = slot => slot % 6

const edgeWidth = r => Math.min(4.6, 1.2 + 0.72 * Math.log2(1 + r))

export class Picture {
  constructor(store, places) {
    this.store = store
    this.places = places
    this.beds = new Map()
    this.chips = new Map()
    this.edges = new Map()
    this.bedOf = new Map() // the bed of each chip and channel
    this.points = new Map() // rings, pills and open ends by channel
    this.offset = { ids: new Set(), x: 0, y: 0, all: undefined }
    this.view = { x: 0, y: 0, k: 1 }
    this.layers = Object.fromEntries(['beds', 'ghosts', 'edges', 'points', 'chips', 'labels'].map(name => [name, s('g', { class: name, role: 'none' })]))
    this.world = s('g', { role: 'none' }, Object.values(this.layers))
    this.svg = s('svg', { class: 'scene', role: 'none' }, s('defs', {}, arrow('tip'), arrow('tip-lit')), this.world)
  }

  moveTo(view) {
    Object.assign(this.view, view)
    set(this.world, { transform: `translate(${this.view.x} ${this.view.y}) scale(${this.view.k})` })
  }

  // bedRect may be overridden while something moves.
  at(bed) { return this.offset.rects?.get(bed.spec.id) || bed }

  shiftOf(id) { return this.offset.ids.has(id) ? this.offset : this.offset.all?.get(id) || none }

  chipAt(id) {
    const bed = this.bedOf.get(id)
    const p = bed?.block.chips.get(id)
    if (!p) return undefined
    const o = this.shiftOf(id)
    return { x: bed.x + p.x + o.x, y: bed.y + p.y + o.y }
  }

  pointAt(channel) {
    const bed = this.bedOf.get(channel)
    const p = bed?.block.rings.get(channel) || bed?.open.get(channel) || bed?.pills.get(channel)
    if (!p) return undefined
    const o = this.shiftOf(channel), edge = p.side === 'out' && this.offset.edges?.(bed, this.offset.ids.has(channel))
    return { x: edge || bed.x + p.x + o.x, y: bed.y + p.y + o.y, side: p.side }
  }

  // sync makes and removes elements until they are those of the places.
  sync() {
    this.bedOf = new Map()
    const seen = { beds: new Set(), chips: new Set(), edges: new Set(), points: new Set() }
    for (const bed of this.places.beds.values()) {
      seen.beds.add(bed.spec.id)
      for (const id of bed.spec.creatures) { this.bedOf.set(id, bed); seen.chips.add(id) }
      for (const c of [...bed.spec.rings, ...bed.spec.pills, ...bed.spec.open]) { this.bedOf.set(c.channel, bed); seen.points.add(c.channel) }
    }
    for (const bed of this.places.beds.values()) {
      if (!this.beds.has(bed.spec.id)) this.makeBed(bed)
      for (const id of bed.spec.creatures) if (!this.chips.has(id)) this.makeChip(bed.spec.nodes.get(id))
      this.syncPoints(bed.spec)
      for (const e of linesOf(bed.spec)) { seen.edges.add(e.key); this.syncEdge(e) }
    }
    for (const kind of Object.keys(seen)) {
      for (const [id, it] of this[kind]) {
        if (seen[kind].has(id)) continue
        it.remove()
        this[kind].delete(id)
      }
    }
    this.paint()
    this.draw()
  }

  makeBed(bed) {
    const rect = s('rect', { class: 'ground', rx: 16 }), name = s('text', { class: 'bed-name' }), facts = s('text', { class: 'bed-facts', 'text-anchor': 'end' })
    const sign = s('rect', { class: 'sign', width: 11, height: 11, rx: 3 })
    const g = s('g', { class: 'bed', role: 'none' }, rect, sign, name, facts)
    this.layers.beds.append(g)
    this.beds.set(bed.spec.id, { g, rect, name, facts, sign, remove: () => g.remove() })
  }

  makeChip(node) {
    const outer = s('rect', { class: 'outer', x: -3, y: -3, width: chip.w + 6, height: chip.h + 6, rx: 10.5 })
    const body = s('rect', { class: 'body', width: chip.w, height: chip.h, rx: 8 })
    const bar = s('path', { class: 'bar', d: 'M5.500 .7V29.300A8 8 0 0 1 .750 22V8A8 8 0 0 1 5.500 .7z' })
    const name = s('text', { class: 'name', x: 24, y: 19.5 })
    const key = s('path', { class: 'key', d: iconPath('key'), transform: `translate(${chip.w - 22} 7)` })
    const badge = s('g', { class: 'badge' }, s('rect', { height: 16, rx: 8, y: -8 }), s('text', { 'text-anchor': 'middle', y: 4 }))
    const g = s('g', { class: 'chip', id: 'chip-' + node.id, role: 'option', 'data-id': node.id, 'data-kind': 'chip', 'aria-selected': 'false' },
      outer, body, bar, name, key, badge)
    this.layers.chips.append(g)
    this.chips.set(node.id, { g, body, bar, name, key, badge, outer, remove: () => g.remove() })
  }

  syncPoints(spec) {
    const make = (c, kind, side) => {
      let p = this.points.get(c.channel)
      if (p && p.kind !== kind) { p.remove(); p = undefined }
      if (!p) {
        const g = s('g', { class: `point ${kind}`, 'data-channel': c.channel, role: 'none' },
          kind === 'pill' ? s('rect', { height: 22, y: -11, rx: 11 }) : s('circle', { r: 4 }),
          s('text', { class: 'channel' }), s('text', { class: 'rate' }))
        this.layers.points.append(g)
        const [mark, name, rateText] = g.childNodes
        this.points.set(c.channel, p = { kind, g, mark, name, rate: rateText, remove: () => g.remove() })
      }
      Object.assign(p, { spec: c, side })
    }
    for (const c of spec.rings) make(c, 'ring')
    for (const c of spec.pills) make(c, 'pill', c.side)
    for (const c of spec.open) make(c, 'open')
  }

  syncEdge(e) {
    let it = this.edges.get(e.key)
    if (!it) {
      const path = s('path', { class: 'edge' + (e.wire ? ' wire' : '') }), rateText = s('text', { class: 'rate', 'text-anchor': 'middle' })
      const name = s('text', { class: 'channel', 'text-anchor': 'middle' })
      this.layers.edges.append(path)
      this.layers.labels.append(rateText, name)
      this.edges.set(e.key, it = { path, rate: rateText, name, remove: () => { path.remove(); rateText.remove(); name.remove() } })
    }
    it.spec = e
  }

  // paint sets what changes without a change of the topology: statuses, rates, badges.
  paint() {
    for (const bed of this.places.beds.values()) this.paintBed(bed)
    for (const bed of this.places.beds.values()) for (const id of bed.spec.creatures) this.paintChip(bed.spec.nodes.get(id), bed)
    this.paintRates()
  }

  slotOf(graph) { return this.offset.slots?.get(graph) ?? this.store.graphs.get(graph)?.slot ?? 0 }

  paintBed(bed) {
    const el = this.beds.get(bed.spec.id), { graph } = bed.spec
    if (!el) return
    const slot = graph.slot, troubled = this.store.troubled(graph).length
    set(el.g, { class: `bed g${colour(slot)}${el.thick ? ' thick' : ''}` })
    set(el.rect, { 'stroke-dasharray': border(slot) })
    const facts = [count(graph.creatures.length, 'creature'), ...this.past ? [] : [rate(this.store.graphRate(graph)).replace('/s', ' turns/s')]]
    if (troubled) facts.push(`${troubled} ${troubled === 1 ? 'needs' : 'need'} attention`)
    const full = [...facts, short(graph.id)].join(' · ')
    const room = this.at(bed).w - 60
    const name = fit(this.offset.titles?.get(graph.id) || graph.name, room * 0.45, '650 14px system-ui, sans-serif')
    const left = room - 24 - name.length * 8
    el.name.textContent = name
    el.facts.textContent = full.length * 6.4 < left ? full : fit(facts[0] + (troubled ? ' · ' + facts.at(-1) : ''), left, '12px system-ui, sans-serif')
  }

  paintChip(node, bed) {
    const el = this.chips.get(node.id)
    const status = nodeStatus(node, this.store), pending = node.members.reduce((n, c) => n + c.pending, 0)
    const slot = colour(el.slot ?? bed.spec.graph.slot), named = bed.spec.graph.name
    if (el.status !== status) {
      el.shape?.remove()
      el.shape = shape(status, 12.5, 15)
      el.body.after(el.shape)
      el.status = status
    }
    const look = [node.name, node.privileged, node.root].join()
    if (el.look !== look) {
      el.look = look
      squeeze(el.name, node.name, chip.w - 30 - (node.privileged ? 20 : 0), label)
      el.key.setAttribute('visibility', node.privileged ? 'visible' : 'hidden')
      el.outer.setAttribute('visibility', node.root ? 'visible' : 'hidden')
    }
    set(el.g, {
      class: `chip g${slot} is-${status}${el.bars ? ' came' : ''}${this.selected === node.id ? ' selected' : ''}${this.active === node.id ? ' active' : ''}${this.lit && !this.lit.has(node.id) ? ' dim' : ''}`,
      'aria-label': [node.name, words[status], pending ? `${number(pending)} waiting` : '', `graph ${named}`].filter(Boolean).join(', '),
      'aria-selected': this.selected === node.id ? 'true' : 'false',
    })
    this.paintBadge(el, pending)
  }

  paintBadge(el, pending) {
    if (el.pending === pending) return
    el.pending = pending
    const [box, text] = el.badge.childNodes
    el.badge.setAttribute('visibility', pending ? 'visible' : 'hidden')
    if (!pending) return
    const shown = pending > 9999 ? '9999+' : String(pending), w = Math.max(16, shown.length * 7.4 + 8)
    text.textContent = shown
    set(box, { width: w, x: chip.w - w + 8 })
    set(text, { x: chip.w - w / 2 + 8 })
    set(el.badge, { class: 'badge' + (pending >= 100 ? ' plum' : pending >= 30 ? ' amber' : '') })
  }

  rateOf(e) { return this.past ? 0 : this.store.rate(e.wire ? 'wire ' + e.wire : 'channel ' + e.channel) }

  paintRates() {
    const shown = this.store.creatures.size <= 60
    for (const it of this.edges.values()) {
      const r = this.rateOf(it.spec), lit = this.litEdge(it.spec)
      set(it.path, {
        'stroke-width': edgeWidth(r).toFixed(2),
        class: `edge${it.spec.wire ? ' wire' : ''}${lit ? ' lit' : this.lit ? ' dim' : ''}${it.fresh ? ' fresh' : ''}`,
        'marker-end': it.spec.tip ? `url(#${lit || it.fresh ? 'tip-lit' : 'tip'})` : 'none',
      })
      it.rate.textContent = it.spec.labelled && (lit || shown && r >= 2 && !it.spec.wire) ? rate(r) : ''
      it.name.textContent = it.spec.labelled && (lit || it.fresh) ? fit(it.spec.name, 110, label) : ''
      it.rate.setAttribute('class', 'rate' + (this.lit && !lit ? ' dim' : ''))
    }
    for (const p of this.points.values()) this.paintPoint(p, shown)
  }

  paintPoint(p, shown) {
    const r = this.rateOf(p.spec)
    const ends = p.spec.ends || [...p.spec.senders, ...p.spec.listeners]
    const lit = this.lit && ends.includes(this.selected)
    set(p.g, { class: `point ${p.kind}${lit ? ' lit' : this.lit ? ' dim' : ''}${p.fresh ? ' fresh' : ''}` })
    const name = this.offset.names?.get(p.spec.channel) || p.spec.name
    if (p.kind === 'pill') {
      const w = pillWidth(name)
      set(p.mark, { width: w, x: -w / 2 })
      set(p.name, { 'text-anchor': 'middle', y: 4 })
      set(p.rate, { 'text-anchor': 'middle', y: 24 })
      squeeze(p.name, name, 76, '12px system-ui, sans-serif')
      p.rate.textContent = shown && r > 0 ? rate(r) : ''
    } else if (p.kind === 'ring') {
      set(p.name, { 'text-anchor': 'end', x: -9, y: -7 })
      set(p.rate, { 'text-anchor': 'end', x: -9, y: 15 })
      p.name.textContent = fit(name, 80, '12px system-ui, sans-serif')
      p.rate.textContent = shown && r > 0 ? rate(r) : ''
    } else {
      set(p.name, { 'text-anchor': 'end', x: -9, y: 5 })
      p.name.textContent = fit(name, 60, '12px system-ui, sans-serif') + ', no listener'
      p.rate.textContent = ''
    }
  }

  // litEdge says whether a line leads to or from the selection.
  litEdge(e) {
    if (!this.lit) return false
    return e.ends ? e.ends.includes(this.selected) : e.from === this.selected || e.to === this.selected
  }

  select(id) {
    this.selected = id
    this.lit = undefined
    if (id && this.chips.has(id)) {
      this.lit = new Set([id])
      for (const it of this.edges.values()) {
        const e = it.spec
        if (e.channelEnds?.includes(id)) for (const other of e.channelEnds) this.lit.add(other)
        if (e.from === id) this.lit.add(e.to)
        if (e.to === id) this.lit.add(e.from)
      }
    }
    this.paint()
  }

  // draw sets positions: of everything, or of what the given set touches.
  draw(only) {
    for (const bed of this.places.beds.values()) this.drawBed(bed)
    for (const [id, el] of this.chips) {
      if (only && !only.has(id)) continue
      const p = this.chipAt(id)
      if (p) set(el.g, { transform: `translate(${p.x} ${p.y})` })
    }
    for (const [id, el] of this.points) {
      const p = this.pointAt(id)
      if (p) set(el.g, { transform: `translate(${p.x} ${p.y})` })
    }
    for (const it of this.edges.values()) {
      if (only && !touches(it.spec, only)) continue
      this.drawEdge(it)
    }
  }

  drawBed(bed) {
    const el = this.beds.get(bed.spec.id), r = this.at(bed)
    if (!el) return
    set(el.rect, { x: r.x, y: r.y, width: r.w, height: r.h })
    set(el.sign, { x: r.x + 16, y: r.y + 14 })
    set(el.name, { x: r.x + 34, y: r.y + 24.5 })
    set(el.facts, { x: r.x + r.w - 16, y: r.y + 24 })
  }

  drawEdge(it) {
    const e = it.spec, a = this.end(e.a, 'from'), b = this.end(e.b, 'to')
    if (!a || !b) return
    const bed = this.bedOf.get(e.from || e.channel), o = this.shiftOf(e.channel)
    const bends = (bed?.block.bends.get(e.key) || []).map(p => ({ x: bed.x + p.x + o.x, y: bed.y + p.y + o.y }))
    const stops = [a, ...bends.flatMap(p => [p, { x: p.x + chip.w, y: p.y, flat: true }]), b]
    let d = `M${a.x} ${a.y}`
    for (let i = 1; i < stops.length; i++) {
      const from = stops[i - 1], to = stops[i]
      if (to.flat) { d += `H${to.x}`; continue }
      const reach = to.x >= from.x ? Math.max((to.x - from.x) / 2, 8) : Math.min(90, (from.x - to.x) / 2 + 40)
      d += `C${from.x + reach} ${from.y} ${to.x - reach} ${to.y} ${to.x} ${to.y}`
    }
    it.path.setAttribute('d', d)
    const mid = bends.length ? { x: bends[0].x + chip.w / 2, y: bends[0].y } : { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 }
    const far = Math.abs(a.y - b.y) > 12 && !bends.length
    const y = mid.y - (e.nth || 0) * 28 // the labels of lines beside each other are stacked
    set(it.rate, { x: mid.x + (far ? 4 : 0), y: y - (far ? 0 : 6) })
    set(it.name, { x: mid.x, y: y - (far ? 14 : 19) })
  }

  end(e, role) {
    if (e.chip) {
      const p = this.chipAt(e.chip)
      return p && { x: role === 'from' ? p.x + chip.w : p.x - 1, y: p.y + chip.h / 2 }
    }
    const p = this.pointAt(e.point)
    if (!p) return undefined
    const el = this.points.get(e.point)
    if (el?.kind === 'pill') {
      const half = pillWidth(el.spec.name) / 2
      return { x: p.side === 'in' ? p.x + half : p.x - half - 1, y: p.y }
    }
    return { x: p.x + (role === 'from' ? 4 : -4), y: p.y }
  }
}

const none = { x: 0, y: 0 }

function touches(e, ids) {
  return ids.has(e.from) || ids.has(e.to) || ids.has(e.channel) || e.ends?.some(id => ids.has(id))
}

// linesOf are the paths of a graph: each with its ends, its meter, and whether it has a tip
// and a label.
function linesOf(spec) {
  const lines = [], between = new Map() // how many lines two creatures have so far
  for (const e of spec.edges) {
    const pair = [e.from, e.to].sort().join(' '), nth = between.get(pair) || 0
    between.set(pair, nth + 1)
    lines.push({ ...e, nth, a: { chip: e.from }, b: { chip: e.to }, tip: true, labelled: true, channelEnds: [e.from, e.to] })
  }
  for (const r of spec.rings) {
    const all = [...r.senders, ...r.listeners]
    for (const id of r.senders) lines.push({ ...r, key: `${r.channel} ${id} s`, a: { chip: id }, b: { point: r.channel }, ends: [id], channelEnds: all })
    for (const id of r.listeners) lines.push({ ...r, key: `${r.channel} ${id} l`, a: { point: r.channel }, b: { chip: id }, ends: [id], channelEnds: all, tip: true })
  }
  for (const p of spec.pills) {
    for (const id of p.ends) {
      const chipEnd = { chip: id }, pointEnd = { point: p.channel }
      lines.push({ ...p, key: `${p.channel} ${id}`, a: p.side === 'in' ? pointEnd : chipEnd, b: p.side === 'in' ? chipEnd : pointEnd, ends: [id], tip: true })
    }
  }
  for (const p of spec.open) for (const id of p.ends) lines.push({ ...p, key: `${p.channel} ${id}`, a: { chip: id }, b: { point: p.channel }, ends: [id] })
  return lines
}

function arrow(id) {
  return s('marker', { id, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto' },
    s('path', { d: 'M0.500 0.500 7.500 4 0.500 7.500z' }))
}
