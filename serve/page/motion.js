// A merge or a split, played in 1,400 ms, and the card that stays until it is dismissed.
import { chip } from './layout.js'
import { s, set } from './lib.js'

export const length = 1400

// pace lets a test hold the film at a time: {hold: 640} stops it there.
export const pace = { hold: undefined }

const ease = t => t < 0 ? 0 : t > 1 ? 1 : t < 0.5 ? 4 * t ** 3 : 1 - (-2 * t + 2) ** 3 / 2
const within = (ms, from, to) => ease((ms - from) / (to - from))
const between = (a, b, k) => ({ x: a.x + (b.x - a.x) * k, y: a.y + (b.y - a.y) * k, w: a.w + (b.w - a.w) * k, h: a.h + (b.h - a.h) * k })

export const still = () => matchMedia('(prefers-reduced-motion: reduce)').matches

// play runs frame(ms) until the end, and resolves then.
export function play(frame, signal) {
  return new Promise(resolve => {
    const begin = performance.now()
    const step = at => {
      let ms = Math.min(at - begin, length)
      if (pace.hold !== undefined) ms = Math.min(Math.max(ms, 0), pace.hold)
      if (signal?.aborted) ms = length
      frame(Math.max(ms, 0))
      if (ms < length) requestAnimationFrame(step)
      else resolve()
    }
    requestAnimationFrame(step)
  })
}

// merge prepares the film of a cut that the places have already made.
export function merge(picture, cut, slots) {
  const { places } = picture
  const bed = places.beds.get(cut.into)
  const target = { x: bed.x, y: bed.y, w: bed.w, h: bed.h }
  const channels = channelsOf(bed, cut)
  const moving = new Set([...cut.moved, ...channels])
  const ghosts = ghostsOf(picture, cut)
  const old = s('g', { class: `bed g${slots.old % 6} thick` }, s('rect', { class: 'ground', rx: 16, 'stroke-dasharray': slots.oldDash }),
    s('rect', { class: 'sign', width: 11, height: 11, rx: 3 }), s('text', { class: 'bed-name' }, slots.oldName))
  picture.layers.beds.append(old)
  const frame = ms => {
    const k = 1 - within(ms, 170, 870)
    picture.offset.ids = moving
    picture.offset.x = cut.dx * k
    picture.offset.y = cut.dy * k
    const grown = within(ms, 480, 900)
    picture.offset.rects = new Map([[cut.into, between({ ...cut.oldInto }, target, grown)]])
    const moved = { x: cut.old.x - cut.dx * (1 - k), y: cut.old.y - cut.dy * (1 - k), w: cut.old.w, h: cut.old.h }
    set(old.firstChild, { x: moved.x, y: moved.y, width: moved.w, height: moved.h })
    set(old.childNodes[1], { x: moved.x + 16, y: moved.y + 14 })
    set(old.childNodes[2], { x: moved.x + 34, y: moved.y + 24.5 })
    const at = picture.offset.rects.get(cut.into)
    picture.offset.edges = (b, moves) => b !== bed ? 0 : moves ? (moved.x + moved.w) * (1 - grown) + (bed.x + bed.w) * grown : at.x + at.w
    picture.offset.titles = ms < 870 ? new Map([[cut.into, slots.intoName]]) : undefined
    old.setAttribute('opacity', 1 - within(ms, 640, 900))
    const el = picture.beds.get(cut.into)
    el.thick = ms < length
    picture.offset.names = ms < 870 ? slots.names : undefined
    wave(picture, cut, ms, slots)
    grow(picture, cut, ms)
    if (cut.shift.x || cut.shift.y) shiftAll(picture, bed, cut, within(ms, 170, 870))
    picture.paint()
    picture.draw()
    for (const g of ghosts) g.setAttribute('opacity', 1 - within(ms, 1000, length))
  }
  const end = () => {
    old.remove()
    for (const g of ghosts) g.remove()
    settle(picture, cut)
  }
  return { frame, end }
}

export function split(picture, cut, slots) {
  const { places } = picture
  const piece = places.beds.get(cut.piece), stays = places.beds.get(cut.from)
  const channels = channelsOf(piece, cut)
  const moving = new Set([...cut.moved, ...channels])
  const ghosts = ghostsOf(picture, { ...cut, into: cut.piece })
  const frame = ms => {
    const k = 1 - within(ms, 500, 1100)
    picture.offset.ids = moving
    picture.offset.x = cut.dx * k
    picture.offset.y = cut.dy * k
    const rects = new Map([[cut.piece, { x: piece.x + cut.dx * k, y: piece.y + cut.dy * k, w: piece.w, h: piece.h }]])
    if (stays) rects.set(cut.from, between(cut.old, { x: stays.x, y: stays.y, w: stays.w, h: stays.h }, within(ms, 500, 920)))
    picture.offset.rects = rects
    const el = picture.beds.get(cut.piece)
    el.g.setAttribute('opacity', within(ms, 240, 560))
    el.thick = ms < length
    for (const id of cut.moved) { const c = picture.chips.get(id); if (c) c.slot = ms > 1000 + 400 * rank(picture, cut, id) ? undefined : slots.old }
    for (const line of slots.cutLines || []) {
      line.setAttribute('opacity', 1 - within(ms, 300, 700))
      line.setAttribute('stroke-dasharray', `6 ${3 + ms / 40}`)
    }
    picture.paint()
    picture.draw()
    for (const g of ghosts) g.setAttribute('opacity', 1 - within(ms, 1000, length))
  }
  const end = () => {
    for (const line of slots.cutLines || []) line.remove()
    for (const g of ghosts) g.remove()
    picture.beds.get(cut.piece)?.g.removeAttribute('opacity')
    settle(picture, cut)
  }
  return { frame, end }
}

function settle(picture, cut) {
  Object.assign(picture.offset, { ids: new Set(), x: 0, y: 0, rects: undefined, names: undefined, all: undefined, edges: undefined, titles: undefined })
  for (const bed of picture.beds.values()) bed.thick = false
  for (const id of cut.moved) { const c = picture.chips.get(id); if (c) c.slot = undefined }
  picture.paint()
  picture.draw()
}

function channelsOf(bed, cut) {
  if (!bed) return []
  const touching = c => [...(c.ends || []), ...(c.senders || []), ...(c.listeners || [])].some(id => cut.moved.has(id))
  const had = cut.oldSpec && new Set([...cut.oldSpec.rings, ...cut.oldSpec.pills, ...cut.oldSpec.open, ...cut.oldSpec.edges].map(c => c.channel))
  return [...bed.spec.rings, ...bed.spec.pills, ...bed.spec.open, ...bed.spec.edges].filter(c => had ? had.has(c.channel) : touching(c) || c.from && cut.moved.has(c.from)).map(c => c.channel)
}

// ghostsOf leaves dashed outlines where the creatures were.
function ghostsOf(picture, cut) {
  const bed = picture.places.beds.get(cut.into)
  const list = []
  for (const id of cut.moved) {
    const p = bed?.block.chips.get(id)
    if (!p || (!cut.dx && !cut.dy)) continue
    const g = s('rect', { class: 'ghost', x: bed.x + p.x + cut.dx, y: bed.y + p.y + cut.dy, width: chip.w, height: chip.h, rx: 8 })
    picture.layers.ghosts.append(g)
    list.push(g)
  }
  return list
}

// rank is how far a chip is from where the graphs touch, from 0 to 1.
function rank(picture, cut, id) {
  if (!cut.ranks) {
    const bed = picture.places.beds.get(cut.into || cut.piece)
    const at = p => Math.hypot(p.x - (cut.seam?.x ?? 0), p.y - (cut.seam?.y ?? 0))
    const far = new Map([...cut.moved].map(m => [m, bed?.block.chips.get(m)]).filter(([, p]) => p).map(([m, p]) => [m, at(p)]))
    const least = Math.min(...far.values()), most = Math.max(...far.values())
    cut.ranks = new Map([...far].map(([m, d]) => [m, most > least ? (d - least) / (most - least) : 0]))
  }
  return cut.ranks.get(id) ?? 0
}

// wave gives newcomers the colour of their new graph, outward from the new edge. The bar
// keeps the old one.
function wave(picture, cut, ms, slots) {
  for (const id of cut.moved) {
    const c = picture.chips.get(id)
    if (!c) continue
    c.slot = ms >= 810 + 560 * rank(picture, cut, id) ? undefined : slots.old
  }
}

// grow draws the new edge from its sender.
function grow(picture, cut, ms) {
  const k = within(ms, 0, 170)
  for (const key of cut.fresh || []) {
    const it = picture.edges.get(key)
    if (!it) continue
    if (k < 1) {
      const total = it.path.getTotalLength()
      it.path.setAttribute('stroke-dasharray', `${total * k} ${total}`)
    } else it.path.removeAttribute('stroke-dasharray')
  }
}

// shiftAll moves the survivor itself, where it had no room to grow.
function shiftAll(picture, bed, cut, k) {
  const o = { x: cut.shift.x * (1 - k), y: cut.shift.y * (1 - k) }
  picture.offset.all = new Map()
  for (const id of bed.spec.creatures) if (!cut.moved.has(id)) picture.offset.all.set(id, o)
  for (const c of [...bed.spec.rings, ...bed.spec.pills, ...bed.spec.open, ...bed.spec.edges]) picture.offset.all.set(c.channel, o)
}
