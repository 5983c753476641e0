# Three creatures in a row: lines ─► tidy ─► spotter ─► census ─► report

channel "lines" { description = "what was seen, one sighting a line" }
channel "sightings" { description = "the lines without comments" }
channel "amphibians" { description = "sightings of frogs and newts" }
channel "report" { description = "how often each kind has been seen" }

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

test "counts every kind" {
  send {
    channel = channel.lines
    lines   = ["# a comment", "07:02 frog", "07:40 snail", "07:41 newt"]
  }
  assert {
    condition     = result.channel.report[*].json.counts == [{ frog = 1, newt = 1 }]
    error_message = "The reports are ${jsonencode(result.channel.report[*].payload)}."
  }
}
