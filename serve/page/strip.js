// The strip: turns per second in the last 20 minutes, with flags, and a hand that chooses
// an earlier time.
import { clock, h, mark, number, replace, s } from './lib.js'

const minutes20 = 20 * 60 * 1000
const ticks = 96

export class Strip {
  constructor(store, go) {
    this.store = store
    this.go = go
    this.svg = s('svg', { class: 'time', 'aria-hidden': 'true' })
    this.line = h('div', { class: 'line', role: 'slider', tabindex: 0, 'aria-label': 'Time: left and right go from flag to flag', 'aria-valuemin': -1200, 'aria-valuemax': 0, 'aria-valuenow': 0, 'aria-valuetext': 'now' }, this.svg)
    this.rate = h('span', { class: 'muted' })
    this.root = h('div', { class: 'strip' }, h('div', { class: 'title' }, h('b', {}, 'Last 20 minutes'), h('br'), this.rate), this.line,
      h('button', { class: 'go', onclick: () => this.step(-1) }, 'Go back…'))
    this.line.addEventListener('pointerdown', e => { this.line.setPointerCapture(e.pointerId); this.drag(e) })
    this.line.addEventListener('pointermove', e => { if (this.line.hasPointerCapture(e.pointerId)) this.drag(e) })
    this.line.addEventListener('pointerup', e => { if (this.x !== undefined) this.settle(); this.line.releasePointerCapture(e.pointerId) })
    this.line.addEventListener('keydown', e => {
      if (e.key === 'ArrowLeft' || e.key === 'ArrowRight') { e.preventDefault(); e.stopPropagation(); this.step(e.key === 'ArrowLeft' ? -1 : 1) }
    })
    this.observer = new ResizeObserver(() => this.draw())
    this.observer.observe(this.line)
  }

  stop() { this.observer.disconnect() }

  drag(e) {
    const r = this.line.getBoundingClientRect()
    this.x = Math.min(Math.max(e.clientX - r.x, 0), r.width) / r.width
    this.draw()
  }

  // settle goes to the last change of a graph before the chosen time.
  settle() {
    const at = this.store.now() - minutes20 * (1 - this.x)
    this.x = this.x > 0.985 ? undefined : this.x
    this.go(this.x === undefined ? '' : String(Math.round(at)))
    this.draw()
  }

  step(way) {
    const to = this.store.now(), at = this.x === undefined ? to : to - minutes20 * (1 - this.x)
    const flags = this.store.flags.filter(f => f.kind !== 'quarantined' && to - f.at < minutes20)
    const next = way < 0 ? flags.filter(f => f.at < at - 500).at(-1) : flags.find(f => f.at > at + 500)
    if (!next && way < 0) return
    this.x = next ? 1 - (to - next.at + 1) / minutes20 : undefined
    this.go(next ? String(next.at - 1) : '')
    this.draw()
  }

  update() {
    const at = Math.floor(this.store.now() / 2000)
    if (this.drawn !== at) { this.drawn = at; this.draw() }
  }

  draw() {
    const { width, height } = this.line.getBoundingClientRect()
    if (!width) return
    const to = this.store.now(), from = to - minutes20, step = minutes20 / ticks
    const rates = []
    // Bars are at fixed times, so that they move instead of changing.
    const first = Math.floor(from / step) * step
    for (let i = 0; i <= ticks; i++) rates.push(this.store.total.sum(first + i * step, first + (i + 1) * step) / (step / 1000))
    const most = Math.max(4, ...rates), base = height - 6, room = height - 26
    const x = ts => (ts - from) / minutes20 * width
    const bars = rates.map((r, i) => {
      const left = Math.max(0, x(first + i * step)), high = r ? Math.max(1.5, r / most * room) : 0
      return high ? s('rect', { class: 'tick', x: left.toFixed(1), y: (base - high).toFixed(1), width: (width / ticks * 0.72).toFixed(1), height: high.toFixed(1) }) : ''
    })
    replace(this.svg, bars, s('path', { class: 'base', d: `M0 ${base + 0.5}H${width}` }), this.flagsAt(x, from, base, width),
      this.x === undefined ? '' : s('path', { class: 'hand', d: `M${this.x * width} 2V${base}` }))
    replace(this.rate, most > 4 ? `turns/s, up to ${number(most)}` : 'turns per second')
    const then = this.x === undefined ? 'now' : clock(to - minutes20 * (1 - this.x))
    this.line.setAttribute('aria-valuenow', this.x === undefined ? 0 : Math.round(-1200 * (1 - this.x)))
    this.line.setAttribute('aria-valuetext', then)
  }

  // flagsAt joins flags that are nearer than 120 px.
  flagsAt(x, from, base, width) {
    const groups = []
    for (const f of this.store.flags) {
      if (f.at < from) continue
      const last = groups.at(-1)
      if (last && x(f.at) - last.x < 120) last.list.push(f)
      else groups.push({ x: x(f.at), list: [f] })
    }
    return groups.map(g => {
      const text = describe(g.list, this.store), at = clock(g.list.at(-1).at)
      const wide = text.length * 6.6 + 70, left = g.x + wide > width ? g.x - wide : g.x + 6
      const sign = mark(g.list.some(f => f.kind === 'quarantined') ? 'quarantined' : 'stopped')
      const cut = s('path', { d: 'M0 0h3q2.500 0 2.500 4t2.500 4h3M0 8h3q2.500 0 2.500-4t2.500-4h3', fill: 'none', stroke: 'var(--accent)', 'stroke-width': 1.6, transform: `translate(${left} 4)` })
      const isQuarantine = g.list.every(f => f.kind === 'quarantined')
      if (isQuarantine) { sign.setAttribute('x', left); sign.setAttribute('y', 0); sign.setAttribute('width', 15); sign.setAttribute('height', 15) }
      return s('g', {}, s('path', { class: 'flag', d: `M${g.x} 0V${base}` }), isQuarantine ? sign : cut, s('text', { x: left + 18, y: 12 }, `${text} ${at}`))
    })
  }
}

function describe(list, store) {
  const count = kind => list.filter(f => f.kind === kind).length
  const parts = []
  const sick = list.filter(f => f.kind === 'quarantined')
  if (sick.length) parts.push(sick.length === 1 ? `${store.name(sick[0].creature)} quarantined` : `${sick.length} quarantined`)
  for (const kind of ['merge', 'split']) if (count(kind)) parts.push(count(kind) === 1 ? kind : `${count(kind)} ${kind}s`)
  return parts.join(', ')
}
