# Three creatures in a row: lines ─► tidy ─► spotter ─► census ─► report

channel "lines"      { description = "what was seen, one sighting a line" }
channel "sightings"  { description = "the lines without comments" }
channel "amphibians" { description = "sightings of frogs and newts" }
channel "report"     { description = "how often each kind was seen so far" }

creature "tidy" {
  module = "builtin:gate"
  listen = [channel.lines]
  send   = [channel.sightings]
  config = { match = "^#|^$", invert = true } # drops comments and empty lines
}

creature "spotter" {
  module = "builtin:gate"
  listen = [channel.sightings]
  send   = [channel.amphibians]
  config = { match = "frog|newt" }
}

creature "census" {
  module = "builtin:tally"
  listen = [channel.amphibians]
  send   = [channel.report]
  config = { key = "field:2", every = 2 } # counts by the second word
}
