// The view Graph: tools, the picture, its table, the strip, the panel and the card.
import { border, colour, Picture } from './graph.js'
import { Places, specOf } from './places.js'
import { Dots } from './dots.js'
import { length, merge, play, split, still } from './motion.js'
import { card, formerName, placeCard } from './card.js'
import { Panel } from './panel.js'
import { Strip } from './strip.js'
import { graphsAt } from './past.js'
import { miniature } from './mini.js'
import { creatureTable } from './lists.js'
import { outward } from './outside.js'
import { clock, count, h, mark, number, rate, replace, said, set, statuses, swatch } from './lib.js'

const many = 300 // creatures from which on the picture is drawn on a canvas
const some = 60 // creatures from which on members of a species stack

// What is kept when another view is shown: places, colours, the waiting film.
let kept

export class GraphView {
  constructor(ctx, host, route) {
    this.ctx = ctx
    this.store = ctx.store
    kept ||= { places: new Places(), store: this.store, queue: [], view: undefined }
    kept.picture ||= new Picture(this.store, kept.places)
    if (!kept.listens) {
      kept.listens = true
      this.store.addEventListener('cut', e => kept.queue.push(e.detail))
    }
    this.picture = kept.picture
    this.build(host)
    this.route(route)
    this.structure()
  }

  build(host) {
    const press = (name, value, of, act) => h('button', { 'aria-pressed': String(of === value), onclick: () => act(value) }, name)
    this.segments = {
      mode: h('div', { class: 'segments hide', role: 'group', 'aria-label': 'Picture or table' }),
      window: h('div', { class: 'segments', role: 'group', 'aria-label': 'Rates over' }),
      group: h('div', { class: 'segments hide', role: 'group', 'aria-label': 'Group by' }),
    }
    this.press = press
    this.stage = h('div', { class: 'stage', role: 'listbox', tabindex: 0, 'aria-label': 'Creatures of all graphs. An arrow key goes to the nearest creature in its direction, Enter opens it.' }, this.picture.svg)
    this.legend = h('div', { class: 'key-to', 'aria-hidden': 'true' }, statuses.map(said))
    this.cards = h('div', { class: 'cards' })
    this.tableHost = h('div', { class: 'table-view', hidden: true })
    this.strip = new Strip(this.store, at => this.goBack(at))
    this.picturePart = h('div', { class: 'stage-part' }, this.stage)
    this.root = h('div', { class: 'graph' },
      h('div', { class: 'tools' }, this.segments.mode, h('span', { class: 'hide' }, 'Rates over'), this.segments.window, h('span', { class: 'hide' }, 'Group by'), this.segments.group,
        h('div', { class: 'end' }, h('button', { onclick: () => this.fit() }, 'Fit ', h('kbd', {}, 'F')))),
      this.stage, this.cards, this.tableHost, this.strip.root)
    this.stage.append(this.legend)
    host.append(this.root)
    this.host = host
    this.pointers()
    this.observer = new ResizeObserver(() => this.resize())
    this.observer.observe(this.stage)
  }

  // route applies the address. It returns true: the view changes itself.
  route(route) {
    const p = route.params
    this.mode = p.get('show') === 'table' ? 'table' : 'picture'
    const seconds = { '10s': 10, '1m': 60, '10m': 600 }[p.get('window')] || 10
    this.store.window = seconds
    this.groupBy = ['species', 'recipe', 'graph'].includes(p.get('group')) ? p.get('group') : ''
    this.group = this.groupBy || (this.store.creatures.size > some && this.store.creatures.size <= many ? 'species' : '')
    if ((p.get('at') || '') !== (this.at || '')) this.goTo(p.get('at') || '')
    this.paintTools()
    this.select(this.named(p.get('creature') || ''), p.get('tab') || '')
    if (this.ready) this.structure()
    return true
  }

  paintTools() {
    const windows = [['10 s', 10, '10s'], ['1 min', 60, '1m'], ['10 min', 600, '10m']]
    replace(this.segments.mode, this.press('Picture', 'picture', this.mode, () => this.show('picture')),
      h('button', { 'aria-pressed': String(this.mode === 'table'), onclick: () => this.show('table') }, 'Table ', h('kbd', {}, 'T')))
    replace(this.segments.window, windows.map(([name, n, word]) => this.press(name, n, this.store.window, () => this.change({ window: word }))))
    replace(this.segments.group, [['nothing', ''], ['species', 'species'], ['recipe', 'recipe'], ['graph', 'graph']]
      .map(([name, by]) => this.press(name, by, this.groupBy, () => this.change({ group: by }))))
    this.stage.hidden = this.mode === 'table'
    this.stage.style.display = this.mode === 'table' ? 'none' : ''
    this.tableHost.hidden = this.mode !== 'table'
    this.tableHost.style.display = this.mode === 'table' ? 'block' : ''
    this.cards.style.display = this.mode === 'table' ? 'none' : ''
  }

  change(params) {
    this.ctx.keep(params)
    this.route(this.ctx.route)
  }

  show(mode) { this.change({ show: mode === 'table' ? 'table' : '' }) }

  // graphs returns the present graphs, or those of the chosen time.
  graphs() { return this.at ? this.past || [] : [...this.store.graphs.values()] }

  // goTo reads the graphs of the chosen time; until they have arrived, the picture stays.
  async goTo(at) {
    this.at = at
    const before = kept.before
    this.past = this.trouble = kept.before = undefined
    if (!at) { if (before) this.move(before); return }
    kept.before = before || kept.view
    if (kept.films) kept.films.length = 0 // they show present changes
    kept.jump?.abort()
    this.dismiss()
    try {
      const past = await graphsAt(this.ctx, at)
      if (this.at === at) this.past = past
    } catch (err) { if (this.at === at) this.trouble = this.ctx.errorText(err) }
    if (this.at !== at || !this.ready) return
    this.structure()
    if (this.past && !this.moved) this.fit(true) // earlier graphs may lie elsewhere
  }

  structure() {
    this.ready = true
    this.bandOfThePast()
    if (this.at && !this.past) return undefined
    const graphs = this.graphs()
    this.picture.past = Boolean(this.at)
    if (!this.at && !this.store.creatures.size && !this.store.channels.size) return this.empty()
    this.emptyFace?.remove()
    const dots = this.store.creatures.size > many
    if (dots !== Boolean(this.dots)) this.swap(dots)
    if (!this.groupBy) this.group = this.store.creatures.size > some && !dots ? 'species' : ''
    const queue = kept.queue.splice(0)
    if (this.dots) this.dots.sync(graphs)
    else this.layOut(graphs, queue)
    if (!kept.view) { this.fit(true); if (this.selected) this.uncover(this.selected) }
    else this.move(kept.view)
    this.update()
    return undefined
  }

  swap(dots) {
    this.picture.svg.remove()
    this.dots?.canvas.remove()
    this.dots = dots ? new Dots(this.store) : undefined
    this.stage.prepend(dots ? this.dots.canvas : this.picture.svg)
    kept.view = undefined
  }

  layOut(graphs, queue) {
    const { places } = kept
    const oldNames = new Map([...this.store.graphs.values()].map(g => [g.id, g.name]))
    const cutLines = this.linesBefore(queue)
    const specs = graphs.map(g => specOf(g, this.store, this.group))
    const size = this.size()
    if (this.signature && this.regrouped(specs)) places.beds.clear()
    this.signature = this.group + (this.at ? 'past' : '')
    const cuts = places.sync(specs, size)
    this.picture.sync()
    if (this.selected) this.picture.select(this.selected)
    if (this.at) return
    for (const cut of cuts) cut.event = queue.find(e => (e.payload.old_graphs || []).includes(cut.kind === 'merge' ? cut.piece : cut.from) && e.payload.kind === cut.kind) || queue.find(e => e.payload.kind === cut.kind)
    for (const cut of cuts) this.announce(cut, oldNames)
    this.film(cuts, cutLines)
  }

  regrouped() { return this.signature !== this.group + (this.at ? 'past' : '') }

  // linesBefore keeps what a split is about to remove, so that it can be seen to break.
  linesBefore(queue) {
    if (!queue.some(e => e.payload.kind === 'split')) return []
    return [...this.picture.edges].map(([key, it]) => ({ key, it, d: it.path.getAttribute('d'), spec: it.spec }))
  }

  announce(cut) {
    const name = id => this.store.name(id)
    const text = cut.kind === 'merge' ? `Merged: ${count(cut.moved.size, 'creature')} became part of ${name(cut.into)}.` : `Split: ${count(cut.moved.size, 'creature')} left ${name(cut.from)}.`
    this.ctx.announce(text)
  }

  // film plays one change; a second waits; from three on the page jumps to the end.
  async film(cuts, cutLines) {
    if (!cuts.length) return
    kept.films ||= []
    for (const cut of cuts) kept.films.push({ cut, cutLines })
    if (kept.playing) { if (kept.films.length > 2) kept.jump?.abort(); return }
    kept.playing = true
    while (kept.films.length) {
      const all = kept.films.length > 2
      const next = kept.films.shift()
      await this.playOne(next.cut, next.cutLines, all)
    }
    kept.playing = false
  }

  async playOne(cut, cutLines, quick) {
    const { picture } = this
    kept.jump = new AbortController()
    const slots = this.slotsOf(cut, cutLines)
    cut.fresh = cut.kind === 'merge' ? this.freshEdges(cut) : []
    this.dismiss()
    for (const id of cut.moved) {
      const c = picture.chips.get(id)
      if (c) { c.bars = cut.kind === 'merge'; c.bar.style.setProperty('fill', `var(--g${colour(slots.old)})`) }
    }
    for (const key of cut.fresh) { const it = picture.edges.get(key); if (it) it.fresh = true }
    const made = cut.kind === 'merge' ? merge(picture, cut, slots) : split(picture, cut, slots)
    if (quick || still()) made.frame(length)
    else {
      this.stage.dataset.motion = cut.kind
      await play(ms => { if (!this.at) made.frame(ms) }, kept.jump.signal)
      delete this.stage.dataset.motion
    }
    made.end()
    if (!this.at) this.showCard(cut, slots)
  }

  slotsOf(cut, cutLines) {
    const { store, picture } = this
    const slots = { old: store.slot(cut.kind === 'merge' ? cut.piece : cut.from) }
    slots.oldDash = border(slots.old)
    if (cut.kind === 'merge') Object.assign(slots, { oldName: formerName(cut.oldSpec), intoName: formerName(cut.oldIntoSpec) })
    const renamed = cut.event?.payload.renamed || []
    slots.names = new Map(renamed.filter(r => r.channel).map(r => [r.channel, r.old]))
    slots.cutLines = cut.kind === 'split' ? (cutLines || []).filter(l => !picture.edges.has(l.key) && l.d).map(l => {
      const line = l.it.path.cloneNode()
      set(line, { class: 'edge', d: l.d })
      line.style.setProperty('stroke', 'var(--failing)')
      picture.layers.edges.append(line)
      return line
    }) : []
    return slots
  }

  // freshEdges are lines between creatures that came and creatures that were there.
  freshEdges(cut) {
    const keys = [], bed = kept.places.beds.get(cut.into)
    for (const [key, it] of this.picture.edges) {
      const e = it.spec
      const ends = e.channelEnds || []
      if (kept.places.beds.get(cut.into)?.spec.creatures.includes(ends[0]) && ends.some(id => cut.moved.has(id)) && ends.some(id => !cut.moved.has(id))) {
        if (e.ends && !cut.moved.has(e.ends[0]) && e.listeners?.includes(e.ends[0])) continue
        keys.push(key)
        const p = bed.block.chips.get(ends.find(id => !cut.moved.has(id)))
        if (p) cut.seam = p
      }
    }
    return keys
  }

  // eventOf finds the event of a cut that the status showed before the event arrived.
  eventOf(cut) {
    const had = cut.kind === 'merge' ? cut.piece : cut.from, recent = this.store.now() - 10000
    return this.store.flags.findLast(f => f.kind === cut.kind && f.at > recent && f.event.payload.old_graphs?.includes(had))?.event
  }

  showCard(cut, slots) {
    this.card?.remove()
    cut.event ||= this.eventOf(cut)
    this.card = card({
      cut, slots, store: this.store, address: this.ctx.address, dismiss: () => this.dismiss(),
      again: () => { this.card?.remove(); this.card = undefined; this.film([cut], []) },
    })
    this.stage.append(this.card)
    placeCard(this.card, this.stage, this.root, this.strip.root, [...cut.moved, ...kept.places.beds.get(cut.into || cut.from)?.spec.creatures || []].map(id => this.picture.chips.get(id)?.g).filter(Boolean))
    this.reveal([...cut.moved])
  }

  dismiss() {
    this.card?.remove()
    this.card = undefined
    for (const c of this.picture.chips.values()) c.bars = false
    for (const it of this.picture.edges.values()) it.fresh = false
    this.picture.paint()
  }

  // update is called twice a second.
  update() {
    if (!this.ready) return
    if (this.dots) this.dots.paint()
    else if (!kept.playing) this.picture.paint()
    this.strip.update()
    this.panel?.update()
    if (this.mode === 'table') this.table()
    this.paintCards()
  }

  table() {
    if (this.tableHost.contains(document.activeElement) && this.tableHost.querySelector('table')) return
    const graphs = this.graphs()
    const rows = graphs.map(g => h('tr', {}, h('td', {}, h('span', { class: 'named' }, swatch(colour(g.slot)), g.name)), h('td', { class: 'n' }, number(g.creatures.length)),
      h('td', { class: 'n' }, rate(this.store.graphRate(g))), h('td', { class: 'n' }, number(this.store.troubled(g).length)),
      h('td', { class: 'n' }, this.at ? '–' : outward(this.store, g) ? h('a', { href: this.ctx.address('outside', '', { graph: g.id }) }, number(outward(this.store, g))) : '0'), h('td', {}, h('code', {}, g.id))))
    const lines = []
    for (const g of graphs) for (const c of g.channels) lines.push(h('tr', {}, h('td', {}, c.name), h('td', {}, h('span', { class: 'named' }, swatch(colour(g.slot)), g.name)),
      h('td', {}, c.senders.map(id => this.store.name(id)).join(', ') || 'outside'), h('td', {}, c.listeners.map(id => this.store.name(id)).join(', ') || (c.address ? 'outside' : 'no listener')),
      h('td', { class: 'n' }, rate(this.store.rate('channel ' + c.id))), h('td', { class: 'n' }, number(c.head))))
    for (const g of graphs) for (const w of g.wires) lines.push(h('tr', {}, h('td', {}, `wire ${w.name || w.wire}`), h('td', {}, h('span', { class: 'named' }, swatch(colour(g.slot)), g.name)),
      h('td', {}, this.store.name(w.from)), h('td', {}, this.store.name(w.to)), h('td', { class: 'n' }, rate(this.store.rate('wire ' + w.wire))), h('td', { class: 'n' })))
    const head = names => h('thead', {}, h('tr', {}, names.map(n => h('th', { scope: 'col', class: ['Creatures', 'Turns', 'Need attention', 'Reaches outside', 'Rate', 'Messages'].includes(n) ? 'n' : '' }, n))))
    replace(this.tableHost,
      h('div', { class: 'box wide' }, h('table', {}, h('caption', {}, 'Graphs'), head(['Graph', 'Creatures', 'Turns', 'Need attention', 'Reaches outside', 'Id']), h('tbody', {}, rows))),
      h('div', { class: 'box wide' }, creatureTable(this.ctx, graphs.flatMap(g => g.creatures), 'Creatures')),
      h('div', { class: 'box wide' }, h('table', {}, h('caption', {}, 'Channels and wires'), head(['Channel', 'Graph', 'From', 'To', 'Rate', 'Messages']), h('tbody', {}, lines))))
  }

  // paintCards is the view on small screens.
  paintCards() {
    if (!this.cards.offsetParent) return
    if (this.cards.contains(document.activeElement) && this.cards.childElementCount === this.store.graphs.size) return
    replace(this.cards, this.graphs().map(g => {
      const troubled = this.store.troubled(g)
      return h('section', { class: 'box', 'aria-label': g.name },
        h('div', { class: 'top' }, swatch(colour(g.slot)), h('h2', {}, g.name), h('span', { class: 'muted' }, `${count(g.creatures.length, 'creature')} · ${rate(this.store.graphRate(g)).replace('/s', ' turns/s')}`)),
        miniature(kept.places.beds.get(g.id), g, this.store),
        troubled.map(c => h('button', { class: 'row', onclick: () => this.change({ creature: c.id }) }, c.name, said(this.store.statusOf(c)))))
    }))
  }

  empty() {
    this.emptyFace?.remove()
    this.emptyFace = h('div', { class: 'face' }, h('div', { class: 'nest', 'aria-hidden': 'true' }), h('h2', {}, 'No creatures yet'),
      h('p', {}, 'Apply a recipe to this session, and its creatures appear here at once.'), h('code', {}, `terrarium apply ${this.store.title || 'DIR'} examples/quickstart`))
    this.stage.append(this.emptyFace)
    this.picture.svg.style.display = ''
    this.strip.update()
  }

  // The past.
  goBack(at) { this.change({ at: at || '' }) }

  bandOfThePast() {
    this.pastBand?.remove()
    if (!this.at) return
    const problems = this.past?.problems || []
    this.pastBand = h('div', { class: 'band' }, mark('stopped'),
      this.trouble ? h('span', {}, 'The graphs of that time cannot be shown: ', this.trouble)
        : this.past ? h('span', {}, h('b', {}, this.past.then ? `The graphs at ${clock(this.past.then)}.` : 'The graphs as they were after an event.'), ' Members, names and lines are shown as they were then. Waiting deliveries and rates are not kept.',
          problems.length ? ` ${count(problems.length, 'graph')} cannot be shown: ${problems[0].message}.` : '')
          : h('span', {}, 'Loading the graphs of that time…'),
      h('button', { onclick: () => this.goBack('') }, 'Back to now'))
    this.root.prepend(this.pastBand)
  }

  // named finds a creature by its name, too, as a reader may write the address.
  named(id) {
    if (!id || this.store.creatures.has(id)) return id
    return [...this.store.creatures.values()].find(c => c.name === id)?.id || id
  }

  // Selection and panel.
  select(id, tab) {
    if (this.selected === id) { if (id && tab) this.panel?.tab(tab); return }
    this.selected = id
    this.panel?.remove()
    this.panel = undefined
    this.picture.select(id)
    if (this.dots) this.dots.select(id)
    if (!id) return
    this.panel = new Panel(this.ctx, id, tab, () => this.close())
    this.host.append(this.panel.root)
    this.uncover(id)
  }

  close() {
    const id = this.selected
    this.change({ creature: '', tab: '' })
    this.picture.active = id
    this.stage.focus({ preventScroll: true })
    this.activate(id)
  }

  // uncover pans only if the panel would lie over the selection.
  uncover(id) {
    const p = this.dots ? this.dots.at(id) : this.picture.chipAt(id)
    if (!p || !kept.view) return
    const { w, h: high } = this.size(), v = kept.view
    const x = v.x + p.x * v.k, y = v.y + p.y * v.k, right = w - 380 - 130 * v.k
    const dx = x > right ? right - x : x < 8 ? 8 - x : 0, dy = y < 8 ? 8 - y : y > high - 40 ? high - 40 - y : 0
    if (dx || dy) this.move({ ...v, x: v.x + dx, y: v.y + dy })
  }

  reveal(ids) {
    const { w, h: high } = this.size(), v = kept.view
    let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity
    for (const id of ids) {
      const p = this.picture.chipAt(id)
      if (p) { x0 = Math.min(x0, p.x); y0 = Math.min(y0, p.y); x1 = Math.max(x1, p.x + 106); y1 = Math.max(y1, p.y + 30) }
    }
    const off = (low, top, at, k, room) => at + low * k < 8 ? 8 - at - low * k : at + top * k > room - 8 ? room - 8 - at - top * k : 0
    this.move({ ...v, x: v.x + off(x0, x1, v.x, v.k, w), y: v.y + off(y0, y1, v.y, v.k, high) })
  }

  // The view on the picture.
  size() {
    const r = this.stage.getBoundingClientRect()
    return { w: r.width || 1000, h: r.height || 600 }
  }

  fit(first) {
    const b = this.dots ? this.dots.bounds() : kept.places.bounds(), { w, h: high } = this.size()
    const room = { x: 18, y: 10, bottom: 56 }
    const k = Math.max(0.12, Math.min((w - 2 * room.x) / b.w, (high - room.y - room.bottom) / b.h, first ? 1.15 : 1.5))
    const x = Math.max(room.x, (w - b.w * k) / 2), y = Math.max(room.y, Math.min(40, (high - room.bottom - b.h * k) / 2))
    this.move({ k, x: x - b.x * k, y: y - b.y * k })
  }

  move(view) {
    kept.view = view
    this.dots ? this.dots.moveTo(view) : this.picture.moveTo(view)
  }

  resize() {
    this.dots?.resize()
    if (!this.moved && this.ready && !this.selected && !this.card && this.stage.offsetParent) this.fit(true)
  }

  zoom(factor, at) {
    const v = kept.view, k = Math.min(4, Math.max(0.08, v.k * factor))
    this.moved = true
    this.move({ k, x: at.x - (at.x - v.x) * k / v.k, y: at.y - (at.y - v.y) * k / v.k })
  }

  pointers() {
    const down = new Map()
    let dragged = 0, pinch = 0
    const { stage } = this
    stage.addEventListener('pointerdown', e => {
      if (e.target.closest('.card')) return
      down.set(e.pointerId, { x: e.clientX, y: e.clientY })
      dragged = 0
    })
    stage.addEventListener('pointermove', e => {
      const from = down.get(e.pointerId)
      if (!from) return
      const dx = e.clientX - from.x, dy = e.clientY - from.y
      dragged += Math.abs(dx) + Math.abs(dy)
      down.set(e.pointerId, { x: e.clientX, y: e.clientY })
      if (dragged > 4) {
        if (!stage.hasPointerCapture(e.pointerId)) stage.setPointerCapture(e.pointerId)
        this.moved = true
        const [a, b] = [...down.values()]
        if (b) {
          const far = Math.hypot(a.x - b.x, a.y - b.y), r = stage.getBoundingClientRect()
          if (pinch) this.zoom(far / pinch, { x: (a.x + b.x) / 2 - r.x, y: (a.y + b.y) / 2 - r.y })
          pinch = far
        } else this.move({ ...kept.view, x: kept.view.x + dx, y: kept.view.y + dy })
      }
    })
    const up = e => {
      if (!down.delete(e.pointerId)) return
      pinch = 0
      if (dragged <= 4 && e.type === 'pointerup') this.press1(e)
    }
    stage.addEventListener('pointerup', up)
    stage.addEventListener('pointercancel', up)
    stage.addEventListener('wheel', e => {
      e.preventDefault()
      const r = stage.getBoundingClientRect()
      this.zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015)), { x: e.clientX - r.x, y: e.clientY - r.y })
    }, { passive: false })
  }

  press1(e) {
    const r = this.stage.getBoundingClientRect()
    const id = this.dots ? this.dots.hit(e.clientX - r.x, e.clientY - r.y) : e.target.closest('.chip')?.dataset.id
    if (id) this.open(id)
    else if (!e.target.closest('.card, .key-to') && this.selected) this.change({ creature: '', tab: '' })
  }

  open(id) {
    const bed = this.picture.bedOf?.get(id), node = bed?.spec.nodes.get(id)
    if (node && node.members.length > 1) this.ctx.go('creatures', '', { q: `group:${id}` })
    else this.change({ creature: id })
  }

  // Keyboard.
  key(e) {
    if (e.key === 'Escape') {
      if (this.selected) this.close()
      else if (this.card) this.dismiss()
      else if (this.at) this.goBack('')
      else return false
      return true
    }
    if (e.key === 't' || e.key === 'T') this.show(this.mode === 'table' ? 'picture' : 'table')
    else if (e.key === 'f' || e.key === 'F') { this.moved = false; this.fit() } else if (e.target === this.stage) this.arrow(e)
    return false
  }

  arrow(e) {
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[e.key]
    if (e.key === 'Enter' && this.active) { e.preventDefault(); this.open(this.active); return }
    if (e.key === 'Home') { e.preventDefault(); this.activate(this.all()[0]?.id); return }
    if (!way) return
    e.preventDefault()
    this.activate(nearest(this.all(), this.active, way))
  }

  all() {
    if (this.dots) return this.dots.all()
    return [...this.picture.chips.keys()].map(id => ({ id, ...this.picture.chipAt(id) }))
  }

  activate(id) {
    if (!id) return
    this.active = id
    if (this.dots) { this.dots.activate(id, this.stage); return }
    this.picture.active = id
    this.stage.setAttribute('aria-activedescendant', 'chip-' + id)
    this.picture.paint()
    const p = this.picture.chipAt(id)
    if (p) this.uncoverActive(p)
  }

  uncoverActive(p) {
    const { w, h: high } = this.size(), v = kept.view
    const x = v.x + p.x * v.k, y = v.y + p.y * v.k, r = 106 * v.k
    const dx = x < 8 ? 8 - x : x + r > w - 8 ? w - 8 - x - r : 0, dy = y < 8 ? 8 - y : y > high - 40 ? high - 40 - y : 0
    if (dx || dy) this.move({ ...v, x: v.x + dx, y: v.y + dy })
  }

  stop() {
    this.observer.disconnect()
    this.panel?.remove()
    this.strip.stop()
  }
}

// nearest is the chip in a direction. Every chip can be reached: if none lies straight
// ahead, it is the next one in reading order.
export function nearest(all, from, [dx, dy]) {
  const here = all.find(p => p.id === from)
  if (!here) return all[0]?.id
  let best, least = Infinity
  for (const p of all) {
    if (p.id === from) continue
    const along = (p.x - here.x) * dx + (p.y - here.y) * dy, across = Math.abs((p.x - here.x) * dy) + Math.abs((p.y - here.y) * dx)
    if (along <= 0.5) continue
    const far = along + 2 * across
    if (far < least && across <= along * 2.5 + 20) { least = far; best = p.id }
  }
  if (best) return best
  const order = [...all].sort((a, b) => dx ? a.y - b.y || a.x - b.x : a.x - b.x || a.y - b.y)
  const i = order.findIndex(p => p.id === from)
  return order[(i + (dx + dy) + order.length) % order.length].id
}

