// The view Dead letters.
import { clock, count, h, hidden, mark, number, payload, payloadBytes, replace } from './lib.js'
import { inShort } from './trap.js'
import { todoTabs } from './lists.js'

const shown = 3 // letters of a group before "more"

export function deadLettersView(ctx, host, route) {
  const { store } = ctx
  const list = h('div'), fault = h('div'), head = h('span', { class: 'muted' }), chosen = new Map()
  const only = route.params.get('creature') || ''
  host.append(h('div', { class: 'page narrow' }, todoTabs(ctx), h('div', { class: 'head' }, h('h1', {}, 'Dead letters'), head), list, fault))
  // By reason and creature. A box, and the row of a letter in it, are the same elements for as
  // long as they are needed, so that nothing moves or closes while an operator uses it. New
  // ones are added at the end.
  const boxes = new Map()
  let letters = [], known = false, reading = false, again = false

  const read = async () => {
    again = true
    if (reading) return
    reading = true
    try {
      while (again) {
        again = false
        const all = []
        for (const graph of store.graphs.keys()) {
          const { dead_letters: found } = await ctx.call('dead_letters', { graph, limit: 1000 })
          for (const l of found) all.push({ ...l, graph })
        }
        letters = only ? all.filter(l => l.creature === only) : all
        known = true
        if (!only) ctx.lettersListed = letters.length
        replace(fault)
        paint()
      }
    } catch (err) { replace(fault, ctx.errorText(err)) } finally { reading = false }
  }

  const redeliver = async b => {
    const want = wanted(b)
    const note = b.acts.querySelector('.note') || b.acts.appendChild(h('span', { class: 'note', role: 'status' }))
    b.busy = true
    paint()
    let done = 0
    try {
      for (const l of want) { // in their order
        await ctx.call('redeliver', { graph: l.graph, message: l.id })
        replace(note, `${++done} of ${want.length}`)
      }
      ctx.announce(`${count(done, 'dead letter')} redelivered.`)
      await read()
      ctx.refresh()
    } catch (err) { replace(note, done ? `${done} of ${want.length} are redelivered. ` : '', ctx.errorText(err)) } finally {
      b.busy = false
      paint()
    }
  }

  const wanted = b => b.letters.filter(l => chosen.get(l.id) !== false)
  const say = (el, text) => { if (el.textContent !== text) el.textContent = text }

  const paint = () => {
    say(head, letters.length ? `${count(letters.length, 'delivery', 'deliveries')} ${only ? `to ${store.name(only)} ` : ''}that were not handled, by reason` : '')
    const groups = new Map()
    for (const l of letters) {
      const key = `${l.reason} ${l.creature}`
      if (!groups.has(key)) groups.set(key, [])
      groups.get(key).push(l)
    }
    for (const [key, b] of boxes) if (!groups.has(key)) { b.el.remove(); boxes.delete(key) }
    if (groups.size && !boxes.size) replace(list)
    for (const [key, group] of groups) {
      if (!boxes.has(key)) {
        const b = box(group[0])
        boxes.set(key, b)
        list.append(b.el)
      }
      fill(boxes.get(key), group)
    }
    if (known && !groups.size && !list.querySelector('.face')) replace(list, h('div', { class: 'face' }, h('h2', {}, 'No dead letters'), h('p', {}, 'A delivery that fails in every attempt, or for which there is no creature, is kept here until it is redelivered.')))
  }

  // box is the empty box of the letters with a reason and a creature.
  const box = ({ reason, creature }) => {
    const b = { creature, letters: [], busy: false, open: false, status: undefined, rows: new Map(), mark: h('span'), count: h('span', { class: 'muted' }), error: h('p', { class: 'mono muted' }), about: h('div', { class: 'in' }), list: h('div') }
    // The second click of a double click may be on the next box, which moved up under it.
    b.again = h('button', { onclick: e => { if (e.detail < 2) redeliver(b) } })
    b.first = h('a', { class: 'button', href: ctx.address('graph', '', { creature }) }, 'Look at the creature')
    b.acts = h('div', { class: 'acts' }, b.first, b.again)
    b.more = h('button', { class: 'plain', onclick: () => { b.open = true; paint() } })
    b.rest = h('div', { class: 'in' }, b.more)
    b.el = h('section', { class: 'box', 'aria-label': `${reason} in ${store.name(creature)}` },
      h('div', { class: 'in group-head' }, b.mark, h('div', {}, h('p', {}, h('b', {}, reason), ' in ', h('a', { href: ctx.address('graph', '', { creature }) }, store.name(creature)), b.count), b.error), b.acts),
      b.about, b.list, b.rest)
    return b
  }

  // fill brings a box up to date, and changes only what differs.
  const fill = (b, group) => {
    b.letters = group
    const creature = store.creatures.get(b.creature), status = creature ? store.statusOf(creature) : 'gone', blocked = status === 'quarantined'
    const n = wanted(b).length, error = inShort(group.at(-1).error || '').slice(0, 400)
    say(b.count, ` · ${count(group.length, 'delivery', 'deliveries')}`)
    say(b.error, error)
    b.error.hidden = !error
    if (b.status !== status) {
      b.status = status
      replace(b.mark, mark(blocked ? 'quarantined' : 'failing'))
      replace(b.about, blocked ? [h('b', {}, `${creature.name} is quarantined.`), ' If you redeliver them now, they wait until it is started. With the same module, they may fail again.']
        : creature ? '' : [h('b', {}, 'The creature was removed.'), ' Its deliveries can be redelivered only to a creature that a recipe adds at the same address.'])
      b.about.hidden = !blocked && !!creature
      b.first.hidden = !blocked
      b.again.className = blocked ? '' : 'main'
    }
    say(b.again, `Redeliver ${number(n)}`)
    b.again.disabled = b.busy || !ctx.online || !n
    const visible = b.open ? group : group.slice(0, shown), ids = new Set(visible.map(l => l.id))
    for (const [id, row] of b.rows) if (!ids.has(id)) { row.remove(); b.rows.delete(id) }
    for (const l of visible) {
      if (b.rows.has(l.id)) continue
      const row = letter(l)
      b.rows.set(l.id, row)
      b.list.append(row)
    }
    say(b.more, `Show ${number(group.length - visible.length)} more`)
    b.rest.hidden = group.length === visible.length
  }

  const letter = l => {
    const name = l.channel ? `${l.channel.startsWith('inbox:') ? 'inbox' : store.name(l.channel)}#${l.seq}` : l.alias ? `sent as ${l.alias}` : l.kind
    const box = h('input', { type: 'checkbox', 'aria-label': `Redeliver ${name} with the group`, onchange: e => { chosen.set(l.id, e.currentTarget.checked); paint() } })
    box.checked = chosen.get(l.id) !== false
    const failed = store.events.find(e => e.kind === 'turn_failed' && e.cause === l.message)
    return h('div', { class: 'in letter' }, box, h('span', {}, h('code', {}, name), l.attempts ? ` · ${count(l.attempts, 'attempt')}` : '', ` · ${clock(l.ts)}`, l.last_words ? h('span', { class: 'muted' }, ` · last log line: “${l.last_words.slice(0, 120)}”`) : ''),
      hidden(payloadBytes(l.payload), () => payload(l.payload)), h('a', { class: 'button turn', href: failed?.id ? ctx.address('turn', failed.id) : ctx.address('turn', l.id) }, 'Turn'))
  }

  read()
  let tick = 0
  return { update() { if (++tick % 10 === 0) read(); else paint() }, event(e) { if (e.kind === 'dead_letter') setTimeout(read, 200) }, structure: paint }
}
