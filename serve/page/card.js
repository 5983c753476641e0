// The card of a merge or a split, in words.
import { colour } from './graph.js'
import { clock, count, h, icon, span, swatch } from './lib.js'

export function card({ cut, store, slots, address, dismiss, again }) {
  const { event } = cut
  const payload = event?.payload || {}
  const name = id => store.name(id)
  const merged = cut.kind === 'merge'
  const at = event?.at || Date.now()
  const graph = (id, slot) => [swatch(colour(slot ?? store.slot(id))), ' ', merged ? formerName(id === cut.piece ? cut.oldSpec : cut.oldIntoSpec) : name(id)]
  const ago = store.now() - at
  const by = byWhom(event, store)
  const edge = cut.fresh?.length ? newEdge(cut, store) : undefined
  const text = merged
    ? [graph(cut.piece, slots.old), ` (${count(cut.moved.size, 'creature')}) became part of `, graph(cut.into), ', which keeps its id ', h('code', {}, cut.into.slice(0, 5)), '. ', by, edge ? [': an edge from ', h('b', {}, edge.from), ' to ', h('b', {}, edge.to), ' over ', h('b', {}, edge.channel)] : '', '.']
    : [graph(cut.piece), ` (${count(cut.moved.size, 'creature')}) left `, graph(cut.from), ', which keeps its id ', h('code', {}, cut.from.slice(0, 5)), '. The new graph is ', h('code', {}, cut.piece.slice(0, 5)), '. ', by, '.']
  const renamed = (payload.renamed || []).map(r => h('div', {}, h('code', {}, r.old), ' is now ', h('code', {}, r.new), r.channel ? aliasNote(r, store) : ''))
  const unified = (payload.unified || []).map(u => h('div', {}, 'channel ', h('code', {}, name(u.absorbed)), ' became part of ', h('code', {}, name(u.survivor))))
  const sessions = (merged ? [cut.into] : [cut.from, cut.piece]).map(id => store.graphs.get(id)?.session).filter(Boolean)
  return h('section', { class: 'card', 'aria-label': merged ? 'A merge' : 'A split' },
    h('header', {}, h('h2', {}, merged ? 'Merged' : 'Split'), h('span', { class: 'muted' }, `${clock(at, true)}${ago > 0 && ago < 3600000 ? ` · ${span(Math.max(1000, ago))} ago` : ''}`),
      h('button', { class: 'plain', 'aria-label': 'Dismiss', onclick: dismiss }, icon('close'))),
    h('p', {}, text),
    h('dl', {}, renamed.length || unified.length ? [h('dt', {}, 'Renamed'), h('dd', {}, renamed, unified)] : '',
      sessions.length ? [h('dt', {}, sessions.length > 1 ? 'Sessions' : 'Session'), h('dd', {}, sessions.map((id, i) => [i ? ' and ' : '', h('code', {}, '…' + id.slice(-4))]), merged ? ' with the history of both' : ', each with the history up to the split')] : ''),
    h('div', { class: 'row' }, h('button', { onclick: again }, 'Play again'), h('a', { class: 'button', href: address('lineage', '', { at: event?.cursor || '' }) }, 'Show in lineage'),
      merged ? h('span', { class: `came-mark g${colour(slots.old)}` }, `creatures from ${formerName(cut.oldSpec)}`) : ''))
}

export function formerName(spec) {
  const names = new Set([...spec.nodes.values()].flatMap(n => n.members.map(c => c.deployment)).filter(d => d && !d.startsWith('root:')))
  return names.size ? [...names].join(' + ') : [...spec.nodes.values()][0]?.name || spec.id.slice(0, 5)
}

// byWhom says what caused the change, as far as the event shows: a creature's turn has a cause.
function byWhom(event, store) {
  if (!event) return 'Done while this page received no events'
  if (event.creature) return ['Done by ', h('b', {}, store.name(event.creature))]
  if (event.cause) return 'Done by a creature with a group tool'
  return 'Done by an operation'
}

function newEdge(cut, store) {
  for (const channel of store.channels.values()) {
    if (channel.graph !== cut.into) continue
    for (const from of channel.senders) for (const to of channel.listeners) {
      if (cut.moved.has(from) !== cut.moved.has(to)) return { from: store.name(from), to: store.name(to), channel: channel.name }
    }
  }
  return undefined
}

// aliasNote names a creature for which nothing changes, because it uses an alias of its
// own.
function aliasNote(renamed, store) {
  for (const c of store.creatures.values()) {
    for (const [alias, channels] of Object.entries(c.aliases?.listen || {})) {
      if (alias === renamed.old && channels.includes(renamed.channel)) return ['; ', h('b', {}, c.name), ' still calls it ', h('code', {}, alias)]
    }
  }
  return ''
}

// placeCard finds a corner where the card covers no chip that the change concerns. If there
// is none, the card is below the picture.
export function placeCard(el, stage, root, strip, chips) {
  if (!stage.offsetParent) return
  const room = stage.getBoundingClientRect(), size = el.getBoundingClientRect()
  const boxes = chips.map(c => c.getBoundingClientRect())
  const corners = [
    { x: 16, y: room.height - size.height - 14 }, { x: room.width - size.width - 16, y: room.height - size.height - 14 },
    { x: room.width - size.width - 16, y: 14 }, { x: 16, y: 14 }, { x: (room.width - size.width) / 2, y: room.height - size.height - 14 },
  ]
  const covers = at => boxes.filter(b => b.left < room.left + at.x + size.width + 6 && b.right > room.left + at.x - 6 && b.top < room.top + at.y + size.height + 6 && b.bottom > room.top + at.y - 6).length
  const at = corners.find(c => c.x >= 0 && c.y >= 0 && !covers(c))
  if (at) {
    el.style.setProperty('left', at.x + 'px')
    el.style.setProperty('top', at.y + 'px')
  } else {
    el.classList.add('docked')
    strip.before(el)
  }
}
