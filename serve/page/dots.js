// The picture of many creatures, on a canvas: dots inside beds. Creatures in trouble, the
// selected and the active one keep their names; zooming in brings chips back.
import { border, colour } from './graph.js'
import { edgesOf } from './store.js'
import { chip } from './layout.js'
import { count, fit, h, number, rate, severity, words } from './lib.js'

const bed = { w: 400, h: 312, gap: 22 }
const mostPixels = 8e6 // of the image of the lines
const near = 3.2 // the zoom from which on chips are drawn

export class Dots {
  constructor(store) {
    this.store = store
    this.canvas = h('canvas', { class: 'dots', role: 'none' })
    this.spoken = h('div', { class: 'gone', role: 'option', id: 'dot-active', 'aria-selected': 'false' })
    this.view = { x: 0, y: 0, k: 1 }
    this.beds = []
    this.where = new Map()
    this.frames = 0
    this.scheme = matchMedia('(prefers-color-scheme: dark)')
    this.scheme.addEventListener('change', () => { this.tokens = undefined; this.paint() })
  }

  sync(graphs) {
    const signature = graphs.map(g => g.id + g.creatures.map(c => c.id) + g.channels.length).join()
    if (signature === this.signature) {
      this.beds.forEach((bed, i) => { bed.graph = graphs[i] })
      this.paint()
      return
    }
    this.signature = signature
    const across = Math.max(1, Math.round(Math.sqrt(graphs.length * 1.5)))
    this.where.clear()
    this.beds = graphs.map((graph, i) => {
      const size = Math.max(1, Math.sqrt(graph.creatures.length / 340))
      const at = { graph, x: (i % across) * (bed.w + bed.gap), y: Math.floor(i / across) * (bed.h + bed.gap), w: bed.w, h: bed.h }
      const n = graph.creatures.length, cx = at.x + at.w / 2, cy = at.y + at.h / 2 + 16
      graph.creatures.forEach((c, j) => {
        const r = Math.sqrt((j + 0.5) / n), a = j * 2.399963
        this.where.set(c.id, { id: c.id, x: cx + Math.cos(a) * r * (at.w / 2 - 26), y: cy + Math.sin(a) * r * (at.h / 2 - 36), size })
      })
      at.lines = this.linesOf(graph)
      return at
    })
    this.paint()
  }

  linesOf(graph) {
    const lines = [], add = (a, b) => { if (lines.length < 4000 && this.where.has(a) && this.where.has(b) && a !== b) lines.push([this.where.get(a), this.where.get(b)]) }
    const { edges, rings } = edgesOf(graph)
    for (const e of edges) add(e.from, e.to)
    for (const r of rings) for (const a of r.senders.slice(0, 12)) for (const b of r.listeners.slice(0, 40)) add(a, b)
    return lines
  }

  bounds() {
    const right = Math.max(1, ...this.beds.map(b => b.x + b.w)), bottom = Math.max(1, ...this.beds.map(b => b.y + b.h))
    return { x: 0, y: 0, w: right, h: bottom }
  }

  at(id) { return this.where.get(id) }
  all() { return [...this.where.values()] }
  select(id) { this.selected = id; this.paint() }

  activate(id, stage) {
    this.active = id
    const c = this.store.creatures.get(id)
    if (!c) return
    if (!this.spoken.isConnected) stage.append(this.spoken)
    this.spoken.textContent = [c.name, words[this.store.statusOf(c)], c.pending ? `${number(c.pending)} waiting` : '', `graph ${this.store.name(c.graph)}`].filter(Boolean).join(', ')
    stage.setAttribute('aria-activedescendant', 'dot-active')
    this.paint()
  }

  moveTo(view) { this.view = view; this.paint() }

  resize() { this.sized = false; this.paint() }

  hit(x, y) {
    const wx = (x - this.view.x) / this.view.k, wy = (y - this.view.y) / this.view.k
    let best, least = (12 / this.view.k) ** 2
    for (const label of this.labels || []) if (x >= label.x && x <= label.x + label.w && y >= label.y && y <= label.y + label.h) return label.id
    for (const p of this.where.values()) {
      const far = (p.x - wx) ** 2 + (p.y - wy) ** 2
      if (far < least) { least = far; best = p.id }
    }
    return best
  }

  // paint requests a frame; several requests get one frame.
  paint() {
    if (this.asked) return
    this.asked = true
    requestAnimationFrame(() => { this.asked = false; this.frames++; this.draw() })
  }

  token(name) {
    this.tokens ||= new Map()
    let v = this.tokens.get(name)
    if (!v) this.tokens.set(name, v = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim())
    return v
  }

  draw() {
    const { canvas } = this, r = canvas.getBoundingClientRect(), dpr = devicePixelRatio || 1
    if (!r.width) return
    if (canvas.width !== Math.round(r.width * dpr) || canvas.height !== Math.round(r.height * dpr)) {
      canvas.width = Math.round(r.width * dpr)
      canvas.height = Math.round(r.height * dpr)
    }
    const g = canvas.getContext('2d'), { x, y, k } = this.view
    g.setTransform(dpr, 0, 0, dpr, 0, 0)
    g.clearRect(0, 0, r.width, r.height)
    this.labels = []
    for (const b of this.beds) this.drawBed(g, b)
    const lines = this.linesAt(k * dpr)
    if (lines) {
      g.setTransform(1, 0, 0, 1, 0, 0)
      g.drawImage(lines, Math.round(x * dpr), Math.round(y * dpr))
      g.setTransform(dpr, 0, 0, dpr, 0, 0)
    } else {
      g.setTransform(dpr * k, 0, 0, dpr * k, x * dpr, y * dpr)
      this.strokeLines(g, k)
      g.setTransform(dpr, 0, 0, dpr, 0, 0)
    }
    this.drawCreatures(g, r)
  }

  strokeLines(g, k) {
    g.strokeStyle = this.token('edge')
    g.globalAlpha = 0.35
    g.lineWidth = 0.6 / Math.max(k, 0.5)
    g.beginPath()
    for (const b of this.beds) for (const [a, c] of b.lines) { g.moveTo(a.x, a.y); g.lineTo(c.x, c.y) }
    g.stroke()
    g.globalAlpha = 1
  }

  // linesAt keeps the lines as an image, which panning only moves: stroking them takes most
  // of a frame. Enlarged much, the image would be too large, and most lines are outside.
  linesAt(k) {
    const key = [k, this.signature, this.scheme.matches].join()
    if (this.image?.key === key) return this.image.canvas
    const { w, h: high } = this.bounds()
    if (w * k * high * k > mostPixels) return undefined
    const canvas = new OffscreenCanvas(Math.ceil(w * k), Math.ceil(high * k)), g = canvas.getContext('2d')
    g.setTransform(k, 0, 0, k, 0, 0)
    this.strokeLines(g, k)
    this.image = { key, canvas }
    return canvas
  }

  drawBed(g, b) {
    const { x, y, k } = this.view, slot = colour(b.graph.slot), tint = this.token('g' + slot)
    const px = x + b.x * k, py = y + b.y * k, w = b.w * k, high = b.h * k
    g.beginPath()
    g.roundRect(px, py, w, high, Math.min(16, 16 * k))
    g.globalAlpha = 0.06
    g.fillStyle = tint
    g.fill()
    g.globalAlpha = 1
    g.strokeStyle = tint
    g.lineWidth = 1.5
    g.setLineDash((border(b.graph.slot) || '').split(' ').filter(Boolean).map(Number))
    g.stroke()
    g.setLineDash([])
    const { graph } = b
    if (w < 150) return
    g.fillStyle = tint
    g.beginPath()
    g.roundRect(px + 16, py + 15, 11, 11, 3)
    g.fill()
    g.fillStyle = this.token('ink')
    g.font = '650 14px system-ui, sans-serif'
    g.textAlign = 'left'
    const name = fit(graph.name, w * 0.4, g.font)
    g.fillText(name, px + 34, py + 25)
    const used = g.measureText(name).width
    g.font = '400 12px system-ui, sans-serif'
    g.fillStyle = this.token('muted')
    g.textAlign = 'right'
    const sick = this.store.troubled(graph).length
    const facts = [count(graph.creatures.length, 'creature'), graph.creatures[0]?.past ? '' : rate(this.store.graphRate(graph)).replace('/s', ' turns/s'), sick ? `${sick} ${sick === 1 ? 'needs' : 'need'} attention` : ''].filter(Boolean)
    while (facts.length > 1 && g.measureText(facts.join(' · ')).width > w - used - 70) facts.splice(1, 1)
    g.fillText(facts.join(' · '), px + w - 16, py + 25)
  }

  drawCreatures(g, r) {
    const { x, y, k } = this.view, named = []
    const size = Math.min(7, Math.max(2, 3.2 * Math.sqrt(k)))
    g.fillStyle = this.token('running')
    g.beginPath()
    for (const { graph } of this.beds) for (const c of graph.creatures) {
      const p = this.where.get(c.id)
      if (!p) continue
      const px = x + p.x * k, py = y + p.y * k
      if (px < -120 || py < -40 || px > r.width + 120 || py > r.height + 40) continue
      const status = this.store.statusOf(c)
      if (!['running', 'stopped', 'paused'].includes(status) || c.id === this.selected || c.id === this.active || k >= near) named.push({ c, status, px, py })
      else if (status !== 'running') g.rect(px - size, py - size, 2 * size, 2 * size)
      else { g.moveTo(px + size, py); g.arc(px, py, size, 0, 7) }
    }
    g.fill()
    named.sort((a, b) => severity[a.status] - severity[b.status])
    const most = k >= near ? 400 : 60
    for (const n of named.slice(-most)) this.drawChip(g, n)
  }

  drawChip(g, { c, status, px, py }) {
    const tint = this.token({ running: 'g' + colour(this.store.graphs.get(c.graph)?.slot || 0), stopped: 'stopped', paused: 'stopped' }[status] || status)
    g.font = '600 12px system-ui, sans-serif'
    g.textAlign = 'left'
    const name = fit(c.name, chip.w - 24, g.font), w = g.measureText(name).width + 32, left = px - 12, top = py - 11
    g.beginPath()
    g.roundRect(left, top, w, 22, 6)
    g.fillStyle = this.token('surface')
    g.fill()
    g.strokeStyle = c.id === this.selected ? this.token('accent') : c.id === this.active ? this.token('focus') : tint
    g.lineWidth = c.id === this.selected || c.id === this.active ? 2.5 : 1.5
    g.stroke()
    this.drawShape(g, status, px, py, status === 'running' ? this.token('running') : tint)
    g.fillStyle = this.token('ink')
    g.fillText(name, left + 24, py + 4.5)
    this.labels.push({ id: c.id, x: left, y: top, w, h: 22 })
  }

  drawShape(g, status, x, y, tint) {
    const poly = points => { g.beginPath(); points.forEach(([a, b], i) => i ? g.lineTo(x + a, y + b) : g.moveTo(x + a, y + b)); g.closePath() }
    g.fillStyle = g.strokeStyle = tint
    g.lineWidth = 1.5
    if (status === 'failing') { poly([[0, -5.4], [6, 5], [-6, 5]]); g.fill() } else if (status === 'quarantined') {
      poly([[-2.5, -6], [2.5, -6], [6, -2.5], [6, 2.5], [2.5, 6], [-2.5, 6], [-6, 2.5], [-6, -2.5]])
      g.fill()
      g.fillStyle = this.token('on-status')
      g.fillRect(x - 3, y - 0.8, 6, 1.6)
    } else if (status === 'backing') {
      g.beginPath(); g.arc(x, y, 4.8, 0, 7); g.stroke()
      g.beginPath(); g.arc(x, y, 4.8, Math.PI / 2, Math.PI * 1.5); g.fill()
    } else if (status === 'waits') {
      poly([[0, -6], [6, 0], [0, 6], [-6, 0]]); g.stroke()
      poly([[0, -2.8], [2.8, 0], [0, 2.8], [-2.8, 0]]); g.fill()
    } else if (status === 'stopped') g.strokeRect(x - 4, y - 4, 8, 8)
    else if (status === 'paused') { g.fillRect(x - 3.3, y - 4.8, 2.2, 9.6); g.fillRect(x + 1.1, y - 4.8, 2.2, 9.6) }
    else { g.beginPath(); g.arc(x, y, 4, 0, 7); g.fill() }
  }
}
