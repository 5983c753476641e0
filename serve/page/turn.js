// The view Turn: why it failed, what was delivered, what it did, and what policies said.
import { againBox } from './again.js'
import { bodyOf, eventOf } from './past.js'
import { frames } from './trap.js'
import { clock, count, duration, h, hidden, mark, number, payload, payloadBytes, replace, span } from './lib.js'

const messages = new Set(['channel_message', 'direct_message', 'request', 'result', 'timer', 'wired_output'])

export function turnView(frame, host, route) {
  const ctx = Object.create(frame) // with what only this view has
  const page = h('div', { class: 'page' })
  host.append(page)
  replace(page, h('p', { class: 'muted' }, 'Loading…'))
  const go = async () => {
    try {
      const { event, around } = await eventOf(ctx, route.id)
      if (event.kind === 'turn_ended' || event.kind === 'turn_failed') await show(ctx, page, event, around)
      else if (event.turn && event.turn !== event.id && !messages.has(event.kind)) ctx.go('turn', event.turn)
      else if (event.kind === 'dead_letter' || messages.has(event.kind)) await message(ctx, page, event)
      else replace(page, h('h1', {}, event.kind.replaceAll('_', ' ')), h('p', {}, h('code', {}, JSON.stringify(event.payload || {}))))
    } catch (err) { replace(page, h('div', { class: 'face' }, h('h2', {}, 'This turn cannot be shown'), h('p', {}, ctx.errorText(err)))) }
  }
  go()
  return { stop: () => ctx.again?.stop(), connection: () => ctx.again?.connection() }
}

const number2 = e => e.channel_seq ?? e.seq

const place = (ctx, e) => e.channel ? `${e.channel.startsWith('inbox:') ? 'inbox' : ctx.store.name(e.channel)}#${number2(e) ?? ''}` : e.payload?.kind || ''

// message shows a message: where it came from, and the turns that it caused.
async function message(ctx, page, event) {
  const cause = event.kind === 'dead_letter' ? event.payload.message : event.id
  const graph = event.graph
  const args = { graph, kinds: ['turn_ended', 'turn_failed'], limit: 1000 }
  if (event.kind === 'dead_letter' && event.payload.creature) args.creature = event.payload.creature
  else if (event.channel) args.channel = event.channel
  const { events } = await ctx.call('history', args)
  const turns = events.filter(e => e.cause === cause)
  if (event.kind === 'dead_letter' && turns.length) { const last = turns.at(-1); const { around } = await eventOf(ctx, last.id); await show(ctx, page, last, around); return }
  replace(page, h('div', { class: 'head' }, h('h1', {}, 'Message ', h('span', { class: 'mono' }, place(ctx, event))), h('span', { class: 'muted' }, clock(event.ts, true))),
    h('section', { class: 'box' }, h('div', { class: 'in' }, h('p', {}, event.creature ? ['From ', creatureLink(ctx, event.creature)] : 'From outside', event.turn ? [' · ', h('a', { href: ctx.address('turn', event.turn) }, 'the turn that sent it')] : ''),
      hidden(payloadBytes(event.payload), () => payload(event.payload)))),
    h('section', { class: 'box' }, h('div', { class: 'in' }, h('h2', {}, 'Turns that handled it'), turns.length ? turns.map(t => h('p', {}, mark(t.kind === 'turn_failed' ? 'failing' : 'running'), ' ', h('a', { href: ctx.address('turn', t.id) }, `${ctx.store.name(t.creature)}, attempt ${t.attempt}`), h('span', { class: 'muted' }, ` ${clock(t.ts, true)}`))) : h('p', { class: 'muted' }, 'None yet.'))))
}

const creatureLink = (ctx, id) => h('a', { href: ctx.address('graph', '', { creature: id }) }, ctx.store.name(id))

async function show(ctx, page, event, around) {
  const { store } = ctx, failed = event.kind === 'turn_failed', p = event.payload || {}
  // Only the stream says how long a turn took, not the history.
  const took = duration(store.turns.get(event.creature)?.find(t => t.id === event.id)?.duration), creature = store.creatures.get(event.creature)
  const [cause, letter] = await Promise.all([event.cause ? eventOf(ctx, event.cause).then(r => r.event).catch(() => undefined) : undefined, failed ? deadLetter(ctx, event) : undefined])
  const mine = around.filter(e => e.id !== event.id && e.kind !== event.kind && isOf(e, event))
  const attempts = creature?.restart?.attempts
  ctx.again?.stop()
  ctx.again = p.kind === 'tool' ? undefined : againBox(ctx, event) // no guest ran
  replace(page,
    h('p', {}, creatureLink(ctx, event.creature), h('span', { class: 'muted' }, ' · turns')),
    h('div', { class: 'head' }, h('h1', {}, event.channel ? ['Turn on ', h('span', { class: 'mono' }, place(ctx, event))] : `Turn: ${p.kind || 'start'}`),
      h('span', { class: 'pill ' + (failed ? 'st-failing' : 'st-running') }, failed ? `failed, attempt ${event.attempt || 1}${attempts ? ` of ${attempts}` : ''}` : 'done'),
      h('span', { class: 'muted' }, [clock(event.ts, true), took ? span(took) : '', p.fuel ? `fuel ${number(p.fuel)}` : ''].filter(Boolean).join(' · ')),
      letter ? h('div', { class: 'end acts' }, h('button', { disabled: !ctx.online, onclick: e => ctx.act(e.currentTarget, 'redeliver', { graph: event.graph, message: letter.id }, () => 'Redelivered. It runs as a new turn.') }, 'Redeliver')) : ''),
    failed ? why(p, around, event, letter) : '',
    ctx.again?.box,
    h('div', { class: 'three' }, delivered(ctx, event, cause), did(ctx, event, mine, failed), verdicts(ctx, event, around, letter)))
}

// isOf says whether an event belongs to a turn. The log lines of a failed turn come before its
// end, and do not have its id.
const isOf = (e, turn) => e.turn === turn.id ||
  e.kind === 'log' && !e.turn && turn.kind === 'turn_failed' && e.creature === turn.creature && e.cause === turn.cause && e.attempt === turn.attempt

async function deadLetter(ctx, event) {
  try {
    const { dead_letters: list } = await ctx.call('dead_letters', { graph: event.graph, creature: event.creature, limit: 1000 })
    return list.find(l => l.message === event.cause)
  } catch { return undefined }
}

function why(p, around, event, letter) {
  const { what, path } = frames(p.error)
  const words = around.filter(e => e.kind === 'log' && isOf(e, event)).at(-1)?.payload.text || letter?.last_words
  return h('section', { class: 'box' }, h('div', { class: 'in' }, h('h2', { class: 'st-failing' }, 'Why it failed'), h('p', {}, h('b', {}, p.code), ': ', what),
    path.length ? h('div', { class: 'source' }, h('ol', { class: 'frames', 'aria-label': 'Call path, innermost first' }, path.map(f => h('li', {}, h('code', {}, f.at ? `${f.at}  ` : '', f.name)))))
      : h('p', { class: 'muted' }, 'If the module is built with debugging information, the source line appears here.'),
    words ? h('p', { class: 'muted' }, `Last log line: “${words}”.`) : ''))
}

function delivered(ctx, event, cause) {
  const rows = []
  const add = (name, value) => rows.push(h('span', { class: 'muted' }, name), h('span', {}, value))
  add('From', cause?.creature ? creatureLink(ctx, cause.creature) : event.cause ? 'outside' : 'the engine')
  if (event.channel) add('Channel', h('code', {}, place(ctx, event)))
  else add('Kind', event.payload?.kind || 'start')
  if (cause) add('Waited', span(Math.max(0, Date.parse(event.ts) - Date.parse(cause.ts))) + ' from sending to the end of the turn')
  add('Headers', cause?.headers && Object.keys(cause.headers).length ? Object.entries(cause.headers).map(([k, v]) => h('div', { class: 'mono' }, `${k}: ${v}`)) : 'none')
  return h('section', { class: 'box' }, h('div', { class: 'in' }, h('h2', {}, '1 · Delivered'), h('div', { class: 'kv' }, rows),
    cause ? hidden(cause.payload === undefined ? undefined : payloadBytes(cause.payload), async () => payload(cause.payload ?? await bodyOf(ctx.call, cause))) : '',
    cause?.turn ? h('p', {}, h('a', { href: ctx.address('turn', cause.turn) }, `What led to this: ${ctx.store.name(cause.creature)}`)) : event.cause ? h('p', {}, h('a', { href: ctx.address('turn', event.cause) }, 'The message and its turns')) : ''))
}

const did1 = { channel_message: 'send', direct_message: 'send', request: 'request', result: 'reply', state: 'state write', output: 'output', log: 'log', timer: 'timer', wired_output: 'wire' }

function did(ctx, event, mine, failed) {
  const p = event.payload || {}
  const row = (what, name, size, kept) => h('div', { class: 'did' }, h('span', { class: failed && !kept ? 'void' : '' }, what), h('span', { class: 'mono' }, name), h('span', { class: 'muted' }, size || ''))
  const rows = mine.map(e => {
    const name = e.kind === 'state' ? e.payload.key : e.kind === 'log' ? `${e.payload.level}: ${e.payload.text}` : e.channel ? place(ctx, e) : ''
    return row(e.kind === 'log' && failed ? 'log, kept' : did1[e.kind] || e.kind.replaceAll('_', ' '), name, e.kind === 'log' ? '' : `${number(payloadBytes(e.kind === 'state' ? e.payload.value : e.payload))} B`, e.kind === 'log')
  })
  for (const send of p.notes?.sends || []) if (failed) rows.push(row('send', send.alias || ctx.store.name(send.channel) || '', ''))
  return h('section', { class: 'box' }, h('div', { class: 'in' }, h('h2', {}, '2 · What it did'), failed ? h('p', { class: 'muted' }, 'Nothing of this turn took effect, because it failed. Log lines are kept.') : '',
    rows.length ? rows : h('p', { class: 'muted' }, failed ? 'It logged nothing.' : 'It had no effects.')))
}

function verdicts(ctx, event, around, letter) {
  const rows = around.filter(e => e.kind === 'policy_denied' && (e.turn === event.id || e.cause && e.cause === event.cause)).map(e => ['backing', `${e.payload.event} · ${e.payload.policy}`, `${e.payload.effect}${e.payload.reason ? ': ' + e.payload.reason : ''}`, e.payload.where || ''])
  const after = around.filter(e => e.creature === event.creature && (e.kind === 'creature_quarantined' || e.kind === 'creature_failed') && (!e.cause || e.cause === event.cause))
  for (const e of after) rows.push([e.kind === 'creature_quarantined' ? 'quarantined' : 'failing', 'restart policy', e.kind === 'creature_quarantined' ? 'quarantined' : 'no further attempt', ''])
  if (letter) rows.push(['failing', 'dead letter', count(letter.attempts || 1, 'attempt'), ''])
  return h('section', { class: 'box' }, h('div', { class: 'in' }, h('h2', {}, '3 · Verdicts'),
    rows.length ? rows.map(([status, what, said, where]) => h('div', { class: 'did' }, h('span', { class: 'said' }, mark(status), what), h('span', {}, said), h('code', { class: 'muted' }, where))) : h('p', { class: 'muted' }, 'No policy objected.')))
}
