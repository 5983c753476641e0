// The miniature of a graph, for small screens: dots and lines.
import { border, colour } from './graph.js'
import { nodeStatus } from './places.js'
import { chip } from './layout.js'
import { s, shape } from './lib.js'

export function miniature(bed, graph, store) {
  if (!bed) return ''
  const at = id => { const p = bed.block.chips.get(id); return p && { x: p.x + chip.w / 2, y: p.y + chip.h / 2 - 34 } }
  const k = 330 / bed.w, high = Math.max((bed.h - 34) * k, 60)
  const line = (a, b) => a && b ? s('path', { class: 'edge', d: `M${a.x * k} ${a.y * k}L${b.x * k} ${b.y * k}` }) : ''
  const lines = bed.spec.edges.map(e => line(at(e.from), at(e.to)))
  for (const r of bed.spec.rings) for (const from of r.senders) for (const to of r.listeners) lines.push(line(at(from), at(to)))
  const dots = [...bed.spec.nodes.values()].map(n => {
    const p = at(n.id)
    return p ? shape(nodeStatus(n, store), p.x * k, p.y * k) : ''
  })
  return s('svg', { class: `mini g${colour(graph.slot)}`, viewBox: `-1 -1 332 ${high + 2}`, role: 'img', 'aria-label': `${graph.name}: ${graph.creatures.length} creatures` },
    s('rect', { class: 'ground', width: 330, height: high, rx: 10, 'stroke-dasharray': border(graph.slot) }), lines, dots)
}
