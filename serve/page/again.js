// Running a turn again: the choice of a module, and what it did then beside what it does now.
import { inShort } from './trap.js'
import { brief, count, h, hidden, mark, number, payload, replace } from './lib.js'

// modules lists what the turn can run on: the recorded module, and those that creatures have now,
// the creature's own first.
function modules(store, event) {
  const own = store.creatures.get(event.creature), seen = new Map()
  for (const c of [own, ...store.creatures.values()]) {
    if (c?.module_sha256 && !seen.has(c.module_sha256)) seen.set(c.module_sha256, `${c === own ? 'as it runs now: ' : ''}${c.module || 'a module'} (${c.module_sha256.slice(0, 8)})`)
  }
  return [['', 'the recorded module'], ...[...seen].slice(0, 40).map(([sum, name]) => ['sha256:' + sum, name]), ['…', 'another module…']]
}

// againBox is the part of a turn that runs it again. stop ends a request under way.
export function againBox(ctx, event) {
  const choice = h('select', { id: 'again-module' }, modules(ctx.store, event).map(([value, name]) => h('option', { value }, name)))
  const other = h('input', { 'aria-label': 'Path of the module, or builtin:NAME', placeholder: 'builtin:echo, or a path on the server', spellcheck: 'false', hidden: true })
  const run = h('button', { class: 'main', disabled: !ctx.online, type: 'submit' }, 'Run it again')
  const cancel = h('button', { type: 'button', hidden: true }, 'Cancel')
  const note = h('span', { class: 'note muted', role: 'status' }), result = h('div', { class: 'result' })
  let asking
  choice.addEventListener('change', () => { other.hidden = choice.value !== '…'; if (!other.hidden) other.focus() })
  cancel.addEventListener('click', () => asking?.abort())
  const submit = async e => {
    e.preventDefault()
    const module = choice.value === '…' ? other.value.trim() : choice.value
    if (asking) return
    if (choice.value === '…' && !module) { replace(note, 'Name a module first.'); other.focus(); return }
    asking = new AbortController()
    cancel.hidden = false
    if (document.activeElement === run) cancel.focus() // a button that is off loses the focus
    run.disabled = true
    replace(note, 'Running it again…')
    replace(result)
    try {
      const r = await ctx.call('replay_turn', { turn: event.id, ...(event.graph ? { graph: event.graph } : {}), ...(module ? { module } : {}) }, asking.signal)
      replace(note, said(r))
      replace(result, comparison(r))
    } catch (err) {
      replace(note, err.name === 'AbortError' ? 'Cancelled.' : ctx.errorText(err))
    } finally {
      asking = undefined
      run.disabled = !ctx.online
      if (document.activeElement === cancel) run.focus()
      cancel.hidden = true
    }
  }
  const box = h('section', { class: 'box again', 'aria-label': 'Run it again' }, h('div', { class: 'in' },
    h('form', { class: 'acts', onsubmit: submit }, run, h('label', { for: 'again-module' }, 'on'), choice, other, cancel, note),
    h('p', { class: 'muted' }, 'This repeats the turn from the record, with its message, state and configuration. It changes nothing.'), result))
  return { box, stop: () => asking?.abort(), connection: () => { run.disabled = !ctx.online || !!asking } }
}

const ended = side => side.error?.code || ''

function said(r) {
  if (r.same) return 'It does the same again.'
  const effects = r.rows.filter(row => !row.same && (row.then || row.again).kind !== 'failed').length
  return `It differs in ${[ended(r.then) !== ended(r.again) ? 'the outcome' : '', effects || r.more ? (r.more ? 'its effects' : count(effects, 'effect')) : ''].filter(Boolean).join(' and ')}.`
}

// comparison is a table of both sides. What differs has a sign, a word and a ground.
function comparison(r) {
  const row = (name, then, again, same, first) => h('div', { role: 'row', class: same ? '' : 'differs', id: first ? 'again-first' : undefined },
    h('div', { role: 'rowheader' }, same ? '' : [h('span', { 'aria-hidden': 'true' }, '≠ '), h('span', { class: 'gone' }, 'differs: ')], name),
    h('div', { role: 'cell', 'data-side': 'then' }, then), h('div', { role: 'cell', 'data-side': 'again' }, again))
  const fuel = side => (side.fuel < 0 ? 'not known' : number(side.fuel))
  const module = side => [side.module || 'module', ' ', h('code', { title: side.module_sha256 }, brief(side.module_sha256))]
  const outcome = side => (side.error ? [mark('failing'), ' ', h('b', {}, side.error.code), ': ', inShort(side.error.message)] : [mark('running'), ' done'])
  return h('div', { class: 'sides', role: 'table', 'aria-label': 'Then and again' },
    h('div', { role: 'row', class: 'top' }, h('div', { role: 'columnheader' }, ''), h('div', { role: 'columnheader' }, 'then'), h('div', { role: 'columnheader' }, 'again')),
    row('outcome', outcome(r.then), outcome(r.again), ended(r.then) === ended(r.again)),
    row('module', module(r.then), module(r.again), r.then.module_sha256 === r.again.module_sha256),
    row('fuel', fuel(r.then), fuel(r.again), true),
    r.rows.filter(x => (x.then || x.again).kind !== 'failed').map(x => row((x.then || x.again).kind, effect(x.then), x.same ? h('span', { class: 'muted' }, 'the same') : effect(x.again), x.same, r.rows[r.first] === x)),
    r.rows.length || r.more ? '' : h('div', { role: 'row', class: 'muted' }, h('div', { role: 'cell' }, ''), h('div', { role: 'cell', 'data-side': 'then' }, 'no effects'), h('div', { role: 'cell', 'data-side': 'again' }, 'no effects')),
    r.more ? h('p', { class: 'muted' }, `${count(r.more, 'effect')} more, left out here. terrarium replay --turn shows all.`) : '')
}

function effect(e) {
  if (!e) return h('span', { class: 'muted' }, 'nothing')
  const name = [h('span', { class: 'mono' }, e.target || ''), e.detail ? h('span', { class: 'muted' }, ' ' + e.detail) : '']
  for (const [key, value] of Object.entries(e.headers || {})) name.push(h('div', { class: 'mono muted' }, `${key}: ${value}`))
  if (e.unknown) return [name, h('div', { class: 'muted' }, 'its contents were not recorded')]
  if (e.hash) return [name, h('div', { class: 'muted' }, 'a policy changed it or left it out')]
  if (e.kind === 'log' && e.payload !== undefined) return [name, ' ', payload(e.payload)]
  if (!e.size) return name
  return [name, hidden(e.size, () => {
    if (e.payload === undefined) throw new Error('This link does not allow you to see it: the scope operate is required.')
    return payload(e.payload) + (e.cut ? '\n… (the rest is left out)' : '')
  })]
}
