// Texts of traps, which name the call path.

// frames takes the call path out of the text of a trap: "… (in f at a.c:4:2 < g at a.c:9:1)".
export function frames(error) {
  const m = /^([\s\S]*?)\s*\(in ([\s\S]+)\)\s*$/.exec(error || '')
  if (!m) return { what: error || '', path: [] }
  return {
    what: m[1], path: m[2].split(' < ').map(frame => {
      const at = /^([\s\S]*?) at (\S+)$/.exec(frame.trim())
      return at ? { name: at[1], at: at[2] } : { name: frame.trim(), at: '' }
    }),
  }
}

// inShort returns an error with only its innermost frame.
export function inShort(error) {
  const { what, path } = frames(error)
  return path.length ? `${what} in ${path[0].name}${path[0].at ? ` (${path[0].at})` : ''}` : what
}
