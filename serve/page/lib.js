// Elements, shapes, and texts of numbers and times. Text that came over the network is
// only ever set as text: nothing here, and nothing that uses this, parses HTML.

const SVG = 'http://www.w3.org/2000/svg'

function fill(el, props, children) {
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue
    if (key.startsWith('on')) el.addEventListener(key.slice(2), value)
    else if (key === 'css') for (const [name, v] of Object.entries(value)) el.style.setProperty(name, v)
    else el.setAttribute(key, value === true ? '' : value)
  }
  append(el, children)
  return el
}

function append(el, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue
    if (Array.isArray(child)) append(el, child)
    else el.append(child)
  }
}

// h makes an HTML element, s an SVG element. Strings among the children become text.
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children)
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children)

export function replace(el, ...children) {
  el.replaceChildren()
  append(el, children)
  return el
}

export function set(el, props) {
  for (const [key, value] of Object.entries(props)) {
    const text = String(value)
    if (el.getAttribute(key) !== text) el.setAttribute(key, text)
  }
}

export const words = {
  running: 'running', failing: 'failing', backing: 'backing off', quarantined: 'quarantined',
  stopped: 'stopped', paused: 'paused', waits: 'waits for you',
}
export const statuses = ['running', 'failing', 'backing', 'waits', 'quarantined', 'stopped', 'paused']

// worst orders statuses by how much attention they need.
export const severity = { quarantined: 5, failing: 4, waits: 3, backing: 2, stopped: 1, paused: 1, running: 0 }

function parts(status) {
  switch (status) {
    case 'failing': return [
      s('path', { d: 'M0-5.400 6 5H-6z', fill: 'currentColor', stroke: 'currentColor', 'stroke-linejoin': 'round' }),
      s('path', { d: 'M0-1.800V1.600M0 3.200v.6', class: 'hole' })]
    case 'backing': return [
      s('circle', { r: 4.8, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 }),
      s('path', { d: 'M0-4.800a4.800 4.800 0 0 0 0 9.600z', fill: 'currentColor' })]
    case 'waits': return [
      s('path', { d: 'M0-6 6 0 0 6-6 0z', fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 }),
      s('path', { d: 'M0-2.800 2.800 0 0 2.800-2.800 0z', fill: 'currentColor' })]
    case 'quarantined': return [
      s('path', { d: 'M-2.500-6h5L6-2.500v5L2.500 6h-5L-6 2.500v-5z', fill: 'currentColor' }),
      s('path', { d: 'M-3 0H3', class: 'hole' })]
    case 'stopped': return [
      s('rect', { x: -4.2, y: -4.2, width: 8.4, height: 8.4, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 })]
    case 'paused': return [
      s('path', { d: 'M-2.200-4.800V4.800M2.200-4.800V4.800', fill: 'none', stroke: 'currentColor', 'stroke-width': 2.2 })]
    default: return [s('circle', { r: 4, fill: 'currentColor' })]
  }
}

// shape is the sign of a status inside a picture, mark the same as an image of its own.
export const shape = (status, x, y) =>
  s('g', { class: 'shape st-' + status, transform: `translate(${x} ${y})`, 'aria-hidden': 'true' }, parts(status))

export const mark = status =>
  s('svg', { class: 'mark st-' + status, viewBox: '-8 -8 16 16', 'aria-hidden': 'true' }, parts(status))

export const said = status => h('span', { class: 'said st-' + status }, mark(status), words[status])

const paths = {
  graph: 'M4.500 8h3L11 4.500M7.500 8 11 11.500M2 6.500h2.500v3H2zM11 3h2.500v3H11zM11 10h2.500v3H11z',
  creatures: 'M2 4h12M2 8h12M2 12h12',
  lineage: 'M2 4h4q3 0 4 4h4M2 12h4q3 0 4-4M2 4h12',
  events: 'M3 2v12M6 4h8M6 8h5M6 12h7',
  letters: 'M2 4h12v8.500H2zM2 4.500 8 9l6-4.500',
  approvals: 'M2.500 8.500 6 12 13.500 4',
  problems: 'M8 2.500 14.500 13.500h-13zM8 6.500v3.500M8 11.500v.5',
  policies: 'M8 2 13 4v4q0 4-5 6-5-2-5-6V4z',
  outside: 'M8 2.500H2.500v11h11V8M10 2.500h3.500V6M13.500 2.500 7.500 8.500',
  search: 'M10.500 10.500 14 14M2.500 7a4.500 4.500 0 1 0 9 0 4.500 4.500 0 0 0-9 0',
  close: 'M3.500 3.500l9 9M12.500 3.500l-9 9',
  key: 'M9 8H2.500v2.500M5 8v2M13.500 8a2.200 2.200 0 1 1-4.400 0 2.200 2.200 0 0 1 4.400 0',
  cut: 'M2 4h3q3 0 3 4t3 4h3M2 12h3q3 0 3-4t3-4h3',
  lock: 'M4 7.500h8v6H4zM5.500 7.500V5a2.500 2.500 0 0 1 5 0v2.500',
  next: 'M6 3.500 10.500 8 6 12.500',
}
export const icon = name =>
  s('svg', { class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true' }, s('path', { d: paths[name] }))
export const iconPath = name => paths[name]

export const swatch = slot => h('span', { class: `swatch g${slot}`, 'aria-hidden': 'true' })

const whole = new Intl.NumberFormat('en')
export const number = n => whole.format(Math.round(n || 0))

// rate is written in full from two a second on, with a digit below.
export const rate = r => (r >= 2 || r === 0 ? number(r) : r.toFixed(r < 0.1 ? 2 : 1)) + '/s'

export const count = (n, one, many) => `${number(n)} ${n === 1 ? one : many || one + 's'}`

export function bytes(n) {
  if (n < 1024) return `${n} B`
  if (n < 1 << 20) return `${trim(n / 1024)} KiB`
  if (n < 1 << 30) return `${trim(n / (1 << 20))} MiB`
  return `${trim(n / (1 << 30))} GiB`
}
export const trim = x => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2)).replace(/\.?0+$/, '')

const two = n => String(n).padStart(2, '0')
export function clock(ts, precise) {
  const d = new Date(ts)
  if (Number.isNaN(d.getTime())) return '–'
  const at = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
  return precise ? `${at}.${String(d.getMilliseconds()).padStart(3, '0')}` : at
}
export const minutes = ts => clock(ts).slice(0, 5)

export function span(ms) {
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`
  if (ms < 1000) return `${trim(ms)} ms`
  const sec = Math.round(ms / 1000)
  if (sec < 60) return `${sec} s`
  if (sec < 3600) return `${Math.floor(sec / 60)} min${sec % 60 ? ` ${sec % 60} s` : ''}`
  if (sec < 86400) return `${Math.floor(sec / 3600)} h ${Math.floor(sec % 3600 / 60)} min`
  return `${Math.floor(sec / 86400)} d ${Math.floor(sec % 86400 / 3600)} h`
}

// duration reads what the operations write: "1s", "200ms", or a number of seconds.
export function duration(d) {
  if (typeof d === 'number') return d * 1000
  const unit = { ns: 1e-6, us: 1e-3, 'µs': 1e-3, ms: 1, s: 1000, m: 60000, h: 3600000 }
  let sum = 0
  for (const [, n, u] of String(d || '').matchAll(/([\d.]+)(ns|us|µs|ms|s|m|h)/g)) sum += n * unit[u]
  return sum
}

export const short = id => (id || '').slice(0, 5)
export const brief = id => (id && id.length > 11 ? id.slice(0, 4) + '…' + id.slice(-4) : id || '')

// payload is the text of a payload, as the operations write them.
export function payload(p) {
  if (p === undefined || p === null) return ''
  if (typeof p === 'string') return p
  if (typeof p.base64 === 'string') return `base64: ${p.base64}`
  return JSON.stringify(p, null, 2)
}
export function payloadBytes(p) {
  if (p === undefined || p === null) return 0
  if (typeof p === 'string') return new TextEncoder().encode(p).length
  if (typeof p.base64 === 'string') return Math.floor(p.base64.replace(/=+$/, '').length * 3 / 4)
  return JSON.stringify(p).length
}

// hidden is the place of a payload. The text enters the document only when the button is
// pressed; load returns the text, or a promise of it.
export function hidden(size, load) {
  const box = h('div', { class: 'payload' })
  const button = h('button', {
    class: 'plain', onclick: async () => {
      button.disabled = true
      try {
        const text = await load()
        box.classList.add('shown')
        replace(box, h('pre', { tabindex: 0 }, text || '(empty)'))
      } catch (err) {
        replace(box, h('span', { class: 'muted' }, err.message), button)
        button.disabled = false
      }
    },
  }, 'Show')
  append(box, [h('span', { class: 'muted' }, size === undefined ? 'payload, not shown' : `${count(size, 'byte')}, not shown`), button])
  return box
}

// squeeze puts a text into a width: a little narrower if that is enough, or else shortened.
export function squeeze(el, text, width, font) {
  const w = textWidth(text, font)
  const narrow = w > width && w <= width * 1.2
  el.textContent = narrow ? text : fit(text, width, font)
  if (narrow) set(el, { textLength: width, lengthAdjust: 'spacingAndGlyphs' })
  else el.removeAttribute('textLength')
}

let canvas
const widths = new Map()
export function textWidth(text, font) {
  const key = font + text
  let w = widths.get(key)
  if (w === undefined) {
    canvas ||= document.createElement('canvas').getContext('2d')
    canvas.font = font
    w = canvas.measureText(text).width
    if (widths.size > 5000) widths.clear()
    widths.set(key, w)
  }
  return w
}
export function fit(text, width, font) {
  if (textWidth(text, font) <= width) return text
  let lo = 1, hi = text.length
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1
    if (textWidth(text.slice(0, mid) + '…', font) <= width) lo = mid
    else hi = mid - 1
  }
  return text.slice(0, lo) + '…'
}
